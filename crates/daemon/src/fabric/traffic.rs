//! Collects the statistics of all switches, pipes and ports.

use super::network::Network;
use super::records::Endpoint;
use super::stats::{PortStats, TrafficSnapshot};
use api::{SwitchName, with_causes};
use switch::{DriverError, Link, Reason};

impl Network {
    /// Reads the statistics of all ports.
    pub(crate) fn traffic_snapshot(&mut self) -> TrafficSnapshot {
        let mut snapshot = TrafficSnapshot::default();
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in names {
            snapshot.addresses.insert(name.clone(), self.address_count(&name));
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
                        counters: pipe.side_counters(*side),
                        cost: pipe.cost(*side),
                        fault: pipe.down().map(|fault| with_causes(&DriverError::Box(fault))),
                    };
                    Some(&mut of_pipe)
                }
            };
            let Some(stats) = stats else { continue };
            stats.counters.drop(Reason::BOX_ENDED, record.lost);
            snapshot.boxes.insert(key.clone(), stats.clone());
        }
        snapshot
    }
}
