//! Reads the frames of a capture.

use super::PcapError;
use crate::batch::{Batch, MAX_FRAME};
use crate::driver::contract::{Driver, DriverError, Received, Sent};
use capture::{Decoder, LinkType};
use std::io::Read;

/// A driver that receives a capture's frames as fast as possible and sends nothing.
#[derive(Debug)]
pub struct PcapReader<R> {
    file: R,
    decoder: Decoder,
    /// Records that the decoder skipped and that were already reported.
    bad_records: u64,
    is_at_end: bool,
}

impl<R: Read> PcapReader<R> {
    /// Reads the header. `file` need not be buffered.
    pub fn new(file: R) -> Result<Self, PcapError> {
        let mut reader = Self { file, decoder: Decoder::new(), bad_records: 0, is_at_end: false };
        loop {
            match reader.decoder.link_type().map_err(PcapError::Format)? {
                Some(LinkType::ETHERNET) => return Ok(reader),
                Some(link) => return Err(PcapError::Link(link)),
                None if reader.is_at_end && reader.decoder.position() == 0 => {
                    return Err(PcapError::Truncated);
                }
                // A pcapng file without interfaces has no packets either.
                None if reader.is_at_end => return Ok(reader),
                None => reader.fill()?,
            }
        }
    }

    /// Whether all frames were received, or the rest cannot be read.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Reads more of the file into the buffer.
    fn fill(&mut self) -> Result<(), std::io::Error> {
        match self.file.read(self.decoder.space()) {
            Ok(0) => self.is_at_end = true,
            Ok(count) => self.decoder.filled(count),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.is_at_end = true;
                return Err(error);
            }
        }
        Ok(())
    }
}

impl<R: Read + Send> Driver for PcapReader<R> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        // Unusable records count too: a file full of them must not make a visit endless.
        let mut visits = batch.room();
        while visits > 0 && !self.is_at_end {
            match self.decoder.record() {
                Ok(Some(record)) => {
                    visits -= 1;
                    if record.link != LinkType::ETHERNET {
                        received.faulty += 1;
                    } else if record.bytes.len() > MAX_FRAME {
                        received.long += 1;
                    } else {
                        batch.push(record.bytes);
                    }
                }
                Ok(None) => self.fill()?,
                Err(error) => {
                    self.is_at_end = true;
                    return Err(DriverError::Capture(error));
                }
            }
        }
        let bad_records = self.decoder.bad_records();
        received.faulty += bad_records - self.bad_records;
        self.bad_records = bad_records;
        Ok(received)
    }

    fn send(&mut self, _batch: &Batch, _frames: &[u32]) -> Result<Sent, DriverError> {
        Ok(Sent::default())
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(self.is_at_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::PcapWriter;
    use capture::{PacketOptions, PcapngEncoder};

    fn written(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut batch = Batch::new(frames.len());
        for frame in frames {
            assert!(batch.push(frame));
        }
        let numbers: Vec<u32> = (0..frames.len() as u32).collect();
        let mut file = Vec::new();
        let mut writer = PcapWriter::new(&mut file).unwrap();
        assert_eq!(writer.send(&batch, &numbers).unwrap().frames, frames.len() as u64);
        file
    }

    /// All frames of a file, and the number of frames that were too long.
    fn read(file: &[u8]) -> Result<(Vec<Vec<u8>>, u64), String> {
        let mut reader = PcapReader::new(file).map_err(|error| error.to_string())?;
        let (mut frames, mut long) = (Vec::new(), 0);
        while !reader.is_at_end() {
            let mut batch = Batch::new(3);
            long += reader.receive(&mut batch).map_err(|error| error.to_string())?.long;
            frames.extend(batch.frames().map(<[u8]>::to_vec));
        }
        Ok((frames, long))
    }

    #[test]
    fn what_is_written_is_read() {
        let frames: Vec<Vec<u8>> = [60, 0, 2048, 61, 1514].map(|length| vec![length as u8; length]).into();
        let file = written(&frames);
        assert_eq!(read(&file), Ok((frames.clone(), 0)));
        // The other byte order: all header fields are swapped.
        let mut swapped = file.clone();
        let mut reverse = |from: usize, size: usize, count: usize| {
            swapped[from..from + size * count].chunks_mut(size).for_each(<[u8]>::reverse)
        };
        reverse(0, 4, 1);
        reverse(4, 2, 2);
        reverse(8, 4, 4);
        let mut at = 24;
        for frame in &frames {
            reverse(at, 4, 4);
            at += 16 + frame.len();
        }
        assert_eq!(read(&swapped), Ok((frames.clone(), 0)));
        // Of a file truncated anywhere, the complete records are read.
        for length in 24..file.len() {
            let (some, _) = read(&file[..length]).unwrap();
            assert_eq!(some, frames[..some.len()]);
        }
    }

    #[test]
    fn other_files_are_refused_and_long_records_skipped() {
        assert!(read(b"").is_err() && read(&[7; 100]).is_err());
        let mut file = written(&[vec![1; 60], vec![2; 60]]);
        file[20] = 101;
        assert!(read(&file).unwrap_err().contains("101"));
        let mut long = written(&[]);
        for word in [0u32, 0, 5000, 5000] {
            long.extend_from_slice(&word.to_le_bytes());
        }
        long.extend_from_slice(&[9; 5000]);
        long.extend_from_slice(&written(&[vec![3; 60]])[24..]);
        assert_eq!(read(&long), Ok((vec![vec![3; 60]], 1)));
        let mut endless = written(&[]);
        endless.extend_from_slice(&[0xff; 16]);
        assert!(read(&endless).unwrap_err().contains("bad packet header"));
    }

    #[test]
    fn pcapng_is_read_and_frames_of_other_links_are_counted() {
        let (mut encoder, mut file) = (PcapngEncoder::new(), Vec::new());
        encoder.section(&mut file);
        let ethernet = encoder.interface(LinkType::ETHERNET, "", 0, &mut file);
        let raw = encoder.interface(LinkType::RAW, "", 0, &mut file);
        for interface in [ethernet, raw, ethernet, 7] {
            encoder.packet(interface, 5, 60, &[1; 60], &PacketOptions::default(), &mut file);
        }
        let mut reader = PcapReader::new(file.as_slice()).unwrap();
        let mut batch = Batch::new(10);
        assert_eq!(reader.receive(&mut batch).unwrap(), Received { faulty: 2, ..Received::default() });
        assert_eq!(batch.len(), 2);
    }
}
