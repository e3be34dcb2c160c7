//! The last steps of the helper's children: from clone to the box image.

use crate::process::spawner::capabilities;
use crate::process::spawner::filter::HelperFilter;
use crate::process::spawner::step::{Failure, Step, errno};
use boundary::exit::{
    MAILBOX_EVENT_DESCRIPTOR, POOL_DESCRIPTOR, REGION_DESCRIPTOR, SNAPSHOT_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR,
};
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};

/// Bytes of stack for the steps between clone and exec.
pub(super) const STACK_SIZE: usize = 32 << 10;

/// Descriptors are first moved to numbers from here on, so that none is overwritten before it is used. The helper has
/// fewer.
const HIGH: i32 = 32;

/// A box needs no files except the few that it inherits, and no core dump of its memory may be written to disk. It can't
/// take memory in other ways than by mappings, which [`ChildSetup::address_space`] limits: in files in memory, in other
/// processes, or in message queues.
const LIMITS: [(libc::__rlimit_resource_t, libc::rlim_t); 7] = [
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_STACK, 1 << 20),
    (libc::RLIMIT_NOFILE, 256),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_NPROC, 0),
    (libc::RLIMIT_MEMLOCK, 0),
    (libc::RLIMIT_MSGQUEUE, 0),
];

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
pub(super) struct ChildSetup<'a> {
    pub(super) image: RawFd,
    /// Installed before the image is executed, if that need not confine itself.
    pub(super) filter: Option<&'a HelperFilter>,
    pub(super) region: RawFd,
    pub(super) mailbox_event: RawFd,
    pub(super) wake_event: RawFd,
    pub(super) snapshot: RawFd,
    pub(super) pool: RawFd,
    /// Maximum bytes of its mappings.
    pub(super) address_space: u64,
    /// Namespaces that the child enters.
    pub(super) namespaces: i32,
    /// The id of the helper, which a child without namespaces sees.
    pub(super) parent: i32,
    pub(super) failed: Option<Failure>,
}

/// Creates a process that runs the image. Returns its id and its pidfd, or the step that failed and the error's number.
pub(super) fn spawn(setup: &mut ChildSetup<'_>, stack: &mut [u8]) -> Result<(i32, RawFd), Failure> {
    let (namespaces, setup_pointer) = (setup.namespaces, (&raw mut *setup).cast());
    // SAFETY: `child` gets the setup that it expects.
    let created = unsafe { clone(child, setup_pointer, stack, namespaces) };
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

/// Whether the kernel permits these namespaces to a child.
pub(super) fn try_namespaces(stack: &mut [u8], namespaces: i32) -> Result<(), Failure> {
    // SAFETY: `end` ignores its argument.
    let created = unsafe { clone(end, null_mut(), stack, namespaces) };
    let (process, descriptor) = created.map_err(|errno| (Step::CreateProcess, errno))?;
    // SAFETY: it reaps the child that was just created; the kernel writes the status to a live variable. The descriptor
    // is this function's own.
    unsafe {
        libc::waitpid(process, &mut 0, libc::__WALL);
        libc::close(descriptor);
    }
    Ok(())
}

extern "C" fn end(_: *mut c_void) -> i32 {
    // SAFETY: ends a process that shares its parent's memory, without running destructors.
    unsafe { libc::_exit(0) }
}

/// Creates a child that runs a function on its own stack while this process waits. Returns its id and its pidfd.
///
/// # Safety
///
/// The function accepts the argument. It makes only system calls, and ends in exec or _exit.
unsafe fn clone(
    child: extern "C" fn(*mut c_void) -> i32,
    argument: *mut c_void,
    stack: &mut [u8],
    namespaces: i32,
) -> Result<(i32, RawFd), i32> {
    let mut descriptor = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the child runs on its own stack while this thread is suspended (CLONE_VFORK), so only one of the two uses
    // the memory that they share at a time. The rest is up to the caller.
    let process = unsafe { libc::clone(child, top.cast::<c_void>(), flags, argument, &raw mut descriptor) };
    match process {
        1.. => Ok((process, descriptor)),
        _ => Err(errno()),
    }
}

extern "C" fn child(setup: *mut c_void) -> i32 {
    // SAFETY: `spawn` passes its setup, and waits.
    let setup = unsafe { &mut *setup.cast::<ChildSetup<'_>>() };
    setup.failed = Some(execute(setup));
    // SAFETY: ends a process that shares its parent's memory, without running destructors.
    unsafe { libc::_exit(1) }
}

/// The steps to the image. It returns only on failure: the step, and the error's number.
fn execute(setup: &ChildSetup<'_>) -> Failure {
    let steps = || {
        // SAFETY: plain system calls on open descriptors, with pointers to live memory.
        unsafe {
            let killed = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            Step::FollowSpawner.check(killed)?;
            if setup.namespaces == 0 && setup.parent != libc::getppid() {
                return Err((Step::FollowSpawner, libc::ESRCH));
            }
            if setup.namespaces & libc::CLONE_NEWUSER != 0 {
                // A new user namespace begins with all capabilities. The image gets none of them, as it has no user there;
                // a security module may refuse that they become unattainable as well.
                let _ = capabilities::drop_bounding_set();
            } else {
                capabilities::drop_all_but(0)?;
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            let unblocked = libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
            Step::UnblockSignals.check(unblocked)?;
            let high = |descriptor| Step::MoveDescriptor.check(libc::fcntl(descriptor, libc::F_DUPFD, HIGH));
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
                    Step::PassDescriptor.check(libc::dup2(descriptor, number))?;
                }
            }
            let rest = (POOL_DESCRIPTOR + 1) as u32;
            let closing = libc::syscall(libc::SYS_close_range, rest, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Step::CloseDescriptors.check(closing)?;
            for standard in 0..REGION_DESCRIPTOR {
                libc::close(standard);
            }
            let address_space = (libc::RLIMIT_AS, setup.address_space);
            for (resource, limit) in LIMITS.into_iter().chain([address_space]) {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                Step::SetLimits.check(libc::setrlimit(resource, &limit))?;
            }
            // A kernel without custom slices refuses or ignores it; boxes then wait longer for each other.
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const SCHEDULING, 0);
            Step::NoNewPrivileges.check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            if let Some(filter) = setup.filter {
                filter.install().map_err(|errno| (Step::FilterCalls, errno))?;
            }
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
            Step::Execute.check(executed)
        }
    };
    steps().err().unwrap_or((Step::Execute, 0))
}
