//! Operations: changes that take effect as a whole or not at all.
//!
//! An operation claims the objects that it uses, records in the store that it has begun, realises its steps, and commits
//! them. Each step adds its changes to the operation and says how it is undone. If a step or the commit fails, or if the
//! thread panics, the steps are undone in reverse order, and the store has not changed. The entry of the request in the
//! audit log is in the same transaction. Events that tell of a change are reported once it is committed.

use super::claims::{Claim, ClaimGuard, Conflict};
use super::managed_box::ManagedBox;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::limits::CHANGE_TIMEOUT;
use crate::store::{Action, OperationId, StoreChange, StoreError, StoredBox, StoredConfiguration};
use api::Subject;
use api::{BoxName, EventKind, File, SwitchName};
use protocol::fabric::NewPortNumbersReply;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::block_in_place;

/// A deferred action on the supervisor.
type Deferred = Box<dyn FnOnce(&Supervisor) + Send>;

/// An operation in progress. If it is dropped before its commit, its steps are undone.
pub(super) struct Operation<'a> {
    supervisor: &'a Supervisor,
    id: OperationId,
    undo: Vec<Deferred>,
    after: Vec<Deferred>,
    events: Vec<(EventKind, Subject, String)>,
    started: Vec<Arc<ManagedBox>>,
    /// Switches that may have got ports, services or chains.
    numbered: BTreeSet<SwitchName>,
    is_committed: bool,
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("id", &self.id).field("steps", &self.undo.len()).finish()
    }
}

impl Operation<'_> {
    /// Adds a change of the store.
    pub(super) fn add(&mut self, change: StoreChange) {
        self.supervisor.0.store().add_change(self.id, change);
    }

    /// Adds a configuration of an existing box. It is written now, and takes effect with the commit.
    pub(super) fn stage(
        &mut self,
        name: &BoxName,
        configuration: &StoredConfiguration,
        files: &[File],
    ) -> Result<(), OperationError> {
        Ok(self.supervisor.0.store().stage(self.id, name, configuration, files)?)
    }

    /// Adds a box with its main configuration. It is written now, and takes effect with the commit.
    pub(super) fn stage_box(
        &mut self,
        stored: StoredBox,
        configuration: StoredConfiguration,
        files: Vec<File>,
    ) -> Result<(), OperationError> {
        Ok(self.supervisor.0.store().stage_box(self.id, stored, configuration, files)?)
    }

    /// Records how to undo a step. The store needs no undoing.
    pub(super) fn undo_by(&mut self, undo: impl FnOnce(&Supervisor) + Send + 'static) {
        self.undo.push(Box::new(undo));
    }

    /// Defers a step that cannot fail until the changes are committed: what is removed keeps working if they are not.
    pub(super) fn after_commit(&mut self, act: impl FnOnce(&Supervisor) + Send + 'static) {
        self.after.push(Box::new(act));
    }

    /// Records an event, which is reported with the commit.
    pub(super) fn note(&mut self, kind: EventKind, subject: impl Into<Subject>, message: String) {
        self.events.push((kind, subject.into(), message));
    }

    /// Records that a box was started. If a stop is requested before the commit, the box is stored as stopped.
    pub(super) fn note_started(&mut self, managed: &Arc<ManagedBox>) {
        self.started.push(managed.clone());
    }

    /// Records that switches get ports, services or chains. The numbers that controllers know these by are stored with the
    /// commit.
    pub(super) fn note_ports<'b>(&mut self, switches: impl IntoIterator<Item = &'b SwitchName>) {
        self.numbered.extend(switches.into_iter().cloned());
    }

    /// Commits the changes, and does what was deferred until then.
    pub(super) fn commit(&mut self) -> Result<(), OperationError> {
        let state = &self.supervisor.0;
        let mut marks = Vec::new();
        for switch in std::mem::take(&mut self.numbered) {
            let NewPortNumbersReply { mark, numbers } = self.supervisor.new_port_numbers(&switch)?;
            marks.push((switch.clone(), mark));
            if !numbers.is_empty() {
                self.add(StoreChange::PutPortNumbers(switch, numbers));
            }
        }
        let after = std::mem::take(&mut self.after);
        let has_more_steps = !after.is_empty();
        let mut entry = state.audit.to_store(&self.supervisor.2);
        let mut commit = || {
            let mut store = state.store();
            // A stop resets `running` before it stores that the box is stopped.
            for managed in self.started.iter().filter(|managed| !managed.inner().running) {
                store.add_change(self.id, StoreChange::SetRunning(managed.name.clone(), false));
            }
            if let Some(entry) = &entry {
                store.add_change(self.id, StoreChange::Audit(entry.clone()));
            }
            match store.commit(self.id) {
                // On a full disk, what makes room has priority.
                Err(StoreError::Full) if entry.take().is_some() => {
                    store.withdraw_audit(self.id);
                    store.commit(self.id)
                }
                done => done,
            }
        };
        // What the fabric did comes before the sentence that it is done. It tells while the disk writes.
        match has_more_steps {
            true => commit()?,
            false => self.supervisor.fetch_events_after(commit)?,
        }
        self.is_committed = true;
        for (switch, mark) in marks {
            self.supervisor.note_stored_numbers(switch, mark);
        }
        if let Some(entry) = &entry {
            state.audit.stored(&self.supervisor.2, entry);
        }
        for act in after {
            act(self.supervisor);
        }
        if has_more_steps {
            self.supervisor.fetch_events();
        }
        for (kind, subject, message) in std::mem::take(&mut self.events) {
            state.journal.note(kind, subject, message);
        }
        Ok(())
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        // First, so that what is restored is read from the store as it was.
        self.supervisor.0.store().abandon(self.id);
        for undo in std::mem::take(&mut self.undo).into_iter().rev() {
            undo(self.supervisor);
        }
    }
}

