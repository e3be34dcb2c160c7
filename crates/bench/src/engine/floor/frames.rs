//! Reads the frames of a capture into buffers of their own, as a program that keeps packets has to.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum length of a frame.
const BUFFER: usize = 2048;
/// Bytes read from the file at once.
const READ_SIZE: usize = 128 << 10;
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Frames given to the job at once.
const BATCH: usize = 32;

/// Frames, each at the start of a buffer with 64 bytes of room behind the longest one, so that the starts fall into different
/// sets of the cache.
pub(super) struct Frames {
    buffers: Vec<[u8; BUFFER + 64]>,
    lengths: [usize; BATCH],
    count: usize,
}

impl Frames {
    /// The frames.
    #[inline]
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let lengths = &self.lengths[..self.count];
        self.buffers.iter_mut().zip(lengths).map(|(buffer, length)| &mut buffer[..*length])
    }
}

/// Passes the frames of a pcap file in native byte order to `job`, batch by batch. Returns their number.
pub(super) fn for_each_batch(path: &Path, mut job: impl FnMut(&mut Frames)) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.read_exact(&mut [0; FILE_HEADER])?;
    let mut frames = Frames { buffers: vec![[0; BUFFER + 64]; BATCH], lengths: [0; BATCH], count: 0 };
    let mut bytes = vec![0; READ_SIZE + BUFFER + RECORD_HEADER];
    let (mut unread, mut total) = (0, 0);
    loop {
        let read = file.read(&mut bytes[unread..][..READ_SIZE])?;
        let mut rest = &bytes[..unread + read];
        while let Some((header, more)) = rest.split_first_chunk::<RECORD_HEADER>() {
            let length = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]) as usize;
            if length > BUFFER {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is longer than 2048 bytes"));
            }
            let Some((frame, after)) = more.split_at_checked(length) else { break };
            frames.buffers[frames.count][..length].copy_from_slice(frame);
            frames.lengths[frames.count] = length;
            frames.count += 1;
            rest = after;
            if frames.count == BATCH {
                job(&mut frames);
                total += BATCH as u64;
                frames.count = 0;
            }
        }
        let start = unread + read - rest.len();
        unread = rest.len();
        bytes.copy_within(start..start + unread, 0);
        if read == 0 {
            job(&mut frames);
            return Ok(total + frames.count as u64);
        }
    }
}
