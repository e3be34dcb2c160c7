//! Writes to handlers that take so long that packets should not wait for them: they are executed in steps between batches.
//!
//! The writer drives them: the owner of the router, or an element that passes on a client's command. Until the last step,
//! the element works as before; after a write to `hotconfig`, the whole configuration does.

use alloc::string::{String, ToString};

use element::{HandlerError, HandlerTarget, WRITE_STEP, WriteEffect};
use packet::Timestamp;

use crate::router::{Router, Written};
use crate::state::{NO_ELEMENT, RouterState, Watch};

/// Bytes of a configuration from which on it is prepared in steps.
const MIN_LONG_CONFIGURATION: usize = 4_096;

/// After this time a step follows the last one, even if no packets move.
const MAX_PAUSE: Timestamp = Timestamp::from_millis(10);

/// A write that has begun.
#[derive(Debug)]
pub struct LongWrite {
    target: HandlerTarget,
    effect: WriteEffect,
    /// How often the element's configuration was recorded before.
    recordings: u32,
    /// How often the configuration was replaced before.
    swaps: u64,
}

/// The beginning of a write.
#[derive(Debug)]
pub enum BegunWrite {
    /// The write was short, and is executed.
    Done(Written),
    /// The write goes on in steps.
    Long(LongWrite),
}

impl RouterState {
    /// Writes a handler, or begins to. Returns the handler if the write goes on in steps.
    pub(crate) fn begin_write_path(
        &self,
        from: Option<usize>,
        path: &str,
        mut value: String,
    ) -> Result<Option<HandlerTarget>, HandlerError> {
        let target = self.resolve_path(from, path)?;
        if self.begin_long_write(&target, &mut value)? {
            return Ok(Some(target));
        }
        self.write_path(from, path, &value)?;
        Ok(None)
    }

    /// Begins a write, if it is long. Returns whether it has begun.
    fn begin_long_write(&self, target: &HandlerTarget, value: &mut String) -> Result<bool, HandlerError> {
        if target.element.is_none() && target.handler == "hotconfig" && self.options.allow_reconfigure {
            if self.preparation.borrow().is_some() {
                let busy = "another configuration is being prepared: write this one after the reply to that";
                return Err(HandlerError::new(busy));
            }
            let is_long = value.len() >= MIN_LONG_CONFIGURATION;
            if is_long {
                self.begin_to_prepare(core::mem::take(value));
            }
            return Ok(is_long);
        }
        let begun = self.call(target.element.unwrap_or(NO_ELEMENT), |object, cx| {
            object.long_work().is_some_and(|writes| writes.begin_write(cx, &target.handler, value))
        });
        Ok(begun == Some(true))
    }

    /// Repeats short steps until one has a result, for at most [`WRITE_STEP`]. Does nothing while packets move, until they have had as
    /// much time as the steps before.
    pub(crate) fn for_a_step<T>(&self, mut step: impl FnMut() -> Option<T>) -> Option<T> {
        let environment = self.resources.environment.as_ref();
        let start = environment.steady();
        let is_owed = self.owed.get() > Timestamp::ZERO && start < self.stepped.get() + MAX_PAUSE;
        if is_owed && self.has_moved.get() {
            return None;
        }
        loop {
            let result = step();
            let end = environment.steady();
            let taken = end - start;
            if result.is_none() && taken < WRITE_STEP {
                continue;
            }
            // Simulated runs don't depend on how fast they are. What took much longer was interrupted.
            if self.resources.clock.simulated().is_none() {
                self.owed.set(taken.min(WRITE_STEP + WRITE_STEP));
                self.stepped.set(end);
            }
            return result;
        }
    }

    /// Moves packets by `work`, which returns whether there were any. Counts the time, if a long write has kept them waiting.
    #[inline]
    pub(crate) fn move_packets(&self, work: impl FnOnce() -> bool) -> bool {
        let owed = self.owed.get();
        if owed <= Timestamp::ZERO {
            return work();
        }
        let start = self.resources.environment.steady();
        let has_moved = work();
        self.owed.set(owed - (self.resources.environment.steady() - start));
        self.has_moved.set(self.has_moved.get() | has_moved);
        has_moved
    }

    /// Continues a write for at most [`WRITE_STEP`]. Returns the result when it is done.
    pub(crate) fn continue_write_target(&self, target: &HandlerTarget) -> Option<Result<(), HandlerError>> {
        let Some(element) = target.element else {
            return self.continue_to_prepare();
        };
        self.for_a_step(|| {
            self.call(element, |object, cx| object.long_work().and_then(|work| work.continue_write(cx)))?
        })
    }
}

impl Router {
    /// Writes a handler like [`write_watched`](Self::write_watched). If the write is long, it begins, and
    /// [`continue_write`](Self::continue_write) must be called between turns until that returns a result.
    pub fn begin_write(&mut self, path: &str, mut value: String) -> Result<BegunWrite, HandlerError> {
        let target = self.state.resolve_path(None, path)?;
        let (effect, recordings) = (self.state.effect_of(&target), self.state.recordings(&target));
        match self.state.begin_long_write(&target, &mut value)? {
            true => Ok(BegunWrite::Long(LongWrite { target, effect, recordings, swaps: self.swaps() })),
            false => self.write_watched(path, &value).map(BegunWrite::Done),
        }
    }

    /// Continues a write, for at most [`WRITE_STEP`]. Returns its result when it is done.
    pub fn continue_write(&mut self, write: &LongWrite) -> Option<Result<Written, HandlerError>> {
        if write.swaps != self.swaps() {
            let gone = "the configuration was replaced before the write was done: write it again";
            return Some(Err(HandlerError::new(gone.to_string())));
        }
        self.state.resources.clock.refresh();
        self.state.watch.set(Watch::Caller(0));
        let result = self.state.continue_write_target(&write.target);
        self.state.run_deferred();
        self.state.watch.set(self.state.watch_between_calls());
        if write.target.element.is_none() {
            self.switch_if_prepared();
            return Some(result?.map(|()| Written { effect: write.effect, in_config: false }));
        }
        let in_config = self.state.recordings(&write.target) != write.recordings;
        Some(result?.map(|()| Written { effect: write.effect, in_config }))
    }
}
