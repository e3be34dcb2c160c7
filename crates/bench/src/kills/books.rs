//! The books of a client: what was acknowledged.

use super::change::{Change, ChangeError};
use super::definitions::Definitions;
use api::ErrorCode;
use api::client::{Client, ClientError};
use random::Random;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the clients what happens.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// A process was killed, or is about to be.
    pub(super) has_killed: AtomicBool,
    /// The clients are to end.
    pub(super) is_over: AtomicBool,
}

/// The books of a client.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// What was acknowledged.
    pub(super) definitions: Definitions,
    /// The operation of which it is unknown whether it took effect.
    pub(super) open: Option<Change>,
    pub(super) acknowledged: u64,
}

impl Books {
    /// Runs random operations until the end, or until an operation is open. Returns an error that no operation may have.
    pub(super) fn run(
        &mut self,
        client: &Client,
        random: &mut Random,
        prefix: &str,
        signals: &Signals,
    ) -> Option<String> {
        while !signals.is_over.load(Ordering::SeqCst) {
            let change = Change::new(random, prefix);
            match change.send(client) {
                Ok(()) => {
                    change.book(&mut self.definitions);
                    self.acknowledged += 1;
                }
                Err(ChangeError::Name(error)) => return Some(format!("{change:?}: {error}")),
                Err(ChangeError::Client(ClientError::Api(error))) => {
                    let is_doubtful = matches!(
                        error.code,
                        ErrorCode::Busy | ErrorCode::Internal | ErrorCode::Timeout | ErrorCode::Gone
                    );
                    if is_doubtful && signals.has_killed.load(Ordering::SeqCst) {
                        self.open = Some(change);
                        return None;
                    }
                    if error.code == ErrorCode::Internal {
                        return Some(format!("{change:?}: {error}"));
                    }
                    // Refused: for example, there is no such box.
                }
                Err(ChangeError::Client(error)) if is_late(&error) => {
                    return Some(format!("{change:?}: {error}"));
                }
                // The daemon has gone.
                Err(ChangeError::Client(_)) => {
                    self.open = Some(change);
                    return None;
                }
            }
        }
        None
    }

    /// Whether a daemon has what the books say, with or without the open operation.
    pub(super) fn agree(&mut self, found: &Definitions) -> bool {
        let before = self.definitions.clone();
        let after = self.open.as_ref().map(|open| {
            let mut after = before.clone();
            open.book(&mut after);
            after
        });
        for mut possible in std::iter::once(before).chain(after) {
            possible.learn_rules(found);
            if possible == *found {
                self.definitions = possible;
                self.open = None;
                return true;
            }
        }
        false
    }
}

/// Whether a call failed because the answer took too long.
fn is_late(error: &ClientError) -> bool {
    matches!(error, ClientError::Connection { cause, .. } if cause.kind() == ErrorKind::TimedOut)
}
