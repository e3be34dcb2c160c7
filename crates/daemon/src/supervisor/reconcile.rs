//! Brings the fabric to the stored state: at the start of the daemon, and when the fabric was restarted.

use super::boxes::check_box;
use super::lifecycle::{Boot, version};
use super::links::ports_of;
use super::managed_box::{ManagedBox, load_box};
use super::parallel::in_parallel;
use super::restarts::ToStart;
use super::state::Supervisor;
use super::switches::alone;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use crate::store::{EntryKind, StoredBox, StoredSwitch};
use api::{
    AddPort, Attachment, BoxName, ConfigurationName, CreateBox, CreateSwitch, EventKind, MacAddr, Owner,
    PortDriver, PortName, SwitchMode, SwitchName, with_causes,
};
use protocol::fabric::{BoxInventory, ConfigurationVersion, InventoryReply, Phase, SwitchInventory, orders};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

impl Supervisor {
    /// Loads all stored boxes and switches. Those that are invalid are set aside.
    pub(super) fn load(&self) -> Result<(), OperationError> {
        let (switches, boxes) = {
            let store = self.0.store();
            (store.switches()?, store.boxes()?)
        };
        let switches = self.restorable(
            switches,
            (EntryKind::Switch, |stored: &StoredSwitch| stored.definition.name.as_str()),
            |_| Ok(()),
        )?;
        let boxes = self.restorable(
            boxes,
            (EntryKind::Box, |stored: &StoredBox| stored.definition.name.as_str()),
            |stored| check_box(&stored.definition),
        )?;
        let named = |stored: StoredSwitch| (stored.definition.name.clone(), stored);
        let owners = &self.0.journal.owners;
        for stored in &switches {
            let CreateSwitch { name, owner, .. } = &stored.definition;
            owners.set(name, owner.clone());
            self.0.fabrics.note_switch(name, owner);
        }
        for stored in &boxes {
            let CreateBox { name, owner, .. } = &stored.definition;
            owners.set(name, owner.clone());
            self.0.fabrics.note_box(name, owner);
        }
        for stored in self.0.store().stacks()? {
            owners.set(&stored.name, stored.definition.owner);
        }
        self.0.switches().extend(switches.into_iter().map(named));
        let named = |managed: Arc<ManagedBox>| (managed.name.clone(), managed);
        self.0.boxes().extend(boxes.into_iter().map(load_box).map(named));
        let switches: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        switches.iter().for_each(|stored| self.mark_instances(stored));
        self.remove_strange_sockets(&switches);
        Ok(())
    }

    /// The entries that `check` accepts. The others are set aside.
    fn restorable<T>(
        &self,
        entries: Vec<T>,
        (kind, name): (EntryKind, impl Fn(&T) -> &str),
        check: impl Fn(&T) -> Result<(), OperationError>,
    ) -> Result<Vec<T>, OperationError> {
        let mut accepted = Vec::new();
        for entry in entries {
            match check(&entry) {
                Ok(()) => accepted.push(entry),
                Err(failure) => {
                    let damage = self.0.store().set_aside(kind, name(&entry), with_causes(&failure))?;
                    self.0.note_damage(&damage);
                }
            }
        }
        Ok(accepted)
    }

    /// The folder for the files that boxes write. The launcher opens the one beside the store, because the fabric may be
    /// another user; everybody may write to the system's folder for temporary files.
    fn output_folder(&self, fabric: &FabricLink) -> Option<OwnedFd> {
        match &self.0.output_folder {
            Some(folder) => {
                let mut path = folder.clone().into_os_string();
                if fabric.number() > 0 {
                    path.push(format!(".{}", fabric.number()));
                }
                self.0.fabrics.connector().open_folder(Path::new(&path), fabric.number()).ok()
            }
            None => File::open(std::env::temp_dir()).ok().map(OwnedFd::from),
        }
    }

    /// Orders from the fabric what is missing, and has it remove what should not be there. What is as stored is adopted
    /// and not touched. Failures, such as a missing device, are recorded; they do not keep the daemon from starting.
    pub(super) fn reconcile(&self, link: &Arc<FabricLink>) -> Result<(), OperationError> {
        let _rebuilding = link.rebuilding();
        let boxes = self.reconcile_definitions(link)?;
        self.start_all(boxes);
        Ok(())
    }

