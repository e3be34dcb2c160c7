//! Frames of the benchmark sources.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::{EtherType, EthernetViewMut, Ip4View, Ip4ViewMut, MacAddr, TcpViewMut, UdpViewMut, protocol};

/// Shortest frame, without its checksum.
const MIN_LENGTH: u32 = 60;
/// Longest frame: the maximum IP length behind an Ethernet header.
const MAX_LENGTH: u32 = 65_535 + 14;
/// Offset of the IP header.
const IP_OFFSET: usize = 14;
const TRANSPORT_OFFSET: usize = IP_OFFSET + 20;

/// Number of frames to send, and their source addresses.
#[derive(ArgumentGroup)]
pub(crate) struct SenderArguments {
    /// Packets per second; 0 for as fast as they are pulled.
    #[arg(position)]
    pub(super) rate: u32,
    /// Packets to send in total; negative for no limit.
    #[arg(position)]
    pub(super) limit: i32,
    /// Frame length in bytes.
    #[arg(position)]
    length: u32,
    /// Source Ethernet address.
    #[arg(position)]
    srceth: MacAddr,
    /// Source IP address.
    #[arg(position)]
    srcip: Ipv4Addr,
}

/// Destination addresses of the frames.
#[derive(ArgumentGroup)]
pub(crate) struct ReceiverArguments {
    /// Destination Ethernet address.
    #[arg(position)]
    dsteth: MacAddr,
    /// Destination IP address.
    #[arg(position)]
    dstip: Ipv4Addr,
}

/// Fields that all frames of a source share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) length: usize,
    pub(crate) source_mac: MacAddr,
    pub(crate) destination_mac: MacAddr,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) checksum: bool,
}

/// The nearest valid length.
pub(crate) fn clamp_length(length: u32) -> usize {
    length.clamp(MIN_LENGTH, MAX_LENGTH) as usize
}

impl Frame {
    /// Reads the arguments; warns if it had to raise the length.
    pub(crate) fn new(
        from: &SenderArguments,
        to: &ReceiverArguments,
        checksum: bool,
        setup: &mut Setup,
    ) -> Frame {
        if from.length < MIN_LENGTH {
            setup.environment().console("warning: packet length < 60, defaulting to 60");
        }
        Frame {
            length: clamp_length(from.length),
            source_mac: from.srceth,
            destination_mac: to.dsteth,
            source: from.srcip,
            destination: to.dstip,
            checksum,
        }
    }

    fn start(&self, cx: &Context, protocol: u8) -> Option<Packet> {
        let mut packet = cx.pool().allocate(self.length)?;
        let data = packet.data_mut();
        data.fill(0);
        let mut ethernet = EthernetViewMut::new(data)?;
        ethernet.set_source(self.source_mac);
        ethernet.set_destination(self.destination_mac);
        ethernet.set_ether_type(EtherType::IP4);
        let mut ip = Ip4ViewMut::new(data.get_mut(IP_OFFSET..)?)?;
        ip.set_version_length(0x45);
        ip.set_total_length((self.length - IP_OFFSET) as u16);
        ip.set_ttl(250);
        ip.set_protocol(protocol);
        ip.set_source(self.source);
        ip.set_destination(self.destination);
        ip.fill_checksum();
        packet.set_network(IP_OFFSET as isize, TRANSPORT_OFFSET - IP_OFFSET);
        packet.set_destination_ip(self.destination);
        Some(packet)
    }

    /// A UDP frame with the given ports; `None` if the pool is exhausted.
    pub(crate) fn udp(&self, cx: &Context, ports: (u16, u16)) -> Option<Packet> {
        let mut packet = self.start(cx, protocol::UDP)?;
        let length = (self.length - TRANSPORT_OFFSET) as u16;
        let (head, rest) = packet.data_mut().split_at_mut_checked(TRANSPORT_OFFSET)?;
        let pseudo = Ip4View::new(head.get(IP_OFFSET..)?)?.pseudo_header(length);
        let mut udp = UdpViewMut::new(rest)?;
        udp.set_source(ports.0);
        udp.set_destination(ports.1);
        udp.set_length(length);
        if self.checksum {
            udp.fill_checksum(pseudo);
        }
        Some(packet)
    }

    /// A TCP frame with the given ports, flags and numbers; `None` if the pool is exhausted.
    pub(crate) fn tcp(
        &self,
        cx: &Context,
        ports: (u16, u16),
        flags: u8,
        numbers: (u32, u32),
    ) -> Option<Packet> {
        let mut packet = self.start(cx, protocol::TCP)?;
        let length = (self.length - TRANSPORT_OFFSET) as u16;
        let (head, rest) = packet.data_mut().split_at_mut_checked(TRANSPORT_OFFSET)?;
        let pseudo = Ip4View::new(head.get(IP_OFFSET..)?)?.pseudo_header(length);
        let mut tcp = TcpViewMut::new(rest)?;
        tcp.set_source(ports.0);
        tcp.set_destination(ports.1);
        tcp.set_sequence(numbers.0);
        tcp.set_acknowledgement(numbers.1);
        tcp.set_header_length(20);
        tcp.set_flags(flags);
        tcp.set_window(65_535);
        tcp.fill_checksum(pseudo);
        Some(packet)
    }
}

/// Two random ports.
pub(crate) fn random_ports(cx: &Context) -> (u16, u16) {
    let port = || (((cx.random() >> 2) % 0xffff) as u16).swap_bytes();
    (port(), port())
}
