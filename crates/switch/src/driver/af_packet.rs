//! `af_packet`: any kernel network device, through a packet socket.
//!
//! Frames that this host sends on the device are not seen. The kernel passes GSO frames in both directions: on entry
//! they are segmented and checksums are filled in, on exit segments are coalesced.

use super::contract::{Driver, DriverError, LinkState, Received, Sent};
use crate::batch::{Batch, MAX_FRAME};
use crate::device::{Coalescer, FanOut, InterfaceReader, PacketSocket, PacketSocketSettings};
use crate::shards::Spread;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Size of the receive ring in bytes: about 1,900 frames.
const RECEIVE: usize = 1 << 22;

/// A packet socket bound to a device.
#[derive(Debug)]
pub struct AfPacket {
    interface: InterfaceReader,
    /// The group in which it shares the frames of the device with others, if there are several, and its number there.
    group: Option<(Arc<FanOut>, usize)>,
    coalescer: Coalescer,
    /// The device was found to be removed.
    is_gone: bool,
    /// Why this driver is used instead of another one.
    instead: Option<String>,
}

/// How the socket uses its interface.
const SETTINGS: PacketSocketSettings = PacketSocketSettings {
    promiscuous: true,
    outbound: false,
    snap: MAX_FRAME,
    receive: RECEIVE,
    gso: true,
    fits: true,
};

impl AfPacket {
    /// Opens a device in promiscuous mode. Refuses one with an MTU above 2,034 with `EMSGSIZE`, apart from the loopback device:
    /// buffers have no room for its frames.
    pub fn open(device: &str) -> io::Result<Self> {
        Self::from_descriptor(Self::open_descriptor(device)?)
    }

    /// The part of [`open`](Self::open) that needs privileges. Nothing is received yet, but the device is in
    /// promiscuous mode from then on, until all duplicates of the descriptor are closed.
    pub fn open_descriptor(device: &str) -> io::Result<OwnedFd> {
        PacketSocket::open_descriptor(device, SETTINGS)
    }

    /// The other part, without privileges: uses a descriptor that another process opened, and that no process has used
    /// yet.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let interface = InterfaceReader::new(PacketSocket::from_descriptor(descriptor, SETTINGS)?);
        Ok(Self { interface, group: None, coalescer: Coalescer::default(), is_gone: false, instead: None })
    }

    /// The same for several descriptors of one device: each frame is received by one of the ports, all frames of a flow by the
    /// same, and none that one of them has sent.
    pub fn from_descriptors(descriptors: Vec<OwnedFd>) -> io::Result<Vec<Self>> {
        // The first one receives all frames until the others join it.
        descriptors.iter().skip(1).try_for_each(FanOut::mute)?;
        let mut ports = descriptors.into_iter().map(Self::from_descriptor).collect::<io::Result<Vec<_>>>()?;
        if ports.len() > 1 {
            let group =
                Arc::new(FanOut::new(ports.iter().map(|port| port.interface.socket().socket()).collect()));
            for (number, port) in ports.iter_mut().enumerate() {
                port.group = Some((group.clone(), number));
            }
        }
        Ok(ports)
    }

    /// The same, used because another driver cannot be used, for this reason.
    pub fn instead(self, reason: String) -> Self {
        Self { instead: Some(reason), ..self }
    }

    /// Lets the sockets share the frames of the device, if they could not yet.
    fn join(&self) -> io::Result<()> {
        self.group.as_ref().map_or(Ok(()), |(group, _)| group.join())
    }

    /// Returns an error if the device was removed: this socket is then useless, whereas a device that is down may come
    /// up again.
    fn check(&mut self) -> Result<(), DriverError> {
        self.is_gone |= self.interface.socket().is_gone();
        match self.is_gone {
            true => Err(io::Error::from_raw_os_error(libc::ENODEV).into()),
            false => Ok(()),
        }
    }
}

