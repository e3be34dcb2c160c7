//! Creates the process that runs an image.
//!
//! A single thread creates all processes and lives as long as the host. The kernel kills a box when the thread that
//! created it ends, so no box outlives its host.

use crate::error::{SetupError, SystemError};
use boundary::exit::{
    MAILBOX_EVENT_DESCRIPTOR, POOL_DESCRIPTOR, REGION_DESCRIPTOR, SNAPSHOT_DESCRIPTOR, WAKE_EVENT_DESCRIPTOR,
};
use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Namespaces of a box. The network namespace is left out: it costs more than all the others, and the filter permits no
/// sockets anyway.
const NAMESPACES: i32 =
    libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Bytes of stack for the steps between clone and exec.
const STACK_SIZE: usize = 32 << 10;

/// Descriptors are first moved to numbers from here on, so that none is overwritten before it is used.
const HIGH: i32 = 100;

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

/// What a new process is created from.
pub(crate) struct SpawnRequest {
    pub(crate) image: OwnedFd,
    pub(crate) region: OwnedFd,
    pub(crate) wake_event: Option<OwnedFd>,
    pub(crate) mailbox_event: OwnedFd,
    /// The memory of the box that it is a copy of.
    pub(crate) snapshot: Option<OwnedFd>,
    /// The packet pool that it shares with others.
    pub(crate) pool: Option<OwnedFd>,
}

/// A created process: its id and its pidfd.
pub(crate) type Spawned = (libc::pid_t, OwnedFd);

type Job = (SpawnRequest, Sender<Result<Spawned, SetupError>>);

/// The thread that creates processes.
pub(crate) struct Spawner {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Spawner {
    pub(crate) fn start() -> Result<Self, SystemError> {
        let (jobs, orders) = mpsc::channel::<Job>();
        let run = move || {
            let mut stack = vec![0u8; STACK_SIZE];
            while let Ok((order, answer)) = orders.recv() {
                // If the receiver is gone, the process isn't wanted any more: its pidfd is dropped here.
                let _ = answer.send(make(&order, &mut stack));
            }
        };
        let thread = std::thread::Builder::new()
            .name("spawner".into())
            .spawn(run)
            .map_err(|cause| SystemError { action: "start the process spawner", cause })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    pub(crate) fn spawn(&self, order: SpawnRequest) -> Result<Spawned, SetupError> {
        let (answer, answered) = mpsc::channel();
        let jobs = self.jobs.as_ref().ok_or(SetupError::Gone)?;
        jobs.send((order, answer)).map_err(|_| SetupError::Gone)?;
        answered.recv().map_err(|_| SetupError::Gone)?
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked needs no further cleanup.
            let _ = thread.join();
        }
    }
}

/// The child's inputs, and where it stores its failure. The child shares this memory until it executes the image.
struct ChildSetup {
    image: i32,
    region: i32,
    wake_event: i32,
    mailbox_event: i32,
    snapshot: i32,
    pool: i32,
    failed: Option<(&'static str, i32)>,
}

fn make(order: &SpawnRequest, stack: &mut [u8]) -> Result<Spawned, SetupError> {
    let mut setup = ChildSetup {
        image: order.image.as_raw_fd(),
        region: order.region.as_raw_fd(),
        wake_event: order.wake_event.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        mailbox_event: order.mailbox_event.as_raw_fd(),
        snapshot: order.snapshot.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        pool: order.pool.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        failed: None,
    };
    let mut made = try_clone(&mut setup, stack, NAMESPACES);
    if matches!(made, Err(libc::EPERM | libc::ENOSPC | libc::EINVAL | libc::EUSERS)) {
        // If namespaces are forbidden, the filter still confines the box.
        made = try_clone(&mut setup, stack, 0);
    }
    let failed = |errno| SetupError::Clone(std::io::Error::from_raw_os_error(errno));
    let (pid, descriptor) = made.map_err(failed)?;
    match setup.failed {
        None => Ok((pid, descriptor)),
        Some((step, errno)) => {
            // SAFETY: it reaps the child that was just created and has ended; the kernel writes the status to a live
            // variable.
            unsafe { libc::waitpid(pid, &mut 0, libc::__WALL) };
            Err(SetupError::Child { step, cause: std::io::Error::from_raw_os_error(errno) })
        }
    }
}

fn try_clone(setup: &mut ChildSetup, stack: &mut [u8], namespaces: i32) -> Result<Spawned, i32> {
    let mut descriptor = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the child runs `child` on its own stack while this thread is suspended (CLONE_VFORK), so only one of the
    // two uses `setup` at a time. It makes only system calls, and ends in exec or _exit.
    let pid = unsafe {
        libc::clone(child, top.cast::<c_void>(), flags, (&raw mut *setup).cast(), &raw mut descriptor)
    };
    match pid {
        // SAFETY: CLONE_PIDFD has stored a new descriptor.
        1.. => Ok((pid, unsafe { OwnedFd::from_raw_fd(descriptor) })),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

extern "C" fn child(setup: *mut c_void) -> i32 {
    // SAFETY: `try_clone` passes its setup, and waits.
    let setup = unsafe { &mut *setup.cast::<ChildSetup>() };
    setup.failed = Some(become_image(setup));
    // SAFETY: ends a process that shares its parent's memory, without running destructors.
    unsafe { libc::_exit(1) }
}

/// The steps to the image. It returns only on failure: the step, and the error's number.
fn become_image(setup: &ChildSetup) -> (&'static str, i32) {
    let step = |name, result: i64| match result {
        0.. => Ok(result as i32),
        // SAFETY: the error number of this thread, which the child borrows.
        _ => Err((name, unsafe { *libc::__errno_location() })),
    };
    let steps = || {
        // SAFETY: plain system calls on open descriptors, with pointers to live memory.
        unsafe {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            step(
                "unblock signals",
                libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()).into(),
            )?;
            let high =
                |descriptor| step("move a descriptor", libc::fcntl(descriptor, libc::F_DUPFD, HIGH).into());
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
                    step("pass a descriptor", libc::dup2(descriptor, number).into())?;
                }
            }
            let rest = (POOL_DESCRIPTOR + 1) as u32;
            let closing = libc::syscall(libc::SYS_close_range, rest, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            step("close its descriptors", closing)?;
            for standard in 0..REGION_DESCRIPTOR {
                libc::close(standard);
            }
            for (resource, limit) in LIMITS {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                step("set its limits", libc::setrlimit(resource, &limit).into())?;
            }
            // A kernel without custom slices refuses or ignores it; boxes then wait longer for each other.
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const SCHEDULING, 0);
            step("give up new privileges", libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
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
            step("run the box image", executed)
        }
    };
    steps().err().unwrap_or(("run the box image", 0))
}
