//! What the metrics say about the ports of switches.

use super::state::Supervisor;
use crate::error::OperationError;
use api::{LinkState, PortName, SwitchName};
use protocol::fabric::{Counters, orders};

/// The figures of a port.
#[derive(Debug)]
pub(crate) struct PortFigures {
    pub(crate) switch: SwitchName,
    pub(crate) port: PortName,
    /// The name of its driver.
    pub(crate) driver: &'static str,
    pub(crate) counters: Counters,
    /// Whether frames can pass.
    pub(crate) is_up: bool,
}

impl Supervisor {
    /// The figures of all ports that the caller may see.
    pub(crate) fn port_figures(&self) -> Result<Vec<PortFigures>, OperationError> {
        let mut snapshot = self.0.fabrics.traffic()?;
        let switches: Vec<SwitchName> = {
            let switches = self.0.switches();
            let seen = switches.values().filter(|stored| self.sees(&stored.definition.owner));
            seen.map(|stored| stored.definition.name.clone()).collect()
        };
        let mut figures = Vec::new();
        for switch in switches {
            // A switch that was removed meanwhile has none.
            let (Some(mut ports), Ok(described)) = (
                snapshot.switches.remove(&switch),
                self.0.fabrics.ask(orders::Ports { switch: switch.clone() }),
            ) else {
                continue;
            };
            for described in described {
                let (port, driver) = (described.port.name, described.port.driver.name());
                let Some(stats) = ports.remove(&port) else { continue };
                let key = (switch.clone(), port);
                let has_link = matches!(stats.link, None | Some(LinkState::Up));
                let is_up = has_link && self.fault(&key, &stats).is_none();
                let (switch, port) = key;
                figures.push(PortFigures { switch, port, driver, counters: stats.counters, is_up });
            }
        }
        Ok(figures)
    }
}
