//! The ring pairs of a box's port: one for each switch thread.

use boundary::PortFault;
use packet::steering::Steering;
use sandbox::SharedRegion;
use std::sync::Arc;
use std::time::Duration;
use switch::driver::{BoxPort, PortSlot};
use switch::{BoxPipe, CapturedDriver, Captures, Counters, Driver, DriverError, Link, RingBooks};

/// The host's end of a ring pair of a box's port, and what wakes the box.
pub(crate) type Port = BoxPort<Arc<SharedRegion>>;

/// The places at a switch that are reserved for the ring pairs of a box's port.
#[derive(Clone, Debug)]
pub(super) struct PairSlots(Vec<PortSlot<Arc<SharedRegion>>>);

impl PairSlots {
    /// Empty places, one for each thread.
    pub(super) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| PortSlot::default()).collect())
    }

    /// Connects the ring pairs, in the order of threads and cores, or disconnects them; returns the previous ones.
    pub(super) fn set(&self, pairs: Option<Vec<Port>>) -> Option<Vec<Port>> {
        let cores = pairs.as_ref().map_or(0, |pairs| pairs.len() / self.0.len().max(1));
        let mut pairs = pairs.into_iter().flatten();
        // All of them, also if there was none before.
        let of_thread = |slot: &PortSlot<_>| slot.set(pairs.by_ref().take(cores).collect());
        let before: Vec<Port> = self.0.iter().flat_map(of_thread).collect();
        (!before.is_empty()).then_some(before)
    }

    /// Says how packets are spread over the cores of the box.
    pub(super) fn steer(&self, steering: &Steering) {
        self.0.iter().for_each(|slot| slot.steer(steering.clone()));
    }

    /// The frames in the rings; `None` while the box does not run.
    pub(super) fn rings(&self) -> Option<RingBooks> {
        sum(self.0.iter().filter_map(PortSlot::rings))
    }

    /// The drivers of the switch's port.
    pub(super) fn drivers(&self) -> Vec<Box<dyn Driver>> {
        self.0.iter().map(|slot| Box::new(slot.clone()) as Box<dyn Driver>).collect()
    }
}

/// A pipe for each ring pair of the ports at its ends: those of the first thread, one for each core, then those of the next
/// thread. Clones refer to the same ones.
#[derive(Clone, Debug)]
pub(super) struct PairPipes {
    pipes: Vec<BoxPipe<Arc<SharedRegion>>>,
    cores: usize,
}

/// The pipes that one thread moves frames through.
#[derive(Debug)]
struct ThreadPipes(Vec<BoxPipe<Arc<SharedRegion>>>);

impl Link for ThreadPipes {
    fn step(&mut self) -> usize {
        self.0.iter_mut().map(Link::step).sum()
    }

    fn prepare_sleep(&mut self) -> bool {
        self.0.iter_mut().fold(true, |sleeps, pipe| pipe.prepare_sleep() & sleeps)
    }

    fn end_sleep(&mut self) {
        self.0.iter_mut().for_each(Link::end_sleep);
    }

    fn counters(&self) -> [Counters; 2] {
        self.0.iter().map(Link::counters).fold(Default::default(), |[mut left, mut right], [more, other]| {
            left += more;
            right += other;
            [left, right]
        })
    }

    fn down(&self) -> Option<PortFault> {
        self.0.iter().find_map(Link::down)
    }
}

impl PairPipes {
    /// Pipes without boxes, one for each thread and core.
    pub(super) fn new(threads: usize, cores: usize) -> Self {
        let first = BoxPipe::default();
        let others: Vec<_> = (1..threads * cores).map(|_| first.beside()).collect();
        Self { pipes: std::iter::once(first).chain(others).collect(), cores }
    }

    /// What moves frames, for each thread.
    pub(super) fn links(&self) -> impl Iterator<Item = Box<dyn Link>> {
        self.pipes
            .chunks(self.cores.max(1))
            .map(|pipes| Box::new(ThreadPipes(pipes.to_vec())) as Box<dyn Link>)
    }

    /// Connects the ring pairs of a box's port to a side, or disconnects them; returns the previous ones.
    pub(super) fn set(&self, side: usize, pairs: Option<Vec<Port>>) -> Option<Vec<Port>> {
        let mut pairs = pairs.into_iter().flatten();
        let before: Vec<Option<Port>> = self.pipes.iter().map(|pipe| pipe.set(side, pairs.next())).collect();
        before.into_iter().collect()
    }

    /// The captures at a side.
    pub(super) fn captures(&self, side: usize) -> Captures {
        self.pipes.first().map(|pipe| pipe.captures(side)).unwrap_or_default()
    }

    /// The frames in the rings at a side; `None` while the box does not run.
    pub(super) fn rings(&self, side: usize) -> Option<RingBooks> {
        sum(self.pipes.iter().filter_map(|pipe| pipe.rings(side)))
    }

    /// Counters of a side.
    pub(super) fn side_counters(&self, side: usize) -> Counters {
        let mut all = Counters::default();
        self.pipes.iter().for_each(|pipe| all += pipe.side_counters(side));
        all
    }

    /// Time spent on the frames of a side.
    pub(super) fn cost(&self, side: usize) -> Duration {
        self.pipes.iter().map(|pipe| pipe.cost(side)).sum()
    }

    /// Frames that were taken out of a ring and wait for room in the other one.
    pub(super) fn waiting(&self) -> u64 {
        self.pipes.iter().map(BoxPipe::waiting).sum()
    }

    /// Why it is down, if it is.
    pub(super) fn down(&self) -> Option<DriverError> {
        self.pipes.iter().find_map(switch::Link::down).map(DriverError::Box)
    }
}

fn sum(rings: impl Iterator<Item = RingBooks>) -> Option<RingBooks> {
    rings.reduce(|mut sum, rings| {
        sum += rings;
        sum
    })
}

/// The frames in the rings of all pairs.
pub(super) fn rings_of(pairs: &mut [Port]) -> RingBooks {
    sum(pairs.iter_mut().map(Port::rings)).unwrap_or_default()
}

/// Drivers whose frames can be captured.
pub(super) fn captured(drivers: Vec<Box<dyn Driver>>, captures: &Captures) -> Vec<Box<dyn Driver>> {
    let with = |driver| Box::new(CapturedDriver { driver, captures: captures.clone() }) as Box<dyn Driver>;
    drivers.into_iter().map(with).collect()
}
