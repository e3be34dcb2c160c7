//! `pcap`: frames from a capture file, frames into one.
//!
//! The format is libpcap's: microseconds or nanoseconds, either byte order, Ethernet.

use super::contract::{Driver, DriverError, Received, Sent};
use crate::batch::{Batch, MAX_FRAME};
use std::fmt;
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;

/// Longest record that is skipped rather than refused: what a damaged length makes the reader read.
const MAX_RECORD: u32 = 256 << 10;

/// Why a capture can't be read.
#[derive(Debug)]
pub enum PcapError {
    /// The file can't be read.
    System(io::Error),
    /// It is no capture.
    Magic(u32),
    /// It was captured on another kind of link than Ethernet.
    Link(u32),
}

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => error.fmt(f),
            Self::Magic(magic) => write!(f, "it is no pcap file: it begins with {magic:#010x}"),
            Self::Link(link) => {
                write!(f, "it was captured on a link of type {link}; only Ethernet (1) is read")
            }
        }
    }
}

impl std::error::Error for PcapError {}

impl From<io::Error> for PcapError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Gives a capture's frames, as fast as they are taken, and takes nothing.
#[derive(Debug)]
pub struct PcapReader<R> {
    file: R,
    swapped: bool,
    ended: bool,
}

impl<R: Read> PcapReader<R> {
    /// Reads a capture's header. The reader should be buffered.
    pub fn new(mut file: R) -> Result<Self, PcapError> {
        let mut header = [0; 24];
        file.read_exact(&mut header)?;
        let [m0, m1, m2, m3, .., l0, l1, l2, l3] = header;
        let magic = u32::from_le_bytes([m0, m1, m2, m3]);
        let swapped = match magic {
            MICROSECONDS | NANOSECONDS => false,
            _ if matches!(magic.swap_bytes(), MICROSECONDS | NANOSECONDS) => true,
            _ => return Err(PcapError::Magic(magic)),
        };
        let reader = Self { file, swapped, ended: false };
        match reader.number([l0, l1, l2, l3]) & 0xffff {
            ETHERNET => Ok(reader),
            link => Err(PcapError::Link(link)),
        }
    }

    /// Whether all frames were given, or the rest can't be read.
    pub fn is_at_end(&self) -> bool {
        self.ended
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// The next record into the batch. False: none is left.
    fn record(&mut self, batch: &mut Batch, received: &mut Received) -> io::Result<bool> {
        let mut header = [0; 16];
        match self.file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        let [_, _, _, _, _, _, _, _, c0, c1, c2, c3, ..] = header;
        let length = self.number([c0, c1, c2, c3]);
        if length > MAX_RECORD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a record is impossibly long"));
        }
        let length = length as usize;
        match batch.space() {
            Some(space) if length <= MAX_FRAME => {
                let (frame, _) = space.split_at_mut(length);
                self.file.read_exact(frame)?;
                batch.commit(length);
            }
            _ => {
                let mut rest = (&mut self.file).take(length as u64);
                if io::copy(&mut rest, &mut io::sink())? < length as u64 {
                    return Ok(false);
                }
                received.long += 1;
            }
        }
        Ok(true)
    }
}

impl<R: Read + Send> Driver for PcapReader<R> {
    fn receive(&mut self, batch: &mut Batch) -> Result<Received, DriverError> {
        let mut received = Received::default();
        // Also records that are too long count: a file of many such is no endless visit.
        for _ in 0..batch.room() {
            if self.ended {
                break;
            }
            match self.record(batch, &mut received) {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        return Err(error.into());
                    }
                }
            }
        }
        Ok(received)
    }

    fn send(&mut self, _batch: &Batch, _frames: &[u32]) -> Result<Sent, DriverError> {
        Ok(Sent::default())
    }

    fn prepare_sleep(&mut self) -> Result<bool, DriverError> {
        Ok(self.ended)
    }
}

/// Writes frames into a capture with nanoseconds, and gives nothing.
#[derive(Debug)]
pub struct PcapWriter<W> {
    file: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes a capture's header. The writer should be buffered; it is flushed when the switch has
    /// nothing to do.
    pub fn new(mut file: W) -> io::Result<Self> {
        let words = [NANOSECONDS, 2 | 4 << 16, 0, 0, MAX_FRAME as u32, ETHERNET];
        for word in words {
            file.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { file })
    }
}

impl<W: Write + Send> Driver for PcapWriter<W> {
    fn receive(&mut self, _batch: &mut Batch) -> Result<Received, DriverError> {
        Ok(Received::default())
    }

    fn send(&mut self, batch: &Batch, frames: &[u32]) -> Result<Sent, DriverError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut sent = Sent::default();
        for frame in frames.iter().filter_map(|number| batch.frame(*number as usize)) {
            let length = frame.len() as u32;
            for word in [now.as_secs() as u32, now.subsec_nanos(), length, length] {
                self.file.write_all(&word.to_le_bytes())?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

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

    /// All frames of a file, and how many were too long.
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
        // The other byte order: every word of the headers turned around.
        let mut swapped = file.clone();
        let mut at = 0;
        let mut turn = |from: usize, words: usize| {
            swapped[from..from + 4 * words].chunks_mut(4).for_each(<[u8]>::reverse)
        };
        turn(0, 6);
        at += 24;
        for frame in &frames {
            turn(at, 4);
            at += 16 + frame.len();
        }
        assert_eq!(read(&swapped), Ok((frames.clone(), 0)));
        // Cut anywhere, the whole records before are read.
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
        assert!(read(&endless).unwrap_err().contains("long"));
    }
}
