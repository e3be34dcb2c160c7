//! TCP segments (RFC 9293, RFC 7323, RFC 2018).

use crate::checksum::Sum;
use core::fmt;

/// Flag bits, as in the byte that [`View::flags`] returns.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// Congestion was experienced.
    pub const ECE: u8 = 0x40;
    /// The congestion window was reduced.
    pub const CWR: u8 = 0x80;
    /// The letters of the flags, lowest bit first, as dumps print them.
    pub const LETTERS: &[u8; 8] = b"FSRPAUEW";
}

/// The kinds of options that [`Options`] decodes.
pub mod option {
    /// End of options.
    pub const END: u8 = 0;
    /// One byte of padding.
    pub const NOP: u8 = 1;
    /// Maximum segment size.
    pub const SEGMENT_SIZE: u8 = 2;
    /// Window scale.
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgement is permitted.
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgement.
    pub const SACK: u8 = 5;
    /// Timestamps.
    pub const TIMESTAMP: u8 = 8;
}

header! {
    /// A TCP header and its payload.
    20 bytes;
    /// The sender's port.
    source, set_source: u16 = 0;
    /// The receiver's port.
    destination, set_destination: u16 = 2;
    /// The sequence number of the first byte in this segment.
    sequence, set_sequence: u32 = 4;
    /// The next sequence number that the sender of this segment expects.
    acknowledgement, set_acknowledgement: u32 = 8;
    /// The eight flags, see [`flag`].
    flags, set_flags: u8 = 13;
    /// The receive window, unscaled.
    window, set_window: u16 = 14;
    /// The checksum over pseudo header, header and data.
    checksum, set_checksum: u16 = 16;
    /// The urgent pointer.
    urgent, set_urgent: u16 = 18;
}

impl<'a> View<'a> {
    /// The header length that the header claims, 0 to 60 bytes.
    #[inline]
    pub fn header_length(&self) -> usize {
        usize::from(self.fixed[12] >> 4) * 4
    }

    /// The four bits between header length and flags; the lowest was the nonce sum flag.
    #[inline]
    pub fn reserved(&self) -> u8 {
        self.fixed[12] & 0xf
    }

    /// Whether all the flags of a mask are set.
    #[inline]
    pub fn has(&self, mask: u8) -> bool {
        self.flags() & mask == mask
    }

    /// The options that are present, including padding.
    #[inline]
    pub fn options(&self) -> &'a [u8] {
        let length = self.header_length().saturating_sub(LENGTH).min(self.rest.len());
        &self.rest[..length]
    }

    /// Iterates over the options, up to the end or the first malformed one.
    #[inline]
    pub fn options_iter(&self) -> Options<'a> {
        Options { bytes: self.options() }
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.rest[self.options().len()..]
    }

    /// Whether the checksum is correct; `pseudo` is the sum of the pseudo header for all of this view's bytes.
    #[inline]
    pub fn checksum_is_right(&self, pseudo: Sum) -> bool {
        pseudo.bytes(self.fixed).bytes(self.rest).finish() == 0
    }

    /// The number of sequence numbers that this segment uses: one per byte of data, and one each for SYN and FIN.
    #[inline]
    pub fn sequence_length(&self) -> u32 {
        let flags = self.flags();
        let control = u32::from(flags & flag::SYN != 0) + u32::from(flags & flag::FIN != 0);
        (self.payload().len() as u32).wrapping_add(control)
    }
}

