//! Writes to handlers that take so long that packets should not wait for them: they are executed in steps between batches.
//!
//! The writer drives them: the owner of the router, or an element that passes on a client's command. Until the last step,
//! the element works as before.

use alloc::string::{String, ToString};

use element::{HandlerError, HandlerTarget, WRITE_STEP, WriteEffect};

use crate::router::{Router, Written};
use crate::state::{NO_ELEMENT, RouterState, Watch};

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
        if self.begin_long_write(&target, &mut value) {
            return Ok(Some(target));
        }
        self.write_path(from, path, &value)?;
        Ok(None)
    }

    /// Begins a write, if it is long. Returns whether it has begun.
    fn begin_long_write(&self, target: &HandlerTarget, value: &mut String) -> bool {
        let begun = self.call(target.element.unwrap_or(NO_ELEMENT), |object, cx| {
            object.long_writes().is_some_and(|writes| writes.begin_write(cx, &target.handler, value))
        });
        begun == Some(true)
    }

    /// Continues a write for at most [`WRITE_STEP`]. Returns the result when it is done.
    pub(crate) fn continue_write_target(&self, target: &HandlerTarget) -> Option<Result<(), HandlerError>> {
        let environment = self.resources.environment.as_ref();
        let until = environment.steady() + WRITE_STEP;
        loop {
            let result = self.call(target.element?, |object, cx| {
                object.long_writes().and_then(|writes| writes.continue_write(cx))
            })?;
            if result.is_some() || environment.steady() >= until {
                return result;
            }
        }
    }
}

impl Router {
    /// Writes a handler like [`write_watched`](Self::write_watched). If the write is long, it begins, and
    /// [`continue_write`](Self::continue_write) must be called between turns until that returns a result.
    pub fn begin_write(&mut self, path: &str, mut value: String) -> Result<BegunWrite, HandlerError> {
        let target = self.state.resolve_path(None, path)?;
        let (effect, recordings) = (self.state.effect_of(&target), self.state.recordings(&target));
        match self.state.begin_long_write(&target, &mut value) {
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
        let in_config = self.state.recordings(&write.target) != write.recordings;
        Some(result?.map(|()| Written { effect: write.effect, in_config }))
    }
}
