//! Shares switches with other owners, and withdraws them.
//!
//! What another owner has attached to a switch goes when the switch is no longer shared with that owner: the ports of its
//! boxes are attached to nothing, and the pipes of its switches are removed. Boxes keep running.

use super::claims::Claim;
use super::managed_box::ManagedBox;
use super::operation::Operation;
use super::state::Supervisor;
use super::switches::leads_to;
use crate::error::OperationError;
use crate::store::{Action, StoreChange};
use api::{
    AddPort, Attachment, CreateBox, CreateSwitch, EventKind, Owner, PortDriver, SwitchDetail, SwitchName,
};
use protocol::fabric::orders;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The owners of a list, as in a sentence.
fn listed(owners: &BTreeSet<Owner>) -> String {
    let names: Vec<&str> = owners.iter().map(Owner::as_str).collect();
    match names.as_slice() {
        [] => "no other owner".into(),
        names => names.join(", "),
    }
}

impl Supervisor {
    /// Lets the boxes and switches of another owner be attached to a switch. Nothing happens if they may be already.
    pub fn share_switch(&self, name: &SwitchName, owner: &Owner) -> Result<SwitchDetail, OperationError> {
        self.change_sharing(name, |shared_with| {
            shared_with.insert(owner.clone());
        })
    }

    /// No longer lets the boxes and switches of another owner be attached to a switch, and detaches those that are.
    pub fn unshare_switch(&self, name: &SwitchName, owner: &Owner) -> Result<SwitchDetail, OperationError> {
        self.change_sharing(name, |shared_with| {
            shared_with.remove(owner);
        })
    }

    fn change_sharing(
        &self,
        name: &SwitchName,
        change: impl Fn(&mut BTreeSet<Owner>),
    ) -> Result<SwitchDetail, OperationError> {
        let wanted = |definition: &CreateSwitch| {
            let mut shared_with = definition.shared_with.clone();
            change(&mut shared_with);
            shared_with
        };
        let claims = || match self.stored_switch(name) {
            Ok(stored) => self.claims_to_share(name, &wanted(&stored.definition)),
            Err(_) => vec![Claim::change(name)],
        };
        self.operate(Action::Change, name, &claims, |operation| {
            let stored = self.stored_switch(name)?;
            self.set_sharing(operation, name, wanted(&stored.definition))
        })?;
        self.show_switch(name)
    }

    /// The claims of an operation that changes with whom a switch is shared.
    pub(super) fn claims_to_share(&self, name: &SwitchName, shared_with: &BTreeSet<Owner>) -> Vec<Claim> {
        let withdrawn = self.withdrawn(name, shared_with);
        let mut claims = vec![Claim::change(name)];
        claims
            .extend(self.boxes_of(&withdrawn, name).iter().map(|(managed, _)| Claim::change(&managed.name)));
        claims.extend(self.ports_of(&withdrawn, name).iter().flat_map(|(switch, port)| {
            let of_box = match &port.driver {
                PortDriver::Box { name, .. } => Some(Claim::change(name)),
                _ => None,
            };
            std::iter::once(Claim::change(switch)).chain(of_box)
        }));
        claims
    }

    /// The owners from whom a switch is withdrawn by sharing it with these.
    fn withdrawn(&self, name: &SwitchName, shared_with: &BTreeSet<Owner>) -> BTreeSet<Owner> {
        let switches = self.0.switches();
        let Some(stored) = switches.get(name) else { return BTreeSet::new() };
        let definition = &stored.definition;
        let gone = definition.shared_with.difference(shared_with);
        sorting::collect(gone.filter(|owner| **owner != definition.owner).cloned())
    }

    /// The boxes of owners that are attached to a switch by their definition, with the numbers of these ports.
    fn boxes_of(&self, owners: &BTreeSet<Owner>, switch: &SwitchName) -> Vec<(Arc<ManagedBox>, Vec<u8>)> {
        let at_switch = Attachment::Switch(switch.clone());
        let attached = |managed: Arc<ManagedBox>| {
            let definition = managed.inner().definition.clone();
            let ports = (0u8..).zip(&definition.ports).filter(|(_, port)| port.attach == at_switch);
            let ports: Vec<u8> = ports.map(|(number, _)| number).collect();
            (owners.contains(&definition.owner) && !ports.is_empty()).then_some((managed, ports))
        };
        self.0.all().into_iter().filter_map(attached).collect()
    }

    /// The ports in the definition of a switch that attach boxes and switches of these owners.
    fn ports_of(&self, owners: &BTreeSet<Owner>, switch: &SwitchName) -> Vec<(SwitchName, AddPort)> {
        let is_of_box = |port: &AddPort| match &port.driver {
            PortDriver::Box { name, .. } => {
                let managed = self.0.managed_box(name);
                managed.is_ok_and(|managed| owners.contains(&managed.inner().definition.owner))
            }
            _ => false,
        };
        let switches: Vec<_> = self.0.switches().values().cloned().collect();
        let mut found = Vec::new();
        for stored in switches {
            let definition = stored.definition;
            for port in definition.ports {
                let is_pipe = owners.contains(&definition.owner) && leads_to(&port, switch);
                if is_pipe || (definition.name == *switch && is_of_box(&port)) {
                    found.push((definition.name.clone(), port));
                }
            }
        }
        found
    }

