//! The daemon's API: the wire types, the table of operations, and a client.
//!
//! The protocol is HTTP with JSON, over a Unix socket or over TCP with TLS and a token. The table ([`operation`]) is
//! data: the daemon routes by it, the client calls by it, and the OpenAPI document ([`openapi`]) is generated from it.
//!
//! Invariants:
//! - The types hold valid values only: names, sizes and addresses are checked once, during parsing.
//! - Requests with unknown fields are rejected; replies may have fields that this version does not know.
//! - Of the workspace only `packet` is linked, for the Ethernet address: a client needs no code of the daemon.
//!
//! Absent: the implementation of the operations, which is in `daemon`; output formatting; paths of the caller's files:
//! requests contain the contents of files instead.

#![forbid(unsafe_code)]

mod boxes;
pub mod client;
mod configuration;
mod error;
mod event;
mod host;
mod mac_addr;
mod name;
pub mod openapi;
pub mod operation;
mod path;
mod size;
mod stack;
mod switches;
mod text;
mod time;
mod traffic;
mod value;

pub use boxes::{
    BoxDetail, BoxState, BoxStatus, CrashBatch, CrashPacket, CrashReport, CreateBox, LogLine, LogQuery,
    PortRequest, PortStatus, Register, Restart, Sandbox, Usage, WrittenFile,
};
pub use configuration::{
    Check, CheckReply, ConfigurationStatus, ConfigurationText, Diagnostic, File, HandlerArgument,
    HandlerInfo, HandlerValue, HandlerWrite, Install, Related, Severity,
};
pub use error::{ApiError, ErrorCode, ErrorReason, ErrorReply, with_causes};
pub use event::{Event, EventKind, EventQuery};
pub use host::{CgroupVersion, Counts, HostStatus, Kvm};
pub use mac_addr::{MacAddr, MacAddrError};
pub use name::{BoxName, ConfigurationName, NameError, Owner, PipeName, PortName, StackName, SwitchName};
pub use path::{Attachment, CapturePoint, CaptureQuery, HandlerPath, PathError};
pub use size::{Cores, CoresError, Ring, RingError, Size, SizeError, Weight, WeightError};
pub use stack::{ApplyQuery, Change, ChangeAction, Changes, Stack, StackStatus};
pub use switches::{
    AddPort, AddressEntry, AddressKind, CreateSwitch, Device, DeviceError, Limits, PortDriver, SetAddress,
    SwitchDetail, SwitchMode, SwitchPort, SwitchStatus,
};
pub use time::{Time, TimeError};
pub use traffic::{Rates, Traffic};
pub use value::Value;
