//! The messages of OpenFlow 1.3.5 (sections 6.1 and 7).

mod capabilities;
mod codec;
mod flow;
mod group;
mod header;
mod multipart;
mod packet;
mod port;
mod setup;
mod statistics;
mod table_features;
mod time;

pub use crate::action::PacketOutAction;
pub use codec::{Message, TooLong};
pub use flow::{FlowMod, FlowRemoved, FlowRemovedReason};
pub use group::{GroupMod, MeterMod};
pub use header::{HEADER, Header};
pub use multipart::{FlowSelection, MultipartReply, MultipartRequest, encode_multipart};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{Port, PortMod, PortStatus, PortStatusReason, Queue};
pub use setup::{AsyncConfig, Config, Experimenter, Features, Hello, Role, RoleRequest, TableMod};
pub use statistics::{
    Aggregate, Description, FlowStats, GroupDescription, GroupFeatures, GroupStats, MeterConfig,
    MeterFeatures, MeterStats, PortStats, QueueStats, TableStats,
};
pub use table_features::{TableFeatures, TableProperty, TablePropertyType};
