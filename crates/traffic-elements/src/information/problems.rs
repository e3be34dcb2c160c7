//! Errors collected while the arguments of an element are parsed, so that all are reported together.

use core::fmt::Display;

use element::SetupError;

/// Errors collected so far.
#[derive(Default)]
pub(super) struct Problems(SetupError);

impl Problems {
    /// Adds an error.
    pub(super) fn add(&mut self, text: impl Display) {
        self.0.merge(SetupError::new(text));
    }

    /// `Ok` if there are no errors.
    pub(super) fn into_result(self) -> Result<(), SetupError> {
        self.0.into_result()
    }
}
