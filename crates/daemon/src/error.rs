//! The error of an operation.

use crate::file_system::FileSystem;
use crate::service_error::ServiceError;
use crate::store::StoreError;
use crate::upgrade::UpgradeError;
use api::{
    ApiError, BoxName, CONDITION, ChainName, ConfigurationName, Diagnostic, ErrorCode, ErrorReason,
    HostAddress, ImageDigest, MAX_CONTROLLERS, MacAddr, Owner, PortName, PortSettingError, Right,
    ServiceName, Severity, StackName, Subject, SwitchName, TunnelFamilies,
};
use flow_expression::ExpressionError;
use protocol::fabric::{CreateFailure, FabricError};
use protocol::launcher::{LauncherError, Refusal, Shortfall};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

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
    /// The service does not exist.
    NoService(ServiceName),
    /// The switch has no such chain.
    NoChain(SwitchName, ChainName),
    /// The box is an instance of this service, which alone removes and changes it.
    Instance(BoxName, ServiceName),
    /// The switch has these services.
    HasServices(SwitchName, Vec<ServiceName>),
    /// Instances of these services may send packets to the service.
    DestinationOf(ServiceName, Vec<ServiceName>),
    /// Flows of the switch send packets to the chain.
    ChainInUse(SwitchName, ChainName, Vec<u64>),
    /// A service or a chain can't be as requested.
    Service(ServiceError),
    /// A part of a stack can't be as requested: which part, as in a sentence, and why.
    Part(String, Box<OperationError>),
    /// There is no box, switch, service, chain or stack of this name.
    NoObject(String),
    /// The stack waits to be confirmed or rolled back.
    Unconfirmed(StackName),
    /// The stack does not wait to be confirmed.
    NothingToConfirm(StackName),
    /// The address is not in the switch's table.
    NoAddress(SwitchName, MacAddr),
    /// The condition of a flow can't be translated; the number of characters before the wrong word, if there is one.
    Flow(ExpressionError, Option<usize>),
    /// The store has set no entry of this number aside.
    NoEntry(i64),
    /// The box has written no file of this name.
    NoFile(BoxName, String),
    /// No box of the caller runs this image.
    NoImage(ImageDigest),
    /// The box has not crashed.
    NoCrash(BoxName),
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
    /// A port cannot be opened or attached.
    Port(PortError),
    /// The request is too long: which part, its bytes, and the limit.
    TooLarge(&'static str, usize, usize),
    /// The caller may not do this.
    Denied(AccessError),
    /// A limit is reached: its object and its value.
    Limit(&'static str, usize),
    /// The fabric did not do as ordered.
    Fabric(FabricError),
    /// There is no fabric.
    Launcher(LauncherError),
    /// The definition cannot be stored.
    Store(StoreError),
    /// The definition cannot be stored, because this file system is full.
    StoreFull(FileSystem),
    /// The daemon cannot be replaced.
    Upgrade(UpgradeError),
    /// The fabric is drained: it takes no new boxes and starts none.
    Draining,
    /// So many boxes run in the fabric that is to be restarted.
    FabricInUse(usize),
    /// The daemon is shutting down.
    Ending,
    /// A system call failed: the action, as in "can't ...", and the system's error.
    System(&'static str, io::Error),
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
    /// A switch that is no steering switch has flows.
    FlowsWithoutSteering(SwitchName),
    /// A switch that is no steering switch has controllers.
    ControllersWithoutSteering(SwitchName),
    /// A switch without controllers states what it does without them.
    FailModeWithoutControllers(SwitchName),
    /// A switch has too many controllers, or one twice.
    Controllers(SwitchName),
    /// A flow in the definition of a switch has a timeout.
    FlowWithTimeout(SwitchName),
    /// A switch has the same flow twice.
    DuplicateFlow(SwitchName),
    /// A switch has two default ports.
    TwoDefaultPorts(SwitchName, [PortName; 2]),
    /// Two ports of a switch have the same address.
    AddressOfTwoPorts(SwitchName, MacAddr, [PortName; 2]),
    /// The stack defines a box twice.
    DuplicateBox(BoxName),
    /// The image of a box is an upload, which was not read.
    ImageUpload,
    /// A box with several cores would be at a pipe.
    CoresAtPipe,
    /// The instances of a service would have several cores.
    CoresOfService(ServiceName),
    /// The request would remove the main configuration.
    RemoveMain,
    /// The path of a capture file is relative.
    RelativePath(PathBuf),
    /// A `pcap` port names no file.
    NoCaptureFile,
    /// A learning switch would have a pipe to itself.
    PipeToItself(SwitchName),
    /// The condition of a flow is empty.
    EmptyCondition,
    /// A tunnel has addresses that are not possible.
    Tunnel(TunnelFamilies),
    /// A port could never work with one of its settings.
    PortSetting(PortSettingError),
    /// A name that several objects have: which.
    Ambiguous(String, Vec<Subject>),
    /// An account is of a box, a switch, a service, a chain or a stack.
    NoAccount(Subject),
}

/// Why a user of a file of tokens may not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The token does not give the right.
    Right(Right),
    /// The request names another owner.
    Owner {
        /// The user's owner.
        own: Owner,
        /// The other one.
        wanted: Owner,
    },
    /// The request names devices or files of the host, of this kind.
    HostDevice(&'static str),
    /// A switch with OpenFlow controllers: the host connects to them.
    Controllers,
    /// The request asks for more than the usual weight.
    Weight,
    /// A box would send from other addresses than its own.
    Transparent,
    /// The owner would have more than the quota.
    Quota {
        /// What is limited.
        name: &'static str,
        /// The quota.
        limit: String,
        /// How much the owner has.
        used: String,
        /// How much more the request needs.
        more: String,
    },
}

/// Why a port cannot be opened or attached.
#[derive(Debug)]
pub enum PortError {
    /// The port has no device of its own, and its name is too long to be one.
    Name(PortName),
    /// The tap device cannot be opened.
    Tap(String, LauncherError),
    /// The network interface cannot be opened.
    Interface(String, LauncherError),
    /// The launcher cannot listen at the socket, or connect to it.
    Socket(PathBuf, LauncherError),
    /// The switch is not shared with the owner of what would be attached to it.
    NotShared {
        /// The switch.
        switch: SwitchName,
        /// Its owner.
        of: Owner,
        /// The other owner.
        with: Owner,
    },
    /// The box is in the fabric of another owner than the switch.
    OtherFabric,
    /// Another port has the device or file.
    InUse(Subject),
    /// The capture file cannot be opened.
    Capture(PathBuf, LauncherError),
    /// The tunnel to this address cannot be opened.
    Tunnel(HostAddress, LauncherError),
}

/// Users of an object that a message lists.
const MAX_LISTED: usize = 8;

impl OperationError {
    /// The error for a system call. `action` completes the sentence "can't ...".
    pub(crate) fn system(action: &'static str, cause: io::Error) -> Self {
        Self::System(action, cause)
    }

    /// The error of a part of a stack, which the message names. What is not about the part's definition stays as it is.
    pub(crate) fn of(self, part: &Subject) -> Self {
        self.of_part(format!("{} {}", part.kind(), part.name()))
    }

    /// The same, if there is one part.
    pub(crate) fn of_any(self, part: Option<&Subject>) -> Self {
        match part {
            Some(part) => self.of(part),
            None => self,
        }
    }

    /// The error of a part of a stack, which is named as in a sentence.
    pub(crate) fn of_part(self, part: String) -> Self {
        let is_about_it = matches!(
            self,
            Self::NoBox(_)
                | Self::NoSwitch(_)
                | Self::NoPort(..)
                | Self::NoBoxPort(..)
                | Self::NoService(_)
                | Self::NoChain(..)
                | Self::Invalid(_)
                | Self::Flow(..)
                | Self::Service(_)
                | Self::Port(_)
        );
        match is_about_it && !self.to_string().contains(&part) {
            true => Self::Part(part, Box::new(self)),
            false => self,
        }
    }

    /// The error code in the API.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Part(_, error) => error.code(),
            Self::NoBox(_)
            | Self::NoSwitch(_)
            | Self::NoPort(..)
            | Self::NoBoxPort(..)
            | Self::NoConfiguration(..)
            | Self::NoStack(_)
            | Self::NoService(_)
            | Self::NoChain(..)
            | Self::NoObject(_)
            | Self::NoAddress(..)
            | Self::NoEntry(_)
            | Self::NoFile(..)
            | Self::NoImage(_)
            | Self::NoCrash(_) => ErrorCode::NotFound,
            Self::Exists(_) | Self::Foreign(_) => ErrorCode::Exists,
            Self::State { .. }
            | Self::Changing(_)
            | Self::InUse(..)
            | Self::Instance(..)
            | Self::HasServices(..)
            | Self::DestinationOf(..)
            | Self::ChainInUse(..)
            | Self::Draining
            | Self::FabricInUse(_)
            | Self::Unconfirmed(_)
            | Self::NothingToConfirm(_)
            | Self::Ending => ErrorCode::Busy,
            Self::Invalid(_) | Self::Flow(..) | Self::Service(_) => ErrorCode::Invalid,
            Self::Refused(_) | Self::Port(_) | Self::Upgrade(_) => ErrorCode::Refused,
            Self::TooLarge(..) => ErrorCode::TooLarge,
            Self::Denied(AccessError::Quota { .. }) | Self::Limit(..) => ErrorCode::Limit,
            Self::Denied(_) => ErrorCode::Denied,
            Self::Fabric(error) => fabric_code(error),
            Self::Launcher(_) | Self::System(..) => ErrorCode::Internal,
            Self::Store(_) | Self::StoreFull(_) => ErrorCode::Store,
        }
    }

    /// The precise reason and its subject, for errors that a client can act on.
    fn reason(&self) -> Option<(ErrorReason, Subject)> {
        Some(match self {
            Self::Part(_, error) => return error.reason(),
            Self::NoBox(name) => (ErrorReason::NoBox, name.into()),
            Self::NoSwitch(name) => (ErrorReason::NoSwitch, name.into()),
            Self::NoPort(switch, port) => (ErrorReason::NoPort, (switch, port).into()),
            Self::NoBoxPort(name, _) => (ErrorReason::NoBoxPort, name.into()),
            Self::NoStack(name) => (ErrorReason::NoStack, name.into()),
            Self::NoService(name) => (ErrorReason::NoService, name.into()),
            Self::NoChain(switch, chain) => (ErrorReason::NoChain, (switch, chain).into()),
            Self::Instance(_, service) => (ErrorReason::Instance, service.into()),
            Self::ChainInUse(switch, chain, _) => (ErrorReason::InUse, (switch, chain).into()),
            Self::Fabric(FabricError::NoHandler(name, _)) => (ErrorReason::NoHandler, name.into()),
            Self::NoFile(name, _) => (ErrorReason::NoFile, name.into()),
            Self::Unconfirmed(name) => (ErrorReason::Unconfirmed, name.into()),
            Self::InUse(object, _) => (ErrorReason::InUse, object.clone()),
            Self::FabricInUse(_) => (ErrorReason::InUse, Subject::Daemon),
            Self::Draining => (ErrorReason::Draining, Subject::Daemon),
            Self::Denied(AccessError::Quota { .. }) => (ErrorReason::Quota, Subject::Daemon),
            Self::Denied(_) => (ErrorReason::NoRight, Subject::Daemon),
            Self::Fabric(FabricError::NoProcessor { .. }) => (ErrorReason::NoProcessor, Subject::Daemon),
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
            Self::NoService(name) => write!(f, "there is no service {name}"),
            Self::NoChain(switch, chain) => write!(f, "switch {switch} has no chain {chain}"),
            Self::Instance(name, service) => {
                write!(
                    f,
                    "box {name} is an instance of service {service}, which alone removes and changes it"
                )
            }
            Self::HasServices(switch, services) => {
                let names: Vec<&str> = services.iter().map(ServiceName::as_str).collect();
                let noun = if names.len() == 1 { "service" } else { "services" };
                write!(f, "switch {switch} has the {noun} {}: remove the {noun} first", names.join(", "))
            }
            Self::DestinationOf(name, services) => {
                let names: Vec<&str> = services.iter().map(ServiceName::as_str).collect();
                let noun = if names.len() == 1 { "service" } else { "services" };
                let names = names.join(", ");
                write!(
                    f,
                    "service {name} can't be removed, even by force, while {noun} {names} may send packets to it \
                     (may_send_to): remove {noun} {names} first"
                )
            }
            Self::ChainInUse(switch, chain, flows) => {
                let numbers: Vec<String> = flows.iter().take(MAX_LISTED).map(u64::to_string).collect();
                let noun = if flows.len() == 1 { "flow" } else { "flows" };
                write!(f, "chain {chain} of switch {switch} is used by {noun} {}", numbers.join(", "))?;
                match flows.len().saturating_sub(MAX_LISTED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Service(error) => error.fmt(f),
            Self::Part(part, error) => write!(f, "{part}: {error}"),
            Self::NoObject(name) => write!(f, "there is no box, switch, service, chain or stack {name}"),
            Self::Flow(error, _) => write!(f, "the condition of the flow can't be used: {error}"),
            Self::NoAddress(switch, mac) => write!(f, "{mac} is not in the table of switch {switch}"),
            Self::NoEntry(entry) => write!(f, "no entry {entry} was set aside"),
            Self::NoFile(name, file) => write!(f, "box {name} has written no file {file}"),
            Self::NoImage(image) => write!(f, "no box runs the image {image}: upload its file"),
            Self::NoCrash(name) => write!(f, "box {name} has not crashed"),
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
                let errors = details.iter().filter(|found| found.severity == Severity::Error);
                if let Some(first) = errors.chain(details).next() {
                    let lines: Vec<&str> = first.message.lines().map(str::trim).collect();
                    write!(f, ": {}", lines.join(" "))?;
                }
                match details.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " (and {} more)", count - 1),
                }
            }
            Self::Port(error) => error.fmt(f),
            Self::Denied(error) => error.fmt(f),
            Self::TooLarge(what, bytes, limit) => write!(f, "{what} has {bytes} bytes; the limit is {limit}"),
            Self::Limit(what, limit) => write!(f, "the limit of {limit} {what} is reached"),
            Self::Fabric(error) => error.fmt(f),
            Self::Launcher(_) => f.write_str("the fabric can't be started"),
            Self::Store(error) => error.fmt(f),
            Self::StoreFull(at) => write!(f, "{at} is full: free some space there; nothing was changed"),
            Self::Upgrade(error) => error.fmt(f),
            Self::Draining => f.write_str("the fabric is drained: it takes no new boxes and starts none"),
            Self::FabricInUse(1) => f.write_str("a restart of the fabric interrupts a box that runs"),
            Self::FabricInUse(boxes) => {
                write!(f, "a restart of the fabric interrupts {boxes} boxes that run")
            }
            Self::Ending => f.write_str("the daemon is shutting down"),
            Self::System(action, _) => write!(f, "can't {action}"),
        }
    }
}

