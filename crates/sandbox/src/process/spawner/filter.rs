//! The system calls that a helper may make when it has entered its isolation, and its children until the box image has
//! installed a narrower filter of its own.
//!
//! Not among them, on purpose: opening files, sockets, and mounts; entering namespaces by other means than a new child;
//! `ptrace`; and memory that can be executed.

use crate::error::SetupError;
use crate::process::spawner::step::errno;
use boundary::exit::{MAILBOX_EVENT_DESCRIPTOR, SNAPSHOT_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR};
use seccomp::{Argument, Filter, FilterError, Program};

/// Calls without conditions.
const CALLS: &[i64] = &[
    // Orders, events and the out-of-memory score: descriptors that it has.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_poll,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup2,
    libc::SYS_dup3,
    // Children.
    libc::SYS_waitid,
    libc::SYS_wait4,
    libc::SYS_kill,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_capset,
    libc::SYS_sched_setattr,
    libc::SYS_seccomp,
    // The image.
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Operations of `prctl`: following the parent, and giving up privileges.
const OPERATIONS: &[libc::c_int] =
    &[libc::PR_SET_PDEATHSIG, libc::PR_CAPBSET_DROP, libc::PR_CAP_AMBIENT, libc::PR_SET_NO_NEW_PRIVS];

/// Maximum instructions, which a helper keeps on its stack.
const MAX_INSTRUCTIONS: usize = 384;

/// The filter.
pub(super) fn program() -> Result<Program, SetupError> {
    build().map_err(SetupError::SpawnerFilter)
}

fn build() -> Result<Program, FilterError> {
    // A child shares the memory of the helper, which waits until it has executed the image; it is no thread.
    let shared = (libc::CLONE_VM | libc::CLONE_VFORK) as u32;
    let others = (libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_SIGHAND) as u32;
    let mut filter = Filter::default()
        .allow(CALLS)
        .allow_if(libc::SYS_clone, &[Argument::has(0, shared | others, shared)])?
        // The limits of the child itself.
        .allow_if(libc::SYS_prlimit64, &[Argument::is(0, 0)])?
        .allow_if(libc::SYS_execveat, &[Argument::is(4, libc::AT_EMPTY_PATH as u32)])?
        .allow_if(libc::SYS_fcntl, &[Argument::is(1, libc::F_DUPFD as u32)])?;
    for operation in OPERATIONS {
        filter = filter.allow_if(libc::SYS_prctl, &[Argument::is(0, *operation as u32)])?;
    }
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        filter = filter.allow_if(call, &[Argument::has(2, libc::PROT_EXEC as u32, 0)])?;
    }
    filter.compile()
}

/// The filter of a process with an image of a user, whose first steps are not trusted. It has the calls of an image that
/// confines itself, and no others: memory without the right to execute it, the snapshot, signals, and the narrower filter;
/// then waiting, and the two events.
pub(super) fn image_program() -> Result<Program, SetupError> {
    build_for_image().map_err(SetupError::SpawnerFilter)
}

fn build_for_image() -> Result<Program, FilterError> {
    let first = |descriptor: i32| [Argument::is(0, descriptor as u32)];
    Filter::default()
        .allow(&[
            libc::SYS_rt_sigaction,
            libc::SYS_sigaltstack,
            libc::SYS_close_range,
            libc::SYS_restart_syscall,
            libc::SYS_sched_yield,
            libc::SYS_exit_group,
        ])
        // The image itself.
        .allow_if(libc::SYS_execveat, &[Argument::is(4, libc::AT_EMPTY_PATH as u32)])?
        .allow_if(libc::SYS_mmap, &[Argument::has(2, libc::PROT_EXEC as u32, 0)])?
        .allow_if(libc::SYS_pread64, &first(SNAPSHOT_DESCRIPTOR))?
        .allow_if(
            libc::SYS_prctl,
            &[Argument::is(0, libc::PR_SET_PDEATHSIG as u32), Argument::is(1, libc::SIGKILL as u32)],
        )?
        .allow_if(libc::SYS_prctl, &[Argument::is(0, libc::PR_SET_NO_NEW_PRIVS as u32)])?
        .allow_if(libc::SYS_seccomp, &[Argument::is(0, libc::SECCOMP_SET_MODE_FILTER), Argument::is(1, 0)])?
        .allow_if(libc::SYS_futex, &[Argument::is(1, libc::FUTEX_WAIT as u32)])?
        .allow_if(libc::SYS_write, &first(WAKE_EVENT_DESCRIPTOR))?
        .allow_if(libc::SYS_write, &first(MAILBOX_EVENT_DESCRIPTOR))?
        .compile()
}

/// A filter as a helper keeps it, without other memory.
pub(super) struct HelperFilter {
    instructions: [libc::sock_filter; MAX_INSTRUCTIONS],
    count: usize,
}

impl HelperFilter {
    /// A copy of a program. `None`: no filter, to test what else isolates boxes.
    pub(super) fn new(program: Option<&Program>) -> Result<Self, SetupError> {
        let none = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut filter = Self { instructions: [none; MAX_INSTRUCTIONS], count: 0 };
        for instruction in program.into_iter().flat_map(Program::programs).flatten() {
            let place = filter.instructions.get_mut(filter.count);
            let place = place.ok_or(SetupError::FilterLength(MAX_INSTRUCTIONS + 1))?;
            let seccompiler::sock_filter { code, jt, jf, k } = *instruction;
            *place = libc::sock_filter { code, jt, jf, k };
            filter.count += 1;
        }
        Ok(filter)
    }

    /// Installs the filter in the helper, which has given up new privileges. The error is an error number.
    pub(super) fn install(&self) -> Result<(), i32> {
        if self.count == 0 {
            return Ok(());
        }
        let program = libc::sock_fprog {
            len: self.count as libc::c_ushort,
            filter: self.instructions.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies the instructions, which live as long as `self`.
        let installed =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
        if installed == 0 { Ok(()) } else { Err(errno()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_has_room() {
        let filter = HelperFilter::new(Some(&program().unwrap())).unwrap();
        assert!((50..MAX_INSTRUCTIONS).contains(&filter.count), "{}", filter.count);
        assert_eq!(HelperFilter::new(None).unwrap().count, 0);
    }
}
