//! Ethernet II frames (IEEE 802.3, RFC 894).

use crate::address::MacAddr;
use core::fmt;

/// The type of the payload of an Ethernet frame, a VLAN tag or an ARP packet. A value below 0x0600 is an 802.3 length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IP4: EtherType = EtherType(0x0800);
    /// Address Resolution Protocol.
    pub const ARP: EtherType = EtherType(0x0806);
    /// IEEE 802.1Q VLAN tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IP6: EtherType = EtherType(0x86dd);
    /// MAC control (pause frames).
    pub const MAC_CONTROL: EtherType = EtherType(0x8808);
    /// MPLS unicast.
    pub const MPLS: EtherType = EtherType(0x8847);
    /// PPPoE discovery.
    pub const PPPOE_DISCOVERY: EtherType = EtherType(0x8863);
    /// PPPoE session.
    pub const PPPOE_SESSION: EtherType = EtherType(0x8864);
    /// IEEE 802.1ad service tag.
    pub const QINQ: EtherType = EtherType(0x88a8);

    /// Whether it is a VLAN tag of either kind.
    #[inline]
    pub const fn is_vlan(self) -> bool {
        matches!(self, EtherType::VLAN | EtherType::QINQ)
    }
}

header! {
    /// The header of an Ethernet frame.
    14 bytes;
    /// The receiver's address.
    destination, set_destination: MacAddr = 0;
    /// The sender's address.
    source, set_source: MacAddr = 6;
    /// The type field as a number.
    type_number, set_type_number: u16 = 12;
}

impl<'a> View<'a> {
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
    /// Sets the type of the payload.
    #[inline]
    pub fn set_ether_type(&mut self, value: EtherType) {
        self.set_type_number(value.0);
    }

    /// Exchanges source and destination.
    #[inline]
    pub fn swap_addresses(&mut self) {
        let (source, destination) = (self.view().source(), self.view().destination());
        self.set_source(destination);
        self.set_destination(source);
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} {}", self.source(), self.destination(), self.ether_type())
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut frame = *b"\xff\xff\xff\xff\xff\xff\x00\x01\x02\x03\x04\x05\x08\x00payload";
        let view = View::new(&frame).unwrap();
        assert!(view.destination().is_broadcast());
        assert_eq!(view.ether_type(), EtherType::IP4);
        assert_eq!(view.payload(), b"payload");
        assert_eq!(view.to_string(), "00-01-02-03-04-05 > FF-FF-FF-FF-FF-FF 0800");
        let mut view = ViewMut::new(&mut frame).unwrap();
        view.swap_addresses();
        view.set_ether_type(EtherType::QINQ);
        assert_eq!(frame[..7], *b"\x00\x01\x02\x03\x04\x05\xff");
        assert!(View::new(&frame).unwrap().ether_type().is_vlan());
        assert!(View::new(&frame[..13]).is_none());
    }
}
