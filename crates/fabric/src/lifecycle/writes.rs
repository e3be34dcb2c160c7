//! Writes to handlers of boxes: those that change a configuration are recorded, executed again, or reported as lost.

use super::state::Fabric;
use crate::boxes::{Instance, ManagedBox, NewWrite, OwnWrite, Phase, WriteRecord, in_box};
use crate::error::OperationError;
use crate::fair_lock::LockTimeout;
use crate::limits::{CALL_TIMEOUT, MAX_OWN_WRITE_BYTES, MAX_RECORDED_WRITES};
use boundary::{RefusedWrite, Request, Written};
use model::escape::{self, EscapedText};
use model::{BoxName, ConfigurationName, EventKind, RecordedWrite, WriteEffect};
use protocol::fabric::WritesReply;
use std::sync::Arc;

/// Recorded writes that a box did not execute again, each with the reason.
#[derive(Debug, Default)]
pub(super) struct RefusedWrites(pub(super) Vec<(RecordedWrite, String)>);

impl RefusedWrites {
    /// Decodes the reply of a box to which these writes were sent. A reply that can't be read refuses none.
    pub(super) fn decode(sent: &[&RecordedWrite], reply: &[u8]) -> Self {
        let refused = RefusedWrite::decode(reply).unwrap_or_default();
        let named = refused.into_iter().filter_map(|refused| {
            let write = sent.get(usize::try_from(refused.number).ok()?)?;
            Some(((*write).clone(), EscapedText::new(refused.reason.as_bytes()).to_string()))
        });
        Self(named.collect())
    }

    /// Removes them from a record.
    pub(super) fn forget(&self, record: &mut WriteRecord) {
        record.lose(|write| self.0.iter().any(|(refused, _)| refused.number == write.number));
    }
}

/// What a box reports of its own writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum OwnWriteEvent<'a> {
    Write { handler: &'a [u8], value: &'a [u8], written: Written, times: u64 },
    More(u64),
    Gone,
}

/// What a write changed in a configuration; `None` if nothing.
fn effect(written: Written) -> Option<WriteEffect> {
    match written.effect {
        boundary::WriteEffect::Action => None,
        boundary::WriteEffect::Setting => Some(WriteEffect::Setting),
        boundary::WriteEffect::Edit => Some(WriteEffect::Edit),
    }
}

/// The configuration that a box names.
fn own_configuration(name: &[u8]) -> Option<ConfigurationName> {
    match name {
        b"" => Some(ConfigurationName::main()),
        name => std::str::from_utf8(name).ok()?.parse().ok(),
    }
}

impl Fabric {
    /// Writes a handler of a running box. Returns the write if it changed the configuration: it is then recorded.
    pub(crate) fn write_handler(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
        (handler, value): (&str, &[u8]),
    ) -> Result<Option<RecordedWrite>, OperationError> {
        let managed = self.0.managed_box(name)?;
        let _writing = managed
            .writing
            .lock_within(CALL_TIMEOUT)
            .map_err(|LockTimeout| OperationError::Timeout(name.clone(), CALL_TIMEOUT))?;
        let instance = {
            let inner = managed.inner();
            if inner.definition.keep_writes && !inner.writes.has_room(configuration, handler, value.len()) {
                return Err(OperationError::Limit("writes that the box keeps", MAX_RECORDED_WRITES));
            }
            match (inner.phase, &inner.instance) {
                (Phase::Running, Some(instance)) => instance.clone(),
                (phase, _) => {
                    let hint = "only a running box has handlers";
                    return Err(OperationError::State { name: name.clone(), state: phase.words(), hint });
                }
            }
        };
        let request = Request::Write { name: in_box(configuration), handler, value };
        let reply = instance
            .call(&request, CALL_TIMEOUT)
            .map_err(|error| OperationError::call(name, error, CALL_TIMEOUT))?;
        // A box that says nothing sensible harms nobody but itself.
        let written = Written::decode(&reply).unwrap_or_default();
        let Some(effect) = effect(written) else { return Ok(None) };
        let in_config = written.in_config;
        let mut inner = managed.inner();
        // It may have ended since, and another instance does not have what was written.
        if !inner.instance.as_ref().is_some_and(|present| Arc::ptr_eq(present, &instance)) {
            return Err(OperationError::Gone(name.clone()));
        }
        Ok(Some(inner.writes.add(NewWrite { configuration, handler, value, effect, in_config })))
    }

