//! Starts, stops, suspends and kills boxes.

use super::claims::{Claim, ClaimGuard};
use super::managed_box::ManagedBox;
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::limits::CHANGE_TIMEOUT;
use crate::store::{Action, Interrupted, StoreChange, StoredConfiguration};
use api::{BoxName, BoxStatus, Diagnostic, File, RecordedWrite, Subject};
use parking_lot::MutexGuard;
use protocol::fabric::{Asked, BoxRuntime, Configuration, ConfigurationVersion, FabricError, Phase, orders};
use std::sync::Arc;

/// How a box is started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Boot {
    /// If the start fails, the box's restart policy decides whether the fabric tries again.
    pub(super) restore: bool,
    /// The recorded writes to its handlers are executed again, whatever the definition says.
    pub(super) replay: bool,
    /// Boxes that are equal to it are started as well.
    pub(super) has_equals: bool,
}

/// The state of a box that was started, if the fabric says it.
pub(super) type StartResult = Result<Option<Box<BoxRuntime>>, OperationError>;

impl Supervisor {
    /// Starts a stopped box, with its stored configurations.
    pub fn start_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        self.0.managed_box(name)?;
        self.refuse_while_draining()?;
        let claims = || vec![Claim::change(name)];
        let managed =
            self.operate(Action::Start, name, &claims, |operation| self.start_in(operation, name))?;
        self.status(&managed)
    }

    /// Starts a box as a step of an operation.
    fn start_in(&self, operation: &mut Operation, name: &BoxName) -> Result<Arc<ManagedBox>, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        if managed.inner().removed {
            return Err(OperationError::NoBox(name.clone()));
        }
        let before = std::mem::replace(&mut managed.inner().running, true);
        operation.add(StoreChange::SetRunning(name.clone(), true));
        operation.note_started(&managed);
        if let Err(failure) = self.boot(&managed, Boot::default()) {
            managed.inner().running = before;
            return Err(failure);
        }
        let started = managed.clone();
        operation.undo_by(move |supervisor| {
            started.inner().running = before;
            // One that is to run was stopped for a restart, or has crashed.
            if !before {
                supervisor.bring_down(&started.name, false);
            }
        });
        Ok(managed.clone())
    }

    /// Orders the fabric to start a box with its stored configurations. The caller holds the box's `change` lock.
    pub(super) fn boot(&self, managed: &Arc<ManagedBox>, how: Boot) -> Result<(), OperationError> {
        let writes = self.0.store().writes(&managed.name)?;
        let has_writes = !writes.is_empty();
        let started = self.boot_with(managed, how, writes);
        if has_writes && started.is_ok() {
            self.store_writes(&managed.name);
        }
        started.map(drop)
    }

    /// As [`boot`](Self::boot), with these recorded writes. The store is not changed. Returns the state of the box, if the fabric
    /// says it.
    pub(super) fn boot_with(
        &self,
        managed: &Arc<ManagedBox>,
        Boot { restore, replay, has_equals }: Boot,
        writes: Vec<RecordedWrite>,
    ) -> StartResult {
        let name = managed.name.clone();
        let configurations = self.configurations_of(managed)?;
        let order = orders::StartBox { name, configurations, restore, writes, replay, has_equals };
        let started = self.0.fabrics.ask(order);
        started.map(|started| started.runtime).map_err(|failure| {
            let source = managed.inner().definition.source.clone();
            in_source(failure, source.as_deref())
        })
    }

    /// A box's stored configurations, as the fabric gets them.
    pub(super) fn configurations_of(
        &self,
        managed: &ManagedBox,
    ) -> Result<Vec<Configuration>, OperationError> {
        let name = &managed.name;
        let store = self.0.store();
        let with_files = |stored: StoredConfiguration| {
            let files = store.files(name, stored.id)?;
            Ok(configuration_of(managed, &stored, &files))
        };
        store.configurations(name)?.into_iter().map(with_files).collect()
    }

    /// Stops a box gracefully, even if it is being started or waits to restart.
    pub fn stop_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let phase = self.runtime(name, Asked::None)?.phase;
        if matches!(phase, Phase::Stopped | Phase::Created | Phase::Crashed) {
            let (state, hint) = (phase.words(), "there is nothing to stop");
            return Err(OperationError::State { name: name.clone(), state, hint });
        }
        // First, so that a start that is not committed yet is stored as stopped.
        let before = std::mem::replace(&mut managed.inner().running, false);
        if let Err(error) = self.apply(StoreChange::SetRunning(name.clone(), false)) {
            managed.inner().running = before;
            return Err(error.into());
        }
        self.bring_down(name, true);
        self.status(&managed)
    }

    /// Ends a box on request, in any phase.
    pub(super) fn bring_down(&self, name: &BoxName, graceful: bool) {
        // An error means that it does not run.
        let _ = self.0.fabrics.ask(orders::StopBox { name: name.clone(), graceful });
    }

    /// Suspends a box.
    pub fn suspend_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        self.0.fabrics.ask(orders::SuspendBox { name: name.clone() })?;
        self.status(&managed)
    }

    /// Resumes a suspended box.
    pub fn resume_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        self.0.fabrics.ask(orders::ResumeBox { name: name.clone() })?;
        self.status(&managed)
    }

    /// Kills a box as if it had crashed: its restart policy decides what follows.
    pub fn kill_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.0.fabrics.ask(orders::KillBox { name: name.clone() })?;
        self.status(&managed)
    }

    /// Stops a box if it runs, and starts it again with a fresh state.
    pub fn restart_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.refuse_while_draining()?;
        let subject = Subject::from(name);
        self.require_own(&subject)?;
        // Before the stop, so that the next daemon starts the box if this one ends meanwhile.
        let id = self.0.store().begin(Action::Start, &subject)?;
        let mut operation = self.operation(id);
        let _claims = self.claim_to_restart(name)?;
        self.require_own(&subject)?;
        self.bring_down(name, true);
        match self.start_in(&mut operation, name) {
            // Another thread started it in between, which is fine.
            Err(OperationError::Fabric(FabricError::State { .. })) => {}
            started => {
                started?;
                operation.commit()?;
            }
        }
        self.status(&managed)
    }

    /// Takes the claim of a restart. The box runs on while others hold it. If an operation on this box alone does not end in time, it
    /// may wait for the box, for example in an endless loop: then the box is stopped before the claim.
    fn claim_to_restart(&self, name: &BoxName) -> Result<ClaimGuard<'_>, OperationError> {
        let (subject, claims) = (Subject::from(name), || vec![Claim::change(name)]);
        match self.claim_within(&subject, CHANGE_TIMEOUT, &claims) {
            Ok(claims) => Ok(claims),
            Err(conflict) if conflict.changed_by.as_ref() == Some(&subject) => {
                self.bring_down(name, true);
                self.claim_for(&subject, &claims)
            }
            Err(conflict) => Err(OperationError::Changing(conflict.subject)),
        }
    }

    /// Starts the boxes that an earlier daemon had stopped in order to start them again.
    pub(super) fn start_interrupted(&self, interrupted: &[Interrupted]) {
        for name in interrupted.iter().filter_map(Interrupted::started_box) {
            let Ok(managed) = self.0.managed_box(name) else { continue };
            let phase = self.runtime(name, Asked::None).map(|runtime| runtime.phase);
            if phase.is_ok_and(|phase| phase == Phase::Stopped) {
                // It is started like a new one, if it is to run.
                let how = Boot { restore: true, ..Boot::default() };
                self.start_wanted(&managed, None, how);
            }
        }
    }
}

