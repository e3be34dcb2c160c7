//! The types that the daemon's API and the fabric's protocol share: names, sizes, and definitions of boxes and switches.
//!
//! Invariants:
//! - The types hold valid values only: names, sizes and addresses are checked once, during parsing.
//! - Requests with unknown fields are rejected; replies may have fields that this version does not know.
//! - Of the workspace only `packet` is linked, for the Ethernet address.
//!
//! Absent on purpose: HTTP, JSON and any other format. The types implement serde's traits.

#![forbid(unsafe_code)]

mod account;
mod account_report;
mod audit;
mod boxes;
mod configuration;
mod controller_entries;
mod controllers;
mod error;
pub mod escape;
mod event;
mod flows;
mod handler_write;
mod host;
mod image;
mod ip_prefix;
mod mac_addr;
mod memif;
mod name;
mod path;
mod services;
mod size;
mod stack;
mod store;
mod subject;
mod switches;
mod text;
mod time;
mod traffic;
mod translation;
mod tunnels;
mod user;
mod value;

pub use account::{DiscardedPackets, LostPackets, PacketAccount, PacketPlaces, WaitingPackets};
pub use account_report::{AccountPlace, AccountQuery, AccountReport, AccountRow};
pub use audit::{AuditEntry, AuditQuery};
pub use boxes::{
    BoxDetail, BoxState, BoxStatus, CrashBatch, CrashPacket, CrashReport, CreateBox, LogLine, LogQuery,
    PortRequest, PortStatus, Register, Restart, Sandbox, Usage, WrittenFile,
};
pub use configuration::{
    Check, CheckReply, ConfigurationStatus, ConfigurationText, Diagnostic, File, HandlerArgument,
    HandlerInfo, HandlerValue, HandlerWrite, Install, Related, Severity, UploadedFile,
};
pub use controller_entries::{
    ControllerBand, ControllerBucket, ControllerEntries, ControllerEntriesQuery, ControllerEntry,
    ControllerGroup, ControllerMeter,
};
pub use controllers::{
    ControllerAddress, ControllerAddressError, ControllerMethod, ControllerRole, ControllerStatus, FailMode,
    MAX_CONTROLLERS, OpenFlowNumber, OpenFlowPort,
};
pub use error::{ApiError, ErrorCode, ErrorReason, ErrorReply, with_causes};
pub use event::{Event, EventKind, EventQuery};
pub use flows::{AddFlow, CONDITION, FlowOutput, FlowOutputError, FlowStatus};
pub use handler_write::{RecordedWrite, Save, Saved, UnsavedWrite, WriteEffect, WriteOrigin};
pub use host::{
    CgroupVersion, Counts, DrainStatus, FabricRestart, FabricStatus, HostStatus, Isolation, Kvm,
    MissingLayer, RestartQuery, StopQuery, StopReply, Upgrade, UpgradeReply,
};
pub use image::{ImageDigest, ImageDigestError, ImageSource, MAX_IMAGE_BYTES};
pub use ip_prefix::{BoundAddresses, IpPrefix, IpPrefixError, MAX_BOUND_PREFIXES};
pub use mac_addr::{MacAddr, MacAddrError};
pub use memif::{MemifSecret, MemifSecretError};
pub use name::{
    BoxName, ChainName, ConfigurationName, NameError, Owner, PipeName, PortName, ServiceName, StackName,
    SwitchName, UploadName, UserName,
};
pub use path::{Attachment, CapturePoint, CaptureQuery, HandlerPath, PathError};
pub use services::{
    ChainDetail, ChainStatus, CreateChain, CreateService, Destination, DrainedInstance, Faces, FacesError,
    HandoverPhase, HandoverStatus, HopRates, HopStatus, HopTraffic, InstanceStatus, MAX_CHAIN_LENGTH,
    MAX_DESTINATIONS, MAX_REPLICAS, OverruledAnswers, RemovedInstances, ReplicaRange, ReplicaRangeError,
    ScaleService, ServiceStatus,
};
pub use size::{
    CoreCount, CoreCountError, Cores, CoresError, Ring, RingError, Size, SizeError, TunnelMtu,
    TunnelMtuError, UdpPort, UdpPortError, Vni, VniError, Weight, WeightError,
};
pub use stack::{
    ApplyQuery, Change, ChangeAction, Changes, Drift, ExternalSwitch, RemoveQuery, Stack, StackStatus,
};
pub use store::{SetAsideEntry, StoreStatus};
pub use subject::{Subject, SubjectError};
pub use switches::{
    AddPort, AddressEntry, AddressKind, CreateSwitch, Device, DeviceError, Limits, LinkState, PortDriver,
    PortSettingError, SetAddress, SocketRole, SteeringStatus, SwitchDetail, SwitchMode, SwitchPort,
    SwitchStatus,
};
pub use time::{Time, TimeError};
pub use traffic::{Rates, Traffic};
pub use translation::{
    AddressRange, AddressRangeError, DEFAULT_SLICES, MAX_STATIC_MAPPINGS, MAX_TRANSLATED_RANGES, MappedEnd,
    MappedProtocol, RefusedTuples, StaticMapping, StaticMappingError, TRANSLATE_ADDRESS, TRANSLATE_PORTS,
    Translation, TranslationError, TranslationStatus,
};
pub use tunnels::{HostAddress, HostAddressError, Tunnel, TunnelFamilies, TunnelKind};
pub use user::{Quota, Right, RightError};
pub use value::Value;
