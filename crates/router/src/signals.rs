//! Looking for notifiers along the packet paths.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use element::{Direction, Notifies, Signal};

use crate::core::Core;
use crate::ports;

impl Core {
    /// Follows the pull path upstream of an input, or the push path downstream of an output, to the nearest notifiers,
    /// and makes `element` listen to them.
    pub(crate) fn find_signal(&self, element: usize, port: usize, direction: Direction) -> Signal {
        let (mut cells, mut busy) = (Vec::new(), false);
        let mut seen = BTreeSet::new();
        let mut queue = Vec::from([(element, port)]);
        while let Some((at, port)) = queue.pop() {
            if !seen.insert((at, port)) {
                continue;
            }
            for (peer, peer_port) in self.peers(at, port, direction) {
                let Some(node) = self.nodes.get(peer) else { continue };
                let (gives, notifier) = match direction {
                    Direction::Empty => (
                        matches!(node.class.info.notifies, Notifies::Empty | Notifies::EmptyAndFull),
                        &node.empty,
                    ),
                    Direction::Full => (
                        matches!(node.class.info.notifies, Notifies::Full | Notifies::EmptyAndFull),
                        &node.full,
                    ),
                };
                if gives {
                    cells.push(notifier.cell.clone());
                    let mut listeners = notifier.listeners.borrow_mut();
                    if !listeners.contains(&element) {
                        listeners.push(element);
                    }
                    continue;
                }
                let onward = self.onward(peer, peer_port, direction);
                busy |= onward.is_empty();
                queue.extend(onward.into_iter().map(|port| (peer, port)));
            }
        }
        Signal::new(cells, busy)
    }

    /// The other ends of an input (`Empty`) or output (`Full`) if packets are moved by the side that asks.
    fn peers(&self, element: usize, port: usize, direction: Direction) -> Vec<(usize, usize)> {
        let Some(node) = self.nodes.get(element) else { return Vec::new() };
        let port = match direction {
            Direction::Empty => node.inputs.get(port).filter(|port| !port.end.push),
            Direction::Full => node.outputs.get(port).filter(|port| port.end.push),
        };
        port.map(|port| port.end.peers.clone()).unwrap_or_default()
    }

    /// The ports on the far side of an element that packets come from, or go to, and that move them likewise.
    fn onward(&self, element: usize, port: usize, direction: Direction) -> Vec<usize> {
        let Some(node) = self.nodes.get(element) else { return Vec::new() };
        let flow = node.class.info.flow;
        let reaches = |input, output| ports::flows(flow, input, output);
        match direction {
            Direction::Empty => (0..node.inputs.len())
                .filter(|input| {
                    reaches(*input, port) && node.inputs.get(*input).is_some_and(|port| !port.end.push)
                })
                .collect(),
            Direction::Full => (0..node.outputs.len())
                .filter(|output| {
                    reaches(port, *output) && node.outputs.get(*output).is_some_and(|port| port.end.push)
                })
                .collect(),
        }
    }
}