/// A box's stored configuration with its files, as the fabric gets it.
pub(super) fn configuration_of(
    managed: &ManagedBox,
    stored: &StoredConfiguration,
    files: &[File],
) -> Configuration {
    Configuration {
        name: stored.name.clone(),
        version: version(stored),
        text: stored.text.clone(),
        files: files.to_vec(),
        destinations: managed.destinations(),
        parameters: managed.parameters(),
    }
}

/// What tells the contents of a stored configuration from others.
pub(super) fn version(stored: &StoredConfiguration) -> ConfigurationVersion {
    ConfigurationVersion { installed: stored.installed, swaps: stored.swaps }
}

/// Waits, up to a timeout, until no other thread starts, stops or changes the box.
pub(super) fn lock_for_change(managed: &ManagedBox) -> Result<MutexGuard<'_, ()>, OperationError> {
    managed.change.try_lock_for(CHANGE_TIMEOUT).ok_or_else(|| OperationError::State {
        name: managed.name.clone(),
        state: "is being changed by another request",
        hint: "try again later, or stop it if it is in an endless loop",
    })
}

/// Diagnostics with the name of the configuration's file, which the fabric does not know.
pub(super) fn with_source(mut found: Vec<Diagnostic>, source: Option<&str>) -> Vec<Diagnostic> {
    for diagnostic in &mut found {
        diagnostic.file = source.map(str::to_string);
    }
    found
}

