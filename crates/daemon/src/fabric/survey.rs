//! What passed everywhere, looked at in one go.

use super::network::{End, Network};
use api::{BoxName, PortName, SwitchName, Traffic};
use std::collections::BTreeMap;
use std::time::Duration;
use switch::{Counters, Reason};

/// What passed one port, as the switch sees it: received is what came in from the port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    /// Packets, bytes, drops.
    pub(crate) counters: Counters,
    /// Time that was spent on its packets.
    pub(crate) cost: Duration,
    /// Why nothing passes.
    pub(crate) fault: Option<String>,
}

impl Passed {
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
        let reasons = Reason::ALL.into_iter().map(|reason| (reason.name(), self.counters.dropped(reason)));
        reasons.filter(|(_, count)| *count > 0)
    }

    /// Adds what passed another port.
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

/// What passed everywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// By switch and port.
    pub(crate) switches: BTreeMap<SwitchName, BTreeMap<PortName, Passed>>,
    /// Addresses that each switch knows.
    pub(crate) addresses: BTreeMap<SwitchName, u32>,
    /// By box and number of its port.
    pub(crate) boxes: BTreeMap<(BoxName, u8), Passed>,
}

impl Survey {
    /// What passed all ports of a switch.
    pub(crate) fn switch(&self, name: &SwitchName) -> Passed {
        let mut sum = Passed::default();
        self.switches.get(name).into_iter().flat_map(BTreeMap::values).for_each(|port| sum.add(port));
        sum
    }

    /// What passed all ports of a box, by number.
    pub(crate) fn ports(&self, name: &BoxName) -> impl Iterator<Item = (u8, &Passed)> {
        let ports = self.boxes.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        ports.map(|((_, number), passed)| (*number, passed))
    }

    /// What passed all ports of a box.
    pub(crate) fn whole_box(&self, name: &BoxName) -> Passed {
        let mut sum = Passed::default();
        self.ports(name).for_each(|(_, port)| sum.add(port));
        sum
    }
}

impl Network {
    /// Looks at everything.
    pub(crate) fn survey(&mut self) -> Survey {
        let mut survey = Survey::default();
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in names {
            survey.addresses.insert(name.clone(), self.address_count(&name));
            let ports = self.switch_ports(&name);
            survey.switches.insert(name, ports);
        }
        for (place, socket) in &self.sockets {
            let mut joined;
            let passed = match &socket.end {
                End::Switch { switch, port, .. } => {
                    survey.switches.get_mut(switch).and_then(|ports| ports.get_mut(port))
                }
                End::Joint { joint, side, .. } => {
                    joined = joint.passed(*side);
                    Some(&mut joined)
                }
            };
            let Some(passed) = passed else { continue };
            passed.counters.drop(Reason::BoxEnded, socket.lost);
            survey.boxes.insert(place.clone(), passed.clone());
        }
        survey
    }
}
