//! Flows that wait while their state is handed over from one instance of a service to others, and their frames.

use super::identity::Identity;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The flows that are frozen: some of one instance of a service, or all.
#[derive(Debug, Default)]
pub(super) struct Freeze {
    pub(super) service: u16,
    pub(super) slot: u8,
    /// The hashes of frozen flows; `None` for all of the instance.
    pub(super) flows: Option<BTreeSet<u64>>,
    /// Whether frames go on as soon as there is room.
    pub(super) is_thawing: bool,
    /// Whether they go on even if there is no room.
    pub(super) is_forced: bool,
    pub(super) held: VecDeque<HeldFrame>,
    /// The number of frames of each flow that wait.
    pub(super) waiting: BTreeMap<u64, u32>,
}

/// A frame that waits.
#[derive(Debug)]
pub(super) struct HeldFrame {
    pub(super) identity: Identity,
    pub(super) hash: u64,
    pub(super) version: u32,
    pub(super) frame: Box<[u8]>,
}

impl Freeze {
    /// Whether a frame of a flow that is assigned to `slot` has to wait.
    #[inline(never)]
    pub(super) fn holds(&self, service: u16, slot: u8, hash: u64) -> bool {
        if self.service != service {
            return false;
        }
        // An instance may have named the flows of others.
        let is_frozen = !self.is_thawing
            && self.slot == slot
            && self.flows.as_ref().is_none_or(|flows| flows.contains(&hash));
        // A flow of which frames wait may have another instance by now.
        is_frozen || self.waiting.contains_key(&hash)
    }
}
