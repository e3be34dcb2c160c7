//! Calling a thread out of the machine that it runs.
//!
//! A signal alone could come just before the machine is entered and be forgotten. So the handler also
//! sets the machine's "leave at once" byte, whose address each thread keeps while it runs one.

use crate::error::SystemError;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    /// The byte of the machine that this thread runs. `const` and without a destructor: the handler may
    /// read it.
    static IMMEDIATE_EXIT: Cell<*mut u8> = const { Cell::new(null_mut()) };
}

/// The signal, one that programs rarely use.
fn signal() -> i32 {
    libc::SIGRTMIN() + 4
}

extern "C" fn on_signal(_: i32) {
    let byte = IMMEDIATE_EXIT.get();
    if !byte.is_null() {
        // SAFETY: the thread set it, for as long as it runs the machine whose run page the byte lies in.
        unsafe { byte.write_volatile(1) };
    }
}

/// Installs the handler, once.
pub(crate) fn install() -> Result<(), SystemError> {
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    let result = *INSTALLED.get_or_init(|| {
        // SAFETY: an all-zero sigaction is valid, and the handler does only what a handler may.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            libc::sigaction(signal(), &action, null_mut())
        }
    });
    if result == 0 { Ok(()) } else { Err(SystemError::last("install a signal handler")) }
}

/// Runs `enter` with the byte with_exit_flag, which is cleared before and after.
pub(crate) fn with_exit_flag<T>(byte: *mut u8, enter: impl FnOnce() -> T) -> T {
    IMMEDIATE_EXIT.set(byte);
    let result = enter();
    IMMEDIATE_EXIT.set(null_mut());
    // SAFETY: the caller passes the byte of its machine's run page, which is mapped as long as the
    // machine lives.
    unsafe { byte.write_volatile(0) };
    result
}

/// A thread that can be called out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VcpuThread(libc::pid_t);

impl VcpuThread {
    pub(crate) fn this_thread() -> Self {
        // SAFETY: it has no preconditions.
        Self(unsafe { libc::gettid() })
    }

    /// The thread's number.
    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// Calls the thread out of its machine, if it runs one.
    pub(crate) fn kick(self) {
        // SAFETY: a signal with a handler that is installed; a thread that has ended gets none.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.0, signal()) };
    }
}

/// A timer that calls its thread out again and again while it is armed.
#[derive(Debug)]
pub(crate) struct PreemptionTimer(libc::timer_t);

// SAFETY: a timer is a number that any thread may use.
unsafe impl Send for PreemptionTimer {}

impl PreemptionTimer {
    /// A timer for the calling thread.
    pub(crate) fn new() -> Result<Self, SystemError> {
        // SAFETY: an all-zero sigevent is valid; the timer's id is written before it is used.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = null_mut();
            match libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) {
                0 => Ok(Self(timer)),
                _ => Err(SystemError::last("make a timer")),
            }
        }
    }

    /// Ticks at this interval from now on; a zero interval stops it.
    pub(crate) fn set(&self, interval: Duration) {
        let time = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(interval.subsec_nanos() as i32),
        };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer is this value's own.
        unsafe { libc::timer_settime(self.0, 0, &setting, null_mut()) };
    }
}

impl Drop for PreemptionTimer {
    fn drop(&mut self) {
        // SAFETY: as above, and nobody uses it afterwards.
        unsafe { libc::timer_delete(self.0) };
    }
}
