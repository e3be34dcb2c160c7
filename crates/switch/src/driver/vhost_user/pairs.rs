//! The queue pairs of a port. Several drivers may have a part of them each.
//!
//! The first driver handles the messages of the peer: it places rings and stops them, whichever driver runs them. A pair is locked
//! for a batch.

use super::bell::Bells;
use super::error::VhostUserError;
use super::memory::GuestMemory;
use super::offloads::Offloads;
use super::ring::Ring;
use crate::batch::Batch;
use crate::driver::contract::{Received, Sent};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue of a pair on which the peer receives, and the one on which it sends.
pub(super) const TO_PEER: usize = 0;
pub(super) const FROM_PEER: usize = 1;

/// Maximum number of pairs of a port: each has two descriptors of the peer.
pub(super) const MAX_PAIRS: usize = 16;

/// The pairs, and what wakes the drivers that run them.
#[derive(Debug)]
pub(super) struct Pairs {
    pairs: Vec<Mutex<Pair>>,
    /// The set of descriptors to wait for of each driver.
    epolls: Vec<OwnedFd>,
    /// The number of pairs, from the first one on, that can send frames.
    sending: AtomicUsize,
    /// What the peer did wrong at a ring of another driver than the first.
    failure: Mutex<Option<VhostUserError>>,
    /// Maximum bytes of memory that a peer may share.
    pub(super) most_memory: u64,
}

#[derive(Debug, Default)]
struct Pair {
    rings: [Option<Ring>; 2],
    is_enabled: [bool; 2],
    memory: Arc<GuestMemory>,
    bells: Option<Arc<Bells>>,
}

/// The part of the pairs that one of several drivers has: every N-th one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) drivers: usize,
}

impl Pair {
    fn running(&mut self, side: usize) -> Option<(&mut Ring, &GuestMemory)> {
        let ring = self.rings.get_mut(side)?.as_mut();
        let is_enabled = self.is_enabled.get(side).is_some_and(|is_enabled| *is_enabled);
        Some((ring.filter(|_| is_enabled)?, &self.memory))
    }

    /// Ends the use of a ring for a batch.
    fn finish(&self, number: usize, side: usize, rings: bool) -> Result<(), VhostUserError> {
        if let (true, Some(bells)) = (rings, &self.bells) {
            bells.ring(2 * number + side);
        }
        if self.memory.is_broken() { Err(VhostUserError::MemoryLost) } else { Ok(()) }
    }
}

impl Pairs {
    /// This number of pairs without rings, for drivers with these sets of descriptors, and peers with so many bytes of memory.
    pub(super) fn new(count: usize, epolls: Vec<OwnedFd>, most_memory: u64) -> Self {
        let pairs = (0..count).map(|_| Mutex::default()).collect();
        Self { pairs, epolls, sending: AtomicUsize::new(0), failure: Mutex::default(), most_memory }
    }

    /// The number of queues, two of each pair.
    pub(super) fn queues(&self) -> usize {
        2 * self.pairs.len()
    }

    /// The set of descriptors that the driver of a queue waits for.
    pub(super) fn epoll_of(&self, queue: usize) -> &OwnedFd {
        self.epoll(queue / 2)
    }

    /// The set of descriptors that a driver waits for.
    pub(super) fn epoll(&self, driver: usize) -> &OwnedFd {
        &self.epolls[driver % self.epolls.len()]
    }

