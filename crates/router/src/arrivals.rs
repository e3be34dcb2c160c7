//! Whether packets reach an element one after the other, in the order in which they leave sources and queues.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use element::Fate;

use crate::state::RouterState;

/// The maximum number of connections that the search visits. Stops: many counters with calls behind a large graph. Where it ends
/// early, packets are processed one by one.
const MAX_VISITS: usize = 1 << 10;

/// Fates of packets that a class sends and that did not just arrive.
const BEGINNINGS: [Fate; 4] = [Fate::Received, Fate::Made, Fate::Copied, Fate::Waiting];

impl RouterState {
    /// Whether each packet that leaves a source or a queue is pushed to an element at most once, before the next batch leaves it. The
    /// search goes upstream, to elements with one output to which nothing is pushed.
    pub(crate) fn gets_each_packet_once(&self, element: usize) -> bool {
        // What is gathered up to the end of a call arrives behind packets that were emitted later.
        if self.is_wide {
            return false;
        }
        let mut seen = BTreeSet::from([element]);
        let mut open = Vec::from([element]);
        let mut visits = 0;
        while let Some(at) = open.pop() {
            let inputs = self.nodes.get(at).map_or(&[][..], |node| &node.inputs);
            if !inputs.iter().all(|input| input.links.push) {
                return false;
            }
            for &(peer, _) in inputs.iter().flat_map(|input| &input.links.peers) {
                visits += 1;
                let Some(node) = self.nodes.get(peer).filter(|_| visits <= MAX_VISITS) else { return false };
                let is_pushed_to = node.inputs.iter().any(|input| input.links.push);
                let info = node.class.info;
                let begins = info.task || BEGINNINGS.iter().any(|fate| info.fates.contains(fate));
                if peer == element || begins && (is_pushed_to || node.outputs.len() > 1) {
                    return false;
                }
                // A packet that is pulled by an element which then pushes it begins there.
                if !begins && !is_pushed_to && !node.inputs.is_empty() {
                    return false;
                }
                if is_pushed_to && seen.insert(peer) {
                    open.push(peer);
                }
            }
        }
        true
    }
}
