//! Waits for descriptors.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Waits until one of the descriptors is readable, at most for `timeout`. A signal does not end the wait.
pub(crate) fn readable(descriptors: &[BorrowedFd<'_>], timeout: Duration) -> bool {
    let start = Instant::now();
    let entry = |descriptor: &BorrowedFd<'_>| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<_> = descriptors.iter().map(entry).collect();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        let left = libc::timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let count = entries.len() as libc::nfds_t;
        // SAFETY: as many live entries as it says, a live time, no signal mask.
        let found = unsafe { libc::ppoll(entries.as_mut_ptr(), count, &left, std::ptr::null()) };
        if found > 0 {
            return true;
        }
        if found == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
    }
}
