//! Creates and starts boxes, and installs their configurations.

use super::state::Supervisor;
use crate::boxes::{Installed, Instance, ManagedBox, Phase, Share, StartMode, TemplateKey, in_box};
use crate::diagnostics::{diagnostics, refusal, remarks};
use crate::error::OperationError;
use crate::limits::{CALL_TIMEOUT, INSTALL_TIMEOUT};
use crate::store::StoredConfiguration;
use api::{BoxName, CreateBox, Diagnostic, EventKind, File, Time};
use boundary::Request;
use sandbox::{CallError, Snapshot};
use std::sync::Arc;
use std::time::Instant;

/// A stored configuration, with its files.
pub(super) type Stored = (StoredConfiguration, Vec<File>);

impl Supervisor {
    /// Creates and starts a box with its stored configurations. The caller holds the box's `change` lock. On failure the
    /// box does not run, and its phase is unchanged.
    pub(super) fn boot(&self, managed: &Arc<ManagedBox>) -> Result<(), OperationError> {
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        let begin = Instant::now();
        let (definition, before) = {
            let mut inner = managed.inner();
            let before = std::mem::replace(&mut inner.phase, Phase::Booting);
            (inner.definition.clone(), before)
        };
        let booted = self.launch(managed, &definition);
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
                self.0.journal.note(EventKind::BoxStarted, &managed.name, message);
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
    ) -> Result<(Arc<Instance>, Vec<Installed>, &'static str), OperationError> {
        let stored = self.stored(&managed.name)?;
        let kind = self.0.factory.resolve(definition.sandbox)?;
        let mode = match TemplateKey::new(kind, definition, &stored) {
            Some(key) => self.0.templates.begin(key),
            None => StartMode::Install(None),
        };
        let wanted = match mode {
            StartMode::Copy(template) => match self.make(managed, definition, Some(&template.snapshot)) {
                Ok(instance) => {
                    let replies = stored.iter().zip(&template.replies);
                    let installed = replies.map(|((configuration, _), reply)| {
                        installed(configuration, remarks(reply, configuration.source.as_deref()))
                    });
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
        let installed = self.install_all(managed, &instance, &stored)?;
        if let Some(key) = wanted {
            self.start_template(key, definition.clone(), stored);
        }
        Ok((instance, installed, ""))
    }

    fn make(
        &self,
        managed: &Arc<ManagedBox>,
        definition: &CreateBox,
        snapshot: Option<&Snapshot>,
    ) -> Result<Arc<Instance>, OperationError> {
        let made = self.0.factory.make(definition, self.0.fabric.wake_event(), snapshot)?;
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
        self.0.fabric.ask(move |network| network.connect(&name, made.ports))?;
        instance.start()?;
        instance.set_share(Share::of(definition));
        self.0
            .exit_events
            .add(managed, &instance)
            .map_err(|error| OperationError::system("watch a box", error))?;
        Ok(instance)
    }

    /// A box's stored configurations, with their files.
    fn stored(&self, name: &BoxName) -> Result<Vec<Stored>, OperationError> {
        let store = self.0.store();
        let with_files = |configuration: StoredConfiguration| {
            let files = store.files(name, configuration.id)?;
            Ok((configuration, files))
        };
        store.configurations(name)?.into_iter().map(with_files).collect()
    }

    /// Installs these configurations.
    fn install_all(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        stored: &[Stored],
    ) -> Result<Vec<Installed>, OperationError> {
        let mut all = Vec::new();
        for (configuration, files) in stored {
            let diagnostics = self.install_now(
                managed,
                instance,
                (in_box(&configuration.name), &configuration.text, configuration.source.as_deref()),
                files,
            )?;
            all.push(installed(configuration, diagnostics));
        }
        Ok(all)
    }

    /// Sends files to a box and installs a configuration. Returns its warnings.
    pub(super) fn install_now(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        (name, text, source): (&str, &str, Option<&str>),
        files: &[File],
    ) -> Result<Vec<Diagnostic>, OperationError> {
        for file in files {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            instance
                .call(&request, INSTALL_TIMEOUT)
                .map_err(|error| OperationError::call(&managed.name, error, INSTALL_TIMEOUT))?;
        }
        let request = Request::Install { name, configuration: text };
        match instance.call(&request, INSTALL_TIMEOUT) {
            Ok(reply) => Ok(remarks(&reply, source)),
            Err(CallError::Refused(reason)) => {
                Err(OperationError::Refused(vec![refusal(reason.as_str(), source)]))
            }
            Err(CallError::Rejected(found)) => Err(OperationError::Refused(diagnostics(found, source))),
            Err(error) => Err(OperationError::call(&managed.name, error, INSTALL_TIMEOUT)),
        }
    }

    /// Sends a request to a running box.
    pub(super) fn call(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        request: &Request,
    ) -> Result<Vec<u8>, OperationError> {
        instance
            .call(request, CALL_TIMEOUT)
            .map_err(|error| OperationError::call(&managed.name, error, CALL_TIMEOUT))
    }
}

/// Converts a stored configuration to an installed one.
fn installed(configuration: &StoredConfiguration, diagnostics: Vec<Diagnostic>) -> Installed {
    Installed {
        name: configuration.name.clone(),
        installed: configuration.installed,
        swaps: configuration.swaps,
        diagnostics,
    }
}
