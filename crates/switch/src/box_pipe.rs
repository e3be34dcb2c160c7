//! Pipes: they connect the ports of two boxes without a switch. An unattached port is a pipe with one box.
//!
//! - While both boxes run, frames move with their buffers if the boxes share a packet pool; otherwise they are copied
//!   from ring to ring.
//! - During a capture, frames are copied twice; the pipe passes and captures all of them.
//! - While one box runs, the frames that it sends are dropped and counted.

use crate::batch::Batch;
use crate::books::RingBooks;
use crate::counters::Counters;
use crate::driver::{BoxPort, Driver, DriverError};
use crate::link::{BoxLink, Link};
use crate::port_capture::Captures;
use boundary::PortFault;
use reason::Reason;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum frames per step while frames are dropped or captured, which handles them one by one.
const QUANTUM: usize = 64;

/// One of every `SAMPLE` steps is timed.
const SAMPLE: u32 = 16;

/// A pipe between two boxes. Clones refer to the same pipe.
#[derive(Debug)]
pub struct BoxPipe<Owner>(Arc<Mutex<Inner<Owner>>>);

impl<Owner> Clone for BoxPipe<Owner> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<Owner> {
    state: PipeState<Owner>,
    captures: [Captures; 2],
    /// Counts from earlier states, and from states that have no counters of their own.
    counters: [Counters; 2],
    fault: Option<PortFault>,
    /// Time spent on each side's frames, estimated from the timed steps.
    cost: [Duration; 2],
    steps: u32,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the largest is the usual one; there is one state a pipe")]
enum PipeState<Owner> {
    /// No box runs.
    Open,
    /// One box runs. What it sends is dropped.
    Half { port: BoxPort<Owner>, side: usize, batch: Batch },
    /// Both boxes run.
    Direct(BoxLink<Owner, Owner>),
    /// Both boxes run, and frames are captured.
    Captured { ports: [BoxPort<Owner>; 2], directions: [Direction; 2] },
}

/// Frames in transit through a captured pipe, in one direction.
#[derive(Debug)]
struct Direction {
    batch: Batch,
    /// Indices of the frames that wait for room at the receiver.
    waiting: Vec<u32>,
}

impl<Owner: Send> Default for BoxPipe<Owner> {
    /// A pipe without boxes.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            state: PipeState::Open,
            captures: Default::default(),
            counters: Default::default(),
            fault: None,
            cost: Default::default(),
            steps: 0,
        })))
    }
}

impl<Owner: Send> BoxPipe<Owner> {
    fn lock(&self) -> MutexGuard<'_, Inner<Owner>> {
        // One thread runs the pipe and changes its ends, so the lock is never contended.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pipe with the same captures: for another ring pair of the same ports.
    #[must_use]
    pub fn beside(&self) -> Self {
        let new = Self::default();
        new.lock().captures.clone_from(&self.lock().captures);
        new
    }

    /// Connects a box's port to a side, 0 or 1, or disconnects it; returns the previous port.
    pub fn set(&self, side: usize, port: Option<BoxPort<Owner>>) -> Option<BoxPort<Owner>> {
        let mut inner = self.lock();
        let mut ports = inner.disconnect();
        let previous = std::mem::replace(ports.get_mut(side)?, port);
        inner.fault = None;
        inner.connect(ports);
        previous
    }

    /// The captures at a side.
    pub fn captures(&self, side: usize) -> Captures {
        self.lock().captures.get(side).cloned().unwrap_or_default()
    }

    /// Time spent on the frames of a side.
    pub fn cost(&self, side: usize) -> Duration {
        self.lock().cost.get(side).copied().unwrap_or_default()
    }

    /// The frames in the rings of the box's port at a side; `None` while the box does not run.
    pub fn rings(&self, side: usize) -> Option<RingBooks> {
        match &mut self.lock().state {
            PipeState::Open => None,
            PipeState::Half { port, side: own, .. } => (*own == side).then(|| port.rings()),
            PipeState::Direct(link) => link.rings().get(side).copied(),
            PipeState::Captured { ports, .. } => ports.get_mut(side).map(BoxPort::rings),
        }
    }

