//! The error of an operation.

use crate::store::StoreError;
use api::Subject;
use api::escape::EscapedText;
use api::{
    ApiError, BoxName, ConfigurationName, Device, Diagnostic, ErrorCode, ErrorReason, PipeName, PortName,
    StackName, SwitchName,
};
use sandbox::{CallError, CreateError, SystemError};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use switch::TableError;
use switch::driver::PcapError;

/// Why an operation failed. The state is unchanged.
///
/// Messages use the terms of the API: boxes, switches, operations. Advice that depends on the client program is left to
/// that program, which can derive it from [`ErrorReason`].
#[derive(Debug)]
pub enum OperationError {
    /// The box does not exist.
    NoBox(BoxName),
    /// The switch does not exist.
    NoSwitch(SwitchName),
    /// The switch has no such port.
    NoPort(SwitchName, PortName),
    /// The box has no port of this number.
    NoBoxPort(BoxName, u8),
    /// The box has no configuration of this name.
    NoConfiguration(BoxName, ConfigurationName),
    /// The stack does not exist.
    NoStack(StackName),
    /// The stack waits to be confirmed or rolled back.
    Unconfirmed(StackName),
    /// The stack does not wait to be confirmed.
    NothingToConfirm(StackName),
    /// The address is not in the switch's table.
    NoAddress(SwitchName, api::MacAddr),
    /// The store has set no entry of this number aside.
    NoEntry(i64),
    /// The box has written no file of this name.
    NoFile(BoxName, String),
    /// The box has not crashed.
    NoCrash(BoxName),
    /// The box reports that it has no such handler, with this message.
    NoHandler(BoxName, EscapedText),
    /// An object of this kind and name already exists.
    Exists(Subject),
    /// The stack defines a box or a switch that exists but is not part of the stack.
    Foreign(Subject),
    /// The box is in a state that does not allow the operation.
    State {
        /// The box.
        name: BoxName,
        /// The current state.
        state: &'static str,
        /// The operation that would help.
        hint: &'static str,
    },
    /// Another operation changes or uses the object.
    Changing(Subject),
    /// The object is in use by these, or not stopped if there are none.
    InUse(Subject, Vec<Subject>),
    /// The request is invalid.
    Invalid(RequestError),
    /// The configuration was rejected.
    Refused(Vec<Diagnostic>),
    /// The box rejected the handler call, with this message.
    HandlerRefused(EscapedText),
    /// A port cannot be opened or attached.
    Port(PortError),
    /// The request is too long: which part, its bytes, and the limit.
    TooLarge(&'static str, usize, usize),
    /// A limit is reached: its object and its value.
    Limit(&'static str, usize),
    /// No processor is left to reserve for the box.
    NoProcessor {
        /// The number of processors.
        all: usize,
    },
    /// The box cannot be created.
    Create(CreateError),
    /// The box did not answer in time.
    Timeout(BoxName, Duration),
    /// The box ended during the operation.
    Gone(BoxName),
    /// The box violated the mailbox protocol and was ended.
    Broken(BoxName, CallError),
    /// The definition cannot be stored.
    Store(StoreError),
    /// The daemon is shutting down.
    Ending,
    /// A system call failed.
    System(SystemError),
}

/// Why a request is invalid, whatever the daemon's state.
#[derive(Debug)]
pub enum RequestError {
    /// The box would have this many ports.
    TooManyPorts(usize),
    /// There are too many labels, or one is too long.
    Labels,
    /// The time to wait for a stack's confirmation is out of range.
    ConfirmationTime,
    /// The stack defines a switch twice.
    DuplicateSwitch(SwitchName),
    /// The stack declares a switch of its own as external.
    OwnExternal(SwitchName),
    /// The stack defines a box twice.
    DuplicateBox(BoxName),
    /// The request would remove the main configuration.
    RemoveMain,
    /// The path of a capture file is relative.
    RelativePath(PathBuf),
    /// A `pcap` port names no file.
    NoCaptureFile,
    /// A port names no device.
    NoDevice,
    /// The box's name is too long for the name of its port at a switch.
    LongBoxName(BoxName),
}

/// Why a port cannot be opened or attached.
#[derive(Debug)]
pub enum PortError {
    /// The port has no device of its own, and its name is too long to be one.
    Name(PortName),
    /// The tap device cannot be opened.
    Tap(Device, io::Error),
    /// The network interface cannot be opened.
    Interface(Device, io::Error),
    /// The capture file cannot be opened.
    Capture(PathBuf, PcapError),
    /// Both ends of the pipe are taken.
    PipeInUse(PipeName),
    /// The box's port is already attached.
    Attached(BoxName, u8),
    /// The switch's address table rejects the address.
    Table(TableError),
    /// The switch learns addresses, so they cannot be set.
    Learning(SwitchName),
}

impl OperationError {
    /// The error of a failed call to a box.
    pub(crate) fn call(name: &BoxName, error: CallError, time: Duration) -> Self {
        match error {
            CallError::Refused(reason) => Self::HandlerRefused(EscapedText::new(reason.as_str().as_bytes())),
            CallError::Missing(reason) => {
                Self::NoHandler(name.clone(), EscapedText::new(reason.as_str().as_bytes()))
            }
            CallError::Rejected(found) => Self::Refused(crate::diagnostics::diagnostics(found, None)),
            CallError::TimedOut => Self::Timeout(name.clone(), time),
            CallError::Ended => Self::Gone(name.clone()),
            error @ (CallError::Channel(_) | CallError::Reply(_)) => Self::Broken(name.clone(), error),
        }
    }

    /// The error of a failed system call. `action` completes the sentence "can't ...".
    pub(crate) fn system(action: &'static str, cause: io::Error) -> Self {
        Self::System(SystemError { action, cause })
    }

    /// The error code in the API.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoBox(_)
            | Self::NoSwitch(_)
            | Self::NoPort(..)
            | Self::NoBoxPort(..)
            | Self::NoConfiguration(..)
            | Self::NoStack(_)
            | Self::NoAddress(..)
            | Self::NoEntry(_)
            | Self::NoFile(..)
            | Self::NoCrash(_)
            | Self::NoHandler(..) => ErrorCode::NotFound,
            Self::Exists(_) | Self::Foreign(_) => ErrorCode::Exists,
            Self::State { .. }
            | Self::Changing(_)
            | Self::InUse(..)
            | Self::Unconfirmed(_)
            | Self::NothingToConfirm(_)
            | Self::Ending => ErrorCode::Busy,
            Self::Invalid(_) => ErrorCode::Invalid,
            Self::Refused(_) | Self::HandlerRefused(_) | Self::Port(_) => ErrorCode::Refused,
            Self::TooLarge(..) => ErrorCode::TooLarge,
            Self::Limit(..) | Self::NoProcessor { .. } => ErrorCode::Limit,
            Self::Create(error) => match error {
                CreateError::Settings(_) | CreateError::Layout(_) => ErrorCode::Invalid,
                CreateError::NoKvm => ErrorCode::Refused,
                CreateError::NoMemory | CreateError::System(_) | CreateError::Process(_) => ErrorCode::Limit,
                _ => ErrorCode::Internal,
            },
            Self::Timeout(..) => ErrorCode::Timeout,
            Self::Gone(_) => ErrorCode::Gone,
            Self::Broken(..) | Self::System(_) => ErrorCode::Internal,
            Self::Store(_) => ErrorCode::Store,
        }
    }

