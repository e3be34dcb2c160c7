//! The memory for frames: a memory file that the kernel and this process use, divided into buffers of 2,048 bytes.
//!
//! Each queue has an area of the file, which is registered at its socket, so offsets begin at 0 in each area. The first buffers
//! of an area are for frames to receive. Only the first queues send, one for each switch thread: behind these buffers, they have
//! as many to send from. The length of the file says how many queues do.

use super::limits::BUFFER;
use super::mapping::Mapping;
use super::ring::SIZE;
use crate::driver::sealed_memory::{self, MemoryFile, SEALS};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Buffers for frames in each direction.
const BUFFERS: usize = SIZE as usize;

/// The number of buffers of a queue, if this number of queues sends.
fn buffers(queue: usize, senders: usize) -> usize {
    if queue < senders { 2 * BUFFERS } else { BUFFERS }
}

/// Bytes of the file for this number of queues, of which some send.
fn file_bytes(queues: usize, senders: usize) -> usize {
    (queues + senders.min(queues)) * BUFFERS * BUFFER
}

/// The memory for frames of one queue.
#[derive(Debug)]
pub(super) struct Umem {
    mapping: Mapping,
    buffers: usize,
}

impl Umem {
    /// Creates the file for this number of queues, of which some send.
    pub(super) fn create(queues: usize, senders: usize) -> io::Result<OwnedFd> {
        sealed_memory::create(c"xdp-frames", file_bytes(queues, senders))
    }

    /// How many queues send, if a descriptor is a file for this number of queues, whose length is sealed.
    pub(super) fn senders(file: &OwnedFd, queues: usize) -> Option<usize> {
        let MemoryFile { seals, length, .. } = MemoryFile::inspect(file).ok().flatten()?;
        let fits = |senders: &usize| length == file_bytes(queues, *senders) as u64;
        (1..=queues).find(fits).filter(|_| seals & SEALS == SEALS)
    }

    /// Maps the area of a queue, if this number of queues sends.
    pub(super) fn map(file: &OwnedFd, queue: usize, senders: usize) -> io::Result<Self> {
        let buffers = buffers(queue, senders);
        let start = file_bytes(queue, senders) as i64;
        let mapping = Mapping::new(Some(file.as_fd()), start, buffers * BUFFER)?;
        Ok(Self { mapping, buffers })
    }

    /// What the kernel must know of the area, which is mapped in this process.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        // SAFETY: zeros are a valid registration, without flags and additional bytes.
        let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        registration.addr = self.mapping.address();
        registration.len = (self.buffers * BUFFER) as u64;
        registration.chunk_size = BUFFER as u32;
        registration
    }

    /// The offsets of the buffers for frames to receive.
    pub(super) fn receive_buffers() -> impl Iterator<Item = u64> {
        (0..BUFFERS).map(|number| (number * BUFFER) as u64)
    }

    /// The offsets of the buffers to send from.
    pub(super) fn send_buffers(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        (BUFFERS..self.buffers).map(|number| (number * BUFFER) as u64)
    }

    /// The buffer that contains an offset, if it is one for frames to receive.
    #[inline(always)]
    pub(super) fn receive_buffer(offset: u64) -> Option<u64> {
        (offset < (BUFFERS * BUFFER) as u64).then_some(offset - offset % BUFFER as u64)
    }

    /// The buffer that begins at an offset, if it is one to send from.
    #[inline(always)]
    pub(super) fn send_buffer(&self, offset: u64) -> Option<u64> {
        let range = (BUFFERS * BUFFER) as u64..(self.buffers * BUFFER) as u64;
        (range.contains(&offset) && offset.is_multiple_of(BUFFER as u64)).then_some(offset)
    }

    /// Copies a received frame. Returns false if it is longer than its buffer.
    #[inline(always)]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let is_inside = (offset % BUFFER as u64) as usize + into.len() <= BUFFER;
        is_inside && self.mapping.read(offset as usize, into)
    }

    /// Copies a frame to a buffer. Returns false if it is too long.
    #[inline(always)]
    pub(super) fn write(&self, buffer: u64, frame: &[u8]) -> bool {
        frame.len() <= BUFFER && self.mapping.write(buffer as usize, frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_follow_each_other() {
        for (queues, senders) in [(1, 1), (4, 1), (4, 3), (16, 16)] {
            let file = Umem::create(queues, senders).unwrap();
            assert_eq!(Umem::senders(&file, queues), Some(senders));
        }
        let file = Umem::create(2, 1).unwrap();
        assert_eq!([1, 3, 4].map(|queues| Umem::senders(&file, queues)), [None; 3]);
        let both = Umem::create(2, 2).unwrap();
        let last = Umem::map(&both, 1, 2).unwrap();
        assert_eq!(last.send_buffers().count(), BUFFERS);
        assert!(last.write(last.send_buffers().next_back().unwrap(), &[1; BUFFER]));
        let (first, second) = (Umem::map(&file, 0, 1).unwrap(), Umem::map(&file, 1, 1).unwrap());
        assert_eq!(Umem::receive_buffers().count(), BUFFERS);
        assert_eq!((first.send_buffers().count(), second.send_buffers().count()), (BUFFERS, 0));
        let last = first.send_buffers().next_back().unwrap();
        assert!(first.write(last, &[1; BUFFER]) && !first.write(last, &[1; BUFFER + 1]));
        let mut frame = [0; 4];
        assert!(second.read(0, &mut frame) && frame == [0; 4]);
        assert!(first.read(last + BUFFER as u64 - 4, &mut frame) && frame == [1; 4]);
        assert_eq!(first.registration().len, 2 * second.registration().len);
    }

    #[test]
    fn offsets_are_checked() {
        let file = Umem::create(1, 1).unwrap();
        let umem = Umem::map(&file, 0, 1).unwrap();
        let sent = (BUFFERS * BUFFER) as u64;
        assert_eq!(Umem::receive_buffer(256), Some(0));
        assert_eq!(Umem::receive_buffer(sent - 1), Some(sent - BUFFER as u64));
        assert_eq!((Umem::receive_buffer(sent), Umem::receive_buffer(u64::MAX)), (None, None));
        assert_eq!((umem.send_buffer(sent), umem.send_buffer(2 * sent)), (Some(sent), None));
        assert_eq!(
            (umem.send_buffer(sent + 1), umem.send_buffer(0), umem.send_buffer(u64::MAX)),
            (None, None, None)
        );
        let mut frame = [0; 60];
        assert!(umem.read(BUFFER as u64 - 60, &mut frame) && !umem.read(BUFFER as u64 - 59, &mut frame));
        assert_eq!(Umem::senders(&std::fs::File::open("/dev/null").unwrap().into(), 1), None);
    }
}
