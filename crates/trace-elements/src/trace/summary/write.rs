//! Writes summary dumps.

use super::dissected::DissectedPacket;
use super::field::{Field, Width};
use super::value::value;
use super::{MAJOR, MINOR, encode};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use packet::Packet;

/// Writes the fields of packets to buffers; the caller writes these to a file.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The fields in the order of the dump.
    pub fields: Vec<Field>,
    /// Whether records are binary rather than lines.
    pub binary: bool,
    /// Whether to precede a packet with a line about invalid headers.
    pub bad_packets: bool,
    /// Whether to report packets shorter than their IP length.
    pub careful: bool,
    /// Whether lengths include the bytes that packets represent besides their own.
    pub extra_length: bool,
}

/// The bit of a binary record's length that marks a line of text.
const TEXT_RECORD: u32 = 1 << 31;

/// Bytes of most lines.
const USUAL_LINE: usize = 128;

impl Writer {
    /// Creates a writer of lines with these fields.
    pub fn new(fields: Vec<Field>) -> Writer {
        Writer { fields, binary: false, bad_packets: false, careful: true, extra_length: true }
    }

    /// The first field that can't be stored in a binary dump.
    pub fn not_binary(&self) -> Option<Field> {
        self.fields.iter().copied().find(|field| field.width() == Width::Never)
    }

    /// Appends the lines that start a dump. `comments` follow the version, each a line without its terminator.
    pub fn header(&self, comments: &[String], out: &mut Vec<u8>) {
        let mut text = alloc::format!("!IPSummaryDump {MAJOR}.{MINOR}\n");
        for comment in comments {
            let _ = writeln!(text, "{comment}");
        }
        text.push_str("!data");
        for field in &self.fields {
            // In text both timestamps are the same.
            let plain = *field == Field::NanoTimestamp && !self.binary;
            let _ = write!(text, " {}", if plain { Field::Timestamp.name() } else { field.name() });
        }
        text.push_str(if self.binary { "\n!binary\n" } else { "\n" });
        out.extend(text.bytes());
    }

    /// Appends a packet. Its extra length is set to what exceeds the IP length.
    pub fn packet(&self, packet: &mut Packet, out: &mut Vec<u8>) {
        let extra = {
            let headers = self.fields.iter().any(|field| field.needs_headers());
            let mut packet = DissectedPacket::new(packet, headers, self.careful);
            let start = out.len();
            if self.binary {
                self.binary_record(&mut packet, out);
            } else {
                self.line(&mut packet, out);
            }
            if let Some(bad) = packet.bad.take().filter(|_| self.bad_packets) {
                let record = out.split_off(start);
                self.note(&alloc::format!("!bad {bad}"), out);
                out.extend(record);
            }
            packet.extra
        };
        if extra != packet.extra_length() {
            packet.set_extra_length(extra);
        }
    }

    /// Appends a line of text between packets.
    pub fn note(&self, line: &str, out: &mut Vec<u8>) {
        if self.binary {
            out.extend(((line.len() as u32 + 1) | TEXT_RECORD).to_be_bytes());
        }
        out.extend(line.bytes());
        out.push(b'\n');
    }

    fn line(&self, packet: &mut DissectedPacket, out: &mut Vec<u8>) {
        let mut text = String::with_capacity(USUAL_LINE);
        for (index, field) in self.fields.iter().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            match value(packet, *field, self.extra_length) {
                Some(value) => encode::text(*field, value, encode::icmp_type(packet.transport), &mut text),
                None => text.push('-'),
            }
        }
        text.push('\n');
        out.extend_from_slice(text.as_bytes());
    }

    fn binary_record(&self, packet: &mut DissectedPacket, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0; 4]);
        for field in &self.fields {
            let value = value(packet, *field, self.extra_length);
            encode::binary(*field, value, out);
        }
        let length = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}
