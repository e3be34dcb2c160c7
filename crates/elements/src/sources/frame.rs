//! Frames that the benchmark sources send.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::{EtherType, EthernetViewMut, Ip4View, Ip4ViewMut, MacAddr, TcpViewMut, UdpViewMut, protocol};

/// The shortest frame, without its checksum.
const SHORTEST: u32 = 60;
/// The longest: what an IP header can tell, behind an Ethernet header.
const LONGEST: u32 = 65_535 + 14;
/// Where the headers start.
const IP: usize = 14;
const TRANSPORT: usize = IP + 20;

/// How many frames a source sends, and from where.
#[derive(ArgumentGroup)]
pub(crate) struct SenderArguments {
    /// Packets a second; 0 for as many as are pulled.
    #[arg(position)]
    pub(super) rate: u32,
    /// Packets to make; negative for no end.
    #[arg(position)]
    pub(super) limit: i32,
    /// Bytes of each frame.
    #[arg(position)]
    length: u32,
    /// The sender's Ethernet address.
    #[arg(position)]
    srceth: MacAddr,
    /// The sender's IP address.
    #[arg(position)]
    srcip: Ipv4Addr,
}

/// To where it sends them.
#[derive(ArgumentGroup)]
pub(crate) struct ReceiverArguments {
    /// The receiver's Ethernet address.
    #[arg(position)]
    dsteth: MacAddr,
    /// The receiver's IP address.
    #[arg(position)]
    dstip: Ipv4Addr,
}

/// What all frames of a source have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) length: usize,
    pub(crate) source_mac: MacAddr,
    pub(crate) destination_mac: MacAddr,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    pub(crate) checksum: bool,
}

/// A length that fits.
pub(crate) fn fitting(length: u32) -> usize {
    length.clamp(SHORTEST, LONGEST) as usize
}

impl Frame {
    /// As the arguments say; warns of a length that had to be raised.
    pub(crate) fn new(
        from: &SenderArguments,
        to: &ReceiverArguments,
        checksum: bool,
        setup: &mut Setup,
    ) -> Frame {
        if from.length < SHORTEST {
            setup.environment().console("warning: packet length < 60, defaulting to 60");
        }
        Frame {
            length: fitting(from.length),
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
        let mut ip = Ip4ViewMut::new(data.get_mut(IP..)?)?;
        ip.set_version_length(0x45);
        ip.set_total_length((self.length - IP) as u16);
        ip.set_ttl(250);
        ip.set_protocol(protocol);
        ip.set_source(self.source);
        ip.set_destination(self.destination);
        ip.fill_checksum();
        packet.set_network(IP as isize, TRANSPORT - IP);
        packet.set_destination_ip(self.destination);
        Some(packet)
    }

    /// A UDP frame from and to the given ports; `None` when the pool is exhausted.
    pub(crate) fn udp(&self, cx: &Context, ports: (u16, u16)) -> Option<Packet> {
        let mut packet = self.start(cx, protocol::UDP)?;
        let length = (self.length - TRANSPORT) as u16;
        let (head, rest) = packet.data_mut().split_at_mut_checked(TRANSPORT)?;
        let pseudo = Ip4View::new(head.get(IP..)?)?.pseudo_header(length);
        let mut udp = UdpViewMut::new(rest)?;
        udp.set_source(ports.0);
        udp.set_destination(ports.1);
        udp.set_length(length);
        if self.checksum {
            udp.fill_checksum(pseudo);
        }
        Some(packet)
    }

    /// A TCP frame from and to the given ports with these flags and numbers; `None` when the pool is exhausted.
    pub(crate) fn tcp(
        &self,
        cx: &Context,
        ports: (u16, u16),
        flags: u8,
        numbers: (u32, u32),
    ) -> Option<Packet> {
        let mut packet = self.start(cx, protocol::TCP)?;
        let length = (self.length - TRANSPORT) as u16;
        let (head, rest) = packet.data_mut().split_at_mut_checked(TRANSPORT)?;
        let pseudo = Ip4View::new(head.get(IP..)?)?.pseudo_header(length);
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
