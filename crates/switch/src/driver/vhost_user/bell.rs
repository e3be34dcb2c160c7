//! Notifications: the descriptors that a peer and the switch wake each other with. Both come from the peer.
//!
//! The switch never reads the descriptor that wakes it: an edge-triggered entry of an epoll descriptor reports each write.
//! A write to the descriptor that wakes the peer may block, whatever its flags are: they belong to the open file, which
//! the peer has too, so it can make an eventfd blocking at any time, and fill it. So a thread of the connection writes,
//! and the switch only wakes that thread. A peer that blocks it blocks no one else.

use super::error::VhostUserError;
use crate::driver::kernel::check;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{Builder, Thread, park};

/// Threads of earlier connections that may be in a call before a port refuses to have another one.
const MAX_STUCK: usize = 4;

/// Bytes of the stack of a thread that makes one system call.
const STACK: usize = 64 << 10;

/// File systems of descriptors that are no files; of `linux/magic.h`.
const ANONYMOUS: libc::c_long = 0x0904_1934;
const PIPES: libc::c_long = 0x5049_5045;
const SOCKETS: libc::c_long = 0x534f_434b;

/// Counts the threads in a call that may block, of all connections at one path, those of earlier ports too.
#[derive(Clone, Debug, Default)]
pub(super) struct Ringers(Arc<()>);

impl Ringers {
    /// The count for the path of a socket that listens, or that is connected to one.
    pub(super) fn at(socket: &OwnedFd) -> Self {
        static ALL: Mutex<BTreeMap<PathBuf, Weak<()>>> = Mutex::new(BTreeMap::new());
        let Ok(socket) = socket.try_clone().map(UnixStream::from) else { return Self::default() };
        let addresses = [socket.local_addr(), socket.peer_addr()].into_iter().flatten();
        let path = addresses.filter_map(|address| address.as_pathname().map(Path::to_path_buf)).next();
        let Some(path) = path else { return Self::default() };
        let mut all = lock(&ALL);
        all.retain(|_, count| count.strong_count() > 0);
        let count = all.get(&path).and_then(Weak::upgrade).unwrap_or_default();
        all.insert(path, Arc::downgrade(&count));
        Self(count)
    }
}

/// The bell of one queue.
#[derive(Debug, Default)]
struct Bell {
    is_rung: AtomicBool,
    descriptor: Mutex<Option<Arc<OwnedFd>>>,
}

#[derive(Debug)]
struct State {
    /// Of each queue.
    bells: Vec<Bell>,
    is_over: AtomicBool,
}

/// The bells of one connection, and the thread that writes to their descriptors. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Bells {
    state: Arc<State>,
    thread: OnceLock<Thread>,
    ringers: Ringers,
}

impl Bells {
    /// The bells of a new connection with this number of queues, without descriptors.
    pub(super) fn new(ringers: &Ringers, queues: usize) -> Self {
        let bells = (0..queues).map(|_| Bell::default()).collect();
        let state = Arc::new(State { bells, is_over: AtomicBool::new(false) });
        Self { state, thread: OnceLock::new(), ringers: ringers.clone() }
    }

    /// Sets the descriptor that wakes the peer's queue, or removes it.
    pub(super) fn set(&self, queue: usize, descriptor: Option<OwnedFd>) -> Result<(), VhostUserError> {
        if descriptor.is_some() && self.thread.get().is_none() {
            // This value and the port count too. A thread that only takes its time to end does not.
            if Arc::strong_count(&self.ringers.0) > MAX_STUCK + 2 {
                return Err(VhostUserError::Stuck);
            }
            let (state, ringers) = (self.state.clone(), Arc::downgrade(&self.ringers.0));
            let thread = Builder::new().name("vhost-user".into()).stack_size(STACK);
            let started = thread.spawn(move || serve(&state, &ringers))?;
            // One driver sets descriptors, so there is none yet.
            let _ = self.thread.set(started.thread().clone());
        }
        if let Some(bell) = self.state.bells.get(queue) {
            *lock(&bell.descriptor) = descriptor.map(Arc::new);
        }
        Ok(())
    }

    /// Wakes the peer.
    #[inline]
    pub(super) fn ring(&self, queue: usize) {
        // If it was rung before, the thread has not begun to write yet.
        if let (Some(bell), Some(thread)) = (self.state.bells.get(queue), self.thread.get())
            && !bell.is_rung.swap(true, Ordering::SeqCst)
        {
            thread.unpark();
        }
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes to the descriptors of bells that were rung, until the connection is over.
fn serve(state: &State, ringers: &Weak<()>) {
    let one = 1u64.to_ne_bytes();
    while !state.is_over.load(Ordering::SeqCst) {
        let mut is_idle = true;
        for bell in state.bells.iter().filter(|bell| bell.is_rung.swap(false, Ordering::SeqCst)) {
            is_idle = false;
            // The lock is not held while the call may block.
            let descriptor = lock(&bell.descriptor).clone();
            if let (Some(descriptor), Some(_counted)) = (descriptor, ringers.upgrade()) {
                // SAFETY: the kernel reads eight bytes of a live array. If the descriptor is full, the peer has not read
                // what was written before; if its other end is closed, no one is there to be woken.
                let _ = unsafe { libc::write(descriptor.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            }
        }
        if is_idle {
            park();
        }
    }
}

/// Returns an error unless a descriptor is an eventfd, or a pipe or socket where that is accepted. A call on a file could wait for a server of the
/// peer's choice, and a set of descriptors could have any number of members.
/// `epoll` is a set that it is not a member of.
pub(super) fn check_event(
    descriptor: &OwnedFd,
    epoll: &OwnedFd,
    accepts_streams: bool,
) -> Result<(), VhostUserError> {
    let mut volume = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the variable, which is read only if it has done so.
    let kind = unsafe {
        check(libc::fstatfs(descriptor.as_raw_fd(), volume.as_mut_ptr()) as isize)?;
        volume.assume_init().f_type
    };
    let is_set = || {
        let (set, member) = (descriptor.as_raw_fd(), epoll.as_raw_fd());
        // SAFETY: the kernel looks for an entry that is not there, and says so only of an epoll descriptor.
        let removed = unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, member, null_mut()) };
        check(removed as isize).is_err_and(|error| error.raw_os_error() != Some(libc::EINVAL))
    };
    match kind {
        ANONYMOUS if !is_set() => Ok(()),
        PIPES | SOCKETS if accepts_streams => Ok(()),
        _ => Err(VhostUserError::NotEvent),
    }
}
