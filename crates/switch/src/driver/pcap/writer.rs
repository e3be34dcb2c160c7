//! Writes frames to a capture.

use super::PcapError;
use crate::batch::{Batch, MAX_FRAME};
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use capture::{Decoder, LinkType, PcapEncoder};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

/// A driver that writes frames to a pcap file with nanosecond timestamps and receives nothing.
#[derive(Debug)]
pub struct PcapWriter<W> {
    file: W,
    encoder: PcapEncoder,
}

fn encoder() -> PcapEncoder {
    PcapEncoder::new(LinkType::ETHERNET).snapshot_length(MAX_FRAME as u32)
}

impl PcapWriter<BufWriter<File>> {
    /// Writes to a file that is empty, or that a writer of this kind began. The file goes on after its last whole
    /// record: a writer that was killed may have left a part of one.
    pub fn resume(mut file: File) -> Result<Self, PcapError> {
        let header = encoder().file_header();
        let mut found = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        Read::by_ref(&mut file).take(header.len() as u64).read_to_end(&mut found)?;
        if !header.starts_with(&found) {
            return Err(PcapError::NotOurs);
        }
        let mut end = 0;
        if found.len() == header.len() {
            let mut decoder = Decoder::new();
            decoder.feed(&found);
            loop {
                while decoder.record().map_err(PcapError::Format)?.is_some() {}
                end = decoder.position();
                match file.read(decoder.space()) {
                    Ok(0) => break,
                    Ok(count) => decoder.filled(count),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        match end {
            0 => Ok(Self::new(BufWriter::new(file))?),
            _ => Ok(Self { file: BufWriter::new(file), encoder: encoder() }),
        }
    }
}

impl PcapWriter<BufWriter<File>> {
    /// The file.
    pub(super) fn recording(&self) -> BorrowedFd<'_> {
        self.file.get_ref().as_fd()
    }
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. The writer should be buffered; it is flushed whenever the switch goes idle.
    pub fn new(mut file: W) -> io::Result<Self> {
        let encoder = encoder();
        file.write_all(&encoder.file_header())?;
        Ok(Self { file, encoder })
    }
}

impl<W: Write + Send> Driver for PcapWriter<W> {
    fn receive(&mut self, _batch: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let mut sent = Sent::default();
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            self.file.write_all(&self.encoder.record_header(time_ns, frame.len(), frame.len() as u32))?;
            self.file.write_all(frame)?;
            sent.frames += 1;
            sent.bytes += frame.len() as u64;
        }
        Ok(sent)
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        self.file.flush()?;
        Ok(true)
    }
}
