//! How a switch finds the port of a frame: one of the ways that the switch's library has.

use api::{CreateSwitch, SwitchMode};
use packet::MacAddr;
use std::hash::{BuildHasher, RandomState};
use switch::{Decision, Forward, LearningBridge, LearningSettings, PortId, StaticTable};

/// Addresses that a learning switch knows in all.
const CAPACITY: usize = 16_384;

/// A way of forwarding.
#[derive(Debug)]
pub(crate) enum ForwardingMode {
    /// By a table that is set.
    Static(StaticTable),
    /// By what was learned.
    Learning(LearningBridge),
}

impl ForwardingMode {
    /// The way of a new switch.
    pub(crate) fn new(definition: &CreateSwitch) -> Self {
        match definition.mode {
            SwitchMode::Static => Self::Static(StaticTable::new()),
            SwitchMode::Learning => Self::Learning(LearningBridge::new(LearningSettings {
                ageing_ns: u64::from(definition.age_seconds) * 1_000_000_000,
                capacity: CAPACITY.max(definition.addresses_per_port as usize),
                port_limit: definition.addresses_per_port,
                // Nobody who sends frames can know it.
                seed: RandomState::new().hash_one(0),
            })),
        }
    }
}

impl Forward for ForwardingMode {
    #[inline]
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        match self {
            Self::Static(table) => table.decide(destination, source, from, now),
            Self::Learning(bridge) => bridge.decide(destination, source, from, now),
        }
    }

    fn remove_port(&mut self, port: PortId) {
        match self {
            Self::Static(table) => table.remove_port(port),
            Self::Learning(bridge) => bridge.remove_port(port),
        }
    }
}
