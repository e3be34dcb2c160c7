//! Records requests in the audit log.

use super::admission::Peer;
use crate::audit::MAX_DETAIL;
use crate::caller::Caller;
use crate::supervisor::Supervisor;
use api::operation::Entry;
use api::{AuditEntry, ErrorCode, Right, Time, escape};
use axum::extract::RawPathParams;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// What the body of a request adds to its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordNote(Arc<Mutex<Noted>>);

#[derive(Clone, Debug, Default)]
struct Noted {
    object: Option<String>,
    detail: String,
}

impl RecordNote {
    /// Records what the request is about, such as `box/fw`.
    pub(super) fn object(&self, kind: &str, name: impl std::fmt::Display) {
        self.noted().object = Some(format!("{kind}/{name}"));
    }

    /// Records the beginning of a part of the request, escaped.
    pub(super) fn detail(&self, bytes: &[u8]) {
        let start = bytes.get(..MAX_DETAIL).unwrap_or(bytes);
        let mut text: String = escape::line(start).chars().take(MAX_DETAIL).collect();
        if start.len() < bytes.len() {
            // Infallible.
            let _ = write!(text, "... ({} bytes)", bytes.len());
        }
        self.noted().detail = text;
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is recorded when its operation has ended, or when the daemon ends.
#[derive(Debug)]
pub(super) struct Record {
    supervisor: Supervisor,
    entry: Option<AuditEntry>,
    note: RecordNote,
}

impl Record {
    /// Begins the entry of a request. `None` if requests of this operation are not recorded.
    pub(super) fn begin(
        supervisor: &Supervisor,
        operation: &dyn Entry,
        path: &RawPathParams,
        caller: &Caller,
        peer: Option<Peer>,
    ) -> Option<Self> {
        // What only reads its owner's objects changes nothing. Checks run in a box of their own.
        if operation.right() == Right::Read || operation.name() == "check" {
            return None;
        }
        let (mut object, mut detail) = (String::new(), String::new());
        for (kind, name) in path.iter() {
            let name = escape::line(name.as_bytes());
            let name: String = name.chars().take(MAX_DETAIL).collect();
            match kind {
                "box" | "switch" | "stack" | "service" => object = format!("{kind}/{name}"),
                // Infallible.
                _ => drop(write!(detail, "{}{kind} {name}", if detail.is_empty() { "" } else { ", " })),
            }
        }
        let peer = match peer {
            Some(Peer::User(Some(user))) => format!("uid {user}"),
            Some(Peer::Address(address)) => address.to_string(),
            Some(Peer::User(None)) | None => "unknown".into(),
        };
        let owner = match caller {
            Caller::User(user) => Some(user.owner.clone()),
            Caller::Administrator => None,
        };
        let entry = AuditEntry {
            sequence: 0,
            time: Time::now(),
            user: caller.to_string(),
            owner,
            peer,
            operation: operation.name().into(),
            object,
            detail,
            result: "unanswered".into(),
        };
        Some(Self { supervisor: supervisor.clone(), entry: Some(entry), note: RecordNote::default() })
    }

    pub(super) fn note(&self) -> RecordNote {
        self.note.clone()
    }

    /// The entry with what the body added.
    fn take(&mut self) -> Option<AuditEntry> {
        let mut entry = self.entry.take()?;
        let noted = self.note.noted().clone();
        if let Some(object) = noted.object {
            entry.object = object;
        }
        if !noted.detail.is_empty() {
            let separator = if entry.detail.is_empty() { "" } else { ": " };
            entry.detail = format!("{}{separator}{}", entry.detail, noted.detail);
        }
        entry.time = Time::now();
        Some(entry)
    }

    /// Records the request with the error of its response, and waits until the entry is on the disk.
    pub(super) async fn finish(mut self, error: Option<ErrorCode>) {
        let Some(mut entry) = self.take() else { return };
        entry.result = match error {
            None => "done".into(),
            // The API's name for the code.
            Some(code) => {
                let name = serde_json::to_value(code).ok();
                name.as_ref().and_then(|name| name.as_str()).unwrap_or("unknown").to_string()
            }
        };
        if let Some(written) = self.supervisor.record(entry) {
            let lost = || std::io::Error::other("its thread has ended");
            let result = written.await.unwrap_or_else(|_| Err(lost()));
            self.supervisor.note_recorded(result);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // The daemon ends. The operation may go on for a moment.
        if let Some(entry) = self.take() {
            drop(self.supervisor.record(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_unprintable_values_are_cut_and_escaped() {
        let note = RecordNote::default();
        note.detail(b"a\x1b[2J\n");
        let detail = note.noted().detail.clone();
        assert!(!detail.contains(['\x1b', '\n']) && detail.starts_with('a'), "{detail:?}");
        note.detail(&vec![b'x'; 10_000]);
        let detail = note.noted().detail.clone();
        assert!(detail.len() < 2 * MAX_DETAIL && detail.ends_with("(10000 bytes)"), "{detail}");
    }
}
