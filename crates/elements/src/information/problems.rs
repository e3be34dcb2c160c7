//! Problems collected while the arguments of one element are read, so that all are told at once.

use core::fmt::Display;

use element::SetupError;

/// What is wrong so far.
#[derive(Default)]
pub(super) struct Problems(SetupError);

impl Problems {
    /// Adds one.
    pub(super) fn add(&mut self, text: impl Display) {
        self.0.merge(SetupError::new(text));
    }

    /// `Ok` if there was none.
    pub(super) fn into_result(self) -> Result<(), SetupError> {
        self.0.into_result()
    }
}
