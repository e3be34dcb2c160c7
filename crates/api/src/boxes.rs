//! Boxes: how one is made, and what is known of it.

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
use crate::value::Value;

/// What a box runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// A virtual machine where the daemon can make them, else a process.
    #[default]
    Auto,
    /// A virtual machine; refused where there is no usable KVM.
    Vm,
    /// A process without privileges, in namespaces of its own.
    Process,
    /// A thread of the daemon, without any isolation: for development. A daemon takes it only if it was started for
    /// that.
    None,
}

/// What happens when a box ends without having been told to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// It stays ended.
    Never,
    /// It is made anew after a crash, at once the first time, then after pauses that grow.
    #[default]
    OnFailure,
    /// It is made anew after any end that nobody asked for. A configuration that stops by itself ends no box.
    Always,
}

/// Makes a box, and starts it.
///
/// The configuration is checked first. If it or anything else is refused there is no box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBox {
    /// Its name.
    pub name: BoxName,
    /// Its main configuration, in Click's language.
    pub configuration: String,
    /// What the configuration is called in diagnostics, such as the name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// What it runs in.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Private memory: variables, heap and stack. Only what the box touches is taken.
    #[serde(default = "default_memory")]
    pub memory: Size,
    /// Slots of each ring of its ports.
    #[serde(default)]
    pub ring: Ring,
    /// Its ports, at most 16: the N-th is `FromDevice(N)` and `ToDevice(N)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRequest>,
    /// Its share of processors beside other boxes.
    #[serde(default)]
    pub cpu_weight: Weight,
    /// Most processor time that it gets, even if nobody else wants it; without it, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_limit: Option<Cores>,
    /// Whether it gets a processor of its own, which then polls: for low latency. Refused when none is left.
    #[serde(default)]
    pub dedicated: bool,
    /// Whether it shares a packet pool with its owner's other boxes that do: packets go from one to the other without
    /// being copied, and each of them can read and change the packets of all. Boxes at pipes do so anyway.
    #[serde(default)]
    pub share_packets: bool,
    /// What happens when it ends by itself.
    #[serde(default)]
    pub restart: Restart,
    /// Who it belongs to.
    #[serde(default)]
    pub owner: Owner,
    /// Anything the caller wants to find it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it is started; else it is only defined, until it is told to start.
    #[serde(default = "yes")]
    pub start: bool,
}

impl CreateBox {
    /// A box with everything else as usual.
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

/// Private memory of a box of which nothing else is said: enough for a firewall of thousands of rules.
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
    /// Its Ethernet address; without it the daemon makes one up, and keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// What it may cost the switch.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// What a box is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoxState {
    /// It is defined, and has not been started.
    Created,
    /// It runs, or rests until there is work.
    Running,
    /// It stands still, on request.
    Suspended,
    /// It was told to stop, or it ended in order by itself.
    Stopped,
    /// It crashed and will not be made anew: its policy says so, or it crashed too often.
    Crashed,
    /// It crashed, and waits to be made anew.
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
    /// Who it belongs to.
    pub owner: Owner,
    /// What it can be found by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The stack that it was made by.
    #[serde(default)]
    pub stack: Option<crate::StackName>,
    /// What it is doing.
    pub state: BoxState,
    /// What it runs in: never `auto`, unless it was never started.
    pub sandbox: Sandbox,
    /// Its process, or the thread that runs its virtual machine; none when it doesn't run.
    #[serde(default)]
    pub pid: Option<u32>,
    /// When it was made.
    pub created: Time,
    /// When it last began to run.
    #[serde(default)]
    pub started: Option<Time>,
    /// For how long it has run since then, in milliseconds; 0 when it doesn't run.
    pub uptime_ms: u64,
    /// Milliseconds from the request to its first turn with the configuration installed, when it last started.
    #[serde(default)]
    pub boot_ms: Option<f64>,
    /// How often it was made anew.
    pub restarts: u32,
    /// Names of the configurations that it runs, in the order in which they came.
    pub configurations: Vec<ConfigurationName>,
    /// Private memory that it may take.
    pub memory: Size,
    /// Slots of its rings.
    pub ring: Ring,
    /// Its share of processors.
    pub cpu_weight: Weight,
    /// Most processor time that it gets.
    #[serde(default)]
    pub cpu_limit: Option<Cores>,
    /// Whether it gets a processor of its own.
    pub dedicated: bool,
    /// Whether its packets lie in a pool that its owner's other boxes share.
    #[serde(default)]
    pub share_packets: bool,
    /// The number of the processor that it has for itself; nothing while it is not running, or shares processors.
    #[serde(default)]
    pub processor: Option<u32>,
    /// What happens when it ends by itself.
    pub restart: Restart,
    /// What it has used since it was made, crashes and restarts included.
    pub usage: Usage,
    /// What passed its ports since it was made.
    pub traffic: Traffic,
    /// How much passes at present.
    pub rates: Rates,
    /// Its dropped packets by reason, inside of it and at its ports, since it was made.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// A box, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoxDetail {
    /// What stands in the list.
    #[serde(flatten)]
    pub status: BoxStatus,
    /// Its ports, in order.
    pub ports: Vec<PortStatus>,
    /// The configurations that it runs, in the order in which they came.
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

/// What a box has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Its own processor time, nanoseconds.
    pub own_ns: u64,
    /// Processor time that the switches spent on its packets, nanoseconds.
    pub switch_ns: u64,
    /// Turns that it had on a worker; 0 in a process.
    #[serde(default)]
    pub turns: u64,
    /// Turns that it did not end by itself, and was kicked out of.
    #[serde(default)]
    pub overstays: u64,
    /// Private memory that it has touched, bytes.
    #[serde(default)]
    pub memory: Size,
    /// Bytes of its heap in use, as it says.
    #[serde(default)]
    pub heap: Size,
    /// Most bytes of its heap ever in use, as it says.
    #[serde(default)]
    pub heap_peak: Size,
    /// Console lines and pieces of files that it said it had no room for, or that were too many.
    #[serde(default)]
    pub lost_events: u64,
}

