//! The error that the daemon returns when an operation fails.

use std::error::Error;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configuration::Diagnostic;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The box, switch, port or other subject of the operation does not exist. Status 404.
    NotFound,
    /// The name is taken. Status 409.
    Exists,
    /// The request is malformed or asks for something impossible. Status 400, or 405 for a method that its path does not have.
    Invalid,
    /// A configuration, a handler's value or a stack was rejected; `details` has the diagnostics. Nothing changed.
    /// Status 422.
    Refused,
    /// The state of the subject does not allow the operation; for example, handlers of a stopped box cannot be read.
    /// Status 409.
    Busy,
    /// The token is missing or wrong. Status 401.
    Forbidden,
    /// The token does not give the right that the request needs. Status 403.
    Denied,
    /// The request is longer than the daemon accepts. Status 413.
    TooLarge,
    /// A limit of the daemon or of the host is reached. Status 429.
    Limit,
    /// The definition cannot be stored, for example because the disk is full. Nothing changed. Status 507.
    Store,
    /// The daemon itself failed; the message gives the cause, if it is known. Status 500.
    Internal,
    /// A box did not answer in time. Status 504.
    Timeout,
    /// The box ended during the operation. Status 410.
    Gone,
    /// A code that this version of the client does not know.
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
            Self::Denied => 403,
            Self::TooLarge => 413,
            Self::Limit => 429,
            Self::Store => 507,
            Self::Internal | Self::Unknown => 500,
            Self::Timeout => 504,
            Self::Gone => 410,
        }
    }

    /// All codes that a daemon sends.
    pub const ALL: [Self; 13] = [
        Self::NotFound,
        Self::Exists,
        Self::Invalid,
        Self::Refused,
        Self::Busy,
        Self::Forbidden,
        Self::Denied,
        Self::TooLarge,
        Self::Limit,
        Self::Store,
        Self::Internal,
        Self::Timeout,
        Self::Gone,
    ];
}

/// The precise reason of a failure. It is set where a client can do more than show the message, for example list the
/// existing boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorReason {
    /// The box does not exist.
    NoBox,
    /// The switch does not exist.
    NoSwitch,
    /// The switch has no such port.
    NoPort,
    /// The box has no such port.
    NoBoxPort,
    /// The stack does not exist.
    NoStack,
    /// The service does not exist.
    NoService,
    /// The switch has no such chain.
    NoChain,
    /// The box is an instance of a service, which alone changes it.
    Instance,
    /// The box has no such handler.
    NoHandler,
    /// The box has written no such file.
    NoFile,
    /// The stack waits to be confirmed or rolled back.
    Unconfirmed,
    /// The object is in use, and the request does not force its removal.
    InUse,
    /// The fabric is drained: it takes no new boxes and starts none.
    Draining,
    /// No CPU is free that a box could have for itself.
    NoProcessor,
    /// The request has no token.
    NoToken,
    /// The request has a token that the daemon does not know.
    WrongToken,
    /// The token does not give a right that the operation needs.
    NoRight,
    /// The owner would have more than the token's quota.
    Quota,
    /// A reason that this version of the client does not know.
    #[serde(other)]
    Unknown,
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// The kind of the failure, for programs.
    pub code: ErrorCode,
    /// The precise reason, where a client can react to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ErrorReason>,
    /// What the reason is about, in the same form as in events: `box/fw`, `switch/lan/tap0`, `stack/web`,
    /// `service/ids`, `chain/lan/web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// A message for people. Texts from boxes are escaped.
    pub message: String,
    /// The diagnostics of a rejected configuration; empty for other failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Diagnostic>,
}

impl ApiError {
    /// A failure without reason, subject and details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, reason: None, subject: None, message: message.into(), details: Vec::new() }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ApiError {}

/// An error and its causes in one line, `opening the store: disk is full`. A cause that already ends the text is not
/// repeated.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

/// The body of a reply whose status is not in the 200s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReply {
    /// The failure.
    pub error: ApiError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn each_cause_is_printed_once() {
        let cause = |text, next: Option<Layer>| Layer(text, next.map(Box::new));
        let disk = || cause("disk full", None);
        assert_eq!(with_causes(&disk()), "disk full");
        let log = cause("can't write the log", Some(disk()));
        assert_eq!(
            with_causes(&cause("can't store", Some(log))),
            "can't store: can't write the log: disk full"
        );
        assert_eq!(with_causes(&cause("can't store: disk full", Some(disk()))), "can't store: disk full");
    }

    #[test]
    fn reasons_of_later_daemons_are_read() {
        let text = r#"{"code": "busy", "reason": "moon_phase", "message": "wait"}"#;
        let error: ApiError = serde_json::from_str(text).expect("an error");
        assert_eq!((error.code, error.reason), (ErrorCode::Busy, Some(ErrorReason::Unknown)));
        assert_eq!(
            serde_json::to_string(&ApiError::new(ErrorCode::Busy, "wait")).expect("JSON"),
            r#"{"code":"busy","message":"wait"}"#
        );
    }
}