    /// Brings switches, ports and the definitions of boxes to the stored state. Returns the boxes, with what the fabric had
    /// of them. They are started later: a thread that changes one, and so keeps it from being started, may wait for the
    /// attachments, which this function holds.
    fn reconcile_definitions(&self, link: &Arc<FabricLink>) -> Result<Vec<ToStart>, OperationError> {
        let _change = self.0.change();
        if let Some(folder) = self.output_folder(link) {
            link.ask_with(orders::UseFolder {}, &[folder.as_fd()])?;
        }
        if self.0.ends_fabric {
            link.ask(orders::EndWithConnection {})?;
        }
        let mut there = link.ask(orders::Inventory {})?;
        self.find_fetched(link, &there)?;
        self.forget_strange_images(link, std::mem::take(&mut there.images));
        let ports_there = ports_of(&there);
        let attached = attached_ports(&there);
        let mut there = self.drop_strangers(link, there)?;
        let is_here = |owner: &Owner| self.0.fabrics.keeper(owner) == *link.owner();
        let switches: Vec<StoredSwitch> = {
            let switches = self.0.switches();
            switches.values().filter(|stored| is_here(&stored.definition.owner)).cloned().collect()
        };
        for stored in &switches {
            let name = &stored.definition.name;
            if !there.switches.contains_key(name) {
                self.order_switch(&stored.definition)?;
            }
            // Without a launcher there is no agent: the next one is asked for it.
            let _ = self.0.fabrics.start_agent_of(&stored.definition);
        }
        self.restore_proxies(link, |switch| there.switches.contains_key(switch))?;
        let is_box = |port: &AddPort| matches!(port.driver, PortDriver::Box { .. });
        self.restore_missing_ports(&switches, &there, |port| !is_box(port));
        let is_ours = |managed: &Arc<ManagedBox>| {
            let inner = managed.inner();
            inner.ordered && is_here(&inner.definition.owner)
        };
        let boxes: Vec<Arc<ManagedBox>> = self.0.all().into_iter().filter(is_ours).collect();
        let missing: Vec<_> =
            boxes.iter().filter(|managed| !there.boxes.contains_key(&managed.name)).collect();
        self.define_all(link, &missing);
        self.restore_missing_ports(&switches, &there, is_box);
        self.doubt_sockets(&switches, &there.switches);
        for stored in &switches {
            let switch = &stored.definition.name;
            let is_adopted = there.switches.contains_key(switch);
            let is_attached = |name: &BoxName, number: u8| {
                is_adopted && attached.contains(&(switch.clone(), name.clone(), number))
            };
            let waits = |found: &BoxInventory| {
                let ports = (0u8..).zip(&found.definition.ports);
                let mut here = ports.filter(|(_, port)| port.attach == Attachment::Switch(switch.clone()));
                here.any(|(number, _)| !is_attached(&found.definition.name, number))
            };
            if there.boxes.values().any(waits) {
                self.attach_waiting_boxes(switch);
            }
        }
        for stored in &switches {
            let of_ports = stored
                .definition
                .ports
                .iter()
                .flat_map(|port| port.addresses.iter().map(|mac| (*mac, port.name.clone())));
            for (mac, port) in of_ports.chain(stored.addresses.clone()) {
                let switch = stored.definition.name.clone();
                // An address at a removed port has no effect.
                let _ = self.0.fabrics.ask(orders::SetAddress { switch, mac, port });
            }
            self.restore_steering(stored, there.switches.contains_key(&stored.definition.name));
            self.restore_flows(stored);
        }
        self.restore_links(link, &ports_there);
        switches.iter().for_each(|stored| self.store_port_numbers(&stored.definition.name));
        let with_found = |managed: Arc<ManagedBox>| {
            let found = there.boxes.remove(&managed.name);
            (managed, found)
        };
        Ok(boxes.into_iter().map(with_found).collect())
    }

