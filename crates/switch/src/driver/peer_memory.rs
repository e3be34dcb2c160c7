//! Mappings of memory files that a peer may truncate. An access beyond the new end loses the mapping, not the process.
//!
//! The kernel answers such an access with `SIGBUS`. A handler, installed once per process, looks the address up among the
//! mappings that are registered here, puts anonymous memory in the place of the whole mapping, and marks it as broken:
//! the access is repeated and finds zeros, and the owner of the mapping closes its port. `SIGBUS` for any other reason
//! ends the process, as without the handler.

use super::kernel::check;
use boundary::Mapped;
use packet::SharedBytes;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of mappings in one process. The table cannot grow, because the handler must not take a lock.
const MAX_MAPPINGS: usize = 2048;

/// States of an entry of the table.
const FREE: usize = 0;
const CLAIMED: usize = 1;
const MAPPED: usize = 2;
const BROKEN: usize = 3;

#[derive(Debug)]
struct Entry {
    state: AtomicUsize,
    start: AtomicUsize,
    length: AtomicUsize,
}

/// The mappings of this process.
static TABLE: [Entry; MAX_MAPPINGS] = [const {
    Entry { state: AtomicUsize::new(FREE), start: AtomicUsize::new(0), length: AtomicUsize::new(0) }
}; MAX_MAPPINGS];

/// A mapping of a file that another process may truncate. It is unmapped on drop.
#[derive(Debug)]
pub(crate) struct PeerMapping {
    start: NonNull<u8>,
    length: usize,
    entry: &'static Entry,
}

// SAFETY: the mapping is not tied to a thread; it is accessed by atomics and by copies that tolerate concurrent writers.
unsafe impl Send for PeerMapping {}
// SAFETY: as above; no method hands out a reference into the mapping.
unsafe impl Sync for PeerMapping {}

impl PeerMapping {
    /// Maps `length` bytes of a file from `offset`, readable and writable.
    ///
    /// # Errors
    ///
    /// The file cannot be mapped, or this process has too many such mappings.
    pub(crate) fn map(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        Self::map_for(file, offset, length, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Maps `length` bytes of a file from `offset`, only to be read by [`bytes`](Self::bytes).
    ///
    /// # Errors
    ///
    /// As for [`map`](Self::map).
    pub(crate) fn map_to_read(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        Self::map_for(file, offset, length, libc::PROT_READ)
    }

    fn map_for(file: BorrowedFd<'_>, offset: u64, length: usize, access: i32) -> io::Result<Self> {
        install()?;
        let free = TABLE.iter().find(|entry| {
            entry.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        let entry = free.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC))?;
        let offset = libc::off_t::try_from(offset).unwrap_or(libc::off_t::MAX);
        // SAFETY: the kernel chooses the address of the new mapping, so no existing memory is affected.
        let start =
            unsafe { libc::mmap(null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                entry.start.store(start.as_ptr() as usize, Ordering::Relaxed);
                entry.length.store(length, Ordering::Relaxed);
                entry.state.store(MAPPED, Ordering::Release);
                Ok(Self { start, length, entry })
            }
            _ => {
                let error = io::Error::last_os_error();
                entry.state.store(FREE, Ordering::Release);
                Err(error)
            }
        }
    }

    /// The bytes of the mapping, to be read.
    pub(crate) fn bytes(&self) -> SharedBytes<'_> {
        // SAFETY: the range is mapped and can be read while this value is borrowed, also when the file shrinks.
        unsafe { SharedBytes::new(self.start, self.length) }
    }

    /// Access to a mapping that is writable. It must outlive the returned value.
    pub(crate) fn mapped(&self) -> Mapped {
        // SAFETY: the range is mapped readable and writable, and stays so when the file shrinks. The callers keep this
        // value beside what they make of the returned one.
        unsafe { Mapped::new(self.start, self.length) }
    }

    /// Whether an access found no memory behind the mapping. What was read since is of no use.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.entry.state.load(Ordering::Relaxed) == BROKEN
    }
}

impl Drop for PeerMapping {
    fn drop(&mut self) {
        self.entry.state.store(CLAIMED, Ordering::Release);
        // SAFETY: the range is this value's own mapping, and its users hold this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        self.entry.state.store(FREE, Ordering::Release);
    }
}

/// Installs the handler, once per process.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        // SAFETY: all-zero bytes are a valid action. The handler makes only calls that a signal handler may make.
        let result = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            check(libc::sigaction(libc::SIGBUS, &action, null_mut()) as isize)
        };
        result.map(drop).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
    };
    INSTALLED.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

/// Handles `SIGBUS`. It touches atomics and makes system calls, and nothing else.
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid description of the signal. Its address is meaningful for faults.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let is_fault = code > 0;
    if is_fault && TABLE.iter().any(|entry| replace(entry, address)) {
        return;
    }
    // SAFETY: the default action has no preconditions. A fault is repeated and then ends the process; a signal that was
    // sent is sent again.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if !is_fault {
            libc::raise(signal);
        }
    }
}

/// Puts anonymous memory in the place of a mapping that has this address. Returns whether it did.
fn replace(entry: &Entry, address: usize) -> bool {
    if !matches!(entry.state.load(Ordering::Acquire), MAPPED | BROKEN) {
        return false;
    }
    let (start, length) = (entry.start.load(Ordering::Relaxed), entry.length.load(Ordering::Relaxed));
    if address.checked_sub(start).is_none_or(|offset| offset >= length) {
        return false;
    }
    // The whole mapping, because pages of other sizes cannot be replaced one by one.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the range is a mapping that its owner holds: the fault happened in an access to it. The owner expects any
    // content, because its peer may write to it.
    let found = unsafe { libc::mmap(start as *mut libc::c_void, length, access, flags, -1, 0) };
    entry.state.store(BROKEN, Ordering::Release);
    found != libc::MAP_FAILED
}
