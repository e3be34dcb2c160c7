//! A packet in the making, from the fields of a dump.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use packet::checksum::Sum;
use packet::view::{icmp4, tcp, udp};
use packet::{
    EtherType, EthernetViewMut, Icmp4ViewMut, Ip4View, Ip4ViewMut, Packet, Pool, TcpViewMut, Timestamp,
    UdpViewMut, annotation, protocol,
};

/// The length of an Ethernet header.
const ETHERNET: usize = 14;
/// The length of an IPv4 header without options.
pub(super) const IP: usize = 20;
/// The longest IP or TCP header.
pub(super) const LONGEST_HEADER: usize = 60;
/// The hop count of packets whose dump doesn't say.
const DEFAULT_TTL: u8 = 100;
/// Bytes behind the packet into which fields may be written: a whole header.
const SPARE: usize = 64;
/// The most bytes of a packet: the longest IP packet with its link header. Lengths in dumps may claim more.
const LONGEST: usize = 65_535 + ETHERNET;

/// The addresses and ports of packets whose dump doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    /// The source address.
    pub source: Ipv4Addr,
    /// The source port.
    pub source_port: u16,
    /// The destination address.
    pub destination: Ipv4Addr,
    /// The destination port.
    pub destination_port: u16,
}

/// A packet that was read from a dump: bytes, places of headers, annotations. Bytes that the dump doesn't tell are
/// zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The packet's bytes.
    pub bytes: Vec<u8>,
    /// Where the Ethernet header begins, if there is one.
    pub mac: Option<usize>,
    /// Where the IP header begins, if there is one.
    pub network: Option<usize>,
    /// Where the transport header begins, if there is an IP header.
    pub transport: Option<usize>,
    /// The packet's time.
    pub timestamp: Timestamp,
    /// The time of the first packet that this one stands for.
    pub first_timestamp: Option<Timestamp>,
    /// Packets that this one stands for beyond itself.
    pub extra_packets: u32,
    /// Bytes that this packet stands for beyond its own.
    pub extra_length: u32,
    /// The colour.
    pub paint: u8,
    /// The aggregate number.
    pub aggregate: u32,
    pub(super) maker: Maker,
}

/// What is known while a packet is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maker {
    protocol: u8,
    flow: Option<FlowId>,
    pub(super) is_ip: bool,
    pub(super) icmp_type_known: bool,
    pub(super) icmp_code_known: bool,
    pub(super) ip_length_fixed: bool,
    pub(super) tcp_length_fixed: bool,
    /// The length from the start of the packet that some field asks for; zero for none.
    pub(super) wanted: usize,
    /// The length of the packet. Behind it there are bytes that fields have set already, for when it grows.
    pub(super) length: usize,
}

impl Draft {
    /// An empty packet of a default protocol and flow.
    pub(super) fn new(protocol: u8, flow: Option<FlowId>) -> Draft {
        let maker = Maker {
            protocol,
            flow,
            is_ip: true,
            icmp_type_known: false,
            icmp_code_known: false,
            ip_length_fixed: false,
            tcp_length_fixed: false,
            wanted: 0,
            length: 0,
        };
        Draft {
            bytes: alloc::vec![0; SPARE],
            mac: None,
            network: None,
            transport: None,
            timestamp: Timestamp::ZERO,
            first_timestamp: None,
            extra_packets: 0,
            extra_length: 0,
            paint: 0,
            aggregate: 0,
            maker,
        }
    }

    /// Makes a packet of it; `None` when the pool is exhausted.
    pub fn packet(&self, pool: &Pool) -> Option<Packet> {
        let mut packet = pool.packet(&self.bytes)?;
        if let Some(mac) = self.mac {
            packet.set_mac(mac as isize);
        }
        if let Some(network) = self.network {
            packet.set_network(network as isize, self.transport.unwrap_or(network) - network);
            if let Some(ip) = Ip4View::new(packet.network()).filter(|_| self.maker.is_ip) {
                let destination = ip.destination();
                packet.set_destination_ip(destination);
            }
        }
        packet.set_timestamp(self.timestamp);
        if let Some(first) = self.first_timestamp {
            packet.set_first_timestamp(first);
        }
        packet.set_paint(self.paint);
        packet.set_aggregate(self.aggregate);
        packet.set_annotation_u32(annotation::EXTRA_PACKETS.offset.into(), self.extra_packets);
        packet.set_extra_length(self.extra_length);
        Some(packet)
    }

    /// The ICMP type, on which the meaning of codes depends.
    pub(super) fn icmp_type(&self) -> Option<u8> {
        self.bytes.get(self.transport?).copied().filter(|_| self.maker.icmp_type_known)
    }

