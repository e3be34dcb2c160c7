//! The error of measurements.

use std::fmt;

use boundary::{LayoutError, PortFault, RingError};
use sandbox::{CallError, CreateError, HostError, SnapshotError, SystemError};
use switch::{FlowError, MatchError, SwitchError};

/// Why a measurement failed.
#[derive(Debug)]
pub enum MeasureError {
    /// This host can't run boxes.
    Host(HostError),
    /// There is no usable `/dev/kvm`.
    NoKvm,
    /// Boxes in threads run the engine, and the caller provided no entry point for it.
    NoEntry,
    /// A daemon has no boxes in threads.
    NoThreads,
    /// A box can't be created.
    Create(CreateError),
    /// A box can't be copied.
    Snapshot(SnapshotError),
    /// A request to a box failed.
    Control(CallError),
    /// A box violated the protocol of its port.
    Port(PortFault),
    /// A system call failed.
    System(SystemError),
    /// A box has no such port, or the port is in use.
    NoPort(usize),
    /// Ports can't be laid out.
    Layout(LayoutError),
    /// The switch has no room.
    Switch(SwitchError),
    /// The ring size is not allowed.
    Ring(RingError),
    /// A flow entry is refused.
    Flow(FlowError),
    /// A match of a flow entry is impossible.
    Match(MatchError),
    /// The measurement of the engine failed.
    Engine(Box<crate::engine::ComparisonError>),
    /// The temporary folder can't be created.
    Folder(std::io::Error),
    /// A network namespace can't be made or used.
    Namespace(std::io::Error),
    /// A network interface can't be used.
    Interface {
        /// Its name.
        name: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// A daemon can't be started.
    Daemon(std::io::Error),
    /// A command has failed.
    Command(std::process::ExitStatus),
    /// A call to the daemon failed.
    Client(Box<api::client::ClientError>),
    /// A name is invalid in the API.
    Name(api::NameError),
    /// A counter has this value, which is no number.
    NotANumber(String),
    /// After a rebuild, boxes are missing.
    Missing {
        /// The boxes that should run.
        expected: usize,
        /// Those that run.
        found: usize,
    },
    /// A program that is measured too can't be started, or not waited for.
    Peer {
        /// The program.
        name: &'static str,
        /// Why.
        error: std::io::Error,
    },
    /// A program that is measured too has ended by itself, or failed.
    PeerEnded {
        /// The program.
        name: &'static str,
        /// How.
        status: std::process::ExitStatus,
        /// The last line that it printed, escaped.
        last: String,
    },
    /// A switch and its controller can't reach each other.
    Controller(std::io::Error),
    /// A switch refuses what its controller asks for.
    Refused(openflow::ErrorCode),
    /// A plain process that is measured can't be started, or reached by its control socket.
    PlainProcess(std::io::Error),
    /// A plain process has refused a write with this reply, escaped.
    WriteRefused(String),
    /// A time limit expired.
    Late {
        /// The event that was expected.
        what: &'static str,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKvm => f.write_str("virtual machines need /dev/kvm, which can't be opened here"),
            Self::NoEntry => f.write_str("boxes in threads can run only the engine"),
            Self::NoThreads => f.write_str("a daemon has no boxes in threads"),
            Self::Command(status) => write!(f, "a command has failed ({status})"),
            Self::Control(_) => f.write_str("a request to a box failed"),
            Self::Port(_) => f.write_str("a box violated the protocol of its port"),
            Self::NoPort(port) => write!(f, "the box has no free port {port}"),
            Self::Engine(_) => f.write_str("the engine can't be measured"),
            Self::Folder(_) => f.write_str("can't create a temporary folder"),
            Self::Namespace(_) => {
                f.write_str("can't make a network namespace, which takes root's privileges")
            }
            Self::Interface { name, .. } => write!(f, "the interface {name} can't be used"),
            Self::Daemon(_) => f.write_str("the daemon can't be started"),
            Self::Client(_) => f.write_str("a request to the daemon failed"),
            Self::Missing { expected, found } => {
                write!(f, "after the rebuild of the fabric, {found} of {expected} boxes run")
            }
            Self::Peer { name, .. } => write!(f, "{name} can't be started"),
            Self::PeerEnded { name, status, last } => write!(f, "{name} has ended ({status}): {last}"),
            Self::Controller(_) => f.write_str("the switch and its controller can't reach each other"),
            Self::Refused(_) => f.write_str("the switch refuses a message of its controller"),
            Self::PlainProcess(_) => f.write_str("a plain process can't be measured"),
            Self::WriteRefused(reply) => write!(f, "a plain process has refused a write: {reply}"),
            Self::Late { what } => write!(f, "timed out waiting for {what}"),
            Self::NotANumber(text) => write!(f, "a counter has the value {text:?}, which is no number"),
            // Their messages name the operation.
            Self::Host(error) => error.fmt(f),
            Self::Create(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Layout(error) => error.fmt(f),
            Self::Switch(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Flow(error) => error.fmt(f),
            Self::Match(error) => error.fmt(f),
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MeasureError {
    /// The cause. If the message is the cause's, the cause's own cause.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Control(error) => Some(error),
            Self::Port(error) => Some(error),
            Self::Engine(error) => Some(error.as_ref()),
            Self::Daemon(error)
            | Self::PlainProcess(error)
            | Self::Folder(error)
            | Self::Namespace(error)
            | Self::Interface { error, .. }
            | Self::Controller(error)
            | Self::Peer { error, .. } => Some(error),
            Self::Client(error) => Some(error.as_ref()),
            Self::Refused(error) => Some(error),
            Self::Host(error) => error.source(),
            Self::Create(error) => error.source(),
            Self::Snapshot(error) => error.source(),
            Self::System(error) => error.source(),
            Self::Layout(error) => error.source(),
            Self::Switch(error) => error.source(),
            Self::Ring(error) => error.source(),
            Self::Flow(error) => error.source(),
            Self::Match(error) => error.source(),
            Self::Name(error) => error.source(),
            Self::NoKvm
            | Self::NoEntry
            | Self::NoThreads
            | Self::Command(_)
            | Self::NoPort(_)
            | Self::NotANumber(_)
            | Self::Missing { .. }
            | Self::PeerEnded { .. }
            | Self::WriteRefused(_)
            | Self::Late { .. } => None,
        }
    }
}

macro_rules! from {
    ($($kind:ident => $variant:ident),*) => {
        $(impl From<$kind> for MeasureError {
            fn from(error: $kind) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

impl From<api::client::ClientError> for MeasureError {
    fn from(error: api::client::ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

from!(LayoutError => Layout, HostError => Host, CreateError => Create, CallError => Control, PortFault => Port,
    SnapshotError => Snapshot, SystemError => System, RingError => Ring, SwitchError => Switch,
    FlowError => Flow, MatchError => Match);
