//! The identity of a packet while a function has it: what the host notes of the packet's buffer.

/// Where a packet is: in which flow, at which hop of the flow's chain, and in which direction.
///
/// It fits one word that is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The place of the flow's record.
    pub(super) record: u32,
    /// Bits of the flow's hash: if the record belongs to another flow by now, the identity is lost.
    pub(super) check: u16,
    /// The hop.
    pub(super) hop: u8,
    /// Whether the packet passes the chain in reverse.
    pub(super) reverse: bool,
    /// How often the packet was looked up after a function had it.
    pub(super) lookups: u8,
}

/// A packet that a function sends into a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Diversion {
    pub(super) chain: u16,
    /// The version of the chain that it was in, if that is known.
    pub(super) version: Option<u32>,
    /// The record of its flow, if its identity is known.
    pub(super) record: Option<u32>,
    /// Whether it passes chains in reverse.
    pub(super) reverse: bool,
    /// Whether its flow takes the chain from now on.
    pub(super) has_flow: bool,
}

/// Times that a packet may be looked up after a function had it: rules and functions that send it around without end would
/// keep the switch busy.
pub(super) const MAX_LOOKUPS: u8 = 32;

const PRESENT: u64 = 1 << 63;
const REVERSE: u64 = 1 << 62;
/// Six bits.
const LOOKUPS_SHIFT: u32 = 56;

/// A packet that a translator sent through another shard, which knew its identity: there it belonged to another flow.
///
/// It has no record yet. Its tag differs from that of an identity by a bit of the hop, which is less than 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Translated {
    /// The version of the chain.
    pub(super) version: u32,
    /// The hop of the translator.
    pub(super) hop: u8,
    /// As of an [`Identity`].
    pub(super) lookups: u8,
}

/// The bit of the hop.
const TRANSLATED: u8 = 32;

impl Translated {
    pub(super) fn to_tag(self) -> u64 {
        let Self { version: record, hop, lookups } = self;
        Identity { record, check: 0, hop: hop | TRANSLATED, reverse: false, lookups }.to_tag()
    }

    pub(super) fn from_tag(tag: u64) -> Option<Self> {
        let Identity { record: version, hop, lookups, .. } = Identity::from_tag(tag)?;
        (hop & TRANSLATED != 0).then_some(Self { version, hop: hop & !TRANSLATED, lookups })
    }
}

impl Identity {
    pub(super) fn to_tag(self) -> u64 {
        let direction = if self.reverse { REVERSE } else { 0 };
        let lookups = u64::from(self.lookups.min(63)) << LOOKUPS_SHIFT;
        let hop = u64::from(self.hop) << 48;
        PRESENT | direction | lookups | hop | u64::from(self.check) << 32 | u64::from(self.record)
    }

    pub(super) fn from_tag(tag: u64) -> Option<Self> {
        (tag & PRESENT != 0).then_some(Self {
            record: tag as u32,
            check: (tag >> 32) as u16,
            hop: (tag >> 48) as u8,
            reverse: tag & REVERSE != 0,
            lookups: (tag >> LOOKUPS_SHIFT) as u8 & 63,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_one_word() {
        for (record, check, hop, reverse, lookups) in
            [(0, 0, 0, false, 0), (u32::MAX, u16::MAX, 31, true, 63), (7, 9, 3, false, 5)]
        {
            let identity = Identity { record, check, hop, reverse, lookups };
            assert_eq!(Identity::from_tag(identity.to_tag()), Some(identity));
            assert_eq!(Translated::from_tag(identity.to_tag()), None);
            let translated = Translated { version: record, hop, lookups };
            assert_eq!(Translated::from_tag(translated.to_tag()), Some(translated));
        }
        assert_eq!(Identity::from_tag(0), None);
    }
}
