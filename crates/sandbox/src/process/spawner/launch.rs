//! Starts a helper process.

use crate::error::SetupError;
use crate::process::spawner::helper::{self, HelperSetup};
use crate::process::spawner::link::Link;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

/// A helper process. Dropping it kills it, and its boxes with it.
#[derive(Debug)]
pub(super) struct Helper(OwnedFd);

impl Helper {
    /// Forks a helper. The thread must live as long as the helper is needed: the kernel kills it when the thread ends.
    pub(super) fn start(image: BorrowedFd<'_>) -> Result<(Self, Link), SetupError> {
        let (host, child) = socket_pair()?;
        let link = Link::new(host)?;
        let setup = HelperSetup { socket: child.as_raw_fd(), image: image.as_raw_fd() };
        Ok((Self(fork(&setup)?), link))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open, and no siginfo is passed; an all-zero siginfo is valid, and only the last call
        // writes it.
        unsafe {
            let process = self.0.as_raw_fd();
            let none = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(libc::SYS_pidfd_send_signal, process, libc::SIGKILL, none, 0);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PIDFD, process as libc::id_t, &mut info, libc::WEXITED);
        }
    }
}

fn failed() -> SetupError {
    SetupError::Spawner(io::Error::last_os_error())
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), SetupError> {
    let mut pair = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which are owned by the returned values alone.
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        match libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) {
            0 => Ok((OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]))),
            _ => Err(failed()),
        }
    }
}

/// Forks the helper, and returns its pidfd.
fn fork(setup: &HelperSetup) -> Result<OwnedFd, SetupError> {
    let mut descriptor = -1;
    // SAFETY: the child is a copy of this thread, with its own memory. It runs `helper::run`, which uses nothing of the
    // host's state and never returns; all signals are blocked, so no handler of the host runs in it.
    let pid = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let flags = libc::CLONE_PIDFD | libc::SIGCHLD;
        let null = null_mut::<libc::c_void>();
        let pid = libc::syscall(libc::SYS_clone, flags, null, &raw mut descriptor, null, null);
        if pid == 0 {
            helper::run(setup);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut());
        if pid < 0 {
            return Err(SetupError::Spawner(error));
        }
        pid
    };
    debug_assert!(pid > 0);
    // SAFETY: CLONE_PIDFD has stored a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
