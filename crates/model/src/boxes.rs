//! Boxes: their definition and their status.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::account::{PacketAccount, PacketPlaces};
use crate::configuration::{ConfigurationStatus, File, UploadedFile};
use crate::handler_write::RecordedWrite;
use crate::image::{ImageDigest, ImageSource};
use crate::mac_addr::MacAddr;
use crate::name::{BoxName, ConfigurationName, Owner};
use crate::path::Attachment;
use crate::size::{CoreCount, Cores, Ring, Size, Weight};
use crate::switches::Limits;
use crate::time::Time;
use crate::traffic::{Rates, Traffic};
use crate::value::Value;

/// The kind of sandbox that a box runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// A virtual machine if KVM is usable, else a process.
    #[default]
    Auto,
    /// A virtual machine. Refused if KVM is not usable.
    Vm,
    /// A process without privileges, in namespaces of its own.
    Process,
}

/// The restart policy: whether a box restarts when it ends without a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never restart.
    Never,
    /// Restart after a crash: at once after the first, then after growing delays.
    #[default]
    OnFailure,
    /// Restart whenever the box ends without a request. A configuration that stops by itself does not end its box.
    Always,
}

/// The definition of a box to create.
///
/// The daemon checks the configuration first. If anything is rejected, no box is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBox {
    /// The name of the box.
    pub name: BoxName,
    /// The text of the main configuration, in Click's language.
    pub configuration: String,
    /// The name of the configuration in diagnostics, such as a file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files that the configuration reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Files that the configuration reads and that were uploaded before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadedFile>,
    /// The image that the box runs. Absent: the built-in one. It determines which element classes there are, and is as
    /// untrusted as the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
    /// The sandbox that the box runs in.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The size of the private memory, for variables, heap and stack. Pages are allocated when the box touches them.
    #[serde(default = "default_memory")]
    pub memory: Size,
    /// The number of slots in each ring of the ports.
    #[serde(default)]
    pub ring: Ring,
    /// The ports, at most 16. Port N is `FromDevice(N)` and `ToDevice(N)` in the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRequest>,
    /// The number of engines that run the configuration together, each with a part of the flows and in a sandbox with a memory
    /// of its own. More than one is refused if an element of the configuration needs the packets of all flows.
    #[serde(default, skip_serializing_if = "CoreCount::is_one")]
    pub cores: CoreCount,
    /// The share of CPU time when boxes compete.
    #[serde(default)]
    pub cpu_weight: Weight,
    /// The maximum CPU time, even if CPUs are idle. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Cores>,
    /// Whether the box gets a CPU of its own, on which it polls, for low latency. Refused if no CPU is free.
    #[serde(default)]
    pub dedicated: bool,
    /// Whether the box shares a packet pool with the other boxes of its owner that set this (zero copy). Each box of a
    /// pool can read and change the packets of all its boxes. Boxes at a pipe always share a pool.
    #[serde(default)]
    pub share_packets: bool,
    /// The restart policy.
    #[serde(default)]
    pub restart: Restart,
    /// Whether writes to handlers that change the configuration are executed again after each start, before the first
    /// packet. Otherwise a start loses them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_writes: bool,
    /// The owner of the box. Only boxes of one owner can share a pipe or a packet pool. A box can be attached to its
    /// owner's switches, and to those that are shared with its owner.
    #[serde(default)]
    pub owner: Owner,
    /// Labels, chosen by the caller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether to start the box. Otherwise it is only defined.
    #[serde(default = "yes")]
    pub start: bool,
}

impl CreateBox {
    /// A box with defaults for everything else.
    pub fn new(name: BoxName, configuration: impl Into<String>) -> Self {
        Self {
            name,
            configuration: configuration.into(),
            source: None,
            files: Vec::new(),
            uploads: Vec::new(),
            image: None,
            sandbox: Sandbox::default(),
            memory: default_memory(),
            ring: Ring::default(),
            ports: Vec::new(),
            cores: CoreCount::default(),
            cpu_weight: Weight::default(),
            cpu_limit: None,
            dedicated: false,
            share_packets: false,
            restart: Restart::default(),
            keep_writes: false,
            owner: Owner::default(),
            labels: BTreeMap::new(),
            start: true,
        }
    }

