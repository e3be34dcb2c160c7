//! Creates, changes and lists switches and their ports.

use super::claims::Claim;
use super::flows::{FlowChanges, check_flows};
use super::forwarding::{Forwarding, check_forwarding};
use super::operation::Operation;
use super::port_recovery::is_awaited;
use super::state::Supervisor;
use crate::error::{OperationError, PortError, RequestError};
use crate::fabric::Devices;
use crate::service_error::ServiceError;
use crate::store::{Action, StoreChange, StoredFlows, StoredSteering, StoredSwitch};
use api::Subject;
use api::{
    AddPort, Attachment, ControllerStatus, CreateSwitch, EventKind, Limits, Owner, PortDriver, PortName,
    StackName, SwitchDetail, SwitchMode, SwitchName, SwitchPort, SwitchStatus, Time, with_causes,
};
use protocol::fabric::{PortInventory, PortStats, TrafficSnapshot, orders};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a port is a pipe to a switch.
pub(super) fn leads_to(port: &AddPort, name: &SwitchName) -> bool {
    matches!(&port.driver, PortDriver::Pipe { switch, .. } if switch == name)
}

/// Returns an error if an owner's boxes and switches can't be attached to a switch.
fn require_admission(switch: &CreateSwitch, owner: &Owner) -> Result<(), OperationError> {
    if switch.admits(owner) {
        return Ok(());
    }
    let (name, of) = (switch.name.clone(), switch.owner.clone());
    Err(PortError::NotShared { switch: name, of, with: owner.clone() }.into())
}

/// The box or the switch that a port connects.
fn user_of(driver: &PortDriver) -> Option<Subject> {
    match driver {
        PortDriver::Box { name, .. } => Some(name.into()),
        PortDriver::Pipe { switch, .. } => Some(switch.into()),
        _ => None,
    }
}

/// The claim of what a new port connects to.
pub(super) fn far_end(port: &AddPort) -> Option<Claim> {
    match &port.driver {
        PortDriver::Pipe { switch, .. } => Some(Claim::change(switch)),
        PortDriver::Box { name, .. } => Some(Claim::rely(name)),
        _ => None,
    }
}

/// The switch that a pipe leads to.
fn far_switch(port: &AddPort) -> Option<&SwitchName> {
    match &port.driver {
        PortDriver::Pipe { switch, .. } => Some(switch),
        _ => None,
    }
}

/// A port, and the other end if it is a pipe.
fn both_ends(switch: &SwitchName, port: &PortName, driver: &PortDriver) -> Vec<(SwitchName, PortName)> {
    let mut ends = vec![(switch.clone(), port.clone())];
    if let PortDriver::Pipe { switch: other, port: far } = driver {
        ends.push((other.clone(), far.clone()));
    }
    ends
}

impl Supervisor {
    /// Creates a switch with its ports. On failure the switch does not exist.
    pub fn create_switch(&self, mut request: CreateSwitch) -> Result<SwitchDetail, OperationError> {
        self.adopt_switch(&mut request)?;
        let name = request.name.clone();
        let claims: Vec<Claim> =
            std::iter::once(Claim::change(&name)).chain(request.ports.iter().filter_map(far_end)).collect();
        check_flows(&request)?;
        check_forwarding(&request)?;
        self.operate(Action::Create, &name, &|| claims.clone(), |operation| {
            let new = request.flows.clone();
            self.make_switch(operation, request, None)?;
            if !new.is_empty() {
                let changes = FlowChanges { new, ..FlowChanges::default() };
                self.change_flows(operation, &name, changes, None)?;
            }
            Ok(())
        })?;
        self.show_switch(&name)
    }

