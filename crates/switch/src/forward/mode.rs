//! Selects the forwarding method at run time.

use super::contract::{Decision, Forward};
use super::{LearningBridge, StaticTable};
use crate::port::PortId;
use packet::MacAddr;

/// One of the forwarding methods.
#[derive(Debug)]
pub enum ForwardingMode {
    /// By a configured table.
    Static(StaticTable),
    /// By learned addresses.
    Learning(LearningBridge),
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

    fn limit_new_addresses(&mut self, port: PortId, per_second: u64, now: u64) {
        match self {
            Self::Static(table) => table.limit_new_addresses(port, per_second, now),
            Self::Learning(bridge) => bridge.limit_new_addresses(port, per_second, now),
        }
    }

    fn flush_port(&mut self, port: PortId) {
        match self {
            Self::Static(table) => table.flush_port(port),
            Self::Learning(bridge) => bridge.flush_port(port),
        }
    }
}
