//! Pipes between boxes, and ports that are attached to nothing: what joins up to two ports of boxes without a switch.
//!
//! With both boxes there frames are handed on with their buffers where the boxes share a pool, else copied from ring to
//! ring. While somebody captures they are copied twice, and none is lost for it. With one box there what it sends is
//! dropped and counted.

use super::capture::Captures;
use super::port_slot::Port;
use super::traffic::{PortStats, add};
use boundary::PortFault;
use sandbox::SharedRegion;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switch::{Batch, BoxLink, Counters, Driver, DriverError, Link, Reason};

/// Frames that are looked at in one go: where they are counted or captured, not where they are stats on.
const QUANTUM: usize = 64;

/// Steps of which one is measured.
const SAMPLE: u32 = 16;

/// A pipe. All clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct BoxPipe(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    wire: PipeState,
    captures: [Captures; 2],
    /// What was carried by wires that are no more, and by those that count nothing themselves.
    counters: [Counters; 2],
    down: Option<PortFault>,
    /// What each side's frames have cost, looked at once in so many steps.
    cost: [Duration; 2],
    steps: u32,
}

#[derive(Debug)]
enum PipeState {
    /// No box is there.
    Open,
    /// One box is there; what it sends goes nowhere.
    Half { port: Port, side: usize, batch: Batch },
    /// Both are there.
    Direct(BoxLink<Arc<SharedRegion>, Arc<SharedRegion>>),
    /// Both are there, and somebody looks.
    Watched { ports: [Port; 2], directions: [Direction; 2] },
}

/// One way of a wire that is looked at: frames that wait for room.
#[derive(Debug)]
struct Direction {
    batch: Batch,
    /// Numbers of the frames that are still to go.
    left: Vec<u32>,
}

