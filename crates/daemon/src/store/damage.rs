//! Damage of the store.

use api::Subject;
use std::fmt;
use std::path::PathBuf;

/// A kind of entry: a table whose key is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A box, with its configurations and files.
    Box,
    /// A switch.
    Switch,
    /// A stack.
    Stack,
    /// The previous definition of a stack that awaits confirmation.
    Unconfirmed,
}

impl EntryKind {
    /// All kinds.
    pub(super) const ALL: [Self; 4] = [Self::Box, Self::Switch, Self::Stack, Self::Unconfirmed];

    /// The name of its table.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Box => "boxes",
            Self::Switch => "switches",
            Self::Stack => "stacks",
            Self::Unconfirmed => "unconfirmed",
        }
    }

    /// Its name in the API.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Switch => "switch",
            Self::Stack => "stack",
            Self::Unconfirmed => "unconfirmed",
        }
    }

    /// The columns of its table, in order.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Box => "name, definition, stack, created, running",
            Self::Switch => "name, definition, stack, created",
            Self::Stack => "name, definition, applied",
            Self::Unconfirmed => "name, before",
        }
    }
}

/// Damage that was found in the store.
#[derive(Debug)]
pub(crate) enum Damage {
    /// An entry cannot be used and was set aside.
    Entry {
        /// Its kind.
        kind: EntryKind,
        /// Its name, which may be invalid.
        name: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A finding of SQLite's check of the file.
    Finding(String),
    /// The write-ahead log had no valid header and was renamed to this path.
    Log(PathBuf),
}

impl Damage {
    /// The object that is affected.
    pub(crate) fn subject(&self) -> Subject {
        let Self::Entry { kind, name, .. } = self else { return Subject::Daemon };
        let subject = match kind {
            EntryKind::Box => name.parse().ok().map(Subject::Box),
            EntryKind::Switch => name.parse().ok().map(Subject::Switch),
            EntryKind::Stack | EntryKind::Unconfirmed => name.parse().ok().map(Subject::Stack),
        };
        subject.unwrap_or(Subject::Daemon)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |text: &str| api::escape::line(text.as_bytes());
        match self {
            Self::Entry { kind, name, reason } => {
                let what = match kind {
                    EntryKind::Box => "box",
                    EntryKind::Switch => "switch",
                    EntryKind::Stack => "stack",
                    EntryKind::Unconfirmed => "the previous definition of stack",
                };
                let (name, reason) = (line(name), line(reason));
                write!(
                    f,
                    "{what} {name} was set aside in the store, and the next start tries it again: {reason}"
                )
            }
            Self::Log(path) => write!(
                f,
                "the store's write-ahead log is damaged and was renamed to {}: the latest changes may be lost",
                path.display()
            ),
            Self::Finding(finding) => write!(f, "the store's file is damaged: {}", line(finding)),
        }
    }
}