impl Error for OperationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Part(_, error) => error.source(),
            Self::Invalid(error) => error.source(),
            Self::Port(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Fabric(error) => error.source(),
            Self::Upgrade(error) => error.source(),
            Self::Launcher(error) => Some(error),
            Self::System(_, error) => Some(error),
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
            Self::FlowsWithoutSteering(name) => {
                write!(f, "switch {name} has flows: it needs the mode steering")
            }
            Self::ControllersWithoutSteering(name) => {
                write!(f, "switch {name} has controllers: it needs the mode steering")
            }
            Self::FailModeWithoutControllers(name) => {
                write!(f, "switch {name} has a fail mode, but no controllers")
            }
            Self::Controllers(name) => {
                write!(f, "switch {name} has a controller twice, or more than {MAX_CONTROLLERS}")
            }
            Self::FlowWithTimeout(name) => write!(
                f,
                "a flow of switch {name} has a timeout: only flows without one are part of a definition; add it with clickbox flow add"
            ),
            Self::DuplicateFlow(name) => write!(f, "switch {name} has the same flow twice"),
            Self::TwoDefaultPorts(name, [one, other]) => {
                write!(f, "ports {one} and {other} of switch {name} are both its default port: name one")
            }
            Self::AddressOfTwoPorts(name, mac, [one, other]) => {
                write!(f, "ports {one} and {other} of switch {name} both have the address {mac}: name one")
            }
            Self::ImageUpload => f.write_str("the image must be uploaded before the request"),
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
            Self::Ambiguous(name, objects) => {
                let names: Vec<String> = objects.iter().map(Subject::to_string).collect();
                write!(f, "{name} is the name of several objects: write {}", names.join(" or "))
            }
            Self::NoAccount(subject) => {
                write!(f, "{subject} has no account: name a box, a switch, a service, a chain or a stack")
            }
            Self::CoresAtPipe => {
                f.write_str("a box with several cores can't be at a pipe: attach its ports to switches")
            }
            Self::CoresOfService(service) => {
                write!(
                    f,
                    "the instances of service {service} can't have several cores: give it more replicas"
                )
            }
            Self::NoCaptureFile => f.write_str("a pcap port needs a capture to read, to write, or both"),
            Self::PipeToItself(name) => write!(
                f,
                "a pipe from switch {name} to itself would send broadcasts around without end: name another switch"
            ),
            Self::EmptyCondition => f.write_str(
                "the condition of the flow is empty: leave it out for a flow that matches all packets",
            ),
            Self::Tunnel(error) => error.fmt(f),
            Self::PortSetting(error) => error.fmt(f),
        }
    }
}

