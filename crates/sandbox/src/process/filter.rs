//! The system calls that a box in a process may make.
//!
//! `seccompiler`, the filter compiler of Firecracker, translates the rules: they stay readable, and the check of the
//! architecture and the jumps are not ours to get right. It depends on `libc` only. It does not install the filter: the
//! image does, because it first needs system calls that the filter forbids. So only the compiled instructions cross, as
//! words in the shared region.

use crate::error::SetupError;
use boundary::exit::{MAILBOX_EVENT_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR};
use boundary::{Mapped, SharedMemory, control};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The filter. Any other system call ends the process.
pub(crate) fn program() -> Result<BpfProgram, SetupError> {
    let only = |argument, value: i32| {
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value as u64);
        condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(SetupError::Filter)
    };
    let calls = BTreeMap::from([
        // Only waiting is allowed, no other futex operation.
        (libc::SYS_futex, vec![only(1, libc::FUTEX_WAIT)?]),
        // The kernel uses this to continue a timed sleep after the process was stopped and continued.
        (libc::SYS_restart_syscall, vec![]),
        (libc::SYS_sched_yield, vec![]),
        (libc::SYS_write, vec![only(0, WAKE_EVENT_DESCRIPTOR)?, only(0, MAILBOX_EVENT_DESCRIPTOR)?]),
        (libc::SYS_exit_group, vec![]),
    ]);
    let filter =
        SeccompFilter::new(calls, SeccompAction::KillProcess, SeccompAction::Allow, TargetArch::x86_64);
    filter.and_then(BpfProgram::try_from).map_err(SetupError::Filter)
}

/// A filter that permits all system calls.
#[cfg(test)]
pub(crate) fn permit_all() -> BpfProgram {
    let permit = libc::BPF_RET | libc::BPF_K;
    vec![seccompiler::sock_filter { code: permit as u16, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }]
}

/// Writes a filter to the part of the shared region from which the image installs it.
pub(crate) fn write(program: &BpfProgram, region: &Mapped) -> Result<(), SetupError> {
    if program.len() > control::FILTER_LENGTH {
        return Err(SetupError::FilterLength(program.len()));
    }
    region.store_u64(control::FILTER, program.len() as u64, Relaxed);
    for (index, step) in program.iter().enumerate() {
        let word = u64::from(step.code)
            | u64::from(step.jt) << 16
            | u64::from(step.jf) << 24
            | u64::from(step.k) << 32;
        region.store_u64(control::FILTER + 8 + 8 * index, word, Relaxed);
    }
    Ok(())
}