    fn pair(&self, number: usize) -> Option<MutexGuard<'_, Pair>> {
        self.pairs.get(number).map(lock)
    }

    fn part(&self, part: Part) -> impl Iterator<Item = (usize, MutexGuard<'_, Pair>)> {
        let pairs = self.pairs.iter().enumerate().skip(part.number).step_by(part.drivers);
        pairs.map(|(number, pair)| (number, lock(pair)))
    }

    /// Places the ring of a queue, or stops it. Returns the one before.
    pub(super) fn set_ring(&self, queue: usize, mut ring: Option<Ring>) -> Option<Ring> {
        let mut pair = self.pair(queue / 2)?;
        // Another driver than the first may be asleep already.
        let is_first = (queue / 2).is_multiple_of(self.epolls.len());
        if let (FROM_PEER, false, Some(ring)) = (queue % 2, is_first, &mut ring) {
            ring.ask_to_be_woken();
        }
        let before = std::mem::replace(pair.rings.get_mut(queue % 2)?, ring);
        drop(pair);
        self.count_sending();
        before
    }

    /// Whether the ring of a queue is placed.
    pub(super) fn has_ring(&self, queue: usize) -> bool {
        self.pair(queue / 2).is_some_and(|pair| pair.rings.get(queue % 2).is_some_and(Option::is_some))
    }

    /// Says whether a queue may be used.
    pub(super) fn enable(&self, queue: usize, is_enabled: bool) {
        if let Some(mut pair) = self.pair(queue / 2)
            && let Some(place) = pair.is_enabled.get_mut(queue % 2)
        {
            *place = is_enabled;
        }
        self.count_sending();
    }

    /// Stops all rings; those that are placed from now on are in this memory, and ring these bells.
    pub(super) fn exchange_memory(&self, memory: &Arc<GuestMemory>, bells: Option<&Arc<Bells>>) {
        for pair in &self.pairs {
            let mut pair = lock(pair);
            (pair.rings, pair.memory, pair.bells) = ([None, None], memory.clone(), bells.cloned());
        }
        self.count_sending();
    }

    /// Forgets what belongs to a connection.
    pub(super) fn clear(&self) {
        self.exchange_memory(&Arc::default(), None);
        (0..self.queues()).for_each(|queue| self.enable(queue, false));
        lock(&self.failure).take();
    }

    fn count_sending(&self) {
        let sends = |pair: &&Mutex<Pair>| lock(pair).running(TO_PEER).is_some();
        self.sending.store(self.pairs.iter().take_while(sends).count(), Ordering::Release);
    }

    /// Whether both rings of the first pair run.
    pub(super) fn is_up(&self) -> bool {
        let sides = [TO_PEER, FROM_PEER];
        self.pair(0).is_some_and(|mut pair| sides.into_iter().all(|side| pair.running(side).is_some()))
    }

    /// The number of pairs in a part on which the peer can send.
    pub(super) fn count(&self, part: Part) -> usize {
        self.part(part).filter_map(|(_, mut pair)| pair.running(FROM_PEER).map(drop)).count()
    }

    /// Whether the peer has sent frames to a part.
    #[inline]
    pub(super) fn is_ready(&self, part: Part) -> bool {
        self.part(part).any(|(_, mut pair)| pair.running(FROM_PEER).is_some_and(|(ring, _)| ring.is_ready()))
    }

    /// Receives frames from the pairs of a part: from the one with this number first, so that none is always the last one.
    #[inline]
    pub(super) fn receive(
        &self,
        part: Part,
        first: usize,
        batch: &mut Batch,
        received: &mut Received,
        offloads: &mut Offloads,
    ) -> Result<(), VhostUserError> {
        let count = self.pairs.len().saturating_sub(part.number).div_ceil(part.drivers).max(1);
        for turn in 0..count {
            let number = part.number + (first + turn) % count * part.drivers;
            let Some(mut pair) = self.pair(number) else { continue };
            let Some((ring, memory)) = pair.running(FROM_PEER) else { continue };
            let rings = ring.receive(memory, batch, received, offloads)?;
            pair.finish(number, FROM_PEER, rings)?;
            // Parts of a large frame come first in the next batch.
            if offloads.waiting() > 0 {
                break;
            }
        }
        Ok(())
    }

    /// The pair through which a part sends. If the peer uses fewer pairs than there are drivers, some share one.
    fn sending(&self, part: Part) -> Option<(usize, MutexGuard<'_, Pair>)> {
        let number = part.number.checked_rem(self.sending.load(Ordering::Acquire))?;
        Some((number, self.pair(number)?))
    }

    /// Sends frames to the peer.
    #[inline]
    pub(super) fn send(
        &self,
        part: Part,
        batch: &Batch,
        frames: &[u32],
        sent: &mut Sent,
        offloads: &mut Offloads,
    ) -> Result<(), VhostUserError> {
        let mut pair = self.sending(part);
        let running = pair.as_mut().and_then(|(number, pair)| Some((*number, pair.running(TO_PEER)?)));
        let Some((number, (ring, memory))) = running else {
            sent.down = true;
            return Ok(());
        };
        let rings = ring.send(memory, batch, frames, sent, &mut offloads.coalescer)?;
        pair.map_or(Ok(()), |(_, pair)| pair.finish(number, TO_PEER, rings))
    }

    /// Whether the peer has little room left for what a part sends.
    pub(super) fn is_crowded(&self, part: Part) -> bool {
        let pair = self.sending(part);
        pair.is_some_and(|(_, mut pair)| pair.running(TO_PEER).is_some_and(|(ring, _)| ring.is_crowded()))
    }

    /// Asks the peer to wake the driver of a part. Returns false if frames are waiting.
    pub(super) fn prepare_sleep(&self, part: Part) -> bool {
        self.part(part).fold(true, |sleeps, (_, mut pair)| {
            pair.running(FROM_PEER).is_none_or(|(ring, _)| ring.ask_to_be_woken()) && sleeps
        })
    }

    /// Asks the peer not to wake the driver of a part.
    pub(super) fn end_sleep(&self, part: Part) {
        for (_, mut pair) in self.part(part) {
            if let Some((ring, _)) = pair.running(FROM_PEER) {
                ring.be_quiet();
            }
        }
    }

    /// Stops all rings, because the peer broke the rules of one. The first driver ends the connection.
    pub(super) fn fail(&self, error: VhostUserError) {
        self.pairs.iter().for_each(|pair| lock(pair).rings = [None, None]);
        self.count_sending();
        lock(&self.failure).get_or_insert(error);
    }

    /// What the peer did wrong, if it was not asked for yet.
    pub(super) fn take_failure(&self) -> Option<VhostUserError> {
        lock(&self.failure).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
