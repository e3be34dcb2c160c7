//! Matches: conditions on the fields of a key.

use std::fmt;

use crate::Field;
use crate::field::{Nature, ones};
use crate::key::Key;
use crate::layout::{VLAN_PRESENT, WORDS, Words};

/// A condition on the match fields of a packet (OpenFlow 1.3.5, 5.3 and 7.2.3): each field equals a value under a mask.
///
/// The default matches every packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Match {
    pub(crate) mask: Words,
    pub(crate) value: Words,
}

/// The reason why a field cannot be added to a match (`OFPET_BAD_MATCH`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchError {
    /// The value or mask has more bits than the field (`OFPBMC_BAD_VALUE`).
    TooWide(Field),
    /// The value has bits outside its mask (`OFPBMC_BAD_WILDCARDS`).
    OutsideMask(Field),
    /// The field occurs twice (`OFPBMC_DUP_FIELD`).
    Duplicate(Field),
    /// A field that must be matched before it is missing or has another value (`OFPBMC_BAD_PREREQ`).
    Prerequisite(Field),
}

impl fmt::Display for MatchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooWide(field) => {
                write!(formatter, "the value of {field:?} has more than {} bits", field.bits())
            }
            Self::OutsideMask(field) => write!(formatter, "the value of {field:?} has bits outside its mask"),
            Self::Duplicate(field) => write!(formatter, "{field:?} occurs twice"),
            Self::Prerequisite(field) => write!(
                formatter,
                "{field:?} needs a match on the header that contains it; put that field before {field:?}"
            ),
        }
    }
}

impl std::error::Error for MatchError {}

impl Match {
    /// The match of every packet.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Adds the condition that `field` equals `value`.
    ///
    /// # Errors
    /// See [`MatchError`].
    pub fn with(self, field: Field, value: u128) -> Result<Self, MatchError> {
        self.with_masked(field, value, ones(field.bits()))
    }

    /// Adds the condition that `field` equals `value` in the bits of `mask`. A mask of zero adds nothing.
    ///
    /// Fields that others depend on come first, as in an OpenFlow message.
    ///
    /// # Errors
    /// See [`MatchError`].
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Result<Self, MatchError> {
        let range = field.bit_range();
        if (value | mask) & !ones(range.bits) != 0 {
            return Err(MatchError::TooWide(field));
        }
        if value & !mask != 0 {
            return Err(MatchError::OutsideMask(field));
        }
        if !field.belongs(self.nature()) {
            return Err(MatchError::Prerequisite(field));
        }
        if range.read(&self.mask) != 0 {
            return Err(MatchError::Duplicate(field));
        }
        if mask != 0 {
            range.write(&mut self.mask, mask);
            range.write(&mut self.value, value);
            self.mask[2] |= field.presence();
            self.value[2] |= field.presence();
        }
        Ok(self)
    }

    /// The value and mask of a field; `None` if it is not matched.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<(u128, u128)> {
        let range = field.bit_range();
        let mask = range.read(&self.mask);
        let matched =
            mask != 0 && field.belongs(self.nature()) && self.value[2] & field.presence() == field.presence();
        matched.then(|| (range.read(&self.value), mask))
    }

    /// The matched fields, in the order of their numbers: field, value, mask. Each comes after those that it depends on, so
    /// that [`with_masked`](Self::with_masked) can add them in this order.
    pub fn fields(&self) -> impl Iterator<Item = (Field, u128, u128)> {
        Field::ALL.iter().filter_map(|&field| self.get(field).map(|(value, mask)| (field, value, mask)))
    }

    /// Whether a packet meets the condition.
    #[must_use]
    #[inline]
    pub fn matches(&self, key: &Key) -> bool {
        (0..WORDS).all(|word| key.words[word] & self.mask[word] == self.value[word])
    }

    /// Whether every packet that matches `other` matches this.
    #[must_use]
    pub fn contains(&self, other: &Match) -> bool {
        (0..WORDS).all(|word| {
            self.mask[word] & !other.mask[word] == 0
                && other.value[word] & self.mask[word] == self.value[word]
        })
    }

    /// Whether a packet can match both (OpenFlow 1.3.5, 6.4).
    #[must_use]
    pub fn overlaps(&self, other: &Match) -> bool {
        (0..WORDS)
            .all(|word| (self.value[word] ^ other.value[word]) & self.mask[word] & other.mask[word] == 0)
    }

    /// The value of a field that is matched as a whole.
    fn exact(&self, field: Field) -> Option<u128> {
        let range = field.bit_range();
        (range.read(&self.mask) == ones(range.bits)).then(|| range.read(&self.value))
    }

    /// What all packets of the match are.
    pub(crate) fn nature(&self) -> Nature {
        Nature {
            vlan: self.mask[0] & self.value[0] & VLAN_PRESENT != 0,
            eth_type: self.exact(Field::EthType).map(|number| number as u16),
            protocol: self.exact(Field::IpProto).map(|number| number as u8),
            icmp_type: self.exact(Field::Icmpv6Type).map(|number| number as u8),
        }
    }
}

