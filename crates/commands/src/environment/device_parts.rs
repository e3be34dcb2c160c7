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
