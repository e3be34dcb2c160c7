//! Writes pcap.

use super::{FILE_HEADER_LENGTH, MAGIC, MAGIC_NANOSECONDS, MAJOR, MINOR, RECORD_HEADER_LENGTH};
use crate::MAX_CAPTURED;
use crate::link_type::LinkType;
use alloc::vec::Vec;

/// The snapshot length in the header when packets are written whole.
const NO_LIMIT: u32 = u32::MAX;

/// Encodes a pcap capture: the file header once, then records. The byte order is little-endian on every machine.
#[derive(Clone, Copy, Debug)]
pub struct PcapEncoder {
    link: LinkType,
    snapshot_length: u32,
    nanoseconds: bool,
}

impl PcapEncoder {
    /// Encodes packets of a link type, whole, with nanoseconds.
    pub fn new(link: LinkType) -> PcapEncoder {
        PcapEncoder { link, snapshot_length: NO_LIMIT, nanoseconds: true }
    }

    /// Keeps the first `length` bytes of each packet; zero keeps all.
    pub fn snapshot_length(self, length: u32) -> PcapEncoder {
        PcapEncoder { snapshot_length: if length == 0 { NO_LIMIT } else { length }, ..self }
    }

    /// Chooses between nanoseconds and microseconds.
    pub fn nanoseconds(self, nanoseconds: bool) -> PcapEncoder {
        PcapEncoder { nanoseconds, ..self }
    }

    /// The file header.
    pub fn file_header(&self) -> [u8; FILE_HEADER_LENGTH] {
        let magic = if self.nanoseconds { MAGIC_NANOSECONDS } else { MAGIC };
        let version = u32::from(MAJOR) | u32::from(MINOR) << 16;
        // Time zone and accuracy are always zero.
        let words = [magic, version, 0, 0, self.snapshot_length, self.link.0];
        words_to_bytes(words)
    }

    /// How many bytes of a packet with `length` bytes are kept.
    pub fn captured_length(&self, length: usize) -> usize {
        length.min(self.snapshot_length as usize).min(MAX_CAPTURED as usize)
    }

    /// The header of a record. The next `captured` bytes of the capture must be the packet's;
    /// [`captured_length`](Self::captured_length) says how many that may be. `original_length` is the length on the wire.
    pub fn record_header(
        &self,
        time_ns: i64,
        captured: usize,
        original_length: u32,
    ) -> [u8; RECORD_HEADER_LENGTH] {
        // The format has 32 bits for the seconds: times beyond them wrap.
        let (seconds, nanos) = (time_ns.div_euclid(1_000_000_000), time_ns.rem_euclid(1_000_000_000));
        let fraction = if self.nanoseconds { nanos } else { nanos / 1_000 };
        words_to_bytes([seconds as u32, fraction as u32, captured as u32, original_length])
    }

    /// Appends a record, cut to the snapshot length. `original_length` is the packet's length on the wire, in bytes.
    pub fn record(&self, time_ns: i64, original_length: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let captured = self.captured_length(bytes.len());
        out.extend_from_slice(&self.record_header(time_ns, captured, original_length));
        out.extend_from_slice(bytes.get(..captured).unwrap_or(bytes));
    }
}

fn words_to_bytes<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_tcpdump() {
        let encoder = PcapEncoder::new(LinkType::ETHERNET).snapshot_length(2).nanoseconds(false);
        let mut out = encoder.file_header().to_vec();
        encoder.record(1_000_002_999, 60, b"abc", &mut out);
        let header = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0";
        assert_eq!(out[..24], *header);
        assert_eq!(out[24..], *b"\x01\0\0\0\x02\0\0\0\x02\0\0\0\x3c\0\0\0ab");
    }
}