impl Driver for AfPacket {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        if self.is_gone {
            self.check()?;
        }
        let mut received = Received::default();
        let read = self.interface.receive(batch.room(), MAX_FRAME, |mut frame| {
            if frame.cut() == 0 && batch.space().is_some_and(|space| frame.copy_to(space)) {
                batch.commit(frame.length());
            } else {
                received.long += 1;
            }
        });
        received.long += read.refused as u64;
        Ok(received)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let mut sent = Sent::default();
        let Self { interface, coalescer, .. } = self;
        match Coalescer::is_worthwhile(batch, frames) {
            true => coalescer.join(batch, frames, interface.socket().mtu()),
            false => coalescer.separate(batch, frames),
        }
        let mut next = 0;
        loop {
            let Self { interface, coalescer, .. } = self;
            let left = coalescer.groups().get(next..).unwrap_or_default();
            let outcome = interface
                .socket()
                .send_messages(left.iter().map(|group| coalescer.message(group, batch, frames)));
            let (gone, rest) = left.split_at(outcome.frames.min(left.len()));
            count(&mut sent, gone.iter().map(|group| coalescer.size(group, batch, frames)));
            next += gone.len();
            let error = match outcome.error {
                Some(error) => error,
                None if gone.is_empty() || rest.is_empty() => break,
                None => continue,
            };
            match error.raw_os_error() {
                // A device that is down or has no carrier accepts nothing; that may change.
                Some(libc::ENETDOWN | libc::ENXIO) => {
                    self.check()?;
                    sent.down = true;
                    break;
                }
                // The frame is longer than the device takes: only this frame is lost. Of a group, each frame is tried by
                // itself.
                Some(code @ (libc::EMSGSIZE | libc::EINVAL)) => match rest.first() {
                    Some(group) if group.frames > 1 && code == libc::EINVAL => coalescer.split_refused(next),
                    Some(group) if group.frames > 1 => coalescer.split(next),
                    lost => {
                        sent.too_big += lost.iter().len() as u64;
                        coalescer.skip(next, 1, frames);
                        next += 1;
                    }
                },
                _ => return Err(error.into()),
            }
        }
        self.coalescer.skip(next, usize::MAX, frames);
        Ok(sent)
    }

    fn skipped(&self) -> Vec<u32> {
        self.coalescer.skipped()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        // A device that went down polls as ready until its error is read, which would keep the runner awake. It may
        // come up again.
        if self.interface.socket().take_error().is_some() {
            self.check()?;
        }
        self.join()?;
        self.interface.socket().note_sleep();
        Ok(!self.interface.has_frame())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.interface.socket().as_fd())
    }

    fn queues(&self) -> u32 {
        1
    }

    fn set_thread(&mut self, spread: Spread, thread: usize) {
        if let Some((group, number)) = &self.group {
            group.set_thread(*number, spread, thread);
            if group.knows_threads() {
                // A later attempt reports the error.
                let _ = group.join();
            }
        }
    }

    fn link_state(&self) -> Option<LinkState> {
        Some(match (link_state(self.interface.socket(), MAX_FRAME), &self.instead) {
            (LinkState::Up, Some(why)) => LinkState::Limited(why.clone()),
            (LinkState::Limited(state), Some(why)) => LinkState::Limited(format!("{state}; {why}")),
            (LinkState::Waiting(state), Some(why)) => LinkState::Waiting(format!("{state}; {why}")),
            (state, _) => state,
        })
    }

    fn take_missed(&mut self) -> u64 {
        // Also checked here, so that a runner that never sleeps notices it.
        self.is_gone |= self.interface.socket().is_gone();
        // A later attempt reports the error.
        let _ = self.join();
        self.interface.take_missed()
    }
}

/// The state of the interface of a packet socket, for a driver that receives frames of up to `longest` bytes.
pub(super) fn link_state(socket: &PacketSocket, longest: usize) -> LinkState {
    match socket.interface() {
        Ok(interface) => interface.link_state(longest),
        Err(error) => LinkState::Gone(error.to_string()),
    }
}

/// Counts groups as sent, of which the frames and the bytes are given.
fn count(sent: &mut Sent, groups: impl Iterator<Item = (u64, u64)>) {
    for (frames, bytes) in groups {
        sent.frames += frames;
        sent.bytes += bytes;
    }
}