impl fmt::Debug for Match {
    /// Lists the matched fields with values and masks.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for (field, value, mask) in self.fields() {
            if mask == ones(field.bits()) {
                map.entry(&field, &format_args!("{value:#x}"));
            } else {
                map.entry(&field, &format_args!("{value:#x}/{mask:#x}"));
            }
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp() -> Match {
        Match::any().with(Field::EthType, 0x0800).unwrap().with(Field::IpProto, 6).unwrap()
    }

    #[test]
    fn fields_need_their_prerequisites() {
        assert_eq!(
            Match::any().with(Field::TcpDst, 80),
            Err(MatchError::Prerequisite(Field::TcpDst)),
            "no protocol"
        );
        assert_eq!(tcp().with(Field::UdpDst, 80), Err(MatchError::Prerequisite(Field::UdpDst)));
        assert!(tcp().with(Field::TcpDst, 80).is_ok());
        assert!(
            Match::any().with_masked(Field::VlanVid, 0x1000, 0x1000).unwrap().with(Field::VlanPcp, 3).is_ok()
        );
        assert!(Match::any().with(Field::VlanVid, 0).unwrap().with(Field::VlanPcp, 3).is_err());
    }

    #[test]
    fn values_and_masks_are_checked() {
        assert_eq!(tcp().with(Field::TcpDst, 0x1_0000), Err(MatchError::TooWide(Field::TcpDst)));
        assert_eq!(
            tcp().with_masked(Field::Ipv4Src, 0x0a00_0001, 0xff00_0000),
            Err(MatchError::OutsideMask(Field::Ipv4Src))
        );
        assert_eq!(tcp().with(Field::IpProto, 17), Err(MatchError::Duplicate(Field::IpProto)));
        let prefix = tcp().with_masked(Field::Ipv4Src, 0x0a00_0000, 0xff00_0000).unwrap();
        assert_eq!(prefix.get(Field::Ipv4Src), Some((0x0a00_0000, 0xff00_0000)));
        assert_eq!(prefix.get(Field::ArpSpa), None, "the same bits, another header");
        assert_eq!(prefix.fields().count(), 3);
    }

    #[test]
    fn containment_and_overlap() {
        let net = |value, mask| tcp().with_masked(Field::Ipv4Src, value, mask).unwrap();
        let (eight, sixteen) = (net(0x0a00_0000, 0xff00_0000), net(0x0a01_0000, 0xffff_0000));
        assert!(eight.contains(&sixteen) && !sixteen.contains(&eight) && eight.contains(&eight));
        assert!(Match::any().contains(&eight) && !eight.contains(&Match::any()));
        let port = tcp().with(Field::TcpDst, 80).unwrap();
        assert!(eight.overlaps(&port) && eight.overlaps(&sixteen));
        assert!(!eight.overlaps(&net(0x0b00_0000, 0xff00_0000)));
    }
}
