//! Ethernet frames, valid or damaged on purpose.

use packet::checksum::Sum;
use packet::view::{ethernet, icmp4, ip4, ip6, tcp, udp};
use packet::{
    EtherType, EthernetViewMut, Icmp4ViewMut, Icmp6ViewMut, Ip4ViewMut, Ip6ViewMut, MacAddr, TcpViewMut,
    UdpViewMut, protocol,
};
use random::Random;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of the shortest frame, without its check sequence, which captures omit.
const MIN_FRAME: usize = 60;
/// Length of the longest frame, without its check sequence.
pub(super) const MAX_FRAME: usize = 1514;
/// Minimum length of large frames, without their check sequence.
const MIN_LARGE_FRAME: usize = 1020;
/// The link addresses of the network's gateway and of the next router.
const GATEWAY_MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x01]);
const ROUTER_MAC: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x02]);

/// A class of frame sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// 64 bytes with the check sequence: the Ethernet minimum.
    Small,
    /// Less than 1,024 bytes.
    Medium,
    /// Up to 1,518 bytes.
    Large,
}

impl Size {
    /// The class of a frame's length, without its check sequence.
    pub(super) fn of(length: usize) -> Size {
        match length {
            ..=MIN_FRAME => Size::Small,
            MIN_LARGE_FRAME.. => Size::Large,
            _ => Size::Medium,
        }
    }

    /// A payload length that gives a frame of this class with headers of `headers` bytes.
    pub(super) fn payload(self, headers: usize, random: &mut Random) -> usize {
        let (low, high) = match self {
            Size::Small => return 0,
            Size::Medium => (100, MIN_LARGE_FRAME - 1),
            // Most large packets have the maximum size.
            Size::Large if random.below_u64(3) > 0 => (MAX_FRAME, MAX_FRAME),
            Size::Large => (MIN_LARGE_FRAME, MAX_FRAME),
        };
        (random.between(low as u64, high as u64) as usize).saturating_sub(headers)
    }
}

/// A captured frame.
pub(super) struct Frame {
    /// The captured bytes.
    pub(super) bytes: Vec<u8>,
    /// The length on the wire, without check sequence.
    pub(super) original_length: usize,
}

/// The layer above IP.
pub(super) enum Transport {
    /// TCP: ports, sequence and acknowledgement numbers, flags, options.
    Tcp { ports: (u16, u16), sequence: u32, acknowledgement: u32, flags: u8, options: Vec<u8> },
    /// UDP: ports.
    Udp { ports: (u16, u16) },
    /// An echo request or reply: identifier and sequence number.
    Echo { reply: bool, identifier: u16, sequence: u16 },
    /// A fragment after the first: protocol, offset in bytes.
    Fragment { protocol: u8, offset: u16 },
}

/// The addresses of a packet and its other IP fields.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// The sender.
    pub(super) source: IpAddr,
    /// The receiver; same IP version.
    pub(super) destination: IpAddr,
    /// Whether the packet comes from outside.
    pub(super) inbound: bool,
    /// The IPv4 identification.
    pub(super) identification: u16,
    /// The IPv4 fragment field.
    pub(super) fragment: u16,
}

impl Path {
    /// Length of the Ethernet and IP headers.
    pub(super) fn headers(&self) -> usize {
        ethernet::LENGTH + if self.source.is_ipv4() { ip4::LENGTH } else { ip6::LENGTH }
    }

    /// The reverse direction.
    pub(super) fn back(self) -> Path {
        Path { source: self.destination, destination: self.source, inbound: !self.inbound, ..self }
    }
}

impl Frame {
    /// Builds a frame with correct lengths and checksums.
    pub(super) fn new(path: &Path, transport: &Transport, payload: &[u8]) -> Frame {
        let (protocol, header) = match transport {
            Transport::Tcp { options, .. } => (protocol::TCP, tcp::LENGTH + options.len()),
            Transport::Udp { .. } => (protocol::UDP, udp::LENGTH),
            Transport::Echo { .. } if path.source.is_ipv4() => (protocol::ICMP, icmp4::LENGTH),
            Transport::Echo { .. } => (protocol::ICMP6, icmp4::LENGTH),
            Transport::Fragment { protocol, .. } => (*protocol, 0),
        };
        let above = header + payload.len();
        let start = path.headers();
        let mut bytes = vec![0; start + above];
        bytes[start + header..].copy_from_slice(payload);
        let (headers, upper) = bytes.split_at_mut(start);
        let (link, network) = headers.split_at_mut(ethernet::LENGTH);
        fill_ethernet(link, path);
        let pseudo = fill_network(network, path, transport, protocol, above);
        fill_transport(upper, transport, pseudo, path.source.is_ipv6());
        bytes.resize(bytes.len().max(MIN_FRAME), 0);
        Frame { original_length: bytes.len(), bytes }
    }