impl ViewMut<'_> {
    /// Sets the header length in bytes, a multiple of four up to 60.
    #[inline]
    pub fn set_header_length(&mut self, length: usize) {
        self.fixed[12] = self.fixed[12] & 0xf | ((length / 4).min(15) as u8) << 4;
    }

    /// Sets the four bits between header length and flags.
    #[inline]
    pub fn set_reserved(&mut self, value: u8) {
        self.fixed[12] = self.fixed[12] & 0xf0 | value & 0xf;
    }

    /// Computes and stores the checksum; `pseudo` is the sum of the pseudo header for all of this view's bytes.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        self.set_checksum(0);
        self.set_checksum(pseudo.bytes(self.fixed).bytes(self.rest).finish());
    }

    /// The options that are present, including padding.
    #[inline]
    pub fn options_mut(&mut self) -> &mut [u8] {
        let length = self.view().options().len();
        &mut self.rest[..length]
    }

    /// The payload.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let length = self.view().options().len();
        &mut self.rest[length..]
    }
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderOption<'a> {
    /// The largest segment that the sender accepts.
    SegmentSize(u16),
    /// The shift count of the sender's windows.
    WindowScale(u8),
    /// Selective acknowledgements may be sent.
    SackPermitted,
    /// Received blocks: pairs of 32-bit sequence numbers, the first and one past the last.
    Sack(&'a [[u8; 8]]),
    /// The sender's clock and the echo of the receiver's.
    Timestamp(u32, u32),
    /// Any other kind, or one of the above with an invalid length, and its data.
    Other(u8, &'a [u8]),
}

/// Iterates over the options of a segment. Padding is skipped.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = HeaderOption<'a>;

    fn next(&mut self) -> Option<HeaderOption<'a>> {
        let (kind, data) = loop {
            match *self.bytes {
                [option::NOP, ref rest @ ..] => self.bytes = rest,
                [kind, length, ..] if kind != option::END => {
                    let data = self.bytes.get(2..usize::from(length))?;
                    self.bytes = &self.bytes[usize::from(length)..];
                    break (kind, data);
                }
                _ => return None,
            }
        };
        Some(match (kind, data) {
            (option::SEGMENT_SIZE, &[a, b]) => HeaderOption::SegmentSize(u16::from_be_bytes([a, b])),
            (option::WINDOW_SCALE, &[scale]) => HeaderOption::WindowScale(scale),
            (option::SACK_PERMITTED, []) => HeaderOption::SackPermitted,
            (option::SACK, blocks) if blocks.len().is_multiple_of(8) => {
                HeaderOption::Sack(blocks.as_chunks().0)
            }
            (option::TIMESTAMP, &[a, b, c, d, e, f, g, h]) => {
                HeaderOption::Timestamp(u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
            }
            (kind, data) => HeaderOption::Other(kind, data),
        })
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} ", self.source(), self.destination())?;
        if self.flags() == 0 {
            f.write_str(".")?;
        }
        for (bit, letter) in flag::LETTERS.iter().enumerate() {
            if self.flags() >> bit & 1 != 0 {
                write!(f, "{}", char::from(*letter))?;
            }
        }
        let end = self.sequence().wrapping_add(self.payload().len() as u32);
        write!(f, " {}:{end} ack {} win {}", self.sequence(), self.acknowledgement(), self.window())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0; 26];
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_header_length(24);
        view.set_source(1000);
        view.set_destination(80);
        view.set_sequence(u32::MAX);
        view.set_acknowledgement(5);
        view.set_flags(flag::SYN | flag::ACK);
        view.set_window(512);
        view.options_mut().copy_from_slice(&[2, 4, 5, 0xb4]);
        view.payload_mut().copy_from_slice(b"hi");
        let pseudo = Sum::ZERO.word(6).word(26);
        view.fill_checksum(pseudo);
        let view = view.view();
        assert!(view.checksum_is_right(pseudo) && !view.checksum_is_right(pseudo.word(1)));
        assert_eq!(view.to_string(), "1000 > 80 SA 4294967295:1 ack 5 win 512");
        assert_eq!((view.payload(), view.sequence_length(), view.has(flag::SYN)), (&b"hi"[..], 3, true));
        assert_eq!(view.options_iter().collect::<Vec<_>>(), [HeaderOption::SegmentSize(1460)]);
    }

    #[test]
    fn options_of_all_kinds() {
        let mut bytes = [0u8; 60];
        bytes[12] = 0xf0;
        let options = [
            1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4, 2, 3, 9, 99, 2,
            5, 1,
        ];
        bytes[20..20 + options.len()].copy_from_slice(&options);
        let found: Vec<_> = View::new(&bytes).unwrap().options_iter().collect();
        // The last length is below two, which ends the iteration.
        let wanted = [
            HeaderOption::WindowScale(7),
            HeaderOption::SackPermitted,
            HeaderOption::Timestamp(1, 2),
            HeaderOption::Sack(&[[0, 0, 0, 3, 0, 0, 0, 4]]),
            HeaderOption::Other(2, &[9]),
            HeaderOption::Other(99, &[]),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for first in 0..=255 {
            for length in 20..80 {
                let mut bytes = [first; 80];
                let mut view = ViewMut::new(&mut bytes[..length]).unwrap();
                view.fill_checksum(Sum::ZERO);
                let _ = (view.options_mut().len(), view.payload_mut().len());
                let view = view.view();
                let _ = (view.options_iter().count(), view.payload().len(), view.sequence_length());
            }
        }
    }
}
