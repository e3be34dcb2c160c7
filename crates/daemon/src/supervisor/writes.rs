//! Writes to handlers of boxes. Those that change a configuration are recorded by the fabric, which executes them again or
//! loses them when it restarts a box, and in the store, for the next fabric.

use super::claims::Claim;
use super::managed_box::ManagedBox;
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::store::StoreChange;
use api::{BoxName, ConfigurationName, Drift, Event, EventKind, HandlerPath, RecordedWrite, Subject};
use protocol::fabric::{WritesReply, orders};
use serde_bytes::ByteBuf;
use std::collections::BTreeSet;
use tokio::task::block_in_place;

impl Supervisor {
    /// Writes a handler. A write that changes the configuration is stored when this returns. If it cannot be stored, it is
    /// taken back. A thread of the runtime passes on its other tasks only if this takes longer than to wake another thread.
    pub fn write(&self, path: &HandlerPath, value: &[u8]) -> Result<(), OperationError> {
        let most = boundary::limits::MAX_REQUEST / 2;
        if value.len() > most {
            return Err(OperationError::TooLarge("the value", value.len(), most));
        }
        match self.write_now(path, value) {
            // A fabric that is being rebuilt does not have the box yet.
            Err(OperationError::NoBox(_)) => {
                block_in_place(|| self.until_rebuilt(|| self.write_now(path, value)))
            }
            written => written,
        }
    }

    /// Like [`write`](Self::write), to a box that the fabric has.
    fn write_now(&self, path: &HandlerPath, value: &[u8]) -> Result<(), OperationError> {
        let name = &path.name;
        let managed = self.0.managed_box(name)?;
        let _claims = self.claim_promptly(&Subject::from(name), &|| vec![Claim::change(name)])?;
        let written = self.0.fabrics.ask_promptly(orders::WriteHandler {
            name: name.clone(),
            configuration: path.configuration.clone(),
            handler: path.handler.clone(),
            value: ByteBuf::from(value),
        })?;
        let Some(written) = written else {
            self.2.set_unneeded();
            return Ok(());
        };
        block_in_place(|| {
            let stored = self.apply(StoreChange::RecordWrite(name.clone(), written));
            stored.map_err(|error| {
                self.take_write_back(&managed, &path.configuration);
                error.into()
            })
        })
    }

    /// Takes back the last write to a configuration: installs the configuration with the stored writes.
    fn take_write_back(&self, managed: &ManagedBox, configuration: &ConfigurationName) {
        let before = self.0.store().configuration(&managed.name, configuration);
        if let Ok(Some(before)) = before {
            let writes = self.writes_to(&managed.name, configuration);
            self.take_back(managed, configuration, Some(before), writes);
        }
    }

    /// The stored writes of clients to a configuration.
    pub(super) fn writes_to(&self, name: &BoxName, configuration: &ConfigurationName) -> Vec<RecordedWrite> {
        let mut writes = self.0.store().writes(name).unwrap_or_default();
        writes.retain(|write| write.configuration == *configuration && !write.is_own());
        writes
    }

    /// The writes of clients and of the box itself that the fabric knows, the number of the last one, and the number of those
    /// that are no longer known.
    fn known_writes(&self, name: &BoxName) -> Result<(Vec<RecordedWrite>, u64, u64), OperationError> {
        Ok(known(self.0.fabrics.ask(orders::Writes { name: name.clone() })?))
    }

    /// What the fabric knows of the writes to a box, as a change of the store.
    pub(super) fn reported_writes(&self, name: &BoxName) -> Result<StoreChange, OperationError> {
        let (writes, last, _) = self.known_writes(name)?;
        Ok(StoreChange::ReplaceWrites(name.clone(), writes, last))
    }

    /// Stores what the fabric knows of the writes to a box. If this fails, the next time makes up for it.
    pub(super) fn store_writes(&self, name: &BoxName) {
        if let Ok(change) = self.reported_writes(name) {
            let _ = self.0.store().apply(&[change]);
        }
    }

    /// Stores which writes the boxes have of which these events report that some were lost, or that they wrote themselves.
    pub(super) fn store_changed_writes(&self, events: &[Event]) {
        let is_change = |event: &&Event| matches!(event.kind, EventKind::WritesLost | EventKind::OwnWrites);
        let changed = events.iter().filter(is_change);
        let names: BTreeSet<BoxName> =
            sorting::collect(changed.filter_map(|event| match event.subject.parse() {
                Ok(Subject::Box(name)) => Some(name),
                _ => None,
            }));
        names.iter().for_each(|name| self.store_writes(name));
    }

    /// The writes that a box has now, and the number of those that are no longer known.
    pub(super) fn present_writes(&self, name: &BoxName) -> Result<(Vec<RecordedWrite>, u64), OperationError> {
        let reply = self.0.fabrics.ask(orders::Writes { name: name.clone() })?;
        self.writes_by(name, reply)
    }

    /// As [`present_writes`](Self::present_writes), from the answer of the fabric.
    pub(super) fn writes_by(
        &self,
        name: &BoxName,
        reply: WritesReply,
    ) -> Result<(Vec<RecordedWrite>, u64), OperationError> {
        let (known, last, omitted) = known(reply);
        // A fabric that has not started the box does not know of them.
        Ok(if last > 0 { (known, omitted) } else { (self.0.store().writes(name)?, 0) })
    }

