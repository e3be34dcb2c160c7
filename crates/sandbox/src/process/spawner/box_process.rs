//! The process of a box, on the host's side.

use crate::event_fd::EventFd;
use crate::poll;
use crate::process::spawner::link::Link;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// The process of a box. Until it has been reaped, its id belongs to no other process.
#[derive(Debug)]
pub(crate) struct BoxProcess {
    link: Arc<Link>,
    /// Its id as the helper sees it.
    inner: i32,
    /// Its id as the host sees it.
    pid: libc::pid_t,
    descriptor: OwnedFd,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

/// The first version of the structure of the ioctl that describes the process of a pidfd.
#[repr(C)]
#[derive(Default)]
struct ProcessInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    rest: [u32; 11],
}

/// `_IOWR(0xff, 11, struct pidfd_info)` (Linux 6.13).
const PIDFD_GET_INFO: libc::c_ulong = 0xc000_ff0b | (size_of::<ProcessInfo>() as libc::c_ulong) << 16;

impl BoxProcess {
    pub(super) fn new(link: Arc<Link>, inner: i32, descriptor: OwnedFd) -> io::Result<Self> {
        let mut process = Self { link, inner, pid: 0, descriptor };
        match host_id(&process.descriptor) {
            Ok(pid) => {
                process.pid = pid;
                Ok(process)
            }
            Err(error) => {
                process.signal(libc::SIGKILL);
                process.reap();
                Err(error)
            }
        }
    }

    /// Its id as the host sees it.
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Sends it a signal by its pidfd, so that it cannot reach another process.
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: the descriptor is open; no siginfo is passed.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                signal,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
    }

    /// Stops it. When this returns, it does not run.
    pub(crate) fn stop(&self) {
        let event: EventFd = self.link.take_event();
        self.signal(libc::SIGSTOP);
        if self.link.watch_stop(self.inner, &event).is_err() {
            // Its spawner has ended, and it ends too.
            poll::readable(&[self.as_fd()], Duration::MAX);
            return;
        }
        poll::readable(&[event.as_fd(), self.as_fd()], Duration::MAX);
        // If it has ended, the helper may still signal the event.
        if !self.has_ended() {
            self.link.keep_event(event);
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        poll::readable(&[self.as_fd()], Duration::ZERO)
    }

    /// Waits until it has ended, and returns how. It must be called once.
    pub(crate) fn reap(&self) -> Reaped {
        poll::readable(&[self.as_fd()], Duration::MAX);
        match self.link.reap(self.inner) {
            Some(status @ 0..) => Reaped::Exited(status),
            Some(signal) => Reaped::Signalled(-signal),
            // The kernel has killed it, because its spawner has ended.
            None => Reaped::Signalled(libc::SIGKILL),
        }
    }
}

impl AsFd for BoxProcess {
    /// Its pidfd, which is readable when it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The id of a pidfd's process, as this process sees it.
fn host_id(descriptor: &OwnedFd) -> io::Result<libc::pid_t> {
    let mut info = ProcessInfo { mask: 1, ..ProcessInfo::default() };
    // SAFETY: the kernel writes a live structure of the size that the request states.
    let result = unsafe { libc::ioctl(descriptor.as_raw_fd(), PIDFD_GET_INFO, &raw mut info) };
    if result == 0 && info.mask & 1 != 0 {
        return Ok(info.pid.cast_signed());
    }
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd()))?;
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:")).map(|number| number.trim().parse());
    match number {
        Some(Ok(pid @ 1..)) => Ok(pid),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
