//! What the devices of this host have in common.

use std::io::{self, ErrorKind};

use element::IoError;

use super::files::io_error;

/// Headroom of a packet in bytes: Click's default, which also aligns IP headers.
pub(super) const HEADROOM: usize = 30;
/// Maximum number of packets that an interface is given at once.
pub(super) const BURST: usize = 64;

/// The error that the user sees.
pub(super) fn device_error(error: &io::Error, capability: &str) -> IoError {
    match error.raw_os_error() {
        // EPERM and EACCES.
        Some(1 | 13) => IoError::Denied(format!(
            "needs {capability}: run as root or `setcap {}+ep` the program",
            capability.to_lowercase()
        )),
        // ENODEV and ENXIO.
        Some(19 | 6) => IoError::NotFound("No such device".into()),
        _ if error.kind() == ErrorKind::InvalidInput => IoError::Failed(error.to_string()),
        _ => io_error(error),
    }
}

/// The error that the user sees if an interface gave no packets, or did not take one. `is_gone`: it was removed.
pub(super) fn interface_error(error: &io::Error, is_gone: bool) -> IoError {
    const LOAD_AGAIN: &str = "load the configuration again when the interface is back";
    if is_gone {
        return IoError::Failed(format!("the interface was removed: {LOAD_AGAIN}"));
    }
    match error.raw_os_error() {
        // An interface that is removed goes down first, and says nothing later.
        Some(libc::ENETDOWN) => {
            IoError::Failed(format!("the interface is down. If it was removed, {LOAD_AGAIN}"))
        }
        Some(libc::EMSGSIZE) => IoError::Failed(
            "a packet is longer than the MTU: give the interface a greater one, or put an IPFragmenter before the element"
                .into(),
        ),
        _ => io_error(error),
    }
}
