//! `EventFd`: wakes the host of a box.

use crate::error::SystemError;
use crate::poll;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that boxes signal and that the host polls together with others.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates an eventfd that is not signalled.
    pub fn new() -> Result<Self, SystemError> {
        // SAFETY: the call has no preconditions; the descriptor that it returns is owned by this value alone.
        unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
                descriptor if descriptor >= 0 => Ok(Self(OwnedFd::from_raw_fd(descriptor))),
                _ => Err(SystemError::last("create an eventfd")),
            }
        }
    }

    /// Signals it.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: the kernel reads eight bytes of a live variable. The write fails only if the counter is at its
        // maximum, in which case the descriptor is already readable.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Whether it was signalled since the last call.
    pub fn rang(&self) -> bool {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes to a live variable.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) == 8 }
    }

    /// Waits until it is signalled, at most for `timeout`. Returns whether it was signalled.
    pub fn wait(&self, timeout: Duration) -> bool {
        poll::readable(&[self.0.as_fd()], timeout);
        self.rang()
    }
}

impl From<OwnedFd> for EventFd {
    /// Takes ownership of an eventfd, for example a switch's bell. It should be non-blocking.
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
