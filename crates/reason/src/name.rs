//! The names of reasons, as they travel between processes.

use crate::Reason;

/// What the names of reasons begin with that users' functions declare: `user:FUNCTION/REASON`.
pub const USER_PREFIX: &str = "user:";

/// The longest name of a user function's reason, in bytes. A longer one would let a box fill its owner's metrics.
pub const MAX_USER_NAME: usize = 64;

/// A reason's name that came from another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A reason on the list.
    Listed(Reason),
    /// One that a user's function declares.
    User(&'a str),
}

impl<'a> Name<'a> {
    /// Reads a name. Anything that is not a name reads as [`Reason::UNDECLARED`].
    pub fn parse(text: &'a str) -> Name<'a> {
        match Reason::find(text) {
            Some(reason) => Name::Listed(reason),
            None if is_user_name(text) => Name::User(text),
            None => Name::Listed(Reason::UNDECLARED),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &'a str {
        match self {
            Name::Listed(reason) => reason.name(),
            Name::User(name) => name,
        }
    }
}

/// Whether this is a well-formed name of a user function's reason: the prefix, then function and reason in lower-case
/// letters, digits and underscores, separated by a slash.
pub fn is_user_name(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    text.len() <= MAX_USER_NAME
        && text
            .strip_prefix(USER_PREFIX)
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(function, reason)| is_word(function) && is_word(reason))
}
