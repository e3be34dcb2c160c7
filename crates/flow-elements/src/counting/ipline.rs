//! Formats an IPv4 packet as a line of text, much like tcpdump.

use core::fmt::Write;

use element::arguments::{IcmpType, IpProtocol};
use element::prelude::*;
use packet::view::icmp4::kind;
use packet::view::tcp::flag;
use packet::{Ip4View, protocol};

/// Length of an ICMP header.
const ICMP_LENGTH: usize = 8;
/// ICMP unreachable codes that are printed with details.
const CODE_PROTOCOL: u8 = 2;
const CODE_PORT: u8 = 3;
const CODE_NEED_FRAGMENT: u8 = 4;

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |pair| u16::from_be_bytes(*pair))
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four))
}

/// The parts of a packet that a line describes.
pub(super) struct PacketParts<'a> {
    pub(super) ip: Ip4View<'a>,
    /// Transport header and data, cut at the length in the IP header.
    pub(super) transport: &'a [u8],
    /// Length of the packet.
    pub(super) length: usize,
}

impl<'a> PacketParts<'a> {
    /// `None` if there is no complete IP header.
    pub(super) fn new(packet: &'a Packet) -> Option<PacketParts<'a>> {
        let ip = Ip4View::new(packet.network())?;
        let transport = packet.transport();
        let claimed = usize::from(ip.total_length()).saturating_sub(ip.header_length());
        let transport = transport.get(..claimed).unwrap_or(transport);
        Some(PacketParts { ip, transport, length: packet.len() })
    }

    /// Bytes after the IP header, according to the header.
    pub(super) fn payload_length(&self) -> i64 {
        i64::from(self.ip.total_length()) - self.ip.header_length() as i64
    }

    /// Appends what the transport protocol says.
    pub(super) fn describe(&self, line: &mut String, swap: bool) {
        // Writing to a string does not fail.
        let _ = match self.ip.protocol() {
            protocol::TCP => self.tcp(line),
            protocol::UDP => self.udp(line),
            protocol::ICMP => self.icmp(line, swap),
            other => write!(line, "{}: ip-proto-{other}", self.addresses()),
        };
        if self.ip.is_fragment() {
            let more = if self.ip.more_fragments() { "+" } else { "" };
            let (id, length, at) =
                (self.ip.identification(), self.payload_length(), self.ip.fragment_offset());
            let _ = write!(line, " (frag {id}:{length}@{at}{more})");
        }
    }

    fn addresses(&self) -> String {
        format!("{} > {}", self.ip.source(), self.ip.destination())
    }

    /// Appends source and destination with ports. Returns `false` if there are no ports; then only addresses were
    /// appended.
    fn ports(&self, line: &mut String, name: &str) -> Result<bool, core::fmt::Error> {
        let first = self.ip.is_first_fragment();
        if self.transport.len() < 4 || !first {
            let truncated = if first { "truncated-" } else { "" };
            write!(line, "{}: {truncated}{name}", self.addresses())?;
            return Ok(false);
        }
        let (source, destination) = (read_u16(self.transport, 0), read_u16(self.transport, 2));
        write!(line, "{}.{source} > {}.{destination}: ", self.ip.source(), self.ip.destination())?;
        Ok(true)
    }

    fn tcp(&self, line: &mut String) -> core::fmt::Result {
        if !self.ports(line, "tcp")? {
            return Ok(());
        }
        let tcp = self.transport;
        let (Some(offset), Some(flags)) = (tcp.get(12), tcp.get(13)) else {
            return line.write_str("truncated-tcp");
        };
        let mut length = self.payload_length() - i64::from(offset >> 4) * 4;
        for (bit, letter, counts) in
            [(flag::SYN, 'S', 1), (flag::FIN, 'F', 1), (flag::RST, 'R', 0), (flag::PSH, 'P', 0)]
        {
            if flags & bit != 0 {
                line.push(letter);
                length += counts;
            }
        }
        if flags & (flag::SYN | flag::FIN | flag::RST | flag::PSH) == 0 {
            line.push('.');
        }
        let sequence = read_u32(tcp, 4);
        let end = sequence.wrapping_add(length as u32);
        write!(line, " {sequence}:{end}({length},{},{})", self.length, self.ip.total_length())?;
        if flags & flag::ACK != 0 {
            write!(line, " ack {}", read_u32(tcp, 8))?;
        }
        if tcp.len() < 16 {
            return line.write_str("truncated-tcp");
        }
        write!(line, " win {}", read_u16(tcp, 14))
    }

    fn udp(&self, line: &mut String) -> core::fmt::Result {
        if !self.ports(line, "udp")? {
            return Ok(());
        }
        if self.transport.len() < 8 {
            return line.write_str("truncated-udp");
        }
        write!(line, "udp {}", read_u16(self.transport, 4))
    }

    fn icmp(&self, line: &mut String, swap: bool) -> core::fmt::Result {
        write!(line, "{}: ", self.addresses())?;
        if !self.ip.is_first_fragment() {
            return line.write_str("icmp");
        }
        let (Some(&kind), Some(&code)) = (self.transport.first(), self.transport.get(1)) else {
            return line.write_str("truncated-icmp");
        };
        match kind {
            kind::ECHO_REPLY | kind::ECHO => {
                line.push_str(if kind == kind::ECHO { "icmp echo " } else { "icmp echo-reply " });
                if self.transport.len() < ICMP_LENGTH {
                    return line.write_str("truncated-icmp");
                }
                let order = |value: u16| if swap { value } else { value.swap_bytes() };
                write!(
                    line,
                    "({}, {})",
                    order(read_u16(self.transport, 4)),
                    order(read_u16(self.transport, 6))
                )
            }
            kind::UNREACHABLE => self.unreachable(line, code),
            _ => {
                match IcmpType(kind).name() {
                    Some(name) => write!(line, "icmp {name}")?,
                    None => write!(line, "icmp type {kind}")?,
                }
                match IcmpType(kind).code_name(code) {
                    Some(name) => write!(line, " {name}"),
                    None if code != 0 => write!(line, " code {code}"),
                    None => Ok(()),
                }
            }
        }
    }

    fn unreachable(&self, line: &mut String, code: u8) -> core::fmt::Result {
        let name = IcmpType(kind::UNREACHABLE).code_name(code);
        let name = name.map_or_else(|| format!("code {code}"), ToString::to_string);
        let bytes = self.transport.get(ICMP_LENGTH..).unwrap_or(&[]);
        let Some(inner) = Ip4View::new(bytes) else {
            return write!(line, "icmp unreachable {name} truncated-icmp");
        };
        write!(line, "icmp {} unreachable {name}", inner.destination())?;
        let protocol = IpProtocol(inner.protocol()).name();
        match code {
            CODE_PROTOCOL => match protocol {
                Some(protocol) => write!(line, " {protocol}"),
                None => write!(line, " {}", inner.protocol()),
            },
            CODE_PORT => {
                match protocol {
                    Some(protocol) => write!(line, " {protocol}")?,
                    None => write!(line, " protocol {}", inner.protocol())?,
                }
                match bytes.get(inner.header_length()..).filter(|ports| ports.len() >= 4) {
                    Some(ports) => write!(line, "/{}", read_u16(ports, 2)),
                    None => line.write_str("truncated-icmp"),
                }
            }
            CODE_NEED_FRAGMENT if read_u16(self.transport, 6) != 0 => {
                write!(line, " (mtu {})", read_u16(self.transport, 6))
            }
            _ => Ok(()),
        }
    }
}
