//! The IP addresses that a port may send from, checked in each frame.
//!
//! This is what switches call IP source guard, ARP inspection and RA guard, and clouds port security. With addresses bound
//! to it, a port sends
//! - IPv4 from these addresses. A DHCP client without an address may also broadcast from 0.0.0.0, port 68 to port 67
//!   (RFC 2131, 4.1).
//! - IPv6 from these addresses, and from the link-local address that is derived from its Ethernet address (RFC 4291,
//!   appendix A). Other link-local addresses have to be bound. Without an address yet, it may send duplicate address
//!   detection for an address of its own, router solicitations (RFC 4861, 4.1 and 4.3) and multicast listener reports
//!   (RFC 3590) from the unspecified address.
//! - ARP for IPv4 over Ethernet (RFC 826) with its own addresses as the sender's. A probe from 0.0.0.0 must be for an
//!   address of its own (RFC 5227).
//! - Neighbour solicitations, neighbour advertisements and router solicitations (RFC 4861) with its own Ethernet address
//!   in their options, advertisements for its own addresses only, and neither router advertisements nor redirects.
//! - No other Ethernet type. Up to two VLAN tags are skipped.
//!
//! Each fragment has a source, which is checked. Neighbour discovery in fragments is dropped (RFC 6980), and so are first
//! fragments that do not contain all extension headers (RFC 7112), in which it could hide.

use packet::MacAddr;
use packet::view::icmp6::kind;
use packet::view::{
    ArpView, EtherType, EthernetView, Icmp6View, Ip4View, Ip6View, UdpView, VlanView, arp, protocol,
};
use reason::Reason;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// VLAN tags that are skipped: those of a provider and a customer (IEEE 802.1ad).
const MAX_TAGS: usize = 2;

/// The UDP ports of DHCP clients and servers.
const DHCP_CLIENT: u16 = 68;
const DHCP_SERVER: u16 = 67;

/// ICMPv6 types that the views do not name.
const MLD_REPORT: u8 = 131;
const MLD_DONE: u8 = 132;
const MLD2_REPORT: u8 = 143;
const REDIRECT: u8 = 137;

/// Options of neighbour discovery.
const SOURCE_LINK_ADDRESS: u8 = 1;
const TARGET_LINK_ADDRESS: u8 = 2;

/// The addresses that a port may send from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceGuard {
    /// The port's Ethernet address, if it has only one.
    mac: Option<MacAddr>,
    /// IPv4 prefixes: address and mask.
    ip4: Vec<(u32, u32)>,
    /// IPv6 prefixes: address and mask.
    ip6: Vec<(u128, u128)>,
}

impl SourceGuard {
    /// The guard of a port with this Ethernet address, or with any, and these prefixes: an address and the number of its
    /// leading bits that count.
    pub fn new(mac: Option<MacAddr>, prefixes: impl IntoIterator<Item = (IpAddr, u8)>) -> Self {
        let mut guard = Self { mac, ip4: Vec::new(), ip6: Vec::new() };
        for (address, length) in prefixes {
            let length = u32::from(length);
            match address {
                IpAddr::V4(address) => {
                    let mask = u32::MAX.checked_shl(32u32.saturating_sub(length)).unwrap_or(0);
                    guard.ip4.push((address.to_bits() & mask, mask));
                }
                IpAddr::V6(address) => {
                    let mask = u128::MAX.checked_shl(128u32.saturating_sub(length)).unwrap_or(0);
                    guard.ip6.push((address.to_bits() & mask, mask));
                }
            }
        }
        guard.ip6.extend(mac.map(|mac| (link_local(mac).to_bits(), u128::MAX)));
        guard
    }

    /// Whether more than the first bytes of a frame with this head count: extension headers, neighbour discovery, DHCP.
    pub(crate) fn needs_whole(&self, head: &[u8]) -> bool {
        match network(head) {
            Some((EtherType::IP4, packet)) => {
                Ip4View::new(packet).is_some_and(|ip| ip.source().is_unspecified())
            }
            Some((EtherType::IP6, packet)) => !Ip6View::new(packet)
                .is_some_and(|ip| matches!(ip.next_header(), protocol::TCP | protocol::UDP)),
            _ => false,
        }
    }

