//! What the processes have in common that a launcher starts.

use crate::privileges::number;
use protocol::launcher::{Shortfall, Step};
use std::io;

/// Variables of a service manager that concern the launcher alone.
pub(crate) const OWN_VARIABLES: &[&str] =
    &["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "LISTEN_FDS"];

/// A step that failed.
pub(crate) fn failed(step: Step, error: &io::Error) -> Shortfall {
    Shortfall { step, errno: number(error) }
}
