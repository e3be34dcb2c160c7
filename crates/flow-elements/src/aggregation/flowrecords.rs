//! The file of flow records.

use alloc::collections::BTreeMap;
use core::net::Ipv4Addr;

use element::prelude::*;
use element::{Writer, number_format};

/// The two ends of a flow: sender and receiver of its first packet.
pub(super) type Ends = [(Ipv4Addr, u16); 2];

/// A file with an XML element for each finished flow, and the records of the unfinished ones.
#[derive(Default)]
pub(super) struct FlowRecords {
    name: String,
    file: Option<Box<dyn Writer>>,
    /// The element that reads the packets.
    source: Option<String>,
    /// Name of the file that the source reads.
    origin: String,
    begun: bool,
    flows: BTreeMap<u32, Record>,
}

/// The record of a flow.
struct Record {
    first: Timestamp,
    last: Timestamp,
    /// Packet count of each direction.
    packets: [u64; 2],
    /// Position of its first packet in the file that it was read from.
    position: u64,
}

impl FlowRecords {
    /// Opens the file called `name`. `source` is the element that may know packet positions. An existing file is
    /// overwritten when the first flow is written.
    pub(super) fn open(cx: &Context, name: &str, source: Option<String>) -> Result<FlowRecords, SetupError> {
        let file = cx.environment().create(name, false);
        let file = Some(file.map_err(|error| SetupError::new(format_args!("{name}: {error}")))?);
        let origin =
            source.as_ref().and_then(|source| cx.read_handler(&format!("{source}.filename"), "").ok());
        let origin = origin.map_or_else(String::new, |origin| origin.trim().into());
        Ok(FlowRecords { name: name.into(), file, source, origin, begun: false, flows: BTreeMap::new() })
    }

    /// Whether a file is open.
    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Starts the record of a flow with its first packet.
    pub(super) fn begin(&mut self, cx: &Context, number: u32, packet: &Packet) {
        if self.is_open() {
            let position = self.source.as_ref().map(|source| format!("{source}.packet_filepos"));
            let position = position.and_then(|path| cx.read_handler(&path, "").ok()?.trim().parse().ok());
            let first = packet.timestamp();
            let record = Record { first, last: first, packets: [0, 0], position: position.unwrap_or(0) };
            self.flows.insert(number, record);
        }
    }

    /// Counts a packet of a flow; its paint is its direction.
    pub(super) fn count(&mut self, number: u32, packet: &Packet) {
        if let Some(record) = self.flows.get_mut(&number) {
            record.last = packet.timestamp();
            if let Some(count) = record.packets.get_mut(usize::from(packet.paint())) {
                *count += 1;
            }
        }
    }

    /// Writes the record of a finished flow.
    pub(super) fn end(&mut self, cx: &Context, number: u32, ends: Ends) {
        let Some(record) = self.flows.remove(&number) else { return };
        let [(source, source_port), (destination, destination_port)] = ends;
        let [there, back] = record.packets;
        let position = match record.position {
            0 => String::new(),
            position => format!(" filepos='{position}'"),
        };
        self.write(
            cx,
            &format!(
                "<flow aggregate='{number}' src='{source}' sport='{source_port}' dst='{destination}' \
                 dport='{destination_port}' begin='{}' duration='{}'{position}>\n  \
                 <stream dir='0' packets='{there}' /><stream dir='1' packets='{back}' />\n</flow>\n",
                number_format::timestamp(record.first),
                number_format::timestamp(record.last - record.first),
            ),
        );
    }

    /// Completes the file, after all flows have finished.
    pub(super) fn close(&mut self, cx: &Context) {
        self.write(cx, "</trace>\n");
        if let Some(mut file) = self.file.take()
            && let Err(error) = file.flush()
        {
            cx.log(&format!("{}: {}: {error}", cx.name(), self.name));
        }
    }

    /// Continues the file and flows of the previous element if the file name is the same. Otherwise starts empty.
    pub(super) fn inherit(&mut self, old: &mut FlowRecords) {
        if self.is_open() && self.name == old.name {
            let source = self.source.take();
            *self = FlowRecords { source, ..core::mem::take(old) };
        }
    }

    fn write(&mut self, cx: &Context, text: &str) {
        let Some(file) = &mut self.file else { return };
        let mut head = String::new();
        if !self.begun {
            self.begun = true;
            head += "<?xml version='1.0' standalone='yes'?>\n<trace";
            if !self.origin.is_empty() {
                head += &format!(" file='{}'", escaped(&self.origin));
            }
            head += ">\n";
        }
        let result = file.write((head + text).as_bytes());
        if let Err(error) = result {
            cx.log(&format!("{}: {}: {error}", cx.name(), self.name));
            self.file = None;
        }
    }
}

/// Escapes text for use between quotes.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
