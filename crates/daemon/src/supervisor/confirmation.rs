//! Stacks that are rolled back unless they are confirmed in time: for changes that may cut off the client's own
//! connection.
//!
//! The complete previous definition is stored together with the new one, so that the rollback also happens if the daemon
//! ends meanwhile. It is applied like any other stack: unchanged parts keep running.

use super::pending_confirmation::PendingConfirmation;
use super::stacks::StackOrder;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::limits::MAX_CONFIRMATION_TIME;
use crate::store::{Action, StoreChange, StoredUnconfirmed};
use api::{
    AddPort, Changes, CreateSwitch, EventKind, ExternalSwitch, Stack, StackName, SwitchName, Time,
    with_causes,
};
use std::time::{Duration, Instant};

/// When a stack is rolled back again whose rollback failed, and whose end of the wait could not be stored.
const RETRY_TIME: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Applies a stack: all of it, or nothing if any part is rejected. If `time` is given, the stack is rolled back
    /// after that time unless it is confirmed. Switches that others use are removed only if `is_forced`.
    pub fn apply_stack_within(
        &self,
        name: &StackName,
        mut stack: Stack,
        time: Option<Duration>,
        is_forced: bool,
    ) -> Result<Changes, OperationError> {
        self.adopt_stack(name, &mut stack)?;
        let order = StackOrder { is_forced, ..StackOrder::new(Action::Apply) };
        let Some(time) = time else {
            self.refuse_unconfirmed(name)?;
            return self.change_stack(order, name, stack);
        };
        if time.is_zero() || time > MAX_CONFIRMATION_TIME {
            return Err(RequestError::ConfirmationTime.into());
        }
        let before = self.stack_as_it_is(name)?;
        {
            let mut pending = self.0.pending();
            if pending.contains_key(name) {
                return Err(OperationError::Unconfirmed(name.clone()));
            }
            let due = Instant::now() + time;
            let until = Time::from(Time::now().system() + time);
            pending
                .insert(name.clone(), PendingConfirmation { due, until, before: before.clone(), busy: true });
        }
        let stored = StoredUnconfirmed { name: name.clone(), before };
        let order = StackOrder { others: vec![StoreChange::PutUnconfirmed(stored)], ..order };
        let applied = self.change_stack(order, name, stack);
        self.wait_if_stored(name, applied.is_ok(), time);
        applied
    }

    /// Lets a stack wait for its confirmation if the store says that it does: a step after the commit may have failed, or the
    /// end of the wait could not be stored. `is_known`: the store need not be asked.
    fn wait_if_stored(&self, name: &StackName, is_known: bool, time: Duration) {
        let is_stored = || {
            let stored = self.0.store().unconfirmed();
            stored.is_ok_and(|stored| stored.iter().any(|stored| stored.name == *name))
        };
        let waits = is_known || is_stored();
        let mut pending = self.0.pending();
        match pending.get_mut(name).filter(|_| waits) {
            Some(entry) => {
                entry.busy = false;
                entry.due = Instant::now() + time;
                entry.until = Time::from(Time::now().system() + time);
            }
            None => drop(pending.remove(name)),
        }
    }

    /// Returns an error if the stack awaits confirmation.
    pub(super) fn refuse_unconfirmed(&self, name: &StackName) -> Result<(), OperationError> {
        match self.0.pending().contains_key(name) {
            true => Err(OperationError::Unconfirmed(name.clone())),
            false => Ok(()),
        }
    }

    /// Confirms a stack: it stays as it was applied.
    pub fn confirm_stack(&self, name: &StackName) -> Result<(), OperationError> {
        let pending = self.claim(name)?;
        let removed = self.0.store().apply(&[StoreChange::RemoveUnconfirmed(name.clone())]);
        if let Err(error) = removed {
            self.0.pending().insert(name.clone(), PendingConfirmation { busy: false, ..pending });
            return Err(error.into());
        }
        self.0.pending().remove(name);
        let message = format!("stack {name} is confirmed");
        self.0.journal.note(EventKind::StackConfirmed, name, message);
        Ok(())
    }

    /// Rolls back a stack that awaits confirmation.
    pub fn roll_back_stack(&self, name: &StackName) -> Result<Changes, OperationError> {
        let pending = self.claim(name)?;
        let result = self.take_stack_back(name, pending.before, "as requested");
        self.settle(name, &result);
        result
    }

    /// Ends the wait for a confirmation after a rollback. If another operation was in its way, or the end of the wait could not be
    /// stored, the stack waits on.
    fn settle(&self, name: &StackName, result: &Result<Changes, OperationError>) {
        if matches!(result, Err(OperationError::Changing(_))) {
            if let Some(entry) = self.0.pending().get_mut(name) {
                entry.busy = false;
            }
            return;
        }
        self.wait_if_stored(name, false, RETRY_TIME);
    }

    /// Claims the confirmation of a stack, so that no other thread confirms it or rolls it back.
    fn claim(&self, name: &StackName) -> Result<PendingConfirmation, OperationError> {
        let mut pending = self.0.pending();
        let entry = pending.get_mut(name).ok_or_else(|| OperationError::NothingToConfirm(name.clone()))?;
        if entry.busy {
            return Err(OperationError::Unconfirmed(name.clone()));
        }
        entry.busy = true;
        Ok(PendingConfirmation {
            due: entry.due,
            until: entry.until,
            before: entry.before.clone(),
            busy: true,
        })
    }

    fn take_stack_back(
        &self,
        name: &StackName,
        before: Option<Stack>,
        why: &str,
    ) -> Result<Changes, OperationError> {
        let confirmed = StoreChange::RemoveUnconfirmed(name.clone());
        let order = StackOrder { action: Action::RollBack, others: vec![confirmed.clone()], is_forced: true };
        // A previous state is restored whatever the caller's quota is now.
        let supervisor = self.unrestricted();
        let result = match before {
            Some(before) => supervisor.change_stack(order, name, before),
            None => supervisor.drop_stack(order, name),
        };
        let message = match &result {
            Ok(_) => format!("stack {name} was rolled back: {why}"),
            // It is tried again.
            Err(OperationError::Changing(_)) => return result,
            Err(failure) => {
                format!("stack {name} could not be rolled back ({why}): {}", with_causes(failure))
            }
        };
        if result.is_err() {
            // The stack stays as it is. If this cannot be stored, it is rolled back later.
            let _ = self.0.store().apply(&[confirmed]);
        }
        self.0.journal.note(EventKind::StackRolledBack, name, message);
        result
    }

    /// Rolls back stacks that were not confirmed in time, each in its own thread.
    pub(super) fn roll_back_due(&self) {
        let now = Instant::now();
        let due: Vec<StackName> = {
            let pending = self.0.pending();
            let late = |entry: &PendingConfirmation| entry.due <= now && !entry.busy;
            pending.iter().filter(|(_, entry)| late(entry)).map(|(name, _)| name.clone()).collect()
        };
        for name in due {
            let supervisor = self.clone();
            let run = move || {
                // It may have been confirmed at the last moment.
                if let Ok(pending) = supervisor.claim(&name) {
                    // The result is in the journal. If another operation was in the way, the next round tries again.
                    let result =
                        supervisor.take_stack_back(&name, pending.before, "it was not confirmed in time");
                    supervisor.settle(&name, &result);
                }
            };
            // If no thread can be created, the next round retries.
            let _ = std::thread::Builder::new().name("roll back".into()).spawn(run);
        }
    }

    /// Rolls back stacks that were applied but not confirmed when the previous daemon ended.
    pub(super) fn roll_back_unconfirmed(&self) -> Result<(), OperationError> {
        let stored = self.0.store().unconfirmed()?;
        for StoredUnconfirmed { name, before } in stored {
            // The result is in the journal.
            let _ = self.take_stack_back(&name, before, "the daemon ended before it was confirmed");
        }
        Ok(())
    }

    /// The definition of a stack as it is now, with all texts and files.
    pub fn export_stack(&self, name: &StackName) -> Result<Stack, OperationError> {
        self.stack_as_it_is(name)?.ok_or_else(|| OperationError::NoStack(name.clone()))
    }

    /// The current definition of a stack, with all texts and files. `None` if it does not exist.
    fn stack_as_it_is(&self, name: &StackName) -> Result<Option<Stack>, OperationError> {
        let stacks = self.0.store().stacks()?;
        let Some(stored) = stacks.into_iter().find(|stored| stored.name == *name) else { return Ok(None) };
        let used: Vec<SwitchName> = stored.definition.external.into_iter().map(|used| used.name).collect();
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let mut stack = Stack { owner: stored.definition.owner, ..Stack::default() };
        for stored in self.0.switches().values() {
            let ports = stored.definition.ports.iter();
            let ports: Vec<AddPort> =
                ports.filter(|port| stored.makers.get(&port.name) == Some(name)).cloned().collect();
            if ours(&stored.stack) {
                let flows = stored.flows.list.iter().filter(|stored| ours(&stored.stack));
                let flows = flows.map(|stored| stored.flow.clone()).collect();
                stack.switches.push(CreateSwitch { ports, flows, ..stored.definition.clone() });
            } else if !ports.is_empty() || used.contains(&stored.definition.name) {
                stack.external.push(ExternalSwitch { name: stored.definition.name.clone(), ports });
            }
        }
        for managed in self.0.all() {
            let mut definition = {
                let inner = managed.inner();
                if !ours(&inner.stack) || inner.service.is_some() {
                    continue;
                }
                inner.definition.clone()
            };
            (definition.configuration, definition.files) = self.main_of(&managed.name)?;
            stack.boxes.push(definition);
        }
        (stack.services, stack.chains) = self.steering_of_stack(name)?;
        Ok(Some(stack))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::TestBed;
    use super::*;

    #[test]
    fn a_stack_whose_rollback_cannot_be_stored_waits_on() {
        let bed = TestBed::with_probe();
        let name: StackName = "web".parse().unwrap();
        let lan = CreateSwitch::new("lan".parse().unwrap());
        let stack = Stack { switches: vec![lan.clone()], ..Stack::default() };
        let time = Some(Duration::from_secs(3600));
        bed.apply_stack_within(&name, stack, time, false).unwrap();
        bed.fail_commits(true);
        bed.roll_back_stack(&name).unwrap_err();
        bed.fail_commits(false);
        let failure = bed.apply_stack_within(&name, Stack::default(), None, false).unwrap_err();
        assert!(matches!(failure, OperationError::Unconfirmed(_)), "{failure}");
        bed.roll_back_stack(&name).unwrap();
        assert!(bed.show_switch(&lan.name).is_err() && bed.0.store().unconfirmed().unwrap().is_empty());
    }
}
