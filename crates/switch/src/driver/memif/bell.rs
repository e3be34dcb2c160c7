//! Wakes a peer that sleeps on an eventfd.
//!
//! The peer has the same eventfd. It could make it blocking and fill it up: a write would then stop the switch, and the flags
//! can change between a check and the write. Therefore the kernel adds to the eventfd itself, when an asynchronous read of
//! nothing ends (`IOCB_FLAG_RESFD`): that never waits, and fails if the descriptor is not an eventfd.

use crate::driver::kernel::check;
use crate::driver::sealed_memory;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

/// Ended reads that the kernel keeps until they are collected.
const READS: usize = 64;
/// `IOCB_FLAG_RESFD`
const NOTIFIES: u32 = 1;

/// `struct iocb`: a read, by its default operation 0.
#[repr(C)]
#[derive(Default)]
struct Read {
    data: u64,
    key: u32,
    rw_flags: u32,
    operation: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event: u32,
}

/// A queue of asynchronous reads, and a file to read nothing from. All ports use the same.
struct Bell {
    queue: libc::c_ulong,
    file: OwnedFd,
}

/// Adds 1 to an eventfd, and wakes who waits for it. Does not block. Fails with `EINVAL` if it is none.
pub(super) fn ring(event: &OwnedFd) -> io::Result<()> {
    static BELL: OnceLock<Bell> = OnceLock::new();
    let bell = match BELL.get() {
        Some(bell) => bell,
        None => {
            let bell = Bell::new()?;
            BELL.get_or_init(|| bell)
        }
    };
    match bell.ring(event) {
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
            bell.collect()?;
            bell.ring(event)
        }
        result => result,
    }
}

impl Bell {
    fn new() -> io::Result<Self> {
        let file = sealed_memory::create(c"bell", 0)?;
        let mut queue: libc::c_ulong = 0;
        // SAFETY: the kernel writes the number of the queue to a live variable.
        check(unsafe { libc::syscall(libc::SYS_io_setup, READS, &raw mut queue) } as isize)?;
        Ok(Self { queue, file })
    }

    fn ring(&self, event: &OwnedFd) -> io::Result<()> {
        let file = self.file.as_raw_fd() as u32;
        let mut read = Read { file, flags: NOTIFIES, event: event.as_raw_fd() as u32, ..Read::default() };
        let mut list = [&raw mut read];
        // SAFETY: the kernel reads a live list of one read, which has no buffer, and of which it keeps nothing: a read of no
        // bytes from memory ends at once.
        check(unsafe { libc::syscall(libc::SYS_io_submit, self.queue, 1, list.as_mut_ptr()) } as isize)
            .map(drop)
    }

    /// Makes room for other reads.
    fn collect(&self) -> io::Result<()> {
        /// Words of `struct io_event`.
        const EVENT: usize = 4;
        let mut events = [0u64; READS * EVENT];
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes at most this number of events to live memory, and does not wait.
        let collected = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.queue, 0, READS, events.as_mut_ptr(), &raw const now)
        };
        check(collected as isize).map(drop)
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // SAFETY: the queue belongs to this value, and no read is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.queue) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::FromRawFd;

    fn event(flags: libc::c_int) -> File {
        // SAFETY: the call returns a new descriptor.
        unsafe { File::from_raw_fd(libc::eventfd(0, flags)) }
    }

    fn count(event: &mut File) -> u64 {
        let mut bytes = [0; 8];
        event.read_exact(&mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// A blocking eventfd that is full would stop a writer.
    #[test]
    fn a_full_event_does_not_block() {
        let mut event = event(0);
        let shared = OwnedFd::from(event.try_clone().unwrap());
        for _ in 0..3 * READS {
            ring(&shared).unwrap();
        }
        assert_eq!(count(&mut event), 3 * READS as u64);
        event.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        for _ in 0..3 {
            ring(&shared).unwrap();
        }
        assert_eq!(count(&mut event), u64::MAX);
    }

    #[test]
    fn only_eventfds_ring() {
        let file = sealed_memory::create(c"test", 4096).unwrap();
        assert_eq!(ring(&file).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
