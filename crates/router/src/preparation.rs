//! The preparation of a configuration that replaces another.

use core::future::Future;

use click_lang::steps::Steps;

/// A preparation in steps.
pub(crate) struct Preparation<T> {
    steps: Steps<T>,
    /// Whether it has taken more than one call.
    is_long: bool,
    result: Option<T>,
}

impl<T> Preparation<T> {
    /// A preparation that has not begun.
    pub(crate) fn new(computation: impl Future<Output = T> + 'static) -> Preparation<T> {
        Preparation { steps: Steps::new(computation), is_long: false, result: None }
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
}