    /// Frames that were taken out of a ring and wait for room in the other one.
    pub fn waiting(&self) -> u64 {
        match &self.lock().state {
            PipeState::Captured { directions, .. } => {
                directions.iter().map(|direction| direction.waiting.len() as u64).sum()
            }
            _ => 0,
        }
    }

    /// Counters of a side.
    pub fn side_counters(&self, side: usize) -> Counters {
        self.lock().counters(side)
    }
}

impl<Owner: Send> Inner<Owner> {
    /// Disconnects both ports and returns them.
    fn disconnect(&mut self) -> [Option<BoxPort<Owner>>; 2] {
        match std::mem::replace(&mut self.state, PipeState::Open) {
            PipeState::Open => [None, None],
            PipeState::Half { port, side: 0, .. } => [Some(port), None],
            PipeState::Half { port, .. } => [None, Some(port)],
            PipeState::Direct(link) => {
                for (sum, counters) in self.counters.iter_mut().zip(link.counters()) {
                    *sum += counters;
                }
                let (left, right) = link.into_ports();
                [Some(left), Some(right)]
            }
            PipeState::Captured { ports, mut directions } => {
                // Frames still waiting when the state changes are dropped as `full`, as in a switch.
                for (direction, side) in directions.iter_mut().zip([1, 0]) {
                    self.counters[side].drop(Reason::FULL, direction.waiting.len() as u64);
                    direction.waiting.clear();
                }
                ports.map(Some)
            }
        }
    }

    /// Connects the ports and selects the state that suits them.
    fn connect(&mut self, ports: [Option<BoxPort<Owner>>; 2]) {
        self.state = match ports {
            [None, None] => PipeState::Open,
            [Some(port), None] => PipeState::Half { port, side: 0, batch: Batch::new(QUANTUM) },
            [None, Some(port)] => PipeState::Half { port, side: 1, batch: Batch::new(QUANTUM) },
            [Some(left), Some(right)] if self.captures.iter().any(Captures::is_active) => {
                let direction = || Direction { batch: Batch::new(QUANTUM), waiting: Vec::new() };
                PipeState::Captured { ports: [left, right], directions: [direction(), direction()] }
            }
            [Some(left), Some(right)] => PipeState::Direct(BoxLink::new(left, right)),
        };
    }

    /// Whether the current state is the right one: captured while a capture is active, else direct.
    fn is_state_right(&self) -> bool {
        let wanted = self.captures.iter().any(Captures::is_active);
        match &self.state {
            PipeState::Direct(_) => !wanted,
            // A captured pipe becomes direct once no frame waits in it.
            PipeState::Captured { directions, .. } => {
                wanted || directions.iter().any(|direction| !direction.waiting.is_empty())
            }
            PipeState::Open | PipeState::Half { .. } => true,
        }
    }

    /// Counters of a side.
    fn counters(&self, side: usize) -> Counters {
        let mut counters = self.counters.get(side).copied().unwrap_or_default();
        if let PipeState::Direct(link) = &self.state {
            counters += link.counters().get(side).copied().unwrap_or_default();
        }
        counters
    }

    /// Moves frames. Times one of every [`SAMPLE`] steps as an estimate for the others: reading the clock at every step
    /// would cost more than a step without frames.
    fn timed_step(&mut self) -> Result<usize, DriverError> {
        self.steps = self.steps.wrapping_add(1);
        if !self.steps.is_multiple_of(SAMPLE) {
            return self.step();
        }
        let before = [0, 1].map(|side| self.counters(side).received_frames);
        let begin = Instant::now();
        let moved = self.step()?;
        let time = begin.elapsed() * SAMPLE;
        let came = [0, 1].map(|side| self.counters(side).received_frames.saturating_sub(before[side]));
        let sum = came[0] + came[1];
        if sum > 0 {
            // A side is charged for the frames that come from it, as at a switch.
            for (cost, came) in self.cost.iter_mut().zip(came) {
                *cost += time.mul_f64(came as f64 / sum as f64);
            }
        }
        Ok(moved)
    }