    /// The precise reason and its subject, for errors that a client can act on.
    fn reason(&self) -> Option<(ErrorReason, Subject)> {
        Some(match self {
            Self::NoBox(name) => (ErrorReason::NoBox, name.into()),
            Self::NoSwitch(name) => (ErrorReason::NoSwitch, name.into()),
            Self::NoPort(switch, port) => (ErrorReason::NoPort, (switch, port).into()),
            Self::NoBoxPort(name, _) => (ErrorReason::NoBoxPort, name.into()),
            Self::NoStack(name) => (ErrorReason::NoStack, name.into()),
            Self::NoHandler(name, _) => (ErrorReason::NoHandler, name.into()),
            Self::NoFile(name, _) => (ErrorReason::NoFile, name.into()),
            Self::Unconfirmed(name) => (ErrorReason::Unconfirmed, name.into()),
            Self::InUse(object, _) => (ErrorReason::InUse, object.clone()),
            Self::NoProcessor { .. } => (ErrorReason::NoProcessor, Subject::Daemon),
            _ => return None,
        })
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBox(name) => write!(f, "there is no box {name}"),
            Self::NoSwitch(name) => write!(f, "there is no switch {name}"),
            Self::NoPort(switch, port) => write!(f, "switch {switch} has no port {port}"),
            Self::NoBoxPort(name, port) => write!(f, "box {name} has no port {port}"),
            Self::NoConfiguration(name, configuration) => {
                write!(f, "box {name} has no configuration {configuration}")
            }
            Self::Unconfirmed(name) => {
                write!(f, "stack {name} awaits confirmation: confirm it or roll it back")
            }
            Self::NothingToConfirm(name) => write!(f, "stack {name} does not await confirmation"),
            Self::NoStack(name) => write!(f, "there is no stack {name}"),
            Self::NoAddress(switch, mac) => write!(f, "{mac} is not in the table of switch {switch}"),
            Self::NoEntry(entry) => write!(f, "no entry {entry} was set aside"),
            Self::NoFile(name, file) => write!(f, "box {name} has written no file {file}"),
            Self::NoCrash(name) => write!(f, "box {name} has not crashed"),
            Self::NoHandler(_, message) | Self::HandlerRefused(message) => message.fmt(f),
            Self::Exists(object) => {
                write!(f, "a {} named {} already exists", object.kind(), object.name())
            }
            Self::Foreign(object) => write!(
                f,
                "a {} named {} already exists and does not belong to this stack: \
                 remove it, or choose another name in the stack",
                object.kind(),
                object.name()
            ),
            Self::State { name, state, hint } => write!(f, "box {name} {state}; {hint}"),
            Self::InUse(object, users) if users.is_empty() => {
                write!(f, "{} {} is not stopped", object.kind(), object.name())
            }
            Self::InUse(object, users) => {
                const MAX_LISTED: usize = 8;
                let listed = users.iter().take(MAX_LISTED);
                let listed: Vec<String> =
                    listed.map(|user| format!("{} {}", user.kind(), user.name())).collect();
                write!(f, "{} {} is used by {}", object.kind(), object.name(), listed.join(", "))?;
                match users.len().saturating_sub(MAX_LISTED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Changing(object) => {
                write!(
                    f,
                    "{} {} is being changed by another request; try again later",
                    object.kind(),
                    object.name()
                )?;
                match object {
                    Subject::Box(_) => f.write_str(", or stop it if it is in an endless loop"),
                    _ => Ok(()),
                }
            }
            Self::Invalid(error) => error.fmt(f),
            Self::Refused(details) => {
                f.write_str("the configuration was rejected")?;
                if let Some(first) = details.first() {
                    let lines: Vec<&str> = first.message.lines().map(str::trim).collect();
                    write!(f, ": {}", lines.join(" "))?;
                }
                match details.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " (and {} more)", count - 1),
                }
            }
            Self::Port(error) => error.fmt(f),
            Self::TooLarge(what, bytes, limit) => write!(f, "{what} has {bytes} bytes; the limit is {limit}"),
            Self::Limit(what, limit) => write!(f, "the limit of {limit} {what} is reached"),
            Self::NoProcessor { all } => write!(
                f,
                "no processor is left for a dedicated box: boxes may have {} of the {all} processors to themselves",
                all.saturating_sub(1)
            ),
            Self::Create(_) => f.write_str("the box can't be created"),
            Self::Timeout(name, time) => write!(
                f,
                "box {name} did not answer within {} ms; it may be busy, or in an endless loop",
                time.as_millis()
            ),
            Self::Gone(name) => write!(f, "box {name} ended during the operation"),
            Self::Broken(name, _) => write!(f, "box {name} violated the protocol and was ended"),
            Self::Store(error) => error.fmt(f),
            Self::Ending => f.write_str("the daemon is shutting down"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for OperationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Invalid(error) => error.source(),
            Self::Port(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Create(error) => Some(error),
            Self::Broken(_, error) => Some(error),
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::limits::{MAX_CONFIRMATION_TIME, MAX_LABEL_BYTES, MAX_LABELS};
        match self {
            Self::TooManyPorts(count) => {
                write!(f, "{count} ports: a box has at most {}", boundary::limits::MAX_PORTS)
            }
            Self::Labels => {
                write!(f, "a box has at most {MAX_LABELS} labels of at most {MAX_LABEL_BYTES} bytes each")
            }
            Self::ConfirmationTime => write!(
                f,
                "a stack can await confirmation for 1 to {} seconds",
                MAX_CONFIRMATION_TIME.as_secs()
            ),
            Self::DuplicateSwitch(name) => write!(f, "the stack has two switches {name}"),
            Self::OwnExternal(name) => {
                write!(
                    f,
                    "switch {name} belongs to the stack, so it cannot be external: remove the stack first"
                )
            }
            Self::DuplicateBox(name) => write!(f, "the stack has two boxes {name}"),
            Self::RemoveMain => {
                f.write_str("the configuration main can't be removed: swap it, or remove the box")
            }
            Self::RelativePath(path) => {
                write!(f, "{path:?} is not an absolute path")
            }
            Self::NoCaptureFile => f.write_str("a pcap port needs a capture to read, to write, or both"),
            Self::NoDevice => f.write_str("the port has no device"),
            Self::LongBoxName(name) => {
                write!(f, "the name {name} is too long for a box at a switch: shorten it by 3 characters")
            }
        }
    }
}

impl Error for RequestError {}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(port) => {
                write!(f, "port {port} needs a device, because its own name is too long for one")
            }
            Self::Tap(device, cause) => {
                write!(f, "can't open the tap device {device}{}", missing(cause, "CAP_NET_ADMIN"))
            }
            Self::Interface(device, cause) => {
                write!(f, "can't open the interface {device}{}", missing(cause, "CAP_NET_RAW"))
            }
            Self::Capture(path, _) => write!(f, "can't open {}", path.display()),
            Self::PipeInUse(name) => {
                write!(f, "pipe {name} already has two ends: use another name for a pipe between other boxes")
            }
            Self::Attached(name, port) => {
                write!(f, "port {port} of box {name} is already attached: detach it first")
            }
            Self::Table(error) => error.fmt(f),
            Self::Learning(switch) => {
                write!(f, "switch {switch} learns its addresses: only a static switch accepts addresses")
            }
        }
    }
}

/// The part of the message that names the capability that the daemon lacks, if that is the cause.
fn missing(cause: &io::Error, capability: &str) -> String {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => format!(", for which the daemon needs {capability}"),
        _ => String::new(),
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Tap(_, error) | Self::Interface(_, error) => Some(error),
            Self::Capture(_, error) => Some(error),
            Self::Table(error) => error.source(),
            Self::Name(_) | Self::PipeInUse(_) | Self::Attached(..) | Self::Learning(_) => None,
        }
    }
}

impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoBox(name) => Self::NoBox(name),
            error => Self::Store(error),
        }
    }
}

impl From<CreateError> for OperationError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<SystemError> for OperationError {
    fn from(error: SystemError) -> Self {
        Self::System(error)
    }
}

impl From<RequestError> for OperationError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl From<PortError> for OperationError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        let (code, message) = (error.code(), api::with_causes(&error));
        let (reason, subject) = error.reason().unzip();
        let subject = subject.map(|subject| subject.to_string());
        let details = match error {
            OperationError::Refused(details) => details,
            _ => Vec::new(),
        };
        Self { code, reason, subject, message, details }
    }
}