    /// Checks a frame: all of it, or a head with everything that counts.
    ///
    /// # Errors
    ///
    /// Why the port may not send it: it is not from one of its addresses, or too short to tell.
    pub fn check(&self, frame: &[u8]) -> Result<(), Reason> {
        match network(frame).ok_or(Reason::TOO_SHORT)? {
            (EtherType::IP4, packet) => self.check_ip4(packet),
            (EtherType::IP6, packet) => self.check_ip6(packet),
            (EtherType::ARP, packet) => self.check_arp(packet),
            _ => Err(Reason::SPOOFED),
        }
    }

    fn check_ip4(&self, packet: &[u8]) -> Result<(), Reason> {
        let ip = Ip4View::new(packet).ok_or(Reason::TOO_SHORT)?;
        if ip.version() != 4 {
            return Err(Reason::SPOOFED);
        }
        if self.has_ip4(ip.source()) {
            return Ok(());
        }
        let is_candidate = ip.source().is_unspecified()
            && ip.destination() == Ipv4Addr::BROADCAST
            && ip.protocol() == protocol::UDP
            && !ip.is_fragment()
            && ip.header_length() >= packet::view::ip4::LENGTH;
        allow(is_candidate && !self.ip4.is_empty())?;
        let udp = packet.get(ip.header_length()..).and_then(UdpView::new).ok_or(Reason::TOO_SHORT)?;
        allow((udp.source(), udp.destination()) == (DHCP_CLIENT, DHCP_SERVER))
    }

    fn check_ip6(&self, packet: &[u8]) -> Result<(), Reason> {
        let ip = Ip6View::new(packet).ok_or(Reason::TOO_SHORT)?;
        if ip.version() != 6 {
            return Err(Reason::SPOOFED);
        }
        let is_unspecified = ip.source().is_unspecified();
        allow(is_unspecified || self.has_ip6(ip.source()))?;
        if matches!(ip.next_header(), protocol::TCP | protocol::UDP) {
            return allow(!is_unspecified);
        }
        let transport = ip.transport();
        let is_later = transport.fragment.is_some_and(|fragment| fragment.offset != 0);
        if is_later {
            return allow(!is_unspecified);
        }
        if !transport.complete {
            return Err(Reason::TOO_SHORT);
        }
        if transport.protocol != protocol::ICMP6 {
            return allow(!is_unspecified);
        }
        let message = Icmp6View::new(transport.bytes).ok_or(Reason::TOO_SHORT)?;
        let is_discovery = (kind::ROUTER_SOLICITATION..=REDIRECT).contains(&message.kind());
        allow(!(is_discovery || is_unspecified) || transport.fragment.is_none())?;
        match message.kind() {
            kind::ROUTER_SOLICITATION => self.check_options(message.payload(), is_unspecified),
            kind::NEIGHBOUR_SOLICITATION => {
                let (target, options) = target(&message)?;
                allow(!is_unspecified || self.has_ip6(target))?;
                self.check_options(options, is_unspecified)
            }
            kind::NEIGHBOUR_ADVERTISEMENT => {
                let (target, options) = target(&message)?;
                allow(!is_unspecified && self.has_ip6(target))?;
                self.check_options(options, false)
            }
            kind::ROUTER_ADVERTISEMENT | REDIRECT => Err(Reason::SPOOFED),
            MLD_REPORT | MLD_DONE | MLD2_REPORT => Ok(()),
            _ => allow(!is_unspecified),
        }
    }

