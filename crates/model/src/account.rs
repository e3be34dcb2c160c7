//! What became of the packets of a box.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::ConfigurationName;

/// Numbers of packets by what became of them in a box since it was created, as the box itself reports. At rest, while the
/// box has not ended,
///
/// `received + made + copied = delivered + discarded + consumed + merged + lost + waiting`.
///
/// Lost packets are counted by reason, in `drops` of the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacketAccount {
    /// Packets that came into the configurations, from a port or a file.
    pub received: u64,
    /// Packets that elements made.
    pub made: u64,
    /// Copies that elements made of packets.
    pub copied: u64,
    /// Packets that left the configurations, to a port or a file.
    pub delivered: u64,
    /// Packets that ended as the configuration says, in `Discard` for instance.
    pub discarded: u64,
    /// Packets that ended in elements that acted on their contents.
    pub consumed: u64,
    /// Packets that became a part of other packets.
    pub merged: u64,
    /// Packets that wait now, as the elements report them.
    pub waiting: u64,
    /// How long the oldest of them has waited, at most, in nanoseconds; 0 if none waits.
    pub oldest_ns: u64,
}

impl PacketAccount {
    /// The counters, each with the name of the fate. What waits is not counted but measured.
    pub fn counters(&self) -> [(&'static str, u64); 7] {
        [
            ("received", self.received),
            ("made", self.made),
            ("copied", self.copied),
            ("delivered", self.delivered),
            ("discarded", self.discarded),
            ("consumed", self.consumed),
            ("merged", self.merged),
        ]
    }

    /// Adds the counters of another account. What waits there is not added.
    pub fn add(&mut self, other: &Self) {
        let Self { received, made, copied, delivered, discarded, consumed, merged, waiting: _, oldest_ns: _ } =
            self;
        let own = [received, made, copied, delivered, discarded, consumed, merged];
        for (sum, (_, count)) in own.into_iter().zip(other.counters()) {
            *sum = sum.saturating_add(count);
        }
    }
}

/// Where packets of a box were lost, were discarded, or wait: those places with the most packets, at most 256 of each
/// kind. The counts start from zero when the box starts and when its configuration changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacketPlaces {
    /// Lost packets by element and reason.
    pub losses: Vec<LostPackets>,
    /// Discarded packets by the connection that led there.
    pub discards: Vec<DiscardedPackets>,
    /// Waiting packets by element.
    pub waits: Vec<WaitingPackets>,
}

/// Packets that an element lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostPackets {
    /// The configuration.
    pub configuration: ConfigurationName,
    /// The element's name.
    pub element: String,
    /// The drop reason.
    pub reason: String,
    /// Number of packets.
    pub packets: u64,
}

/// Packets that ended as the configuration says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscardedPackets {
    /// The configuration.
    pub configuration: ConfigurationName,
    /// The connection that led there, such as `fw[1] -> Discard@5`.
    pub connection: String,
    /// Number of packets.
    pub packets: u64,
}

/// Packets that wait in an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingPackets {
    /// The configuration.
    pub configuration: ConfigurationName,
    /// The element's name.
    pub element: String,
    /// Number of packets.
    pub packets: u64,
    /// How long the oldest of them has waited, at most, in nanoseconds.
    pub oldest_ns: u64,
}