    /// The recorded writes to a box that another one is about to replace. If the new one does not keep them, they are
    /// reported as lost.
    pub(super) fn writes_of_replaced(
        &self,
        operation: &mut Operation,
        name: &BoxName,
        is_kept: bool,
    ) -> Result<Vec<RecordedWrite>, OperationError> {
        let (writes, omitted) = match self.present_writes(name) {
            Ok(present) => present,
            // The fabric has ended, for example.
            Err(_) => (self.0.store().writes(name)?, 0),
        };
        let known = if is_kept { &[] } else { writes.as_slice() };
        for message in RecordedWrite::losses(name, "replaced", known, omitted) {
            operation.note(EventKind::WritesLost, name, message);
        }
        Ok(writes)
    }

    /// Stores which of these writes a box has that was just made to replace another one. Returns the others: those that it
    /// refused when it started, which the fabric reports.
    pub(super) fn carry_writes(
        &self,
        operation: &mut Operation,
        managed: &ManagedBox,
        mut writes: Vec<RecordedWrite>,
    ) -> Result<Vec<RecordedWrite>, OperationError> {
        let name = &managed.name;
        if writes.is_empty() {
            return Ok(writes);
        }
        if !managed.inner().definition.start {
            let last = writes.iter().map(|write| write.number).max().unwrap_or_default();
            operation.add(StoreChange::ReplaceWrites(name.clone(), writes, last));
            return Ok(Vec::new());
        }
        let (left, last, _) = self.known_writes(name)?;
        writes.retain(|write| !left.iter().any(|left| left.number == write.number));
        operation.add(StoreChange::ReplaceWrites(name.clone(), left, last));
        Ok(writes)
    }

    /// The boxes among these that differ from their definitions by writes to their handlers.
    pub(super) fn drift(&self, names: impl Iterator<Item = BoxName>) -> Result<Vec<Drift>, OperationError> {
        let mut drift = Vec::new();
        for name in names.filter(|name| self.0.managed_box(name).is_ok()) {
            let writes = match self.present_writes(&name) {
                Ok((writes, _)) => writes,
                // The fabric has ended, for example.
                Err(_) => self.0.store().writes(&name)?,
            };
            if !writes.is_empty() {
                drift.push(Drift { name, writes });
            }
        }
        Ok(drift)
    }
}

/// The writes in an answer of the fabric, the number of the last one, and the number of those that are no longer known.
fn known(reply: WritesReply) -> (Vec<RecordedWrite>, u64, u64) {
    let WritesReply { mut writes, own, last, omitted } = reply;
    writes.extend(own);
    sorting::sort_by_key(&mut writes, |write| write.number);
    (writes, last, omitted)
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{TestBed, process, until};
    use crate::error::OperationError;
    use api::{BoxName, CreateBox};

    const FILTER: &str = "Idle -> c :: Counter -> f :: IPFilter(allow all) -> Discard;";

    /// Neither the box, nor the fabric, nor the store has it, and the next fabric does not get it.
    #[test]
    fn a_write_that_cannot_be_stored_is_taken_back() {
        for earlier in [None, Some("deny all")] {
            for keep_writes in [false, true] {
                let (bed, name) = (TestBed::with_click(), "fw".parse::<BoxName>().unwrap());
                bed.create_box(CreateBox { keep_writes, ..process("fw", FILTER) }).unwrap();
                let write = |value: &str| bed.write(&"fw/f.rules".parse().unwrap(), value.as_bytes());
                earlier.into_iter().for_each(|value| write(value).unwrap());
                let rules = earlier.unwrap_or("allow all");
                let writes: Vec<String> = earlier.iter().map(|value| format!("f.rules {value}")).collect();
                bed.fail_commits(true);
                assert!(write("allow udp").is_err());
                assert_eq!((bed.value("fw/f.config"), bed.written(&name)), (rules.into(), writes.clone()));
                bed.fail_commits(false);
                assert_eq!((bed.value("fw/f.config"), bed.written(&name)), (rules.into(), writes.clone()));
                bed.replace_fabric_of(&name);
                match keep_writes {
                    true => {
                        assert_eq!((bed.value("fw/f.config"), bed.written(&name)), (rules.into(), writes))
                    }
                    false => assert_eq!(bed.value("fw/f.config"), "allow all"),
                }
                write("allow tcp").unwrap();
                assert_eq!((bed.value("fw/f.config"), bed.written(&name).len()), ("allow tcp".into(), 1));
            }
        }
    }

    /// That a box is being started is true. That there is no such box is not.
    #[test]
    fn a_box_is_read_and_written_while_its_fabric_is_rebuilt() {
        let bed = TestBed::with_click();
        bed.create_box(CreateBox { keep_writes: true, ..process("fw", FILTER) }).unwrap();
        let is_done = |done: Result<(), OperationError>| {
            assert!(!matches!(done, Err(OperationError::NoBox(_))), "{done:?}");
            done.is_ok()
        };
        let end_fabric = || {
            let before = bed.supervisor.0.rebuilds.watch();
            bed.kill_fabric();
            until("the next fabric is being rebuilt", || bed.supervisor.0.rebuilds.was_any(before));
        };
        let mut last = "allow all";
        for rules in ["allow udp", "allow tcp", "deny all", "allow udp"] {
            end_fabric();
            until("it is read", || is_done(bed.read(&"fw/f.config".parse().unwrap(), b"").map(drop)));
            assert_eq!(bed.value("fw/f.config"), last);
            bed.replace_fabric();
            end_fabric();
            until("it is written", || is_done(bed.write(&"fw/f.rules".parse().unwrap(), rules.as_bytes())));
            assert_eq!(bed.value("fw/f.config"), rules);
            last = rules;
        }
    }
}
