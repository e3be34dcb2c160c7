//! The fields of a summary dump.

/// A field of a packet's headers, contents or annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is described in the table below")]
pub enum Field {
    Nothing,
    Timestamp,
    NanoTimestamp,
    Seconds,
    Micros,
    MicrosTotal,
    FirstTimestamp,
    FirstNanoTimestamp,
    Count,
    Link,
    Paint,
    Direction,
    Aggregate,
    WireLength,
    EthSource,
    EthDestination,
    EthType,
    IpSource,
    IpDestination,
    IpTos,
    IpDscp,
    IpEcn,
    IpTtl,
    IpFragment,
    IpFragmentOffset,
    IpId,
    IpChecksum,
    IpProtocol,
    IpHeaderLength,
    IpLength,
    IpCaptureLength,
    IpOptions,
    SourcePort,
    DestinationPort,
    TcpSequence,
    TcpAcknowledgement,
    TcpOffset,
    TcpFlags,
    TcpWindow,
    TcpUrgent,
    TcpOptions,
    TcpPlainOptions,
    TcpSack,
    UdpLength,
    IcmpType,
    IcmpCode,
    IcmpTypeName,
    IcmpCodeName,
    IcmpFlow,
    IcmpSequence,
    IcmpNextMtu,
    Payload,
    PayloadLength,
    PayloadMd5,
    PayloadMd5Hex,
}

/// The encoding of a field in a binary record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// This number of bytes, big-endian.
    Bytes(usize),
    /// Seconds and microseconds, four bytes each.
    Micros,
    /// Seconds and nanoseconds, four bytes each.
    Nanos,
    /// A length byte, then the options.
    Options,
    /// Not possible in binary records.
    Never,
}

/// The properties of a field.
struct Info {
    field: Field,
    name: &'static str,
    width: Width,
    /// When a packet is constructed, fields are applied in this order, so that lengths precede what they measure; zero
    /// for fields that can't be read.
    order: u16,
}

const fn info(field: Field, name: &'static str, width: Width, order: u16) -> Info {
    Info { field, name, width, order }
}

use Width::{Bytes, Micros, Nanos, Never, Options};

/// Every field.
const FIELDS: &[Info] = &[
    info(Field::Nothing, "none", Bytes(0), 100),
    // Annotations. Both timestamps are the packet's time; they differ in binary dumps only.
    info(Field::Timestamp, "timestamp", Micros, 100),
    info(Field::NanoTimestamp, "ntimestamp", Nanos, 100),
    info(Field::Seconds, "ts_sec", Bytes(4), 100),
    info(Field::Micros, "ts_usec", Bytes(4), 100),
    info(Field::MicrosTotal, "ts_usec1", Bytes(8), 100),
    info(Field::FirstTimestamp, "first_timestamp", Micros, 100),
    info(Field::FirstNanoTimestamp, "first_ntimestamp", Nanos, 100),
    info(Field::Count, "count", Bytes(4), 100),
    info(Field::Link, "link", Bytes(1), 100),
    info(Field::Paint, "paint", Bytes(1), 100),
    info(Field::Direction, "direction", Bytes(1), 100),
    info(Field::Aggregate, "aggregate", Bytes(4), 100),
    info(Field::WireLength, "wire_len", Bytes(4), 100),
    // Fields of the Ethernet header.
    info(Field::EthSource, "eth_src", Bytes(6), 200),
    info(Field::EthDestination, "eth_dst", Bytes(6), 200),
    info(Field::EthType, "eth_type", Bytes(2), 200),
    // Fields of the IP header. `ip_frag` is `F`, `f`, `!` or `.`; `ip_fragoff` is bytes with `+` and `!`.
    info(Field::IpSource, "ip_src", Bytes(4), 300),
    info(Field::IpDestination, "ip_dst", Bytes(4), 300),
    info(Field::IpTos, "ip_tos", Bytes(1), 300),
    info(Field::IpDscp, "ip_dscp", Bytes(1), 300),
    info(Field::IpEcn, "ip_ecn", Bytes(1), 300),
    info(Field::IpTtl, "ip_ttl", Bytes(1), 300),
    info(Field::IpFragment, "ip_frag", Bytes(1), 298),
    info(Field::IpFragmentOffset, "ip_fragoff", Bytes(2), 299),
    info(Field::IpId, "ip_id", Bytes(2), 300),
    info(Field::IpChecksum, "ip_sum", Bytes(2), 302),
    info(Field::IpProtocol, "ip_proto", Bytes(1), 300),
    info(Field::IpHeaderLength, "ip_hl", Bytes(1), 299),
    info(Field::IpLength, "ip_len", Bytes(4), 301),
    info(Field::IpCaptureLength, "ip_capture_len", Bytes(4), 502),
    info(Field::IpOptions, "ip_opt", Options, 300),
    // Fields of transport headers.
    info(Field::SourcePort, "sport", Bytes(2), 400),
    info(Field::DestinationPort, "dport", Bytes(2), 400),
    info(Field::TcpSequence, "tcp_seq", Bytes(4), 400),
    info(Field::TcpAcknowledgement, "tcp_ack", Bytes(4), 400),
    info(Field::TcpOffset, "tcp_off", Bytes(1), 399),
    info(Field::TcpFlags, "tcp_flags", Bytes(1), 400),
    info(Field::TcpWindow, "tcp_window", Bytes(2), 400),
    info(Field::TcpUrgent, "tcp_urp", Bytes(2), 400),
    info(Field::TcpOptions, "tcp_opt", Options, 403),
    info(Field::TcpPlainOptions, "tcp_ntopt", Options, 402),
    info(Field::TcpSack, "tcp_sack", Options, 401),
    info(Field::UdpLength, "udp_len", Bytes(4), 400),
    info(Field::IcmpType, "icmp_type", Bytes(1), 400),
    info(Field::IcmpCode, "icmp_code", Bytes(1), 401),
    info(Field::IcmpTypeName, "icmp_type_name", Bytes(1), 400),
    info(Field::IcmpCodeName, "icmp_code_name", Bytes(1), 401),
    info(Field::IcmpFlow, "icmp_flowid", Bytes(2), 402),
    info(Field::IcmpSequence, "icmp_seq", Bytes(2), 402),
    info(Field::IcmpNextMtu, "icmp_nextmtu", Bytes(2), 402),
    // The data after the IP, TCP and UDP headers.
    info(Field::Payload, "payload", Never, 500),
    info(Field::PayloadLength, "payload_len", Bytes(4), 501),
    info(Field::PayloadMd5, "payload_md5", Bytes(16), 0),
    info(Field::PayloadMd5Hex, "payload_md5_hex", Bytes(16), 0),
];

