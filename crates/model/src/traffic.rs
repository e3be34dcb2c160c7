//! Traffic of boxes, switches and ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets and bytes. Bytes include Ethernet headers, but no frame checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets that the box received, or that entered the switch through the port.
    pub received_packets: u64,
    /// Bytes of these packets.
    pub received_bytes: u64,
    /// Packets that the box sent, or that left the switch through the port.
    pub sent_packets: u64,
    /// Bytes of these packets.
    pub sent_bytes: u64,
}

/// Rates per second, averaged over about one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Packets received per second.
    pub received_packets: f64,
    /// Bits received per second.
    pub received_bits: f64,
    /// Packets sent per second.
    pub sent_packets: f64,
    /// Bits sent per second.
    pub sent_bits: f64,
    /// Packets dropped per second.
    pub dropped_packets: f64,
    /// CPUs in use, by the box itself and by the switches for its packets; 0.5 is half a CPU.
    pub cores: f64,
}
