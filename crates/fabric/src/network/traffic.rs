//! Collects the statistics of all switches, pipes and ports.

use super::attach::Network;
use super::records::Endpoint;
use model::{LinkState, SwitchName, with_causes};
use protocol::fabric::{Counters, PortStats, TrafficSnapshot};
use switch::{REASONS, Reason, driver};

impl Network {
    /// Reads the statistics of all ports.
    pub(crate) fn traffic_snapshot(&mut self) -> TrafficSnapshot {
        let mut snapshot = TrafficSnapshot::default();
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in names {
            snapshot.addresses.insert(name.clone(), self.address_count(&name));
            let steering = self.steering_status(&name);
            snapshot.steering.extend(steering.map(|steering| (name.clone(), steering)));
            snapshot.removed.insert(name.clone(), self.removed_ports(&name));
            let ports = self.switch_ports(&name);
            snapshot.switches.insert(name, ports);
        }
        for (key, record) in &self.box_ports {
            let mut of_pipe;
            let stats = match &record.endpoint {
                Endpoint::Switch { switch, port, .. } => {
                    snapshot.switches.get_mut(switch).and_then(|ports| ports.get_mut(port))
                }
                Endpoint::Pipe { pipe, side, .. } => {
                    of_pipe = PortStats {
                        counters: reported(&pipe.side_counters(*side)),
                        cost: pipe.cost(*side),
                        fault: pipe.down().map(|fault| with_causes(&fault)),
                        ..PortStats::default()
                    };
                    Some(&mut of_pipe)
                }
            };
            let Some(stats) = stats else { continue };
            if record.lost > 0 {
                *stats.counters.drops.entry(Reason::BOX_ENDED.name().into()).or_default() += record.lost;
            }
            snapshot.boxes.entry(key.0.clone()).or_default().insert(key.1, stats.clone());
        }
        snapshot
    }
}

/// The statistics of a port, with its connection as the protocol carries it.
pub(super) fn with_link(stats: PortStats, state: Option<driver::LinkState>) -> PortStats {
    let link = match &state {
        None => return stats,
        Some(driver::LinkState::Waiting(_) | driver::LinkState::Gone(_)) => LinkState::Waiting,
        Some(driver::LinkState::Connected | driver::LinkState::Blocked(_)) => LinkState::Connected,
        Some(driver::LinkState::Up | driver::LinkState::Limited(_)) => LinkState::Up,
    };
    let (awaits, fault) = match state {
        Some(
            driver::LinkState::Waiting(why)
            | driver::LinkState::Blocked(why)
            | driver::LinkState::Limited(why),
        ) => (Some(why), None),
        Some(driver::LinkState::Gone(why)) => (None, Some(why)),
        _ => (None, None),
    };
    PortStats { link: Some(link), awaits, fault: stats.fault.or(fault), ..stats }
}

/// Counters as the protocol carries them.
pub(super) fn reported(counters: &switch::Counters) -> Counters {
    let drops = REASONS.into_iter().map(|reason| (reason.name().to_string(), counters.dropped(reason)));
    Counters {
        received_packets: counters.received_frames,
        received_bytes: counters.received_bytes,
        sent_packets: counters.sent_frames,
        sent_bytes: counters.sent_bytes,
        drops: drops.filter(|(_, count)| *count > 0).collect(),
    }
}
