//! The state of a stack that awaits confirmation.

use api::{Stack, Time};
use std::time::Instant;

/// A stack that awaits confirmation.
#[derive(Debug)]
pub(super) struct PendingConfirmation {
    /// When it is rolled back.
    pub(super) due: Instant,
    /// The same as wall-clock time, for display.
    pub(super) until: Time,
    /// The previous definition. `None` if the stack did not exist.
    pub(super) before: Option<Stack>,
    /// The stack is being applied, confirmed or rolled back.
    pub(super) busy: bool,
}
