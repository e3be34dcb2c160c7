//! The system calls that a box in a process may make.

use crate::process::spawn::SetupError;
use boundary::leave::BELL_DESCRIPTOR;
use boundary::{Mapped, SharedMemory, control};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The filter: any other call ends the process.
pub(crate) fn program() -> Result<BpfProgram, SetupError> {
    let bell = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, BELL_DESCRIPTOR as u64);
    let ring = bell.and_then(|bell| SeccompRule::new(vec![bell])).map_err(|_| SetupError::Filter)?;
    let calls = BTreeMap::from([
        (libc::SYS_futex, vec![]),
        // By this the kernel goes on with a sleep until some time, after the process stood still.
        (libc::SYS_restart_syscall, vec![]),
        (libc::SYS_sched_yield, vec![]),
        (libc::SYS_write, vec![ring]),
        (libc::SYS_exit_group, vec![]),
    ]);
    let filter =
        SeccompFilter::new(calls, SeccompAction::KillProcess, SeccompAction::Allow, TargetArch::x86_64);
    filter.and_then(BpfProgram::try_from).map_err(|_| SetupError::Filter)
}

/// Puts a filter where the image looks for it.
pub(crate) fn write(program: &BpfProgram, area: &Mapped) -> Result<(), SetupError> {
    if program.len() > control::FILTER_LENGTH {
        return Err(SetupError::Filter);
    }
    area.store_u64(control::FILTER, program.len() as u64, Relaxed);
    for (index, step) in program.iter().enumerate() {
        let word = u64::from(step.code)
            | u64::from(step.jt) << 16
            | u64::from(step.jf) << 24
            | u64::from(step.k) << 32;
        area.store_u64(control::FILTER + 8 + 8 * index, word, Relaxed);
    }
    Ok(())
}