    /// Defines boxes in a fabric as by [`define_restored`](Self::define_restored).
    fn define_all(&self, link: &FabricLink, boxes: &[&Arc<ManagedBox>]) {
        let definitions: Vec<_> = boxes.iter().map(|managed| self.restorable_definition(managed)).collect();
        let order = orders::DefineBoxes {
            boxes: definitions.iter().map(|found| (found.attachable.clone(), found.stopped)).collect(),
        };
        match link.ask(order) {
            Ok(failures) if failures.len() == boxes.len() => {
                for ((managed, definition), failure) in boxes.iter().zip(definitions).zip(failures) {
                    let defined = failure.map_or(Ok(()), |failure| Err(failure.into()));
                    self.complete_restored(managed, definition, defined);
                }
            }
            // An earlier version. If the fabric has ended, the next one gets the boxes.
            _ => in_parallel(boxes, |managed| self.define_restored(managed)),
        }
    }

    /// Defines a box in the fabric. Ports whose switch was removed, or is not shared with the owner, are attached to
    /// nothing; they wait for a new switch of that name. A box whose ports cannot be attached is attached to nothing, but can be
    /// inspected and removed.
    pub(super) fn define_restored(&self, managed: &ManagedBox) {
        let definition = self.restorable_definition(managed);
        let (attachable, stopped) = (definition.attachable.clone(), definition.stopped);
        let order = orders::DefineBox { definition: attachable, stopped, prepare: false };
        let defined = self.0.fabrics.ask(order);
        self.complete_restored(managed, definition, defined);
    }

    fn restorable_definition(&self, managed: &ManagedBox) -> Restorable {
        // If it fails, so does the order.
        let _ = self.add_proxies(&managed.inner().definition.clone());
        let (wanted, stopped) = {
            let inner = managed.inner();
            (inner.definition.clone(), !inner.running)
        };
        let mut attachable = wanted.clone();
        for port in &mut attachable.ports {
            let Attachment::Switch(switch) = &port.attach else { continue };
            let is_there = self.0.switches().contains_key(switch);
            if !is_there || self.check_owner(switch, &wanted.owner).is_err() {
                port.attach = Attachment::Nothing;
            }
        }
        let link = self.0.fabrics.of(&attachable.owner);
        if let Some(Err(failure)) = link.map(|link| self.load_image(&link, attachable.image_digest())) {
            let message =
                format!("the image of box {} can't be restored: {}", managed.name, with_causes(&failure));
            self.0.journal.note(EventKind::BoxCrashed, &managed.name, message);
        }
        Restorable { wanted, attachable, stopped }
    }

    /// Defines a box without attachments if it could not be attached, and corrects its definition.
    fn complete_restored(
        &self,
        managed: &ManagedBox,
        Restorable { wanted, mut attachable, stopped }: Restorable,
        defined: Result<(), OperationError>,
    ) {
        if let Err(failure) = defined {
            let message =
                format!("box {}: its ports could not be attached: {}", managed.name, with_causes(&failure));
            self.0.journal.note(EventKind::PortFailed, &managed.name, message);
            attachable.ports.iter_mut().for_each(|port| port.attach = Attachment::Nothing);
            // If this fails too, the fabric has ended, and the next one gets the box.
            let order = orders::DefineBox { definition: attachable.clone(), stopped, prepare: false };
            let _ = self.0.fabrics.ask(order);
        }
        if attachable != wanted {
            let _ = self.0.fabrics.ask(orders::AlterBox { definition: wanted });
        }
    }

