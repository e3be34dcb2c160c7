//! What became of the packets of a box, as the box itself says.

use crate::codec::{DecodeError, Decoder, Encoder};
use crate::limits::{MAX_ACCOUNT_PLACES, MAX_PLACE};
use alloc::string::String;
use alloc::vec::Vec;

/// Packets by fate, in all configurations since the box started. Lost packets are in [`Stats::drops`](crate::Stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFates {
    /// Came from a port or a file.
    pub received: u64,
    /// Made by elements.
    pub made: u64,
    /// Copied by elements.
    pub copied: u64,
    /// Left to a port or a file.
    pub delivered: u64,
    /// Ended as the configuration says, in `Discard` for instance.
    pub discarded: u64,
    /// Ended in elements that acted on their contents.
    pub consumed: u64,
    /// Became a part of other packets.
    pub merged: u64,
}

/// Packets that an element lost for one reason since its configuration was last changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostPackets {
    /// The name of the configuration; empty for the main one.
    pub configuration: String,
    /// The element's name.
    pub element: String,
    /// The drop reason.
    pub reason: String,
    /// The number of packets.
    pub packets: u64,
}

/// Packets that were discarded since their configuration was last changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscardedPackets {
    /// The name of the configuration; empty for the main one.
    pub configuration: String,
    /// The connection that led there: `fw[1] -> Discard@5`.
    pub connection: String,
    /// The number of packets.
    pub packets: u64,
}

/// Packets that wait in an element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingPackets {
    /// The name of the configuration; empty for the main one.
    pub configuration: String,
    /// The element's name.
    pub element: String,
    /// The number of packets.
    pub packets: u64,
    /// How long the oldest of them has waited, at most, in nanoseconds.
    pub oldest: u64,
}

/// What became of the packets of a box. At rest,
///
/// `received + made + copied = delivered + discarded + consumed + merged + dropped + waiting`,
///
/// and `waiting` equals `in_use`. Each number is measured on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketAccount {
    /// Packets by fate.
    pub fates: PacketFates,
    /// Packets that wait, as the elements report them.
    pub waiting: u64,
    /// How long the oldest of them has waited, at most, in nanoseconds; 0 if none waits.
    pub oldest: u64,
    /// Packets that are allocated in the pool, without those from which elements make others.
    pub in_use: u64,
    /// Lost packets by element and reason: those with the most packets, in this order.
    pub losses: Vec<LostPackets>,
    /// Discarded packets by connection: the connections with the most packets, in this order.
    pub discards: Vec<DiscardedPackets>,
    /// Waiting packets by element: the elements with the most packets, in this order.
    pub waits: Vec<WaitingPackets>,
}

impl PacketFates {
    fn encode(&self, fields: &mut Encoder) {
        let PacketFates { received, made, copied, delivered, discarded, consumed, merged } = *self;
        for count in [received, made, copied, delivered, discarded, consumed, merged] {
            fields.u64(count);
        }
    }

    fn decode(fields: &mut Decoder) -> Result<Self, DecodeError> {
        Ok(Self {
            received: fields.u64()?,
            made: fields.u64()?,
            copied: fields.u64()?,
            delivered: fields.u64()?,
            discarded: fields.u64()?,
            consumed: fields.u64()?,
            merged: fields.u64()?,
        })
    }
}

impl PacketAccount {
    pub(super) fn encode(&self, fields: &mut Encoder) {
        self.fates.encode(fields);
        fields.u64(self.waiting).u64(self.oldest).u64(self.in_use);
        let losses = self.losses.get(..MAX_ACCOUNT_PLACES).unwrap_or(&self.losses);
        fields.u32(losses.len() as u32);
        for LostPackets { configuration, element, reason, packets } in losses {
            fields.bytes(cut(configuration).as_bytes()).bytes(cut(element).as_bytes());
            fields.bytes(cut(reason).as_bytes()).u64(*packets);
        }
        let discards = self.discards.get(..MAX_ACCOUNT_PLACES).unwrap_or(&self.discards);
        fields.u32(discards.len() as u32);
        for DiscardedPackets { configuration, connection, packets } in discards {
            fields.bytes(cut(configuration).as_bytes()).bytes(cut(connection).as_bytes()).u64(*packets);
        }
        let waits = self.waits.get(..MAX_ACCOUNT_PLACES).unwrap_or(&self.waits);
        fields.u32(waits.len() as u32);
        for WaitingPackets { configuration, element, packets, oldest } in waits {
            fields.bytes(cut(configuration).as_bytes()).bytes(cut(element).as_bytes());
            fields.u64(*packets).u64(*oldest);
        }
    }

    pub(super) fn decode(fields: &mut Decoder) -> Result<Self, DecodeError> {
        let mut account = Self {
            fates: PacketFates::decode(fields)?,
            waiting: fields.u64()?,
            oldest: fields.u64()?,
            in_use: fields.u64()?,
            ..Self::default()
        };
        for _ in 0..fields.count(MAX_ACCOUNT_PLACES)? {
            account.losses.push(LostPackets {
                configuration: cut(fields.text()?).into(),
                element: cut(fields.text()?).into(),
                reason: cut(fields.text()?).into(),
                packets: fields.u64()?,
            });
        }
        for _ in 0..fields.count(MAX_ACCOUNT_PLACES)? {
            account.discards.push(DiscardedPackets {
                configuration: cut(fields.text()?).into(),
                connection: cut(fields.text()?).into(),
                packets: fields.u64()?,
            });
        }
        for _ in 0..fields.count(MAX_ACCOUNT_PLACES)? {
            account.waits.push(WaitingPackets {
                configuration: cut(fields.text()?).into(),
                element: cut(fields.text()?).into(),
                packets: fields.u64()?,
                oldest: fields.u64()?,
            });
        }
        Ok(account)
    }
}

/// The start of a text, as far as it may be stored.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_PLACE)]
}
