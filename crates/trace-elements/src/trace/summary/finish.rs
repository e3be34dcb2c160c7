//! Completes a packet under construction: start of the payload, lengths and checksums.

use packet::checksum::Sum;
use packet::view::{tcp, udp};
use packet::{Icmp4ViewMut, TcpViewMut, UdpViewMut, protocol};

use super::packet_builder::{IP_LENGTH, MAX_HEADER_LENGTH, PacketBuilder};

impl PacketBuilder {
    /// Offset of the payload, after the headers, which are created if necessary.
    pub(super) fn payload_start(&mut self) -> usize {
        if self.make_ip(0).is_some() {
            self.make_transport();
        }
        let is_ip = self.state.is_ip;
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

    /// Applies the payload's length. If the IP length is also known, the difference must be options, first of TCP and
    /// then of IP.
    pub(super) fn account_payload(&mut self, start: usize, length: usize) {
        let known = self.ip().map(|ip| usize::from(ip.view().total_length())).filter(|_| self.state.is_ip);
        let (Some(network), Some(known)) = (self.network, known) else {
            self.state.wanted = start.saturating_add(length);
            return;
        };
        let end = match (known, self.state.wanted) {
            (0, 0) => {
                self.state.wanted = start.saturating_add(length);
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
            && !self.state.tcp_length_fixed
            && let Some(tcp::LENGTH) =
                self.transport_bytes().and_then(TcpViewMut::new).map(|t| t.view().header_length())
        {
            missing -= self.insert_options(transport + tcp::LENGTH, missing, |builder, length| {
                if let Some(mut tcp) = builder.transport_bytes().and_then(TcpViewMut::new) {
                    tcp.set_header_length(length);
                }
            });
        }
        if let Some((_, _, IP_LENGTH)) = ip
            && !self.state.ip_length_fixed
        {
            self.insert_options(network + IP_LENGTH, missing, |builder, length| {
                if let Some(mut ip) = builder.ip() {
                    ip.set_header_length(length);
                }
                builder.transport = Some(network + length);
            });
        }
    }

    /// Inserts empty options at an offset, as many of the wanted bytes as fit into a header. Returns their length.
    fn insert_options(&mut self, at: usize, wanted: usize, set: impl Fn(&mut PacketBuilder, usize)) -> usize {
        let length = (wanted - wanted % 4).min(MAX_HEADER_LENGTH - IP_LENGTH);
        if length > 0 && at <= self.state.length {
            self.bytes.splice(at..at, core::iter::repeat_n(0, length));
            self.state.length += length;
            set(self, IP_LENGTH + length);
            length
        } else {
            0
        }
    }

    /// Completes the packet: lengths, and checksums if requested.
    pub(super) fn finish(&mut self, checksums: bool) {
        if self.state.flow.is_some() {
            let _ = self.make_ip(0);
        }
        if let Some(network) = self.network.filter(|_| self.state.is_ip) {
            self.make_transport();
            self.set_lengths(network, checksums);
        }
        self.bytes.truncate(self.state.length);
        let extra = self.state.wanted.saturating_sub(self.bytes.len());
        self.extra_length = u32::try_from(extra).unwrap_or(u32::MAX);
    }

    fn set_lengths(&mut self, network: usize, checksums: bool) {
        let there = self.state.length.saturating_sub(network);
        let wanted = self.state.wanted;
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
            self.bytes.truncate(self.state.length);
            self.grow(network + length);
            self.bytes.truncate(self.state.length);
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
}

/// Sets a UDP checksum over all of the bytes, regardless of the header's length field.
fn fill_udp(bytes: &mut [u8], pseudo: Sum) {
    let Some(mut udp) = UdpViewMut::new(bytes) else { return };
    udp.set_checksum(0);
    let view = udp.view();
    let checksum = pseudo.bytes(view.fixed()).bytes(view.rest()).finish();
    udp.set_checksum(checksum);
}
