//! The driver at a port of a function.
//!
//! The function is a process of somebody else, and as hostile as a box: rings, descriptors and answers are checked by the same
//! code ([`boundary::HostPort`]). What differs is how the two wake each other. A process that holds a shared eventfd could
//! make it blocking, fill it up, and so stop the switch. So the doorbell is a pair of sockets, on which each call says that
//! it does not wait.

use super::error::FunctionError;
use super::memory::FunctionRegion;
use crate::batch::Batch;
use crate::books::RingBooks;
use crate::driver::boxed::BoxPort;
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use crate::driver::kernel::{check, not_now};
use crate::driver::port_slot::PortSlot;
use crate::silence::Progress;
use boundary::{DirectBatch, HostPort, PoolShare, RegionLayout, SharedMemory, Slots};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that one sleep reads from a doorbell.
const RINGS: usize = 256;

/// The switch's end of the doorbell of one function. All its ports have the same.
#[derive(Debug)]
struct Doorbell {
    socket: UnixStream,
    /// The function has closed its end.
    closed: AtomicBool,
}

impl Doorbell {
    /// Wakes the function.
    fn ring(&self) {
        let (byte, flags) = ([1u8], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        // SAFETY: the kernel reads one byte of a live array.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), byte.as_ptr().cast(), 1, flags) };
        match check(sent) {
            Ok(_) => {}
            // If the socket is full, the doorbell was rung before.
            Err(error) if not_now(&error) => {}
            Err(_) => self.closed.store(true, Ordering::Relaxed),
        }
    }

    /// Reads what the function has rung.
    fn hear(&self) {
        if self.is_closed() {
            return;
        }
        let mut bytes = [0u8; RINGS];
        let (socket, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the kernel writes to a live array of this length.
        let heard = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), RINGS, flags) };
        match check(heard) {
            Ok(1..) => {}
            Err(error) if not_now(&error) => {}
            Ok(0) | Err(_) => self.closed.store(true, Ordering::Relaxed),
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

/// A port that is connected to a function in another process. Clones refer to the same port.
#[derive(Clone, Debug)]
pub struct FunctionPort {
    slot: PortSlot<Arc<FunctionRegion>>,
    doorbell: Arc<Doorbell>,
}

/// What the process of a function gets.
#[derive(Debug)]
pub struct FunctionEnds {
    /// The memory file with the region, without buffers that are in a pool.
    pub memory: OwnedFd,
    /// Its end of the doorbell.
    pub doorbell: OwnedFd,
    /// Where everything is in the region.
    pub layout: RegionLayout,
}

impl FunctionPort {
    /// Makes a region for one function with this number of ports, whose rings have `slots` slots each. The ports note tags.
    ///
    /// # Errors
    ///
    /// The kernel has no memory or no descriptors left, or there are more ports than a region can have.
    pub fn create(ports: usize, slots: Slots) -> Result<(Vec<Self>, FunctionEnds), FunctionError> {
        Self::create_in(ports, slots, |_| None)
    }

    /// Like [`create`](Self::create). `join` is asked for a share of a packet pool with this number of buffers. If it has one, the
    /// buffers of the function are there, and [`FunctionEnds::memory`] has only its rings.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create_in(
        ports: usize,
        slots: Slots,
        join: impl FnOnce(usize) -> Option<PoolShare>,
    ) -> Result<(Vec<Self>, FunctionEnds), FunctionError> {
        let rings = vec![slots; ports];
        let own = RegionLayout::new(&rings)?;
        let share = join(own.buffers());
        let layout = match &share {
            Some(share) => RegionLayout::pooled(&rings, 1, share.buffers.size())?,
            None => own,
        };
        let (region, memory) = FunctionRegion::create(layout.size, share)?;
        let (near, far) = UnixStream::pair()?;
        let (region, doorbell) =
            (Arc::new(region), Arc::new(Doorbell { socket: near, closed: AtomicBool::new(false) }));
        let mut all = Vec::new();
        for port in &layout.ports {
            let host = match &region.share {
                Some(share) => {
                    let member = (share.owners.clone(), share.member);
                    HostPort::pooled(
                        &region.mapped(),
                        port,
                        share.buffers,
                        member,
                        &share.own,
                        region.clone(),
                    )?
                }
                None => HostPort::new(&region.mapped(), port, region.clone())?,
            };
            let bell = doorbell.clone();
            all.push(BoxPort::new(host, move || bell.ring()));
        }
        BoxPort::note_tags(&mut all);
        let port = |port| {
            let slot = PortSlot::default();
            slot.set(vec![port]);
            Self { slot, doorbell: doorbell.clone() }
        };
        Ok((all.into_iter().map(port).collect(), FunctionEnds { memory, doorbell: far.into(), layout }))
    }

    /// The frames in the rings of the port; `None` after it was abandoned.
    pub fn rings(&self) -> Option<RingBooks> {
        self.slot.rings()
    }

    /// Whether the function has closed its end of the doorbell.
    pub fn is_closed(&self) -> bool {
        self.doorbell.is_closed()
    }
}

impl Driver for FunctionPort {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.slot.receive(batch)
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        match self.is_closed() {
            true => Ok(Sent { down: true, ..Sent::default() }),
            false => self.slot.send(batch, frames),
        }
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        match self.is_closed() {
            true => Ok(Sent { down: true, ..Sent::default() }),
            false => self.slot.send_split(batch, frames),
        }
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        self.slot.receive_split(batch)
    }

    fn release(&mut self, batch: &Batch) {
        self.slot.release(batch);
    }

    fn list_direct(&mut self, batch: &mut DirectBatch) {
        self.slot.list_direct(batch);
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        !self.is_closed() && self.slot.send_direct(batch)
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        self.slot.release_direct(batch);
    }

    fn accepts_split(&self) -> bool {
        self.slot.accepts_split()
    }

    fn is_ready(&mut self) -> bool {
        self.slot.is_ready()
    }

    fn is_crowded(&mut self) -> bool {
        self.slot.is_crowded()
    }

    fn progress(&mut self) -> Option<Progress> {
        self.slot.progress()
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.doorbell.hear();
        self.slot.prepare_sleep()
    }

    fn end_sleep(&mut self) {
        self.slot.end_sleep();
    }

    /// The frames that wait in the rings, in both directions: no one will take them.
    fn abandon(&mut self) -> u64 {
        self.slot.set(Vec::new()).iter_mut().map(|port| port.rings().waiting()).sum()
    }

    /// The doorbell, until the function has closed it: it would be readable without end.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_closed()).then(|| self.doorbell.socket.as_fd())
    }
}