impl Supervisor {
    /// Takes the claims of an operation about `subject`. A restart of the fabric waits for all of them, and they wait for it.
    pub(super) fn claim_for(
        &self,
        subject: &Subject,
        claims: &dyn Fn() -> Vec<Claim>,
    ) -> Result<ClaimGuard<'_>, OperationError> {
        let taken = self.claim_within(subject, CHANGE_TIMEOUT, claims);
        taken.map_err(|Conflict { subject, .. }| OperationError::Changing(subject))
    }

    /// As [`claim_for`](Self::claim_for), for a thread of the runtime, which passes on its other tasks if it has to wait.
    pub(super) fn claim_promptly(
        &self,
        subject: &Subject,
        claims: &dyn Fn() -> Vec<Claim>,
    ) -> Result<ClaimGuard<'_>, OperationError> {
        let taken = self.claim_within(subject, Duration::ZERO, claims);
        taken.or_else(|_| block_in_place(|| self.claim_for(subject, claims)))
    }

    /// As [`claim_for`](Self::claim_for), within a time.
    pub(super) fn claim_within(
        &self,
        subject: &Subject,
        timeout: Duration,
        claims: &dyn Fn() -> Vec<Claim>,
    ) -> Result<ClaimGuard<'_>, Conflict> {
        let with_daemon = || std::iter::once(Claim::rely(Subject::Daemon)).chain(claims()).collect();
        self.0.claims.take(subject, timeout, &with_daemon)
    }

    /// Makes a change of the store that needs no operation, with the entry of the request in the audit log.
    pub(super) fn apply(&self, change: StoreChange) -> Result<(), StoreError> {
        let mut store = self.0.store();
        if let Some(entry) = self.0.audit.to_store(&self.2) {
            let changes = [change.clone(), StoreChange::Audit(entry.clone())];
            match store.apply(&changes) {
                // As above.
                Err(StoreError::Full) => {}
                done => return done.map(|()| self.0.audit.stored(&self.2, &entry)),
            }
        }
        store.apply(&[change])
    }

    /// Runs an operation: all of `steps`, or nothing.
    pub(super) fn operate<T>(
        &self,
        action: Action,
        subject: impl Into<Subject>,
        claims: &dyn Fn() -> Vec<Claim>,
        steps: impl FnOnce(&mut Operation) -> Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        let subject = subject.into();
        let _claims = self.claim_for(&subject, claims)?;
        // Since the request was authorised, another owner's object may have taken the name.
        if !matches!(action, Action::Create | Action::Apply) {
            self.require_own(&subject)?;
        }
        let id = match (action, &subject) {
            (Action::Create, Subject::Box(_)) => self.0.store().begin_with_box(action, &subject),
            _ => self.0.store().begin(action, &subject)?,
        };
        let mut operation = self.operation(id);
        let result = steps(&mut operation)?;
        operation.commit()?;
        Ok(result)
    }

    /// An operation that has begun in the store.
    pub(super) fn operation(&self, id: OperationId) -> Operation<'_> {
        Operation {
            supervisor: self,
            id,
            undo: Vec::new(),
            after: Vec::new(),
            events: Vec::new(),
            started: Vec::new(),
            numbered: BTreeSet::new(),
            is_committed: false,
        }
    }
}