    /// The writes to a box's handlers that changed its configurations.
    pub(crate) fn writes(&self, name: &BoxName) -> Result<WritesReply, OperationError> {
        let managed = self.0.managed_box(name)?;
        let inner = managed.inner();
        let record = &inner.writes;
        let (own, writes) = record.writes().iter().cloned().partition(RecordedWrite::is_own);
        Ok(WritesReply { writes, own, last: record.last(), omitted: record.omitted() })
    }

    /// Records what an instance of a box wrote itself. Returns the handler if it was not recorded yet.
    pub(super) fn note_own_write(
        &self,
        managed: &ManagedBox,
        instance: &Instance,
        (name, event): (&[u8], OwnWriteEvent),
    ) -> Option<String> {
        let configuration = own_configuration(name)?;
        let mut inner = managed.inner();
        let is_present =
            inner.instance.as_ref().is_some_and(|present| std::ptr::eq(&raw const **present, instance));
        let is_installed = inner.configurations.iter().any(|there| there.name == configuration);
        if !is_present || !is_installed {
            return None;
        }
        match event {
            OwnWriteEvent::Write { handler, value, written, times } => {
                let effect = effect(written)?;
                let cut = |bytes: &[u8]| bytes.get(..MAX_OWN_WRITE_BYTES).unwrap_or(bytes).to_vec();
                let (handler, value) = (escape::line(&cut(handler)), cut(value));
                let write = NewWrite {
                    configuration: &configuration,
                    handler: &handler,
                    value: &value,
                    effect,
                    in_config: written.in_config,
                };
                let is_new = inner.writes.add_own(OwnWrite { write, times });
                is_new.then(|| handler.clone())
            }
            OwnWriteEvent::More(times) => {
                inner.writes.add_omitted_own(&configuration, times);
                None
            }
            OwnWriteEvent::Gone => {
                let lost = inner.writes.lose_own(&configuration);
                drop(inner);
                self.report_lost(managed, "given a new configuration", &lost, 0);
                None
            }
        }
    }

    /// Reports handlers that a box wrote itself for the first time.
    pub(super) fn report_own_writes(&self, managed: &ManagedBox, handlers: &[String]) {
        if handlers.is_empty() || !managed.inner().writes.takes_own_event() {
            return;
        }
        let name = &managed.name;
        let message = format!("box {name} changed its own configuration: it wrote {}", handlers.join(", "));
        managed.note(&message);
        self.0.note(EventKind::OwnWrites, name, message);
    }

    /// Reports writes that a box no longer has because it was `how`.
    pub(super) fn report_lost(&self, managed: &ManagedBox, how: &str, lost: &[RecordedWrite], omitted: u64) {
        if omitted == 0 && lost.iter().all(RecordedWrite::is_own) && !managed.inner().writes.takes_own_event()
        {
            return;
        }
        for message in RecordedWrite::losses(&managed.name, how, lost, omitted) {
            managed.note(&message);
            self.0.note(EventKind::WritesLost, &managed.name, message);
        }
    }

    /// Reports writes that a box refused to execute again.
    pub(super) fn report_refused(&self, managed: &ManagedBox, refused: &RefusedWrites) {
        /// Refused writes that are reported one by one.
        const MAX_REPORTED: usize = 16;
        let name = &managed.name;
        let report = |message: String| {
            managed.note(&message);
            self.0.note(EventKind::WritesLost, name, message);
        };
        for (write, reason) in refused.0.iter().take(MAX_REPORTED) {
            let path = RecordedWrite::summary(std::slice::from_ref(write));
            report(format!("box {name} refused an earlier write to {path}, which is lost: {reason}"));
        }
        if let Some(others @ 1..) = refused.0.len().checked_sub(MAX_REPORTED) {
            report(format!("box {name} refused {others} other earlier writes, which are lost"));
        }
    }
}
