//! Installs, swaps and removes configurations of boxes.

use super::claims::Claim;
use super::lifecycle::{lock_for_change, state};
use super::operation::Operation;
use super::state::Supervisor;
use crate::boxes::{Installed, ManagedBox, Phase, in_box};
use crate::error::{OperationError, RequestError};
use crate::fair_lock::LockTimeout;
use crate::limits::{INSTALL_TIMEOUT, MAX_CONFIGURATIONS, STOP_TIMEOUT};
use crate::store::{Action, StoreChange, StoredConfiguration};
use api::{
    BoxName, ConfigurationName, ConfigurationStatus, ConfigurationText, EventKind, Install, Time, with_causes,
};
use boundary::Request;
use std::sync::Arc;

/// A configuration before a change.
#[derive(Clone, Debug)]
struct Previous {
    name: ConfigurationName,
    /// `None` if the box did not have it.
    stored: Option<StoredConfiguration>,
    /// All configurations of the box.
    installed: Vec<Installed>,
}

impl Supervisor {
    /// The text of a configuration as it was installed.
    pub fn show_configuration(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
    ) -> Result<ConfigurationText, OperationError> {
        self.0.managed_box(name)?;
        let store = self.0.store();
        let missing = || OperationError::NoConfiguration(name.clone(), configuration.clone());
        let found = store.configuration(name, configuration)?.ok_or_else(missing)?;
        let files = store.files(name, found.id)?.into_iter().map(|file| file.name).collect();
        Ok(ConfigurationText { configuration: found.text, source: found.source, files })
    }

    /// Installs a configuration, or swaps the one of the same name. It is checked first; if it is rejected or cannot be
    /// stored, the old one keeps running. If the box does not run, the configuration is only stored.
    pub fn install(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
        request: &Install,
    ) -> Result<ConfigurationStatus, OperationError> {
        let result = self.install_checked(name, configuration, request);
        if let Err(failure @ OperationError::Refused(_)) = &result {
            let message = format!("configuration {configuration} of box {name}: {}", with_causes(failure));
            self.0.journal.note(EventKind::ConfigurationRefused, name, message);
        }
        result
    }

    fn install_checked(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
        request: &Install,
    ) -> Result<ConfigurationStatus, OperationError> {
        super::boxes::check_sizes(&request.configuration, &request.files)?;
        let managed = self.0.managed_box(name)?;
        let mut definition = managed.inner().definition.clone();
        definition.source = request.source.clone();
        self.check_for(&definition, &request.configuration, &request.files)?;
        self.operate(Action::Change, name, &|| vec![Claim::change(name)], |operation| {
            self.swap(operation, &managed, configuration, request)
        })
    }

    /// Installs a configuration that was checked, or swaps the one of the same name.
    pub(super) fn swap(
        &self,
        operation: &mut Operation,
        managed: &Arc<ManagedBox>,
        configuration: &ConfigurationName,
        request: &Install,
    ) -> Result<ConfigurationStatus, OperationError> {
        let name = &managed.name;
        let _change = lock_for_change(managed)?;
        let (phase, instance, installed) = {
            let inner = managed.inner();
            if inner.removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            let others = inner.installed.iter().filter(|installed| installed.name != *configuration).count();
            if others >= MAX_CONFIGURATIONS {
                return Err(OperationError::Limit("configurations of the box", MAX_CONFIGURATIONS));
            }
            (inner.phase, inner.instance.clone(), inner.installed.clone())
        };
        if matches!(phase, Phase::Suspended) {
            return Err(state(managed, phase, "resume it first"));
        }
        let before = self.0.store().configuration(name, configuration)?;
        let stored = StoredConfiguration {
            id: 0,
            name: configuration.clone(),
            source: request.source.clone(),
            installed: Time::now(),
            swaps: before.as_ref().map_or(0, |before| before.swaps + 1),
            text: request.configuration.clone(),
        };
        operation.stage(name, &stored, &request.files)?;
        let previous = Previous { name: configuration.clone(), stored: before, installed };
        let diagnostics = match &instance {
            Some(instance) => {
                let text = (in_box(configuration), stored.text.as_str(), stored.source.as_deref());
                let swapped = self.install_now(managed, instance, text, &request.files);
                swapped.inspect_err(|_| self.take_back(managed, previous.clone()))?
            }
            None => Vec::new(),
        };
        let swapped = managed.clone();
        operation.undo_by(move |supervisor| supervisor.take_back_later(&swapped, previous));
        let what = if stored.swaps > 0 { "swapped" } else { "installed" };
        let message = format!("configuration {configuration} of box {name} was {what}");
        operation.note(EventKind::ConfigurationInstalled, name, message);
        let installed = Installed {
            name: configuration.clone(),
            installed: stored.installed,
            swaps: stored.swaps,
            diagnostics,
        };
        Ok(note_installed(managed, installed))
    }