    fn check_arp(&self, packet: &[u8]) -> Result<(), Reason> {
        let message = ArpView::new(packet).ok_or(Reason::TOO_SHORT)?;
        allow(message.is_ethernet_ip4() && self.has_mac(message.sender_mac()))?;
        let is_probe = message.sender_ip().is_unspecified() && message.operation() == arp::REQUEST;
        allow(self.has_ip4(if is_probe { message.target_ip() } else { message.sender_ip() }))
    }

    /// Checks the options of neighbour discovery: the Ethernet address that the sender claims, which a sender without an
    /// address does not (RFC 4861, 4.1 and 4.3).
    fn check_options(&self, mut options: &[u8], is_unspecified: bool) -> Result<(), Reason> {
        while let Some((kind, rest)) = options.split_first() {
            let length = 8 * usize::from(*rest.first().ok_or(Reason::TOO_SHORT)?);
            // Receivers discard a message with an option of length 0 (RFC 4861, 4.6).
            allow(length > 0)?;
            let (option, rest) = options.split_at_checked(length).ok_or(Reason::TOO_SHORT)?;
            if matches!(*kind, SOURCE_LINK_ADDRESS | TARGET_LINK_ADDRESS) {
                let claimed =
                    option.get(2..).and_then(|bytes| bytes.first_chunk()).map(|bytes| MacAddr(*bytes));
                allow(!is_unspecified && claimed.is_some_and(|mac| self.has_mac(mac)))?;
            }
            options = rest;
        }
        Ok(())
    }

    fn has_mac(&self, mac: MacAddr) -> bool {
        self.mac.is_none_or(|own| own == mac)
    }

    fn has_ip4(&self, address: Ipv4Addr) -> bool {
        self.ip4.iter().any(|(prefix, mask)| address.to_bits() & mask == *prefix)
    }

    fn has_ip6(&self, address: Ipv6Addr) -> bool {
        self.ip6.iter().any(|(prefix, mask)| address.to_bits() & mask == *prefix)
    }
}

fn allow(is_allowed: bool) -> Result<(), Reason> {
    if is_allowed { Ok(()) } else { Err(Reason::SPOOFED) }
}

/// The type and the bytes of the packet in a frame, behind its VLAN tags.
fn network(frame: &[u8]) -> Option<(EtherType, &[u8])> {
    let ethernet = EthernetView::new(frame)?;
    let (mut kind, mut packet) = (ethernet.ether_type(), ethernet.payload());
    for _ in 0..MAX_TAGS {
        if !kind.is_vlan() {
            break;
        }
        let tag = VlanView::new(packet)?;
        (kind, packet) = (tag.ether_type(), tag.rest());
    }
    Some((kind, packet))
}

/// The target of a neighbour solicitation or advertisement, and its options.
fn target<'a>(message: &Icmp6View<'a>) -> Result<(Ipv6Addr, &'a [u8]), Reason> {
    let target = message.target().ok_or(Reason::TOO_SHORT)?;
    Ok((target, message.payload().get(16..).unwrap_or_default()))
}

