//! Writes pcapng.

use super::{
    BYTE_ORDER_MARK, ENHANCED_PACKET, INTERFACE_DESCRIPTION, MIN_BLOCK, OPTION_NAME, OPTION_RESOLUTION,
    SECTION_HEADER,
};
use crate::MAX_CAPTURED;
use crate::link_type::LinkType;
use crate::record::{
    OPTION_COMMENT, OPTION_END, OPTION_PACKET_ID, OPTION_QUEUE, OPTION_VERDICT, VERDICT_HARDWARE,
    VERDICT_LINUX_TC, VERDICT_LINUX_XDP, Verdict,
};
use alloc::vec::Vec;

/// The version of the format, and the `if_tsresol` code of nanoseconds.
const MAJOR: u16 = 1;
const NANOSECONDS: u8 = 9;
/// A section whose length is not given: it ends where the next one begins.
const UNKNOWN_LENGTH: [u8; 8] = [0xff; 8];

/// Encodes a pcapng capture: a section header, interface descriptions, then packets of these interfaces. Timestamps have
/// nanoseconds, and the byte order is little-endian on every machine.
///
/// ```
/// use capture::{LinkType, PacketOptions, PcapngEncoder, Verdict};
///
/// let (mut encoder, mut capture) = (PcapngEncoder::new(), Vec::new());
/// encoder.section(&mut capture);
/// let port = encoder.interface(LinkType::ETHERNET, "port 1", 0, &mut capture);
/// let options = PacketOptions { comment: Some("dropped: no route"), queue: Some(3), ..PacketOptions::default() };
/// encoder.packet(port, 1_700_000_000_000_000_000, 60, &[0; 60], &options, &mut capture);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PcapngEncoder {
    /// Bytes kept of each packet, by interface.
    snapshot_lengths: Vec<u32>,
}

/// What is written of a packet besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketOptions<'a> {
    /// A text for the reader (`opt_comment`), cut to 65,535 bytes.
    pub comment: Option<&'a str>,
    /// A number that identifies the packet across interfaces (`epb_packetid`).
    pub packet_id: Option<u64>,
    /// The queue of the interface that it was received on (`epb_queue`).
    pub queue: Option<u32>,
    /// What became of it (`epb_verdict`).
    pub verdict: Option<Verdict<'a>>,
}

impl PcapngEncoder {
    /// An encoder whose first call must be [`section`](Self::section).
    pub fn new() -> PcapngEncoder {
        PcapngEncoder::default()
    }

    /// Appends a section header. Interfaces count from zero again.
    pub fn section(&mut self, out: &mut Vec<u8>) {
        self.snapshot_lengths.clear();
        block(SECTION_HEADER, out, |out| {
            out.extend(BYTE_ORDER_MARK.to_le_bytes());
            out.extend(MAJOR.to_le_bytes());
            out.extend(0u16.to_le_bytes());
            out.extend(UNKNOWN_LENGTH);
        });
    }

    /// Appends the description of an interface; returns its index. A `snapshot_length` of zero keeps packets whole.
    pub fn interface(&mut self, link: LinkType, name: &str, snapshot_length: u32, out: &mut Vec<u8>) -> u32 {
        block(INTERFACE_DESCRIPTION, out, |out| {
            out.extend((link.0 as u16).to_le_bytes());
            out.extend([0; 2]);
            out.extend(snapshot_length.to_le_bytes());
            if !name.is_empty() {
                option(OPTION_NAME, text(name), out);
            }
            option(OPTION_RESOLUTION, &[NANOSECONDS], out);
            option(OPTION_END, &[], out);
        });
        self.snapshot_lengths.push(snapshot_length);
        self.snapshot_lengths.len() as u32 - 1
    }

    /// Appends an enhanced packet block of an interface, cut to the interface's snapshot length. `original_length` is the
    /// packet's length on the wire, in bytes; times before 1970 are written as 1970.
    pub fn packet(
        &self,
        interface: u32,
        time_ns: i64,
        original_length: u32,
        bytes: &[u8],
        options: &PacketOptions<'_>,
        out: &mut Vec<u8>,
    ) {
        let snapshot_length =
            self.snapshot_lengths.get(interface as usize).copied().filter(|length| *length > 0);
        let kept = bytes.len().min(snapshot_length.unwrap_or(MAX_CAPTURED).min(MAX_CAPTURED) as usize);
        let time = time_ns.max(0) as u64;
        block(ENHANCED_PACKET, out, |out| {
            for word in [interface, (time >> 32) as u32, time as u32, kept as u32, original_length] {
                out.extend(word.to_le_bytes());
            }
            out.extend_from_slice(bytes.get(..kept).unwrap_or(bytes));
            pad(kept, out);
            options.write(out);
        });
    }
}

impl PacketOptions<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        if *self == PacketOptions::default() {
            return;
        }
        if let Some(comment) = self.comment {
            option(OPTION_COMMENT, text(comment), out);
        }
        if let Some(id) = self.packet_id {
            option(OPTION_PACKET_ID, &id.to_le_bytes(), out);
        }
        if let Some(queue) = self.queue {
            option(OPTION_QUEUE, &queue.to_le_bytes(), out);
        }
        if let Some(verdict) = self.verdict {
            let mut value = Vec::new();
            match verdict {
                Verdict::Hardware(result) => {
                    value.push(VERDICT_HARDWARE);
                    value.extend_from_slice(result);
                }
                Verdict::LinuxTc(result) => {
                    value.push(VERDICT_LINUX_TC);
                    value.extend(result.to_le_bytes());
                }
                Verdict::LinuxXdp(result) => {
                    value.push(VERDICT_LINUX_XDP);
                    value.extend(result.to_le_bytes());
                }
            }
            value.truncate(u16::MAX.into());
            option(OPTION_VERDICT, &value, out);
        }
        option(OPTION_END, &[], out);
    }
}

/// Appends a block: type, length, body, padding, and the length again.
fn block(kind: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    // Every part of a body is padded, so the length is a multiple of four.
    let length = ((out.len() - start) as u32 + 4).max(MIN_BLOCK).to_le_bytes();
    out.extend(length);
    if let Some(field) = out.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&length);
    }
}

/// Appends an option. Its value has at most 65,535 bytes.
fn option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(value.len(), out);
}

/// Appends zeros after `length` bytes, up to a multiple of four.
fn pad(length: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + length.next_multiple_of(4) - length, 0);
}

/// The bytes of a text as an option can hold them: at most 65,535, cut between characters.
fn text(text: &str) -> &[u8] {
    let end = text.floor_char_boundary(u16::MAX.into());
    text.as_bytes().get(..end).unwrap_or_default()
}
