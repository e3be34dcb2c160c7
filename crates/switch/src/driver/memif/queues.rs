//! The rings of a connected peer. Several drivers of a port may have a part of them each.

use super::bell;
use super::connection::Rings;
use super::error::MemifError;
use super::memory::Region;
use super::ring::{Reader, Writer};
use crate::batch::Batch;
use crate::driver::contract::{Received, Sent};
use crate::driver::kernel::check;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the drivers of a port have in common.
#[derive(Debug)]
pub(super) struct SharedRings {
    /// What wakes each of them: an epoll instance.
    pub(super) epolls: Vec<OwnedFd>,
    /// The rings of the peer that is connected.
    current: Mutex<Option<Arc<Queues>>>,
    /// Changes with them.
    generation: AtomicU64,
    /// What the peer did wrong at a ring of another driver than the first.
    failure: Mutex<Option<MemifError>>,
}

impl SharedRings {
    /// For one driver.
    pub(super) fn new(epoll: OwnedFd) -> Self {
        Self {
            epolls: vec![epoll],
            current: Mutex::default(),
            generation: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn current(&self) -> Option<Arc<Queues>> {
        lock(&self.current).clone()
    }

    /// Gives the drivers the rings of a peer, and wakes them.
    pub(super) fn begin(&self, queues: Arc<Queues>) -> io::Result<()> {
        // What concerns an earlier peer.
        self.take_failure();
        *lock(&self.current) = Some(queues.clone());
        self.generation.fetch_add(1, Ordering::Release);
        for (number, incoming) in queues.incoming.iter().enumerate() {
            let Some(epoll) = self.epolls.get(number % self.epolls.len()) else { continue };
            watch(epoll, &incoming.event, libc::EPOLLIN | libc::EPOLLET)?;
            if number % self.epolls.len() > 0 {
                bell::ring(&incoming.event)?;
            }
        }
        Ok(())
    }

    /// Takes the rings from the drivers.
    pub(super) fn end(&self, queues: &Queues) {
        *lock(&self.current) = None;
        self.generation.fetch_add(1, Ordering::Release);
        for (number, incoming) in queues.incoming.iter().enumerate() {
            let Some(epoll) = self.epolls.get(number % self.epolls.len()) else { continue };
            // The peer has the event too: it would be reported although this side closes it.
            // SAFETY: the call reads no memory.
            unsafe {
                let (epoll, event) = (epoll.as_raw_fd(), incoming.event.as_raw_fd());
                libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, event, null_mut());
            }
        }
    }

    /// Notes that the peer broke the rules of a ring, unless something else was noted.
    pub(super) fn fail(&self, error: MemifError) {
        lock(&self.failure).get_or_insert(error);
    }

    /// What the peer did wrong, if it was not asked for yet.
    pub(super) fn take_failure(&self) -> Option<MemifError> {
        lock(&self.failure).take()
    }
}

/// The rings that a peer shares, and their memory.
#[derive(Debug)]
pub(super) struct Queues {
    regions: Vec<Region>,
    incoming: Vec<Incoming>,
    outgoing: Vec<Outgoing>,
}

/// A ring to this side.
#[derive(Debug)]
struct Incoming {
    /// Wakes this side.
    event: OwnedFd,
    ring: Mutex<IncomingRing>,
}

#[derive(Debug)]
struct IncomingRing {
    reader: Reader,
    /// The peer has ended: this many slots that it filled are still to be read.
    left: Option<u16>,
}

/// A ring to the peer.
#[derive(Debug)]
struct Outgoing {
    /// Wakes the peer.
    event: OwnedFd,
    ring: Mutex<OutgoingRing>,
}

#[derive(Debug)]
struct OutgoingRing {
    writer: Writer,
    /// The peer has ended.
    is_closed: bool,
}

/// The part of the rings that one of several drivers has: of those to this side, every N-th one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) drivers: usize,
}

impl Queues {
    pub(super) fn new(rings: Rings) -> Self {
        let Rings { regions, incoming, outgoing } = rings;
        let reading =
            |(reader, event)| Incoming { event, ring: Mutex::new(IncomingRing { reader, left: None }) };
        let writing =
            |(writer, event)| Outgoing { event, ring: Mutex::new(OutgoingRing { writer, is_closed: false }) };
        Self {
            regions,
            incoming: incoming.into_iter().map(reading).collect(),
            outgoing: outgoing.into_iter().map(writing).collect(),
        }
    }

    fn part(&self, part: Part) -> impl Iterator<Item = &Incoming> {
        self.incoming.iter().skip(part.number).step_by(part.drivers)
    }

    /// The number of rings to this side.
    pub(super) fn count(&self) -> usize {
        self.incoming.len()
    }

