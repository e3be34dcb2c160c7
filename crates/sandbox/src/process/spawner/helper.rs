//! The helper process.
//!
//! It was forked from a host with many threads, of which it is a copy of one: any lock may be held for ever. So nothing
//! here allocates, locks, or panics; it makes system calls and uses its own stack. The copy of the host's other memory is
//! unmapped at once.

use crate::process::spawner::exec::{self, ChildSetup, STACK_SIZE};
use crate::process::spawner::filter::HelperFilter;
use crate::process::spawner::layers;
use crate::process::spawner::message::{Order, Reply};
use crate::process::spawner::oom_score::OomScore;
use crate::process::spawner::release::release_memory;
use crate::process::spawner::socket::{Received, close, receive, send};
use crate::process::spawner::step::{Step, errno};
use crate::process::spawner::stops::Stops;
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// The helper's descriptors: its socket, the image, the one that tells of signals, and its out-of-memory score.
const SOCKET: RawFd = 0;
const IMAGE: RawFd = 1;
const SIGNALS: RawFd = 2;
const OOM_SCORE: RawFd = 3;

/// Descriptors are first moved to numbers from here on, so that none is overwritten before it is used.
const HIGH: RawFd = 10;

/// What the helper starts with: descriptors of the host.
pub(super) struct HelperSetup {
    /// Its end of the socket.
    pub(super) socket: RawFd,
    pub(super) image: RawFd,
    /// The namespaces that it was created in.
    pub(super) namespaces: i32,
    /// The system calls that it may make when it has entered its isolation.
    pub(super) filter: HelperFilter,
    /// Those that a child may make which executes an image of a user.
    pub(super) image_filter: HelperFilter,
}

/// Serves the host until its end of the socket closes. All signals are blocked.
pub(super) fn run(setup: &HelperSetup) -> ! {
    let prepared = prepare(setup);
    release_memory();
    let score = OomScore::new(OOM_SCORE);
    if prepared.is_ok()
        && let Some(stack) = new_stack()
        && let Ok(namespaces) = enter(setup, &score, stack)
    {
        serve(stack, &score, namespaces, &setup.image_filter);
    }
    // SAFETY: ends the process without running the host's destructors.
    unsafe { libc::_exit(1) }
}

/// The error number of a system call that failed.
fn checked(result: i64) -> Result<i32, i32> {
    if result < 0 { Err(errno()) } else { Ok(result as i32) }
}

/// Leaves the host's session, descriptors and signals behind.
fn prepare(setup: &HelperSetup) -> Result<(), i32> {
    // SAFETY: plain system calls, with pointers to live memory. The descriptors that are closed belonged to the host's
    // code, of which nothing runs in this process.
    unsafe {
        // The host may have ended before this: then the socket has closed.
        checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0).into())?;
        // Signals of a terminal reach the host only. It fails only if this process leads a group already.
        libc::setsid();
        // A host that ignores SIGCHLD would make the kernel reap all children.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let high = |descriptor| checked(libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, HIGH).into());
        let (socket, image) = (high(setup.socket)?, high(setup.image)?);
        checked(libc::dup3(socket, SOCKET, libc::O_CLOEXEC).into())?;
        checked(libc::dup3(image, IMAGE, libc::O_CLOEXEC).into())?;
        checked(libc::syscall(libc::SYS_close_range, SIGNALS, u32::MAX, 0))?;
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGCHLD);
        // These get the lowest free numbers: that of SIGNALS and that of OOM_SCORE. The latter may be missing.
        checked(libc::signalfd(-1, &signals, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into())?;
        libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
    }
    Ok(())
}

/// Memory for the stack of children.
fn new_stack() -> Option<&'static mut [u8]> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which affects no existing memory and is never unmapped. It is zeroed.
    unsafe {
        let address = libc::mmap(null_mut(), STACK_SIZE, protection, flags, -1, 0);
        (address != libc::MAP_FAILED)
            .then(|| std::slice::from_raw_parts_mut(address.cast::<u8>(), STACK_SIZE))
    }
}

/// Enters the isolation on the first order. Returns the namespaces that each box enters for itself.
fn enter(setup: &HelperSetup, score: &OomScore, stack: &mut [u8]) -> Result<i32, i32> {
    let received = receive(SOCKET)?.ok_or(libc::EPIPE)?;
    let Some(Order::Enter { changes_user }) = Order::decode(received.words) else { return Err(libc::EPROTO) };
    let in_user_namespace = setup.namespaces & libc::CLONE_NEWUSER != 0;
    let (results, namespaces) = layers::enter(changes_user, in_user_namespace, score, stack);
    setup.filter.install()?;
    reply(Reply::Entered { results })?;
    Ok(namespaces)
}

