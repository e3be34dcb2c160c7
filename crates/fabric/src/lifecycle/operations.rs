//! What the daemon can do with a box.

use super::account::ended_row;
use super::attaching::Attaching;
use super::boot::{StartSettings, installed};
use super::state::Fabric;
use crate::boxes::{Instance, ManagedBox, Phase, Share, in_box};
use crate::error::OperationError;
use crate::fair_lock::{FairGuard, LockTimeout};
use crate::limits::{CALL_TIMEOUT, CHANGE_TIMEOUT, MAX_BOXES, STOP_TIMEOUT};
use crate::network::AttachRequest;
use boundary::Request;
use model::{
    BoxName, ConfigurationName, CreateBox, Diagnostic, EventKind, ImageDigest, MAX_IMAGE_BYTES, PortRequest,
    RecordedWrite, Subject, with_causes,
};
use protocol::fabric::{Asked, Configuration, INSTALL_TIMEOUT, Started};
use protocol::memory_file;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use switch::RingBooks;

/// The request to attach a port of a box with this number of cores.
pub(super) fn attach(port: &PortRequest, cores: usize) -> AttachRequest {
    let (to, limits) = (port.attach.clone(), port.limits.clone());
    AttachRequest { to, mac: port.mac.unwrap_or_default(), limits, cores }
}

impl Fabric {
    /// Loads an image from a sealed memory file of this length. Without a file it must be there.
    pub(crate) fn load_image(
        &self,
        image: ImageDigest,
        bytes: u64,
        file: Option<OwnedFd>,
    ) -> Result<(), OperationError> {
        let Some(file) = file else { return self.0.factory.check_image(&image) };
        let contents = memory_file::read(file, bytes, MAX_IMAGE_BYTES);
        let contents = contents.map_err(OperationError::ImageFile)?;
        self.0.factory.load_image(image, &contents)
    }

    /// Forgets an image, unless a box names it.
    pub(crate) fn forget_image(&self, image: &ImageDigest) {
        // A box that is defined meanwhile names it before this, or finds that it is missing.
        let boxes = self.0.boxes();
        if !boxes.values().any(|managed| managed.inner().definition.image_digest() == Some(image)) {
            self.0.factory.forget_image(image);
            self.0.templates.forget_image(image);
        }
    }

    /// Defines a box, which does not run yet, and attaches its ports. On failure the box does not exist.
    pub(crate) fn define_box(&self, definition: CreateBox, stopped: bool) -> Result<(), OperationError> {
        self.define_boxes(vec![(definition, stopped)]).into_iter().collect()
    }

    /// Defines boxes as by [`define_box`](Self::define_box), one after the other. Returns the result for each.
    pub(crate) fn define_boxes(
        &self,
        definitions: Vec<(CreateBox, bool)>,
    ) -> Vec<Result<(), OperationError>> {
        let requests: Vec<_> = definitions
            .iter()
            .map(|(definition, _)| {
                let attach = |port| attach(port, definition.cores.number());
                let ports: Vec<AttachRequest> = definition.ports.iter().map(attach).collect();
                (definition.name.clone(), definition.owner.clone(), ports)
            })
            .collect();
        let reserve = |(definition, stopped)| self.reserve_box(definition, stopped);
        let mut results: Vec<_> = definitions.into_iter().map(reserve).collect();
        let is_reserved: Vec<bool> = results.iter().map(Result::is_ok).collect();
        let names: Vec<BoxName> = requests.iter().map(|(name, ..)| name.clone()).collect();
        let attached = self.0.switches.ask(move |network| {
            let reserved = requests.iter().zip(is_reserved).filter(|(_, is_reserved)| *is_reserved);
            let attach = |((name, owner, ports), _): (&(_, _, Vec<_>), _)| network.attach(name, owner, ports);
            reserved.map(attach).collect::<Vec<_>>()
        });
        let mut attached = attached.map(Vec::into_iter);
        for (name, result) in names.iter().zip(&mut results).filter(|(_, result)| result.is_ok()) {
            *result = match &mut attached {
                Ok(attached) => attached.next().unwrap_or(Err(OperationError::Ending)),
                Err(_) => Err(OperationError::Ending),
            };
            if result.is_err() {
                self.0.boxes().remove(name);
            }
        }
        results
    }

