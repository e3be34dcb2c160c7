//! Sets the fields of a packet under construction.

use super::field::Field;
use super::packet_builder::{IP_LENGTH, MAX_HEADER_LENGTH, PacketBuilder};
use super::value::Value;
use packet::view::{icmp4, tcp, udp};
use packet::{EtherType, Icmp4ViewMut, MacAddr, TcpViewMut, Timestamp, UdpViewMut, protocol};

impl PacketBuilder {
    /// Sets a field. Fields must be set in their order.
    pub(super) fn set(&mut self, field: Field, value: Value) {
        match value {
            Value::Number(number) => self.set_number(field, number),
            Value::Address(address) => {
                if let Some(mut ip) = self.make_ip(0) {
                    match field {
                        Field::IpSource => ip.set_source(address),
                        _ => ip.set_destination(address),
                    }
                }
            }
            Value::Mac(mac) => self.set_mac(field, mac),
            Value::Time(time) => match field {
                Field::FirstTimestamp | Field::FirstNanoTimestamp => self.first_timestamp = Some(time),
                _ => self.timestamp = time,
            },
            Value::Options(options) if field == Field::IpOptions => self.set_ip_options(options),
            Value::Options(options) => self.set_tcp_options(options),
            Value::Payload(payload) => self.set_payload(payload),
        }
    }

    fn set_number(&mut self, field: Field, number: u64) {
        let (byte, word, long) = (number as u8, number as u16, number as u32);
        match field {
            Field::Seconds => {
                self.timestamp = Timestamp::from_parts(number as i64, self.timestamp.subsecond_nanos());
            }
            Field::Micros => {
                let nanos = number.min(999_999) as u32 * 1_000;
                self.timestamp = Timestamp::from_parts(self.timestamp.seconds(), nanos);
            }
            Field::MicrosTotal => self.timestamp = Timestamp::from_micros(number.min(i64::MAX as u64) as i64),
            Field::Count => self.extra_packets = long.saturating_sub(1),
            Field::Link | Field::Paint | Field::Direction => self.paint = byte,
            Field::Aggregate => self.aggregate = long,
            Field::WireLength => self.state.wanted = number as usize,
            Field::EthType => self.set_ether_type(EtherType(word)),
            Field::IpLength => {
                if self.make_ip(0).is_some()
                    && let Some(network) = self.network
                {
                    self.state.wanted = network + number as usize;
                }
            }
            Field::IpHeaderLength => self.set_ip_header_length(number as usize),
            Field::PayloadLength => {
                let start = self.payload_start();
                self.account_payload(start, number as usize);
            }
            // The value is ignored, but it implies an IP header.
            Field::IpCaptureLength => drop(self.make_ip(0)),
            _ if field.order() < 350 => self.set_ip(field, word),
            _ if field.order() < 500 => self.set_transport(field, long),
            _ => {}
        }
    }

    fn set_ip(&mut self, field: Field, value: u16) {
        let Some(mut ip) = self.make_ip(0) else { return };
        let byte = value as u8;
        match field {
            Field::IpTos => ip.set_tos(byte),
            Field::IpDscp => ip.set_dscp(byte),
            Field::IpEcn => ip.set_ecn(byte),
            Field::IpTtl => ip.set_ttl(byte),
            Field::IpFragment | Field::IpFragmentOffset => ip.set_fragment(value),
            Field::IpId => ip.set_identification(value),
            Field::IpChecksum => ip.set_checksum(value),
            Field::IpProtocol => ip.set_protocol(byte),
            _ => {}
        }
    }

    fn set_transport(&mut self, field: Field, value: u32) {
        let wanted: &[u8] = match field {
            Field::SourcePort | Field::DestinationPort => {
                &[0, protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE]
            }
            Field::UdpLength => &[0, protocol::UDP, protocol::UDP_LITE],
            Field::TcpSequence
            | Field::TcpAcknowledgement
            | Field::TcpOffset
            | Field::TcpFlags
            | Field::TcpWindow
            | Field::TcpUrgent => &[0, protocol::TCP],
            _ => &[0, protocol::ICMP],
        };
        let Some(protocol) = self.make_ip(0).map(|ip| ip.view().protocol()) else { return };
        if !wanted.contains(&protocol) || !self.make_transport() {
            return;
        }
        match field {
            // The ports may be set even if the rest of the header is missing.
            Field::SourcePort => self.store_port(0, value as u16),
            Field::DestinationPort => self.store_port(2, value as u16),
            Field::UdpLength => {
                self.grow_transport(udp::LENGTH);
                if let Some(mut udp) = self.transport_bytes().and_then(UdpViewMut::new) {
                    udp.set_length(value as u16);
                }
            }
            _ if wanted == [0, protocol::TCP] => self.set_tcp(field, value),
            _ => self.set_icmp(field, value as u16),
        }
    }

