//! VLAN tags (IEEE 802.1Q and 802.1ad): the four bytes between an Ethernet frame's addresses and its type.

use super::ethernet::EtherType;
use core::fmt;

/// The drop-eligible indicator bit.
const DROP_ELIGIBLE: u16 = 0x1000;
/// The bits of the VLAN identifier.
const IDENTIFIER: u16 = 0x0fff;

header! {
    /// A tag as it follows the type field that announces it: control information, then the next type.
    4 bytes;
    /// Priority, drop eligibility and identifier together.
    control, set_control: u16 = 0;
    /// The type of the payload, as a number.
    type_number, set_type_number: u16 = 2;
}

impl<'a> View<'a> {
    /// The VLAN identifier, 0 to 4095.
    #[inline]
    pub fn identifier(&self) -> u16 {
        self.control() & IDENTIFIER
    }

    /// The priority code point, 0 to 7.
    #[inline]
    pub fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Whether the frame is drop eligible.
    #[inline]
    pub fn drop_eligible(&self) -> bool {
        self.control() & DROP_ELIGIBLE != 0
    }

    /// The type of the payload.
    #[inline]
    pub fn ether_type(&self) -> EtherType {
        EtherType(self.type_number())
    }

    /// The payload.
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.rest
    }
}

impl ViewMut<'_> {
    /// Sets the identifier; only the low 12 bits are used.
    #[inline]
    pub fn set_identifier(&mut self, value: u16) {
        self.set_control(self.view().control() & !IDENTIFIER | value & IDENTIFIER);
    }

    /// Sets the priority; only the low 3 bits are used.
    #[inline]
    pub fn set_priority(&mut self, value: u8) {
        self.set_control(self.view().control() & 0x1fff | u16::from(value) << 13);
    }

    /// Sets the type of the payload.
    #[inline]
    pub fn set_ether_type(&mut self, value: EtherType) {
        self.set_type_number(value.0);
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vlan {} priority {} {}", self.identifier(), self.priority(), self.ether_type())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0x30, 0x64, 0x08, 0x00, 9];
        let view = View::new(&bytes).unwrap();
        assert_eq!((view.identifier(), view.priority(), view.drop_eligible()), (100, 1, true));
        assert_eq!((view.ether_type(), view.payload()), (EtherType::IP4, &[9][..]));
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_identifier(0xffff);
        view.set_priority(7);
        view.set_ether_type(EtherType::IP6);
        assert_eq!(bytes, [0xff, 0xff, 0x86, 0xdd, 9]);
        assert!(View::new(&bytes[..3]).is_none());
    }
}
