//! Writes frames to a capture.

use crate::batch::{Batch, MAX_FRAME};
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use capture::{LinkType, PcapEncoder};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// A driver that writes frames to a pcap file with nanosecond timestamps and receives nothing.
#[derive(Debug)]
pub struct PcapWriter<W> {
    file: W,
    encoder: PcapEncoder,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. The writer should be buffered; it is flushed whenever the switch goes idle.
    pub fn new(mut file: W) -> io::Result<Self> {
        let encoder = PcapEncoder::new(LinkType::ETHERNET).snapshot_length(MAX_FRAME as u32);
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
