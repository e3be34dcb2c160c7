//! Backups and checks of the store, and entries that were set aside.

use super::boxes::check_box;
use super::lifecycle::Boot;
use super::managed_box::load_box;
use super::state::{Supervisor, SupervisorState};
use crate::error::OperationError;
use crate::store::{Damage, EntryKind};
use api::StoreStatus;
use std::sync::Weak;

impl Supervisor {
    /// A copy of the store with all acknowledged changes. Operations wait while it is made.
    pub fn back_store_up(&self) -> Result<Vec<u8>, OperationError> {
        Ok(self.0.store().copy()?.0)
    }

    /// Checks the store's whole file, and lists the entries that were set aside.
    pub fn check_store(&self) -> Result<StoreStatus, OperationError> {
        let copy = self.0.store().copy()?;
        let findings = copy.check()?;
        let findings = findings.iter().map(ToString::to_string).collect();
        Ok(StoreStatus { findings, set_aside: self.0.store().set_aside_entries()? })
    }

    /// Restores an entry that was set aside.
    ///
    /// # Errors
    ///
    /// It still cannot be read or restored, or its name is taken. It stays aside.
    pub fn retry_set_aside(&self, entry: i64) -> Result<(), OperationError> {
        let put_back = self.0.store().retry_set_aside(entry)?;
        let Some((kind, name)) = put_back else { return Err(OperationError::NoEntry(entry)) };
        match kind {
            EntryKind::Box => {
                let stored = self.0.store().read_box(&name)?;
                if let Err(failure) = check_box(&stored.definition) {
                    self.0.store().set_aside(kind, &name, api::with_causes(&failure))?;
                    return Err(failure);
                }
                self.0.journal.owners.set(&stored.definition.name, stored.definition.owner.clone());
                let managed = load_box(stored);
                self.0.boxes().insert(managed.name.clone(), managed.clone());
                let switches: Vec<_> = self.0.switches().values().cloned().collect();
                switches.iter().for_each(|stored| self.mark_instances(stored));
                self.define_restored(&managed);
                self.start_wanted(&managed, None, Boot { restore: true, ..Boot::default() });
            }
            EntryKind::Switch => {
                let stored = self.0.store().read_switch(&name)?;
                self.0.journal.owners.set(&stored.definition.name, stored.definition.owner.clone());
                self.put_switch_back(&stored, Vec::new(), Vec::new());
                self.mark_instances(&stored);
            }
            // A stack is only its entry. An unconfirmed one is rolled back by the next daemon.
            EntryKind::Stack | EntryKind::Unconfirmed => {}
        }
        Ok(())
    }

    /// Deletes an entry that was set aside.
    pub fn drop_set_aside(&self, entry: i64) -> Result<(), OperationError> {
        match self.0.store().drop_set_aside(entry)? {
            true => Ok(()),
            false => Err(OperationError::NoEntry(entry)),
        }
    }

    /// Checks the store's whole file in a thread of its own, beside service. Damage is reported as events.
    pub(super) fn check_store_beside_service(&self) {
        let state = std::sync::Arc::downgrade(&self.0);
        // If no thread can be created, the store was checked in part when it was opened.
        let _ = std::thread::Builder::new().name("check store".into()).spawn(move || check_whole(&state));
    }
}

fn check_whole(state: &Weak<SupervisorState>) {
    // A daemon that ends is not kept alive by the check.
    let Some(copy) = state.upgrade().map(|state| state.store().copy()) else { return };
    // A copy that cannot be read at all is reported too.
    let findings = copy
        .and_then(|copy| copy.check())
        .unwrap_or_else(|error| vec![Damage::Finding(api::with_causes(&error))]);
    let Some(state) = state.upgrade() else { return };
    findings.iter().for_each(|damage| state.note_damage(damage));
}
