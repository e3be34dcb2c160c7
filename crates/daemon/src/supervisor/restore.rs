//! Restores the stored definitions when the daemon starts.

use super::boxes::check_box;
use super::state::Supervisor;
use crate::boxes::{Installed, ManagedBox, Phase};
use crate::error::OperationError;
use crate::store::{EntryKind, StoredBox, StoredSwitch};
use api::{AddPort, Attachment, CreateBox, EventKind, PortDriver, with_causes};
use std::sync::Arc;

impl Supervisor {
    /// Creates all stored boxes and switches, and starts the boxes that ran. Failures, such as a missing device, are
    /// recorded; they do not keep the daemon from starting.
    pub(super) fn restore(&self) -> Result<(), OperationError> {
        let (switches, boxes) = {
            let store = self.0.store();
            (store.switches()?, store.boxes()?)
        };
        let switches = self.restorable(
            switches,
            (EntryKind::Switch, |stored: &StoredSwitch| stored.definition.name.as_str()),
            |stored| {
                let definition = stored.definition.clone();
                self.0.fabric.ask(move |network| network.add_switch(&definition))??;
                self.0.switches().insert(stored.definition.name.clone(), stored.clone());
                Ok(())
            },
        )?;
        let boxes = self.restorable(
            boxes,
            (EntryKind::Box, |stored: &StoredBox| stored.definition.name.as_str()),
            |stored| check_box(&stored.definition),
        )?;
        let is_box = |port: &AddPort| matches!(port.driver, PortDriver::Box { .. });
        self.restore_ports(&switches, |port| !is_box(port));
        let boxes: Vec<Arc<ManagedBox>> = boxes.into_iter().map(|stored| self.restore_box(stored)).collect();
        self.restore_ports(&switches, is_box);
        for stored in &switches {
            for (mac, port) in stored.addresses.clone() {
                let switch = stored.definition.name.clone();
                // An address at a removed port has no effect.
                let _ = self.0.fabric.ask(move |network| network.set_address(&switch, mac, &port))?;
            }
        }
        for managed in boxes.into_iter().filter(|managed| managed.inner().phase != Phase::Stopped) {
            self.boot_restored(&managed);
        }
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

    pub(super) fn restore_ports(&self, switches: &[StoredSwitch], which: impl Fn(&AddPort) -> bool) {
        for stored in switches {
            let name = &stored.definition.name;
            for port in stored.definition.ports.iter().filter(|port| which(port)) {
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

    pub(super) fn restore_box(&self, stored: StoredBox) -> Arc<ManagedBox> {
        let managed = Arc::new(ManagedBox::new(stored.definition.clone(), stored.stack, stored.created));
        let configurations = self.0.store().configurations(&managed.name).unwrap_or_default();
        {
            let mut inner = managed.inner();
            inner.installed = configurations
                .into_iter()
                .map(|configuration| Installed {
                    name: configuration.name,
                    installed: configuration.installed,
                    swaps: configuration.swaps,
                    diagnostics: Vec::new(),
                })
                .collect();
            inner.phase = if stored.running { Phase::Created } else { Phase::Stopped };
        }
        if let Err(failure) = self.attach_box(&self.with_present_switches(&stored.definition)) {
            // The box is attached to nothing, but can be inspected and removed.
            let message =
                format!("box {}: its ports could not be attached: {}", managed.name, with_causes(&failure));
            managed.note(&message);
            self.0.journal.note(EventKind::PortFailed, &managed.name, message);
        }
        self.0.boxes().insert(managed.name.clone(), managed.clone());
        managed
    }

    /// A definition in which ports whose switch was removed are attached to nothing. They wait for a new switch of that
    /// name.
    fn with_present_switches(&self, definition: &CreateBox) -> CreateBox {
        let mut definition = definition.clone();
        let switches = self.0.switches();
        for port in &mut definition.ports {
            if matches!(&port.attach, Attachment::Switch(switch) if !switches.contains_key(switch)) {
                port.attach = Attachment::Nothing;
            }
        }
        definition
    }

    pub(super) fn boot_restored(&self, managed: &Arc<ManagedBox>) {
        let change = managed.change.lock();
        let booted = self.boot(managed);
        drop(change);
        if let Err(failure) = booted {
            let message = format!("box {} could not be started: {}", managed.name, with_causes(&failure));
            managed.note(&message);
            self.0.journal.note(EventKind::BoxCrashed, &managed.name, message);
            self.failed_to_start(managed);
        }
    }
}
