//! Installs, swaps and removes configurations of boxes.

use super::boxes::refuse_instance;
use super::claims::Claim;
use super::lifecycle::{configuration_of, in_source, lock_for_change, with_source};
use super::managed_box::{Known, ManagedBox};
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::limits::MAX_CONFIGURATIONS;
use crate::store::{Action, StoreChange, StoredConfiguration};
use api::{
    BoxName, ConfigurationName, ConfigurationStatus, ConfigurationText, Diagnostic, EventKind, File, Install,
    RecordedWrite, Time, with_causes,
};
use protocol::fabric::orders;
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
        let files = store.file_names(name, found.id)?;
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
        refuse_instance(&managed)?;
        let mut definition = managed.inner().definition.clone();
        definition.source = request.source.clone();
        self.check_for(&definition, Known::default(), &request.configuration, &request.files)?;
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
        if managed.inner().removed {
            return Err(OperationError::NoBox(name.clone()));
        }
        let (before, others) = {
            let store = self.0.store();
            let others = store.configurations(name)?;
            let others = others.iter().filter(|installed| installed.name != *configuration).count();
            (store.configuration(name, configuration)?, others)
        };
        if others >= MAX_CONFIGURATIONS {
            return Err(OperationError::Limit("configurations of the box", MAX_CONFIGURATIONS));
        }
        let stored = StoredConfiguration {
            id: 0,
            name: configuration.clone(),
            source: request.source.clone(),
            installed: Time::now(),
            swaps: before.as_ref().map_or(0, |before| before.swaps + 1),
            text: request.configuration.clone(),
        };
        operation.stage(name, &stored, &request.files)?;
        let writes = self.writes_to(name, configuration);
        let has_writes = !writes.is_empty();
        let diagnostics = self.install_now(managed, &stored, &request.files, None)?;
        let (swapped, what) = (managed.clone(), configuration.clone());
        operation.undo_by(move |supervisor| supervisor.take_back(&swapped, &what, before, writes));
        if has_writes {
            operation.add(self.reported_writes(name)?);
        }
        let what = if stored.swaps > 0 { "swapped" } else { "installed" };
        let message = format!("configuration {configuration} of box {name} was {what}");
        operation.note(EventKind::ConfigurationInstalled, name, message);
        Ok(ConfigurationStatus {
            name: configuration.clone(),
            installed: stored.installed,
            swaps: stored.swaps,
            diagnostics,
        })
    }

    /// Installs a configuration in the box; if the box does not run, with its next start. `writes` are those that are executed
    /// again; without them, the definition of the box decides. Returns its warnings.
    fn install_now(
        &self,
        managed: &ManagedBox,
        stored: &StoredConfiguration,
        files: &[File],
        writes: Option<Vec<RecordedWrite>>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let configuration = configuration_of(managed, stored, files);
        let name = managed.name.clone();
        let source = stored.source.as_deref();
        match self.0.fabrics.ask(orders::Install { name, configuration, writes }) {
            Ok(found) => Ok(with_source(found, source)),
            Err(failure) => Err(in_source(failure, source)),
        }
    }

    /// Reinstalls the previous configuration with the writes to it when a later step of the operation has failed.
    pub(super) fn take_back(
        &self,
        managed: &ManagedBox,
        configuration: &ConfigurationName,
        before: Option<StoredConfiguration>,
        writes: Vec<RecordedWrite>,
    ) {
        let name = &managed.name;
        let taken = match before {
            Some(before) => {
                let files = self.0.store().files(name, before.id).unwrap_or_default();
                self.install_now(managed, &before, &files, Some(writes)).map(drop)
            }
            // The box may not have it at all, so errors are ignored.
            None => {
                let (name, configuration) = (name.clone(), configuration.clone());
                let _ = self.0.fabrics.ask(orders::RemoveConfiguration { name, configuration });
                Ok(())
            }
        };
        self.store_writes(name);
        if let Err(failure) = taken {
            let message = format!(
                "the previous configuration {configuration} of box {name} could not be restored: {}",
                with_causes(&failure)
            );
            self.0.journal.note(EventKind::ConfigurationRefused, name, message);
        }
    }

    /// Removes a configuration. The main one can only be swapped.
    pub fn remove_configuration(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
    ) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        refuse_instance(&managed)?;
        if *configuration == ConfigurationName::main() {
            return Err(RequestError::RemoveMain.into());
        }
        self.operate(Action::Change, name, &|| vec![Claim::change(name)], |operation| {
            let _change = lock_for_change(&managed)?;
            if managed.inner().removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            let before = self.0.store().configuration(name, configuration)?;
            if before.is_none() {
                return Err(OperationError::NoConfiguration(name.clone(), configuration.clone()));
            }
            operation.add(StoreChange::RemoveConfiguration(name.clone(), configuration.clone()));
            let order =
                orders::RemoveConfiguration { name: name.clone(), configuration: configuration.clone() };
            let writes = self.writes_to(name, configuration);
            let has_writes = !writes.is_empty();
            self.0.fabrics.ask(order)?;
            let (changed, what) = (managed.clone(), configuration.clone());
            operation.undo_by(move |supervisor| supervisor.take_back(&changed, &what, before, writes));
            if has_writes {
                operation.add(self.reported_writes(name)?);
            }
            let message = format!("configuration {configuration} of box {name} was removed");
            operation.note(EventKind::ConfigurationRemoved, name, message);
            Ok(())
        })
    }
}