    /// The digest of the image that a user gave. The definitions of a daemon name no uploads.
    pub fn image_digest(&self) -> Option<&ImageDigest> {
        self.image.as_ref().and_then(ImageSource::digest)
    }
}

/// The default private memory of a box: enough for a firewall of thousands of rules.
fn default_memory() -> Size {
    Size(8 << 20)
}

fn yes() -> bool {
    true
}

/// A port of a box to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRequest {
    /// The switch or pipe to attach the port to.
    #[serde(default)]
    pub attach: Attachment,
    /// The Ethernet address. Absent: the daemon assigns a random one, which the port keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// Limits on the frames that the box sends.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// The state of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    /// Defined, and never started.
    Created,
    /// Running, or waiting for packets and timers.
    Running,
    /// Suspended on request.
    Suspended,
    /// Stopped on request, or ended without an error.
    Stopped,
    /// Crashed, and not restarted: the policy forbids it, or the box crashed too often in a row.
    Crashed,
    /// Crashed, and waiting to be restarted.
    Waiting,
    /// A state that this version of the client does not know.
    #[serde(other)]
    Unknown,
}

/// The status of a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxStatus {
    /// The name of the box.
    pub name: BoxName,
    /// The owner of the box.
    pub owner: Owner,
    /// Labels, chosen by the caller.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The stack that the box belongs to.
    #[serde(default)]
    pub stack: Option<crate::StackName>,
    /// The service that the box is an instance of.
    #[serde(default)]
    pub service: Option<crate::ServiceName>,
    /// The state of the box.
    pub state: BoxState,
    /// The sandbox that the box runs in. `auto` only before the first start.
    pub sandbox: Sandbox,
    /// The process ID. Absent for a virtual machine, and while the box does not run.
    #[serde(default)]
    pub pid: Option<u32>,
    /// When the box was created.
    pub created: Time,
    /// When the box was last started.
    #[serde(default)]
    pub started: Option<Time>,
    /// Milliseconds since the last start; 0 while the box does not run.
    pub uptime_ms: u64,
    /// Duration of the last start in milliseconds, until all configurations were installed.
    #[serde(default)]
    pub boot_ms: Option<f64>,
    /// Number of restarts after crashes.
    pub restarts: u32,
    /// Names of the configurations, in the order of their installation.
    pub configurations: Vec<ConfigurationName>,
    /// The size of the private memory.
    pub memory: Size,
    /// The number of slots in each ring.
    pub ring: Ring,
    /// The number of engines that run the configuration together.
    #[serde(default)]
    pub cores: CoreCount,
    /// The CPU time of each core in nanoseconds, since the last start. Empty while the box does not run, or has one core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_ns: Vec<u64>,
    /// The CPUs in use by each core, averaged over about one second; 0.5 is half a CPU. Without the switches. Empty as
    /// `core_ns` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_rates: Vec<f64>,
    /// The share of CPU time when boxes compete.
    pub cpu_weight: Weight,
    /// The maximum CPU time.
    #[serde(default)]
    pub cpu_limit: Option<Cores>,
    /// Whether the box has a CPU of its own.
    pub dedicated: bool,
    /// Whether the box shares a packet pool with other boxes of its owner.
    #[serde(default)]
    pub share_packets: bool,
    /// The number of the box's own CPU. Absent if it has none, and while it does not run.
    #[serde(default)]
    pub processor: Option<u32>,
    /// The restart policy.
    pub restart: Restart,
    /// Resources used since the box was created, across restarts.
    pub usage: Usage,
    /// Traffic since the box was created.
    pub traffic: Traffic,
    /// Current rates.
    pub rates: Rates,
    /// Dropped packets by reason since the box was created, in the box and at its ports.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// What became of the other packets of the box, since it was created.
    #[serde(default)]
    pub account: PacketAccount,
}

/// All details of a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxDetail {
    /// The status of the box.
    #[serde(flatten)]
    pub status: BoxStatus,
    /// The ports, by number.
    pub ports: Vec<PortStatus>,
    /// The configurations, in the order of their installation.
    pub installed: Vec<ConfigurationStatus>,
    /// Where packets were lost, were discarded or wait, since the configuration was last changed. Empty while the box does
    /// not run.
    #[serde(default)]
    pub places: PacketPlaces,
    /// The report of the last crash.
    #[serde(default)]
    pub crash: Option<CrashReport>,
    /// The image that the box runs. Absent: the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageDigest>,
    /// Whether writes to handlers that change the configuration are executed again after each start.
    #[serde(default)]
    pub keep_writes: bool,
    /// Writes to handlers that changed the configuration, and that the definition of the box does not have, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<RecordedWrite>,
    /// Number of earlier writes of this kind that are no longer known.
    #[serde(default)]
    pub omitted_writes: u64,
}

