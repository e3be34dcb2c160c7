//! Making a process that runs an image.
//!
//! One thread makes them all and lives as long as the host: the kernel ends a box when the thread that
//! made it ends, so that no box outlives its host.

use crate::error::{SetupError, SystemError};
use boundary::exit::{BELL_DESCRIPTOR, POOL_DESCRIPTOR, REGION_DESCRIPTOR, SNAPSHOT_DESCRIPTOR};
use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Namespaces of a box. Network is left out, as it costs more than all the others and no socket can be
/// made anyway.
const NAMESPACES: i32 =
    libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Bytes of stack for the steps between clone and exec.
const STACK_SIZE: usize = 32 << 10;

/// Descriptors are moved here first, so that none is overwritten before it is used.
const HIGH: i32 = 100;

/// A box needs no file but the few that it inherits, and no dump of its memory goes to a disk.
const LIMITS: [(libc::__rlimit_resource_t, libc::rlim_t); 3] =
    [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_STACK, 1 << 20), (libc::RLIMIT_NOFILE, 256)];

/// What the kernel's `sched_setattr` is told: the first version of its structure.
#[repr(C)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Nanoseconds: for an ordinary process the slice after which others have a turn (Linux 6.12).
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The shortest slice that the kernel gives: a box in an endless loop keeps the answer of one beside it
/// waiting for a tenth of a millisecond, not for several.
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

/// What a new process is made of.
pub(crate) struct SpawnRequest {
    pub(crate) image: OwnedFd,
    pub(crate) area: OwnedFd,
    pub(crate) bell: Option<OwnedFd>,
    /// The memory of the box that it is a copy of.
    pub(crate) snapshot: Option<OwnedFd>,
    /// The packet pool that it shares with others.
    pub(crate) pool: Option<OwnedFd>,
}

/// A process that was made: its number and a descriptor of it.
pub(crate) type Spawned = (libc::pid_t, OwnedFd);

type Job = (SpawnRequest, Sender<Result<Spawned, SetupError>>);

/// The thread that makes processes.
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
                // Nobody listening means that the process isn't wanted; its descriptor is dropped, and
                // the area's end of it with the caller.
                let _ = answer.send(make(&order, &mut stack));
            }
        };
        let thread = std::thread::Builder::new()
            .name("spawner".into())
            .spawn(run)
            .map_err(|cause| SystemError { action: "start the thread that makes processes", cause })?;
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
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

/// What the child needs, and where it leaves its failure. It shares this memory until it executes the
/// image.
struct ChildSetup {
    image: i32,
    area: i32,
    bell: i32,
    snapshot: i32,
    pool: i32,
    failed: Option<(&'static str, i32)>,
}

fn make(order: &SpawnRequest, stack: &mut [u8]) -> Result<Spawned, SetupError> {
    let mut setup = ChildSetup {
        image: order.image.as_raw_fd(),
        area: order.area.as_raw_fd(),
        bell: order.bell.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        snapshot: order.snapshot.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        pool: order.pool.as_ref().map_or(-1, AsRawFd::as_raw_fd),
        failed: None,
    };
    let mut made = try_clone(&mut setup, stack, NAMESPACES);
    if matches!(made, Err(libc::EPERM | libc::ENOSPC | libc::EINVAL | libc::EUSERS)) {
        // Where namespaces are forbidden the filter is still there.
        made = try_clone(&mut setup, stack, 0);
    }
    let (pid, descriptor) = made.map_err(SetupError::Clone)?;
    match setup.failed {
        None => Ok((pid, descriptor)),
        Some((step, errno)) => {
            // SAFETY: it waits for the child just made, which has ended; the status goes to a live
            // variable.
            unsafe { libc::waitpid(pid, &mut 0, libc::__WALL) };
            Err(SetupError::Child { step, errno })
        }
    }
}

fn try_clone(setup: &mut ChildSetup, stack: &mut [u8], namespaces: i32) -> Result<Spawned, i32> {
    let mut descriptor = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
    // SAFETY: the child runs `child` on a stack of its own while this thread is held (CLONE_VFORK), so
    // that `setup` is used by one of the two at a time; it makes only system calls, and ends in exec or
    // _exit.
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
    // SAFETY: the end of a process that shares its parent's memory: no destructors.
    unsafe { libc::_exit(1) }
}

/// The steps to the image. Returning is failure: the step, and the error's number.
fn become_image(setup: &ChildSetup) -> (&'static str, i32) {
    let step = |name, result: i64| match result {
        0.. => Ok(result as i32),
        // SAFETY: the error number of this thread, which the child borrows.
        _ => Err((name, unsafe { *libc::__errno_location() })),
    };
    let steps = || {
        // SAFETY: plain system calls on descriptors that are open, with pointers to live memory.
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
            let (image, area) = (high(setup.image)?, high(setup.area)?);
            let (bell, snapshot, pool) = (maybe(setup.bell)?, maybe(setup.snapshot)?, maybe(setup.pool)?);
            let places = [
                (area, REGION_DESCRIPTOR),
                (bell, BELL_DESCRIPTOR),
                (snapshot, SNAPSHOT_DESCRIPTOR),
                (pool, POOL_DESCRIPTOR),
            ];
            for (descriptor, place) in places {
                libc::close(place);
                if descriptor >= 0 {
                    step("pass a descriptor on", libc::dup2(descriptor, place).into())?;
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
                step("limit itself", libc::setrlimit(resource, &limit).into())?;
            }
            // A kernel that knows no slices refuses or ignores it: then boxes wait for each other longer.
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