    /// Damages the frame in one of several ways.
    pub(super) fn damage(&mut self, random: &mut Random) {
        let length = self.bytes.len();
        match random.below_u64(8) {
            // The IP header checksum, a transport checksum or field, the version, the header length.
            0 => self.bytes[24] ^= 0x55,
            1 => self.bytes[(length - 1).min(50)] ^= 0x55,
            2 => self.bytes[14] = self.bytes[14] & 0xf | 0x50,
            3 => self.bytes[14] = self.bytes[14] & 0xf0 | 3,
            // The IP length exceeds the frame.
            4 => self.bytes[16] = 0x7f,
            // The end of the frame was lost on the wire.
            5 => {
                self.bytes.truncate(random.between(1, 33) as usize);
                self.original_length = self.bytes.len();
            }
            // The capture has only part of the frame.
            6 => self.bytes.truncate(random.between(20, 59) as usize),
            // Garbage after the packet.
            _ => {
                self.bytes.resize((length + 40).min(MAX_FRAME), 0xee);
                self.original_length = self.bytes.len();
            }
        }
    }
}

fn fill_ethernet(bytes: &mut [u8], path: &Path) {
    let Some(mut view) = EthernetViewMut::new(bytes) else { return };
    let (source, destination) =
        if path.inbound { (ROUTER_MAC, GATEWAY_MAC) } else { (GATEWAY_MAC, ROUTER_MAC) };
    view.set_source(source);
    view.set_destination(destination);
    view.set_ether_type(if path.source.is_ipv4() { EtherType::IP4 } else { EtherType::IP6 });
}

/// Fills the IP header; returns the sum of the pseudo header.
fn fill_network(bytes: &mut [u8], path: &Path, transport: &Transport, protocol: u8, above: usize) -> Sum {
    let addresses = (path.source, path.destination);
    if let (IpAddr::V4(source), IpAddr::V4(destination)) = addresses {
        let Some(mut view) = Ip4ViewMut::new(bytes) else { return Sum::ZERO };
        let offset = if let Transport::Fragment { offset, .. } = transport { offset / 8 } else { 0 };
        view.set_header_length(ip4::LENGTH);
        view.set_total_length((ip4::LENGTH + above) as u16);
        view.set_identification(path.identification);
        view.set_fragment(path.fragment | offset);
        view.set_ttl(if path.inbound { 53 } else { 64 });
        view.set_protocol(protocol);
        view.set_source(source);
        view.set_destination(destination);
        view.fill_checksum();
        return view.view().pseudo_header(above as u16);
    }
    let (source, destination) = (ip6(path.source), ip6(path.destination));
    let Some(mut view) = Ip6ViewMut::new(bytes) else { return Sum::ZERO };
    view.set_class_and_flow(0, 0);
    view.set_payload_length(above as u16);
    view.set_next_header(protocol);
    view.set_hop_limit(if path.inbound { 53 } else { 64 });
    view.set_source(source);
    view.set_destination(destination);
    view.view().pseudo_header(protocol, above as u32)
}

fn fill_transport(bytes: &mut [u8], transport: &Transport, pseudo: Sum, is_ip6: bool) {
    let length = bytes.len() as u16;
    match transport {
        Transport::Tcp { ports, sequence, acknowledgement, flags, options } => {
            let Some(mut view) = TcpViewMut::new(bytes) else { return };
            view.set_source(ports.0);
            view.set_destination(ports.1);
            view.set_sequence(*sequence);
            view.set_acknowledgement(*acknowledgement);
            view.set_header_length(tcp::LENGTH + options.len());
            view.set_flags(*flags);
            view.set_window(64_240);
            view.options_mut().copy_from_slice(options);
            view.fill_checksum(pseudo);
        }
        Transport::Udp { ports } => {
            let Some(mut view) = UdpViewMut::new(bytes) else { return };
            view.set_source(ports.0);
            view.set_destination(ports.1);
            view.set_length(length);
            view.fill_checksum(pseudo);
        }
        Transport::Echo { reply, identifier, sequence } if is_ip6 => {
            let Some(mut view) = Icmp6ViewMut::new(bytes) else { return };
            view.set_kind(if *reply { 129 } else { 128 });
            view.set_identifier(*identifier);
            view.set_sequence(*sequence);
            view.fill_checksum(pseudo);
        }
        Transport::Echo { reply, identifier, sequence } => {
            let Some(mut view) = Icmp4ViewMut::new(bytes) else { return };
            view.set_kind(if *reply { 0 } else { 8 });
            view.set_identifier(*identifier);
            view.set_sequence(*sequence);
            view.fill_checksum();
        }
        Transport::Fragment { .. } => {}
    }
}

fn ip6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// An address inside or outside the network.
pub(super) fn address(is_ip6: bool, inside: bool, host: u64) -> IpAddr {
    match (is_ip6, inside) {
        (false, true) => Ipv4Addr::new(10, 0, 0, host as u8).into(),
        (false, false) => Ipv4Addr::new(198, 51, 100, host as u8).into(),
        (true, true) => Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, host as u16).into(),
        (true, false) => Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, host as u16).into(),
    }
}