    /// Undoes a change of a configuration when a later step of its operation has failed.
    fn take_back_later(&self, managed: &Arc<ManagedBox>, previous: Previous) {
        match managed.change.lock_within(STOP_TIMEOUT) {
            Ok(_change) => self.take_back(managed, previous),
            // Another thread starts or stops the box. If it starts again, it has its stored configurations.
            Err(LockTimeout) => {
                managed.inner().installed = previous.installed;
                managed.instance().inspect(|instance| instance.kill());
            }
        }
    }

    /// Reinstalls the previous configuration after a failed change. The caller holds the box's `change` lock.
    fn take_back(&self, managed: &ManagedBox, previous: Previous) {
        let Previous { name: configuration, stored: before, installed } = previous;
        let instance = {
            let mut inner = managed.inner();
            inner.installed = installed;
            inner.instance.clone()
        };
        let Some(instance) = instance else { return };
        let name = in_box(&configuration);
        let taken = match before {
            Some(before) => {
                let files = self.0.store().files(&managed.name, before.id).unwrap_or_default();
                let text = (name, before.text.as_str(), before.source.as_deref());
                self.install_now(managed, &instance, text, &files).map(drop)
            }
            // The box may not have it at all, so errors are ignored.
            None => {
                let _ = instance.call(&Request::Remove { name }, INSTALL_TIMEOUT);
                Ok(())
            }
        };
        if let Err(failure) = taken {
            managed.note(format!(
                "the previous configuration {configuration} could not be restored: {}",
                with_causes(&failure)
            ));
        }
    }

    /// Removes a configuration. The main one can only be swapped.
    pub fn remove_configuration(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
    ) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        if *configuration == ConfigurationName::main() {
            return Err(RequestError::RemoveMain.into());
        }
        self.operate(Action::Change, name, &|| vec![Claim::change(name)], |operation| {
            let _change = lock_for_change(&managed)?;
            let (phase, instance, installed) = {
                let inner = managed.inner();
                if inner.removed {
                    return Err(OperationError::NoBox(name.clone()));
                }
                (inner.phase, inner.instance.clone(), inner.installed.clone())
            };
            if matches!(phase, Phase::Suspended) {
                return Err(state(&managed, phase, "resume it first"));
            }
            let before = self.0.store().configuration(name, configuration)?;
            if before.is_none() {
                return Err(OperationError::NoConfiguration(name.clone(), configuration.clone()));
            }
            operation.add(StoreChange::RemoveConfiguration(name.clone(), configuration.clone()));
            let previous = Previous { name: configuration.clone(), stored: before, installed };
            if let Some(instance) = instance {
                let request = Request::Remove { name: in_box(configuration) };
                let removed = instance.call(&request, INSTALL_TIMEOUT);
                removed.map_err(|error| {
                    self.take_back(&managed, previous.clone());
                    OperationError::call(name, error, INSTALL_TIMEOUT)
                })?;
            }
            let changed = managed.clone();
            operation.undo_by(move |supervisor| supervisor.take_back_later(&changed, previous));
            managed.inner().installed.retain(|installed| installed.name != *configuration);
            let message = format!("configuration {configuration} of box {name} was removed");
            operation.note(EventKind::ConfigurationRemoved, name, message);
            Ok(())
        })
    }
}

/// Records an installed configuration of a box.
fn note_installed(managed: &ManagedBox, installed: Installed) -> ConfigurationStatus {
    let status = ConfigurationStatus {
        name: installed.name.clone(),
        installed: installed.installed,
        swaps: installed.swaps,
        diagnostics: installed.diagnostics.clone(),
    };
    let mut inner = managed.inner();
    match inner.installed.iter_mut().find(|there| there.name == installed.name) {
        Some(there) => *there = installed,
        None => inner.installed.push(installed),
    }
    status
}
