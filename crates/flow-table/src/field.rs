//! Match fields: their widths, prerequisites, and places in a key.

use crate::layout::{
    ND_SLL_PRESENT, ND_TARGET_PRESENT, ND_TLL_PRESENT, NETWORK_PRESENT, TRANSPORT_PRESENT, Words,
};

/// A match field (OpenFlow 1.3.5, 7.2.3). The numbers are those of the class `OFPXMC_OPENFLOW_BASIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// The ingress port.
    InPort = 0,
    /// The metadata that earlier tables wrote.
    Metadata = 2,
    /// Ethernet destination.
    EthDst = 3,
    /// Ethernet source.
    EthSrc = 4,
    /// Ethernet type of the payload, after VLAN tags.
    EthType = 5,
    /// VLAN number of the outer tag; bit 12 (`OFPVID_PRESENT`) is set if there is a tag.
    VlanVid = 6,
    /// VLAN priority of the outer tag.
    VlanPcp = 7,
    /// The upper six bits of IPv4's type of service or IPv6's traffic class.
    IpDscp = 8,
    /// The lower two bits of the same byte.
    IpEcn = 9,
    /// IP protocol: for IPv6, the header after all extension headers.
    IpProto = 10,
    /// IPv4 source.
    Ipv4Src = 11,
    /// IPv4 destination.
    Ipv4Dst = 12,
    /// TCP source port.
    TcpSrc = 13,
    /// TCP destination port.
    TcpDst = 14,
    /// UDP source port.
    UdpSrc = 15,
    /// UDP destination port.
    UdpDst = 16,
    /// SCTP source port.
    SctpSrc = 17,
    /// SCTP destination port.
    SctpDst = 18,
    /// ICMP type.
    Icmpv4Type = 19,
    /// ICMP code.
    Icmpv4Code = 20,
    /// ARP operation.
    ArpOp = 21,
    /// ARP sender protocol address.
    ArpSpa = 22,
    /// ARP target protocol address.
    ArpTpa = 23,
    /// ARP sender hardware address.
    ArpSha = 24,
    /// ARP target hardware address.
    ArpTha = 25,
    /// IPv6 source.
    Ipv6Src = 26,
    /// IPv6 destination.
    Ipv6Dst = 27,
    /// IPv6 flow label.
    Ipv6Flabel = 28,
    /// ICMPv6 type.
    Icmpv6Type = 29,
    /// ICMPv6 code.
    Icmpv6Code = 30,
    /// Target address of a neighbour solicitation or advertisement.
    NdTarget = 31,
    /// Source link-layer address of a neighbour solicitation.
    NdSll = 32,
    /// Target link-layer address of a neighbour advertisement.
    NdTll = 33,
    /// MPLS label of the outer header.
    MplsLabel = 34,
    /// MPLS traffic class of the outer header.
    MplsTc = 35,
    /// MPLS bottom of stack bit of the outer header.
    MplsBos = 36,
    /// Number of the service instance of a header of provider backbone bridging.
    PbbIsid = 37,
    /// Number of the tunnel through which the packet arrived.
    TunnelId = 38,
    /// IPv6 extension headers, as bits (`OFPIEH_*`).
    Ipv6ExtHdr = 39,
    /// Extension, not in OpenFlow 1.3: bit 0 is set in every IP fragment, bit 1 in all but the first.
    IpFragment = 128,
}

/// The bits of a field in a key: `bits` bits of `word`, shifted left by `shift`. More than 64 bits continue in the
/// next word, which holds the lower ones.
#[derive(Clone, Copy)]
pub(crate) struct BitRange {
    word: usize,
    shift: u32,
    pub(crate) bits: u32,
}

impl BitRange {
    pub(crate) fn read(self, words: &Words) -> u128 {
        if self.bits > 64 {
            return u128::from(words[self.word]) << 64 | u128::from(words[self.word + 1]);
        }
        u128::from(words[self.word] >> self.shift) & ones(self.bits)
    }

    pub(crate) fn write(self, words: &mut Words, value: u128) {
        if self.bits > 64 {
            words[self.word] = (value >> 64) as u64;
            words[self.word + 1] = value as u64;
            return;
        }
        let mask = (ones(self.bits) as u64) << self.shift;
        words[self.word] = words[self.word] & !mask | (value as u64) << self.shift & mask;
    }
}

/// The lowest `bits` bits.
pub(crate) fn ones(bits: u32) -> u128 {
    u128::MAX >> (128 - bits.clamp(1, 128))
}

/// What a packet, or the packets of a match, are known to be. Prerequisites are conditions on this.
#[derive(Clone, Copy)]
pub(crate) struct Nature {
    pub(crate) vlan: bool,
    pub(crate) eth_type: Option<u16>,
    pub(crate) protocol: Option<u8>,
    pub(crate) icmp_type: Option<u8>,
}

