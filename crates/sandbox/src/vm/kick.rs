//! Kicks: making a thread leave the vCPU that it runs.
//!
//! A signal alone is lost if it arrives just before `KVM_RUN`. So the signal handler also sets the vCPU's
//! `immediate_exit` flag. Each thread registers the address of that flag while it runs a vCPU.

use crate::error::SystemError;
use kvm_ioctls::{VcpuExit, VcpuFd};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    /// The `immediate_exit` flag of the vCPU that this thread runs. `const` and without a destructor, so that a signal
    /// handler may read it.
    static IMMEDIATE_EXIT: Cell<*mut u8> = const { Cell::new(null_mut()) };
}

/// The signal of a kick: a real-time signal that programs rarely use.
fn signal() -> i32 {
    libc::SIGRTMIN() + 4
}

extern "C" fn on_signal(_: i32) {
    let byte = IMMEDIATE_EXIT.get();
    if !byte.is_null() {
        // SAFETY: only `run` sets the address, and clears it before its borrow of the vCPU ends. The flag is in that
        // vCPU's run page, which is mapped as long as the vCPU exists. The handler runs on the thread that set it.
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

/// Runs a vCPU until it exits, and passes the exit to `read`. A concurrent [`VcpuThread::kick`] makes it exit at once.
pub(crate) fn run<T>(
    vcpu: &mut VcpuFd,
    read: impl FnOnce(Result<VcpuExit<'_>, kvm_ioctls::Error>) -> T,
) -> T {
    let registered = Registered::new(&raw mut vcpu.get_kvm_run().immediate_exit);
    let result = read(vcpu.run());
    drop(registered);
    vcpu.set_kvm_immediate_exit(0);
    result
}

/// While this exists, the signal handler may write to the flag of a vCPU. Dropping it, also by a panic, ends this.
struct Registered;

impl Registered {
    /// `flag` is in the run page of a vCPU that [`run`] borrows for longer than the result lives.
    fn new(flag: *mut u8) -> Self {
        IMMEDIATE_EXIT.set(flag);
        Self
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        IMMEDIATE_EXIT.set(null_mut());
    }
}

/// A thread that runs vCPUs, as the target of kicks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VcpuThread(libc::pid_t);

impl VcpuThread {
    pub(crate) fn this_thread() -> Self {
        // SAFETY: it has no preconditions.
        Self(unsafe { libc::gettid() })
    }

    /// The thread's id.
    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// Makes the thread leave the vCPU that it runs, if any.
    pub(crate) fn kick(self) {
        // SAFETY: the signal has an installed handler; a thread that has ended receives none.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.0, signal()) };
    }
}

/// A timer that kicks its thread at an interval while it is armed.
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
                _ => Err(SystemError::last("create a timer")),
            }
        }
    }

    /// Ticks at this interval from now on; a zero interval stops the timer.
    pub(crate) fn set(&self, interval: Duration) {
        let time = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(interval.subsec_nanos() as i32),
        };
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: this value owns the timer.
        unsafe { libc::timer_settime(self.0, 0, &setting, null_mut()) };
    }
}

impl Drop for PreemptionTimer {
    fn drop(&mut self) {
        // SAFETY: this value owns the timer, which is not used afterwards.
        unsafe { libc::timer_delete(self.0) };
    }
}