/// The link-local address that is derived from an Ethernet address (RFC 4291, appendix A).
fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let word = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, word(a ^ 2, b), word(c, 0xff), word(0xfe, d), word(e, f))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::view::{ArpViewMut, Icmp6ViewMut, Ip4ViewMut, Ip6ViewMut, UdpViewMut};
    use random::Random;

    const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const SPOOFED: Result<(), Reason> = Err(Reason::SPOOFED);
    const TOO_SHORT: Result<(), Reason> = Err(Reason::TOO_SHORT);

    /// 192.0.2.1, 198.51.100.0/24 and 2001:db8::1 at the port of `OWN`.
    fn guard() -> SourceGuard {
        let prefix = |text: &str, length| (text.parse::<IpAddr>().unwrap(), length);
        SourceGuard::new(
            Some(OWN),
            [prefix("192.0.2.1", 32), prefix("198.51.100.7", 24), prefix("2001:db8::1", 128)],
        )
    }

    /// A frame with these types before the packet: those of VLAN tags, and that of the packet.
    fn frame(types: &[u16], packet: &[u8]) -> Vec<u8> {
        let mut frame = [&[2, 0, 0, 0, 0, 9][..], &OWN.0].concat();
        for (at, kind) in types.iter().enumerate() {
            frame.extend(kind.to_be_bytes());
            frame.extend_from_slice(if at + 1 < types.len() { &[0, 7] } else { &[] });
        }
        frame.extend_from_slice(packet);
        frame
    }

    fn ip4(source: &str, destination: &str, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = [&[0x45; 20][..], payload].concat();
        let length = packet.len() as u16;
        let mut view = Ip4ViewMut::new(&mut packet).unwrap();
        view.set_total_length(length);
        view.set_fragment(fragment);
        view.set_protocol(protocol);
        view.set_source(source.parse().unwrap());
        view.set_destination(destination.parse().unwrap());
        frame(&[0x0800], &packet)
    }

    fn udp(source: u16, destination: u16) -> Vec<u8> {
        let mut datagram = vec![0; 8];
        let mut view = UdpViewMut::new(&mut datagram).unwrap();
        view.set_source(source);
        view.set_destination(destination);
        datagram
    }

    fn arp(operation: u16, mac: MacAddr, sender: &str, target: &str) -> Vec<u8> {
        let mut packet = vec![0; 28];
        let mut view = ArpViewMut::new(&mut packet).unwrap();
        view.set_ethernet_ip4();
        view.set_operation(operation);
        view.set_sender_mac(mac);
        view.set_sender_ip(sender.parse().unwrap());
        view.set_target_ip(target.parse().unwrap());
        frame(&[0x0806], &packet)
    }

    fn ip6(source: &str, next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = [&[0; 40][..], payload].concat();
        let mut view = Ip6ViewMut::new(&mut packet).unwrap();
        view.set_class_and_flow(0, 0);
        view.set_payload_length(payload.len() as u16);
        view.set_next_header(next);
        view.set_source(source.parse().unwrap());
        view.set_destination("ff02::1".parse().unwrap());
        frame(&[0x86dd], &packet)
    }

    fn message(kind: u8, target: Option<&str>, options: &[u8]) -> Vec<u8> {
        let target = target.map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        let mut message = [&[0; 8][..], target.as_ref().map_or(&[], |bytes| &bytes[..]), options].concat();
        Icmp6ViewMut::new(&mut message).unwrap().set_kind(kind);
        message
    }

    fn icmp6(source: &str, kind: u8, target: Option<&str>, options: &[u8]) -> Vec<u8> {
        ip6(source, 58, &message(kind, target, options))
    }

    fn link_option(kind: u8, mac: MacAddr) -> Vec<u8> {
        [&[kind, 1][..], &mac.0].concat()
    }

    /// Checks a frame as the switch does: its head if that decides, else all of it.
    fn verdict(guard: &SourceGuard, frame: &[u8]) -> Result<(), Reason> {
        let head = &frame[..frame.len().min(64)];
        guard.check(if guard.needs_whole(head) { frame } else { head })
    }

    /// Checks the verdict on each frame, also behind one and two VLAN tags.
    fn check(cases: &[(&str, Vec<u8>, Result<(), Reason>)]) {
        for (what, frame, expected) in cases {
            assert_eq!(verdict(&guard(), frame), *expected, "{what}");
            let mut tagged = frame.clone();
            for tag in [[0x81, 0, 0, 7], [0x88, 0xa8, 0x60, 1]] {
                tagged.splice(12..12, tag);
                assert_eq!(verdict(&guard(), &tagged), *expected, "{what}, tagged");
            }
            tagged.splice(12..12, [0x81, 0, 0, 1]);
            assert_eq!(verdict(&guard(), &tagged), SPOOFED, "{what}, with three tags");
        }
    }

    #[test]
    fn ip4_is_sent_from_bound_addresses_only() {
        let (any, all) = ("203.0.113.9", "255.255.255.255");
        let long = [ip4("192.0.2.1", any, 6, 0, &[]), vec![0; 1400]].concat();
        let mut options = ip4("0.0.0.0", all, 17, 0, &[vec![1; 40], udp(68, 67)].concat());
        options[14] = 0x4f;
        let mut short_header = ip4("0.0.0.0", all, 17, 0, &udp(68, 67));
        short_header[14] = 0x41;
        let mut six = ip4("192.0.2.1", any, 6, 0, &[]);
        six[14] = 0x65;
        check(&[
            ("own", long, Ok(())),
            ("own prefix", ip4("198.51.100.255", any, 17, 0, &[]), Ok(())),
            ("other", ip4("192.0.2.2", any, 6, 0, &[]), SPOOFED),
            ("beside the prefix", ip4("198.51.101.0", any, 6, 0, &[]), SPOOFED),
            ("first fragment", ip4("192.0.2.1", any, 17, 0x2000, &[]), Ok(())),
            ("later fragment", ip4("192.0.2.1", any, 17, 0x00b9, &[]), Ok(())),
            ("later fragment of another", ip4("192.0.2.3", any, 17, 0x00b9, &[]), SPOOFED),
            ("DHCP client", ip4("0.0.0.0", all, 17, 0, &udp(68, 67)), Ok(())),
            ("DHCP client with options", options, Ok(())),
            ("DHCP client, too short a header", short_header, SPOOFED),
            ("DHCP client, cut", ip4("0.0.0.0", all, 17, 0, &udp(68, 67)[..7]), TOO_SHORT),
            ("DHCP client to one server", ip4("0.0.0.0", any, 17, 0, &udp(68, 67)), SPOOFED),
            ("DHCP server", ip4("0.0.0.0", all, 17, 0, &udp(67, 68)), SPOOFED),
            ("DHCP in a fragment", ip4("0.0.0.0", all, 17, 0x2000, &udp(68, 67)), SPOOFED),
            ("unspecified", ip4("0.0.0.0", all, 6, 0, &udp(68, 67)), SPOOFED),
            ("version 6", six, SPOOFED),
            ("cut", frame(&[0x0800], &[0x45; 19]), TOO_SHORT),
        ]);
        let none = SourceGuard::new(Some(OWN), [("2001:db8::1".parse().unwrap(), 128)]);
        assert_eq!(none.check(&ip4("0.0.0.0", all, 17, 0, &udp(68, 67))), SPOOFED);
        assert_eq!(none.check(&ip4("192.0.2.1", any, 17, 0, &[])), SPOOFED);
    }

    #[test]
    fn arp_tells_bound_addresses_only() {
        let mut ieee802 = arp(1, OWN, "192.0.2.1", "192.0.2.9");
        ieee802[15] = 6;
        check(&[
            ("request", arp(1, OWN, "192.0.2.1", "192.0.2.9"), Ok(())),
            ("reply", arp(2, OWN, "198.51.100.3", "192.0.2.9"), Ok(())),
            ("announcement", arp(1, OWN, "192.0.2.1", "192.0.2.1"), Ok(())),
            ("reply for another", arp(2, OWN, "192.0.2.9", "192.0.2.1"), SPOOFED),
            ("request as another", arp(1, OWN, "192.0.2.9", "192.0.2.1"), SPOOFED),
            ("with another Ethernet address", arp(2, OTHER, "192.0.2.1", "192.0.2.9"), SPOOFED),
            ("probe", arp(1, OWN, "0.0.0.0", "192.0.2.1"), Ok(())),
            ("probe for another", arp(1, OWN, "0.0.0.0", "192.0.2.9"), SPOOFED),
            ("reply without an address", arp(2, OWN, "0.0.0.0", "192.0.2.1"), SPOOFED),
            ("other hardware", ieee802, SPOOFED),
            ("cut", arp(1, OWN, "192.0.2.1", "192.0.2.9")[..41].to_vec(), TOO_SHORT),
        ]);
        let any = SourceGuard::new(None, [("192.0.2.1".parse().unwrap(), 32)]);
        assert_eq!(any.check(&arp(2, OTHER, "192.0.2.1", "192.0.2.9")), Ok(()));
        assert_eq!(any.check(&arp(2, OTHER, "192.0.2.9", "192.0.2.1")), SPOOFED);
    }

    #[test]
    fn ip6_is_sent_from_bound_and_derived_addresses_only() {
        let own = "2001:db8::1";
        check(&[
            ("own", [ip6(own, 6, &[0; 20]), vec![0; 1400]].concat(), Ok(())),
            ("derived", ip6("fe80::ff:fe00:1", 17, &[0; 8]), Ok(())),
            ("link-local of another", ip6("fe80::ff:fe00:2", 17, &[0; 8]), SPOOFED),
            ("other", ip6("2001:db8::2", 6, &[0; 20]), SPOOFED),
            ("other, echo", icmp6("2001:db8::2", 128, None, &[]), SPOOFED),
            ("echo", icmp6(own, 128, None, &[7; 900]), Ok(())),
            ("SCTP", ip6(own, 132, &[0; 12]), Ok(())),
            ("unspecified", ip6("::", 17, &[0; 8]), SPOOFED),
            ("unspecified, SCTP", ip6("::", 132, &[0; 12]), SPOOFED),
            ("unspecified, echo", icmp6("::", 128, None, &[]), SPOOFED),
            ("a router", icmp6(own, 134, None, &[]), SPOOFED),
            ("a redirect", icmp6(own, 137, Some(own), &[]), SPOOFED),
            (
                "listener report",
                ip6("::", 0, &[&[58, 0, 5, 2, 0, 0, 1, 0][..], &message(143, None, &[])].concat()),
                Ok(()),
            ),
            ("no message", ip6(own, 58, &[135; 7]), TOO_SHORT),
            (
                "version 4",
                {
                    let mut frame = ip6(own, 6, &[]);
                    frame[14] = 0x45;
                    frame
                },
                SPOOFED,
            ),
            ("cut", frame(&[0x86dd], &[0x60; 39]), TOO_SHORT),
        ]);
    }

    #[test]
    fn neighbours_are_told_own_addresses_only() {
        let (own, derived, other) = ("2001:db8::1", "fe80::ff:fe00:1", "2001:db8::9");
        let (mine, theirs) = (link_option(1, OWN), link_option(1, OTHER));
        let (target, wrong_target) = (link_option(2, OWN), link_option(2, OTHER));
        check(&[
            ("solicitation", icmp6(own, 135, Some(other), &mine), Ok(())),
            ("solicitation without option", icmp6(derived, 135, Some(other), &[]), Ok(())),
            ("solicitation as another", icmp6(other, 135, Some(own), &theirs), SPOOFED),
            ("solicitation for another", icmp6(own, 135, Some(other), &theirs), SPOOFED),
            (
                "second option",
                icmp6(own, 135, Some(other), &[mine.clone(), theirs.clone()].concat()),
                SPOOFED,
            ),
            (
                "nonce",
                icmp6(own, 135, Some(other), &[vec![14, 1, 1, 2, 3, 4, 5, 6], mine.clone()].concat()),
                Ok(()),
            ),
            ("empty option", icmp6(own, 135, Some(other), &[0; 8]), SPOOFED),
            ("cut option", icmp6(own, 135, Some(other), &[1, 2, 2, 0, 0, 0, 0, 1]), TOO_SHORT),
            ("half an option", icmp6(own, 135, Some(other), &[1]), TOO_SHORT),
            ("duplicate address detection", icmp6("::", 135, Some(own), &[]), Ok(())),
            (
                "detection of a derived address",
                icmp6("::", 135, Some(derived), &[14, 1, 1, 2, 3, 4, 5, 6]),
                Ok(()),
            ),
            ("detection for another", icmp6("::", 135, Some(other), &[]), SPOOFED),
            ("detection with an option", icmp6("::", 135, Some(own), &mine), SPOOFED),
            ("advertisement", icmp6(own, 136, Some(own), &target), Ok(())),
            ("advertisement of the other own address", icmp6(derived, 136, Some(own), &target), Ok(())),
            ("advertisement for another", icmp6(own, 136, Some(other), &target), SPOOFED),
            (
                "advertisement of another's Ethernet address",
                icmp6(own, 136, Some(own), &wrong_target),
                SPOOFED,
            ),
            ("advertisement from nobody", icmp6("::", 136, Some(own), &target), SPOOFED),
            ("without target", icmp6(own, 136, None, &[1; 15]), TOO_SHORT),
            ("router solicitation", icmp6(derived, 133, None, &mine), Ok(())),
            ("router solicitation from nobody", icmp6("::", 133, None, &[]), Ok(())),
            ("router solicitation from nobody with an option", icmp6("::", 133, None, &mine), SPOOFED),
            ("router solicitation for another", icmp6(derived, 133, None, &theirs), SPOOFED),
        ]);
    }

    /// Neighbour discovery behind extension headers and in fragments.
    #[test]
    fn extension_headers_hide_nothing() {
        let (own, other) = ("2001:db8::1", "2001:db8::9");
        let theft = message(136, Some(other), &link_option(2, OWN));
        let behind = |next: u8, header: &[u8], payload: &[u8]| ip6(own, next, &[header, payload].concat());
        let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
        let fragment = |next, offset: u16, more: u16| {
            let [high, low] = (offset << 3 | more).to_be_bytes();
            [next, 0, high, low, 0, 0, 0, 9]
        };
        let deep: Vec<u8> = (0..16).flat_map(|_| options(60)).chain(options(58)).collect();
        check(&[
            ("hop by hop", behind(0, &options(58), &theft), SPOOFED),
            ("two headers", behind(60, &[options(60), options(58)].concat(), &theft), SPOOFED),
            ("many headers", behind(60, &deep, &theft), TOO_SHORT),
            ("a cut header", behind(60, &[58, 9, 0, 0, 0, 0, 0, 0], &theft), TOO_SHORT),
            ("no header", ip6(own, 60, &[]), TOO_SHORT),
            ("options before TCP", behind(60, &options(6), &[0; 20]), Ok(())),
            ("first fragment", behind(44, &fragment(58, 0, 1), &theft), SPOOFED),
            ("the only fragment", behind(44, &fragment(58, 0, 0), &theft), SPOOFED),
            (
                "own address in a fragment",
                behind(44, &fragment(58, 0, 1), &message(136, Some(own), &[])),
                SPOOFED,
            ),
            ("first fragment without message", behind(44, &fragment(58, 0, 1), &[]), TOO_SHORT),
            (
                "first fragment without all headers",
                behind(44, &fragment(60, 0, 1), &[58, 1, 0, 0, 0, 0, 0, 0]),
                TOO_SHORT,
            ),
            ("first fragment of an echo", behind(44, &fragment(58, 0, 1), &message(128, None, &[])), Ok(())),
            ("first fragment of UDP", behind(44, &fragment(17, 0, 1), &[0; 8]), Ok(())),
            ("later fragment", behind(44, &fragment(58, 185, 0), &theft), Ok(())),
            (
                "later fragment of another",
                ip6(other, 44, &[&fragment(58, 185, 0)[..], &theft].concat()),
                SPOOFED,
            ),
            (
                "later fragment of nobody",
                ip6("::", 44, &[&fragment(58, 185, 0)[..], &theft].concat()),
                SPOOFED,
            ),
            (
                "detection in a fragment",
                ip6("::", 44, &[&fragment(58, 0, 0)[..], &message(135, Some(own), &[])].concat()),
                SPOOFED,
            ),
        ]);
    }

    #[test]
    fn other_types_are_not_sent() {
        for kind in [0, 46, 0x05dc, 0x8035, 0x8808, 0x8847, 0x8863, 0x88cc, 0xffff] {
            assert_eq!(verdict(&guard(), &frame(&[kind], &[0; 46])), SPOOFED, "{kind:#06x}");
        }
        for cut in [&[][..], &[0; 13], &frame(&[0x8100, 0x0800], &[])[..17]] {
            assert_eq!(verdict(&guard(), cut), TOO_SHORT, "{} bytes", cut.len());
        }
    }

    /// Frames of all kinds, changed and cut at random: none makes it panic, what it permits has an own source, and a head
    /// that needs no more gives the same verdict as the frame.
    #[test]
    fn no_frame_makes_it_panic_or_hides_its_source() {
        let options = link_option(1, OWN);
        let seeds = [
            ip4("192.0.2.1", "203.0.113.9", 17, 0, &udp(1, 2)),
            ip4("0.0.0.0", "255.255.255.255", 17, 0, &udp(68, 67)),
            arp(1, OWN, "192.0.2.1", "192.0.2.9"),
            icmp6("2001:db8::1", 135, Some("2001:db8::9"), &options),
            icmp6("::", 135, Some("2001:db8::1"), &[]),
            ip6(
                "2001:db8::1",
                60,
                &[&[58, 0, 1, 4, 0, 0, 0, 0][..], &message(136, Some("2001:db8::1"), &options)].concat(),
            ),
        ];
        let (guard, mut random) = (guard(), Random::new(7));
        let mut permitted = 0;
        for round in 0..200_000 {
            let mut frame = seeds[round % seeds.len()].clone();
            for _ in 0..random.below(4) {
                let at = 12 + random.below(frame.len() as u32 - 12) as usize;
                frame[at] = random.below(256) as u8;
            }
            if random.below(4) == 0 {
                frame.truncate(random.below(frame.len() as u32 + 1) as usize);
            }
            if random.below(4) == 0 {
                let at = frame.len().min(12);
                frame.splice(at..at, [0x81, 0, 0, 7]);
            }
            let found = guard.check(&frame);
            assert_eq!(verdict(&guard, &frame), found, "{frame:02x?}");
            if found.is_ok() {
                permitted += 1;
                let (kind, packet) = network(&frame).unwrap();
                let source = match kind {
                    EtherType::IP4 => IpAddr::from(Ip4View::new(packet).unwrap().source()),
                    EtherType::IP6 => Ip6View::new(packet).unwrap().source().into(),
                    EtherType::ARP => ArpView::new(packet).unwrap().sender_ip().into(),
                    other => panic!("{other:?}"),
                };
                let is_own = match source {
                    IpAddr::V4(address) => guard.has_ip4(address),
                    IpAddr::V6(address) => guard.has_ip6(address),
                };
                assert!(is_own || source.is_unspecified(), "{source}");
            }
        }
        assert!(permitted > 50_000, "{permitted}");
    }

    #[test]
    fn prefixes_of_any_length_are_masks() {
        let prefix = |text: &str, length| SourceGuard::new(None, [(text.parse().unwrap(), length)]);
        for (text, length, inside, outside) in [
            ("10.0.0.0", 8, "10.255.255.255", "11.0.0.0"),
            ("10.1.2.3", 31, "10.1.2.2", "10.1.2.4"),
            ("10.1.2.3", 200, "10.1.2.3", "10.1.2.2"),
        ] {
            let guard = prefix(text, length);
            assert!(guard.has_ip4(inside.parse().unwrap()) && !guard.has_ip4(outside.parse().unwrap()));
        }
        assert!(prefix("10.0.0.0", 0).has_ip4(Ipv4Addr::BROADCAST));
        let guard = prefix("2001:db8::", 32);
        assert!(guard.has_ip6("2001:db8:ffff::1".parse().unwrap()));
        assert!(!guard.has_ip6("2001:db9::".parse().unwrap()) && !guard.has_ip4(Ipv4Addr::UNSPECIFIED));
        assert!(prefix("::1", 0).has_ip6("ff02::1".parse().unwrap()));
    }
}
