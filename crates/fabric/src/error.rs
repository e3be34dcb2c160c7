//! The error of an operation.

use crate::boxes::summary;
use model::escape::EscapedText;
use model::{
    BoxName, CrashReport, Diagnostic, ImageDigest, MacAddr, PipeName, PortName, Size, Subject, SwitchName,
    with_causes,
};
use protocol::ChannelError;
use protocol::fabric::{CreateFailure, FabricError};
use sandbox::{CallError, CreateError, HostError, SystemError};
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use switch::{FlowError, MatchError, TableError};

/// Why an operation failed. It then had no effect.
#[derive(Debug)]
pub(crate) enum OperationError {
    /// There is no such box.
    NoBox(BoxName),
    /// There is no such switch.
    NoSwitch(SwitchName),
    /// The switch has no such port.
    NoPort(SwitchName, PortName),
    /// The box has no such port.
    NoBoxPort(BoxName, u8),
    /// The address is not in the switch's table.
    NoAddress(SwitchName, MacAddr),
    /// The box has written no such file.
    NoFile(BoxName, String),
    /// The box has no such handler.
    NoHandler(BoxName, EscapedText),
    /// The name is taken.
    Exists(Subject),
    /// The box's state does not allow it.
    State {
        /// The box.
        name: BoxName,
        /// Its state, as a predicate.
        state: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The box rejected the configuration.
    Refused(Vec<Diagnostic>),
    /// The box refused a handler's value.
    HandlerRefused(EscapedText),
    /// A port can't be attached, or has no device.
    Port(PortError),
    /// A limit is reached.
    Limit(&'static str, usize),
    /// No processor is left for a dedicated box.
    NoProcessor {
        /// The number of processors.
        all: usize,
    },
    /// The box can't be created.
    Create(CreateError),
    /// The image of the box is not loaded.
    NoImage(ImageDigest),
    /// The definition names an upload, which only the daemon knows.
    UnresolvedImage,
    /// The file with an image is not acceptable.
    ImageFile(ChannelError),
    /// The image can't be used.
    Image(HostError),
    /// The box did not answer in time.
    Timeout(BoxName, Duration),
    /// The box ended during the operation.
    Gone(BoxName),
    /// The box crashed while it started.
    CrashedAtStart {
        /// The report of the crash.
        report: Box<CrashReport>,
        /// Its private memory, if that was not enough.
        memory: Option<Size>,
    },
    /// The box violated the protocol.
    Broken(BoxName, CallError),
    /// The fabric is ending.
    Ending,
    /// A system call failed.
    System(SystemError),
}

/// Why a port can't be added or attached.
#[derive(Debug)]
pub(crate) enum PortError {
    /// The pipe has two ends already.
    PipeInUse(PipeName),
    /// The box's port is attached already.
    Attached(BoxName, u8),
    /// The address table refuses an entry.
    Table(TableError),
    /// The switch learns its addresses.
    Learning(SwitchName),
    /// The switch has no such flow.
    NoFlow(SwitchName, u64),
    /// The switch has no flows.
    NotSteering(SwitchName),
    /// The switch refuses the flow.
    Flow(FlowError),
    /// A match of a flow is malformed.
    Match(MatchError),
    /// A flow is none that a daemon orders.
    Malformed(&'static str),
    /// The port's driver needs a device, and none came with the order.
    NoDevice,
    /// The box's name is too long for a port of a switch.
    LongBoxName(BoxName),
    /// A box with several cores can't be at a pipe.
    CoresAtPipe(BoxName),
    /// A box with several cores can't be at a steering switch.
    CoresAtSteering(BoxName, SwitchName),
    /// The descriptors are none of the driver's.
    Device(Box<dyn Error + Send + Sync>),
}

impl OperationError {
    /// The error for a request to a box.
    pub(crate) fn call(name: &BoxName, error: CallError, time: Duration) -> Self {
        match error {
            CallError::Refused(reason) => Self::HandlerRefused(EscapedText::new(reason.as_str().as_bytes())),
            CallError::Missing(reason) => {
                Self::NoHandler(name.clone(), EscapedText::new(reason.as_str().as_bytes()))
            }
            CallError::Rejected(found) => Self::Refused(crate::diagnostics::diagnostics(found)),
            CallError::TimedOut => Self::Timeout(name.clone(), time),
            CallError::Ended => Self::Gone(name.clone()),
            error @ (CallError::Channel(_) | CallError::Reply(_)) => Self::Broken(name.clone(), error),
        }
    }

    /// The error for a system call. `action` completes the sentence "can't ...".
    pub(crate) fn system(action: &'static str, cause: io::Error) -> Self {
        Self::System(SystemError { action, cause })
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(_) => f.write_str("the box can't be created"),
            Self::Image(_) | Self::ImageFile(_) => f.write_str("the image can't be used"),
            Self::Broken(name, _) => write!(f, "box {name} violated the protocol and was ended"),
            Self::System(error) => error.fmt(f),
            Self::Port(PortError::Table(error)) => error.fmt(f),
            Self::Port(PortError::Flow(error)) => error.fmt(f),
            Self::Port(PortError::Match(error)) => error.fmt(f),
            Self::Port(PortError::Device(_)) => f.write_str("the port's device can't be used"),
            other => FabricError::from(other).fmt(f),
        }
    }
}

impl Error for OperationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Create(error) => Some(error),
            Self::Image(error) => Some(error),
            Self::ImageFile(error) => Some(error),
            Self::Broken(_, error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Port(PortError::Table(error)) => error.source(),
            Self::Port(PortError::Flow(error)) => error.source(),
            Self::Port(PortError::Match(error)) => error.source(),
            Self::Port(PortError::Device(error)) => Some(error.as_ref()),
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

impl From<&OperationError> for FabricError {
    fn from(error: &OperationError) -> Self {
        match error {
            OperationError::NoBox(name) => Self::NoBox(name.clone()),
            OperationError::NoSwitch(name) => Self::NoSwitch(name.clone()),
            OperationError::NoPort(switch, port) => Self::NoPort(switch.clone(), port.clone()),
            OperationError::NoBoxPort(name, port) => Self::NoBoxPort(name.clone(), *port),
            OperationError::NoAddress(switch, mac) => Self::NoAddress(switch.clone(), *mac),
            OperationError::NoFile(name, file) => Self::NoFile(name.clone(), file.clone()),
            OperationError::NoHandler(name, text) => Self::NoHandler(name.clone(), text.to_string()),
            OperationError::Exists(subject) => Self::Exists(subject.clone()),
            OperationError::State { name, state, hint } => {
                Self::State { name: name.clone(), state: state.to_string(), hint: hint.to_string() }
            }
            OperationError::Refused(found) => Self::Rejected(found.clone()),
            OperationError::HandlerRefused(text) => Self::HandlerRefused(text.to_string()),
            OperationError::Port(port) => match port {
                PortError::PipeInUse(name) => Self::PipeInUse(name.clone()),
                PortError::Attached(name, number) => Self::Attached(name.clone(), *number),
                PortError::Table(error) => Self::Table(with_causes(error)),
                PortError::Learning(switch) => Self::Learning(switch.clone()),
                PortError::NoFlow(switch, id) => Self::NoFlow(switch.clone(), *id),
                PortError::NotSteering(switch) => Self::NotSteering(switch.clone()),
                PortError::Flow(error) => Self::Flow(with_causes(error)),
                PortError::Match(error) => Self::Flow(with_causes(error)),
                PortError::Malformed(what) => Self::Flow((*what).to_string()),
                PortError::NoDevice => Self::NoDevice,
                PortError::LongBoxName(name) => Self::LongBoxName(name.clone()),
                PortError::CoresAtPipe(name) => {
                    Self::Cores(name.clone(), "its ports can't be at pipes".into())
                }
                PortError::CoresAtSteering(name, switch) => Self::Cores(
                    name.clone(),
                    format!("its ports can't be at {switch}, a switch of the mode `steering`"),
                ),
                PortError::Device(_) => Self::Device(with_causes(error)),
            },
            OperationError::Limit(what, limit) => Self::Limit(what.to_string(), *limit as u64),
            OperationError::NoProcessor { all } => {
                Self::NoProcessor { all: u32::try_from(*all).unwrap_or(u32::MAX) }
            }
            OperationError::NoImage(image) => Self::NoImage(*image),
            OperationError::UnresolvedImage => Self::Image("it is named by an upload".into()),
            OperationError::ImageFile(cause) => Self::Image(with_causes(cause)),
            OperationError::Image(cause) => Self::Image(with_causes(cause)),
            OperationError::Create(cause) => Self::Create(create_failure(cause), with_causes(cause)),
            OperationError::Timeout(name, time) => Self::Timeout(name.clone(), *time),
            OperationError::Gone(name) => Self::Gone(name.clone()),
            OperationError::CrashedAtStart { report, memory: None } => {
                Self::Create(CreateFailure::Internal, format!("it crashed: {}", summary(report)))
            }
            OperationError::CrashedAtStart { report, memory: Some(memory) } => Self::Create(
                CreateFailure::Settings,
                format!("it crashed: {}; its configuration needs more memory than {memory}", summary(report)),
            ),
            OperationError::Broken(name, cause) => Self::Broken(name.clone(), with_causes(cause)),
            OperationError::Ending => Self::Ending,
            OperationError::System(error) => Self::System(with_causes(error)),
        }
    }
}

fn create_failure(error: &CreateError) -> CreateFailure {
    match error {
        CreateError::Settings(_) | CreateError::Layout(_) | CreateError::SmallMemory { .. } => {
            CreateFailure::Settings
        }
        CreateError::NoKvm => CreateFailure::NoKvm,
        CreateError::NoMemory | CreateError::System(_) | CreateError::Process(_) => CreateFailure::Exhausted,
        _ => CreateFailure::Internal,
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

impl From<PortError> for OperationError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}