impl BoxPipe {
    /// A pipe without boxes.
    pub(crate) fn new() -> Self {
        let inner = Inner {
            wire: PipeState::Open,
            captures: Default::default(),
            counters: Default::default(),
            down: None,
            cost: Default::default(),
            steps: 0,
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Only the fabric's thread comes here: the lock is never waited for.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a box's port at a side, 0 or 1, or takes it away; what was there.
    pub(crate) fn set(&self, side: usize, port: Option<Port>) -> Option<Port> {
        let mut inner = self.lock();
        let mut ports = inner.take_apart();
        let place = ports.get_mut(side)?;
        let before = std::mem::replace(place, port);
        inner.down = None;
        inner.put_together(ports);
        before
    }

    /// Captures at a side.
    pub(crate) fn captures(&self, side: usize) -> Captures {
        self.lock().captures.get(side).cloned().unwrap_or_default()
    }

    /// What a side has carried, what that has cost, and why it can't go on.
    pub(crate) fn stats(&self, side: usize) -> PortStats {
        let inner = self.lock();
        let mut down = inner.down;
        if let PipeState::Direct(link) = &inner.wire {
            down = down.or(link.down());
        }
        PortStats {
            counters: inner.counted(side),
            cost: inner.cost.get(side).copied().unwrap_or_default(),
            fault: down.map(|fault| fault.to_string()),
        }
    }
}

impl Inner {
    fn take_apart(&mut self) -> [Option<Port>; 2] {
        match std::mem::replace(&mut self.wire, PipeState::Open) {
            PipeState::Open => [None, None],
            PipeState::Half { port, side: 0, .. } => [Some(port), None],
            PipeState::Half { port, .. } => [None, Some(port)],
            PipeState::Direct(link) => {
                for (sum, counters) in self.counters.iter_mut().zip(link.counters()) {
                    add(sum, &counters);
                }
                let (left, right) = link.into_ports();
                [Some(left), Some(right)]
            }
            PipeState::Watched { ports, mut directions } => {
                // Frames that found no room, when the wire changes: they are lost as in a switch, and counted so.
                for (lane, side) in directions.iter_mut().zip([1, 0]) {
                    self.counters[side].drop(Reason::FULL, lane.left.len() as u64);
                    lane.left.clear();
                }
                ports.map(Some)
            }
        }
    }

    fn put_together(&mut self, ports: [Option<Port>; 2]) {
        self.wire = match ports {
            [None, None] => PipeState::Open,
            [Some(port), None] => PipeState::Half { port, side: 0, batch: Batch::new(QUANTUM) },
            [None, Some(port)] => PipeState::Half { port, side: 1, batch: Batch::new(QUANTUM) },
            [Some(left), Some(right)] if self.captures.iter().any(Captures::is_active) => {
                let lane = || Direction { batch: Batch::new(QUANTUM), left: Vec::new() };
                PipeState::Watched { ports: [left, right], directions: [lane(), lane()] }
            }
            [Some(left), Some(right)] => PipeState::Direct(BoxLink::new(left, right)),
        };
    }

    /// Whether the wire is of the kind that is wanted now: watched if somebody captures.
    fn is_as_wanted(&self) -> bool {
        let wanted = self.captures.iter().any(Captures::is_active);
        match &self.wire {
            PipeState::Direct(_) => !wanted,
            // A wire goes back to passing on unseen when nothing waits in it.
            PipeState::Watched { directions, .. } => {
                wanted || directions.iter().any(|lane| !lane.left.is_empty())
            }
            PipeState::Open | PipeState::Half { .. } => true,
        }
    }

    /// What a side has carried.
    fn counted(&self, side: usize) -> Counters {
        let mut counters = self.counters.get(side).copied().unwrap_or_default();
        if let PipeState::Direct(link) = &self.wire {
            add(&mut counters, link.counters().get(side).unwrap_or(&Counters::default()));
        }
        counters
    }

    /// Moves frames. One step in so many is measured, and stands for the others: a look at the clock at each would cost
    /// more than a step without frames.
    fn step_measured(&mut self) -> Result<usize, DriverError> {
        self.steps = self.steps.wrapping_add(1);
        if !self.steps.is_multiple_of(SAMPLE) {
            return self.step();
        }
        let before = [0, 1].map(|side| self.counted(side).received_frames);
        let begin = Instant::now();
        let moved = self.step()?;
        let time = begin.elapsed() * SAMPLE;
        let came = [0, 1].map(|side| self.counted(side).received_frames.saturating_sub(before[side]));
        let sum = came[0] + came[1];
        if sum > 0 {
            // A side pays for the frames that come from it, as at a switch.
            for (cost, came) in self.cost.iter_mut().zip(came) {
                *cost += time.mul_f64(came as f64 / sum as f64);
            }
        }
        Ok(moved)
    }

    fn step(&mut self) -> Result<usize, DriverError> {
        if !self.is_as_wanted() {
            let ports = self.take_apart();
            self.put_together(ports);
        }
        let Self { wire, captures, counters, .. } = self;
        match wire {
            PipeState::Open => Ok(0),
            PipeState::Direct(link) => Ok(link.step()),
            PipeState::Half { port, side, batch } => {
                batch.clear();
                let received = port.receive(batch)?;
                let (Some(captures), Some(counters)) = (captures.get(*side), counters.get_mut(*side)) else {
                    return Ok(0);
                };
                if captures.is_active() {
                    captures.see(batch, 0..batch.len());
                }
                counters.drop(Reason::FAULTY, received.faulty);
                counters.received_frames += batch.len() as u64 + received.faulty;
                counters.received_bytes += bytes(batch);
                counters.drop(Reason::NO_ROUTE, batch.len() as u64);
                Ok(batch.len())
            }
            PipeState::Watched { ports: [left, right], directions: [there, back] } => {
                let [left_captures, right_captures] = captures;
                let [left_counters, right_counters] = counters;
                let moved = there
                    .pass((left, left_captures, left_counters), (right, right_captures, right_counters))?;
                Ok(moved
                    + back.pass(
                        (right, right_captures, right_counters),
                        (left, left_captures, left_counters),
                    )?)
            }
        }
    }
}

fn bytes(batch: &Batch) -> u64 {
    batch.frames().map(|frame| frame.len() as u64).sum()
}

impl Direction {
    fn pass(
        &mut self,
        (from, from_captures, source): (&mut Port, &Captures, &mut Counters),
        (to, to_captures, target): (&mut Port, &Captures, &mut Counters),
    ) -> Result<usize, DriverError> {
        if self.left.is_empty() {
            self.batch.clear();
            let received = from.receive(&mut self.batch)?;
            source.drop(Reason::FAULTY, received.faulty);
            source.received_frames += self.batch.len() as u64 + received.faulty;
            source.received_bytes += bytes(&self.batch);
            if from_captures.is_active() {
                from_captures.see(&self.batch, 0..self.batch.len());
            }
            self.left.extend(0..self.batch.len() as u32);
        }
        if self.left.is_empty() {
            return Ok(0);
        }
        let sent = to.send(&self.batch, &self.left)?;
        let count = usize::try_from(sent.frames).unwrap_or(usize::MAX).min(self.left.len());
        target.sent_frames += sent.frames;
        target.sent_bytes += sent.bytes;
        let gone = self.left.drain(..count).map(|number| number as usize).collect::<Vec<_>>();
        if to_captures.is_active() {
            to_captures.see(&self.batch, gone.into_iter());
        }
        Ok(count)
    }
}

impl Link for BoxPipe {
    fn step(&mut self) -> usize {
        let mut inner = self.lock();
        if inner.down.is_some() {
            return 0;
        }
        inner.step_measured().unwrap_or_else(|error| {
            if let DriverError::Box(fault) = error {
                inner.down = Some(fault);
            }
            0
        })
    }

    fn prepare_sleep(&mut self) -> bool {
        let mut inner = self.lock();
        if inner.down.is_some() {
            return true;
        }
        if !inner.is_as_wanted() {
            return false;
        }
        let sleeps = match &mut inner.wire {
            PipeState::Open => return true,
            PipeState::Direct(link) => return link.prepare_sleep(),
            PipeState::Half { port, .. } => port.prepare_sleep(),
            PipeState::Watched { directions, .. } if directions.iter().any(|lane| !lane.left.is_empty()) => {
                return false;
            }
            PipeState::Watched { ports: [left, right], .. } => {
                left.prepare_sleep().and_then(|sleeps| right.prepare_sleep().map(|also| sleeps && also))
            }
        };
        sleeps.unwrap_or_else(|error| {
            if let DriverError::Box(fault) = error {
                inner.down = Some(fault);
            }
            true
        })
    }

    fn end_sleep(&mut self) {
        match &mut self.lock().wire {
            PipeState::Open => {}
            PipeState::Direct(link) => link.end_sleep(),
            PipeState::Half { port, .. } => port.end_sleep(),
            PipeState::Watched { ports, .. } => ports.iter_mut().for_each(Driver::end_sleep),
        }
    }

    fn counters(&self) -> [Counters; 2] {
        [self.stats(0).counters, self.stats(1).counters]
    }

    fn down(&self) -> Option<PortFault> {
        self.lock().down
    }
}
