//! The 48 bytes of annotations that travel with a packet, and their named fields.
//!
//! The offsets are Click's. Configurations refer to them by number (`SetAnnoByte(16, 3)`) or by name (`PAINT`), and
//! some overlap on purpose. `AnnotationInfo` reports overlaps between the fields that a configuration uses.

/// Bytes of annotations in every packet.
pub const SIZE: usize = 48;

/// A named field of the annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Click's name, without the suffix.
    pub name: &'static str,
    /// Offset of the first byte.
    pub offset: u8,
    /// Length in bytes.
    pub size: u8,
}

impl Field {
    const fn new(name: &'static str, offset: u8, size: u8) -> Field {
        assert!(offset as usize + size as usize <= SIZE);
        Field { name, offset, size }
    }
}

/// IPv4 address of the next hop; network byte order.
pub const DST_IP: Field = Field::new("DST_IP", 0, 4);
/// IPv6 address of the next hop.
pub const DST_IP6: Field = Field::new("DST_IP6", 0, 16);
/// Colour of the packet, set by `Paint`.
pub const PAINT: Field = Field::new("PAINT", 16, 1);
/// Offset of the offending byte for an ICMP parameter problem.
pub const ICMP_PARAMPROB: Field = Field::new("ICMP_PARAMPROB", 17, 1);
/// A non-zero value asks `FixIPSrc` to set the source address.
pub const FIX_IP_SRC: Field = Field::new("FIX_IP_SRC", 19, 1);
/// 802.1Q tag control information; network byte order.
pub const VLAN_TCI: Field = Field::new("VLAN_TCI", 20, 2);
/// Number of the flow or address group, set by the aggregating elements. Host byte order, like the numbers below.
pub const AGGREGATE: Field = Field::new("AGGREGATE", 20, 4);
/// Forward rate, in Click's rate units.
pub const FWD_RATE: Field = Field::new("FWD_RATE", 20, 4);
/// An IPv4 address, for private use by a group of elements.
pub const MISC_IP: Field = Field::new("MISC_IP", 20, 4);
/// Number of packets that this one represents, in addition to itself.
pub const EXTRA_PACKETS: Field = Field::new("EXTRA_PACKETS", 24, 4);
/// Reverse rate, in Click's rate units.
pub const REV_RATE: Field = Field::new("REV_RATE", 24, 4);
/// Number of bytes that this packet represents, in addition to its own.
pub const EXTRA_LENGTH: Field = Field::new("EXTRA_LENGTH", 28, 4);
/// Private to `IPReassembler`.
pub const IPREASSEMBLER: Field = Field::new("IPREASSEMBLER", 28, 4);
/// Time of the first packet that this one represents.
pub const FIRST_TIMESTAMP: Field = Field::new("FIRST_TIMESTAMP", 32, 8);
/// Number of the security association of a packet that enters an IPsec tunnel.
pub const IPSEC_SPI: Field = Field::new("IPSEC_SPI", 32, 4);
/// Number of the packet in a dump.
pub const PACKET_NUMBER: Field = Field::new("PACKET_NUMBER", 32, 4);
/// Sequence number set by sources.
pub const SEQUENCE_NUMBER: Field = Field::new("SEQUENCE_NUMBER", 36, 4);
/// A cycle count.
pub const PERFCTR: Field = Field::new("PERFCTR", 40, 8);

/// Every named field, ordered by offset.
pub const FIELDS: &[Field] = &[
    DST_IP,
    DST_IP6,
    PAINT,
    ICMP_PARAMPROB,
    FIX_IP_SRC,
    VLAN_TCI,
    AGGREGATE,
    FWD_RATE,
    MISC_IP,
    EXTRA_PACKETS,
    REV_RATE,
    EXTRA_LENGTH,
    IPREASSEMBLER,
    FIRST_TIMESTAMP,
    IPSEC_SPI,
    PACKET_NUMBER,
    SEQUENCE_NUMBER,
    PERFCTR,
];
