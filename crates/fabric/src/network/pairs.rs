//! The ring pairs of a box's port: one for each switch thread.

use sandbox::SharedRegion;
use std::sync::Arc;
use std::time::Duration;
use switch::driver::{BoxPort, PortSlot};
use switch::{BoxPipe, CapturedDriver, Captures, Counters, Driver, DriverError, RingBooks};

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

    /// Connects the ring pairs, or disconnects them; returns the previous ones.
    pub(super) fn set(&self, pairs: Option<Vec<Port>>) -> Option<Vec<Port>> {
        let mut pairs = pairs.into_iter().flatten();
        // All of them, also if there was none before.
        let before: Vec<Option<Port>> = self.0.iter().map(|slot| slot.set(pairs.next())).collect();
        before.into_iter().collect()
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

/// A pipe for each ring pair of the ports at its ends. Clones refer to the same ones.
#[derive(Clone, Debug)]
pub(super) struct PairPipes(Vec<BoxPipe<Arc<SharedRegion>>>);

impl PairPipes {
    /// Pipes without boxes, one for each thread.
    pub(super) fn new(threads: usize) -> Self {
        let first = BoxPipe::default();
        let others: Vec<_> = (1..threads).map(|_| first.beside()).collect();
        Self(std::iter::once(first).chain(others).collect())
    }

    /// The pipes, in the order of the threads.
    pub(super) fn pipes(&self) -> impl Iterator<Item = &BoxPipe<Arc<SharedRegion>>> {
        self.0.iter()
    }

    /// Connects the ring pairs of a box's port to a side, or disconnects them; returns the previous ones.
    pub(super) fn set(&self, side: usize, pairs: Option<Vec<Port>>) -> Option<Vec<Port>> {
        let mut pairs = pairs.into_iter().flatten();
        let before: Vec<Option<Port>> = self.0.iter().map(|pipe| pipe.set(side, pairs.next())).collect();
        before.into_iter().collect()
    }

    /// The captures at a side.
    pub(super) fn captures(&self, side: usize) -> Captures {
        self.0.first().map(|pipe| pipe.captures(side)).unwrap_or_default()
    }

    /// The frames in the rings at a side; `None` while the box does not run.
    pub(super) fn rings(&self, side: usize) -> Option<RingBooks> {
        sum(self.0.iter().filter_map(|pipe| pipe.rings(side)))
    }

    /// Counters of a side.
    pub(super) fn side_counters(&self, side: usize) -> Counters {
        let mut all = Counters::default();
        self.0.iter().for_each(|pipe| all += pipe.side_counters(side));
        all
    }

    /// Time spent on the frames of a side.
    pub(super) fn cost(&self, side: usize) -> Duration {
        self.0.iter().map(|pipe| pipe.cost(side)).sum()
    }

    /// Frames that were taken out of a ring and wait for room in the other one.
    pub(super) fn waiting(&self) -> u64 {
        self.0.iter().map(BoxPipe::waiting).sum()
    }

    /// Why it is down, if it is.
    pub(super) fn down(&self) -> Option<DriverError> {
        self.0.iter().find_map(switch::Link::down).map(DriverError::Box)
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
