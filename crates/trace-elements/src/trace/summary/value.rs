//! Extracts the values of fields from packets.

use super::dissected::{DissectedPacket, MissingPart};
use super::field::Field;
use core::net::Ipv4Addr;
use packet::{Ip4View, MacAddr, Timestamp, annotation, protocol};

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Address(Ipv4Addr),
    Mac(MacAddr),
    Time(Timestamp),
    /// The options of an IP or TCP header, including padding.
    Options(&'a [u8]),
    Payload(&'a [u8]),
}

use Value::Number;

/// ICMP types that carry an identifier and a sequence number.
const ICMP_SEQUENCED: [u8; 6] = [0, 8, 13, 14, 15, 16];
/// The first bytes of TCP options that consist of padding and a timestamp only.
const ONLY_TIMESTAMP: [u8; 4] = [1, 1, 8, 10];

/// A field's value; `None` if the packet has none, which is recorded in `dissected` if it is a fault. `extra` says
/// whether lengths include the bytes that the packet represents besides its own.
pub(super) fn value<'a>(dissected: &mut DissectedPacket<'a>, field: Field, extra: bool) -> Option<Value<'a>> {
    match found(dissected, field, extra) {
        Ok(value) => Some(value),
        Err(Some(needs)) => {
            dissected.record_missing(needs);
            None
        }
        Err(None) => None,
    }
}

/// A field's value. The error is what the field requires; `None` if the field does not apply.
fn found<'a>(
    dissected: &DissectedPacket<'a>,
    field: Field,
    extra: bool,
) -> Result<Value<'a>, Option<MissingPart>> {
    let packet = dissected.packet;
    let behind = if extra { dissected.extra } else { 0 };
    let ip = |at: usize| dissected.ip.filter(|ip| ip.len() > at).ok_or(Some(MissingPart::Ip));
    let tcp = |end: usize| dissected.tcp.filter(|tcp| tcp.len() >= end).ok_or(Some(MissingPart::tcp(end)));
    let icmp = |end: usize| {
        dissected
            .transport_of(protocol::ICMP)
            .filter(|icmp| icmp.len() >= end)
            .ok_or(Some(MissingPart::icmp(end)))
    };
    Ok(match field {
        Field::Nothing => return Err(None),
        Field::Timestamp | Field::NanoTimestamp => Value::Time(packet.timestamp()),
        Field::Seconds => Number(packet.timestamp().seconds() as u32 as u64),
        Field::Micros => Number((packet.timestamp().subsecond_nanos() / 1_000).into()),
        Field::MicrosTotal => Number(packet.timestamp().micros() as u64),
        Field::FirstTimestamp | Field::FirstNanoTimestamp => Value::Time(packet.first_timestamp()),
        Field::Count => Number(1 + u64::from(packet.annotation_u32(annotation::EXTRA_PACKETS.offset.into()))),
        Field::Link | Field::Paint | Field::Direction => Number(packet.paint().into()),
        Field::Aggregate => Number(packet.aggregate().into()),
        Field::WireLength => Number(packet.len() as u64),
        Field::EthSource => Value::Mac(ethernet(dissected)?.source()),
        Field::EthDestination => Value::Mac(ethernet(dissected)?.destination()),
        Field::EthType => Number(ethernet(dissected)?.type_number().into()),
        Field::IpSource => Value::Address(read_address(ip(15)?, 12)),
        Field::IpDestination => Value::Address(read_address(ip(19)?, 16)),
        Field::IpTos => Number(ip(1)?[1].into()),
        Field::IpDscp => Number((ip(1)?[1] >> 2).into()),
        Field::IpEcn => Number((ip(1)?[1] & 3).into()),
        Field::IpTtl => Number(ip(8)?[8].into()),
        Field::IpFragment => Number(fragment_letter(read_u16(ip(7)?, 6)).into()),
        Field::IpFragmentOffset => Number(read_u16(ip(7)?, 6).into()),
        Field::IpId => Number(read_u16(ip(5)?, 4).into()),
        Field::IpChecksum => Number(read_u16(ip(11)?, 10).into()),
        Field::IpProtocol => Number(ip(9)?[9].into()),
        Field::IpHeaderLength => Number((u64::from(ip(0)?[0]) & 0xf) * 4),
        Field::IpLength => {
            let length = dissected.ip.map_or(dissected.length as u64, |ip| read_u16(ip, 2).into());
            Number(length + u64::from(behind))
        }
        Field::IpCaptureLength => Number(match dissected.ip {
            Some(ip) => (ip.len() as u64).min(read_u16(ip, 2).into()),
            None => dissected.length as u64,
        }),
        Field::IpOptions => {
            let ip = dissected.ip.ok_or(Some(MissingPart::Ip))?;
            let length = (usize::from(ip[0]) & 0xf) * 4;
            let options = if length <= 20 { Some(&ip[..0]) } else { ip.get(20..length) };
            Value::Options(options.ok_or(Some(MissingPart::Ip))?)
        }
        Field::SourcePort => Number(ports(dissected, 2)?),
        Field::DestinationPort => Number(ports(dissected, 4)?),
        Field::TcpSequence => Number(read_u32(tcp(8)?, 4).into()),
        Field::TcpAcknowledgement => Number(read_u32(tcp(12)?, 8).into()),
        Field::TcpOffset => Number(u64::from(tcp(13)?[12] >> 4) * 4),
        Field::TcpFlags => Number(u64::from(tcp(14)?[13]) | u64::from(tcp(14)?[12] & 0xf) << 8),
        Field::TcpWindow => Number(read_u16(tcp(16)?, 14).into()),
        Field::TcpUrgent => Number(read_u16(tcp(20)?, 18).into()),
        Field::TcpOptions | Field::TcpPlainOptions | Field::TcpSack => {
            let header = tcp(13)?;
            let length = usize::from(header[12] >> 4) * 4;
            let plain =
                field != Field::TcpOptions && length == 32 && header.get(20..24) == Some(&ONLY_TIMESTAMP);
            let options = if length <= 20 || plain { Some(&header[..0]) } else { header.get(20..length) };
            Value::Options(options.ok_or(Some(MissingPart::tcp(header.len() + 1)))?)
        }
        Field::UdpLength => {
            let udp = dissected.transport_of(protocol::UDP).filter(|udp| udp.len() >= 6);
            Number(read_u16(udp.ok_or(Some(MissingPart::udp(6)))?, 4).into())
        }
        Field::IcmpType | Field::IcmpTypeName => Number(icmp(1)?[0].into()),
        Field::IcmpCode | Field::IcmpCodeName => Number(icmp(2)?[1].into()),
        Field::IcmpFlow | Field::IcmpSequence => {
            if !ICMP_SEQUENCED.contains(&icmp(1)?[0]) {
                return Err(None);
            }
            let at = if field == Field::IcmpFlow { 4 } else { 6 };
            Number(read_u16(icmp(at + 2)?, at).into())
        }
        Field::IcmpNextMtu => match icmp(2)? {
            [3, 4, ..] => Number(read_u16(icmp(8)?, 6).into()),
            _ => return Err(None),
        },
        Field::PayloadLength => {
            let behind = if dissected.ip.is_none() { dissected.extra } else { behind };
            Number(payload_range(dissected).1.wrapping_add(behind).into())
        }
        Field::Payload | Field::PayloadMd5 | Field::PayloadMd5Hex => {
            let (start, length) = payload_range(dissected);
            if length != 0 && start >= packet.len() {
                return Err(None);
            }
            let there = packet.data().get(start..dissected.length).unwrap_or(&[]);
            Value::Payload(&there[..there.len().min(length as usize)])
        }
    })
}

