//! Hosts that wait until a process has stopped.

use crate::process::spawner::socket::close;
use std::os::fd::RawFd;

/// Maximum hosts that wait at once without delaying others: one for each thread that suspends a box.
const MAX_STOPS: usize = 64;

/// A process that is to stop, and the event to signal then.
#[derive(Clone, Copy)]
struct Stop {
    process: i32,
    event: RawFd,
}

/// Processes that are to stop.
pub(super) struct Stops {
    waiting: [Option<Stop>; MAX_STOPS],
    count: usize,
}

impl Stops {
    pub(super) fn new() -> Self {
        Self { waiting: [None; MAX_STOPS], count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Signals and closes an event when a process has stopped; closes it if the process has ended.
    pub(super) fn add(&mut self, process: i32, event: RawFd) {
        let stop = Stop { process, event };
        if stop.check(libc::WNOHANG) {
            return;
        }
        match self.waiting.iter_mut().find(|stop| stop.is_none()) {
            Some(free) => (*free, self.count) = (Some(stop), self.count + 1),
            // Others wait longer, but nothing is lost.
            None => drop(stop.check(0)),
        }
    }

    /// Looks for processes that have stopped or ended.
    pub(super) fn check(&mut self) {
        self.retain(|stop| !stop.check(libc::WNOHANG));
    }

    /// Forgets a process that has ended.
    pub(super) fn forget(&mut self, process: i32) {
        self.retain(|stop| {
            let kept = stop.process != process;
            if !kept {
                close(stop.event);
            }
            kept
        });
    }

    fn retain(&mut self, keep: impl Fn(&Stop) -> bool) {
        if self.count == 0 {
            return;
        }
        for waiting in &mut self.waiting {
            if waiting.as_ref().is_some_and(|stop| !keep(stop)) {
                (*waiting, self.count) = (None, self.count - 1);
            }
        }
    }
}

impl Stop {
    /// Whether the process has stopped or ended, in which case the event is closed.
    fn check(&self, options: i32) -> bool {
        let options = options | libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        // SAFETY: an all-zero siginfo is valid, and only this call writes it.
        let (result, pid, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let result = libc::waitid(libc::P_PID, self.process as libc::id_t, &mut info, options);
            (result, info.si_pid(), info.si_code)
        };
        if result == 0 && pid == 0 {
            return false;
        }
        if result == 0 && code == libc::CLD_STOPPED {
            let one = 1u64;
            // SAFETY: the kernel reads eight bytes of a live variable.
            unsafe { libc::write(self.event, (&raw const one).cast(), 8) };
        }
        close(self.event);
        true
    }
}