/// An error whose diagnostics have the name of the configuration's file.
pub(super) fn in_source(failure: OperationError, source: Option<&str>) -> OperationError {
    match failure {
        OperationError::Refused(found) => OperationError::Refused(with_source(found, source)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{TestBed, process, until};
    use super::*;
    use crate::fabric::{Fault, plan_fault};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_box_whose_restart_was_interrupted_is_started_by_the_next_daemon() {
        let mut bed = TestBed::unwatched_with_click();
        let names: [BoxName; 2] = ["fw", "off"].map(|name| name.parse().unwrap());
        for name in &names {
            bed.create_box(process(name.as_str(), "Idle -> Discard;")).unwrap();
        }
        bed.stop_box(&names[1]).unwrap();
        for name in &names {
            let store = Rc::new(RefCell::new(None));
            let (supervisor, left) = (bed.supervisor.clone(), store.clone());
            let end = Box::new(move || *left.borrow_mut() = Some(supervisor.kill()));
            // It ends when the box is stopped.
            plan_fault(Some(Fault { orders: 0, is_executed: true, end }));
            bed.restart_box(name).unwrap_err();
            bed.start_next_daemon(store.take().unwrap());
        }
        until("the box runs", || bed.phase(&names[0]) == Some(Phase::Running));
        assert_eq!(bed.phase(&names[1]), Some(Phase::Stopped), "it did not run before");
    }

    #[test]
    fn a_box_is_stopped_for_a_restart_when_no_other_operation_uses_it() {
        let bed = TestBed::unwatched_with_click();
        let names: [BoxName; 2] = ["fw", "loop"].map(|name| name.parse().unwrap());
        for name in &names {
            bed.create_box(process(name.as_str(), "Idle -> Discard;")).unwrap();
        }
        let started = |name: &BoxName| {
            let found = bed.runtime(name, Asked::None).unwrap();
            (found.phase, found.started, found.process)
        };
        let before = names.each_ref().map(started);
        let claim = |by: &Subject, name: &BoxName| bed.claim_for(by, &|| vec![Claim::change(name)]).unwrap();
        // A stack that changes the first, and an operation on the second that ends when the box does.
        let stack = claim(&"stack/edge".parse().unwrap(), &names[0]);
        let waiting = claim(&Subject::from(&names[1]), &names[1]);
        let results = std::thread::scope(|scope| {
            let restarts = names.each_ref().map(|name| scope.spawn(|| bed.restart_box(name)));
            until("the box is stopped", || bed.phase(&names[1]) != Some(Phase::Running));
            drop(waiting);
            restarts.map(|restart| restart.join().unwrap())
        });
        assert!(
            matches!(&results[0], Err(OperationError::Changing(used)) if *used == Subject::from(&names[0]))
        );
        assert_eq!(started(&names[0]), before[0], "it runs on");
        results[1].as_ref().unwrap();
        assert_eq!(started(&names[1]).0, Phase::Running);
        assert_ne!(started(&names[1]), before[1]);
        drop(stack);
        bed.restart_box(&names[0]).unwrap();
        assert_ne!(started(&names[0]), before[0]);
    }
}
