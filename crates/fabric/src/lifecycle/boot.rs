//! Creates and starts boxes, and installs their configurations.

use super::attaching::Attaching;
use super::of_service::OfService;
use super::state::Fabric;
use super::writes::RefusedWrites;
use crate::boxes::{ExitStatus, Instance, ManagedBox, Phase, Share, StartMode, TemplateKey, in_box, report};
use crate::diagnostics::{diagnostics, refusal, remarks};
use crate::error::OperationError;
use crate::network::Port;
use boundary::{CrashCause, Request, SpreadRange};
use model::{Attachment, CreateBox, Diagnostic, EventKind, RecordedWrite, Size, Time};
use packet::steering::{DividedRange, Steering};
use protocol::fabric::{Configuration, ConfigurationState, INSTALL_TIMEOUT};
use sandbox::{CallError, Snapshot};
use std::sync::Arc;
use std::time::Instant;

/// How a box is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartSettings {
    /// If the start fails, the box's restart policy decides whether it is tried again.
    pub(crate) restore: bool,
    /// The recorded writes are executed again, whatever the definition says.
    pub(crate) replay: bool,
    /// Boxes that are equal to it are being started as well.
    pub(crate) has_equals: bool,
}

/// A box that was just started.
struct Launched {
    instance: Arc<Instance>,
    installed: Vec<ConfigurationState>,
    refused: RefusedWrites,
    /// How, if not by an installation.
    how: &'static str,
    /// What its ports are attached to.
    attachments: Vec<Attachment>,
}