/// The status of a box's port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// The number of the port: N in `FromDevice(N)`.
    pub number: u8,
    /// The switch or pipe that the port is attached to.
    pub attach: Attachment,
    /// The Ethernet address of the port.
    pub mac: MacAddr,
    /// Limits on the frames that the box sends.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
    /// Traffic through the port.
    pub traffic: Traffic,
    /// Packets dropped at the port by reason, in both directions.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// Resources that a box has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// CPU time of the box in nanoseconds.
    pub own_ns: u64,
    /// CPU time that the switches spent on the box's packets, in nanoseconds.
    pub switch_ns: u64,
    /// Number of turns on a worker; 0 for a process.
    #[serde(default)]
    pub turns: u64,
    /// Number of turns that the worker ended by preemption.
    #[serde(default)]
    pub overstays: u64,
    /// Private memory in use, in bytes.
    #[serde(default)]
    pub memory: Size,
    /// Heap in use in bytes, as the box reports it.
    #[serde(default)]
    pub heap: Size,
    /// Maximum heap that was in use in bytes, as the box reports it.
    #[serde(default)]
    pub heap_peak: Size,
    /// Log lines and pieces of files that were dropped because the event channel was full.
    #[serde(default)]
    pub lost_events: u64,
}

/// The report of a crash. Texts from the box are escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// When the crash was detected.
    pub time: Time,
    /// The cause, such as `page fault (error 0x4)`, `panic` or `killed by signal 9`.
    pub cause: String,
    /// The address that caused a page fault.
    #[serde(default)]
    pub address: Option<u64>,
    /// The function of the box image that was running, and the offset of the instruction in it. Absent if the daemon has
    /// no symbols of the image.
    #[serde(default)]
    pub function: Option<String>,
    /// The configuration that was running.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The element that was running.
    #[serde(default)]
    pub element: Option<String>,
    /// The message of the panic; empty for other causes.
    #[serde(default)]
    pub message: String,
    /// The registers at an exception, the instruction pointer first; empty for other causes.
    #[serde(default)]
    pub registers: Vec<Register>,
    /// The first bytes of the packet that the element was processing, or of the first packet of its batch. Absent if
    /// there was none.
    #[serde(default)]
    pub packet: Option<Value>,
    /// The batch that the element was processing. Any of its packets may have caused the crash. Absent if there was
    /// none.
    #[serde(default)]
    pub batch: Option<CrashBatch>,
}

/// The batch that an element was processing when its box crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashBatch {
    /// Number of packets in the batch.
    pub count: u64,
    /// The first packets of the batch.
    pub packets: Vec<CrashPacket>,
}

/// A packet of the batch that an element was processing when its box crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashPacket {
    /// Length of the packet in bytes.
    pub length: u64,
    /// The first bytes of the packet.
    pub start: Value,
}

/// A register at an exception.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// The name of the register.
    pub name: String,
    /// The value as `0x` and hexadecimal digits, because JSON numbers are not exact beyond 53 bits.
    pub value: String,
}

/// A file that a box writes, for example with `ToDump`. The daemon keeps it until the box is removed, within limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenFile {
    /// The name of the file in the configuration. It is not a path on the host.
    pub name: String,
    /// Number of stored bytes.
    pub bytes: Size,
    /// Number of bytes that were dropped, because the box wrote too fast or too much.
    pub lost: Size,
}

/// A line of a box's log, written by the box or, about the box, by the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// When the line was received.
    pub time: Time,
    /// The configuration that wrote the line. Absent for lines of the daemon.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The line, escaped, without a line break.
    pub text: String,
    /// Number of lines that were lost before this one.
    #[serde(default)]
    pub lost: u64,
}

/// Which lines of a log to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Whether to wait for new lines.
    #[serde(default)]
    pub follow: bool,
    /// The number of existing lines to return. Absent: all that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}