impl Error for RequestError {}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(Right::Administer) => f.write_str("only administrators can do this"),
            Self::Right(right) => {
                write!(
                    f,
                    "the token does not give the right `{right}`: ask an administrator for one that does"
                )
            }
            Self::Owner { own, wanted } => {
                write!(f, "the token is for objects of {own}: it can't create objects of {wanted}")
            }
            Self::Controllers => {
                f.write_str("only administrators can give a switch controllers, to which the host connects")
            }
            Self::HostDevice(kind) => write!(f, "only administrators can connect {kind} of the host"),
            Self::Weight => {
                write!(f, "only administrators can give a weight above {}", api::Weight::default())
            }
            Self::Transparent => {
                f.write_str("only administrators can let a box send from other addresses than its own")
            }
            Self::Quota { name, limit, used, more } => write!(
                f,
                "the quota for {name} is {limit}, of which {used} are used; the request needs {more} more: remove \
                 something, or ask an administrator for a larger quota"
            ),
        }
    }
}

impl Error for AccessError {}

impl From<AccessError> for OperationError {
    fn from(error: AccessError) -> Self {
        Self::Denied(error)
    }
}

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
            Self::NotShared { switch, of, with } => write!(
                f,
                "switch {switch} belongs to {of} and is not shared with {with}: use a switch of {with}, or add {with} to \
                 shared_with of the switch"
            ),
            Self::OtherFabric => f.write_str(
                "the box and the switch are in the fabrics of different owners: remove the box, and create it with a \
                 port that is attached to the switch",
            ),
            Self::InUse(port) => write!(f, "{} {} has this device, file, socket or tunnel already", port.kind(), port.name()),
            Self::Capture(path, _) => write!(f, "can't open {}", path.display()),
            Self::Tunnel(remote, cause) => {
                write!(f, "can't open the tunnel to {remote}{}", missing(cause, "CAP_NET_RAW"))
            }
            Self::Socket(path, _) => write!(f, "can't use the socket {}", path.display()),
        }
    }
}

