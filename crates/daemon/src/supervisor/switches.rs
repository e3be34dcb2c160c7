//! Creates, changes and lists switches and their ports.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::{PortStats, TrafficSnapshot, open, placeholder};
use crate::store::StoredSwitch;
use crate::subject::Subject;
use api::{
    AddPort, AddressEntry, Attachment, BoxName, CreateSwitch, EventKind, MacAddr, PortDriver, PortName,
    StackName, SwitchDetail, SwitchName, SwitchPort, SwitchStatus, Time, with_causes,
};
use std::collections::BTreeMap;

/// Whether a port's device may disappear and return, so that it is reopened.
fn is_reopened(driver: &PortDriver) -> bool {
    matches!(driver, PortDriver::Tap { .. } | PortDriver::AfPacket { .. })
}

impl Supervisor {
    /// Creates a switch with its ports. On failure the switch does not exist.
    pub fn create_switch(&self, request: CreateSwitch) -> Result<SwitchDetail, OperationError> {
        self.create_switch_of(request, None)
    }

    pub(super) fn create_switch_of(
        &self,
        request: CreateSwitch,
        stack: Option<StackName>,
    ) -> Result<SwitchDetail, OperationError> {
        let name = request.name.clone();
        {
            let _change = self.0.change();
            let definition = request.clone();
            self.0.fabric.ask(move |network| network.add_switch(&definition))??;
            let stored =
                StoredSwitch { definition: request, addresses: Vec::new(), stack, created: Time::now() };
            let made = stored
                .definition
                .ports
                .iter()
                .try_for_each(|port| self.join(&name, port))
                .and_then(|()| Ok(self.0.store().put_switch(&stored)?));
            if let Err(failure) = made {
                self.discard_switch(&name);
                return Err(failure);
            }
            self.0.switches().insert(name.clone(), stored);
        }
        let message = format!("switch {name} was created");
        self.0.journal.note(EventKind::SwitchCreated, &name, message);
        self.show_switch(&name)
    }

    fn discard_switch(&self, name: &SwitchName) {
        let name = name.clone();
        // If the fabric has ended, nothing needs removing. The switch was just created, so it exists.
        let _ = self.0.fabric.ask(move |network| network.remove_switch(&name));
    }

    /// Opens a port and adds it to its switch.
    pub(super) fn join(&self, switch: &SwitchName, port: &AddPort) -> Result<(), OperationError> {
        let (asked, name) = (switch.clone(), port.name.clone());
        self.0.fabric.ask(move |network| network.check_vacant(&asked, &name))??;
        let opened = open(port)?;
        let (switch, port) = (switch.clone(), port.clone());
        self.0.fabric.ask(move |network| network.add_port(&switch, &port, opened))?
    }

    /// Like [`join`](Self::join), for a restored port: if its device is missing, the port waits for it.
    pub(super) fn restore_port(&self, switch: &SwitchName, port: &AddPort) -> Result<(), OperationError> {
        let opened = match open(port) {
            Err(failure) => {
                self.fail(switch, &port.name, with_causes(&failure));
                Some(placeholder())
            }
            Ok(opened) => opened,
        };
        let (switch, port) = (switch.clone(), port.clone());
        self.0.fabric.ask(move |network| network.add_port(&switch, &port, opened))?
    }

    fn fail(&self, switch: &SwitchName, port: &PortName, why: String) {
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
        let broken: Vec<(SwitchName, PortName)> = self.0.faults().keys().cloned().collect();
        for key in broken {
            let Some((switch, port)) = find(&key.0, &key.1) else {
                self.0.faults().remove(&key);
                continue;
            };
            let Ok(Some(opened)) = open(port) else { continue };
            let (switch, port) = (switch.clone(), port.name.clone());
            let subject = Subject::from((&switch, &port));
            let message = format!("port {port} of switch {switch} works again");
            if self.0.fabric.ask(move |network| network.reopen(&switch, &port, opened)).is_ok() {
                self.0.faults().remove(&key);
                self.0.journal.note(EventKind::PortRecovered, subject, message);
            }
        }
    }

