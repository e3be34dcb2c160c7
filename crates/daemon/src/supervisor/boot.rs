//! How a box is made, started, and given its configurations.

use super::core::Supervisor;
use crate::boxes::{Installed, Instance, Member, Phase, Share, diagnostics, in_box, refusal};
use crate::error::Failure;
use crate::limits::{CALL_TIME, INSTALL_TIME};
use api::{Diagnostic, EventKind, File, Time};
use boundary::Request;
use sandbox::ControlError;
use std::sync::Arc;
use std::time::Instant;

impl Supervisor {
    /// Makes and starts a box with the configurations that the store has for it. The caller holds `busy`. If it fails the
    /// box does not run, and its phase is the one before.
    pub(super) fn boot(&self, member: &Arc<Member>) -> Result<(), Failure> {
        if self.0.is_ending() {
            return Err(Failure::Ending);
        }
        let begin = Instant::now();
        let (definition, before) = {
            let mut inner = member.inner();
            let before = std::mem::replace(&mut inner.phase, Phase::Booting);
            (inner.definition.clone(), before)
        };
        let booted = self.make(member, &definition).and_then(|instance| {
            let installed = self.furnish(member, &instance);
            installed.map(|installed| (instance, installed))
        });
        match booted {
            Ok((instance, installed)) => {
                let time = begin.elapsed();
                {
                    let mut inner = member.inner();
                    inner.installed = installed;
                    inner.started = Some((Time::now(), Instant::now()));
                    inner.boot = Some(time);
                    inner.phase = Phase::Running;
                }
                let message = format!("box {} runs after {:.1} ms", member.name, time.as_secs_f64() * 1e3);
                member.note(&message);
                self.0.journal.note(EventKind::BoxStarted, format!("box/{}", member.name), message);
                // Its end may have been seen while it was not to be dealt with yet.
                self.0.watch.look_again(member, &instance);
                Ok(())
            }
            Err(failure) => {
                let instance = member.instance();
                if let Some(instance) = &instance {
                    // It may have crashed, which is to be told.
                    self.bury(member, instance);
                }
                let mut inner = member.inner();
                inner.close();
                inner.phase = before;
                Err(failure)
            }
        }
    }

    fn make(&self, member: &Arc<Member>, definition: &api::CreateBox) -> Result<Arc<Instance>, Failure> {
        let made = self.0.forge.make(definition, self.0.fabric.bell())?;
        let instance = Arc::new(made.instance);
        let unwanted = {
            let mut inner = member.inner();
            inner.instance = Some(instance.clone());
            inner.unwanted
        };
        if unwanted {
            instance.end_for_good();
        }
        let name = member.name.clone();
        self.0.fabric.ask(move |network| network.plug(&name, made.ports))?;
        instance.start()?;
        instance.set_share(Share::of(definition));
        self.0.watch.add(member, &instance).map_err(|error| Failure::System("watch a box", error))?;
        Ok(instance)
    }

    /// Installs all configurations that the store has.
    fn furnish(&self, member: &Member, instance: &Instance) -> Result<Vec<Installed>, Failure> {
        let stored = {
            let store = self.0.store();
            let configurations = store.configurations(&member.name)?;
            let with_files = |configuration: crate::store::StoredConfiguration| {
                let files = store.files(configuration.id)?;
                Ok::<_, Failure>((configuration, files))
            };
            configurations.into_iter().map(with_files).collect::<Result<Vec<_>, Failure>>()?
        };
        let mut installed = Vec::new();
        for (configuration, files) in stored {
            let diagnostics = self.install_now(
                member,
                instance,
                (in_box(&configuration.name), &configuration.text, configuration.source.as_deref()),
                &files,
            )?;
            installed.push(Installed {
                name: configuration.name,
                installed: configuration.installed,
                swaps: configuration.swaps,
                diagnostics,
            });
        }
        Ok(installed)
    }

    /// Ships files to a box and installs a configuration in it; warnings.
    pub(super) fn install_now(
        &self,
        member: &Member,
        instance: &Instance,
        (name, text, source): (&str, &str, Option<&str>),
        files: &[File],
    ) -> Result<Vec<Diagnostic>, Failure> {
        for file in files {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            instance
                .call(&request, INSTALL_TIME)
                .map_err(|error| Failure::call(&member.name, error, INSTALL_TIME))?;
        }
        let request = Request::Install { name, configuration: text };
        match instance.call(&request, INSTALL_TIME) {
            Ok(reply) => Ok(diagnostics(&reply, source)),
            Err(ControlError::Refused(reason)) => Err(Failure::Refused(vec![refusal(&reason, source)])),
            Err(error) => Err(Failure::call(&member.name, error, INSTALL_TIME)),
        }
    }

    /// Asks a box that runs.
    pub(super) fn call(
        &self,
        member: &Member,
        instance: &Instance,
        request: &Request,
    ) -> Result<Vec<u8>, Failure> {
        instance.call(request, CALL_TIME).map_err(|error| Failure::call(&member.name, error, CALL_TIME))
    }
}
