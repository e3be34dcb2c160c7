//! Devices whose packets come from a capture, and go into one: `--device 0=pcap:in.pcap,out.pcap`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

use capture::{Decoder, LinkType, PcapEncoder};
use element::{Descriptor, Device, IoError, Reader, Writer};
use packet::{Batch, Pool, Timestamp};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use super::descriptors::Descriptors;
use super::device_parts::HEADROOM;
use super::files::{self, ReadProgress, io_error};

/// The files of a device with the driver pcap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturePaths {
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
}

/// What an element does with a device.
#[derive(Clone, Copy)]
pub(super) struct CaptureUse {
    pub(super) link: LinkType,
    pub(super) receives: bool,
    pub(super) sends: bool,
    /// Maximum bytes of a packet to keep.
    pub(super) snap: usize,
}

/// The captures that are written, by their paths. All devices with a path share its file, also those of a configuration
/// that replaces another.
#[derive(Default)]
pub(super) struct CaptureFiles {
    written: RefCell<BTreeMap<String, Weak<RefCell<CaptureWriter>>>>,
}

impl CaptureFiles {
    /// Opens what an element needs of a device with these files.
    pub(super) fn open(
        &self,
        name: &str,
        files: &CapturePaths,
        usage: CaptureUse,
        descriptors: &Descriptors,
        progress: &ReadProgress,
    ) -> Result<Box<dyn Device>, IoError> {
        let about = |path: &str, error| in_file(path, &error);
        let reader = match &files.read {
            Some(path) if usage.receives => {
                Some(CaptureReader::open(path, usage, progress).map_err(|error| about(path, error))?)
            }
            _ => None,
        };
        let writer = match &files.write {
            Some(path) if usage.sends => {
                Some(self.writer(path, usage.link).map_err(|error| about(path, error))?)
            }
            // It is known to send nothing else.
            None if !usage.receives => return Err(no_file_to_write(name, files)),
            _ => None,
        };
        // Always ready: elements stop watching it when the capture has ended.
        let event = eventfd(1, EventfdFlags::CLOEXEC).map_err(|error| io_error(&io::Error::from(error)))?;
        let event = Rc::new(event);
        let descriptor = descriptors.register(&event);
        let (name, files) = (name.to_string(), files.clone());
        Ok(Box::new(CaptureDevice { name, files, reader, writer, descriptor, _event: event }))
    }

    fn writer(&self, path: &str, link: LinkType) -> Result<Rc<RefCell<CaptureWriter>>, IoError> {
        let mut written = self.written.borrow_mut();
        if let Some(writer) = written.get(path).and_then(Weak::upgrade) {
            let found = writer.borrow().link;
            return if found == link { Ok(writer) } else { Err(other_link(link, found)) };
        }
        let file = files::create(path, false)?;
        let encoder = PcapEncoder::new(link);
        let writer = Rc::new(RefCell::new(CaptureWriter { file, encoder, link, has_header: false }));
        written.insert(path.into(), Rc::downgrade(&writer));
        Ok(writer)
    }
}

/// The Ethernet address of a device whose packets are in captures: one for local use, made of its name.
pub(super) fn address(name: &str) -> [u8; 6] {
    // FNV-1a.
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let [a, b, c, d] = hash.to_be_bytes();
    [2, 0, a, b, c, d]
}

fn in_file(path: &str, error: &IoError) -> IoError {
    IoError::Failed(format!("{path}: {error}"))
}

fn no_file_to_write(name: &str, files: &CapturePaths) -> IoError {
    let read = files.read.as_deref().unwrap_or_default();
    IoError::NotFound(format!(
        "no file for the packets that are sent: use --device {name}=pcap:{read},OUT.pcap"
    ))
}

fn other_link(expected: LinkType, found: LinkType) -> IoError {
    let kind = |link| match link {
        LinkType::ETHERNET => "Ethernet frames".to_string(),
        LinkType::RAW => "IP packets".to_string(),
        LinkType(number) => format!("packets of link type {number}"),
    };
    IoError::Failed(format!("the capture has {}, and the element needs {}", kind(found), kind(expected)))
}

/// A device with a capture for each direction that it is used in.
struct CaptureDevice {
    name: String,
    files: CapturePaths,
    reader: Option<CaptureReader>,
    writer: Option<Rc<RefCell<CaptureWriter>>>,
    descriptor: Descriptor,
    /// Keeps the descriptor registered.
    _event: Rc<OwnedFd>,
}

