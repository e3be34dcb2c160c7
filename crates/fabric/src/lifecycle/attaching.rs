//! The ports of a box that are being attached while it starts.

use crate::error::OperationError;
use crate::network::Begun;
use std::cell::Cell;

/// The ports of a box that are being attached while it starts; by default there are none.
#[derive(Default)]
pub(super) struct Attaching {
    begun: Cell<Option<Begun<Result<(), OperationError>>>>,
    has_failed: Cell<bool>,
}

impl Attaching {
    /// Ports that are attached by this command.
    pub(super) fn new(begun: Begun<Result<(), OperationError>>) -> Self {
        Self { begun: Some(begun).into(), has_failed: false.into() }
    }

    /// Waits until they are attached. Later calls succeed.
    pub(super) fn wait(&self) -> Result<(), OperationError> {
        let Some(begun) = self.begun.take() else { return Ok(()) };
        let result = begun.wait().and_then(|attached| attached);
        self.has_failed.set(result.is_err());
        result
    }

    /// Whether they could not be attached.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }
}