    /// Creates a switch, possibly as part of a stack. Boxes that wait for a switch of this name are attached to it. Its flows
    /// are added later, because they name ports.
    pub(super) fn make_switch(
        &self,
        operation: &mut Operation,
        mut request: CreateSwitch,
        stack: Option<StackName>,
    ) -> Result<(), OperationError> {
        request.flows.clear();
        let name = request.name.clone();
        self.fabric_of(&request.owner)?;
        let _change = self.0.change();
        request.ports.iter().try_for_each(|port| self.check_connection(&request, port))?;
        if !self.0.switches().contains_key(&name) {
            self.check_switch_quota()?;
        }
        self.order_switch(&request)?;
        let (made, ports) = (name.clone(), request.ports.clone());
        operation.undo_by(move |supervisor| {
            let _change = supervisor.0.change();
            supervisor.discard_switch(&made);
            supervisor.0.switches().remove(&made);
            supervisor.close_unused(&ports);
            supervisor.0.journal.owners.remove(&Subject::from(&made));
        });
        self.0.fabrics.start_agent_of(&request)?;
        let ports = request.ports.iter().map(|port| port.name.clone());
        let makers = stack.iter().flat_map(|stack| ports.clone().map(|port| (port, stack.clone()))).collect();
        let stored = StoredSwitch {
            definition: request,
            addresses: Vec::new(),
            flows: StoredFlows::default(),
            steering: StoredSteering::default(),
            makers,
            stack,
            created: Time::now(),
        };
        operation
            .note_ports(std::iter::once(&name).chain(stored.definition.ports.iter().filter_map(far_switch)));
        stored.definition.ports.iter().try_for_each(|port| self.join(&name, port))?;
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.journal.owners.set(&name, stored.definition.owner.clone());
        self.0.switches().insert(name.clone(), stored);
        self.attach_waiting_boxes(&name);
        let message = format!("switch {name} was created");
        operation.note(EventKind::SwitchCreated, &name, message);
        Ok(())
    }

    /// Attaches the ports of boxes whose definition names a switch that did not exist.
    pub(super) fn attach_waiting_boxes(&self, switch: &SwitchName) {
        let at_switch = Attachment::Switch(switch.clone());
        for managed in self.0.all() {
            let definition = managed.inner().definition.clone();
            if self.check_owner(switch, &definition.owner).is_err() {
                continue;
            }
            for (number, port) in (0u8..).zip(&definition.ports).filter(|(_, port)| port.attach == at_switch)
            {
                // If it fails, so does the order.
                let _ = self.add_proxies(&definition);
                let (name, port) = (managed.name.clone(), port.clone());
                let attached = self.0.fabrics.ask(orders::ReattachBox { name, number, port });
                let message = match attached {
                    Ok(false) => continue,
                    Ok(true) => format!(
                        "port {number} of box {} is attached to switch {switch}, which exists again",
                        managed.name
                    ),
                    Err(failure) => {
                        let why = with_causes(&failure);
                        let name = &managed.name;
                        format!("port {number} of box {name} could not be attached to switch {switch}: {why}")
                    }
                };
                self.0.journal.note(EventKind::PortRecovered, &managed.name, message);
            }
        }
    }

    fn discard_switch(&self, name: &SwitchName) {
        self.unlink_switch(name);
        // If the fabric has ended, nothing needs removing. The switch was just created, so it exists.
        let _ = self.0.fabrics.ask(orders::RemoveSwitch { switch: name.clone() });
        self.0.meter().forget_switch(name);
        self.forget_ports(name);
    }

    /// Opens a port and adds it to its switch.
    pub(super) fn join(&self, switch: &SwitchName, port: &AddPort) -> Result<(), OperationError> {
        port.driver.check().map_err(RequestError::PortSetting)?;
        let vacant = orders::CheckVacant { switch: switch.clone(), port: port.name.clone() };
        self.0.fabrics.ask(vacant)?;
        if let Some(user) = self.user_of_device(switch, port) {
            return Err(PortError::InUse(user).into());
        }
        if self.join_by_link(switch, port)? {
            return Ok(());
        }
        let devices = match Devices::open(self.0.fabrics.connector(), port) {
            Err(failure @ OperationError::Port(PortError::Socket(..))) if is_awaited(&port.driver) => {
                self.fail(switch, &port.name, with_causes(&failure));
                Devices::default()
            }
            opened => opened?,
        };
        let order =
            orders::AddPort { switch: switch.clone(), port: port.clone(), instead: devices.instead() };
        self.report_instead(switch, &port.name, &devices);
        self.note_socket(switch, port);
        self.0.fabrics.ask_with(order, &devices.descriptors()).map(drop).inspect_err(|_| {
            drop(devices);
            Devices::close(self.0.fabrics.connector(), port);
        })
    }

