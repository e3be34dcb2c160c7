//! Traffic statistics of ports, switches and boxes.

use api::{BoxName, PortName, SwitchName, Traffic};
use std::collections::BTreeMap;
use std::time::Duration;
use switch::{Counters, REASONS};

/// The statistics of one port, from the switch's side: "received" counts what came in from the port.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortStats {
    /// Packets, bytes, drops.
    pub(crate) counters: Counters,
    /// Time that the switch spent on its packets.
    pub(crate) cost: Duration,
    /// Why the port is down; `None` if it works.
    pub(crate) fault: Option<String>,
}

impl PortStats {
    /// The traffic of a port of a switch.
    pub(crate) fn traffic(&self) -> Traffic {
        let Counters { received_frames, received_bytes, sent_frames, sent_bytes, .. } = self.counters;
        Traffic { received_packets: received_frames, received_bytes, sent_packets: sent_frames, sent_bytes }
    }

    /// The traffic from the box's side: what the switch sends, the box receives.
    pub(crate) fn box_traffic(&self) -> Traffic {
        let Traffic { received_packets, received_bytes, sent_packets, sent_bytes } = self.traffic();
        Traffic {
            received_packets: sent_packets,
            received_bytes: sent_bytes,
            sent_packets: received_packets,
            sent_bytes: received_bytes,
        }
    }

    /// Lost packets by reason, without the reasons that lost none.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = REASONS.into_iter().map(|reason| (reason.name(), self.counters.dropped(reason)));
        reasons.filter(|(_, count)| *count > 0)
    }

    /// Adds the statistics of another port.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters += other.counters;
        self.cost += other.cost;
    }
}

/// The statistics of all ports at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficSnapshot {
    /// By switch and port.
    pub(crate) switches: BTreeMap<SwitchName, BTreeMap<PortName, PortStats>>,
    /// The number of addresses in each switch's table.
    pub(crate) addresses: BTreeMap<SwitchName, u32>,
    /// By box and number of its port.
    pub(crate) boxes: BTreeMap<(BoxName, u8), PortStats>,
}

impl TrafficSnapshot {
    /// The sum over the ports of a switch.
    pub(crate) fn switch(&self, name: &SwitchName) -> PortStats {
        let mut sum = PortStats::default();
        self.switches.get(name).into_iter().flat_map(BTreeMap::values).for_each(|port| sum.add(port));
        sum
    }

    /// The statistics of a box's ports, by number.
    pub(crate) fn ports(&self, name: &BoxName) -> impl Iterator<Item = (u8, &PortStats)> {
        let ports = self.boxes.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        ports.map(|((_, number), stats)| (*number, stats))
    }

    /// The sum over the ports of a box.
    pub(crate) fn whole_box(&self, name: &BoxName) -> PortStats {
        let mut sum = PortStats::default();
        self.ports(name).for_each(|(_, port)| sum.add(port));
        sum
    }
}