    /// Changes with whom a switch is shared, as a step of an operation. What owners have attached from whom it is withdrawn
    /// is detached.
    pub(super) fn set_sharing(
        &self,
        operation: &mut Operation,
        name: &SwitchName,
        shared_with: BTreeSet<Owner>,
    ) -> Result<(), OperationError> {
        if self.stored_switch(name)?.definition.shared_with == shared_with {
            return Ok(());
        }
        let withdrawn = self.withdrawn(name, &shared_with);
        for (managed, ports) in self.boxes_of(&withdrawn, name) {
            self.detach_box(operation, name, &managed, &ports);
        }
        for (switch, port) in self.ports_of(&withdrawn, name) {
            self.remove_withdrawn_port(operation, &switch, &port)?;
        }
        let mut stored = self.stored_switch(name)?;
        let before = std::mem::replace(&mut stored.definition.shared_with, shared_with.clone());
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(name.clone(), stored);
        let shared = name.clone();
        operation.undo_by(move |supervisor| {
            if let Some(stored) = supervisor.0.switches().get_mut(&shared) {
                stored.definition.shared_with = before;
            }
        });
        let message = format!("switch {name} is shared with {}", listed(&shared_with));
        operation.note(EventKind::SwitchShared, name, message);
        let waiting = name.clone();
        operation.after_commit(move |supervisor| {
            let _change = supervisor.0.change();
            supervisor.attach_waiting_boxes(&waiting);
        });
        Ok(())
    }

    /// Removes a port that connects an owner from whom the switch is withdrawn.
    fn remove_withdrawn_port(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        port: &AddPort,
    ) -> Result<(), OperationError> {
        let before = self.stored_switch(switch)?;
        let forwarding = self.forwarding_around(switch)?;
        self.plan_port_removal(operation, switch, &port.name)?;
        self.take_down_port(switch, &port.name);
        let port = port.clone();
        operation.undo_by(move |supervisor| supervisor.put_port_back(before, &port, forwarding));
        Ok(())
    }

    /// Attaches ports of a box to nothing, because their switch is withdrawn from its owner. The box keeps running.
    fn detach_box(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        managed: &Arc<ManagedBox>,
        ports: &[u8],
    ) {
        let before = managed.inner().definition.clone();
        let mut definition = before.clone();
        for number in ports {
            if let Some(port) = definition.ports.get_mut(usize::from(*number)) {
                port.attach = Attachment::Nothing;
            }
            let message = format!(
                "port {number} of box {} was detached from switch {switch}, which is no longer shared with {}",
                managed.name, definition.owner
            );
            operation.note(EventKind::PortRemoved, &managed.name, message);
        }
        operation.add(StoreChange::DefineBox(Box::new(definition.clone())));
        {
            let _change = self.0.change();
            self.detach_in_fabric(switch, ports, managed, definition);
        }
        let (managed, ports) = (managed.clone(), ports.to_vec());
        operation.undo_by(move |supervisor| {
            let _change = supervisor.0.change();
            supervisor.attach_in_fabric(&ports, &managed, before);
        });
    }

    /// Detaches ports of a box from a switch, or from its proxy in the fabric of the box.
    fn detach_in_fabric(
        &self,
        switch: &SwitchName,
        ports: &[u8],
        managed: &ManagedBox,
        definition: CreateBox,
    ) {
        // A fabric that has ended gets the definition with its next start.
        if let Some(fabric) = self.0.fabrics.of(&definition.owner) {
            let described = fabric.ask(orders::Ports { switch: switch.clone() }).unwrap_or_default();
            let is_its = |driver: &PortDriver| matches!(driver, PortDriver::Box { name, port } if *name == managed.name && ports.contains(port));
            for found in described.into_iter().filter(|found| is_its(&found.port.driver)) {
                let _ = fabric.ask(orders::RemovePort { switch: switch.clone(), port: found.port.name });
            }
        }
        managed.inner().definition = definition.clone();
        let _ = self.0.fabrics.ask(orders::AlterBox { definition });
        self.remove_unused_proxies();
    }

    /// Undoes [`detach_in_fabric`](Self::detach_in_fabric).
    fn attach_in_fabric(&self, ports: &[u8], managed: &ManagedBox, definition: CreateBox) {
        managed.inner().definition = definition.clone();
        let _ = self.0.fabrics.ask(orders::AlterBox { definition: definition.clone() });
        // If it fails, so does the order.
        let _ = self.add_proxies(&definition);
        for number in ports {
            if let Some(port) = definition.ports.get(usize::from(*number)).cloned() {
                let (name, number) = (managed.name.clone(), *number);
                let _ = self.0.fabrics.ask(orders::ReattachBox { name, number, port });
            }
        }
    }
}
