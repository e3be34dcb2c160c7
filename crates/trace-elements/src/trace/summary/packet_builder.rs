//! A packet under construction, from the fields of a dump.

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use packet::view::{icmp4, tcp, udp};
use packet::{
    EtherType, EthernetViewMut, Ip4View, Ip4ViewMut, Packet, Pool, Timestamp, annotation, protocol,
};

/// The length of an Ethernet header.
const ETHERNET_LENGTH: usize = 14;
/// The length of an IPv4 header without options.
pub(super) const IP_LENGTH: usize = 20;
/// The maximum length of an IP or TCP header.
pub(super) const MAX_HEADER_LENGTH: usize = 60;
/// The TTL of packets whose dump has none.
const DEFAULT_TTL: u8 = 100;
/// Spare bytes after the packet into which fields may be written: one whole header.
const SPARE: usize = 64;
/// Maximum length of a packet: the longest IP packet with its link header. Lengths in dumps may be larger.
const MAX_LENGTH: usize = 65_535 + ETHERNET_LENGTH;

/// Default addresses and ports of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    pub source: Ipv4Addr,
    pub source_port: u16,
    pub destination: Ipv4Addr,
    pub destination_port: u16,
}

/// A packet read from a dump: bytes, header offsets and annotations. Bytes that the dump does not specify are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketBuilder {
    pub bytes: Vec<u8>,
    /// Offset of the Ethernet header, if there is one.
    pub mac: Option<usize>,
    /// Offset of the IP header, if there is one.
    pub network: Option<usize>,
    /// Offset of the transport header, if there is an IP header.
    pub transport: Option<usize>,
    pub timestamp: Timestamp,
    /// The time of the first packet that this one represents.
    pub first_timestamp: Option<Timestamp>,
    /// Number of packets that this one represents besides itself.
    pub extra_packets: u32,
    /// Number of bytes that this packet represents besides its own.
    pub extra_length: u32,
    pub paint: u8,
    pub aggregate: u32,
    pub(super) state: BuildState,
}

/// State of the construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BuildState {
    protocol: u8,
    pub(super) flow: Option<FlowId>,
    pub(super) is_ip: bool,
    pub(super) icmp_type_known: bool,
    pub(super) icmp_code_known: bool,
    pub(super) ip_length_fixed: bool,
    pub(super) tcp_length_fixed: bool,
    /// The packet length that a field demands; zero for none.
    pub(super) wanted: usize,
    /// The packet length. The bytes after it may already hold field values, in case the packet grows.
    pub(super) length: usize,
}

impl PacketBuilder {
    /// An empty packet with a default protocol and flow.
    pub(super) fn new(protocol: u8, flow: Option<FlowId>) -> PacketBuilder {
        let state = BuildState {
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
        PacketBuilder {
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
            state,
        }
    }

    /// Creates the packet; `None` if the pool is exhausted.
    pub fn packet(&self, pool: &Pool) -> Option<Packet> {
        let mut packet = pool.packet(&self.bytes)?;
        if let Some(mac) = self.mac {
            packet.set_mac(mac as isize);
        }
        if let Some(network) = self.network {
            packet.set_network(network as isize, self.transport.unwrap_or(network) - network);
            if let Some(ip) = Ip4View::new(packet.network()).filter(|_| self.state.is_ip) {
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

    /// The ICMP type, which determines the names of codes.
    pub(super) fn icmp_type(&self) -> Option<u8> {
        self.bytes.get(self.transport?).copied().filter(|_| self.state.icmp_type_known)
    }

    pub(super) fn make_ethernet(&mut self) -> Option<EthernetViewMut<'_>> {
        if self.mac.is_none() {
            self.bytes.splice(0..0, [0; ETHERNET_LENGTH]);
            self.state.length += ETHERNET_LENGTH;
            self.mac = Some(0);
            self.network = Some(ETHERNET_LENGTH);
            self.transport = Some(ETHERNET_LENGTH);
            if let Some(mut ethernet) = EthernetViewMut::new(&mut self.bytes) {
                ethernet.set_ether_type(EtherType::IP4);
            }
        }
        EthernetViewMut::new(&mut self.bytes)
    }

    /// The IP header, created if necessary; `None` if the packet is not IP or has another protocol than `protocol`
    /// (zero for any).
    pub(super) fn make_ip(&mut self, protocol: u8) -> Option<Ip4ViewMut<'_>> {
        if !self.state.is_ip {
            return None;
        }
        let network = *self.network.get_or_insert(0);
        if self.state.length < network + IP_LENGTH {
            self.grow(network + IP_LENGTH);
            self.transport = Some(network + IP_LENGTH);
            let (default, flow) = (self.state.protocol, self.state.flow);
            let mut ip = self.ip()?;
            ip.set_header_length(IP_LENGTH);
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

    /// Creates the transport header that the IP header demands. Returns false if it does not start in this packet.
    pub(super) fn make_transport(&mut self) -> bool {
        let Some(ip) = self.ip() else { return false };
        if !ip.view().is_first_fragment() {
            return false;
        }
        let protocol = ip.view().protocol();
        let Some(transport) = self.transport else { return false };
        let there = self.state.length.saturating_sub(transport);
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
        let wanted = self.state.wanted;
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
        if let Some(flow) = self.state.flow {
            self.store_port(0, flow.source_port);
            self.store_port(2, flow.destination_port);
        }
        true
    }

    pub(super) fn store_port(&mut self, offset: usize, port: u16) {
        if let Some(target) =
            self.transport_bytes().and_then(|transport| transport.get_mut(offset..offset + 2))
        {
            target.copy_from_slice(&port.to_be_bytes());
        }
    }

    pub(super) fn grow_transport(&mut self, length: usize) {
        if let Some(transport) = self.transport {
            self.grow(transport + length);
        }
    }

    pub(super) fn grow(&mut self, length: usize) {
        self.state.length = self.state.length.max(length.min(MAX_LENGTH));
        self.bytes.resize(self.bytes.len().max(self.state.length + SPARE), 0);
    }

    pub(super) fn ip(&mut self) -> Option<Ip4ViewMut<'_>> {
        Ip4ViewMut::new(self.bytes.get_mut(self.network?..)?)
    }

    pub(super) fn transport_bytes(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.transport?..)
    }
}