/// The part of the message that names the capability that the daemon lacks, if that is the cause.
fn missing(cause: &LauncherError, capability: &str) -> String {
    let denied = |failed: &Shortfall| failed.error().kind() == io::ErrorKind::PermissionDenied;
    match cause {
        LauncherError::Refused(Refusal::Failed(failed)) if denied(failed) => {
            format!(", for which the launcher needs {capability}")
        }
        _ => String::new(),
    }
}

impl Error for PortError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Tap(_, error) | Self::Interface(_, error) => Some(error),
            Self::Capture(_, error) | Self::Tunnel(_, error) | Self::Socket(_, error) => Some(error),
            Self::Name(_) | Self::InUse(_) | Self::OtherFabric | Self::NotShared { .. } => None,
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

impl From<FabricError> for OperationError {
    fn from(error: FabricError) -> Self {
        match error {
            FabricError::NoBox(name) => Self::NoBox(name),
            FabricError::NoSwitch(name) => Self::NoSwitch(name),
            FabricError::NoPort(switch, port) => Self::NoPort(switch, port),
            FabricError::NoBoxPort(name, number) => Self::NoBoxPort(name, number),
            FabricError::NoAddress(switch, mac) => Self::NoAddress(switch, mac),
            FabricError::NoFile(name, file) => Self::NoFile(name, file),
            FabricError::Exists(subject) => Self::Exists(subject),
            FabricError::Rejected(found) => Self::Refused(found),
            FabricError::Ending => Self::Ending,
            other => Self::Fabric(other),
        }
    }
}

