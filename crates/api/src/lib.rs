//! The daemon's interface: the types that go over the wire, the table of operations, and a client.
//!
//! HTTP with JSON, over a Unix socket or over TCP with TLS and a token. The table ([`operation`]) is data: the daemon
//! routes by it, the client calls by it, and the OpenAPI document ([`openapi`]) is made from it.
//!
//! Invariants:
//! - What the types accept is valid: names, sizes, addresses are checked while they are read, and nowhere again.
//! - A request with a field that is not known is refused; a reply may have fields that this version does not know.
//! - Nothing of the workspace is linked: a program that talks to the daemon needs this crate only.
//!
//! Absent on purpose: what the operations do, which is the daemon's; files of the caller, whose contents are sent, not
//! their paths; rendering for people.

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
mod value;

pub use boxes::{
    BoxDetail, BoxState, BoxStatus, CrashBatch, CrashPacket, CrashReport, CreateBox, LogLine, LogQuery,
    PortRequest, PortStatus, Rates, Register, Restart, Sandbox, Traffic, Usage, WrittenFile,
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
pub use value::Value;