impl Field {
    /// All fields, in the order of their numbers.
    pub const ALL: &'static [Field] = &[
        Self::InPort,
        Self::Metadata,
        Self::EthDst,
        Self::EthSrc,
        Self::EthType,
        Self::VlanVid,
        Self::VlanPcp,
        Self::IpDscp,
        Self::IpEcn,
        Self::IpProto,
        Self::Ipv4Src,
        Self::Ipv4Dst,
        Self::TcpSrc,
        Self::TcpDst,
        Self::UdpSrc,
        Self::UdpDst,
        Self::SctpSrc,
        Self::SctpDst,
        Self::Icmpv4Type,
        Self::Icmpv4Code,
        Self::ArpOp,
        Self::ArpSpa,
        Self::ArpTpa,
        Self::ArpSha,
        Self::ArpTha,
        Self::Ipv6Src,
        Self::Ipv6Dst,
        Self::Ipv6Flabel,
        Self::Icmpv6Type,
        Self::Icmpv6Code,
        Self::NdTarget,
        Self::NdSll,
        Self::NdTll,
        Self::MplsLabel,
        Self::MplsTc,
        Self::MplsBos,
        Self::PbbIsid,
        Self::TunnelId,
        Self::Ipv6ExtHdr,
        Self::IpFragment,
    ];

    /// The number in the class `OFPXMC_OPENFLOW_BASIC`; `None` for an extension.
    #[must_use]
    pub fn number(self) -> Option<u8> {
        (self != Self::IpFragment).then_some(self as u8)
    }

    /// The field of a number of the class `OFPXMC_OPENFLOW_BASIC`.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.number() == Some(number))
    }

    /// Width in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bit_range().bits
    }

    /// A number whose bits are all those of the field.
    #[must_use]
    pub fn ones(self) -> u128 {
        ones(self.bits())
    }

    /// Whether OpenFlow 1.3.5 (7.2.3) allows a mask. [`crate::Match`] allows one for every field.
    #[must_use]
    pub fn is_maskable(self) -> bool {
        matches!(
            self,
            Self::Metadata
                | Self::EthDst
                | Self::EthSrc
                | Self::VlanVid
                | Self::Ipv4Src
                | Self::Ipv4Dst
                | Self::ArpSpa
                | Self::ArpTpa
                | Self::ArpSha
                | Self::ArpTha
                | Self::Ipv6Src
                | Self::Ipv6Dst
                | Self::Ipv6Flabel
                | Self::PbbIsid
                | Self::TunnelId
                | Self::Ipv6ExtHdr
                | Self::IpFragment
        )
    }

    /// Whether a set-field action may set it (OpenFlow 1.3.5, 7.2.5): header fields, and the tunnel number.
    #[must_use]
    pub fn is_settable(self) -> bool {
        !matches!(self, Self::InPort | Self::Metadata | Self::Ipv6ExtHdr | Self::IpFragment)
    }

    /// Whether it decides which header follows, so that other values reveal other headers.
    #[must_use]
    pub fn names_a_header(self) -> bool {
        matches!(self, Self::EthType | Self::IpProto)
    }

    pub(crate) fn bit_range(self) -> BitRange {
        let (word, shift, bits) = match self {
            Self::InPort => (0, 32, 32),
            Self::EthType => (0, 16, 16),
            Self::VlanVid => (0, 0, 13),
            Self::VlanPcp => (0, 13, 3),
            Self::EthDst => (1, 16, 48),
            Self::IpProto => (1, 8, 8),
            Self::IpDscp => (1, 2, 6),
            Self::IpEcn => (1, 0, 2),
            Self::EthSrc => (2, 16, 48),
            Self::Ipv6ExtHdr => (2, 0, 9),
            Self::IpFragment => (2, 14, 2),
            Self::TcpSrc | Self::UdpSrc | Self::SctpSrc | Self::ArpOp => (3, 48, 16),
            Self::TcpDst | Self::UdpDst | Self::SctpDst => (3, 32, 16),
            Self::Icmpv4Type | Self::Icmpv6Type => (3, 48, 8),
            Self::Icmpv4Code | Self::Icmpv6Code => (3, 32, 8),
            Self::Ipv6Flabel => (3, 0, 20),
            Self::MplsLabel => (3, 12, 20),
            Self::MplsTc => (3, 9, 3),
            Self::MplsBos => (3, 8, 1),
            Self::PbbIsid => (3, 0, 24),
            Self::Ipv4Src | Self::ArpSpa => (4, 32, 32),
            Self::Ipv4Dst | Self::ArpTpa => (4, 0, 32),
            Self::Ipv6Src => (4, 0, 128),
            Self::ArpSha => (5, 0, 48),
            Self::Ipv6Dst => (6, 0, 128),
            Self::ArpTha => (6, 0, 48),
            Self::Metadata => (8, 0, 64),
            Self::TunnelId => (9, 0, 64),
            Self::NdTarget => (10, 0, 128),
            Self::NdSll => (12, 0, 48),
            Self::NdTll => (13, 0, 48),
        };
        BitRange { word, shift, bits }
    }

    /// The bits of word 2 that are set in every packet that has the field.
    pub(crate) fn presence(self) -> u64 {
        match self {
            Self::InPort | Self::Metadata | Self::TunnelId | Self::EthDst | Self::EthSrc | Self::EthType => 0,
            Self::VlanVid | Self::VlanPcp => 0,
            Self::TcpSrc | Self::TcpDst | Self::UdpSrc | Self::UdpDst | Self::SctpSrc | Self::SctpDst => {
                TRANSPORT_PRESENT
            }
            Self::Icmpv4Type | Self::Icmpv4Code | Self::Icmpv6Type | Self::Icmpv6Code => TRANSPORT_PRESENT,
            Self::NdTarget => ND_TARGET_PRESENT,
            Self::NdSll => ND_SLL_PRESENT,
            Self::NdTll => ND_TLL_PRESENT,
            _ => NETWORK_PRESENT,
        }
    }

    /// Whether packets of this nature can have the field (OpenFlow 1.3.5, 7.2.3, prerequisites).
    pub(crate) fn belongs(self, nature: Nature) -> bool {
        let is_type = |number| nature.eth_type == Some(number);
        let is_ip = is_type(0x0800) || is_type(0x86dd);
        let is_protocol = |number| is_ip && nature.protocol == Some(number);
        let is_icmp6 = is_type(0x86dd) && nature.protocol == Some(58);
        match self {
            Self::InPort | Self::Metadata | Self::TunnelId | Self::EthDst | Self::EthSrc | Self::EthType => {
                true
            }
            Self::VlanVid => true,
            Self::VlanPcp => nature.vlan,
            Self::IpDscp | Self::IpEcn | Self::IpProto | Self::IpFragment => is_ip,
            Self::Ipv4Src | Self::Ipv4Dst => is_type(0x0800),
            Self::TcpSrc | Self::TcpDst => is_protocol(6),
            Self::UdpSrc | Self::UdpDst => is_protocol(17),
            Self::SctpSrc | Self::SctpDst => is_protocol(132),
            Self::Icmpv4Type | Self::Icmpv4Code => is_type(0x0800) && nature.protocol == Some(1),
            Self::ArpOp | Self::ArpSpa | Self::ArpTpa | Self::ArpSha | Self::ArpTha => is_type(0x0806),
            Self::Ipv6Src | Self::Ipv6Dst | Self::Ipv6Flabel | Self::Ipv6ExtHdr => is_type(0x86dd),
            Self::Icmpv6Type | Self::Icmpv6Code => is_icmp6,
            Self::NdTarget => is_icmp6 && matches!(nature.icmp_type, Some(135 | 136)),
            Self::NdSll => is_icmp6 && nature.icmp_type == Some(135),
            Self::NdTll => is_icmp6 && nature.icmp_type == Some(136),
            Self::PbbIsid => is_type(0x88e7),
            Self::MplsLabel | Self::MplsTc | Self::MplsBos => is_type(0x8847) || is_type(0x8848),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_ordered() {
        let numbers: Vec<u8> = Field::ALL.iter().map(|field| *field as u8).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other));
        for &field in Field::ALL {
            assert_eq!(field.number().and_then(Field::from_number), field.number().map(|_| field));
        }
        assert_eq!((Field::from_number(1), Field::from_number(128)), (None, None));
    }

    #[test]
    fn a_place_keeps_what_is_written_and_nothing_else() {
        for &field in Field::ALL {
            for fill in [0, u64::MAX] {
                let mut words = [fill; crate::layout::WORDS];
                let value = 0x0123_4567_89ab_cdef_8765_4321_0fed_cba9 & ones(field.bits());
                let before = field.bit_range().read(&words);
                field.bit_range().write(&mut words, value);
                assert_eq!(field.bit_range().read(&words), value, "{field:?}");
                field.bit_range().write(&mut words, before);
                assert_eq!(words, [fill; crate::layout::WORDS], "{field:?}");
            }
        }
    }

    /// Two fields may share bits only if no packet has both.
    #[test]
    fn fields_of_one_packet_do_not_overlap() {
        let bits = |field: Field| {
            let mut words = [0; crate::layout::WORDS];
            field.bit_range().write(&mut words, ones(field.bits()));
            words
        };
        let overlap =
            |one: Field, other: Field| bits(one).iter().zip(bits(other)).any(|(one, other)| one & other != 0);
        for eth_type in [0x0800, 0x86dd, 0x0806, 0x8847, 0x88e7, 0x9999] {
            for protocol in [1, 6, 17, 58, 132, 200] {
                for icmp_type in [8, 135, 136] {
                    let nature = Nature {
                        vlan: true,
                        eth_type: Some(eth_type),
                        protocol: Some(protocol),
                        icmp_type: Some(icmp_type),
                    };
                    let present: Vec<_> = Field::ALL.iter().filter(|field| field.belongs(nature)).collect();
                    for (at, &&one) in present.iter().enumerate() {
                        for &&other in &present[at + 1..] {
                            assert!(!overlap(one, other), "{one:?} {other:?} in {eth_type:#x}/{protocol}");
                        }
                    }
                }
            }
        }
    }
}
