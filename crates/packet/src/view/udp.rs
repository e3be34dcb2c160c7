//! UDP datagrams (RFC 768).

use crate::checksum::Sum;
use core::fmt;

header! {
    /// A UDP header and its payload.
    8 bytes;
    /// The sender's port.
    source, set_source: u16 = 0;
    /// The receiver's port.
    destination, set_destination: u16 = 2;
    /// The length of header and data that the header claims, in bytes.
    length, set_length: u16 = 4;
    /// The checksum over pseudo header, header and data; zero means that there is none.
    checksum, set_checksum: u16 = 6;
}

impl<'a> View<'a> {
    /// The payload, cut to the length field where that is valid, and to the available bytes.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let length = usize::from(self.length()).saturating_sub(LENGTH);
        &self.rest[..length.min(self.rest.len())]
    }

    /// Whether the checksum is absent or correct; `pseudo` is the sum of the pseudo header for the length field.
    #[inline]
    pub fn checksum_is_right(&self, pseudo: Sum) -> bool {
        self.checksum() == 0 || pseudo.bytes(self.fixed).bytes(self.payload()).finish() == 0
    }
}

impl ViewMut<'_> {
    /// Computes and stores the checksum over header and payload; `pseudo` is the sum of the pseudo header for the
    /// length field.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo: Sum) {
        self.set_checksum(0);
        let view = self.view();
        let checksum = pseudo.bytes(view.fixed).bytes(view.payload()).finish();
        // Zero means "none", so a checksum of zero is sent as its other representation.
        self.set_checksum(if checksum == 0 { 0xffff } else { checksum });
    }

    /// All bytes after the header, regardless of the length field.
    #[inline]
    pub fn rest_mut(&mut self) -> &mut [u8] {
        self.rest
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} udp {}", self.source(), self.destination(), self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut bytes = *b"\0\0\0\0\0\0\0\0abcdpadding";
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_source(53);
        view.set_destination(5353);
        view.set_length(12);
        assert!(view.view().checksum_is_right(Sum::ZERO));
        view.fill_checksum(Sum::ZERO.word(17).word(12));
        view.rest_mut()[4] = b'P';
        let view = view.view();
        assert!(view.checksum_is_right(Sum::ZERO.word(17).word(12)) && !view.checksum_is_right(Sum::ZERO));
        assert_eq!((view.payload(), view.to_string().as_str()), (&b"abcd"[..], "53 > 5353 udp 12"));
    }

    #[test]
    fn zero_is_sent_as_ones_and_lies_are_cut() {
        let mut bytes = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.fill_checksum(Sum::ZERO);
        assert_eq!(view.view().checksum(), 0xffff);
        view.set_length(9000);
        assert_eq!(view.view().payload(), b"");
        assert!(View::new(&bytes[..7]).is_none());
    }
}
