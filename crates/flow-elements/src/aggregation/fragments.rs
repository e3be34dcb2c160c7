//! Packets that wait for a first fragment, which alone identifies their flow.

use alloc::collections::VecDeque;
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;

use element::Waiting;
use packet::{Packet, Timestamp};

use super::flow::{FlowInfo, Hosts};

/// Maximum waiting packets. Bounds the memory that fragments can claim.
const MAX_WAITING: usize = 4_096;

/// A waiting packet, and its flow's key once known.
struct WaitingPacket {
    packet: Packet,
    /// Since when it waits.
    since: Timestamp,
    identification: u16,
    is_fragment: bool,
    flow: Option<u128>,
}

/// Waiting packets in arrival order, by pair of hosts: fragments, and packets that arrived after them.
#[derive(Default)]
pub(super) struct Fragments {
    queues: BTreeMap<Hosts, VecDeque<WaitingPacket>>,
    /// Packets in all queues.
    count: usize,
}

impl Fragments {
    /// Whether no packet waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether packets between two hosts wait.
    pub(super) fn has_packets_between(&self, hosts: Hosts) -> bool {
        self.queues.contains_key(&hosts)
    }

    /// The pairs of hosts with waiting packets.
    pub(super) fn hosts(&self) -> Vec<Hosts> {
        self.queues.keys().copied().collect()
    }

    /// Reports the packets that wait.
    pub(super) fn report(&self, waiting: &mut Waiting) {
        for queue in self.queues.values() {
            waiting.add(queue.len(), queue.front().map(|first| first.since));
        }
    }

    /// Queues a packet, which waits since the given time; returns it as an error if too many wait.
    pub(super) fn enqueue(
        &mut self,
        packet: Packet,
        info: &FlowInfo,
        since: Timestamp,
    ) -> Result<(), Packet> {
        if self.count >= MAX_WAITING {
            return Err(packet);
        }
        self.count += 1;
        let FlowInfo { identification, is_fragment, key: flow, .. } = *info;
        let waiting = WaitingPacket { packet, since, identification, is_fragment, flow };
        self.queues.entry(info.hosts).or_default().push_back(waiting);
        Ok(())
    }

    /// Removes the next packet between two hosts that no longer has to wait, because it is unfragmented or older than
    /// `oldest`. Returns it with the key of its flow, or without one if the first fragment is missing.
    pub(super) fn next_due(&mut self, hosts: Hosts, oldest: i64) -> Option<(Packet, Option<u128>)> {
        let Entry::Occupied(mut queue) = self.queues.entry(hosts) else { return None };
        let waiting = queue.get_mut();
        let head = waiting.front()?;
        if head.is_fragment && head.packet.timestamp().seconds() >= oldest {
            return None;
        }
        let WaitingPacket { mut packet, identification, mut flow, .. } = waiting.pop_front()?;
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