    /// Removes a switch and its ports. Attached boxes keep running, attached to nothing.
    pub fn remove_switch(&self, name: &SwitchName) -> Result<(), OperationError> {
        let _change = self.0.change();
        let others: Vec<StoredSwitch> = {
            let switches = self.0.switches();
            if !switches.contains_key(name) {
                return Err(OperationError::NoSwitch(name.clone()));
            }
            let joined =
                |port: &AddPort| matches!(&port.driver, PortDriver::Pipe { switch, .. } if switch == name);
            let mut others = Vec::new();
            for stored in switches.values().filter(|stored| stored.definition.name != *name) {
                let mut changed = stored.clone();
                changed.definition.ports.retain(|port| !joined(port));
                if changed.definition.ports.len() < stored.definition.ports.len() {
                    others.push(changed);
                }
            }
            others
        };
        let at_switch = Attachment::Switch(name.clone());
        let mut boxes = Vec::new();
        for managed in self.0.all() {
            let mut definition = managed.inner().definition.clone();
            let ports = definition.ports.iter_mut().filter(|port| port.attach == at_switch);
            if ports.map(|port| port.attach = Attachment::Nothing).count() > 0 {
                boxes.push((managed, definition));
            }
        }
        let definitions: Vec<_> = boxes.iter().map(|(_, definition)| definition.clone()).collect();
        self.0.store().remove_switch(name, &others, &definitions)?;
        self.discard_switch(name);
        for (managed, definition) in boxes {
            managed.inner().definition = definition;
        }
        {
            let mut switches = self.0.switches();
            switches.remove(name);
            switches.extend(others.into_iter().map(|stored| (stored.definition.name.clone(), stored)));
        }
        let message = format!("switch {name} was removed");
        self.0.journal.note(EventKind::SwitchRemoved, name, message);
        Ok(())
    }

    /// Adds a port to a switch.
    pub fn add_port(&self, switch: &SwitchName, request: &AddPort) -> Result<SwitchPort, OperationError> {
        {
            let _change = self.0.change();
            let mut stored = self.stored_switch(switch)?;
            self.join(switch, request)?;
            stored.definition.ports.push(request.clone());
            if let Err(error) = self.0.store().put_switch(&stored) {
                let (switch, port) = (switch.clone(), request.name.clone());
                let _ = self.0.fabric.ask(move |network| network.remove_port(&switch, &port));
                return Err(error.into());
            }
            self.0.switches().insert(switch.clone(), stored);
        }
        let message = format!("port {} was added to switch {switch}", request.name);
        self.0.journal.note(EventKind::PortAdded, (switch, &request.name), message);
        let ports = self.show_switch(switch)?.port_list;
        let missing = || OperationError::NoPort(switch.clone(), request.name.clone());
        ports.into_iter().find(|port| port.name == request.name).ok_or_else(missing)
    }

    /// Removes a port from a switch. The other end of a pipe is removed too; a box's port is then attached to nothing.
    pub fn remove_port(&self, switch: &SwitchName, port: &PortName) -> Result<(), OperationError> {
        {
            let _change = self.0.change();
            self.stored_switch(switch)?;
            let asked = switch.clone();
            let described = self.0.fabric.ask(move |network| network.described(&asked))??;
            let missing = || OperationError::NoPort(switch.clone(), port.clone());
            let (_, driver, ..) =
                described.into_iter().find(|(name, ..)| name == port).ok_or_else(missing)?;
            self.forget_port(switch, port, &driver)?;
            let (asked, gone) = (switch.clone(), port.clone());
            self.0.fabric.ask(move |network| network.remove_port(&asked, &gone))??;
            self.0.faults().remove(&(switch.clone(), port.clone()));
        }
        let message = format!("port {port} of switch {switch} was removed");
        self.0.journal.note(EventKind::PortRemoved, (switch, port), message);
        Ok(())
    }

    /// Removes a port from the definition that contains it.
    fn forget_port(
        &self,
        switch: &SwitchName,
        port: &PortName,
        driver: &PortDriver,
    ) -> Result<(), OperationError> {
        let mut removed = vec![(switch.clone(), port.clone())];
        if let PortDriver::Pipe { switch: other, port: far } = driver {
            removed.push((other.clone(), far.clone()));
        }
        for (switch, port) in removed {
            let mut stored = self.stored_switch(&switch)?;
            let before = stored.definition.ports.len();
            stored.definition.ports.retain(|definition| definition.name != port);
            stored.addresses.retain(|(_, at)| *at != port);
            if stored.definition.ports.len() < before {
                self.0.store().put_switch(&stored)?;
                self.0.switches().insert(switch, stored);
                return Ok(());
            }
        }
        if let PortDriver::Box { name, port: number } = driver {
            let managed = self.0.managed_box(name)?;
            let mut definition = managed.inner().definition.clone();
            if let Some(port) = definition.ports.get_mut(usize::from(*number)) {
                port.attach = Attachment::Nothing;
            }
            self.0.store().define_box(&definition)?;
            managed.inner().definition = definition;
        }
        Ok(())
    }

    /// Removes the ports of a removed box from the switches' definitions.
    pub(super) fn drop_box_ports(&self, name: &BoxName) {
        let _change = self.0.change();
        let is_its = |port: &AddPort| matches!(&port.driver, PortDriver::Box { name: of, .. } if of == name);
        let changed: Vec<StoredSwitch> = {
            let mut switches = self.0.switches();
            let with = switches.values_mut().filter(|stored| stored.definition.ports.iter().any(is_its));
            with.map(|stored| {
                stored.definition.ports.retain(|port| !is_its(port));
                stored.clone()
            })
            .collect()
        };
        for stored in changed {
            // If this fails, the next restore skips ports whose box does not exist.
            let _ = self.0.store().put_switch(&stored);
        }
    }