/// The API's code for an error of the fabric that has no variant of its own here.
fn fabric_code(error: &FabricError) -> ErrorCode {
    match error {
        FabricError::NoBox(_)
        | FabricError::NoSwitch(_)
        | FabricError::NoPort(..)
        | FabricError::NoBoxPort(..)
        | FabricError::NoAddress(..)
        | FabricError::NoFile(..)
        | FabricError::NoFlow(..)
        | FabricError::NoImage(_)
        | FabricError::NoHandler(..) => ErrorCode::NotFound,
        FabricError::Exists(_) => ErrorCode::Exists,
        FabricError::State { .. } | FabricError::Ending | FabricError::Disconnected => ErrorCode::Busy,
        FabricError::Rejected(_)
        | FabricError::HandlerRefused(_)
        | FabricError::PipeInUse(_)
        | FabricError::Attached(..)
        | FabricError::Table(_)
        | FabricError::Learning(_)
        | FabricError::NotSteering(_)
        | FabricError::Flow(_)
        | FabricError::Image(_)
        | FabricError::Cores(..)
        | FabricError::Unsupported
        | FabricError::Device(_)
        | FabricError::Create(CreateFailure::NoKvm, _) => ErrorCode::Refused,
        FabricError::NoDevice
        | FabricError::LongBoxName(_)
        | FabricError::Create(CreateFailure::Settings, _) => ErrorCode::Invalid,
        FabricError::Limit(..)
        | FabricError::NoProcessor { .. }
        | FabricError::Create(CreateFailure::Exhausted, _) => ErrorCode::Limit,
        FabricError::Timeout(..) => ErrorCode::Timeout,
        FabricError::Gone(_) => ErrorCode::Gone,
        FabricError::Broken(..)
        | FabricError::System(_)
        | FabricError::Protocol(_)
        | FabricError::Create(CreateFailure::Internal, _) => ErrorCode::Internal,
    }
}

impl From<RequestError> for OperationError {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl From<ServiceError> for OperationError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<UpgradeError> for OperationError {
    fn from(error: UpgradeError) -> Self {
        Self::Upgrade(error)
    }
}

impl From<PortError> for OperationError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

/// Where the condition of a flow is wrong.
fn of_condition(error: &ExpressionError, place: usize) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: Some(CONDITION.into()),
        line: Some(1),
        column: u32::try_from(place).ok().and_then(|place| place.checked_add(1)),
        message: error.to_string(),
        hint: None,
        related: Vec::new(),
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        let (code, message) = (error.code(), api::with_causes(&error));
        let (reason, subject) = error.reason().unzip();
        let subject = subject.map(|subject| subject.to_string());
        let details = match error {
            OperationError::Refused(details) => details,
            OperationError::Flow(error, Some(place)) => vec![of_condition(&error, place)],
            _ => Vec::new(),
        };
        Self { code, reason, subject, message, details }
    }
}