    /// Returns an error if a switch is not to be connected to what a new port leads to.
    fn check_connection(&self, near: &CreateSwitch, port: &AddPort) -> Result<(), OperationError> {
        let same = |other: &&AddPort| other.name != port.name && Devices::are_joined(port, other);
        if near.mode == SwitchMode::Learning
            && let Some(other) = near.ports.iter().find(same)
        {
            return Err(PortError::InUse((&near.name, &other.name).into()).into());
        }
        match &port.driver {
            PortDriver::Pipe { switch, .. } if *switch != near.name => self.check_owner(switch, &near.owner),
            PortDriver::Pipe { .. } if near.mode == SwitchMode::Learning => {
                Err(RequestError::PipeToItself(near.name.clone()).into())
            }
            PortDriver::Box { name, .. } => {
                let owner = self.0.managed_box(name)?.inner().definition.owner.clone();
                require_admission(near, &owner)?;
                self.check_fabric_of_box(&near.owner, &owner)
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if an owner's boxes and switches can't be attached to a switch. A missing switch is not
    /// reported.
    pub(super) fn check_owner(&self, switch: &SwitchName, owner: &Owner) -> Result<(), OperationError> {
        self.0.switches().get(switch).map_or(Ok(()), |stored| require_admission(&stored.definition, owner))
    }

    /// Like [`join`](Self::join), for a restored port: if its device is missing, the port waits for it.
    pub(super) fn restore_port(&self, switch: &SwitchName, port: &AddPort) -> Result<(), OperationError> {
        let devices = Devices::open(self.0.fabrics.connector(), port).unwrap_or_else(|failure| {
            self.fail(switch, &port.name, with_causes(&failure));
            Devices::default()
        });
        let order =
            orders::AddPort { switch: switch.clone(), port: port.clone(), instead: devices.instead() };
        self.report_instead(switch, &port.name, &devices);
        self.note_socket(switch, port);
        self.0.fabrics.ask_with(order, &devices.descriptors()).map(drop)
    }

    /// Removes a switch and its ports. Attached boxes keep running, and are attached again when a switch of this name is
    /// created.
    pub fn remove_switch(&self, name: &SwitchName) -> Result<(), OperationError> {
        self.remove_switch_if(name, |_| true)
    }

    /// Like [`remove_switch`](Self::remove_switch), if no box and no other switch is attached to it.
    pub fn remove_unused_switch(&self, name: &SwitchName) -> Result<(), OperationError> {
        self.remove_switch_if(name, <[Subject]>::is_empty)
    }

    fn remove_switch_if(
        &self,
        name: &SwitchName,
        accept: impl FnOnce(&[Subject]) -> bool,
    ) -> Result<(), OperationError> {
        self.operate(Action::Remove, name, &|| self.claims_to_remove_switch(name), |operation| {
            self.refuse_services(name)?;
            self.plan_switch_removal(operation, name)?;
            let users = self.users_of_switch(name)?;
            if !accept(&users) {
                return Err(OperationError::InUse(name.into(), users));
            }
            let removed = name.clone();
            operation.after_commit(move |supervisor| supervisor.take_down_switch(&removed));
            self.close_after_commit(operation, name)
        })
    }

    /// The boxes and other switches that are attached to a switch.
    pub(super) fn users_of_switch(&self, name: &SwitchName) -> Result<Vec<Subject>, OperationError> {
        let described = self.0.fabrics.ask(orders::Ports { switch: name.clone() })?;
        let users = described.into_iter().filter_map(|found| user_of(&found.port.driver));
        let users = users.chain(self.boxes_at_proxies(name));
        // Functions that joined services are not boxes: they go with their services.
        let is_function =
            |user: &Subject| matches!(user, Subject::Box(name) if self.0.managed_box(name).is_err());
        let users = users.filter(|user| *user != Subject::from(name) && !is_function(user));
        let users: BTreeSet<Subject> = sorting::collect(users);
        Ok(users.into_iter().collect())
    }

    /// The claims of an operation that removes a switch.
    pub(super) fn claims_to_remove_switch(&self, name: &SwitchName) -> Vec<Claim> {
        let joined = self.joined_to(name).into_iter().map(|stored| Claim::change(&stored.definition.name));
        std::iter::once(Claim::change(name)).chain(joined).collect()
    }

    /// The other switches with a pipe to a switch.
    pub(super) fn joined_to(&self, name: &SwitchName) -> Vec<StoredSwitch> {
        let switches = self.0.switches();
        let others = switches.values().filter(|stored| stored.definition.name != *name);
        others
            .filter(|stored| stored.definition.ports.iter().any(|port| leads_to(port, name)))
            .cloned()
            .collect()
    }

    /// Adds the removal of a switch to an operation. [`take_down_switch`](Self::take_down_switch) realises it.
    pub(super) fn plan_switch_removal(
        &self,
        operation: &mut Operation,
        name: &SwitchName,
    ) -> Result<(), OperationError> {
        self.stored_switch(name)?;
        for mut stored in self.joined_to(name) {
            stored.remove_ports(|port| leads_to(port, name));
            operation.add(StoreChange::PutSwitch(stored));
        }
        operation.add(StoreChange::RemoveSwitch(name.clone()));
        operation.note(EventKind::SwitchRemoved, name, format!("switch {name} was removed"));
        Ok(())
    }

    /// Has the devices of the ports of a switch closed when its removal is committed. Until then it may be put back.
    pub(super) fn close_after_commit(
        &self,
        operation: &mut Operation,
        name: &SwitchName,
    ) -> Result<(), OperationError> {
        let ports = self.stored_switch(name)?.definition.ports;
        operation.after_commit(move |supervisor| supervisor.close_unused(&ports));
        Ok(())
    }

    /// Removes a switch and its ports, and the other ends of its pipes.
    pub(super) fn take_down_switch(&self, name: &SwitchName) {
        let _change = self.0.change();
        self.discard_switch(name);
        {
            let mut switches = self.0.switches();
            switches.remove(name);
            for stored in switches.values_mut() {
                stored.remove_ports(|port| leads_to(port, name));
            }
        }
        self.remove_unused_proxies();
    }

    /// Undoes the removal of a switch, and of the pipes to it from other switches.
    pub(super) fn put_switch_back(
        &self,
        stored: &StoredSwitch,
        joined: Vec<StoredSwitch>,
        forwarding: Vec<Forwarding>,
    ) {
        let _change = self.0.change();
        let name = stored.definition.name.clone();
        // If the fabric has ended, the next one gets the switch.
        let _ = self.order_switch(&stored.definition);
        let _ = self.0.fabrics.start_agent_of(&stored.definition);
        self.0.switches().insert(name.clone(), stored.clone());
        self.restore_ports(std::slice::from_ref(stored), |_| true);
        for (mac, port) in stored.addresses.clone() {
            let _ = self.0.fabrics.ask(orders::SetAddress { switch: name.clone(), mac, port });
        }
        self.restore_ports(&joined, |port| leads_to(port, &name));
        let joined = joined.into_iter().map(|stored| (stored.definition.name.clone(), stored));
        self.0.switches().extend(joined);
        self.relink_switch(&name);
        self.attach_waiting_boxes(&name);
        self.restore_steering(stored, false);
        self.restore_flows(stored);
        forwarding.into_iter().for_each(|before| self.restore_forwarding(before));
    }

    /// Adds a port to a switch.
    pub fn add_port(&self, switch: &SwitchName, request: &AddPort) -> Result<SwitchPort, OperationError> {
        self.check_new_port(request)?;
        let claims = || std::iter::once(Claim::change(switch)).chain(far_end(request)).collect();
        self.operate(Action::Change, switch, &claims, |operation| {
            self.make_port(operation, switch, request, None)
        })?;
        let missing = || OperationError::NoPort(switch.clone(), request.name.clone());
        self.until_rebuilt(|| {
            let ports = self.describe_switch(switch)?.port_list;
            ports.into_iter().find(|port| port.name == request.name).ok_or_else(missing)
        })
    }

    /// Adds a port to a switch as a step of an operation.
    pub(super) fn make_port(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        request: &AddPort,
        maker: Option<&StackName>,
    ) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        self.check_connection(&stored.definition, request)?;
        // The new port may take addresses, and being the default port, from others.
        let before = self.forwarding(switch)?;
        if let Err(failure) = self.join(switch, request) {
            self.restore_forwarding(before);
            return Err(failure);
        }
        operation.note_ports(std::iter::once(switch).chain(far_switch(request)));
        let (former, port) = (stored.clone(), request.name.clone());
        operation.undo_by(move |supervisor| {
            let at = former.definition.name.clone();
            supervisor.take_down_port(&at, &port);
            let _change = supervisor.0.change();
            supervisor.0.switches().insert(at, former);
            supervisor.restore_forwarding(before);
        });
        stored.add_port(request.clone());
        stored.makers.extend(maker.map(|maker| (request.name.clone(), maker.clone())));
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        let message = format!("port {} was added to switch {switch}", request.name);
        operation.note(EventKind::PortAdded, (switch, &request.name), message);
        Ok(())
    }

    /// Removes a port from a switch. The other end of a pipe is removed too; a box's port is then attached to nothing.
    pub fn remove_port(&self, switch: &SwitchName, port: &PortName) -> Result<(), OperationError> {
        self.remove_port_if(switch, port, true)
    }

    /// Like [`remove_port`](Self::remove_port), if the port connects no box and no other switch, and no chain begins or ends there.
    pub fn remove_unused_port(&self, switch: &SwitchName, port: &PortName) -> Result<(), OperationError> {
        self.remove_port_if(switch, port, false)
    }

    fn remove_port_if(
        &self,
        switch: &SwitchName,
        port: &PortName,
        is_forced: bool,
    ) -> Result<(), OperationError> {
        let claims = || {
            let driver = self.described_port(switch, port);
            let far_end = driver.ok().and_then(|driver| match driver {
                PortDriver::Pipe { switch, .. } => Some(Claim::change(&switch)),
                PortDriver::Box { name, .. } => Some(Claim::change(&name)),
                _ => None,
            });
            std::iter::once(Claim::change(switch)).chain(far_end).collect()
        };
        self.operate(Action::Change, switch, &claims, |operation| {
            let driver = self.described_port(switch, port)?;
            let ends = both_ends(switch, port, &driver);
            let chains = ends.into_iter().flat_map(|(switch, port)| self.chains_at(&switch, &port));
            let users: Vec<Subject> = user_of(&driver).into_iter().chain(chains).collect();
            if !users.is_empty() && !is_forced {
                return Err(OperationError::InUse((switch, port).into(), users));
            }
            self.plan_port_removal(operation, switch, port)?;
            let (switch, port) = (switch.clone(), port.clone());
            operation.after_commit(move |supervisor| supervisor.take_down_port(&switch, &port));
            Ok(())
        })
    }

    /// The driver of a switch's port.
    fn described_port(&self, switch: &SwitchName, port: &PortName) -> Result<PortDriver, OperationError> {
        let described = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
        let found = described.into_iter().find(|found| found.port.name == *port);
        found
            .map(|found| found.port.driver)
            .ok_or_else(|| OperationError::NoPort(switch.clone(), port.clone()))
    }

    /// The driver of a port by the stored definitions, which also have the near end of a pipe.
    fn stored_driver(&self, switch: &SwitchName, port: &PortName) -> Option<PortDriver> {
        let switches = self.0.switches();
        let own = switches.get(switch).and_then(|stored| {
            stored.definition.ports.iter().find(|there| there.name == *port).map(|there| there.driver.clone())
        });
        let leads_here = |there: &AddPort| matches!(&there.driver, PortDriver::Pipe { switch: at, port: far } if at == switch && far == port);
        own.or_else(|| {
            switches.values().find_map(|stored| {
                let near = stored.definition.ports.iter().find(|there| leads_here(there))?;
                Some(PortDriver::Pipe { switch: stored.definition.name.clone(), port: near.name.clone() })
            })
        })
    }

    /// Adds the removal of a port to an operation. [`take_down_port`](Self::take_down_port) realises it.
    pub(super) fn plan_port_removal(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        port: &PortName,
    ) -> Result<(), OperationError> {
        let driver = self.described_port(switch, port)?;
        let mut is_found = false;
        for (at, port) in both_ends(switch, port, &driver) {
            let mut stored = self.stored_switch(&at)?;
            if stored.remove_ports(|there| there.name == port) {
                operation.add(StoreChange::PutSwitch(stored));
                is_found = true;
            }
        }
        if let PortDriver::Box { name, port: number } = &driver
            && !is_found
        {
            let managed = self.0.managed_box(name);
            let managed = managed.map_err(|_| ServiceError::PortOfFunction(port.clone(), name.clone()))?;
            let mut definition = managed.inner().definition.clone();
            if let Some(port) = definition.ports.get_mut(usize::from(*number)) {
                port.attach = Attachment::Nothing;
            }
            operation.add(StoreChange::DefineBox(Box::new(definition)));
        }
        let message = format!("port {port} of switch {switch} was removed");
        operation.note(EventKind::PortRemoved, (switch, port), message);
        Ok(())
    }

    /// Removes a port from its switch, and from the definition that contains it.
    pub(super) fn take_down_port(&self, switch: &SwitchName, port: &PortName) {
        let _change = self.0.change();
        // The next fabric must not get the port if this one has ended.
        let described = self.described_port(switch, port).ok();
        let Some(driver) = described.or_else(|| self.stored_driver(switch, port)) else { return };
        self.unlink_port(switch, port, &driver);
        // If the fabric has ended, there is no port.
        let _ = self.0.fabrics.ask(orders::RemovePort { switch: switch.clone(), port: port.clone() });
        self.0.meter().forget_port(switch, port);
        let definition = AddPort {
            name: port.clone(),
            driver: driver.clone(),
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        Devices::close(self.0.fabrics.connector(), &definition);
        self.0.faults().remove(&(switch.clone(), port.clone()));
        let mut is_found = false;
        for (at, port) in both_ends(switch, port, &driver) {
            if let Some(stored) = self.0.switches().get_mut(&at) {
                is_found |= stored.remove_ports(|there| there.name == port);
            }
        }
        if let PortDriver::Box { name, port: number } = &driver
            && !is_found
            && let Ok(managed) = self.0.managed_box(name)
        {
            let definition = {
                let mut inner = managed.inner();
                if let Some(port) = inner.definition.ports.get_mut(usize::from(*number)) {
                    port.attach = Attachment::Nothing;
                }
                inner.definition.clone()
            };
            // A fabric that has ended gets the definition with its next start.
            let _ = self.0.fabrics.ask(orders::AlterBox { definition });
        }
    }

    /// Undoes the removal of a port that the definition of a switch contained.
    pub(super) fn put_port_back(&self, before: StoredSwitch, port: &AddPort, forwarding: Vec<Forwarding>) {
        let _change = self.0.change();
        let name = before.definition.name.clone();
        self.0.switches().insert(name, before.clone());
        self.restore_ports(&[before], |restored| restored.name == port.name);
        forwarding.into_iter().for_each(|before| self.restore_forwarding(before));
    }

    pub(super) fn stored_switch(&self, name: &SwitchName) -> Result<StoredSwitch, OperationError> {
        self.0.switches().get(name).cloned().ok_or_else(|| OperationError::NoSwitch(name.clone()))
    }

    /// Lists the switches, by name.
    pub fn switches(&self) -> Result<Vec<SwitchStatus>, OperationError> {
        let snapshot = self.0.fabrics.traffic()?;
        let mut stored: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        stored.retain(|stored| self.sees(&stored.definition.owner));
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
            owner: stored.definition.owner.clone(),
            shared_with: stored.definition.shared_with.clone(),
            stack: stored.stack.clone(),
            created: stored.created,
            ports: u32::try_from(ports).unwrap_or(u32::MAX),
            addresses: snapshot.addresses.get(name).copied().unwrap_or(0),
            traffic: stats.traffic(),
            rates: self.0.meter().switches.get(name).copied().unwrap_or_default(),
            drops: stats.counters.drops.clone(),
            steering: snapshot.steering.get(name).copied(),
        }
    }

    /// All details of a switch.
    pub fn show_switch(&self, name: &SwitchName) -> Result<SwitchDetail, OperationError> {
        self.until_rebuilt(|| self.describe_switch(name))
    }

    fn describe_switch(&self, name: &SwitchName) -> Result<SwitchDetail, OperationError> {
        let stored = self.stored_switch(name)?;
        let described = self.0.fabrics.ask(orders::Ports { switch: name.clone() })?;
        let snapshot = self.0.fabrics.traffic()?;
        let none = PortStats::default();
        let ports = snapshot.switches.get(name);
        let port = |PortInventory { port: definition, .. }: PortInventory| {
            let port = definition.name.clone();
            let stats = ports.and_then(|ports| ports.get(&port)).unwrap_or(&none);
            let key = (name.clone(), port.clone());
            SwitchPort {
                fault: self.fault(&key, stats),
                link: stats.link,
                awaits: stats.awaits.clone(),
                openflow: Some(stats.openflow).filter(|number| *number > 0),
                queues: Some(stats.queues).filter(|queues| *queues > 1),
                traffic: stats.traffic(),
                rates: self.0.meter().ports.get(&key).copied().unwrap_or_default(),
                drops: stats.counters.drops.clone(),
                stack: stored.makers.get(&port).cloned(),
                name: port,
                driver: match self.user() {
                    Some(_) => definition.driver.without_secret(),
                    None => definition.driver,
                },
                limits: definition.limits,
                default: definition.default,
            }
        };
        let port_list: Vec<SwitchPort> = described.into_iter().map(port).collect();
        let CreateSwitch { controllers, fail_mode, .. } = &stored.definition;
        let states = match controllers.is_empty() {
            true => Vec::new(),
            false => self.0.fabrics.ask(orders::ControllerStates { switch: name.clone() })?,
        };
        let datapath = (!controllers.is_empty())
            .then(|| format!("{:#018x}", protocol::agent::datapath(self.0.fabrics.store(), name)));
        let mut states = states.into_iter();
        let controllers = controllers.iter().map(|address| {
            let state = states.next();
            let role = state.as_ref().and_then(|state| state.role);
            ControllerStatus {
                address: *address,
                connected: role.is_some(),
                role,
                since_seconds: state.as_ref().map_or(0, |state| state.since_seconds),
                error: state.and_then(|state| state.error),
            }
        });
        Ok(SwitchDetail {
            status: self.switch_status(&stored, &snapshot),
            datapath,
            controllers: controllers.collect(),
            openflow_numbers: self.openflow_numbers(&stored, &port_list),
            fail_mode: *fail_mode,
            port_list,
        })
    }
}

/// A switch as the fabric knows it: without its ports, and without rights, which the daemon checks.
pub(super) fn alone(definition: &CreateSwitch) -> CreateSwitch {
    CreateSwitch { ports: Vec::new(), flows: Vec::new(), shared_with: BTreeSet::new(), ..definition.clone() }
}
