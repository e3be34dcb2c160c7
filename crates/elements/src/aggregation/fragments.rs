//! Packets that wait for a first fragment, which alone tells their flow.

use alloc::collections::VecDeque;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;

use packet::Packet;

use super::flow::{Hosts, Known};

/// Packets that may wait. Bounds the memory that fragments can claim.
const MOST_WAITING: usize = 4_096;

/// A packet that waits, and its flow's key once that is known.
struct Waiting {
    packet: Packet,
    identification: u16,
    is_fragment: bool,
    flow: Option<u128>,
}

/// Packets that wait, in order, by the hosts that they go between: fragments, and what came behind them.
#[derive(Default)]
pub(super) struct Fragments {
    queues: BTreeMap<Hosts, VecDeque<Waiting>>,
    /// Packets in all queues.
    count: usize,
}

impl Fragments {
    /// Whether none wait.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether some wait that go between two hosts.
    pub(super) fn are_between(&self, hosts: Hosts) -> bool {
        self.queues.contains_key(&hosts)
    }

    /// The pairs of hosts between which some wait.
    pub(super) fn hosts(&self) -> Vec<Hosts> {
        self.queues.keys().copied().collect()
    }

    /// Has a packet wait; gives it back if too many do.
    pub(super) fn keep(&mut self, packet: Packet, known: &Known) -> Result<(), Packet> {
        if self.count >= MOST_WAITING {
            return Err(packet);
        }
        self.count += 1;
        let Known { identification, is_fragment, key: flow, .. } = *known;
        let waiting = Waiting { packet, identification, is_fragment, flow };
        self.queues.entry(known.hosts).or_default().push_back(waiting);
        Ok(())
    }

    /// Takes out the next packet between two hosts that waits no longer, being whole or of a time before `oldest`, with
    /// the key of its flow; without one if the first fragment did not come.
    pub(super) fn next_due(&mut self, hosts: Hosts, oldest: i64) -> Option<(Packet, Option<u128>)> {
        let Entry::Occupied(mut queue) = self.queues.entry(hosts) else { return None };
        let waiting = queue.get_mut();
        let head = waiting.front()?;
        if head.is_fragment && head.packet.timestamp().seconds() >= oldest {
            return None;
        }
        let Waiting { mut packet, identification, mut flow, .. } = waiting.pop_front()?;
        self.count -= 1;
        let mut same = waiting.iter_mut().filter(|other| other.identification == identification);
        if flow.is_some() {
            for other in same {
                other.flow = flow;
                other.packet.set_aggregate(packet.aggregate());
                other.packet.set_paint(packet.paint());
            }
        } else if let Some(first) = same.find(|other| other.flow.is_some()) {
            flow = first.flow;
            packet.set_aggregate(first.packet.aggregate());
            packet.set_paint(first.packet.paint());
        }
        if waiting.is_empty() {
            queue.remove();
        }
        Some((packet, flow))
    }
}
