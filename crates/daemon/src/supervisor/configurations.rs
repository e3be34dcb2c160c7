//! Installs, swaps and removes configurations of boxes.

use super::lifecycle::{lock_for_change, state};
use super::state::Supervisor;
use crate::boxes::{Installed, Instance, ManagedBox, Phase, in_box};
use crate::error::{OperationError, RequestError};
use crate::limits::{INSTALL_TIMEOUT, MAX_CONFIGURATIONS};
use crate::store::StoredConfiguration;
use api::{
    BoxName, ConfigurationName, ConfigurationStatus, ConfigurationText, EventKind, Install, Time, with_causes,
};
use boundary::Request;
use std::sync::Arc;

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
        let files = store.files(found.id)?.into_iter().map(|file| file.name).collect();
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
        match &result {
            Ok(status) => {
                let what = if status.swaps > 0 { "swapped" } else { "installed" };
                let message = format!("configuration {configuration} of box {name} was {what}");
                self.0.journal.note(EventKind::ConfigurationInstalled, name, message);
            }
            Err(failure @ OperationError::Refused(_)) => {
                let message =
                    format!("configuration {configuration} of box {name}: {}", with_causes(failure));
                self.0.journal.note(EventKind::ConfigurationRefused, name, message);
            }
            Err(_) => {}
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
        let _change = lock_for_change(&managed)?;
        let (phase, instance) = {
            let inner = managed.inner();
            if inner.removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            let others = inner.installed.iter().filter(|installed| installed.name != *configuration).count();
            if others >= MAX_CONFIGURATIONS {
                return Err(OperationError::Limit("configurations of the box", MAX_CONFIGURATIONS));
            }
            (inner.phase, inner.instance.clone())
        };
        if matches!(phase, Phase::Suspended) {
            return Err(state(&managed, phase, "resume it first"));
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
        let id = self.0.store().stage(name, &stored, &request.files)?;
        let swapped = match &instance {
            Some(instance) => self.install_now(
                &managed,
                instance,
                (in_box(configuration), &stored.text, stored.source.as_deref()),
                &request.files,
            ),
            None => Ok(Vec::new()),
        };
        let activated = swapped.and_then(|found| {
            self.0.store().activate(name, configuration, id)?;
            Ok(found)
        });
        match activated {
            Ok(diagnostics) => {
                let installed = Installed {
                    name: configuration.clone(),
                    installed: stored.installed,
                    swaps: stored.swaps,
                    diagnostics,
                };
                Ok(note_installed(&managed, installed))
            }
            Err(failure) => {
                // If the row cannot be removed now, the next opening of the store removes it.
                let _ = self.0.store().unstage(id);
                if let Some(instance) = &instance {
                    self.take_back(&managed, instance, configuration, before);
                }
                Err(failure)
            }
        }
    }

    /// Reinstalls the previous configuration after a failed installation.
    fn take_back(
        &self,
        managed: &ManagedBox,
        instance: &Arc<Instance>,
        configuration: &ConfigurationName,
        before: Option<StoredConfiguration>,
    ) {
        let name = in_box(configuration);
        let taken = match before {
            Some(before) => {
                let files = self.0.store().files(before.id).unwrap_or_default();
                let text = (name, before.text.as_str(), before.source.as_deref());
                self.install_now(managed, instance, text, &files).map(drop)
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
        let _change = lock_for_change(&managed)?;
        let (phase, instance) = {
            let inner = managed.inner();
            (inner.phase, inner.instance.clone())
        };
        if matches!(phase, Phase::Suspended) {
            return Err(state(&managed, phase, "resume it first"));
        }
        if self.0.store().configuration(name, configuration)?.is_none() {
            return Err(OperationError::NoConfiguration(name.clone(), configuration.clone()));
        }
        self.0.store().remove_configuration(name, configuration)?;
        if let Some(instance) = instance {
            let request = Request::Remove { name: in_box(configuration) };
            instance
                .call(&request, INSTALL_TIMEOUT)
                .map_err(|error| OperationError::call(name, error, INSTALL_TIMEOUT))?;
        }
        managed.inner().installed.retain(|installed| installed.name != *configuration);
        let message = format!("configuration {configuration} of box {name} was removed");
        self.0.journal.note(EventKind::ConfigurationRemoved, name, message);
        Ok(())
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
