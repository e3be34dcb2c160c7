//! What stats everywhere, looked at in one go.

use super::network::{Endpoint, Network};
use api::{BoxName, PortName, SwitchName, Traffic};
use std::collections::BTreeMap;
use std::time::Duration;
use switch::{Counters, REASONS, Reason};

/// What stats one port, as the switch sees it: received is what came in from the port.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortStats {
    /// Packets, bytes, drops.
    pub(crate) counters: Counters,
    /// Time that was spent on its packets.
    pub(crate) cost: Duration,
    /// Why nothing passes.
    pub(crate) fault: Option<String>,
}

impl PortStats {
    /// The traffic of a port of a switch.
    pub(crate) fn traffic(&self) -> Traffic {
        let Counters { received_frames, received_bytes, sent_frames, sent_bytes, .. } = self.counters;
        Traffic { received_packets: received_frames, received_bytes, sent_packets: sent_frames, sent_bytes }
    }

    /// The traffic as the box behind the port has it: what goes out to the port comes into the box.
    pub(crate) fn box_traffic(&self) -> Traffic {
        let Traffic { received_packets, received_bytes, sent_packets, sent_bytes } = self.traffic();
        Traffic {
            received_packets: sent_packets,
            received_bytes: sent_bytes,
            sent_packets: received_packets,
            sent_bytes: received_bytes,
        }
    }

    /// Lost packets by reason, those that there were.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = REASONS.into_iter().map(|reason| (reason.name(), self.counters.dropped(reason)));
        reasons.filter(|(_, count)| *count > 0)
    }

    /// Adds what stats another port.
    pub(crate) fn add(&mut self, other: &Self) {
        add(&mut self.counters, &other.counters);
        self.cost += other.cost;
    }
}

/// Adds counters.
pub(crate) fn add(sum: &mut Counters, more: &Counters) {
    sum.received_frames += more.received_frames;
    sum.received_bytes += more.received_bytes;
    sum.sent_frames += more.sent_frames;
    sum.sent_bytes += more.sent_bytes;
    for (sum, more) in sum.drops.iter_mut().zip(more.drops) {
        *sum += more;
    }
}

/// What stats everywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficSnapshot {
    /// By switch and port.
    pub(crate) switches: BTreeMap<SwitchName, BTreeMap<PortName, PortStats>>,
    /// Addresses that each switch knows.
    pub(crate) addresses: BTreeMap<SwitchName, u32>,
    /// By box and number of its port.
    pub(crate) boxes: BTreeMap<(BoxName, u8), PortStats>,
}

impl TrafficSnapshot {
    /// What stats all ports of a switch.
    pub(crate) fn switch(&self, name: &SwitchName) -> PortStats {
        let mut sum = PortStats::default();
        self.switches.get(name).into_iter().flat_map(BTreeMap::values).for_each(|port| sum.add(port));
        sum
    }

    /// What stats all ports of a box, by number.
    pub(crate) fn ports(&self, name: &BoxName) -> impl Iterator<Item = (u8, &PortStats)> {
        let ports = self.boxes.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        ports.map(|((_, number), stats)| (*number, stats))
    }

    /// What stats all ports of a box.
    pub(crate) fn whole_box(&self, name: &BoxName) -> PortStats {
        let mut sum = PortStats::default();
        self.ports(name).for_each(|(_, port)| sum.add(port));
        sum
    }
}

impl Network {
    /// Looks at everything.
    pub(crate) fn traffic_snapshot(&mut self) -> TrafficSnapshot {
        let mut snapshot = TrafficSnapshot::default();
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in names {
            snapshot.addresses.insert(name.clone(), self.address_count(&name));
            let ports = self.switch_ports(&name);
            snapshot.switches.insert(name, ports);
        }
        for (key, record) in &self.box_ports {
            let mut joined;
            let stats = match &record.endpoint {
                Endpoint::Switch { switch, port, .. } => {
                    snapshot.switches.get_mut(switch).and_then(|ports| ports.get_mut(port))
                }
                Endpoint::Pipe { pipe, side, .. } => {
                    joined = pipe.stats(*side);
                    Some(&mut joined)
                }
            };
            let Some(stats) = stats else { continue };
            stats.counters.drop(Reason::BOX_ENDED, record.lost);
            snapshot.boxes.insert(key.clone(), stats.clone());
        }
        snapshot
    }
}