    /// Whether frames wait in a part.
    #[inline]
    pub(super) fn is_ready(&self, part: Part) -> Result<bool, MemifError> {
        for incoming in self.part(part) {
            let ring = lock(&incoming.ring);
            if ring.left != Some(0) && ring.reader.waiting(&self.regions)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Receives from the rings of a part: from the one with this number first, so that no ring is always the last one.
    pub(super) fn receive(
        &self,
        part: Part,
        first: usize,
        batch: &mut Batch,
    ) -> Result<Received, MemifError> {
        let mut all = Received::default();
        let first = first % self.part(part).count().max(1);
        for incoming in self.part(part).skip(first).chain(self.part(part).take(first)) {
            let mut ring = lock(&incoming.ring);
            let most = ring.left.unwrap_or(u16::MAX);
            if most == 0 {
                continue;
            }
            let (read, received) = ring.reader.receive(&self.regions, batch, most)?;
            ring.left = ring.left.map(|left| left.saturating_sub(read));
            all.long += received.long;
            all.faulty += received.faulty;
        }
        Ok(all)
    }

    /// The ring to the peer that a part uses. If the peer has fewer rings than there are drivers, some share one.
    #[inline]
    fn outgoing(&self, part: Part) -> Option<&Outgoing> {
        match self.outgoing.len() {
            0 => None,
            count => self.outgoing.get(part.number % count),
        }
    }

    /// Sends frames through the ring of a part. `None`: the peer has ended.
    pub(super) fn send(&self, part: Part, batch: &Batch, frames: &[u32]) -> Result<Option<Sent>, MemifError> {
        let Some(Outgoing { event, ring }) = self.outgoing(part) else { return Ok(None) };
        let mut ring = lock(ring);
        if ring.is_closed {
            return Ok(None);
        }
        let (sent, wakes) = ring.writer.send(&self.regions, batch, frames)?;
        drop(ring);
        if wakes {
            // It worked when the connection was made.
            let _ = bell::ring(event);
        }
        Ok(Some(sent))
    }

    /// Whether the ring of a part to the peer has little room left.
    pub(super) fn is_crowded(&self, part: Part) -> bool {
        self.outgoing(part).is_some_and(|outgoing| lock(&outgoing.ring).writer.is_crowded(&self.regions))
    }

    /// Asks the peer for interrupts. Returns false if frames wait in a part already.
    pub(super) fn unmask(&self, part: Part) -> Result<bool, MemifError> {
        let mut is_empty = true;
        for incoming in self.part(part) {
            let ring = lock(&incoming.ring);
            is_empty &= ring.reader.unmask(&self.regions)? || ring.left == Some(0);
        }
        Ok(is_empty)
    }

    /// Tells the peer that interrupts are not needed for a part.
    pub(super) fn mask(&self, part: Part) {
        self.part(part).for_each(|incoming| lock(&incoming.ring).reader.mask(&self.regions));
    }

    /// Sends nothing any more, and receives only what waits now.
    pub(super) fn finish(&self) {
        for incoming in &self.incoming {
            let mut ring = lock(&incoming.ring);
            ring.left = Some(ring.reader.waiting(&self.regions).unwrap_or(0));
        }
        self.outgoing.iter().for_each(|outgoing| lock(&outgoing.ring).is_closed = true);
    }

    /// Whether all that the peer sent before its end was received. A hostile peer can take back what it sent.
    pub(super) fn is_drained(&self) -> bool {
        let mut rings = self.incoming.iter().map(|incoming| lock(&incoming.ring));
        rings.all(|ring| ring.left == Some(0) || ring.reader.waiting(&self.regions).unwrap_or(0) == 0)
    }

    /// The frames that wait here.
    pub(super) fn waiting(&self) -> u64 {
        let waiting = |incoming: &Incoming| {
            let ring = lock(&incoming.ring);
            let waiting = ring.reader.waiting(&self.regions).unwrap_or(0);
            u64::from(waiting.min(ring.left.unwrap_or(u16::MAX)))
        };
        self.incoming.iter().map(waiting).sum()
    }

    /// Neither sends nor receives any more. Returns the number of frames that the peer did not take.
    pub(super) fn close(&self) -> u64 {
        self.incoming.iter().for_each(|incoming| lock(&incoming.ring).left = Some(0));
        let close = |outgoing: &Outgoing| {
            let mut ring = lock(&outgoing.ring);
            ring.is_closed = true;
            ring.writer.untaken(&self.regions)
        };
        self.outgoing.iter().map(close).sum()
    }
}

/// Has an epoll instance report a descriptor.
pub(super) fn watch(epoll: &OwnedFd, descriptor: &OwnedFd, events: libc::c_int) -> io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: 0 };
    let (epoll, descriptor) = (epoll.as_raw_fd(), descriptor.as_raw_fd());
    // SAFETY: the kernel reads a live variable.
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &raw mut event) } as isize)
        .map(drop)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
