//! What the daemon answers when an operation failed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configuration::Diagnostic;

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// What the operation is about does not exist. Status 404.
    NotFound,
    /// The name is taken. Status 409.
    Exists,
    /// The request can't be understood, or asks for something that makes no sense. Status 400.
    Invalid,
    /// A configuration, a handler's value or a stack was refused; `details` has the diagnostics. Nothing was changed.
    /// Status 422.
    Refused,
    /// It is in a state in which this can't be done, such as a stopped box that is to be read. Status 409.
    Busy,
    /// The caller may not do this: no token, or a wrong one. Status 401.
    Forbidden,
    /// The request is longer than the daemon takes. Status 413.
    TooLarge,
    /// A limit of the daemon or of the host is reached. Status 429.
    Limit,
    /// The definition can't be stored, as when the disk is full. Nothing was changed. Status 507.
    Store,
    /// The daemon failed; the message has what is known. Status 500.
    Internal,
    /// A box did not answer in time. Status 504.
    Timeout,
    /// A box ended while the operation was under way. Status 410.
    Gone,
    /// A code that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ErrorCode {
    /// The status of the HTTP reply.
    pub const fn status(self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::Exists | Self::Busy => 409,
            Self::Invalid => 400,
            Self::Refused => 422,
            Self::Forbidden => 401,
            Self::TooLarge => 413,
            Self::Limit => 429,
            Self::Store => 507,
            Self::Internal | Self::Unknown => 500,
            Self::Timeout => 504,
            Self::Gone => 410,
        }
    }

    /// All that a daemon sends.
    pub const ALL: [Self; 12] = [
        Self::NotFound,
        Self::Exists,
        Self::Invalid,
        Self::Refused,
        Self::Busy,
        Self::Forbidden,
        Self::TooLarge,
        Self::Limit,
        Self::Store,
        Self::Internal,
        Self::Timeout,
        Self::Gone,
    ];
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, for people: a sentence that says what to do. What a box said in it is escaped.
    pub message: String,
    /// What is wrong with a configuration; empty for other failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Diagnostic>,
}

impl ApiError {
    /// A failure without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// The body of a reply whose status is not of the 200s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReply {
    /// The failure.
    pub error: ApiError,
}
