//! The preparation of a configuration that replaces another.

use alloc::rc::Rc;
use core::cell::Cell;
use core::future::Future;

use click_lang::steps::{Steps, pause};

/// Whether a preparation is given up: then it ends soon, with an error.
pub(crate) type GivenUp = Rc<Cell<bool>>;

/// A preparation in steps.
pub(crate) struct Preparation<T> {
    steps: Steps<T>,
    given_up: GivenUp,
    /// Whether it has taken more than one call.
    is_long: bool,
    result: Option<T>,
}

impl<T> Preparation<T> {
    /// A preparation that has not begun.
    pub(crate) fn new<C: Future<Output = T> + 'static>(
        computation: impl FnOnce(GivenUp) -> C,
    ) -> Preparation<T> {
        let given_up = GivenUp::default();
        let steps = Steps::new(computation(given_up.clone()));
        Preparation { steps, given_up, is_long: false, result: None }
    }

    /// Continues as long as `run` does. Returns the result when it is done. If that took several calls, one that does nothing else
    /// returns it: what its caller does with the result takes time too.
    pub(crate) fn go_on(&mut self, run: impl FnOnce(&mut Steps<T>) -> Option<T>) -> Option<T> {
        if self.result.is_some() {
            return self.result.take();
        }
        let result = run(&mut self.steps);
        if self.is_long {
            self.result = result;
            return None;
        }
        self.is_long = result.is_none();
        result
    }

    /// Gives it up. What it has is freed in its next steps.
    pub(crate) fn give_up(&self) {
        self.given_up.set(true);
    }

    /// Gives it up, and waits for its end.
    pub(crate) async fn end(mut self) -> T {
        self.give_up();
        loop {
            if let Some(result) = self.result.take().or_else(|| self.steps.step()) {
                return result;
            }
            pause().await;
        }
    }
}