/// The Ethernet header, if one directly precedes the network header or stands alone.
fn ethernet<'a>(dissected: &DissectedPacket<'a>) -> Result<packet::EthernetView<'a>, Option<MissingPart>> {
    let packet = dissected.packet;
    let network = packet.network_offset();
    let bytes = match packet.mac_offset() {
        Some(at) => Some((at, packet.mac())),
        None if network.is_none_or(|at| at > 0) => Some((0, packet.data())),
        None => None,
    };
    let end = network.unwrap_or(packet.len() as isize);
    bytes
        .filter(|(at, _)| at + 14 == end)
        .and_then(|(_, bytes)| packet::EthernetView::new(bytes))
        .ok_or(Some(MissingPart::Ethernet))
}

/// The port that ends at byte `end` of the transport header, for protocols whose headers start with ports.
fn ports(dissected: &DissectedPacket, end: usize) -> Result<u64, Option<MissingPart>> {
    let known = [protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE];
    let transport = dissected
        .protocol()
        .filter(|protocol| known.contains(protocol) && dissected.is_first_fragment())
        .and_then(|_| dissected.transport.get(..end));
    Ok(read_u16(transport.ok_or(Some(MissingPart::ports(end)))?, end - 2).into())
}

/// The probable offset of the payload in the packet's data, and its probable length.
fn payload_range(dissected: &DissectedPacket) -> (usize, u32) {
    let Some(ip) = dissected.ip else { return (0, dissected.length as u32) };
    let Some(header) = Ip4View::new(ip) else { return (dissected.packet.len(), 0) };
    let transport = match header.protocol() {
        protocol::TCP if header.is_first_fragment() => {
            dissected.transport.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4).max(20)
        }
        protocol::UDP | protocol::UDP_LITE if header.is_first_fragment() => 8,
        _ => 0,
    };
    let skipped = header.header_length() + transport;
    let start = dissected.packet.network_offset().unwrap_or(0) + skipped as isize;
    (usize::try_from(start).unwrap_or(0), u32::from(header.total_length()).wrapping_sub(skipped as u32))
}

/// A fragment's kind: `F` first, `f` later, `!` and `.` unfragmented with and without the don't-fragment flag.
fn fragment_letter(field: u16) -> u8 {
    match field {
        _ if field & 0x1fff != 0 => b'f',
        _ if field & 0x2000 != 0 => b'F',
        _ if field & 0x4000 != 0 => b'!',
        _ => b'.',
    }
}

/// The 16-bit number at an offset that the caller has checked.
fn read_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// The 32-bit number at an offset that the caller has checked.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The address at an offset that the caller has checked.
fn read_address(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::from(read_u32(bytes, at))
}