    /// Removes the boxes, switches and ports of the fabric that are not as stored.
    fn drop_strangers(&self, link: &FabricLink, there: InventoryReply) -> Result<Adopted, OperationError> {
        let is_here = |owner: &Owner| self.0.fabrics.keeper(owner) == *link.owner();
        let mut adopted = Adopted::default();
        for found in there.boxes {
            let name = found.definition.name.clone();
            match is_here(&found.definition.owner) && self.is_as_stored(&found)? {
                true => drop(adopted.boxes.insert(name, found)),
                false => link.ask(orders::ForgetBox { name })?,
            }
        }
        for found in there.switches {
            let name = found.definition.name.clone();
            if self.is_proxy(link.owner(), &found.definition) {
                adopted.switches.insert(name, Vec::new());
                continue;
            }
            let stored = self.0.switches().get(&name).cloned();
            let stored = stored.filter(|stored| is_here(&stored.definition.owner));
            match stored.filter(|stored| alone(&stored.definition) == found.definition) {
                Some(stored) => {
                    let ports = self.drop_strange_ports(&stored, &found)?;
                    adopted.switches.insert(name, ports);
                }
                None => {
                    link.ask(orders::RemoveSwitch { switch: name })?;
                    self.close_unused(found.ports.iter().map(|found| &found.port));
                }
            }
        }
        Ok(adopted)
    }

    fn is_as_stored(&self, found: &BoxInventory) -> Result<bool, OperationError> {
        let name = &found.definition.name;
        let Ok(managed) = self.0.managed_box(name) else { return Ok(false) };
        if managed.inner().definition != found.definition {
            return Ok(false);
        }
        let wanted: Vec<(ConfigurationName, ConfigurationVersion)> = {
            let stored = self.0.store().configurations(name)?;
            stored.into_iter().map(|stored| (stored.name.clone(), version(&stored))).collect()
        };
        // A box that was never started has none yet.
        Ok(found.phase == Phase::Created || wanted == found.configurations)
    }

    /// Removes the ports of a switch that are not as stored. Returns those that stay.
    fn drop_strange_ports(
        &self,
        stored: &StoredSwitch,
        found: &SwitchInventory,
    ) -> Result<Vec<PortName>, OperationError> {
        let switch = &stored.definition.name;
        let mut stay = Vec::new();
        for found in &found.ports {
            let port = found.port.name.clone();
            let is_stored = stored.definition.ports.iter().any(|port| is_same_port(port, &found.port));
            match found.implied || is_stored {
                true => stay.push(port),
                false => match self.0.fabrics.ask(orders::RemovePort { switch: switch.clone(), port }) {
                    // It went with the other end of its pipe.
                    Ok(()) | Err(OperationError::NoPort(..)) => self.close_unused([&found.port]),
                    Err(failure) => return Err(failure),
                },
            }
        }
        self.correct_addresses(stored, found)?;
        Ok(stay)
    }