/// Packets and bytes; Ethernet headers count, checksums of frames don't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets that went into the box, or came in through the port of a switch.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that came out of the box, or went out through the port of a switch.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// What passes and is used in a second, measured over about the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Packets a second that go in.
    pub received_packets: f64,
    /// Their bits a second.
    pub received_bits: f64,
    /// Packets a second that come out.
    pub sent_packets: f64,
    /// Their bits a second.
    pub sent_bits: f64,
    /// Packets a second that are dropped.
    pub dropped_packets: f64,
    /// Processors in use: its own time and the switches' for it; 0.5 is half of one.
    pub cores: f64,
}

/// What a box that crashed left behind. All texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// When it was seen.
    pub time: Time,
    /// What happened, such as `page fault (error 0x4)`, `panic`, `killed by signal 9`.
    pub cause: String,
    /// The address that could not be reached, where there is one.
    #[serde(default)]
    pub address: Option<u64>,
    /// The configuration that ran.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The element that ran.
    #[serde(default)]
    pub element: Option<String>,
    /// What the program said.
    #[serde(default)]
    pub message: String,
    /// Registers at an exception, the instruction pointer first; empty otherwise.
    #[serde(default)]
    pub registers: Vec<Register>,
    /// The first bytes of the packet in hand, or of the first one if the element was handed several at once; none when
    /// there was none.
    #[serde(default)]
    pub packet: Option<Value>,
    /// What the element was handed at once: any of these packets may have been the cause. None when there were none.
    #[serde(default)]
    pub batch: Option<CrashBatch>,
}

/// The packets that an element was handed at once when its box crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrashBatch {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub packets: Vec<CrashPacket>,
}

/// A packet that an element was handed when its box crashed.
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
    /// Its value, as `0x` and hexadecimal digits: JSON's numbers are too short for it.
    pub value: String,
}

/// A file that a box writes, with `ToDump` and its like. The daemon keeps it as long as the box is there, within
/// limits.
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
    /// When it came.
    pub time: Time,
    /// The configuration that said it; none when it is the daemon's.
    #[serde(default)]
    pub configuration: Option<String>,
    /// The line, escaped, without its end.
    pub text: String,
    /// Lines that were lost before this one, because there were too many.
    #[serde(default)]
    pub lost: u64,
}

/// Which lines of a log are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// Whether lines to come are wanted, too.
    #[serde(default)]
    pub follow: bool,
    /// How many of the lines so far; without it all that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
}
