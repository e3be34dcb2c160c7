//! Boxes: their definition and their status.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::configuration::{ConfigurationStatus, File};
use crate::mac_addr::MacAddr;
use crate::name::{BoxName, ConfigurationName, Owner};
use crate::path::Attachment;
use crate::size::{Cores, Ring, Size, Weight};
use crate::switches::Limits;
use crate::time::Time;
use crate::traffic::{Rates, Traffic};
use crate::value::Value;

/// What a box runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// A virtual machine if KVM is usable, else a process.
    #[default]
    Auto,
    /// A virtual machine; refused if KVM is not usable.
    Vm,
    /// A process without privileges, in namespaces of its own.
    Process,
}

/// What happens when a box ends without a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// It stays stopped.
    Never,
    /// It restarts after a crash: at once the first time, then after growing delays.
    #[default]
    OnFailure,
    /// It restarts after every end that was not requested. A configuration that stops by itself does not end its box.
    Always,
}

/// The definition of a box to create.
///
/// The configuration is checked first. If it or anything else is rejected, no box is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBox {
    /// Its name.
    pub name: BoxName,
    /// Its main configuration, in Click's language.
    pub configuration: String,
    /// The name of the configuration in diagnostics, such as its file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// What it runs in.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Private memory: variables, heap and stack. Pages are allocated when the box touches them.
    #[serde(default = "default_memory")]
    pub memory: Size,
    /// Slots of each ring of its ports.
    #[serde(default)]
    pub ring: Ring,
    /// Its ports, at most 16: the N-th is `FromDevice(N)` and `ToDevice(N)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRequest>,
    /// Its share of CPU time when boxes compete.
    #[serde(default)]
    pub cpu_weight: Weight,
    /// Maximum CPU time that it gets, even if CPUs are idle; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Cores>,
    /// Whether it gets a CPU of its own, on which it polls, for low latency. Rejected if no CPU is free.
    #[serde(default)]
    pub dedicated: bool,
    /// Whether it shares a packet pool with its owner's other boxes that set this (zero copy). Each box of a pool can
    /// read and change the packets of all. Boxes joined by a pipe always share one.
    #[serde(default)]
    pub share_packets: bool,
    /// What happens when it ends without a request.
    #[serde(default)]
    pub restart: Restart,
    /// Its owner.
    #[serde(default)]
    pub owner: Owner,
    /// Labels chosen by the caller.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether to start it; otherwise it is only defined.
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
            sandbox: Sandbox::default(),
            memory: default_memory(),
            ring: Ring::default(),
            ports: Vec::new(),
            cpu_weight: Weight::default(),
            cpu_limit: None,
            dedicated: false,
            share_packets: false,
            restart: Restart::default(),
            owner: Owner::default(),
            labels: BTreeMap::new(),
            start: true,
        }
    }
}

/// The default private memory of a box: enough for a firewall of thousands of rules.
fn default_memory() -> Size {
    Size(8 << 20)
}

fn yes() -> bool {
    true
}

/// A port of a box to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRequest {
    /// What it is attached to.
    #[serde(default)]
    pub attach: Attachment,
    /// Its Ethernet address; absent: the daemon assigns one, and keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// The limits on what it sends.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// What a box is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    /// It is defined and was never started.
    Created,
    /// It runs, or waits for packets and timers.
    Running,
    /// It is suspended on request.
    Suspended,
    /// It was stopped on request, or ended without an error.
    Stopped,
    /// It crashed and will not restart: its policy forbids it, or it crashed too often in a row.
    Crashed,
    /// It crashed and waits for its restart.
    Waiting,
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A box, in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxStatus {
    /// Its name.
    pub name: BoxName,
    /// Its owner.
    pub owner: Owner,
    /// Labels chosen by the caller.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The stack that it belongs to.
    #[serde(default)]
    pub stack: Option<crate::StackName>,
    /// What it is doing.
    pub state: BoxState,
    /// What it runs in: never `auto`, unless it was never started.
    pub sandbox: Sandbox,
    /// Its process, or the thread that runs its virtual machine; absent when it doesn't run.
    #[serde(default)]
    pub pid: Option<u32>,
    /// When it was created.
    pub created: Time,
    /// When it was last started.
    #[serde(default)]
    pub started: Option<Time>,
    /// Milliseconds since it was last started; 0 when it doesn't run.
    pub uptime_ms: u64,
    /// Milliseconds that its last start took, from the request to the installed configuration.
    #[serde(default)]
    pub boot_ms: Option<f64>,
    /// How often it was restarted after a crash.
    pub restarts: u32,
    /// Names of its configurations, in the order of their installation.
    pub configurations: Vec<ConfigurationName>,
    /// Private memory that it may take.
    pub memory: Size,
    /// Slots of its rings.
    pub ring: Ring,
    /// Its share of processors.
    pub cpu_weight: Weight,
    /// Maximum CPU time that it gets.
    #[serde(default)]
    pub cpu_limit: Option<Cores>,
    /// Whether it gets a CPU of its own.
    pub dedicated: bool,
    /// Whether it shares a packet pool with its owner's other boxes.
    #[serde(default)]
    pub share_packets: bool,
    /// The number of its own CPU; absent if it does not run, or has no CPU of its own.
    #[serde(default)]
    pub processor: Option<u32>,
    /// What happens when it ends without a request.
    pub restart: Restart,
    /// Resources that it has used since its creation, across restarts.
    pub usage: Usage,
    /// Its traffic since its creation.
    pub traffic: Traffic,
    /// Its current rates.
    pub rates: Rates,
    /// Its dropped packets by reason since its creation, inside it and at its ports.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// A box, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxDetail {
    /// The fields of the list entry.
    #[serde(flatten)]
    pub status: BoxStatus,
    /// Its ports, in order.
    pub ports: Vec<PortStatus>,
    /// Its configurations, in the order of their installation.
    pub installed: Vec<ConfigurationStatus>,
    /// Its last crash.
    #[serde(default)]
    pub crash: Option<CrashReport>,
}

