//! What a steering switch keeps for OpenFlow controllers: groups, meters, and what waits for them.
//!
//! What waits for the controllers is bounded. Frames that do not fit are lost as [`Reason::CONTROLLER_FULL`]; reports of
//! removed entries are counted.

use super::chains::Identity;
use super::contract::Outcome;
use super::flow::MAX_PORT_KEYS;
use flow_table::{
    Action, FlowModError, FlowRemoved, GroupError, Groups, Key, MeterError, Meters, Output, Owner, PathId,
    port_number,
};
use reason::Reason;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// The owner of the entries of controllers.
pub(super) const CONTROLLERS: Owner = Owner(1);

/// Frames that wait for controllers.
const MAX_PACKETS: usize = 256;

/// Reports of removed entries that wait for controllers.
const MAX_REPORTS: usize = 4096;

/// What happens to frames for controllers while none is connected (OpenFlow 1.3.5, 6.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FailMode {
    /// They are dropped.
    #[default]
    Secure,
    /// Those that no entry matches, or only a table-miss entry, are forwarded as by a learning bridge.
    Standalone,
}

/// Why a frame is sent to controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketReason {
    /// A table-miss entry sent it (`OFPR_NO_MATCH`).
    TableMiss,
    /// Another entry, a group or a packet-out message sent it (`OFPR_ACTION`).
    Action,
    /// Its time to live has passed (`OFPR_INVALID_TTL`).
    InvalidTtl,
}

/// A frame for controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerPacket {
    /// Why it is sent.
    pub reason: PacketReason,
    /// The table whose entry sent it.
    pub table: u8,
    /// The cookie of that entry; `u64::MAX` if there is none.
    pub cookie: u64,
    /// The number of the port that it came from; that of the service if an instance sent it.
    pub in_port: Option<u32>,
    /// The metadata when its processing ended.
    pub metadata: u64,
    /// Its tunnel.
    pub tunnel: u64,
    /// Bytes to send, as the output action states it; `None` if no output action sent it.
    pub max_length: Option<u16>,
    /// The frame.
    pub frame: Vec<u8>,
}

impl ControllerPacket {
    /// A frame that no entry matches.
    pub(super) fn of_miss(in_port: Option<u32>, tunnel: u64, frame: &[u8]) -> Self {
        Self {
            reason: PacketReason::TableMiss,
            table: 0,
            cookie: u64::MAX,
            in_port,
            metadata: 0,
            tunnel,
            max_length: None,
            frame: frame.to_vec(),
        }
    }
}

/// A step of a packet-out message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutStep {
    /// Performs an action.
    Perform(Action),
    /// Sends the frame through the tables (`OFPP_TABLE`).
    Table,
}

/// Why a change or message of a controller is refused. Nothing is changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlError {
    /// A change of entries.
    Flow(FlowModError),
    /// A change of groups.
    Group(GroupError),
    /// A change of meters.
    Meter(MeterError),
    /// An action names a group that does not exist (`OFPBAC_BAD_OUT_GROUP`).
    NoGroup(u32),
    /// An action names a port that cannot exist (`OFPBAC_BAD_OUT_PORT`).
    BadPort(u32),
    /// An instruction names a meter that does not exist (`OFPMMFC_UNKNOWN_METER`).
    NoMeter(u32),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow(_) => f.write_str("the tables refuse the change"),
            Self::Group(_) => f.write_str("the group is refused"),
            Self::Meter(_) => f.write_str("the meter is refused"),
            Self::NoGroup(group) => write!(f, "there is no group {group}"),
            Self::BadPort(port) => write!(f, "{port} is not the number of a port"),
            Self::NoMeter(meter) => write!(f, "there is no meter {meter}"),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Flow(error) => Some(error),
            Self::Group(error) => Some(error),
            Self::Meter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FlowModError> for ControlError {
    fn from(error: FlowModError) -> Self {
        Self::Flow(error)
    }
}

