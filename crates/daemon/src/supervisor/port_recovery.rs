//! Ports whose device or peer went away, and comes back.

use super::state::{SocketKnowledge, Supervisor};
use crate::fabric::Devices;
use crate::store::StoredSwitch;
use api::{
    AddPort, EventKind, LinkState, PortDriver, PortName, SocketRole, Subject, SwitchName, with_causes,
};
use protocol::fabric::{PortStats, TrafficSnapshot, orders};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;

/// Whether a port's device may disappear and return, so that it is reopened.
fn is_reopened(driver: &PortDriver) -> bool {
    let may_return = matches!(
        driver,
        PortDriver::Tap { .. }
            | PortDriver::AfPacket { .. }
            | PortDriver::AfXdp { .. }
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

/// The socket of a port at which peers connect.
fn own_socket(driver: &PortDriver) -> Option<&str> {
    match driver {
        PortDriver::Memif { path, role: SocketRole::Server, .. }
        | PortDriver::VhostUser { path, role: SocketRole::Server, .. } => Some(path),
        _ => None,
    }
}

/// Whether there is a socket, as far as this process may look.
fn is_socket(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// Whether a port works because its peer is connected.
pub(super) fn is_connected(stats: &PortStats) -> bool {
    stats.fault.is_none() && matches!(stats.link, Some(LinkState::Connected | LinkState::Up))
}

impl Supervisor {
    /// Why a port does not work, if it does not.
    pub(super) fn fault(&self, key: &(SwitchName, PortName), stats: &PortStats) -> Option<String> {
        // A peer that is connected speaks for itself, although its recovery is not recorded yet.
        let noted = if is_connected(stats) { None } else { self.0.faults().get(key).cloned() };
        noted.or_else(|| stats.fault.clone())
    }

    /// Notes that a port does not work, and why.
    pub(super) fn fail(&self, switch: &SwitchName, port: &PortName, why: String) {
        let message = format!("port {port} of switch {switch} does not work: {why}");
        if self.0.faults().insert((switch.clone(), port.clone()), why).is_none() {
            self.0.journal.note(EventKind::PortFailed, (switch, port), message);
        }
    }

    /// Notes that a port uses another driver, if it does, and why.
    pub(super) fn report_instead(&self, switch: &SwitchName, port: &PortName, devices: &Devices) {
        if let Some(why) = devices.instead() {
            let message = format!("port {port} of switch {switch}: {why}");
            self.0.journal.note(EventKind::PortFellBack, (switch, port), message);
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
            // The reason why a port can't be reopened is better known below.
            if !self.0.faults().contains_key(&(switch.clone(), port.clone())) {
                self.fail(switch, port, why);
            }
        }
        let stats = |(switch, port): &(SwitchName, PortName)| snapshot.switches.get(switch)?.get(port);
        self.find_lost_sockets(&definitions, |key| stats(key).is_some_and(is_connected));
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
            if stats(&key).is_some_and(is_connected) {
                recovered(&key);
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
            let order =
                orders::ReopenPort { switch: switch.clone(), port: port.clone(), instead: devices.instead() };
            let is_reopened = self.0.fabrics.ask_with(order, &devices.descriptors()).is_ok();
            self.report_instead(switch, &port.name, &devices);
            match stats(&key).and_then(|stats| stats.fault.clone()).filter(|_| is_awaited(&port.driver)) {
                // The next look shows whether its peer stays.
                Some(why) => self.fail(switch, &port.name, why),
                None if is_reopened && !is_awaited(&port.driver) => recovered(&key),
                None => {}
            }
        }
    }

    /// Notes that the socket of a port is there, if the port has one.
    pub(super) fn note_socket(&self, switch: &SwitchName, port: &AddPort) {
        if own_socket(&port.driver).is_some_and(is_socket) {
            self.0.sockets().insert((switch.clone(), port.name.clone()), SocketKnowledge::Seen);
        }
    }

    /// Notes that the sockets of ports that the fabric had already may have been removed while no daemon looked.
    pub(super) fn doubt_sockets(
        &self,
        switches: &[StoredSwitch],
        there: &BTreeMap<SwitchName, Vec<PortName>>,
    ) {
        let mut sockets = self.0.sockets();
        for stored in switches {
            let name = &stored.definition.name;
            let adopted = there.get(name).map_or(&[][..], Vec::as_slice);
            let ports = stored.definition.ports.iter().filter(|port| adopted.contains(&port.name));
            for port in ports.filter(|port| own_socket(&port.driver).is_some()) {
                let key = (name.clone(), port.name.clone());
                sockets.entry(key).or_insert(SocketKnowledge::Doubtful);
            }
        }
    }

    /// Has the launcher make the socket of a port again, if it is not there. A port without peers loses nothing by it.
    fn renew_socket(&self, switch: &SwitchName, port: &AddPort, path: &str) {
        let devices = match Devices::open(self.0.fabrics.connector(), port) {
            Ok(devices) => devices,
            Err(failure) => return self.fail(switch, &port.name, with_causes(&failure)),
        };
        if is_socket(path) {
            // The launcher has made it. It is reopened and reported as always.
            return self.fail(switch, &port.name, format!("its socket {path} was removed"));
        }
        // This daemon may not look there, or sees other files than the launcher: the socket may be another one or the same.
        let order = orders::ReopenPort { switch: switch.clone(), port: port.clone(), instead: None };
        if let Err(failure) = self.0.fabrics.ask_with(order, &devices.descriptors()) {
            self.fail(switch, &port.name, with_causes(&failure));
        }
    }

    /// Records ports that no peer can find any more because their sockets were removed. Those that have peers go on.
    fn find_lost_sockets(
        &self,
        ports: &[(SwitchName, AddPort)],
        is_connected: impl Fn(&(SwitchName, PortName)) -> bool,
    ) {
        for (switch, port) in ports {
            let Some(path) = own_socket(&port.driver) else { continue };
            let key = (switch.clone(), port.name.clone());
            if is_socket(path) {
                self.0.sockets().insert(key, SocketKnowledge::Seen);
                continue;
            }
            // A daemon that may not look there, or sees other files than the launcher, has not seen the socket before.
            let known = if is_connected(&key) { None } else { self.0.sockets().remove(&key) };
            match known {
                Some(SocketKnowledge::Seen) => {
                    self.fail(switch, &port.name, format!("its socket {path} was removed"));
                }
                Some(SocketKnowledge::Doubtful) => self.renew_socket(switch, port, path),
                None => {}
            }
        }
        let is_there = |key: &(SwitchName, PortName)| {
            ports.iter().any(|(switch, port)| (switch, &port.name) == (&key.0, &key.1))
        };
        self.0.sockets().retain(|key, _| is_there(key));
    }
}
