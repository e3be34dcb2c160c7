//! Records requests in the audit log.

use super::admission::Peer;
use crate::audit::{DONE, MAX_DETAIL, PendingEntry};
use crate::caller::Caller;
use crate::supervisor::Supervisor;
use api::operation::Entry;
use api::{AuditEntry, ErrorCode, Right, Time, escape};
use axum::extract::RawPathParams;
use std::fmt::Write;

/// What the body of a request adds to its entry.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordNote(PendingEntry);

impl RecordNote {
    /// Records what the request is about, such as `box/fw`.
    pub(super) fn object(&self, kind: &str, name: impl std::fmt::Display) {
        self.0.set_object(format!("{kind}/{name}"));
    }

    /// Records the beginning of a part of the request, escaped.
    pub(super) fn detail(&self, bytes: &[u8]) {
        self.0.set_detail(shortened(bytes));
    }
}

/// The beginning of a part of a request, escaped.
fn shortened(bytes: &[u8]) -> String {
    let start = bytes.get(..MAX_DETAIL).unwrap_or(bytes);
    let mut text: String = escape::line(start).chars().take(MAX_DETAIL).collect();
    if start.len() < bytes.len() {
        // Infallible.
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

/// A request that is recorded when its operation has ended, or when the daemon ends.
#[derive(Debug)]
pub(super) struct Record {
    supervisor: Supervisor,
    entry: PendingEntry,
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
        Some(Self { supervisor: supervisor.clone(), entry: PendingEntry::new(entry) })
    }

    /// The entry of the request.
    pub(super) fn entry(&self) -> PendingEntry {
        self.entry.clone()
    }

    pub(super) fn note(&self) -> RecordNote {
        RecordNote(self.entry.clone())
    }

    /// Records the request with the error of its response, and waits until the entry is on the disk if it must be.
    pub(super) async fn finish(self, error: Option<ErrorCode>) {
        let result = match error {
            None => DONE.into(),
            // The API's name for the code.
            Some(code) => {
                let name = serde_json::to_value(code).ok();
                name.as_ref().and_then(|name| name.as_str()).unwrap_or("unknown").to_string()
            }
        };
        let Some((entry, kept)) = self.entry.take(Some(result)) else { return };
        let written = match self.supervisor.record(entry, kept) {
            // That says nothing of the file.
            Ok(None) => return,
            Ok(Some(synced)) => {
                let lost = || std::io::Error::other("its thread has ended");
                synced.await.unwrap_or_else(|_| Err(lost()))
            }
            Err(error) => Err(error),
        };
        self.supervisor.note_recorded(written);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // The daemon ends. The operation may go on for a moment.
        if let Some((entry, kept)) = self.entry.take(None) {
            drop(self.supervisor.record(entry, kept));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_unprintable_values_are_cut_and_escaped() {
        let detail = shortened(b"a\x1b[2J\n");
        assert!(!detail.contains(['\x1b', '\n']) && detail.starts_with('a'), "{detail:?}");
        let detail = shortened(&vec![b'x'; 10_000]);
        assert!(detail.len() < 2 * MAX_DETAIL && detail.ends_with("(10000 bytes)"), "{detail}");
    }
}