impl From<GroupError> for ControlError {
    fn from(error: GroupError) -> Self {
        Self::Group(error)
    }
}

impl From<MeterError> for ControlError {
    fn from(error: MeterError) -> Self {
        Self::Meter(error)
    }
}

/// Groups and meters, and what waits for controllers.
#[derive(Default)]
pub(super) struct Controllers {
    pub(super) groups: Groups,
    pub(super) meters: Meters,
    /// When each group was added, and the memory of its buckets.
    pub(super) group_records: BTreeMap<u32, (Duration, usize)>,
    pub(super) bucket_bytes: usize,
    /// Ports that are down, by key.
    pub(super) down: Vec<bool>,
    /// Ingress ports whose frames are not sent to controllers if no entry matches them.
    pub(super) unreported: Vec<u32>,
    pub(super) mode: FailMode,
    /// Wakes who takes what waits; `None` while the switch has no controllers.
    pub(super) wake: Option<Box<dyn Fn() + Send>>,
    pub(super) is_connected: bool,
    /// A controller is connected that gets packets which no entry matches (OpenFlow 1.0, 3.4).
    pub(super) gets_misses: bool,
    pub(super) packets: VecDeque<ControllerPacket>,
    pub(super) removed: VecDeque<FlowRemoved>,
    pub(super) lost_reports: u64,
}

impl Controllers {
    /// Whether the switch forwards as a learning bridge what controllers should decide.
    pub(super) fn is_standalone(&self) -> bool {
        self.wake.is_some() && !self.is_connected && self.mode == FailMode::Standalone
    }

    /// Queues a frame for the controllers.
    pub(super) fn queue(&mut self, packet: ControllerPacket, outcome: &mut dyn Outcome) {
        let is_miss = packet.reason == PacketReason::TableMiss;
        if is_miss && packet.in_port.is_some_and(|port| self.unreported.contains(&port)) {
            outcome.lose(Reason::PORT_CONFIG);
        } else if !self.is_connected {
            outcome.lose(match packet.reason {
                PacketReason::TableMiss => Reason::FLOW_MISS,
                _ => Reason::CONTROLLER_FULL,
            });
        } else if self.packets.len() >= MAX_PACKETS {
            outcome.lose(Reason::CONTROLLER_FULL);
        } else {
            self.packets.push_back(packet);
            outcome.take();
            if self.packets.len() == 1 {
                self.wake();
            }
        }
    }

    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    pub(super) fn report(&mut self, removed: impl IntoIterator<Item = FlowRemoved>) {
        let had_none = self.removed.is_empty();
        for removed in removed.into_iter().filter(|removed| removed.send_removed && self.is_connected) {
            match self.removed.len() < MAX_REPORTS {
                true => self.removed.push_back(removed),
                false => self.lost_reports += 1,
            }
        }
        if had_none && !self.removed.is_empty() {
            self.wake();
        }
    }

    pub(super) fn check_actions(&self, actions: &[Action]) -> Result<(), ControlError> {
        actions.iter().try_for_each(|action| match *action {
            Action::Group(group) if self.groups.get(group).is_none() => Err(ControlError::NoGroup(group)),
            Action::Output(Output::Port(port)) if port == 0 || port >= u32::from(MAX_PORT_KEYS) => {
                Err(ControlError::BadPort(port))
            }
            // The switch has no network stack.
            Action::Output(Output::Local) => Err(ControlError::BadPort(port_number::LOCAL)),
            _ => Ok(()),
        })
    }
}

/// A frame that waits for what is to be done with it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pending {
    /// Operations are to be performed on it.
    Operations(PendingOperations),
    /// It waits for its flow.
    Held(Identity),
}

/// A frame that operations are to be performed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingOperations {
    pub(super) key: Key,
    pub(super) path: PathId,
    /// How often the frame was looked up after a function had it.
    pub(super) lookups: u8,
}