    fn set_tcp(&mut self, field: Field, value: u32) {
        if field == Field::TcpOffset {
            let length = (value as usize).next_multiple_of(4).min(MAX_HEADER_LENGTH);
            let tcp = self.transport_bytes().and_then(TcpViewMut::new);
            let old = tcp.map_or(0, |tcp| tcp.view().header_length());
            self.grow(self.state.length + length.saturating_sub(old));
        }
        let Some(mut tcp) = self.transport_bytes().and_then(TcpViewMut::new) else { return };
        match field {
            Field::TcpSequence => tcp.set_sequence(value),
            Field::TcpAcknowledgement => tcp.set_acknowledgement(value),
            Field::TcpOffset => tcp.set_header_length((value as usize).next_multiple_of(4)),
            Field::TcpFlags => {
                tcp.set_flags(value as u8);
                tcp.set_reserved((value >> 8) as u8);
            }
            Field::TcpWindow => tcp.set_window(value as u16),
            _ => tcp.set_urgent(value as u16),
        }
    }

    fn set_icmp(&mut self, field: Field, value: u16) {
        use icmp4::kind::*;
        self.grow_transport(icmp4::LENGTH);
        let known = self.state;
        let Some(mut icmp) = self.transport_bytes().and_then(Icmp4ViewMut::new) else { return };
        let (kind, code) = (icmp.view().kind(), icmp.view().code());
        let sequenced =
            matches!(kind, ECHO | ECHO_REPLY | TIMESTAMP | TIMESTAMP_REPLY | INFORMATION | INFORMATION_REPLY);
        match field {
            Field::IcmpType | Field::IcmpTypeName => {
                icmp.set_kind(value as u8);
                self.state.icmp_type_known = true;
                if matches!(value as u8, TIMESTAMP | TIMESTAMP_REPLY) {
                    self.grow_transport(20);
                }
            }
            Field::IcmpCode | Field::IcmpCodeName => {
                icmp.set_code(value as u8);
                self.state.icmp_code_known = true;
            }
            Field::IcmpFlow if !known.icmp_type_known || sequenced => icmp.set_identifier(value),
            Field::IcmpSequence if !known.icmp_type_known || sequenced => icmp.set_sequence(value),
            Field::IcmpNextMtu
                if (!known.icmp_type_known || kind == UNREACHABLE)
                    && (!known.icmp_code_known || code == 4) =>
            {
                icmp.set_next_mtu(value);
            }
            _ => {}
        }
    }

    fn set_mac(&mut self, field: Field, mac: MacAddr) {
        if let Some(mut ethernet) = self.make_ethernet() {
            match field {
                Field::EthSource => ethernet.set_source(mac),
                _ => ethernet.set_destination(mac),
            }
        }
    }

    fn set_ether_type(&mut self, ether_type: EtherType) {
        if let Some(mut ethernet) = self.make_ethernet() {
            ethernet.set_ether_type(ether_type);
        }
        if !matches!(ether_type, EtherType::IP4 | EtherType::IP6) {
            self.state.is_ip = false;
        }
    }

    fn set_ip_options(&mut self, options: &[u8]) {
        if self.make_ip(0).is_none() {
            return;
        }
        self.state.ip_length_fixed = true;
        let length = (IP_LENGTH + options.len()).next_multiple_of(4).min(MAX_HEADER_LENGTH);
        if options.is_empty() {
            return;
        }
        // A longer header that was requested is kept.
        if self.ip().is_some_and(|ip| ip.view().header_length() < length) {
            self.set_ip_header_length(length);
        }
        if let (Some(network), true) = (self.network, options.len() <= length - IP_LENGTH)
            && let Some(target) = self.bytes.get_mut(network + IP_LENGTH..network + IP_LENGTH + options.len())
        {
            target.copy_from_slice(options);
        }
    }

    /// Makes the IP header longer, or sets a shorter length in it.
    fn set_ip_header_length(&mut self, length: usize) {
        self.state.ip_length_fixed = true;
        let length = length.next_multiple_of(4).min(MAX_HEADER_LENGTH);
        if self.make_ip(0).is_none() {
            return;
        }
        let Some(network) = self.network else { return };
        let old = self.ip().map_or(IP_LENGTH, |ip| ip.view().header_length());
        if length > old {
            self.grow(network + length);
            self.transport = Some(network + length);
        }
        if let Some(mut ip) = self.ip() {
            ip.set_header_length(length);
        }
    }

    fn set_tcp_options(&mut self, options: &[u8]) {
        if self.make_ip(protocol::TCP).is_none() || !self.make_transport() {
            return;
        }
        self.state.tcp_length_fixed = true;
        let length = (tcp::LENGTH + options.len()).next_multiple_of(4).min(MAX_HEADER_LENGTH);
        if options.is_empty() || options.len() > length - tcp::LENGTH {
            return;
        }
        self.grow_transport(length);
        let Some(mut tcp) = self.transport_bytes().and_then(TcpViewMut::new) else { return };
        if length > tcp.view().header_length() {
            tcp.set_header_length(length);
        }
        if let Some((target, rest)) = tcp.options_mut().split_at_mut_checked(options.len()) {
            target.copy_from_slice(options);
            // Of several option fields, the last one counts.
            rest.fill(0);
        }
    }

    fn set_payload(&mut self, payload: &[u8]) {
        let start = self.payload_start();
        if payload.is_empty() {
            return;
        }
        self.account_payload(start, payload.len());
        let start = self.payload_start();
        self.grow(start.saturating_add(payload.len()));
        if let Some(target) = self.bytes.get_mut(start..start + payload.len()) {
            target.copy_from_slice(payload);
        }
    }
}
