//! The conversation between the daemon and a fabric.
//!
//! The daemon sends numbered [`Order`]s; the fabric answers each with a [`Reply`] of the same number, in any order, and
//! sends a [`Notice`] when something happened without an order. Orders are idempotent as far as their objects allow: a
//! daemon that comes back asks for the [`Inventory`](orders::Inventory) and orders only what is missing.

mod client;
mod error;
mod model;
mod order_channels;
pub mod orders;

pub use client::{Client, Pending, PendingAlone, Reader};
pub use error::{CreateFailure, FabricError};
pub use model::{
    Asked, BoxInventory, BoxRuntime, BoxStats, CheckLimit, CheckLimits, CheckOutcome, Configuration,
    ConfigurationState, ConfigurationVersion, ControllerReportReply, Counters, EventPage, FabricFacts,
    FieldMatch, FileStatus, FlowDefinition, InstanceDefinition, InventoryReply, LinkEnd, LogPage,
    NewPortNumbersReply, Phase, PortInventory, PortNumberMark, PortStats, ResourceUsage, RewriteReply,
    SandboxKind, ServiceDefinition, Started, SteeringDefinition, SteeringReply, SwitchInventory,
    TrafficSnapshot, TranslationDefinition, WritesReply,
};
pub use orders::{Ask, Order};

use crate::hello::Hello;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of this conversation. Either side also speaks the one before.
pub const VERSION: u16 = 3;

/// Bytes of an order: the configurations and files of one box.
pub const MAX_ORDER_BYTES: usize = 600 << 20;

/// Bytes of a message of the fabric: the runtime of all boxes.
pub const MAX_REPLY_BYTES: usize = 256 << 20;

/// The longest time for a request to install a configuration: a million routes take seconds, and a box in an endless loop all
/// of it.
pub const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A message of the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToFabric {
    /// The first message.
    Hello(Hello),
    /// An order.
    Order {
        /// Its number, which the reply repeats.
        number: u64,
        /// What to do.
        order: Box<Order>,
    },
}

/// A message of the fabric.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromFabric {
    /// The reply to the first message. If the two don't agree, the conversation ends with it.
    Hello(Hello),
    /// The reply to an order.
    Reply(Reply),
    /// Something happened.
    Notice(Notice),
}

/// The reply to an order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the order.
    pub number: u64,
    /// The encoded answer, whose type the order determines, or why there is none.
    pub result: Result<serde_bytes::ByteBuf, FabricError>,
}

/// What is known of a daemon's message whose contents are not: an order of a later version.
#[derive(Debug, Deserialize)]
pub enum UnknownToFabric {
    /// An order.
    Order {
        /// Its number, which the reply repeats.
        number: u64,
    },
}

/// What is known of a fabric's message whose contents are not: one of a later version.
#[derive(Debug, Deserialize)]
pub(crate) enum UnknownFromFabric {
    /// A reply with an unknown error.
    Reply(UnknownReply),
    /// Something happened.
    Notice(IgnoredAny),
}

/// What is known of such a reply.
#[derive(Debug, Deserialize)]
pub(crate) struct UnknownReply {
    /// The number of the order.
    pub(crate) number: u64,
}

/// What the fabric tells without an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// There are new events or log lines, which can be fetched.
    News,
}
