//! A process that starts helpers for a host whose own system calls are restricted.
//!
//! A system call filter holds for all that a process forks later, and a helper needs calls that a filtered host must not
//! have: mounts, namespaces, and the execution of the image. So a host that will be filtered forks this process first, as
//! long as it has one thread. It has nothing but a socket, and starts a helper on request. The helper is its child.

use crate::error::{SetupError, SystemError};
use crate::poll;
use crate::process::spawner::filter;
use crate::process::spawner::launch::{Helper, Process, socket_pair};
use crate::process::spawner::link::Link;
use crate::process::spawner::message::{WORDS, Words, decode_isolation, encode_isolation};
use crate::process::spawner::socket::{Received, close, limit_replies, receive, send};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How long it may take to start a helper: that of the helper's replies, and as much again.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take to end. Then it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The first word of a reply: a helper was started.
const STARTED: u64 = 0;

/// Standard input of the process, which is its socket.
const SOCKET: RawFd = 0;

/// A process that starts helpers. Dropping it ends it, with its helper and the helper's boxes.
#[derive(Debug)]
pub struct Forker {
    /// Closed before the process is waited for.
    socket: Option<OwnedFd>,
    process: Process,
}

impl Forker {
    /// Forks the process. This process must have no other thread yet.
    pub fn fork() -> Result<Self, SystemError> {
        let failed = |cause| SystemError { action: "fork the process that starts spawners", cause };
        // A lock that another thread holds would stay locked in the copy.
        if fs::read_dir("/proc/self/task").map_err(failed)?.count() != 1 {
            return Err(failed(io::ErrorKind::ResourceBusy.into()));
        }
        let (ours, theirs) = socket_pair().map_err(|error| match error {
            SetupError::Spawner(cause) => failed(cause),
            _ => failed(io::ErrorKind::Other.into()),
        })?;
        limit_replies(ours.as_fd(), REPLY_TIMEOUT).map_err(|_| failed(io::Error::last_os_error()))?;
        // SAFETY: the call has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: this process has one thread, so its copy is a complete process.
        match unsafe { libc::fork() } {
            0 => run(&theirs, parent),
            pid if pid < 0 => Err(failed(io::Error::last_os_error())),
            pid => {
                // SAFETY: the child was not reaped, so the id is its own; a returned descriptor is owned by the value.
                let descriptor = unsafe {
                    match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
                        descriptor if descriptor >= 0 => OwnedFd::from_raw_fd(descriptor as RawFd),
                        _ => return Err(failed(io::Error::last_os_error())),
                    }
                };
                Ok(Self { socket: Some(ours), process: Process { pid, descriptor } })
            }
        }
    }

    /// Starts a helper in the place of the one before, whose boxes end.
    pub(super) fn start(&self, image: BorrowedFd<'_>) -> Result<Link, SetupError> {
        let socket = self.socket.as_ref().ok_or(SetupError::Gone)?.as_raw_fd();
        let failed = |errno| match errno {
            libc::EPIPE | libc::ECONNRESET => SetupError::Gone,
            libc::EAGAIN => SetupError::NoReply,
            errno => SetupError::Spawner(io::Error::from_raw_os_error(errno)),
        };
        send(socket, &[0; WORDS], &[image.as_raw_fd()]).map_err(failed)?;
        let received = receive(socket).map_err(failed)?.ok_or(SetupError::Gone)?;
        let (words, descriptor) = (received.words, owned(&received));
        match (words[0], descriptor, decode_isolation(words)) {
            (STARTED, Some(socket), Some(isolation)) => Link::entered(socket, isolation),
            (STARTED, ..) => Err(SetupError::Gone),
            (errno, ..) => {
                Err(SetupError::Spawner(io::Error::from_raw_os_error(i32::try_from(errno).unwrap_or(0))))
            }
        }
    }
}

impl Drop for Forker {
    fn drop(&mut self) {
        // It ends when its socket closes. If it does not, it is killed when the field is dropped.
        self.socket = None;
        poll::readable(&[self.process.descriptor.as_fd()], END_TIMEOUT);
    }
}

/// The only descriptor of a message.
fn owned(received: &Received) -> Option<OwnedFd> {
    let [first, rest @ ..] = received.descriptors;
    rest.into_iter().filter(|descriptor| *descriptor >= 0).for_each(close);
    // SAFETY: the descriptor was just received, and nothing else uses it.
    (first >= 0).then(|| unsafe { OwnedFd::from_raw_fd(first) })
}

/// The process: it serves its parent until that closes the socket or ends.
fn run(socket: &OwnedFd, parent: libc::pid_t) -> ! {
    // SAFETY: plain system calls. The descriptors that are closed belong to values of the parent's code, of which nothing
    // runs in this process.
    let is_alone = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) == 0
            // The parent may have ended before.
            && libc::getppid() == parent
            && libc::prctl(libc::PR_SET_NAME, c"forker".as_ptr()) == 0
            && libc::dup2(socket.as_raw_fd(), SOCKET) >= 0
            && libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) == 0
    };
    if is_alone {
        // A panic must not unwind into the parent's code.
        let _ = std::panic::catch_unwind(serve);
    }
    // SAFETY: ends the process without running the destructors of its parent's values.
    unsafe { libc::_exit(0) }
}

fn serve() {
    let (Ok(filter), Ok(image_filter)) = (filter::program(), filter::image_program()) else { return };
    let mut helper = None;
    while let Ok(Some(received)) = receive(SOCKET) {
        let Some(image) = owned(&received) else { return };
        drop(helper.take());
        let sent = match Helper::start(image.as_fd(), Some(&filter), &image_filter) {
            Ok((started, link)) => {
                helper = Some(started);
                let (socket, isolation) = link.into_parts();
                send(SOCKET, &encode_isolation(&isolation), &[socket.as_raw_fd()])
            }
            Err(error) => send(SOCKET, &failure(&error), &[]),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A reply that no helper could be started.
fn failure(error: &SetupError) -> Words {
    let errno = match error {
        SetupError::Spawner(cause) => cause.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EIO,
    };
    let mut words = [0; WORDS];
    words[0] = u64::from(errno.unsigned_abs());
    words
}
