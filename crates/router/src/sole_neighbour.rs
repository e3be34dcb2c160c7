//! Whether only one element changes the length of a queue while it handles a batch.

use alloc::vec::Vec;

use element::Fate;

use crate::state::RouterState;

/// The maximum number of inputs that the search for a way back visits. Stops: many early droppers before a large graph. Where it
/// ends early, packets are processed one by one.
const MAX_VISITS: usize = 1 << 10;

impl RouterState {
    /// Whether packets enter a queue only straight from output 0 of an element, or leave it only straight to input 0 of an
    /// element that pulls, and none comes back to the first of the two from the second.
    pub(crate) fn is_sole_neighbour(&self, element: usize, queue: usize) -> bool {
        let pushes = self.output(element, 0).is_some_and(|output| output.links.push);
        let (from, to) = if pushes { (element, queue) } else { (queue, element) };
        self.leads_straight(from, to) && self.never_leads_to(to, from)
    }

    /// Whether all packets from output 0 of an element reach another one, and no others do: through elements that pass on
    /// each packet, and add none.
    fn leads_straight(&self, from: usize, to: usize) -> bool {
        let mut at = from;
        for _ in 0..MAX_VISITS {
            let Some([(next, _)]) = self.output(at, 0).map(|output| &*output.links.peers) else {
                return false;
            };
            let Some(node) = self.nodes.get(*next) else { return false };
            let [input] = node.inputs.as_slice() else { return false };
            if input.links.peers.len() != 1 {
                return false;
            }
            if *next == to {
                return true;
            }
            let info = node.class.info;
            let passes_all = info.drops.is_empty() && info.fates.iter().all(|fate| *fate == Fate::Changed);
            if node.outputs.len() != 1 || info.task || info.storage || !passes_all {
                return false;
            }
            at = *next;
        }
        false
    }

    /// Whether no packet from an element can reach another one, on any way.
    fn never_leads_to(&self, from: usize, to: usize) -> bool {
        let search = self.searches.get() + 1;
        self.searches.set(search);
        let mut visits = 0;
        let mut open = Vec::from([from]);
        while let Some(element) = open.pop() {
            let outputs = self.nodes.get(element).map_or(&[][..], |node| &node.outputs);
            for &(peer, port) in outputs.iter().flat_map(|output| &output.links.peers) {
                visits += 1;
                if peer == to || visits > MAX_VISITS {
                    return false;
                }
                if self.input(peer, port).is_some_and(|input| input.searched.replace(search) != search) {
                    open.push(peer);
                }
            }
        }
        true
    }
}