    fn step(&mut self) -> Result<usize, DriverError> {
        if !self.is_state_right() {
            let ports = self.disconnect();
            self.connect(ports);
        }
        let Self { state, captures, counters, .. } = self;
        match state {
            PipeState::Open => Ok(0),
            PipeState::Direct(link) => Ok(link.step()),
            PipeState::Half { port, side, batch } => {
                batch.clear();
                let received = port.receive(batch)?;
                let (Some(captures), Some(counters)) = (captures.get(*side), counters.get_mut(*side)) else {
                    return Ok(0);
                };
                if captures.is_active() {
                    captures.record(batch, 0..batch.len());
                }
                counters.drop(Reason::FAULTY, received.faulty);
                counters.received_frames += batch.len() as u64 + received.faulty;
                counters.received_bytes += bytes(batch);
                counters.drop(Reason::NO_ROUTE, batch.len() as u64);
                Ok(batch.len())
            }
            PipeState::Captured { ports: [left, right], directions: [rightwards, leftwards] } => {
                let [left_captures, right_captures] = captures;
                let [left_counters, right_counters] = counters;
                let moved = rightwards
                    .pass((left, left_captures, left_counters), (right, right_captures, right_counters))?;
                Ok(moved
                    + leftwards.pass(
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
    fn pass<Owner: Send>(
        &mut self,
        (from, from_captures, source): (&mut BoxPort<Owner>, &Captures, &mut Counters),
        (to, to_captures, target): (&mut BoxPort<Owner>, &Captures, &mut Counters),
    ) -> Result<usize, DriverError> {
        if self.waiting.is_empty() {
            self.batch.clear();
            let received = from.receive(&mut self.batch)?;
            source.drop(Reason::FAULTY, received.faulty);
            source.received_frames += self.batch.len() as u64 + received.faulty;
            source.received_bytes += bytes(&self.batch);
            if from_captures.is_active() {
                from_captures.record(&self.batch, 0..self.batch.len());
            }
            self.waiting.extend(0..self.batch.len() as u32);
        }
        if self.waiting.is_empty() {
            return Ok(0);
        }
        let sent = to.send(&self.batch, &self.waiting)?;
        let count = usize::try_from(sent.frames).unwrap_or(usize::MAX).min(self.waiting.len());
        target.sent_frames += sent.frames;
        target.sent_bytes += sent.bytes;
        let gone = self.waiting.drain(..count).map(|number| number as usize).collect::<Vec<_>>();
        if to_captures.is_active() {
            to_captures.record(&self.batch, gone.into_iter());
        }
        Ok(count)
    }
}

impl<Owner: Send> Link for BoxPipe<Owner> {
    fn step(&mut self) -> usize {
        let mut inner = self.lock();
        if inner.fault.is_some() {
            return 0;
        }
        inner.timed_step().unwrap_or_else(|error| {
            if let DriverError::Box(fault) = error {
                inner.fault = Some(fault);
            }
            0
        })
    }

    fn prepare_sleep(&mut self) -> bool {
        let mut inner = self.lock();
        if inner.fault.is_some() {
            return true;
        }
        if !inner.is_state_right() {
            return false;
        }
        let sleeps = match &mut inner.state {
            PipeState::Open => return true,
            PipeState::Direct(link) => return link.prepare_sleep(),
            PipeState::Half { port, .. } => port.prepare_sleep(),
            PipeState::Captured { directions, .. }
                if directions.iter().any(|direction| !direction.waiting.is_empty()) =>
            {
                return false;
            }
            PipeState::Captured { ports: [left, right], .. } => {
                left.prepare_sleep().and_then(|sleeps| right.prepare_sleep().map(|also| sleeps && also))
            }
        };
        sleeps.unwrap_or_else(|error| {
            if let DriverError::Box(fault) = error {
                inner.fault = Some(fault);
            }
            true
        })
    }

    fn end_sleep(&mut self) {
        match &mut self.lock().state {
            PipeState::Open => {}
            PipeState::Direct(link) => link.end_sleep(),
            PipeState::Half { port, .. } => port.end_sleep(),
            PipeState::Captured { ports, .. } => ports.iter_mut().for_each(Driver::end_sleep),
        }
    }

    fn counters(&self) -> [Counters; 2] {
        [self.side_counters(0), self.side_counters(1)]
    }

    fn down(&self) -> Option<PortFault> {
        let inner = self.lock();
        match &inner.state {
            PipeState::Direct(link) => inner.fault.or(link.down()),
            _ => inner.fault,
        }
    }
}
