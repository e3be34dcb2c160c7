//! Address resolution between IPv4 and Ethernet (RFC 826).

use super::ethernet::EtherType;
use crate::address::MacAddr;
use core::fmt;
use core::net::Ipv4Addr;

/// The hardware type of Ethernet.
pub const HARDWARE_ETHERNET: u16 = 1;
/// Who has this address?
pub const REQUEST: u16 = 1;
/// I have.
pub const REPLY: u16 = 2;

header! {
    /// An ARP packet for IPv4 over Ethernet.
    ///
    /// The address accessors assume Ethernet and IPv4: check [`View::is_ethernet_ip4`] first.
    28 bytes;
    /// The kind of hardware address.
    hardware, set_hardware: u16 = 0;
    /// The kind of protocol address, as an Ethernet type number.
    protocol, set_protocol: u16 = 2;
    /// The length of a hardware address, in bytes.
    hardware_length, set_hardware_length: u8 = 4;
    /// The length of a protocol address, in bytes.
    protocol_length, set_protocol_length: u8 = 5;
    /// The operation: [`REQUEST`], [`REPLY`] or another.
    operation, set_operation: u16 = 6;
    /// The sender's Ethernet address.
    sender_mac, set_sender_mac: MacAddr = 8;
    /// The sender's IPv4 address.
    sender_ip, set_sender_ip: Ipv4Addr = 14;
    /// The target's Ethernet address.
    target_mac, set_target_mac: MacAddr = 18;
    /// The target's IPv4 address.
    target_ip, set_target_ip: Ipv4Addr = 24;
}

impl View<'_> {
    /// Whether types and lengths are those of IPv4 over Ethernet.
    #[inline]
    pub fn is_ethernet_ip4(&self) -> bool {
        self.fixed[..6] == [0, 1, 8, 0, 6, 4]
    }
}

impl ViewMut<'_> {
    /// Sets types and lengths to those of IPv4 over Ethernet.
    #[inline]
    pub fn set_ethernet_ip4(&mut self) {
        self.set_hardware(HARDWARE_ETHERNET);
        self.set_protocol(EtherType::IP4.0);
        self.set_hardware_length(6);
        self.set_protocol_length(4);
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation() {
            REQUEST => write!(f, "arp who-has {} tell {}", self.target_ip(), self.sender_ip()),
            REPLY => write!(f, "arp {} is-at {}", self.sender_ip(), self.sender_mac()),
            other => write!(f, "arp operation {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0; 28];
        assert!(!View::new(&bytes).unwrap().is_ethernet_ip4());
        let mut view = ViewMut::new(&mut bytes).unwrap();
        view.set_ethernet_ip4();
        view.set_operation(REPLY);
        view.set_sender_mac(MacAddr([1, 2, 3, 4, 5, 6]));
        view.set_sender_ip(Ipv4Addr::new(10, 0, 0, 1));
        view.set_target_ip(Ipv4Addr::new(10, 0, 0, 2));
        assert!(view.view().is_ethernet_ip4());
        assert_eq!(view.view().to_string(), "arp 10.0.0.1 is-at 01-02-03-04-05-06");
        view.set_operation(REQUEST);
        assert_eq!(view.view().to_string(), "arp who-has 10.0.0.2 tell 10.0.0.1");
        assert_eq!(bytes[24..], [10, 0, 0, 2]);
        assert!(View::new(&bytes[..27]).is_none());
    }
}
