//! Waits for descriptors.

use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Waits until a descriptor is readable, at most for `timeout`. A signal does not end the wait.
pub(crate) fn readable(descriptor: &impl AsFd, timeout: Duration) -> bool {
    let start = Instant::now();
    let mut poll = libc::pollfd { fd: descriptor.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        let left = libc::timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: one live entry, a live time, no signal mask.
        let found = unsafe { libc::ppoll(&mut poll, 1, &left, std::ptr::null()) };
        if found > 0 {
            return true;
        }
        if found == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
    }
}
