//! Traffic of boxes, switches and ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets and bytes, with Ethernet headers and without frame checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets that went into the box, or came in through the port of a switch.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that came out of the box, or went out through the port of a switch.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// Rates per second, measured over about the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Packets received per second.
    pub received_packets: f64,
    /// Their bits per second.
    pub received_bits: f64,
    /// Packets sent per second.
    pub sent_packets: f64,
    /// Their bits per second.
    pub sent_bits: f64,
    /// Packets dropped per second.
    pub dropped_packets: f64,
    /// CPUs in use, by the box itself and by the switches for its packets; 0.5 is half a CPU.
    pub cores: f64,
}