/// Alternative names of fields.
const SYNONYMS: &[(&str, &str)] = &[
    ("utimestamp", "timestamp"),
    ("ts", "timestamp"),
    ("sec", "ts_sec"),
    ("usec", "ts_usec"),
    ("usec1", "ts_usec1"),
    ("first_utimestamp", "first_timestamp"),
    ("first_ts", "first_timestamp"),
    ("pkt_count", "count"),
    ("packet_count", "count"),
    ("agg", "aggregate"),
    ("wire_length", "wire_len"),
    ("ether_src", "eth_src"),
    ("ether_dst", "eth_dst"),
    ("ether_type", "eth_type"),
    ("length", "ip_len"),
    ("ip_p", "ip_proto"),
    ("tcp_seqno", "tcp_seq"),
    ("tcp_ackno", "tcp_ack"),
    ("tcp_win", "tcp_window"),
    ("payload_length", "payload_len"),
];

impl Field {
    /// Finds a field by one of its names. Old dumps use spaces for underscores and omit `ip_`.
    pub fn find(name: &str) -> Option<Field> {
        let plain = SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, plain)| plain);
        if let Some(info) = FIELDS.iter().find(|info| info.name == plain) {
            return Some(info.field);
        }
        if name.contains(' ') {
            return Field::find(&name.replace(' ', "_"));
        }
        if name.contains('_') { None } else { Field::find(&alloc::format!("ip_{name}")) }
    }

    /// The name written to dumps.
    pub fn name(self) -> &'static str {
        self.info().map_or("none", |info| info.name)
    }

    /// Whether packets can be constructed from it.
    pub fn is_readable(self) -> bool {
        self.order() > 0
    }

    pub(super) fn width(self) -> Width {
        self.info().map_or(Bytes(0), |info| info.width)
    }

    pub(super) fn order(self) -> u16 {
        self.info().map_or(0, |info| info.order)
    }

    /// Whether it belongs to the IP packet, rather than to the annotations or the Ethernet header.
    pub(super) fn needs_headers(self) -> bool {
        !matches!(self.order(), 100 | 200)
    }

    fn info(self) -> Option<&'static Info> {
        FIELDS.iter().find(|info| info.field == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_names() {
        for info in FIELDS {
            assert_eq!(Field::find(info.name), Some(info.field));
            assert_eq!(info.field.name(), info.name);
            assert_eq!(FIELDS.iter().filter(|other| other.field == info.field).count(), 1, "{}", info.name);
        }
        for (synonym, name) in SYNONYMS {
            assert_eq!(Field::find(synonym), Field::find(name), "{synonym}");
        }
        for (name, field) in
            [("src", Field::IpSource), ("tcp seq", Field::TcpSequence), ("proto", Field::IpProtocol)]
        {
            assert_eq!(Field::find(name), Some(field));
        }
        assert_eq!(Field::find("sorce"), None);
        assert_eq!(Field::find(""), None);
        assert_eq!(Field::find("a b c"), None);
    }
}