    /// Removes the assigned addresses of an adopted switch that are not stored, and sets its default port. Those that are
    /// missing are assigned later, as for a new switch.
    fn correct_addresses(
        &self,
        stored: &StoredSwitch,
        found: &SwitchInventory,
    ) -> Result<(), OperationError> {
        if stored.definition.mode != SwitchMode::Static {
            return Ok(());
        }
        let switch = &stored.definition.name;
        let is_wanted = |mac: &MacAddr, port: &PortName| {
            let own = stored.definition.ports.iter().find(|definition| definition.name == *port);
            stored.addresses.contains(&(*mac, port.clone()))
                || own.is_some_and(|own| own.addresses.contains(mac))
        };
        // The address of a box belongs to the port that came with it.
        let is_implied =
            |port: &PortName| found.ports.iter().any(|found| found.implied && found.port.name == *port);
        for (mac, port) in &found.addresses {
            if !is_wanted(mac, port) && !is_implied(port) {
                match self.0.fabrics.ask(orders::RemoveAddress { switch: switch.clone(), mac: *mac }) {
                    // It went with a port that was removed.
                    Ok(()) | Err(OperationError::NoAddress(..)) => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        for port in stored.definition.ports.iter().filter(|port| port.default) {
            let is_set = found.ports.iter().any(|found| found.port.name == port.name && found.port.default);
            if !is_set {
                // It fails if the port is yet to be added, which makes it the default.
                let order = orders::SetDefault { switch: switch.clone(), port: Some(port.name.clone()) };
                let _ = self.0.fabrics.ask(order);
            }
        }
        Ok(())
    }

    /// Adds the ports of these switches that `which` selects.
    pub(super) fn restore_ports(&self, switches: &[StoredSwitch], which: impl Fn(&AddPort) -> bool) {
        self.restore_missing_ports(switches, &Adopted::default(), which);
    }

    fn restore_missing_ports(
        &self,
        switches: &[StoredSwitch],
        there: &Adopted,
        which: impl Fn(&AddPort) -> bool,
    ) {
        for stored in switches {
            let name = &stored.definition.name;
            let adopted = there.switches.get(name).map_or(&[][..], Vec::as_slice);
            let ports = stored.definition.ports.iter();
            let missing = ports
                .filter(|port| which(port) && !adopted.contains(&port.name) && !self.is_link(name, port));
            for port in missing {
                if let Err(failure) = self.restore_port(name, port) {
                    let message = format!(
                        "port {} of switch {name} could not be restored: {}",
                        port.name,
                        with_causes(&failure)
                    );
                    self.0.journal.note(EventKind::PortFailed, (name, &port.name), message);
                }
            }
        }
    }

    /// Starts a box that is to run, or stops one that is not, unless it was removed meanwhile.
    pub(super) fn start_wanted(&self, managed: &Arc<ManagedBox>, phase: Option<Phase>, how: Boot) {
        let wanted = managed.inner().running;
        let result = match (wanted, phase) {
            (true, None | Some(Phase::Created)) => {
                let _change = managed.change.lock();
                let is_wanted = {
                    let inner = managed.inner();
                    inner.running && !inner.removed
                };
                if is_wanted {
                    // The fabric records a failure.
                    let _ = self.boot(managed, how);
                    // A request to stop it may have come to the fabric before the order to start it.
                    if !managed.inner().running {
                        self.bring_down(&managed.name, true);
                    }
                }
                Ok(())
            }
            (false, Some(Phase::Booting | Phase::Running | Phase::Suspended | Phase::Waiting)) => {
                self.0.fabrics.ask(orders::StopBox { name: managed.name.clone(), graceful: true })
            }
            _ => Ok(()),
        };
        if let Err(failure) = result {
            let message = format!("box {} could not be stopped: {}", managed.name, with_causes(&failure));
            self.0.journal.note(EventKind::BoxCrashed, &managed.name, message);
        }
    }
}

/// The ports of boxes that are attached to switches.
fn attached_ports(there: &InventoryReply) -> BTreeSet<(SwitchName, BoxName, u8)> {
    let ports = there.switches.iter().flat_map(|found| {
        let switch = &found.definition.name;
        found.ports.iter().map(move |found| (switch, &found.port.driver))
    });
    let of_boxes = ports.filter_map(|(switch, driver)| match driver {
        PortDriver::Box { name, port } => Some((switch.clone(), name.clone(), *port)),
        _ => None,
    });
    sorting::collect(of_boxes)
}

/// Whether a port of the fabric is the stored one. Addresses and the default port are compared for the whole switch.
fn is_same_port(stored: &AddPort, found: &AddPort) -> bool {
    let alone = |port: &AddPort| AddPort { addresses: Vec::new(), default: false, ..port.clone() };
    alone(stored) == alone(found)
}

/// A definition of a box that a fabric gets again.
struct Restorable {
    wanted: CreateBox,
    /// The same, attached to nothing instead of switches that were removed or are not shared with the owner.
    attachable: CreateBox,
    /// Whether the box does not run.
    stopped: bool,
}

/// What the fabric has that is as stored.
#[derive(Default)]
struct Adopted {
    boxes: BTreeMap<BoxName, BoxInventory>,
    /// The ports of each switch.
    switches: BTreeMap<SwitchName, Vec<PortName>>,
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{TestBed, process, until};
    use super::*;
    use api::{PortRequest, Time};
    use std::thread;

    fn is_defined(bed: &TestBed, name: &BoxName) -> bool {
        bed.fabric.numbers() == [0] && bed.phase(name).is_some()
    }

    /// An operation holds the lock of its box, and then needs that of the attachments.
    #[test]
    fn a_rebuild_holds_no_attachments_while_it_waits_for_a_box() {
        let bed = TestBed::with_probe();
        let name: BoxName = "fw".parse().unwrap();
        bed.create_box(process("fw", "drop")).unwrap();
        let managed = bed.0.managed_box(&name).unwrap();
        let changing = managed.change.lock();
        bed.kill_fabric();
        until("the next fabric has the box", || is_defined(&bed, &name));
        let other = bed.supervisor.clone();
        let created = thread::spawn(move || other.create_switch(CreateSwitch::new("lan".parse().unwrap())));
        until("a switch is created", || created.is_finished());
        created.join().unwrap().unwrap();
        drop(changing);
        until("the box runs", || bed.phase(&name) == Some(Phase::Running));
    }

    /// The operation that creates it orders it from the next fabric.
    #[test]
    fn a_rebuild_leaves_out_a_box_that_is_not_ordered_yet() {
        let bed = TestBed::with_probe();
        let there: BoxName = "there".parse().unwrap();
        bed.create_box(process("there", "drop")).unwrap();
        let new = Arc::new(ManagedBox::new(process("new", "drop"), None, Time::now(), true));
        bed.reserve(&new).unwrap();
        bed.replace_fabric_of(&there);
        assert!(!is_defined(&bed, &new.name));
        bed.attach_box(&new).unwrap();
        assert!(is_defined(&bed, &new.name));
        bed.replace_fabric();
        assert!(is_defined(&bed, &new.name));
    }

    #[test]
    fn the_next_fabric_attaches_no_box_to_a_switch_that_is_not_shared_with_its_owner() {
        let bed = TestBed::with_probe();
        let (lan, name): (SwitchName, BoxName) = ("lan".parse().unwrap(), "fw".parse().unwrap());
        let owner: Owner = "red".parse().unwrap();
        let alone = CreateSwitch::new(lan.clone());
        bed.create_switch(CreateSwitch { shared_with: [owner.clone()].into(), ..alone.clone() }).unwrap();
        let attach = Attachment::Switch(lan.clone());
        let ports = vec![PortRequest { attach, ..PortRequest::default() }];
        bed.create_box(CreateBox { ports, owner: owner.clone(), ..process("fw", "drop") }).unwrap();
        let ports = || bed.show_switch(&lan).unwrap().port_list.len();
        assert_eq!(ports(), 1);
        bed.remove_switch(&lan).unwrap();
        bed.create_switch(alone).unwrap();
        assert_eq!(ports(), 0);
        bed.replace_fabric_of(&name);
        assert_eq!(ports(), 0);
        bed.share_switch(&lan, &owner).unwrap();
        assert_eq!(ports(), 1);
    }

    /// An operation that was interrupted had replaced the switch, and the box was attached to the new one.
    #[test]
    fn an_adopted_box_is_attached_to_a_switch_that_is_made_again() {
        let bed = TestBed::with_probe();
        let switch: SwitchName = "lan".parse().unwrap();
        bed.create_switch(CreateSwitch::new(switch.clone())).unwrap();
        let attach = Attachment::Switch(switch.clone());
        let ports = vec![PortRequest { attach, ..PortRequest::default() }];
        bed.create_box(CreateBox { ports, ..process("fw", "drop") }).unwrap();
        let link = bed.0.fabrics.all().remove(0);
        let ports = || bed.show_switch(&switch).unwrap().port_list.len();
        assert_eq!(ports(), 1);
        link.ask(orders::RemoveSwitch { switch: switch.clone() }).unwrap();
        let other = CreateSwitch { age_seconds: 7, ..CreateSwitch::new(switch.clone()) };
        link.ask(orders::AddSwitch { definition: other.clone() }).unwrap();
        bed.attach_waiting_boxes(&switch);
        assert_eq!(ports(), 1);
        bed.reconcile(&link).unwrap();
        assert_eq!(ports(), 1);
        // Its port was not attached, because the switch did not exist yet.
        link.ask(orders::RemoveSwitch { switch: switch.clone() }).unwrap();
        link.ask(orders::AddSwitch { definition: alone(&CreateSwitch::new(switch.clone())) }).unwrap();
        assert_eq!(ports(), 0);
        bed.reconcile(&link).unwrap();
        assert_eq!(ports(), 1);
    }
}
