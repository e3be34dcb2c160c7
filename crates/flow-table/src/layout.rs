//! The layout of keys: match fields, packed into words.
//!
//! Fields that never occur together share bits. For example, the IPv4 addresses, the ARP addresses and the upper half of
//! the IPv6 source are the same word. This is unambiguous because a match on one of them must also match the Ethernet
//! type (OpenFlow 1.3.5, 7.2.3, prerequisites). A few bits tell which headers the frame has, so that a field that is
//! absent never equals a field that is zero.

/// Words of a key.
pub(crate) const WORDS: usize = 14;

/// Words that an IPv4 packet without tunnel and metadata uses. The others are zero.
pub(crate) const NARROW_WORDS: usize = 5;

pub(crate) type Words = [u64; WORDS];

/// In word 0: a VLAN tag is present (`OFPVID_PRESENT`).
pub(crate) const VLAN_PRESENT: u64 = 1 << 12;
/// In word 2: the fields of the network header (IPv4, IPv6, ARP, MPLS) are known.
pub(crate) const NETWORK_PRESENT: u64 = 1 << 9;
/// In word 2: the ports, or the type and code, are known.
pub(crate) const TRANSPORT_PRESENT: u64 = 1 << 10;
/// In word 2: the target of a neighbour message is known.
pub(crate) const ND_TARGET_PRESENT: u64 = 1 << 11;
/// In word 2: the source link-layer address of a neighbour message is known.
pub(crate) const ND_SLL_PRESENT: u64 = 1 << 12;
/// In word 2: the target link-layer address of a neighbour message is known.
pub(crate) const ND_TLL_PRESENT: u64 = 1 << 13;
/// In word 2: the packet is a fragment.
pub(crate) const FRAGMENT: u64 = 1 << 14;
/// In word 2: the packet is a fragment other than the first.
pub(crate) const LATER_FRAGMENT: u64 = 1 << 15;
