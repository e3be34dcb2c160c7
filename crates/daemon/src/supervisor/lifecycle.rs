//! Starts, stops, suspends and kills boxes.

use super::claims::Claim;
use super::state::Supervisor;
use crate::boxes::{Instance, ManagedBox, Phase};
use crate::error::OperationError;
use crate::fair_lock::{FairGuard, LockTimeout};
use crate::limits::{CHANGE_TIMEOUT, STOP_TIMEOUT};
use crate::store::{Action, StoreChange};
use api::{BoxName, BoxStatus, EventKind};
use std::sync::Arc;

impl Supervisor {
    /// Starts a stopped box, with its stored configurations.
    pub fn start_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        self.0.managed_box(name)?;
        let managed = self.operate(Action::Start, name, &|| vec![Claim::change(name)], |operation| {
            let managed = self.0.managed_box(name)?;
            let change = lock_for_change(&managed)?;
            {
                let mut inner = managed.inner();
                if inner.removed {
                    return Err(OperationError::NoBox(name.clone()));
                }
                if matches!(inner.phase, Phase::Running | Phase::Suspended | Phase::Booting) {
                    return Err(state(&managed, inner.phase, "stop or restart it"));
                }
                inner.unwanted = false;
                inner.crashes = 0;
            }
            operation.add(StoreChange::SetRunning(name.clone(), true));
            operation.note_started(&managed);
            self.boot(&managed)?;
            let started = managed.clone();
            operation.undo_by(move |supervisor| supervisor.bring_down(&started, false));
            drop(change);
            Ok(managed)
        })?;
        Ok(self.status(&managed))
    }

    /// Stops a box gracefully, even if it is being started or waits to restart.
    pub fn stop_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let phase = managed.inner().phase;
        if matches!(phase, Phase::Stopped | Phase::Created | Phase::Crashed) {
            return Err(state(&managed, phase, "there is nothing to stop"));
        }
        // First, so that a start that is not committed yet is stored as stopped.
        let before = std::mem::replace(&mut managed.inner().unwanted, true);
        if let Err(error) = self.0.store().apply(&[StoreChange::SetRunning(name.clone(), false)]) {
            managed.inner().unwanted = before;
            return Err(error.into());
        }
        self.bring_down(&managed, true);
        Ok(self.status(&managed))
    }

    /// Ends a box on request, in any phase. Its phase is then stopped.
    pub(super) fn bring_down(&self, managed: &Arc<ManagedBox>, in_order: bool) {
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
                    managed.inner().update_drops(&stats);
                }
                instance.stop(STOP_TIMEOUT);
            } else {
                instance.discard();
            }
            self.reap(managed, instance);
        }
        let mut inner = managed.inner();
        inner.close();
        inner.phase = Phase::Stopped;
        drop(inner);
        self.0.journal.note(
            EventKind::BoxStopped,
            &managed.name,
            format!("box {} was stopped", managed.name),
        );
    }

    /// Suspends a box.
    pub fn suspend_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        match present(&managed) {
            (Phase::Running, Some(instance)) => instance.suspend(),
            (phase, _) => return Err(state(&managed, phase, "only a running box can be suspended")),
        }
        managed.inner().phase = Phase::Suspended;
        let message = format!("box {name} was suspended");
        self.0.journal.note(EventKind::BoxSuspended, name, message);
        Ok(self.status(&managed))
    }

    /// Resumes a suspended box.
    pub fn resume_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _change = lock_for_change(&managed)?;
        match present(&managed) {
            (Phase::Suspended, Some(instance)) => instance.resume(),
            (phase, _) => return Err(state(&managed, phase, "only a suspended box can be resumed")),
        }
        managed.inner().phase = Phase::Running;
        self.0.journal.note(EventKind::BoxResumed, name, format!("box {name} was resumed"));
        Ok(self.status(&managed))
    }

    /// Kills a box as if it had crashed: its restart policy decides what follows.
    pub fn kill_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        let (phase, instance) = present(&managed);
        let Some(instance) = instance else {
            return Err(state(&managed, phase, "there is nothing to kill"));
        };
        instance.kill();
        // If it is being started, the starting thread handles its end.
        self.ended(&managed, &instance);
        Ok(self.status(&managed))
    }

    /// Stops a box if it runs, and starts it again with a fresh state.
    pub fn restart_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let managed = self.0.managed_box(name)?;
        if managed.instance().is_some() || matches!(managed.inner().phase, Phase::Waiting(_)) {
            self.bring_down(&managed, true);
        }
        match self.start_box(name) {
            // Another thread started it in between, which is fine.
            Err(OperationError::State { .. }) => Ok(self.status(&managed)),
            other => other,
        }
    }
}

/// Waits, up to a timeout, until no other thread starts, stops or changes the box.
pub(super) fn lock_for_change(managed: &ManagedBox) -> Result<FairGuard<'_, ()>, OperationError> {
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
pub(super) fn state(managed: &ManagedBox, phase: Phase, hint: &'static str) -> OperationError {
    OperationError::State { name: managed.name.clone(), state: phase.words(), hint }
}
