//! Ports whose device or peer went away, and comes back.

use super::state::Supervisor;
use crate::fabric::Devices;
use api::{AddPort, EventKind, PortDriver, PortName, SocketRole, Subject, SwitchName, with_causes};
use protocol::fabric::{PortStats, TrafficSnapshot, orders};

/// Whether a port's device may disappear and return, so that it is reopened.
fn is_reopened(driver: &PortDriver) -> bool {
    let may_return = matches!(
        driver,
        PortDriver::Tap { .. }
            | PortDriver::AfPacket { .. }
            | PortDriver::Memif { .. }
            | PortDriver::VhostUser { .. }
    );
    may_return || driver.tunnel().is_some()
}

/// Whether a port is added although the process at its other end is not there.
pub(super) fn is_awaited(driver: &PortDriver) -> bool {
    matches!(
        driver,
        PortDriver::Memif { role: SocketRole::Client, .. }
            | PortDriver::VhostUser { role: SocketRole::Client, .. }
    )
}

impl Supervisor {
    /// Notes that a port does not work, and why.
    pub(super) fn fail(&self, switch: &SwitchName, port: &PortName, why: String) {
        let message = format!("port {port} of switch {switch} does not work: {why}");
        if self.0.faults().insert((switch.clone(), port.clone()), why).is_none() {
            self.0.journal.note(EventKind::PortFailed, (switch, port), message);
        }
    }

    /// Records failed ports, and reopens those whose device is available again.
    pub(super) fn recover_ports(&self, snapshot: &TrafficSnapshot) {
        let ports = snapshot.switches.iter().flat_map(|(switch, ports)| {
            ports.iter().filter_map(move |(port, stats)| Some((switch, port, stats.fault.clone()?)))
        });
        let definitions: Vec<(SwitchName, AddPort)> = {
            let switches = self.0.switches();
            let all = switches.iter().flat_map(|(name, stored)| {
                stored.definition.ports.iter().map(move |port| (name.clone(), port.clone()))
            });
            all.filter(|(_, port)| is_reopened(&port.driver)).collect()
        };
        let find = |switch: &SwitchName, port: &PortName| {
            definitions.iter().find(|(name, definition)| name == switch && definition.name == *port)
        };
        for (switch, port, why) in ports.filter(|(switch, port, _)| find(switch, port).is_some()) {
            self.fail(switch, port, why);
        }
        let stats = |(switch, port): &(SwitchName, PortName)| snapshot.switches.get(switch)?.get(port);
        let recovered = |key: &(SwitchName, PortName)| {
            let (switch, port) = key;
            self.0.faults().remove(key);
            let message = format!("port {port} of switch {switch} works again");
            self.0.journal.note(EventKind::PortRecovered, Subject::from((switch, port)), message);
        };
        let broken: Vec<(SwitchName, PortName)> = self.0.faults().keys().cloned().collect();
        for key in broken {
            let Some((switch, port)) = find(&key.0, &key.1) else {
                self.0.faults().remove(&key);
                continue;
            };
            // A port whose peer comes and goes works when the peer is connected.
            let found = stats(&key).filter(|_| is_awaited(&port.driver));
            if let Some(PortStats { fault: None, awaits, .. }) = found {
                if awaits.is_none() {
                    recovered(&key);
                }
                continue;
            }
            // The device is another one than before, although it has the same name. A socket that listens is the same.
            if !matches!(port.driver, PortDriver::VhostUser { .. } | PortDriver::Memif { .. }) {
                Devices::close(self.0.fabrics.connector(), port);
            }
            let devices = match Devices::open(self.0.fabrics.connector(), port) {
                Ok(devices) => devices,
                Err(failure) => {
                    self.fail(switch, &port.name, with_causes(&failure));
                    continue;
                }
            };
            let order = orders::ReopenPort { switch: switch.clone(), port: port.clone() };
            let reopened = self.0.fabrics.ask_with(order, &devices.descriptors());
            if reopened.is_ok() && !is_awaited(&port.driver) {
                recovered(&key);
            }
        }
    }
}