    pub(super) fn stored_switch(&self, name: &SwitchName) -> Result<StoredSwitch, OperationError> {
        self.0.switches().get(name).cloned().ok_or_else(|| OperationError::NoSwitch(name.clone()))
    }

    /// The address table of a switch.
    pub fn addresses(&self, switch: &SwitchName) -> Result<Vec<AddressEntry>, OperationError> {
        let switch = switch.clone();
        self.0.fabric.ask(move |network| network.addresses(&switch))?
    }

    /// Assigns an address to a port of a static switch.
    pub fn set_address(
        &self,
        switch: &SwitchName,
        mac: MacAddr,
        port: &PortName,
    ) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        let before = stored.addresses.iter().find(|(there, _)| *there == mac).map(|(_, port)| port.clone());
        let set = |port: PortName| {
            let switch = switch.clone();
            self.0.fabric.ask(move |network| network.set_address(&switch, mac, &port))?
        };
        set(port.clone())?;
        stored.addresses.retain(|(there, _)| *there != mac);
        stored.addresses.push((mac, port.clone()));
        if let Err(error) = self.0.store().put_switch(&stored) {
            let _ = match before {
                Some(port) => set(port),
                None => self.unset(switch, mac),
            };
            return Err(error.into());
        }
        self.0.switches().insert(switch.clone(), stored);
        Ok(())
    }

    fn unset(&self, switch: &SwitchName, mac: MacAddr) -> Result<(), OperationError> {
        let switch = switch.clone();
        self.0.fabric.ask(move |network| network.remove_address(&switch, mac))?
    }

    /// Removes an address from a static switch.
    pub fn remove_address(&self, switch: &SwitchName, mac: MacAddr) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        if !self.addresses(switch)?.iter().any(|entry| entry.mac == mac) {
            return Err(OperationError::NoAddress(switch.clone(), mac));
        }
        stored.addresses.retain(|(there, _)| *there != mac);
        for port in &mut stored.definition.ports {
            port.addresses.retain(|there| *there != mac);
        }
        self.0.store().put_switch(&stored)?;
        self.0.switches().insert(switch.clone(), stored);
        self.unset(switch, mac)
    }

    /// Lists the switches, by name.
    pub fn switches(&self) -> Result<Vec<SwitchStatus>, OperationError> {
        let snapshot = self.0.fabric.ask(|network| network.traffic_snapshot())?;
        let stored: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        Ok(stored.iter().map(|stored| self.switch_status(stored, &snapshot)).collect())
    }

    fn switch_status(&self, stored: &StoredSwitch, snapshot: &TrafficSnapshot) -> SwitchStatus {
        let name = &stored.definition.name;
        let stats = snapshot.switch(name);
        let ports = snapshot.switches.get(name).map_or(0, BTreeMap::len);
        SwitchStatus {
            name: name.clone(),
            mode: stored.definition.mode,
            age_seconds: stored.definition.age_seconds,
            addresses_per_port: stored.definition.addresses_per_port,
            stack: stored.stack.clone(),
            created: stored.created,
            ports: u32::try_from(ports).unwrap_or(u32::MAX),
            addresses: snapshot.addresses.get(name).copied().unwrap_or(0),
            traffic: stats.traffic(),
            rates: self.0.meter().switches.get(name).copied().unwrap_or_default(),
            drops: drops(&stats),
        }
    }

    /// All details of a switch.
    pub fn show_switch(&self, name: &SwitchName) -> Result<SwitchDetail, OperationError> {
        let stored = self.stored_switch(name)?;
        let asked = name.clone();
        let (snapshot, described) =
            self.0.fabric.ask(move |network| (network.traffic_snapshot(), network.described(&asked)))?;
        let none = PortStats::default();
        let ports = snapshot.switches.get(name);
        let port = |(port, driver, limits, default): (PortName, PortDriver, _, bool)| {
            let stats = ports.and_then(|ports| ports.get(&port)).unwrap_or(&none);
            let key = (name.clone(), port.clone());
            SwitchPort {
                fault: self.0.faults().get(&key).cloned().or_else(|| stats.fault.clone()),
                traffic: stats.traffic(),
                rates: self.0.meter().ports.get(&key).copied().unwrap_or_default(),
                drops: drops(stats),
                name: port,
                driver,
                limits,
                default,
            }
        };
        let port_list = described?.into_iter().map(port).collect();
        Ok(SwitchDetail { status: self.switch_status(&stored, &snapshot), port_list })
    }
}

/// Dropped packets by reason, for the API.
pub(super) fn drops(stats: &PortStats) -> BTreeMap<String, u64> {
    stats.drops().map(|(reason, count)| (reason.to_string(), count)).collect()
}
