//! The ports of the cores of a box, which are one port to the switch: each frame goes to the core that has its flow.

use super::boxed::BoxPort;
use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::Batch;
use crate::books::RingBooks;
use crate::silence::Progress;
use boundary::DirectBatch;
use packet::steering::{Destination, Steering};

/// The ports of the cores of a box. With one core, it is that core's port.
#[derive(Debug)]
pub(super) struct SpreadPort<Owner> {
    cores: Vec<BoxPort<Owner>>,
    steering: Steering,
    /// The core that frames are received from first.
    turn: usize,
    /// The core that the last frames were received from.
    last: usize,
    /// The frames for each core. These lists are kept for their memory.
    lists: Vec<Vec<u32>>,
    /// How many of them the core accepted, and that were not counted yet.
    accepted: Vec<u64>,
    /// Where each frame goes.
    destinations: Vec<Destination>,
    /// The frames of the last call that were not sent.
    skipped: Vec<u32>,
}

impl<Owner> SpreadPort<Owner> {
    pub(super) fn new(cores: Vec<BoxPort<Owner>>) -> Self {
        let count = u32::try_from(cores.len()).unwrap_or(u32::MAX);
        let lists = cores.iter().map(|_| Vec::new()).collect();
        let steering = Steering::new(count);
        let accepted = vec![0; cores.len()];
        Self {
            cores,
            steering,
            turn: 0,
            last: 0,
            lists,
            accepted,
            destinations: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(super) fn into_cores(self) -> Vec<BoxPort<Owner>> {
        self.cores
    }

    /// Says how packets are spread. What is for another number of cores is ignored.
    pub(super) fn steer(&mut self, steering: Steering) {
        if steering.shards() as usize == self.cores.len() {
            self.steering = steering;
        }
    }

    /// The only core, if there is one.
    fn only(&mut self) -> Option<&mut BoxPort<Owner>> {
        match &mut self.cores[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl<Owner: Send> SpreadPort<Owner> {
    /// What passed the rings of all cores, and what waits in them. A frame that goes to all cores counts once for each.
    pub(super) fn rings(&mut self) -> RingBooks {
        self.cores.iter_mut().map(BoxPort::rings).fold(RingBooks::default(), |mut sum, rings| {
            sum += rings;
            sum
        })
    }

    /// The core to receive from: each in turn, if it has frames.
    fn next(&mut self) -> Option<usize> {
        let count = self.cores.len();
        let turn = self.turn;
        let ready = |at: &usize| self.cores.get_mut(*at).is_some_and(Driver::is_ready);
        let found = (turn..count).chain(0..turn.min(count)).find(ready)?;
        self.turn = if found + 1 < count { found + 1 } else { 0 };
        self.last = found;
        Some(found)
    }
}

impl<Owner: Send> Driver for SpreadPort<Owner> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let core = self.next().and_then(|core| self.cores.get_mut(core));
        core.map_or(Ok(Received::default()), |core| core.receive(batch))
    }

    fn receive_split(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        // The frames of a batch come from the memory of one core.
        let core = self.next().and_then(|core| self.cores.get_mut(core));
        core.map_or(Ok(Received::default()), |core| core.receive_split(batch))
    }

    fn release(&mut self, batch: &Batch) {
        if let Some(core) = self.cores.get_mut(self.last) {
            core.release(batch);
        }
    }

    /// Counts a frame that goes to all cores once, as sent if each of them had room.
    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        self.skipped.clear();
        if let Some(only) = self.only() {
            return only.send(batch, frames);
        }
        self.lists.iter_mut().for_each(Vec::clear);
        self.destinations.clear();
        for number in frames {
            let destination = self.steering.of_frame(batch.frame(*number as usize).unwrap_or_default());
            self.destinations.push(destination);
            match destination {
                Destination::Shard(shard) => {
                    self.lists.get_mut(shard as usize).into_iter().for_each(|list| list.push(*number));
                }
                Destination::All => self.lists.iter_mut().for_each(|list| list.push(*number)),
            }
        }
        let mut sent = Sent::default();
        for ((core, list), accepted) in self.cores.iter_mut().zip(&self.lists).zip(&mut self.accepted) {
            let of_core = core.send(batch, list)?;
            *accepted = of_core.frames;
            sent.is_crowded |= of_core.is_crowded;
        }
        let take = |accepted: &mut u64| std::mem::replace(accepted, accepted.saturating_sub(1)) > 0;
        for (number, destination) in frames.iter().zip(&self.destinations) {
            let is_sent = match destination {
                Destination::Shard(shard) => self.accepted.get_mut(*shard as usize).is_some_and(take),
                Destination::All => self.accepted.iter_mut().fold(true, |all, accepted| take(accepted) & all),
            };
            if is_sent {
                sent.frames += 1;
                sent.bytes += batch.frame(*number as usize).map_or(0, <[u8]>::len) as u64;
            } else {
                self.skipped.push(*number);
            }
        }
        Ok(sent)
    }

    fn send_split(&mut self, batch: &mut Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        match self.only() {
            Some(only) => only.send_split(batch, frames),
            None => self.send(batch, frames),
        }
    }

    fn list_direct(&mut self, batch: &mut DirectBatch) {
        batch.clear();
        self.only().into_iter().for_each(|only| only.list_direct(batch));
    }

    fn send_direct(&mut self, batch: &mut DirectBatch) -> bool {
        self.only().is_some_and(|only| only.send_direct(batch))
    }

    fn release_direct(&mut self, batch: &DirectBatch) {
        self.only().into_iter().for_each(|only| only.release_direct(batch));
    }

    /// The headers inside an ICMP error, which say to which core it goes, are behind the head of a split frame.
    fn accepts_split(&self) -> bool {
        self.cores.len() == 1
    }

    /// A core without room does not keep the others from their frames.
    fn skipped(&self) -> Vec<u32> {
        self.skipped.clone()
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        self.cores.iter_mut().any(Driver::is_ready)
    }

    /// Whether a core has little room: packets of some flows would be lost.
    fn is_crowded(&mut self) -> bool {
        self.cores.iter_mut().any(Driver::is_crowded)
    }

    fn progress(&mut self) -> Option<Progress> {
        self.cores.iter_mut().filter_map(Driver::progress).reduce(|sum, core| Progress {
            waiting: sum.waiting + core.waiting,
            taken: sum.taken + core.taken,
        })
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        let mut sleeps = true;
        for core in &mut self.cores {
            sleeps &= core.prepare_sleep()?;
        }
        Ok(sleeps)
    }

    fn end_sleep(&mut self) {
        self.cores.iter_mut().for_each(Driver::end_sleep);
    }
}
