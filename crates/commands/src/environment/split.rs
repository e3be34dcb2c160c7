//! Captures of shards: a shard reads its packets of a capture, and what shards wrote is put together by time.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use capture::{Decoder, LinkType, PcapEncoder};
use element::{IoError, Reader, Writer};
use router::{Destination, Steering};

use super::files::{self, ReadProgress};
use super::parts::{Outputs, SharedMemory, part};

/// Bytes of packets that are prepared at once.
const CHUNK: usize = 128 << 10;

/// Reads those packets of a capture that belong to a shard, as a capture of their own.
pub(crate) struct SplitReader {
    inner: Box<dyn Reader>,
    steering: Rc<RefCell<Steering>>,
    shard: u32,
    decoder: Decoder,
    link: Option<LinkType>,
    /// What was prepared, and how much of it was read.
    encoded: Vec<u8>,
    position: usize,
    is_exhausted: bool,
}

impl SplitReader {
    pub(crate) fn new(inner: Box<dyn Reader>, steering: Rc<RefCell<Steering>>, shard: u32) -> SplitReader {
        SplitReader {
            inner,
            steering,
            shard,
            decoder: Decoder::new(),
            link: None,
            encoded: Vec::new(),
            position: 0,
            is_exhausted: false,
        }
    }

    /// Prepares the next packets. There are none at the end.
    fn prepare(&mut self) -> Result<(), IoError> {
        (self.position, self.encoded) = (0, std::mem::take(&mut self.encoded));
        self.encoded.clear();
        if self.link.is_none() {
            self.read_header()?;
        }
        let Some(link) = self.link else { return Ok(()) };
        let encoder = PcapEncoder::new(link);
        let steering = self.steering.borrow();
        while self.encoded.len() < CHUNK && !self.is_exhausted {
            let Some(record) = self.decoder.record().map_err(failed)? else {
                let count = self.inner.read(self.decoder.space())?;
                self.decoder.filled(count);
                self.is_exhausted = count == 0;
                continue;
            };
            if record.link != link {
                return Err(failed("packets of several link types can't be spread over shards"));
            }
            let destination = match link {
                LinkType::ETHERNET => steering.of_frame(record.bytes),
                _ => steering.of_ip(record.bytes),
            };
            if matches!(destination, Destination::All) || destination == Destination::Shard(self.shard) {
                encoder.record(record.time_ns, record.original_length, record.bytes, &mut self.encoded);
            }
        }
        Ok(())
    }

    /// Reads up to the link type, and prepares the file header. An empty file stays one.
    fn read_header(&mut self) -> Result<(), IoError> {
        while self.link.is_none() && !self.is_exhausted {
            let count = self.inner.read(self.decoder.space())?;
            self.decoder.filled(count);
            self.is_exhausted = count == 0;
            self.link = self.decoder.link_type().map_err(failed)?;
        }
        let raw = [LinkType::RAW, LinkType::IPV4, LinkType::IPV6];
        match self.link {
            Some(link) if link != LinkType::ETHERNET && !raw.contains(&link) => {
                Err(failed(format_args!("packets of link type {} can't be spread over shards", link.0)))
            }
            Some(link) => {
                self.encoded.extend_from_slice(&PcapEncoder::new(link).file_header());
                Ok(())
            }
            None if self.decoder.position() == 0 && self.decoder.unread() > 0 => {
                Err(failed("not a tcpdump file (too short)"))
            }
            None => Ok(()),
        }
    }
}

impl Reader for SplitReader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, IoError> {
        if self.position == self.encoded.len() {
            self.prepare()?;
        }
        let rest = self.encoded.get(self.position..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(rest);
        }
        self.position += count;
        Ok(count)
    }

    fn size(&self) -> Option<u64> {
        self.inner.size()
    }

    fn position(&self) -> u64 {
        self.inner.position()
    }
}

fn failed(error: impl std::fmt::Display) -> IoError {
    IoError::Failed(error.to_string())
}

/// The packets of a capture in memory that belong to each of several shards, as captures of their own.
pub(crate) fn split(bytes: &Arc<[u8]>, shards: u32) -> Result<Vec<Arc<[u8]>>, IoError> {
    let steering = Rc::new(RefCell::new(Steering::new(shards)));
    let part = |shard| {
        let whole = Box::new(SharedMemory { bytes: bytes.clone(), position: 0 });
        let mut reader = SplitReader::new(whole, steering.clone(), shard);
        let mut part = Vec::new();
        loop {
            reader.prepare()?;
            if reader.encoded.is_empty() {
                return Ok(part.into());
            }
            part.extend_from_slice(&reader.encoded);
        }
    };
    (0..shards).map(part).collect()
}

/// A capture that a shard wrote.
struct Part {
    file: Box<dyn Reader>,
    decoder: Decoder,
    /// The next packet: time, original length and bytes.
    next: Option<(i64, u32, Vec<u8>)>,
}

impl Part {
    fn advance(&mut self) -> Result<(), IoError> {
        loop {
            if let Some(record) = self.decoder.record().map_err(failed)? {
                self.next = Some((record.time_ns, record.original_length, record.bytes.to_vec()));
                return Ok(());
            }
            let count = self.file.read(self.decoder.space())?;
            if count == 0 {
                self.next = None;
                return Ok(());
            }
            self.decoder.filled(count);
        }
    }
}

/// Puts the parts of a capture together in order of time, and removes them.
pub(crate) fn join(path: &str, shards: u32) -> Result<(), IoError> {
    let names: Vec<String> = (0..shards).map(|shard| part(path, shard)).collect();
    let result = join_parts(path, &names);
    remove(&names);
    result
}

/// Removes what was written.
pub(crate) fn remove_parts(outputs: &Outputs, shards: u32) {
    for path in outputs.take() {
        remove(&(0..shards).map(|shard| part(&path, shard)).collect::<Vec<String>>());
    }
}

fn remove(parts: &[String]) {
    for part in parts {
        // What does not exist need not be removed.
        let _ = std::fs::remove_file(part);
    }
}

fn join_parts(path: &str, names: &[String]) -> Result<(), IoError> {
    let open = |name: &String| files::open(name, &ReadProgress::default());
    let mut header = [0; capture::FILE_HEADER_LENGTH];
    let mut parts = Vec::new();
    for name in names {
        let mut part = Part { file: open(name)?, decoder: Decoder::new(), next: None };
        part.advance()?;
        parts.push(part);
    }
    if let Some(first) = names.first() {
        open(first)?.read(&mut header)?;
    }
    let number = |at: usize| header.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let link = LinkType(number(20).unwrap_or(LinkType::ETHERNET.0));
    // The first byte of the magic number tells the resolution.
    let encoder = PcapEncoder::new(link)
        .snapshot_length(number(16).unwrap_or_default())
        .nanoseconds(header.first() == Some(&0x4d));
    let mut file = files::create(path, false)?;
    let mut buffer = header.to_vec();
    loop {
        let times = parts.iter().enumerate().filter_map(|(index, part)| Some((part.next.as_ref()?.0, index)));
        let Some((_, earliest)) = times.min() else { break };
        let Some(part) = parts.get_mut(earliest) else { break };
        if let Some((time, length, bytes)) = &part.next {
            encoder.record(*time, *length, bytes, &mut buffer);
        }
        part.advance()?;
        if buffer.len() >= CHUNK {
            Writer::write(file.as_mut(), &buffer)?;
            buffer.clear();
        }
    }
    file.write(&buffer)?;
    file.flush()
}
