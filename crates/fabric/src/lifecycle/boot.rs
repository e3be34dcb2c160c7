//! Creates and starts boxes, and installs their configurations.

use super::state::Fabric;
use crate::boxes::{Instance, ManagedBox, Phase, Share, StartMode, TemplateKey, in_box};
use crate::diagnostics::{diagnostics, refusal, remarks};
use crate::error::OperationError;
use crate::limits::INSTALL_TIMEOUT;
use boundary::Request;
use model::{CreateBox, Diagnostic, EventKind, Time};
use protocol::fabric::{Configuration, ConfigurationState};
use sandbox::{CallError, Snapshot};
use std::sync::Arc;
use std::time::Instant;

impl Fabric {
    /// Creates and starts a box with its configurations. The caller holds the box's `change` lock. On failure the
    /// box does not run, and its phase is unchanged.
    pub(super) fn boot(&self, managed: &Arc<ManagedBox>) -> Result<(), OperationError> {
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        let begin = Instant::now();
        let (definition, configurations, before) = {
            let mut inner = managed.inner();
            let before = std::mem::replace(&mut inner.phase, Phase::Booting);
            (inner.definition.clone(), inner.configurations.clone(), before)
        };
        let booted = self.launch(managed, &definition, &configurations);
        match booted {
            Ok((instance, installed, how)) => {
                let time = begin.elapsed();
                {
                    let mut inner = managed.inner();
                    inner.installed = installed;
                    inner.started = Some((Time::now(), Instant::now()));
                    inner.boot = Some(time);
                    inner.phase = Phase::Running;
                }
                let message =
                    format!("box {} started in {:.1} ms{how}", managed.name, time.as_secs_f64() * 1e3);
                managed.note(&message);
                self.0.note(EventKind::BoxStarted, &managed.name, message);
                // Events of its end were ignored while it was booting, so check now.
                self.0.exit_events.look_again(managed, &instance);
                Ok(())
            }
            Err(failure) => {
                let instance = managed.instance();
                if let Some(instance) = &instance {
                    // If it crashed, this reports the crash.
                    self.reap(managed, instance);
                }
                let mut inner = managed.inner();
                inner.close();
                inner.phase = before;
                Err(failure)
            }
        }
    }

    /// Creates a box and installs its configurations, or copies one that has them installed. The text says if it is a
    /// copy.
    fn launch(
        &self,
        managed: &Arc<ManagedBox>,
        definition: &CreateBox,
        configurations: &[Arc<Configuration>],
    ) -> Result<(Arc<Instance>, Vec<ConfigurationState>, &'static str), OperationError> {
        let kind = self.0.factory.resolve(definition.sandbox)?;
        let mode = match TemplateKey::new(kind, definition, configurations) {
            Some(key) => self.0.templates.begin(key),
            None => StartMode::Install(None),
        };
        let wanted = match mode {
            StartMode::Copy(template) => match self.make(managed, definition, Some(&template.snapshot)) {
                Ok(instance) => {
                    let replies = configurations.iter().zip(&template.replies);
                    let installed =
                        replies.map(|(configuration, reply)| installed(configuration, remarks(reply)));
                    return Ok((instance, installed.collect(), ", started from a template"));
                }
                // The box was stopped meanwhile, or it was created but failed to start: a fresh installation would not
                // help.
                Err(failure) if managed.inner().unwanted || managed.instance().is_some() => {
                    return Err(failure);
                }
                Err(_) => {
                    self.0.templates.give_up(&template);
                    None
                }
            },
            StartMode::Install(wanted) => wanted,
        };
        let instance = self.make(managed, definition, None)?;
        let installed = self.install_all(managed, &instance, configurations)?;
        if let Some(key) = wanted {
            self.start_template(key, definition.clone(), configurations.to_vec());
        }
        Ok((instance, installed, ""))
    }

    fn make(
        &self,
        managed: &Arc<ManagedBox>,
        definition: &CreateBox,
        snapshot: Option<&Snapshot>,
    ) -> Result<Arc<Instance>, OperationError> {
        let made = self.0.factory.make(definition, self.0.switches.wake_event(), snapshot)?;
        let instance = Arc::new(made.instance);
        let unwanted = {
            let mut inner = managed.inner();
            inner.instance = Some(instance.clone());
            inner.unwanted
        };
        if unwanted {
            instance.discard();
        }
        let name = managed.name.clone();
        self.0.switches.ask(move |network| network.connect(&name, made.ports))?;
        instance.start()?;
        instance.set_share(Share::of(definition));
        self.0
            .exit_events
            .add(managed, &instance)
            .map_err(|error| OperationError::system("watch a box", error))?;
        Ok(instance)
    }

    /// Installs these configurations.
    fn install_all(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        configurations: &[Arc<Configuration>],
    ) -> Result<Vec<ConfigurationState>, OperationError> {
        let install = |configuration: &Arc<Configuration>| {
            Ok(installed(configuration, self.install_now(managed, instance, configuration)?))
        };
        configurations.iter().map(install).collect()
    }

    /// Sends files to a box and installs a configuration. Returns its warnings.
    pub(super) fn install_now(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        configuration: &Configuration,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        for file in &configuration.files {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            instance
                .call(&request, INSTALL_TIMEOUT)
                .map_err(|error| OperationError::call(&managed.name, error, INSTALL_TIMEOUT))?;
        }
        let request =
            Request::Install { name: in_box(&configuration.name), configuration: &configuration.text };
        match instance.call(&request, INSTALL_TIMEOUT) {
            Ok(reply) => Ok(remarks(&reply)),
            Err(CallError::Refused(reason)) => Err(OperationError::Refused(vec![refusal(reason.as_str())])),
            Err(CallError::Rejected(found)) => Err(OperationError::Refused(diagnostics(found))),
            Err(error) => Err(OperationError::call(&managed.name, error, INSTALL_TIMEOUT)),
        }
    }
}

/// The state of a configuration that was just installed.
pub(super) fn installed(configuration: &Configuration, diagnostics: Vec<Diagnostic>) -> ConfigurationState {
    ConfigurationState { name: configuration.name.clone(), version: configuration.version, diagnostics }
}
