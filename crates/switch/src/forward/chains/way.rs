//! The way of packets from one hop of a chain to the next.

use super::flow_records::{Assignment, FlowRecords};
use super::identity::Identity;
use crate::forward::PortKey;

/// From where to where packets go, and how many did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// What their records have in common.
    pub(super) assignment: Assignment,
    /// The hop that they come from, and the direction in which they were sent there.
    pub(super) hop: u8,
    pub(super) was_reverse: bool,
    pub(super) reverse: bool,
    /// The next hop and its service; none if they leave the chain.
    pub(super) next: Option<(u8, u16)>,
    pub(super) to: PortKey,
    /// The flow of which a packet is timed at the hop that they come from.
    pub(super) timed: Option<u32>,
    /// The record of the first packet.
    pub(super) first: u32,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Way {
    /// Whether a packet goes this way.
    #[inline(always)]
    pub(super) fn has(&self, records: &FlowRecords, identity: Identity) -> bool {
        identity.hop == self.hop
            && identity.reverse == self.was_reverse
            && records.is_assigned(identity.record, identity.check, &self.assignment)
    }

    /// The tag of a packet that goes this way.
    #[inline(always)]
    pub(super) fn tag(&self, identity: Identity) -> u64 {
        let next = self.next.map(|(hop, _)| Identity { hop, reverse: self.reverse, ..identity });
        next.map_or(0, Identity::to_tag)
    }
}
