//! A packet to summarize: which of its headers are valid, and what is wrong with the others.

use alloc::format;
use alloc::string::String;
use packet::{Packet, protocol};

/// What a field requires that the packet lacks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingPart {
    Ethernet,
    Ip,
    /// A header with this name and one of these protocols, of at least this many bytes.
    Transport(&'static str, &'static [u8], usize),
}

impl MissingPart {
    pub(super) const fn tcp(length: usize) -> MissingPart {
        MissingPart::Transport("TCP", &[protocol::TCP], length)
    }

    pub(super) const fn udp(length: usize) -> MissingPart {
        MissingPart::Transport("UDP", &[protocol::UDP], length)
    }

    pub(super) const fn icmp(length: usize) -> MissingPart {
        MissingPart::Transport("ICMP", &[protocol::ICMP], length)
    }

    pub(super) const fn ports(length: usize) -> MissingPart {
        MissingPart::Transport("TCP/UDP", &[protocol::TCP, protocol::UDP], length)
    }
}

/// A packet and its headers. Padding beyond the IP length is excluded everywhere.
pub(super) struct DissectedPacket<'a> {
    pub(super) packet: &'a Packet,
    /// From the IPv4 header to the end of the packet, if the header is valid.
    pub(super) ip: Option<&'a [u8]>,
    /// From the transport header to the end of the packet; empty if it is missing.
    pub(super) transport: &'a [u8],
    /// The same, if it is a valid TCP header that starts in this packet.
    pub(super) tcp: Option<&'a [u8]>,
    /// The length of the packet without padding.
    pub(super) length: usize,
    /// Bytes that the packet represents besides its own, beyond the IP length.
    pub(super) extra: u32,
    /// The first problem found.
    pub(super) bad: Option<String>,
}

impl<'a> DissectedPacket<'a> {
    /// Examines a packet, and with `headers` its IP and transport headers. `careful` reports packets shorter than their
    /// IP length.
    pub(super) fn new(packet: &'a Packet, headers: bool, careful: bool) -> DissectedPacket<'a> {
        let extra = packet.extra_length();
        let mut dissected = DissectedPacket {
            packet,
            ip: None,
            transport: &[],
            tcp: None,
            length: packet.len(),
            extra,
            bad: None,
        };
        if headers && packet.has_network() {
            dissected.examine(careful);
        }
        dissected
    }

    fn examine(&mut self, careful: bool) {
        let network = self.packet.network();
        let &[version, _, high, low, ..] = network else { return self.report("truncated IP header") };
        let header = usize::from(version & 0xf) * 4;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if version >> 4 != 4 {
            return self.report(&format!("IP version {}", version >> 4));
        } else if header < 20 {
            return self.report(&format!("IP header length {}", version & 0xf));
        } else if length < header {
            return self.report(&format!("IP length {length}"));
        }
        let captured = network.len().min(length);
        let padding = network.len() - captured;
        let behind = self.extra as usize + padding;
        if padding == 0 && careful && captured + behind < length {
            self.report(&format!("truncated IP missing {}", length - captured - behind));
        }
        self.ip = Some(&network[..captured]);
        self.length -= padding.min(self.length);
        // The IP length includes bytes that were not captured. Only bytes beyond its 16 bits are counted here.
        let whole = captured + behind;
        self.extra = if length == 0xffff && whole > 0xffff { (whole - 0xffff) as u32 } else { 0 };
        if captured > header && self.packet.has_transport() {
            let transport = self.packet.transport();
            self.transport = &transport[..transport.len().saturating_sub(padding)];
        }
        self.tcp = self.transport_of(protocol::TCP);
        if let Some(words) =
            self.tcp.and_then(|tcp| tcp.get(12)).map(|byte| byte >> 4).filter(|words| *words < 5)
        {
            self.report(&format!("TCP header length {words}"));
            self.tcp = None;
        }
    }

    /// From the transport header on, if it is of this protocol and starts in this packet.
    pub(super) fn transport_of(&self, protocol: u8) -> Option<&'a [u8]> {
        let found =
            self.protocol() == Some(protocol) && self.is_first_fragment() && !self.transport.is_empty();
        found.then_some(self.transport)
    }

    /// The IP protocol.
    pub(super) fn protocol(&self) -> Option<u8> {
        self.ip?.get(9).copied()
    }

    /// Whether the transport header starts in this packet, according to the IP header.
    pub(super) fn is_first_fragment(&self) -> bool {
        !matches!(self.ip, Some([_, _, _, _, _, _, high, low, ..]) if high & 0x1f != 0 || *low != 0)
    }

    /// Records the problem of a missing field. Another protocol is not a problem.
    pub(super) fn record_missing(&mut self, needs: MissingPart) {
        let MissingPart::Transport(name, protocols, length) = needs else {
            let text = match (needs, self.ip) {
                (MissingPart::Ethernet, _) => "Ethernet header",
                (_, None) => "no IP header",
                _ => "truncated IP header capture",
            };
            return self.report(text);
        };
        if self.ip.is_none() {
            return self.report("no IP header");
        }
        let is_other = self.protocol().is_some_and(|protocol| !protocols.contains(&protocol));
        if is_other {
            return;
        }
        let text = if !self.is_first_fragment() {
            format!("fragmented {name} header")
        } else if self.transport.len() + self.extra as usize >= length {
            format!("truncated {name} header capture")
        } else {
            format!("truncated {name} header")
        };
        self.report(&text);
    }

    fn report(&mut self, text: &str) {
        self.bad.get_or_insert_with(|| text.into());
    }
}