    /// Completes the packet: lengths, and checksums if they are wanted.
    pub(super) fn finish(&mut self, checksums: bool) {
        if self.maker.flow.is_some() {
            let _ = self.make_ip(0);
        }
        if let Some(network) = self.network.filter(|_| self.maker.is_ip) {
            self.make_transport();
            self.set_lengths(network, checksums);
        }
        self.bytes.truncate(self.maker.length);
        let extra = self.maker.wanted.saturating_sub(self.bytes.len());
        self.extra_length = u32::try_from(extra).unwrap_or(u32::MAX);
    }

    fn set_lengths(&mut self, network: usize, checksums: bool) {
        let there = self.maker.length.saturating_sub(network);
        let wanted = self.maker.wanted;
        let Some(mut ip) = self.ip() else { return };
        if ip.view().total_length() == 0 {
            let length = if wanted >= network { wanted - network } else { wanted };
            let length = if length == 0 { there } else { length };
            ip.set_total_length(length.min(0xffff) as u16);
        }
        let view = ip.view();
        let length = usize::from(view.total_length());
        let udp_length = length.saturating_sub(view.header_length());
        if view.protocol() == protocol::UDP
            && view.is_first_fragment()
            && let Some(mut udp) = self.transport_bytes().and_then(UdpViewMut::new)
            && udp.view().length() == 0
        {
            udp.set_length(udp_length as u16);
        }
        if checksums {
            self.bytes.truncate(self.maker.length);
            self.grow(network + length);
            self.bytes.truncate(self.maker.length);
            self.set_checksums();
        }
    }

    fn set_checksums(&mut self) {
        let Some(mut ip) = self.ip() else { return };
        ip.fill_checksum();
        let view = ip.view();
        if view.is_fragment() {
            return;
        }
        let protocol = view.protocol();
        let length = self.transport.map_or(0, |at| self.bytes.len().saturating_sub(at));
        let Some(pseudo) = self.ip().map(|ip| ip.view().pseudo_header(length as u16)) else { return };
        let Some(transport) = self.transport_bytes() else { return };
        match protocol {
            protocol::TCP => {
                if let Some(mut tcp) = TcpViewMut::new(transport) {
                    tcp.fill_checksum(pseudo);
                }
            }
            protocol::UDP => fill_udp(transport, pseudo),
            protocol::ICMP => {
                if let Some(mut icmp) = Icmp4ViewMut::new(transport) {
                    icmp.fill_checksum();
                }
            }
            _ => {}
        }
    }

    /// Where the payload begins: behind the headers, which are made if they are not there.
    pub(super) fn payload_start(&mut self) -> usize {
        if self.make_ip(0).is_some() {
            self.make_transport();
        }
        let is_ip = self.maker.is_ip;
        let Some(ip) = self.ip().filter(|_| is_ip) else { return 0 };
        let (first, protocol) = (ip.view().is_first_fragment(), ip.view().protocol());
        let transport = self.transport;
        let header = match protocol {
            protocol::TCP if first => {
                let offset = transport
                    .and_then(|at| self.bytes.get(at + 12))
                    .map_or(0, |byte| usize::from(byte >> 4) * 4);
                offset.max(tcp::LENGTH)
            }
            protocol::UDP | protocol::UDP_LITE if first => udp::LENGTH,
            _ => 0,
        };
        transport.unwrap_or(0) + header
    }

    /// Takes note of a payload's length. If the IP length is known too, what is missing between them must be options,
    /// of TCP first and then of IP.
    pub(super) fn account_payload(&mut self, start: usize, length: usize) {
        let known = self.ip().map(|ip| usize::from(ip.view().total_length())).filter(|_| self.maker.is_ip);
        let (Some(network), Some(known)) = (self.network, known) else {
            self.maker.wanted = start.saturating_add(length);
            return;
        };
        let end = match (known, self.maker.wanted) {
            (0, 0) => {
                self.maker.wanted = start.saturating_add(length);
                return;
            }
            (0, wanted) => wanted.saturating_add(network),
            (known, _) => known + network,
        };
        let mut missing = end.saturating_sub(start.saturating_add(length));
        let ip = self
            .ip()
            .map(|ip| (ip.view().protocol(), ip.view().is_first_fragment(), ip.view().header_length()));
        if let (Some((protocol::TCP, true, _)), Some(transport)) = (ip, self.transport)
            && !self.maker.tcp_length_fixed
            && let Some(tcp::LENGTH) =
                self.transport_bytes().and_then(TcpViewMut::new).map(|t| t.view().header_length())
        {
            missing -= self.insert_options(transport + tcp::LENGTH, missing, |draft, length| {
                if let Some(mut tcp) = draft.transport_bytes().and_then(TcpViewMut::new) {
                    tcp.set_header_length(length);
                }
            });
        }
        if let Some((_, _, IP)) = ip
            && !self.maker.ip_length_fixed
        {
            self.insert_options(network + IP, missing, |draft, length| {
                if let Some(mut ip) = draft.ip() {
                    ip.set_header_length(length);
                }
                draft.transport = Some(network + length);
            });
        }
    }