    /// Adds a box without ports.
    pub(super) fn reserve_box(&self, mut definition: CreateBox, stopped: bool) -> Result<(), OperationError> {
        definition.configuration = String::new();
        definition.files = Vec::new();
        let name = definition.name.clone();
        let mut boxes = self.0.boxes();
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        if boxes.contains_key(&name) {
            return Err(OperationError::Exists(Subject::from(&name)));
        }
        // Each core is a sandbox.
        let sandboxes = |managed: &Arc<ManagedBox>| managed.inner().definition.cores.number();
        let present: usize = boxes.values().map(sandboxes).sum();
        if present + definition.cores.number() > MAX_BOXES {
            return Err(OperationError::Limit("boxes", MAX_BOXES));
        }
        self.0.factory.image(&definition)?;
        let managed = ManagedBox::new(definition);
        if stopped {
            managed.inner().phase = Phase::Stopped;
        }
        boxes.insert(name, Arc::new(managed));
        Ok(())
    }

    /// Kills a box if it runs, and forgets it.
    pub(crate) fn forget_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        if std::mem::replace(&mut managed.inner().removed, true) {
            // Another thread is forgetting it.
            return Err(OperationError::NoBox(name.clone()));
        }
        self.bring_down(&managed, false);
        let (asked, past) = (name.clone(), managed.inner().past_account());
        let ended = move |rings: &RingBooks| ended_row(&asked, &past, rings);
        let asked = name.clone();
        // If the switches' thread has ended, nothing is attached.
        let _ = self.0.switches.ask(move |network| network.detach_removed(&asked, ended));
        self.0.boxes().remove(name);
        Ok(())
    }

    /// Starts a box that does not run, with these configurations, and with the writes to them if the definition or the
    /// settings say so.
    pub(crate) fn start_box(
        &self,
        name: &BoxName,
        configurations: Vec<Configuration>,
        writes: Vec<RecordedWrite>,
        how: StartSettings,
    ) -> Result<Started, OperationError> {
        self.start_attached(name, configurations, writes, how, &Attaching::default())
    }

    /// Starts a box whose ports may still be being attached.
    pub(super) fn start_attached(
        &self,
        name: &BoxName,
        configurations: Vec<Configuration>,
        writes: Vec<RecordedWrite>,
        how: StartSettings,
        attaching: &Attaching,
    ) -> Result<Started, OperationError> {
        let managed = self.0.managed_box(name)?;
        let change = lock_for_change(&managed)?;
        {
            let mut inner = managed.inner();
            if inner.removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            match inner.phase {
                Phase::Suspended => return Err(state(&managed, inner.phase, "resume, stop or restart it")),
                Phase::Running | Phase::Booting => {
                    return Err(state(&managed, inner.phase, "stop or restart it"));
                }
                _ => {}
            }
            inner.unwanted = false;
            inner.crashes = 0;
            inner.configurations = configurations.into_iter().map(Arc::new).collect();
            inner.writes.adopt(writes);
            inner.is_replay_ordered = how.replay;
            inner.has_equals = how.has_equals;
        }
        let booted = self.boot(&managed, attaching);
        drop(change);
        let attachments = booted.inspect_err(|failure| {
            if how.restore {
                let message = format!("box {} could not be started: {}", managed.name, with_causes(failure));
                managed.note(&message);
                self.0.note(EventKind::BoxCrashed, &managed.name, message);
                self.failed_to_start(&managed);
            }
        })?;
        // Who has many boxes restored asks for the states of all of them.
        let runtime = (!how.restore).then(|| self.runtime_with_places(&managed, Asked::All, attachments));
        let inner = managed.inner();
        let boot = inner.boot.unwrap_or_default();
        Ok(Started { boot, configurations: inner.installed.clone(), runtime: runtime.map(Box::new) })
    }

    /// Stops a box, even if it is being started or waits to restart.
    pub(crate) fn stop_box(&self, name: &BoxName, graceful: bool) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let phase = managed.inner().phase;
        if matches!(phase, Phase::Stopped | Phase::Created | Phase::Crashed) {
            return Err(state(&managed, phase, "there is nothing to stop"));
        }
        self.bring_down(&managed, graceful);
        Ok(())
    }

    /// Ends a box on request, in any phase. Its phase is then stopped.
    fn bring_down(&self, managed: &Arc<ManagedBox>, in_order: bool) {
        let (instance, booting) = {
            let mut inner = managed.inner();
            inner.unwanted = true;
            (inner.instance.clone(), inner.phase == Phase::Booting)
        };
        // A thread that starts the box, or waits for its reply, notices its end at once and releases it.
        if let Some(instance) = instance.filter(|_| booting || !in_order) {
            instance.discard();
        }
        let _change = managed.change.lock_within(STOP_TIMEOUT).unwrap_or_else(|LockTimeout| {
            // The box is being changed and does not reply: in an endless loop it never would.
            if let Some(instance) = managed.instance() {
                instance.discard();
            }
            managed.change.lock()
        });
        let instance = managed.instance();
        if let Some(instance) = &instance {
            if in_order {
                // The last chance to read its drop counters.
                if let Some(stats) = instance.stats() {
                    managed.inner().update_account(&stats);
                }
                instance.stop(STOP_TIMEOUT);
            } else {
                instance.discard();
            }
            if self.reap(managed, instance).is_none() {
                self.wait_until_recorded(managed, instance);
            }
        }
        let mut inner = managed.inner();
        inner.close();
        let (prepared, before) = (inner.prepared.take(), std::mem::replace(&mut inner.phase, Phase::Stopped));
        drop(inner);
        drop(prepared);
        // One that did not run, or never started, is not stopped now.
        if !matches!(before, Phase::Created | Phase::Stopped | Phase::Crashed) {
            let message = format!("box {} was stopped", managed.name);
            self.0.note(EventKind::BoxStopped, &managed.name, message);
        }
    }

    /// Suspends a box.
    pub(crate) fn suspend_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        match present(&managed) {
            (Phase::Running, Some(instance)) => instance.suspend(),
            (phase, _) => return Err(state(&managed, phase, "only a running box can be suspended")),
        }
        managed.inner().phase = Phase::Suspended;
        self.0.note(EventKind::BoxSuspended, name, format!("box {name} was suspended"));
        Ok(())
    }

    /// Resumes a suspended box.
    pub(crate) fn resume_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        match present(&managed) {
            (Phase::Suspended, Some(instance)) => instance.resume(),
            (phase, _) => return Err(state(&managed, phase, "only a suspended box can be resumed")),
        }
        managed.inner().phase = Phase::Running;
        self.0.note(EventKind::BoxResumed, name, format!("box {name} was resumed"));
        Ok(())
    }

    /// Kills a box as if it had crashed: its restart policy decides what follows.
    pub(crate) fn kill_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let (phase, instance) = present(&managed);
        let Some(instance) = instance else {
            return Err(state(&managed, phase, "there is nothing to kill"));
        };
        instance.kill();
        // If it is being started, the starting thread handles its end.
        self.ended(vec![(managed, instance)]);
        Ok(())
    }

    /// Attaches a box's port if it is attached to nothing. Returns whether it was.
    pub(crate) fn reattach_box(
        &self,
        name: BoxName,
        number: u8,
        port: &PortRequest,
    ) -> Result<bool, OperationError> {
        let managed = self.0.managed_box(&name)?;
        let cores = managed.inner().definition.cores.number();
        let request = attach(port, cores);
        let attached = self.0.switches.ask(move |network| network.reattach(&name, number, &request))??;
        if attached {
            managed.note(format!("port {number} is attached to {}, which exists again", port.attach));
        }
        Ok(attached)
    }

    /// Changes settings of a box that may be running.
    pub(crate) fn alter_box(&self, wanted: &CreateBox) -> Result<(), OperationError> {
        let managed = self.0.managed_box(&wanted.name)?;
        managed.inner().definition =
            CreateBox { configuration: String::new(), files: Vec::new(), ..wanted.clone() };
        if let Some(instance) = managed.instance() {
            instance.set_share(Share::of(wanted));
        }
        Ok(())
    }

    /// Installs a configuration, or swaps the one of the same name. Returns its warnings. A box that does not run gets it
    /// when it starts. `writes` are those that are executed again; without them, the definition decides.
    pub(crate) fn install(
        &self,
        name: &BoxName,
        configuration: Configuration,
        writes: Option<Vec<RecordedWrite>>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        let kept = {
            let inner = managed.inner();
            let is_kept = inner.definition.keep_writes || inner.instance.is_none();
            let recorded = || if is_kept { inner.writes.of(&configuration.name) } else { Vec::new() };
            let mut kept = writes.clone().unwrap_or_else(recorded);
            kept.retain(|write| !write.is_own());
            kept
        };
        let (warnings, refused) = match present(&managed) {
            (Phase::Suspended, _) => return Err(state(&managed, Phase::Suspended, "resume it first")),
            (_, Some(instance)) => self
                .install_now(&managed, &instance, &configuration, &kept)
                .inspect_err(|_| self.take_back(&managed, &instance, &configuration.name))?,
            // It is installed at the next start.
            (_, None) => Default::default(),
        };
        let gone = {
            let mut inner = managed.inner();
            inner.writes.renew_own_events();
            inner.writes.replace(&configuration.name, &kept)
        };
        refused.forget(&mut managed.inner().writes);
        if writes.is_none() {
            self.report_lost(&managed, "given a new configuration", &gone, 0);
        }
        self.report_refused(&managed, &refused);
        let state = installed(&configuration, warnings.clone());
        let mut inner = managed.inner();
        match inner.installed.iter_mut().find(|there| there.name == state.name) {
            Some(there) => *there = state,
            None => inner.installed.push(state),
        }
        let configuration = Arc::new(configuration);
        match inner.configurations.iter_mut().find(|there| there.name == configuration.name) {
            Some(there) => *there = configuration,
            None => inner.configurations.push(configuration),
        }
        Ok(warnings)
    }

    /// Replaces the text of a configuration by one that says what the box does already, and the writes to it by those that
    /// remain. The box is not touched.
    pub(crate) fn redefine(
        &self,
        name: &BoxName,
        configuration: Configuration,
        writes: &[RecordedWrite],
    ) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        let mut inner = managed.inner();
        inner.writes.redefine(&configuration.name, writes);
        if let Some(there) = inner.installed.iter_mut().find(|there| there.name == configuration.name) {
            there.version = configuration.version;
        }
        if let Some(there) = inner.configurations.iter_mut().find(|there| there.name == configuration.name) {
            *there = Arc::new(configuration);
        }
        Ok(())
    }

    /// Reinstalls the previous configuration in the same instance after a failed change.
    fn take_back(&self, managed: &ManagedBox, instance: &Instance, configuration: &ConfigurationName) {
        let (before, writes) = {
            let inner = managed.inner();
            let before = inner.configurations.iter().find(|there| there.name == *configuration).cloned();
            (before, inner.writes.of(configuration))
        };
        match before {
            Some(before) => match self.install_now(managed, instance, &before, &writes) {
                Ok((_, refused)) => {
                    refused.forget(&mut managed.inner().writes);
                    self.report_refused(managed, &refused);
                }
                Err(failure) => managed.note(format!(
                    "the previous configuration {configuration} could not be restored: {}",
                    with_causes(&failure)
                )),
            },
            // The box may not have it at all, so errors are ignored.
            None => {
                let request = Request::Remove { name: in_box(configuration) };
                let _ = instance.call(&request, INSTALL_TIMEOUT);
            }
        }
    }

    /// Removes a configuration from a running box.
    pub(crate) fn remove_configuration(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
    ) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        let (phase, instance) = present(&managed);
        if phase == Phase::Suspended {
            return Err(state(&managed, phase, "resume it first"));
        }
        if let Some(instance) = instance {
            let request = Request::Remove { name: in_box(configuration) };
            instance.call(&request, INSTALL_TIMEOUT).map_err(|error| {
                self.take_back(&managed, &instance, configuration);
                OperationError::call(name, error, INSTALL_TIMEOUT)
            })?;
        }
        let mut inner = managed.inner();
        inner.installed.retain(|there| there.name != *configuration);
        inner.configurations.retain(|there| there.name != *configuration);
        inner.writes.redefine(configuration, &[]);
        Ok(())
    }

    /// Reads a handler of a running box.
    pub(crate) fn read_handler(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
        (handler, argument): (&str, &[u8]),
        timeout: Duration,
    ) -> Result<Vec<u8>, OperationError> {
        let request = Request::Read { name: in_box(configuration), handler, argument };
        self.call(name, &request, timeout.min(CALL_TIMEOUT))
    }

    /// Sends a request to a running box.
    fn call(&self, name: &BoxName, request: &Request, timeout: Duration) -> Result<Vec<u8>, OperationError> {
        let managed = self.0.managed_box(name)?;
        match present(&managed) {
            (Phase::Running, Some(instance)) => {
                instance.call(request, timeout).map_err(|error| OperationError::call(name, error, timeout))
            }
            (phase, _) => Err(state(&managed, phase, "only a running box has handlers")),
        }
    }
}

/// Waits, up to a timeout, until no other thread starts, stops or changes the box.
fn lock_for_change(managed: &ManagedBox) -> Result<FairGuard<'_, ()>, OperationError> {
    managed.change.lock_within(CHANGE_TIMEOUT).map_err(|LockTimeout| OperationError::State {
        name: managed.name.clone(),
        state: "is being changed by another request",
        hint: "try again later, or stop it if it is in an endless loop",
    })
}

/// A box's phase and its instance, read together.
fn present(managed: &ManagedBox) -> (Phase, Option<Arc<Instance>>) {
    let inner = managed.inner();
    (inner.phase, inner.instance.clone())
}

/// The error for a box in the wrong state.
fn state(managed: &ManagedBox, phase: Phase, hint: &'static str) -> OperationError {
    OperationError::State { name: managed.name.clone(), state: phase.words(), hint }
}
