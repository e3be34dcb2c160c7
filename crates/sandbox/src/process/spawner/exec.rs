//! The last steps of the helper's children: from clone to the box image.

use crate::process::spawner::socket::errno;
use crate::process::spawner::step::Step;
use boundary::exit::{
    MAILBOX_EVENT_DESCRIPTOR, POOL_DESCRIPTOR, REGION_DESCRIPTOR, SNAPSHOT_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR,
};
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::ptr::null;

/// Namespaces of a box. The network namespace is left out: it costs more than all the others, and the filter permits no
/// sockets anyway.
pub(super) const NAMESPACES: i32 =
    libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Bytes of stack for the steps between clone and exec.
pub(super) const STACK_SIZE: usize = 32 << 10;

/// Descriptors are first moved to numbers from here on, so that none is overwritten before it is used. The helper has
/// fewer.
const HIGH: i32 = 32;

/// A box needs no files except the few that it inherits, and no core dump of its memory may be written to disk.
const LIMITS: [(libc::__rlimit_resource_t, libc::rlim_t); 3] =
    [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_STACK, 1 << 20), (libc::RLIMIT_NOFILE, 256)];

/// The first version of the structure of `sched_setattr`.
#[repr(C)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Nanoseconds: for a normal process, the slice after which others get a turn (Linux 6.12).
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that the kernel grants: a box in an endless loop delays the reply of another one by a tenth of a
/// millisecond instead of several.
static SCHEDULING: Scheduling = Scheduling {
    size: size_of::<Scheduling>() as u32,
    policy: libc::SCHED_OTHER as u32,
    flags: 0,
    nice: 0,
    priority: 0,
    runtime: 100_000,
    deadline: 0,
    period: 0,
};

/// The child's inputs, and where it stores its failure. The child shares this memory until it executes the image.
/// Descriptors that it does not get are -1.
pub(super) struct ChildSetup {
    pub(super) image: RawFd,
    pub(super) region: RawFd,
    pub(super) mailbox_event: RawFd,
    pub(super) wake_event: RawFd,
    pub(super) snapshot: RawFd,
    pub(super) pool: RawFd,
    /// The id of the helper, if the child sees it.
    pub(super) parent: Option<i32>,
    pub(super) failed: Option<(Step, i32)>,
}

/// Creates a process that runs the image. Returns its id and its pidfd, or the step that failed and the error's number.
pub(super) fn spawn(setup: &mut ChildSetup, stack: &mut [u8]) -> Result<(i32, RawFd), (Step, i32)> {
    let own = setup.parent.take();
    let mut created = clone(setup, stack, NAMESPACES);
    if matches!(created, Err(libc::EPERM | libc::ENOSPC | libc::EINVAL | libc::EUSERS)) {
        // If namespaces are forbidden, the filter still confines the box.
        setup.parent = own;
        created = clone(setup, stack, 0);
    }
    let (process, descriptor) = created.map_err(|errno| (Step::CreateProcess, errno))?;
    match setup.failed {
        None => Ok((process, descriptor)),
        Some(failure) => {
            // SAFETY: it reaps the child that was just created and has ended; the kernel writes the status to a live
            // variable. The descriptor is this function's own.
            unsafe {
                libc::waitpid(process, &mut 0, libc::__WALL);
                libc::close(descriptor);
            }
            Err(failure)
        }
    }
}

fn clone(setup: &mut ChildSetup, stack: &mut [u8], namespaces: i32) -> Result<(i32, RawFd), i32> {
    let mut descriptor = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the child runs `child` on its own stack while this thread is suspended (CLONE_VFORK), so only one of the
    // two uses `setup` at a time. It makes only system calls, and ends in exec or _exit.
    let process = unsafe {
        libc::clone(child, top.cast::<c_void>(), flags, (&raw mut *setup).cast(), &raw mut descriptor)
    };
    match process {
        1.. => Ok((process, descriptor)),
        _ => Err(errno()),
    }
}

extern "C" fn child(setup: *mut c_void) -> i32 {
    // SAFETY: `clone` passes its setup, and waits.
    let setup = unsafe { &mut *setup.cast::<ChildSetup>() };
    setup.failed = Some(execute(setup));
    // SAFETY: ends a process that shares its parent's memory, without running destructors.
    unsafe { libc::_exit(1) }
}

/// The steps to the image. It returns only on failure: the step, and the error's number.
fn execute(setup: &ChildSetup) -> (Step, i32) {
    let step = |step, result: i64| match result {
        0.. => Ok(result as i32),
        _ => Err((step, errno())),
    };
    let steps = || {
        // SAFETY: plain system calls on open descriptors, with pointers to live memory.
        unsafe {
            let killed = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            step(Step::FollowSpawner, killed.into())?;
            if setup.parent.is_some_and(|parent| parent != libc::getppid()) {
                return Err((Step::FollowSpawner, libc::ESRCH));
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            let unblocked = libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            step(Step::UnblockSignals, unblocked.into())?;
            let high =
                |descriptor| step(Step::MoveDescriptor, libc::fcntl(descriptor, libc::F_DUPFD, HIGH).into());
            let maybe = |descriptor| if descriptor < 0 { Ok(-1) } else { high(descriptor) };
            let (image, region, mailbox_event) =
                (high(setup.image)?, high(setup.region)?, high(setup.mailbox_event)?);
            let (wake_event, snapshot, pool) =
                (maybe(setup.wake_event)?, maybe(setup.snapshot)?, maybe(setup.pool)?);
            let inherited = [
                (region, REGION_DESCRIPTOR),
                (wake_event, WAKE_EVENT_DESCRIPTOR),
                (mailbox_event, MAILBOX_EVENT_DESCRIPTOR),
                (snapshot, SNAPSHOT_DESCRIPTOR),
                (pool, POOL_DESCRIPTOR),
            ];
            for (descriptor, number) in inherited {
                libc::close(number);
                if descriptor >= 0 {
                    step(Step::PassDescriptor, libc::dup2(descriptor, number).into())?;
                }
            }
            let rest = (POOL_DESCRIPTOR + 1) as u32;
            let closing = libc::syscall(libc::SYS_close_range, rest, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            step(Step::CloseDescriptors, closing)?;
            for standard in 0..REGION_DESCRIPTOR {
                libc::close(standard);
            }
            for (resource, limit) in LIMITS {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                step(Step::SetLimits, libc::setrlimit(resource, &limit).into())?;
            }
            // A kernel without custom slices refuses or ignores it; boxes then wait longer for each other.
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const SCHEDULING, 0);
            step(Step::NoNewPrivileges, libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            let arguments = [c"box".as_ptr(), null()];
            let environment = [null::<libc::c_char>()];
            let path = c"".as_ptr();
            let executed = libc::syscall(
                libc::SYS_execveat,
                image,
                path,
                arguments.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
            step(Step::Execute, executed)
        }
    };
    steps().err().unwrap_or((Step::Execute, 0))
}