fn serve(stack: &mut [u8], score: &OomScore, namespaces: i32, filter: &HelperFilter) {
    let mut stops = Stops::new();
    loop {
        if !stops.is_empty() && !wait(&mut stops) {
            continue;
        }
        // The socket is closed, or unusable: the boxes end with this process.
        let Ok(Some(received)) = receive(SOCKET) else { return };
        let order = Order::decode(received.words);
        let served = match order {
            Some(Order::Spawn { .. }) if received.truncated => {
                reply(Reply::Failed { step: Step::ReceiveDescriptors, errno: libc::EMFILE })
            }
            Some(Order::Spawn { .. }) => spawn(&received, stack, score, namespaces, filter),
            Some(Order::Reap { process }) => {
                stops.forget(process);
                reply(reap(process, libc::WNOHANG))
            }
            Some(Order::Discard { process }) => {
                // SAFETY: the process is a child that was not reaped, so the id is its own.
                unsafe { libc::kill(process, libc::SIGKILL) };
                reply(reap(process, 0))
            }
            Some(Order::WatchStop { process }) => {
                let [event, ..] = received.descriptors;
                stops.add(process, event);
                Ok(())
            }
            Some(Order::Enter { .. }) | None => Err(libc::EPROTO),
        };
        // A stop's event is still in use.
        if !matches!(order, Some(Order::WatchStop { .. })) {
            received.descriptors.iter().take(received.count).for_each(|descriptor| close(*descriptor));
        }
        if served.is_err() {
            return;
        }
    }
}

fn reply(reply: Reply) -> Result<(), i32> {
    send(SOCKET, &reply.encode(), &[])
}

/// Waits for an order or for a child that has stopped. Returns whether there is an order.
fn wait(stops: &mut Stops) -> bool {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(SOCKET), entry(SIGNALS)];
    // SAFETY: two live entries. If it fails, there is nothing to do until the next attempt.
    unsafe { libc::poll(entries.as_mut_ptr(), 2, -1) };
    let [socket, signals] = entries;
    if signals.revents != 0 {
        // SAFETY: an all-zero structure is valid, and the kernel writes it. One record stands for all children.
        unsafe {
            let mut record: libc::signalfd_siginfo = std::mem::zeroed();
            libc::read(SIGNALS, (&raw mut record).cast(), size_of::<libc::signalfd_siginfo>());
        }
        stops.check();
    }
    socket.revents != 0
}

/// Creates a process from a message's descriptors. It replies with the process.
fn spawn(
    received: &Received,
    stack: &mut [u8],
    score: &OomScore,
    namespaces: i32,
    filter: &HelperFilter,
) -> Result<(), i32> {
    let Some(Order::Spawn { optional, address_space }) = Order::decode(received.words) else {
        return Err(libc::EPROTO);
    };
    let mut rest = received.descriptors.iter().copied().take(received.count);
    let mut next = |expected: bool| if expected { rest.next().unwrap_or(-1) } else { -1 };
    // SAFETY: the call has no preconditions.
    let own = unsafe { libc::getpid() };
    let mut setup = ChildSetup {
        image: IMAGE,
        filter: None,
        region: next(true),
        mailbox_event: next(true),
        wake_event: next(optional.wake_event),
        snapshot: next(optional.snapshot),
        pool: next(optional.pool),
        address_space,
        namespaces,
        parent: own,
        failed: None,
    };
    if optional.image {
        (setup.image, setup.filter) = (next(true), Some(filter));
    }
    // Where it is refused, the layer is known to be missing.
    let _ = score.raise();
    let spawned = exec::spawn(&mut setup, stack);
    score.restore();
    match spawned {
        Err((step, errno)) => reply(Reply::Failed { step, errno }),
        Ok((process, descriptor)) => {
            let sent = send(SOCKET, &Reply::Spawned { process }.encode(), &[descriptor]);
            close(descriptor);
            match sent {
                Err(errno) if errno != libc::EPIPE => {
                    // SAFETY: the process is a child that was not reaped, so the id is its own.
                    unsafe { libc::kill(process, libc::SIGKILL) };
                    reap(process, 0);
                    reply(Reply::Failed { step: Step::SendProcess, errno })
                }
                sent => sent,
            }
        }
    }
}

/// How a child ended. It is forgotten.
fn reap(process: i32, options: i32) -> Reply {
    // SAFETY: an all-zero siginfo is valid, and only this call writes it.
    let (result, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(libc::P_PID, process as libc::id_t, &mut info, libc::WEXITED | options);
        (result, info)
    };
    // SAFETY: waitid has filled these fields in, or they are zero.
    let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
    match (result, info.si_code) {
        (0, _) if found == 0 => Reply::Failed { step: Step::Reap, errno: libc::EAGAIN },
        (0, libc::CLD_EXITED) => Reply::Ended { status },
        (0, _) => Reply::Ended { status: -status },
        _ => Reply::Failed { step: Step::Reap, errno: errno() },
    }
}
