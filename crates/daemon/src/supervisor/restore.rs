//! Restores the stored definitions when the daemon starts.

use super::state::Supervisor;
use crate::boxes::{Installed, Member, Phase};
use crate::error::OperationError;
use crate::store::{StoredBox, StoredSwitch};
use api::{AddPort, EventKind, PortDriver, with_causes};
use std::sync::Arc;

impl Supervisor {
    /// Creates all stored boxes and switches, and starts the boxes that ran. Failures, such as a missing device, are
    /// recorded; they do not keep the daemon from starting.
    pub(super) fn restore(&self) -> Result<(), OperationError> {
        let (switches, boxes) = {
            let store = self.0.store();
            (store.switches()?, store.boxes()?)
        };
        for stored in &switches {
            let definition = stored.definition.clone();
            self.0.fabric.ask(move |network| network.add_switch(&definition))??;
            self.0.switches().insert(stored.definition.name.clone(), stored.clone());
        }
        let is_box = |port: &AddPort| matches!(port.driver, PortDriver::Box { .. });
        self.restore_ports(&switches, |port| !is_box(port));
        let members: Vec<Arc<Member>> = boxes.into_iter().map(|stored| self.restore_box(stored)).collect();
        self.restore_ports(&switches, is_box);
        for stored in &switches {
            for (mac, port) in stored.addresses.clone() {
                let switch = stored.definition.name.clone();
                // An address at a removed port has no effect.
                let _ = self.0.fabric.ask(move |network| network.set_address(&switch, mac, &port))?;
            }
        }
        for member in members.into_iter().filter(|member| member.inner().phase != Phase::Stopped) {
            self.boot_restored(&member);
        }
        Ok(())
    }

    fn restore_ports(&self, switches: &[StoredSwitch], which: impl Fn(&AddPort) -> bool) {
        for stored in switches {
            let name = &stored.definition.name;
            for port in stored.definition.ports.iter().filter(|port| which(port)) {
                if let Err(failure) = self.restore_port(name, port) {
                    let message =
                        format!("port {} of switch {name} is left out: {}", port.name, with_causes(&failure));
                    let subject = format!("switch/{name}/{}", port.name);
                    self.0.journal.note(EventKind::PortFailed, subject, message);
                }
            }
        }
    }

    fn restore_box(&self, stored: StoredBox) -> Arc<Member> {
        let member = Arc::new(Member::new(stored.definition.clone(), stored.stack, stored.created));
        let configurations = self.0.store().configurations(&member.name).unwrap_or_default();
        {
            let mut inner = member.inner();
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
        if let Err(failure) = self.attach_box(&stored.definition) {
            // The box is attached to nothing, but can be inspected and removed.
            let message =
                format!("box {}: its ports are attached to nothing: {}", member.name, with_causes(&failure));
            member.note(&message);
            self.0.journal.note(EventKind::PortFailed, format!("box/{}", member.name), message);
        }
        self.0.members().insert(member.name.clone(), member.clone());
        member
    }

    fn boot_restored(&self, member: &Arc<Member>) {
        let change = member.change.lock();
        let booted = self.boot(member);
        drop(change);
        if let Err(failure) = booted {
            let message = format!("box {} could not be started: {}", member.name, with_causes(&failure));
            member.note(&message);
            self.0.journal.note(EventKind::BoxCrashed, format!("box/{}", member.name), message);
            self.failed_to_start(member);
        }
    }
}