impl Fabric {
    /// Creates and starts a box with its configurations. Returns what its ports are attached to. The caller holds the box's
    /// `change` lock. On failure the box does not run, and its phase is unchanged.
    pub(super) fn boot(
        &self,
        managed: &Arc<ManagedBox>,
        attaching: &Attaching,
    ) -> Result<Vec<Attachment>, OperationError> {
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        let begin = Instant::now();
        let (definition, configurations, before, kept, lost_own, has_equals) = {
            let mut inner = managed.inner();
            let before = std::mem::replace(&mut inner.phase, Phase::Booting);
            let is_kept = inner.definition.keep_writes || inner.is_replay_ordered;
            let kept = is_kept.then(|| inner.writes.of_clients());
            inner.writes.renew_own_events();
            // The new instance may report such writes before its start has ended.
            let lost_own = inner.writes.lose_all_own();
            let has_equals = std::mem::take(&mut inner.has_equals);
            (inner.definition.clone(), inner.configurations.clone(), before, kept, lost_own, has_equals)
        };
        let writes = kept.as_deref().unwrap_or_default();
        let booted = self.launch(managed, &definition, &configurations, (writes, has_equals), attaching);
        match booted {
            Ok(Launched { instance, installed, refused, how, attachments }) => {
                let time = begin.elapsed();
                let (mut lost, omitted) = {
                    let mut inner = managed.inner();
                    inner.installed = installed;
                    inner.started = Some((Time::now(), Instant::now()));
                    inner.boot = Some(time);
                    inner.phase = Phase::Running;
                    inner.is_replay_ordered = false;
                    match &kept {
                        Some(_) => {
                            refused.forget(&mut inner.writes);
                            (Vec::new(), 0)
                        }
                        None => inner.writes.lose_clients(),
                    }
                };
                lost.extend(lost_own);
                let message =
                    format!("box {} started in {:.1} ms{how}", managed.name, time.as_secs_f64() * 1e3);
                managed.note(&message);
                self.0.note(EventKind::BoxStarted, &managed.name, message);
                self.report_lost(managed, "started", &lost, omitted);
                self.report_refused(managed, &refused);
                // The event of its end was ignored while it was booting. Waking the monitor costs a look at all boxes.
                if instance.has_ended() {
                    self.0.exit_events.look_again(managed, &instance);
                }
                Ok(attachments)
            }
            Err(failure) => {
                // If it crashed, this reports the crash.
                let end = managed.instance().and_then(|instance| self.reap(managed, &instance));
                let mut inner = managed.inner();
                inner.close();
                inner.phase = before;
                inner.writes.restore_own(lost_own);
                Err(match (failure, end) {
                    (
                        OperationError::Gone(_),
                        Some(end @ (ExitStatus::Crashed(_) | ExitStatus::Vanished { .. })),
                    ) => crash_at_start(&end, definition.memory),
                    // It was stopped or killed meanwhile, or something else failed.
                    (failure, _) => failure,
                })
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
        (writes, has_equals): (&[RecordedWrite], bool),
        attaching: &Attaching,
    ) -> Result<Launched, OperationError> {
        let kind = self.0.factory.resolve(definition.sandbox)?;
        // A copy would process packets before the writes.
        let key = writes.is_empty().then(|| TemplateKey::new(kind, definition, configurations)).flatten();
        let mode = match key {
            Some(key) if has_equals => self.0.templates.begin_with_equals(key),
            Some(key) => self.0.templates.begin(key),
            None => StartMode::Install(None),
        };
        let make_template = |key| self.start_template(key, definition.clone(), configurations.to_vec());
        let wanted = match mode {
            // The others wait for it.
            StartMode::Install(Some(key)) if has_equals => {
                make_template(key);
                None
            }
            StartMode::Copy(template) => match self.make(managed, definition, Some(&template.snapshot)) {
                Ok((instance, ports)) => {
                    let attachments = self.connect(managed, ports, attaching)?;
                    let replies = configurations.iter().zip(&template.replies);
                    let installed =
                        replies.map(|(configuration, reply)| installed(configuration, remarks(reply)));
                    return Ok(Launched {
                        instance,
                        installed: installed.collect(),
                        refused: RefusedWrites::default(),
                        how: ", started from a template",
                        attachments,
                    });
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
        let (instance, ports) = self.make(managed, definition, None)?;
        let failed = |error| OperationError::call(&managed.name, error, INSTALL_TIMEOUT);
        instance.number_cores(INSTALL_TIMEOUT).map_err(failed)?;
        let (installed, refused) = self.install_all(managed, &instance, configurations, writes)?;
        // A box whose configuration is refused exchanges no packet. What it has sent by now waits in its rings.
        let attachments = self.connect(managed, ports, attaching)?;
        if instance.core_count() > 1 {
            self.spread(managed, &instance)?;
        }
        wanted.map(make_template);
        Ok(Launched { instance, installed, refused, how: "", attachments })
    }

    /// Spreads packets to a box over its cores: by their addresses, and by the ranges of its translators.
    fn spread(&self, managed: &ManagedBox, instance: &Instance) -> Result<(), OperationError> {
        let failed = |error| OperationError::call(&managed.name, error, INSTALL_TIMEOUT);
        let reply = instance.call(&Request::Ranges, INSTALL_TIMEOUT).map_err(failed)?;
        let ranges = SpreadRange::decode(&reply).map_err(|error| failed(CallError::Reply(error)))?;
        let mut steering = Steering::new(u32::try_from(instance.core_count()).unwrap_or(u32::MAX));
        for range in ranges {
            // The box refused those that overlap; of what it says against its own rules, the first holds.
            steering.divide(match range {
                SpreadRange::Ports(address, first, last) => DividedRange::Ports(address, first, last),
                SpreadRange::Addresses(first, last) => DividedRange::Addresses(first, last),
            });
        }
        let name = managed.name.clone();
        self.0.switches.ask(move |network| network.steer(&name, &steering))
    }

    /// Connects the ports of a box with what they are attached to, which it returns.
    fn connect(
        &self,
        managed: &ManagedBox,
        ports: Vec<Port>,
        attaching: &Attaching,
    ) -> Result<Vec<Attachment>, OperationError> {
        attaching.wait()?;
        let (name, count) = (managed.name.clone(), managed.inner().definition.ports.len());
        self.0.switches.ask(move |network| {
            network.connect(&name, ports);
            network.attachments(&name, count)
        })
    }

    /// Creates and starts a box. Its ports are not connected.
    fn make(
        &self,
        managed: &Arc<ManagedBox>,
        definition: &CreateBox,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Arc<Instance>, Vec<Port>), OperationError> {
        // They cannot be used for a copy.
        let spare = || self.take_spare(self.0.factory.resolve(definition.sandbox).ok()?, definition);
        let prepared = self.take_prepared(managed).filter(|_| snapshot.is_none());
        let prepared = prepared.or_else(|| if snapshot.is_none() { spare() } else { None });
        let is_started = prepared.is_some();
        let made = match prepared {
            Some(made) => made,
            None => self.0.factory.make(definition, self.0.switches.wake_event(), snapshot)?,
        };
        let instance = Arc::new(made.instance);
        let unwanted = {
            let mut inner = managed.inner();
            inner.instance = Some(instance.clone());
            inner.unwanted
        };
        if unwanted {
            instance.discard();
        }
        if !is_started {
            self.0.factory.start(&instance)?;
        }
        instance.set_share(Share::of(definition));
        self.0
            .exit_events
            .add(managed, &instance)
            .map_err(|error| OperationError::system("watch a box", error))?;
        Ok((instance, made.ports))
    }

    /// Installs these configurations with the writes to them.
    fn install_all(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        configurations: &[Arc<Configuration>],
        writes: &[RecordedWrite],
    ) -> Result<(Vec<ConfigurationState>, RefusedWrites), OperationError> {
        let mut refused = RefusedWrites::default();
        let install = |configuration: &Arc<Configuration>| {
            let (warnings, more) = self.install_now(managed, instance, configuration, writes)?;
            refused.0.extend(more.0);
            Ok(installed(configuration, warnings))
        };
        let installed = configurations.iter().map(install).collect::<Result<Vec<_>, OperationError>>()?;
        let is_there =
            |write: &RecordedWrite| installed.iter().any(|installed| installed.name == write.configuration);
        let missing = writes.iter().filter(|write| !is_there(write)).cloned();
        refused.0.extend(missing.map(|write| (write, "there is no such configuration".to_string())));
        Ok((installed, refused))
    }

    /// Sends files to a box and installs a configuration. The writes to it among `writes` are executed before its first
    /// packet. Returns its warnings, and the writes that it refused.
    pub(super) fn install_now(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        configuration: &Configuration,
        writes: &[RecordedWrite],
    ) -> Result<(Vec<Diagnostic>, RefusedWrites), OperationError> {
        let failed = |error| OperationError::call(&managed.name, error, INSTALL_TIMEOUT);
        let writes: Vec<&RecordedWrite> =
            writes.iter().filter(|write| write.configuration == configuration.name).collect();
        let name = in_box(&configuration.name);
        for write in &writes {
            let request = Request::Prepare { name, handler: &write.handler, value: &write.value.0 };
            instance.call(&request, INSTALL_TIMEOUT).map_err(failed)?;
        }
        for file in &configuration.files {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            instance.call(&request, INSTALL_TIMEOUT).map_err(failed)?;
        }
        let of_service = OfService::new(configuration);
        for request in of_service.requests() {
            instance.call(&request, INSTALL_TIMEOUT).map_err(failed)?;
        }
        let request = Request::Install { name, configuration: &configuration.text };
        match instance.call(&request, INSTALL_TIMEOUT) {
            Ok(reply) => {
                let mut refused = RefusedWrites::default();
                if !writes.is_empty() {
                    let reply = instance.call(&Request::Prepared, INSTALL_TIMEOUT).map_err(failed)?;
                    refused = RefusedWrites::decode(&writes, &reply);
                }
                Ok((remarks(&reply), refused))
            }
            Err(CallError::Refused(reason)) => Err(OperationError::Refused(vec![refusal(reason.as_str())])),
            Err(CallError::Rejected(found)) => Err(OperationError::Refused(diagnostics(found))),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The error for a box that crashed while it was started.
fn crash_at_start(end: &ExitStatus, memory: Size) -> OperationError {
    let memory = match end {
        ExitStatus::Crashed(crash) if crash.cause == CrashCause::OutOfMemory => Some(memory),
        _ => None,
    };
    OperationError::CrashedAtStart { report: Box::new(report(end)), memory }
}

/// The state of a configuration that was just installed.
pub(super) fn installed(configuration: &Configuration, diagnostics: Vec<Diagnostic>) -> ConfigurationState {
    ConfigurationState { name: configuration.name.clone(), version: configuration.version, diagnostics }
}
