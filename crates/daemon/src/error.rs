//! Why an operation failed.

use crate::store::StoreError;
use api::{ApiError, BoxName, ConfigurationName, Diagnostic, ErrorCode, PortName, StackName, SwitchName};
use sandbox::{CallError, CreateError};
use std::fmt;
use std::time::Duration;

/// Why an operation failed. What was before is as it was.
#[derive(Debug)]
pub enum OperationError {
    /// There is no such box.
    NoBox(BoxName),
    /// There is no such switch.
    NoSwitch(SwitchName),
    /// There is no such port.
    NoPort(SwitchName, PortName),
    /// A box has no port of this number.
    NoBoxPort(BoxName, u8),
    /// A box has no configuration of this name.
    NoConfiguration(BoxName, ConfigurationName),
    /// There is no such stack.
    NoStack(StackName),
    /// The stack waits for its confirmation.
    Unconfirmed(StackName),
    /// The stack does not wait for a confirmation.
    NothingToConfirm(StackName),
    /// There is no such address in the switch's table.
    NoAddress(SwitchName, api::MacAddr),
    /// A box has written no file of this name.
    NoFile(BoxName, String),
    /// The box has not crashed.
    NoCrash(BoxName),
    /// The box says that it has no such handler.
    Missing(String),
    /// The name is taken: of what, and by which.
    Exists(&'static str, String),
    /// The stack wants to have what is there without being its own: a box or a switch, and which one.
    Foreign(&'static str, String),
    /// The box is in a state in which this can't be done.
    State {
        /// The box.
        name: BoxName,
        /// What it is doing.
        state: &'static str,
        /// What would help.
        hint: &'static str,
    },
    /// The request asks for what makes no sense.
    Invalid(String),
    /// The configuration was refused.
    Refused(Vec<Diagnostic>),
    /// The box refused what a handler was given.
    HandlerRefused(String),
    /// What was asked for is refused for another reason, with a sentence.
    Denied(String),
    /// What was sent is too long: what, its bytes, and how many are taken.
    TooLarge(&'static str, usize, usize),
    /// A limit is reached: of what, and how many there may be.
    Limit(&'static str, usize),
    /// No processor is left that a box could have for itself.
    NoProcessor {
        /// How many there are in all.
        all: usize,
    },
    /// The host's limit is reached.
    HostLimit(String),
    /// The box can't be made.
    Create(CreateError),
    /// The box did not answer in time.
    Timeout(BoxName, Duration),
    /// The box ended meanwhile.
    Gone(BoxName),
    /// The box broke a protocol, and was ended.
    Broken(BoxName, CallError),
    /// The definition can't be stored.
    Store(StoreError),
    /// The daemon is ending.
    Ending,
    /// The operating system refused something.
    System(&'static str, std::io::Error),
}

impl OperationError {
    /// The failure of a call of a box.
    pub(crate) fn call(name: &BoxName, error: CallError, time: Duration) -> Self {
        match error {
            CallError::Refused(reason) => Self::HandlerRefused(crate::escape::text(reason.as_bytes())),
            CallError::Missing(reason) => {
                let reason = crate::escape::text(reason.as_bytes());
                Self::Missing(format!("{reason}; `clickbox handlers {name}` lists what there is"))
            }
            CallError::Rejected(found) => Self::Refused(crate::boxes::diagnostics(found, None)),
            CallError::TimedOut => Self::Timeout(name.clone(), time),
            CallError::Ended => Self::Gone(name.clone()),
            error @ (CallError::Channel(_) | CallError::Reply(_)) => Self::Broken(name.clone(), error),
        }
    }

    /// The code of the API for it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoBox(_)
            | Self::NoSwitch(_)
            | Self::NoPort(..)
            | Self::NoBoxPort(..)
            | Self::NoConfiguration(..)
            | Self::NoStack(_)
            | Self::NoAddress(..)
            | Self::NoFile(..)
            | Self::NoCrash(_)
            | Self::Missing(_) => ErrorCode::NotFound,
            Self::Exists(..) | Self::Foreign(..) => ErrorCode::Exists,
            Self::State { .. } | Self::Unconfirmed(_) | Self::NothingToConfirm(_) | Self::Ending => {
                ErrorCode::Busy
            }
            Self::Invalid(_) => ErrorCode::Invalid,
            Self::Refused(_) | Self::HandlerRefused(_) | Self::Denied(_) => ErrorCode::Refused,
            Self::TooLarge(..) => ErrorCode::TooLarge,
            Self::Limit(..) | Self::NoProcessor { .. } | Self::HostLimit(_) => ErrorCode::Limit,
            Self::Create(error) => match error {
                CreateError::Settings(_) | CreateError::Layout(_) => ErrorCode::Invalid,
                CreateError::NoKvm => ErrorCode::Refused,
                CreateError::NoMemory | CreateError::System(_) | CreateError::Process(_) => ErrorCode::Limit,
                _ => ErrorCode::Internal,
            },
            Self::Timeout(..) => ErrorCode::Timeout,
            Self::Gone(_) => ErrorCode::Gone,
            Self::Broken(..) | Self::System(..) => ErrorCode::Internal,
            Self::Store(_) => ErrorCode::Store,
        }
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBox(name) => {
                write!(f, "there is no box {name}; `clickbox ps` lists those that there are")
            }
            Self::NoSwitch(name) => write!(f, "there is no switch {name}; `clickbox switch ls` lists them"),
            Self::NoPort(switch, port) => {
                write!(f, "switch {switch} has no port {port}; `clickbox port ls {switch}` lists them")
            }
            Self::NoBoxPort(name, port) => {
                write!(f, "box {name} has no port {port}; `clickbox show {name}` lists them")
            }
            Self::NoConfiguration(name, configuration) => {
                write!(f, "box {name} has no configuration {configuration}")
            }
            Self::Unconfirmed(name) => write!(
                f,
                "stack {name} waits for its confirmation; `clickbox confirm {name}` keeps it, `clickbox rollback {name}` takes it back"
            ),
            Self::NothingToConfirm(name) => write!(f, "stack {name} does not wait for a confirmation"),
            Self::NoStack(name) => {
                write!(f, "there is no stack {name}; `clickbox stacks` lists those that there are")
            }
            Self::NoAddress(switch, mac) => write!(f, "{mac} is not in the table of switch {switch}"),
            Self::NoFile(name, file) => {
                write!(
                    f,
                    "box {name} has written no file {file}; `clickbox files {name}` lists those that it has"
                )
            }
            Self::NoCrash(name) => write!(f, "box {name} has not crashed"),
            Self::Missing(what) | Self::HandlerRefused(what) => f.write_str(what),
            Self::Exists(what, name) => write!(f, "there is a {what} {name} already"),
            Self::Foreign(what, name) => write!(
                f,
                "there is a {what} {name} already, which does not belong to this stack; \
                 remove it, or name it otherwise in the stack's file"
            ),
            Self::State { name, state, hint } => write!(f, "box {name} {state}; {hint}"),
            Self::Invalid(why) | Self::Denied(why) | Self::HostLimit(why) => f.write_str(why),
            Self::Refused(details) => {
                f.write_str("the configuration is refused")?;
                if let Some(first) = details.first() {
                    let lines: Vec<&str> = first.message.lines().map(str::trim).collect();
                    write!(f, ": {}", lines.join(" "))?;
                }
                match details.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " (and {} more)", count - 1),
                }
            }
            Self::TooLarge(what, bytes, most) => {
                write!(f, "{what} has {bytes} bytes; at most {most} are taken")
            }
            Self::Limit(what, most) => write!(f, "there are {most} {what} already, which is the limit"),
            Self::NoProcessor { all } => write!(
                f,
                "no processor is left for a box of its own: there are {all}, of which {} may be boxes' own; \
                 make this box without --dedicated, or remove one that has it",
                all.saturating_sub(1)
            ),
            Self::Create(error) => write!(f, "the box can't be made: {error}"),
            Self::Timeout(name, time) => write!(
                f,
                "box {name} did not answer within {} ms; it may be busy, or in an endless loop",
                time.as_millis()
            ),
            Self::Gone(name) => write!(f, "box {name} ended meanwhile"),
            Self::Broken(name, error) => write!(f, "box {name} was ended: {error}"),
            Self::Store(error) => error.fmt(f),
            Self::Ending => write!(f, "the daemon is ending"),
            Self::System(what, error) => write!(f, "can't {what}: {error}"),
        }
    }
}

impl std::error::Error for OperationError {}

impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CreateError> for OperationError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<OperationError> for ApiError {
    fn from(failure: OperationError) -> Self {
        let (code, message) = (failure.code(), failure.to_string());
        let details = match failure {
            OperationError::Refused(details) => details,
            _ => Vec::new(),
        };
        Self { code, message, details }
    }
}
