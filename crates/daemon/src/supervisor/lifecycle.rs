//! Starts, stops, suspends and kills boxes.

use super::state::Supervisor;
use crate::boxes::{Instance, Member, Phase};
use crate::error::OperationError;
use crate::fair_lock::{FairGuard, LockTimeout};
use crate::limits::{CHANGE_TIMEOUT, STOP_TIMEOUT};
use api::{BoxName, BoxStatus, EventKind};
use std::sync::Arc;

impl Supervisor {
    /// Starts a stopped box, with its stored configurations.
    pub fn start_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        let change = lock_for_change(&member)?;
        {
            let mut inner = member.inner();
            if inner.removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            if matches!(inner.phase, Phase::Running | Phase::Suspended | Phase::Booting) {
                return Err(state(&member, inner.phase, "stop or restart it"));
            }
            inner.unwanted = false;
            inner.crashes = 0;
        }
        self.0.store().set_running(name, true)?;
        let booted = self.boot(&member);
        drop(change);
        if let Err(failure) = booted {
            // It does not run, so the next daemon must not start it either.
            let _ = self.0.store().set_running(name, false);
            return Err(failure);
        }
        Ok(self.status(&member))
    }

    /// Stops a box gracefully, even if it is being started or waits to restart.
    pub fn stop_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        let phase = member.inner().phase;
        if matches!(phase, Phase::Stopped | Phase::Created | Phase::Crashed) {
            return Err(state(&member, phase, "there is nothing to stop"));
        }
        self.0.store().set_running(name, false)?;
        self.bring_down(&member, true);
        Ok(self.status(&member))
    }

    /// Ends a box on request, in any phase. Its phase is then stopped.
    pub(super) fn bring_down(&self, member: &Arc<Member>, in_order: bool) {
        let (instance, booting) = {
            let mut inner = member.inner();
            inner.unwanted = true;
            (inner.instance.clone(), inner.phase == Phase::Booting)
        };
        // A thread that starts the box, or waits for its reply, notices its end at once and releases it.
        if let Some(instance) = instance.filter(|_| booting || !in_order) {
            instance.end_for_good();
        }
        let _change = member.change.lock_within(STOP_TIMEOUT).unwrap_or_else(|LockTimeout| {
            // The box is being changed and does not reply: in an endless loop it never would.
            if let Some(instance) = member.instance() {
                instance.end_for_good();
            }
            member.change.lock()
        });
        let instance = member.instance();
        if let Some(instance) = &instance {
            if in_order {
                // The last chance to read its drop counters.
                if let Some(stats) = instance.stats() {
                    member.inner().look_at_drops(&stats);
                }
                instance.stop(STOP_TIMEOUT);
            } else {
                instance.end_for_good();
            }
            self.bury(member, instance);
        }
        let mut inner = member.inner();
        inner.close();
        inner.phase = Phase::Stopped;
        drop(inner);
        self.0.journal.note(
            EventKind::BoxStopped,
            format!("box/{}", member.name),
            format!("box {} was stopped", member.name),
        );
    }

    /// Suspends a box.
    pub fn suspend_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        let _change = lock_for_change(&member)?;
        match present(&member) {
            (Phase::Running, Some(instance)) => instance.suspend(),
            (phase, _) => return Err(state(&member, phase, "only a running box is suspended")),
        }
        member.inner().phase = Phase::Suspended;
        let message = format!("box {name} was suspended");
        self.0.journal.note(EventKind::BoxSuspended, format!("box/{name}"), message);
        Ok(self.status(&member))
    }

    /// Resumes a suspended box.
    pub fn resume_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        let _change = lock_for_change(&member)?;
        match present(&member) {
            (Phase::Suspended, Some(instance)) => instance.resume(),
            (phase, _) => return Err(state(&member, phase, "only a suspended box is resumed")),
        }
        member.inner().phase = Phase::Running;
        self.0.journal.note(EventKind::BoxResumed, format!("box/{name}"), format!("box {name} was resumed"));
        Ok(self.status(&member))
    }

    /// Kills a box as if it had crashed: its restart policy decides what follows.
    pub fn kill_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        let (phase, instance) = present(&member);
        let Some(instance) = instance else {
            return Err(state(&member, phase, "there is nothing to kill"));
        };
        instance.kill();
        // If it is being started, the starting thread handles its end.
        self.ended(&member, &instance);
        Ok(self.status(&member))
    }

    /// Stops a box if it runs, and starts it again with a fresh state.
    pub fn restart_box(&self, name: &BoxName) -> Result<BoxStatus, OperationError> {
        let member = self.0.member(name)?;
        if member.instance().is_some() || matches!(member.inner().phase, Phase::Waiting(_)) {
            self.bring_down(&member, true);
        }
        match self.start_box(name) {
            // Another thread started it in between, which is fine.
            Err(OperationError::State { .. }) => Ok(self.status(&member)),
            other => other,
        }
    }
}

/// Waits, up to a timeout, until no other thread starts, stops or changes the box.
pub(super) fn lock_for_change(member: &Member) -> Result<FairGuard<'_, ()>, OperationError> {
    member.change.lock_within(CHANGE_TIMEOUT).map_err(|LockTimeout| OperationError::State {
        name: member.name.clone(),
        state: "is being changed by somebody else",
        hint: "try again later, or stop it if it is in an endless loop",
    })
}

/// A box's phase and its instance, read together.
fn present(member: &Member) -> (Phase, Option<Arc<Instance>>) {
    let inner = member.inner();
    (inner.phase, inner.instance.clone())
}

/// The error for a box in the wrong state.
pub(super) fn state(member: &Member, phase: Phase, hint: &'static str) -> OperationError {
    OperationError::State { name: member.name.clone(), state: phase.words(), hint }
}
