//! Flows of a steering switch: what a user adds, and how it can fail.

use flow_table::{FlowModError, Match, RemovalReason, port_number};
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

/// The name of a port in flows.
///
/// A port number is free for another port when its port was removed. A flow must not deliver to that one, so flows use keys,
/// which their owner gives to ports (see [`Steering::set_port_key`](super::Steering::set_port_key)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortKey(pub u16);

/// Keys of ports: those of a switch's ports, and of ports that flows name and that are gone.
pub(super) const MAX_PORT_KEYS: u16 = 1 << 15;

// Larger numbers stand for services and chains.
const _: () = assert!(MAX_PORT_KEYS as u32 <= port_number::SERVICES.start);

/// Where a flow sends its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowOutput {
    /// To a port. While there is none with this key, the frames have no route.
    Port(PortKey),
    /// Through the chain with this number.
    Chain(u16),
    /// As a learning bridge forwards them.
    Normal,
    /// To all ports except the source port.
    Flood,
    /// To no port.
    Drop,
}

/// A flow: the frames that meet a condition, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number, chosen by its owner.
    pub id: u64,
    /// The matches of its frames: those of any of them. The field `InPort` is that of `from`.
    pub matches: Vec<Match>,
    /// The port that its frames come from; `None` for any.
    pub from: Option<PortKey>,
    /// A frame belongs to the flow of highest priority that it matches; of those with the same, to the one that was added
    /// first.
    pub priority: u16,
    /// Where its frames go.
    pub output: FlowOutput,
    /// The time without frames after which it ends.
    pub idle_timeout: Option<Duration>,
    /// The time after which it ends.
    pub hard_timeout: Option<Duration>,
}

/// The counters of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The number of the flow.
    pub id: u64,
    /// Frames that it matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time since it was added.
    pub age: Duration,
    /// The time since its last frame, or since it was added.
    pub idle: Duration,
}

/// A flow that ended because of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedFlow {
    /// Its last state.
    pub status: FlowStatus,
    /// Which timeout has passed.
    pub reason: RemovalReason,
}

impl AddAssign for FlowStatus {
    /// Adds what another shard of the switch knows of the same flow.
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.idle = self.idle.min(other.idle);
    }
}

/// Why a flow cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowError {
    /// There is a flow with this number.
    Exists(u64),
    /// The flow has no matches.
    NoMatch,
    /// A match has the ingress port, which stands beside the matches.
    PortInMatch,
    /// Two flows of one priority have the same match, so that one would be without effect.
    SameMatch {
        /// The other flow.
        flow: u64,
    },
    /// A key is larger than keys of ports are.
    BadPort(PortKey),
    /// The table of flows refuses it.
    Table(FlowModError),
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(id) => write!(f, "there is already a flow {id}"),
            Self::NoMatch => f.write_str("the flow has no match"),
            Self::PortInMatch => f.write_str("a match of the flow contains the ingress port"),
            Self::SameMatch { flow } => {
                write!(
                    f,
                    "flow {flow} matches the same frames with the same priority; remove it, or use another priority"
                )
            }
            Self::BadPort(PortKey(key)) => write!(f, "{key} is not the key of a port"),
            Self::Table(_) => f.write_str("the flow table refuses the flow"),
        }
    }
}

impl std::error::Error for FlowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Table(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FlowModError> for FlowError {
    fn from(error: FlowModError) -> Self {
        Self::Table(error)
    }
}