impl Device for CaptureDevice {
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let path = self.files.read.as_deref().unwrap_or_default();
        reader.receive(pool, most, into).map_err(|error| in_file(path, &error))
    }

    fn send(&mut self, batch: &mut Batch) -> Result<(), IoError> {
        let Some(writer) = &self.writer else { return Err(no_file_to_write(&self.name, &self.files)) };
        let path = self.files.write.as_deref().unwrap_or_default();
        writer.borrow_mut().send(batch).map_err(|error| in_file(path, &error))?;
        batch.clear();
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.reader.as_ref().is_none_or(|reader| reader.is_at_end)
    }

    fn descriptor(&self) -> Option<Descriptor> {
        Some(self.descriptor)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn link(&self) -> Option<[u8; 6]> {
        Some(address(&self.name))
    }

    fn lost(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.lost + reader.decoder.bad_records())
    }
}

/// A capture that is read.
struct CaptureReader {
    file: Box<dyn Reader>,
    decoder: Decoder,
    usage: CaptureUse,
    is_at_end: bool,
    /// Packets of other link types, and those for which the pool had no buffer.
    lost: u64,
}

impl CaptureReader {
    /// Opens a capture, and reads its start.
    fn open(path: &str, usage: CaptureUse, progress: &ReadProgress) -> Result<CaptureReader, IoError> {
        let file = files::open(path, progress)?;
        let mut reader = CaptureReader { file, decoder: Decoder::new(), usage, is_at_end: false, lost: 0 };
        loop {
            match reader.decoder.link_type().map_err(|error| IoError::Failed(error.to_string()))? {
                Some(link) if link == usage.link => return Ok(reader),
                Some(link) => return Err(other_link(usage.link, link)),
                None if reader.is_at_end && reader.decoder.position() == 0 => {
                    return Err(IoError::Failed("not a capture: the file is too short".into()));
                }
                // A pcapng file without interfaces has no packets either.
                None if reader.is_at_end => return Ok(reader),
                None => reader.fill()?,
            }
        }
    }

    fn fill(&mut self) -> Result<(), IoError> {
        let count = self.file.read(self.decoder.space()).inspect_err(|_| self.is_at_end = true)?;
        self.is_at_end = count == 0;
        self.decoder.filled(count);
        Ok(())
    }

    /// Appends at most `most` packets. Records without a packet count too, so that a file full of them is read in turns.
    fn receive(&mut self, pool: &Pool, most: usize, into: &mut Batch) -> Result<(), IoError> {
        let mut records = 0;
        while records < most && !self.is_at_end {
            let record = match self.decoder.record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.fill()?;
                    continue;
                }
                Err(error) => {
                    self.is_at_end = true;
                    return Err(IoError::Failed(error.to_string()));
                }
            };
            records += 1;
            let kept = record.bytes.get(..self.usage.snap).unwrap_or(record.bytes);
            let packet = pool.allocate_with(HEADROOM, kept.len()).filter(|_| record.link == self.usage.link);
            let Some(mut packet) = packet else {
                self.lost += 1;
                continue;
            };
            packet.data_mut().copy_from_slice(kept);
            packet.set_timestamp(Timestamp::from_nanos(record.time_ns));
            packet.set_extra_length(record.original_length.saturating_sub(kept.len() as u32));
            packet.set_mac(0);
            into.push(packet);
        }
        Ok(())
    }
}

/// A capture that is written.
struct CaptureWriter {
    file: Box<dyn Writer>,
    encoder: PcapEncoder,
    link: LinkType,
    has_header: bool,
}

impl CaptureWriter {
    /// Writes packets with their timestamps, or else with the present time.
    fn send(&mut self, batch: &Batch) -> Result<(), IoError> {
        self.write_header()?;
        let mut records = Vec::new();
        for packet in batch.iter() {
            let mut time = packet.timestamp();
            if time.is_zero() {
                let now = clock_gettime(ClockId::Realtime);
                time = Timestamp::from_parts(now.tv_sec, now.tv_nsec as u32);
            }
            self.encoder.record(time.nanos(), packet.len() as u32, packet.data(), &mut records);
        }
        self.file.write(&records)
    }

    fn write_header(&mut self) -> Result<(), IoError> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        self.file.write(&self.encoder.file_header())
    }
}

impl Drop for CaptureWriter {
    fn drop(&mut self) {
        // No caller is left for an error.
        let _ = self.write_header().and_then(|()| self.file.flush());
    }
}