    /// Inserts empty options at a place, as many as fit into a header and are asked for; gives their length.
    fn insert_options(&mut self, at: usize, wanted: usize, set: impl Fn(&mut Draft, usize)) -> usize {
        let length = (wanted - wanted % 4).min(LONGEST_HEADER - IP);
        if length > 0 && at <= self.maker.length {
            self.bytes.splice(at..at, core::iter::repeat_n(0, length));
            self.maker.length += length;
            set(self, IP + length);
            length
        } else {
            0
        }
    }

    pub(super) fn make_ethernet(&mut self) -> Option<EthernetViewMut<'_>> {
        if self.mac.is_none() {
            self.bytes.splice(0..0, [0; ETHERNET]);
            self.maker.length += ETHERNET;
            self.mac = Some(0);
            self.network = Some(ETHERNET);
            self.transport = Some(ETHERNET);
            if let Some(mut ethernet) = EthernetViewMut::new(&mut self.bytes) {
                ethernet.set_ether_type(EtherType::IP4);
            }
        }
        EthernetViewMut::new(&mut self.bytes)
    }

    /// The IP header, made if it is not there; `None` if the packet is not IP or of another protocol than the one asked
    /// for (zero for any).
    pub(super) fn make_ip(&mut self, protocol: u8) -> Option<Ip4ViewMut<'_>> {
        if !self.maker.is_ip {
            return None;
        }
        let network = *self.network.get_or_insert(0);
        if self.maker.length < network + IP {
            self.grow(network + IP);
            self.transport = Some(network + IP);
            let (default, flow) = (self.maker.protocol, self.maker.flow);
            let mut ip = self.ip()?;
            ip.set_header_length(IP);
            ip.set_protocol(default);
            ip.set_ttl(DEFAULT_TTL);
            if let Some(flow) = flow {
                ip.set_source(flow.source);
                ip.set_destination(flow.destination);
            }
        }
        let ip = self.ip()?;
        let found = ip.view().protocol();
        (protocol == 0 || found == 0 || found == protocol).then_some(ip)
    }

    /// Makes the transport header that the IP header asks for; false if it doesn't begin in this packet.
    pub(super) fn make_transport(&mut self) -> bool {
        let Some(ip) = self.ip() else { return false };
        if !ip.view().is_first_fragment() {
            return false;
        }
        let protocol = ip.view().protocol();
        let Some(transport) = self.transport else { return false };
        let there = self.maker.length.saturating_sub(transport);
        if there >= 8 {
            return true;
        }
        let length = match protocol {
            protocol::TCP => tcp::LENGTH,
            protocol::UDP | protocol::UDP_LITE => udp::LENGTH,
            protocol::DCCP => 12,
            protocol::ICMP => icmp4::LENGTH,
            _ => return true,
        };
        let wanted = self.maker.wanted;
        let length = if wanted > 0 { length.min(wanted.saturating_sub(transport)) } else { length };
        if there >= length {
            return true;
        }
        self.grow(transport + length);
        if protocol == protocol::TCP
            && length > 12
            && let Some(offset) = self.bytes.get_mut(transport + 12)
        {
            *offset = ((tcp::LENGTH / 4) << 4) as u8;
        }
        if let Some(flow) = self.maker.flow {
            self.store_port(0, flow.source_port);
            self.store_port(2, flow.destination_port);
        }
        true
    }

    pub(super) fn store_port(&mut self, offset: usize, port: u16) {
        if let Some(place) =
            self.transport_bytes().and_then(|transport| transport.get_mut(offset..offset + 2))
        {
            place.copy_from_slice(&port.to_be_bytes());
        }
    }

    pub(super) fn grow_transport(&mut self, length: usize) {
        if let Some(transport) = self.transport {
            self.grow(transport + length);
        }
    }

    pub(super) fn grow(&mut self, length: usize) {
        self.maker.length = self.maker.length.max(length.min(LONGEST));
        self.bytes.resize(self.bytes.len().max(self.maker.length + SPARE), 0);
    }

    pub(super) fn ip(&mut self) -> Option<Ip4ViewMut<'_>> {
        Ip4ViewMut::new(self.bytes.get_mut(self.network?..)?)
    }

    pub(super) fn transport_bytes(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.transport?..)
    }
}

/// Sets a UDP checksum over all of the bytes, whatever the header's length says.
fn fill_udp(bytes: &mut [u8], pseudo: Sum) {
    let Some(mut udp) = UdpViewMut::new(bytes) else { return };
    udp.set_checksum(0);
    let view = udp.view();
    let checksum = pseudo.bytes(view.fixed()).bytes(view.rest()).finish();
    udp.set_checksum(checksum);
}
