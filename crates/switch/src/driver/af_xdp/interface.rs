//! A network device that a process uses through XDP sockets on its own, without a switch.
//!
//! The device's frames go on to the host as long as nothing asks for them, so a process that only sends leaves them there.

use super::error::XdpError;
use super::limits::{fits, is_short};
use super::port::AfXdp;
use super::program::SocketMap;
use crate::batch::Batch;
use crate::driver::contract::{Driver, DriverError, Received};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Frames that are given to the driver at once.
const SEND_BATCH: usize = 64;

/// Maximum number of frames that one call receives.
const MAX_RECEIVE: usize = 256;

/// Calls that empty the rings when receiving ends: as many frames as there are buffers in all queues.
const DRAIN_CALLS: usize = 128;

/// A network device that a process uses through XDP sockets.
#[derive(Debug)]
pub struct XdpInterface {
    driver: AfXdp,
    map: SocketMap,
    /// Received frames, at most as many as the last call asked for.
    incoming: Batch,
    most: usize,
    outgoing: Batch,
    missed: u64,
}

/// The result of sending frames.
#[derive(Debug, Default)]
pub struct XdpSent {
    /// The number of frames taken: a prefix of the given frames.
    pub frames: usize,
    /// Those of them that were dropped because they are longer than the device's MTU.
    pub too_long: usize,
    /// Why the next frame could not be sent. `None` if all were sent or there is no room now.
    pub error: Option<io::Error>,
}

impl XdpInterface {
    /// Opens a device with all its receive queues. It is not made promiscuous, and nothing is received yet.
    pub fn open(device: &str) -> Result<Self, XdpError> {
        let (descriptors, map) = AfXdp::open_parts(device, None, 1, false)?;
        let mut driver = AfXdp::from_descriptors(descriptors)?;
        driver.keep_watching();
        let (incoming, outgoing) = (Batch::new(0), Batch::new(SEND_BATCH));
        Ok(Self { driver, map, incoming, most: 0, outgoing, missed: 0 })
    }

    /// Takes the device's frames from the host.
    pub fn start_receiving(&mut self) -> io::Result<()> {
        for (queue, socket) in (0..).zip(self.driver.sockets()) {
            self.map.insert(queue, socket)?;
        }
        Ok(())
    }

    /// Leaves the device's frames to the host again. Frames that wait are dropped.
    pub fn stop_receiving(&mut self) {
        for (queue, _) in (0..).zip(self.driver.sockets()) {
            // It fails only if there is no socket in the map.
            let _ = self.map.remove(queue);
        }
        for _ in 0..DRAIN_CALLS {
            if !matches!(self.receive(MAX_RECEIVE, |_| {}), Ok(1..)) {
                break;
            }
        }
    }

    /// Passes received frames to `take`, at most `most` of them, and returns their number. An error says once that the device is
    /// down, or was removed.
    pub fn receive(&mut self, most: usize, take: impl FnMut(&[u8])) -> io::Result<usize> {
        let most = most.min(MAX_RECEIVE);
        if self.most != most {
            (self.incoming, self.most) = (Batch::new(most), most);
        }
        self.incoming.clear();
        let Received { long, faulty, refused } =
            self.driver.receive(&mut self.incoming).map_err(system_error)?;
        self.missed += long + faulty + refused.total();
        if self.incoming.is_empty() {
            // The descriptor would stay readable while the device is down.
            let error = self.driver.watch().take_error();
            self.driver.prepare_sleep().map_err(system_error)?;
            if let Some(error) = error {
                return Err(error);
            }
        }
        self.incoming.frames().for_each(take);
        Ok(self.incoming.len())
    }

    /// Sends frames in order, until there is no room.
    pub fn send<'f>(&mut self, frames: impl IntoIterator<Item = &'f [u8]>) -> XdpSent {
        let (mut frames, mut outcome) = (frames.into_iter(), XdpSent::default());
        loop {
            let mut numbers = [0; SEND_BATCH];
            let (mut count, mut looked_at, mut mtu) = (0, 0, None);
            self.outgoing.clear();
            for frame in frames.by_ref().take(SEND_BATCH) {
                let fits =
                    is_short(frame) || fits(frame, *mtu.get_or_insert_with(|| self.driver.look_at_mtu()));
                if let Some(number) = numbers.get_mut(count).filter(|_| fits && self.outgoing.push(frame)) {
                    *number = looked_at;
                    count += 1;
                }
                looked_at += 1;
            }
            let sent = self.send_batch(count).unwrap_or_else(|error| {
                outcome.error = Some(error);
                0
            });
            let taken = numbers.get(sent).filter(|_| sent < count).map_or(looked_at, |number| *number);
            outcome.frames += taken;
            outcome.too_long += taken - sent;
            if outcome.error.is_some() || taken < looked_at || looked_at < SEND_BATCH {
                return outcome;
            }
        }
    }

    /// Sends the first frames of the outgoing batch. Returns how many were sent.
    fn send_batch(&mut self, count: usize) -> io::Result<usize> {
        const NUMBERS: [u32; SEND_BATCH] = {
            let mut numbers = [0; SEND_BATCH];
            let mut at = 0;
            while at < SEND_BATCH {
                numbers[at] = at as u32;
                at += 1;
            }
            numbers
        };
        let frames = NUMBERS.get(..count).unwrap_or_default();
        let sent = self.driver.send(&self.outgoing, frames).map_err(system_error)?;
        if sent.down && sent.frames == 0 && count > 0 {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        // A frame that stayed behind in the ring would leave with the next one only, which may never come.
        let late = self.driver.withdraw_late(sent.frames as usize)?;
        Ok((sent.frames as usize).saturating_sub(late))
    }

    /// Frames lost since the device was opened because they were not received in time, or could not be read.
    pub fn missed(&mut self) -> u64 {
        self.missed += self.driver.take_missed();
        self.missed
    }

    /// Whether the device was removed or moved away: another one of the same name must be opened.
    pub fn is_gone(&self) -> bool {
        self.driver.is_gone()
    }

    /// Whether the device's driver reads and writes the buffers itself. Otherwise the kernel copies frames.
    pub fn is_zero_copy(&self) -> bool {
        self.driver.is_zero_copy()
    }

    /// The device's MAC address.
    pub fn mac(&self) -> [u8; 6] {
        self.driver.watch().mac()
    }

    /// A descriptor that is readable when frames have arrived.
    pub fn incoming_descriptor(&self) -> io::Result<OwnedFd> {
        self.driver.descriptor().ok_or(io::ErrorKind::Unsupported)?.try_clone_to_owned()
    }

    /// A descriptor that is writable when there is room to send.
    pub fn outgoing_descriptor(&self) -> io::Result<OwnedFd> {
        self.driver.sockets().next().ok_or(io::ErrorKind::Unsupported)?.as_fd().try_clone_to_owned()
    }
}

fn system_error(error: DriverError) -> io::Error {
    match error {
        DriverError::System(error) => error,
        error => io::Error::other(error),
    }
}