/// A port of a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// Its number: N in `FromDevice(N)`.
    pub number: u8,
    /// What it is attached to.
    pub attach: Attachment,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// What passed it.
    pub traffic: Traffic,
    /// Packets lost at it, by reason, on either side.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// Resources that a box has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Its own CPU time in nanoseconds.
    pub own_ns: u64,
    /// CPU time that the switches spent on its packets, in nanoseconds.
    pub switch_ns: u64,
    /// Turns that it had on a worker; 0 in a process.
    #[serde(default)]
    pub turns: u64,
    /// Turns from which it had to be preempted.
    #[serde(default)]
    pub overstays: u64,
    /// Private memory that it has touched, in bytes.
    #[serde(default)]
    pub memory: Size,
    /// Bytes of its heap in use, as the box reports.
    #[serde(default)]
    pub heap: Size,
    /// Maximum bytes of its heap that were in use, as the box reports.
    #[serde(default)]
    pub heap_peak: Size,
    /// Console lines and pieces of files that were dropped because the event channel was full.
    #[serde(default)]
    pub lost_events: u64,
}

/// The report of a crash. All texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// When the crash was detected.
    pub time: Time,
    /// What happened, such as `page fault (error 0x4)`, `panic`, `killed by signal 9`.
    pub cause: String,
    /// The faulting address, if there is one.
    #[serde(default)]
    pub address: Option<u64>,
    /// The configuration that ran.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The element that ran.
    #[serde(default)]
    pub element: Option<String>,
    /// The message of a panic.
    #[serde(default)]
    pub message: String,
    /// Registers at an exception, the instruction pointer first; empty otherwise.
    #[serde(default)]
    pub registers: Vec<Register>,
    /// The first bytes of the packet, or of the first packet of the batch, that the element was processing; empty if
    /// there was none.
    #[serde(default)]
    pub packet: Option<Value>,
    /// The batch that the element was processing: any of these packets may have been the cause. Absent if there was
    /// none.
    #[serde(default)]
    pub batch: Option<CrashBatch>,
}

/// The batch that an element was processing when its box crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashBatch {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub packets: Vec<CrashPacket>,
}

/// A packet of the batch that an element was processing when its box crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashPacket {
    /// Bytes of the whole packet.
    pub length: u64,
    /// The first of them.
    pub start: Value,
}

/// A register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// Its value, as `0x` and hexadecimal digits, because JSON numbers are too short for it.
    pub value: String,
}

/// A file that a box writes, for example with `ToDump`. The daemon keeps it until the box is removed, within limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenFile {
    /// Its name as the configuration has it. It is a name in the box, never a path of the host.
    pub name: String,
    /// Bytes that are kept.
    pub bytes: Size,
    /// Bytes that were left out, because the box wrote too fast or too much.
    pub lost: Size,
}

/// A line that a box wrote to its console, or that the daemon wrote about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// When the line was received.
    pub time: Time,
    /// The configuration that wrote it; absent for lines of the daemon.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The line, escaped, without its end.
    pub text: String,
    /// The number of lines lost before this one.
    #[serde(default)]
    pub lost: u64,
}

/// The lines of a log to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Whether to wait for new lines.
    #[serde(default)]
    pub follow: bool,
    /// The number of existing lines to return; absent: all that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}
