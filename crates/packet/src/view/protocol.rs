//! IP protocol numbers (IANA, as used in IPv4's protocol and IPv6's next-header field).

/// IPv6 hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Internet Control Message Protocol.
pub const ICMP: u8 = 1;
/// Internet Group Management Protocol.
pub const IGMP: u8 = 2;
/// IPv4 in IP.
pub const IPIP: u8 = 4;
/// Transmission Control Protocol.
pub const TCP: u8 = 6;
/// User Datagram Protocol.
pub const UDP: u8 = 17;
/// Datagram Congestion Control Protocol.
pub const DCCP: u8 = 33;
/// IPv6 in IP.
pub const IPV6: u8 = 41;
/// IPv6 routing header.
pub const ROUTING: u8 = 43;
/// IPv6 fragment header.
pub const FRAGMENT: u8 = 44;
/// Resource Reservation Protocol.
pub const RSVP: u8 = 46;
/// Generic Routing Encapsulation.
pub const GRE: u8 = 47;
/// Encapsulating Security Payload.
pub const ESP: u8 = 50;
/// Authentication Header.
pub const AH: u8 = 51;
/// ICMP for IPv6.
pub const ICMP6: u8 = 58;
/// No next header.
pub const NO_NEXT: u8 = 59;
/// IPv6 destination options.
pub const DESTINATION: u8 = 60;
/// Open Shortest Path First.
pub const OSPF: u8 = 89;
/// Protocol Independent Multicast.
pub const PIM: u8 = 103;
/// Stream Control Transmission Protocol.
pub const SCTP: u8 = 132;
/// IPv6 mobility header.
pub const MOBILITY: u8 = 135;
/// UDP-Lite.
pub const UDP_LITE: u8 = 136;
