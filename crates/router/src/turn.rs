//! Turn-by-turn operation of a router, for an owner that runs several or does its own waiting.

use core::ops::Bound;

use element::Descriptor;
use packet::{BatchTrace, Timestamp};

use crate::router::Router;
use crate::state::{NO_ELEMENT, Watch, Watchers};

/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Whether a task, a timer or a descriptor was served: there may be more to do at once.
    pub worked: bool,
    /// The next timer expiry, in the environment's steady time.
    pub next: Option<Timestamp>,
    /// Whether the driver's count is zero: nothing runs any more, but handlers still work.
    pub stopped: bool,
}

impl Router {
    /// Runs ready tasks, timers and descriptors once, without waiting.
    pub fn turn(&mut self) -> Turn {
        self.switch_if_prepared();
        self.state.has_moved.set(false);
        // Also when nothing else runs any more.
        let removed = self.free_removed();
        if !self.state.resources.driver.is_running() && !self.starting(Self::driver_continues) {
            return Turn { worked: removed, next: None, stopped: true };
        }
        let tasks = self.state.move_packets(|| self.run_tasks()) | removed;
        let timers = match self.state.has_run_timers.get() {
            true => self.run_timers(),
            // Waits that have ended meanwhile, because this turn comes late, are not a part of the start.
            false => self.starting(|router| router.run_timers_due(router.state.started.get())),
        };
        self.state.has_run_timers.set(true);
        let descriptors = self.state.move_packets(|| self.poll_descriptors());
        let next = self
            .state
            .timers
            .borrow()
            .next()
            .map(|next| self.state.resources.clock.to_environment_time(next));
        Turn { worked: tasks || timers || descriptors, next, stopped: false }
    }

    /// Calls `run`. Before timers have run for the first time, this runs the scripts that begin with the configuration: what
    /// they write is a part of its text, and each start repeats it.
    fn starting(&self, run: fn(&Self) -> bool) -> bool {
        if self.state.has_run_timers.get() {
            return run(self);
        }
        self.state.watch.set(Watch::Nothing);
        let result = run(self);
        self.state.watch.set(self.state.watch_between_calls());
        result
    }

    /// Calls the watchers of ready descriptors; returns whether there were any.
    fn poll_descriptors(&self) -> bool {
        let state = &self.state;
        let (mut after, mut found) = (Bound::Unbounded, false);
        loop {
            let next =
                state.watched.borrow().range((after, Bound::Unbounded)).next().map(|(descriptor, watch)| {
                    (*descriptor, !watch.read.is_empty(), !watch.write.is_empty())
                });
            let Some((descriptor, read, write)) = next else { return found };
            after = Bound::Excluded(descriptor);
            if state.resources.environment.is_ready(descriptor, read, write) {
                found = true;
                self.notify_watchers(descriptor);
            }
        }
    }

    /// Calls the elements that watch a descriptor.
    pub(crate) fn notify_watchers(&self, descriptor: Descriptor) {
        let state = &self.state;
        for index in 0.. {
            let watched = state.watched.borrow();
            let Some(element) = watched.get(&descriptor).and_then(|watch| watch.watcher(index)) else {
                return;
            };
            drop(watched);
            state.resources.clock.refresh();
            state.call(element, |object, cx| object.ready(cx, descriptor));
            state.run_deferred();
        }
    }

    /// Sets the driver's count to zero: nothing runs any more, but handlers still work.
    pub fn stop(&self) {
        self.state.resources.driver.halt();
    }

    /// The watched descriptors, and whether for reading or writing.
    pub fn watched(&self, mut each: impl FnMut(Descriptor, bool, bool)) {
        for (descriptor, watch) in self.state.watched.borrow().iter() {
            each(*descriptor, !watch.read.is_empty(), !watch.write.is_empty());
        }
    }

    /// Restarts all randomness, for a copy of a router that must not repeat the original's behaviour.
    pub fn reseed(&self, seed: u64) {
        self.state.runtime().reseed(seed);
        self.state.resources.random.stop();
    }

    /// Whether the configuration fixes the seed of its randomness, which a copy would not keep.
    pub fn is_seeded(&self) -> bool {
        self.state.resources.random.is_shared()
    }

    /// The element being called and the last delivered batch: for a crash report. Allocates nothing, and works in the
    /// middle of any call.
    pub fn running(&self) -> Option<(&str, BatchTrace)> {
        let element = self.state.running.get();
        let node = self.state.nodes.get(element).filter(|_| element != NO_ELEMENT)?;
        Some((&node.element.name, self.state.current_batch.get()))
    }
}

impl Watchers {
    /// The watcher with this index: first those for reading, then those only for writing.
    fn watcher(&self, index: usize) -> Option<usize> {
        let writers = self.write.iter().filter(|element| !self.read.contains(element));
        self.read.iter().chain(writers).nth(index).copied()
    }
}
