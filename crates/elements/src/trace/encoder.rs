//! Writes pcap.

use super::link::LinkType;
use super::pcap::{MAGIC, MAGIC_NANO, MAJOR, MINOR};
use alloc::vec::Vec;
use packet::Timestamp;

/// The snapshot length that the header names when nothing is cut.
const NO_LIMIT: u32 = u32::MAX;

/// Writes a dump: the header once, then records. The byte order is little-endian on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    link: LinkType,
    snapshot: u32,
    nano: bool,
}

impl Encoder {
    /// Writes packets of a link type, whole, with nanoseconds.
    pub fn new(link: LinkType) -> Encoder {
        Encoder { link, snapshot: NO_LIMIT, nano: true }
    }

    /// Cuts packets to so many bytes; zero leaves them whole.
    pub fn snapshot(self, length: u32) -> Encoder {
        Encoder { snapshot: if length == 0 { NO_LIMIT } else { length }, ..self }
    }

    /// Chooses between nanoseconds and microseconds.
    pub fn nanoseconds(self, nano: bool) -> Encoder {
        Encoder { nano, ..self }
    }

    /// Appends the header of the dump.
    pub fn header(&self, out: &mut Vec<u8>) {
        out.extend((if self.nano { MAGIC_NANO } else { MAGIC }).to_le_bytes());
        out.extend(MAJOR.to_le_bytes());
        out.extend(MINOR.to_le_bytes());
        // Time zone and accuracy: always zero.
        out.extend([0; 8]);
        out.extend(self.snapshot.to_le_bytes());
        out.extend(self.link.0.to_le_bytes());
    }

    /// Appends a packet; `original_length` is its length on the wire, in bytes.
    pub fn record(&self, timestamp: Timestamp, original_length: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let captured = bytes.len().min(self.snapshot as usize);
        let fraction = timestamp.subsecond_nanos();
        // The format has 32 bits of seconds: times beyond them wrap.
        out.extend((timestamp.seconds() as u32).to_le_bytes());
        out.extend((if self.nano { fraction } else { fraction / 1_000 }).to_le_bytes());
        out.extend((captured as u32).to_le_bytes());
        out.extend(original_length.to_le_bytes());
        out.extend_from_slice(&bytes[..captured]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_tcpdump_reads() {
        let encoder = Encoder::new(LinkType::ETHERNET).snapshot(2).nanoseconds(false);
        let mut out = Vec::new();
        encoder.header(&mut out);
        encoder.record(Timestamp::from_parts(1, 2_999), 60, b"abc", &mut out);
        let header = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\x02\0\0\0\x01\0\0\0";
        assert_eq!(out[..24], *header);
        assert_eq!(out[24..], *b"\x01\0\0\0\x02\0\0\0\x02\0\0\0\x3c\0\0\0ab");
    }
}
