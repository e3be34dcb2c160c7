//! The contents of orders and answers.

use ::model::{
    AddFlow, AddPort, AddressRange, Attachment, BoxName, ChainStatus, ConfigurationName, CrashReport,
    CreateBox, CreateChain, CreateSwitch, Destination, Diagnostic, Event, Faces, File, ImageDigest,
    InstanceStatus, Isolation, LinkState, LogLine, MacAddr, OpenFlowPort, OverruledAnswers, Owner,
    PacketAccount, PacketPlaces, PortName, RecordedWrite, RemovedInstances, ServiceName, StaticMapping,
    SteeringStatus, SwitchName, Time, Traffic,
};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

/// What identifies the text and files of a configuration: two that are equal have the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationVersion {
    /// When it was installed.
    pub installed: Time,
    /// How often it was swapped.
    pub swaps: u32,
}

/// A configuration with its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Configuration {
    /// Its name.
    pub name: ConfigurationName,
    /// Its version.
    pub version: ConfigurationVersion,
    /// Its text.
    pub text: String,
    /// Its files.
    pub files: Vec<File>,
    /// What it may send packets to, if its box is an instance of a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
    /// Variables that its box defines, without `$`, and their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
}

/// A configuration that is installed in a box.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConfigurationState {
    /// Its name.
    pub name: ConfigurationName,
    /// Its version.
    pub version: ConfigurationVersion,
    /// Its warnings, without the name of a file.
    pub diagnostics: Vec<Diagnostic>,
}

/// The lifecycle phase of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It was defined but never started.
    Created,
    /// It is being created, and its configurations are installed.
    Booting,
    /// It runs.
    Running,
    /// It is suspended.
    Suspended,
    /// It was stopped, or stopped on its own.
    Stopped,
    /// It crashed and will not restart.
    Crashed,
    /// It crashed and will restart.
    Waiting,
}

impl Phase {
    /// The phase as a predicate in a sentence, after the box's name.
    pub fn words(self) -> &'static str {
        match self {
            Self::Created => "has not been started",
            Self::Booting => "is being started",
            Self::Running => "is already running",
            Self::Suspended => "is suspended",
            Self::Stopped => "is stopped",
            Self::Crashed => "has crashed",
            Self::Waiting => "has crashed and will restart",
        }
    }
}

/// What runs a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxKind {
    /// A virtual machine.
    Vm,
    /// A process.
    Process,
}

/// A started box.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// How long the start took.
    pub boot: Duration,
    /// The installed configurations.
    pub configurations: Vec<ConfigurationState>,
    /// Its state then. It is missing after a `restore`, and from an earlier version.
    #[serde(default)]
    pub runtime: Option<Box<BoxRuntime>>,
}

/// The processor time of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Processor time.
    pub time: Duration,
    /// Turns of a virtual machine.
    pub turns: u64,
    /// Turns in which it was preempted.
    pub overruns: u64,
}

/// Which boxes are asked themselves for their counters. Asking wakes a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// None: the counters are those that they reported last.
    None,
    /// Those that have run since they were last asked.
    Active,
    /// All that run.
    All,
}

/// What a box reports of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxStats {
    /// Bytes of its heap in use.
    pub heap_used: u64,
    /// The highest number of them.
    pub heap_peak: u64,
    /// Messages that it lost because nobody fetched them in time.
    pub lost_events: u64,
}

/// The state of a box.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BoxRuntime {
    /// Its name.
    pub name: BoxName,
    /// Its phase.
    pub phase: Phase,
    /// When it was last started.
    pub started: Option<Time>,
    /// How long it has run since. `None` if it does not run.
    pub uptime: Option<Duration>,
    /// How long the last start took.
    pub boot: Option<Duration>,
    /// Restarts after crashes.
    pub restarts: u32,
    /// Its last crash.
    pub crash: Option<CrashReport>,
    /// The processor time of all its instances.
    pub usage: ResourceUsage,
    /// The processor time of each of its cores since it was last started, if it has several.
    #[serde(default)]
    pub core_times: Vec<Duration>,
    /// Packets dropped inside all its instances, by reason.
    pub drops: BTreeMap<String, u64>,
    /// What became of the other packets in all its instances, as it last reported.
    #[serde(default)]
    pub account: PacketAccount,
    /// Where its packets were lost, were discarded or wait, as it last reported, if it was asked for by name.
    #[serde(default)]
    pub places: PacketPlaces,
    /// What it reports itself, if it was asked and answered in time.
    pub stats: Option<BoxStats>,
    /// Its process.
    pub process: Option<i32>,
    /// The processes of its other cores.
    #[serde(default)]
    pub other_processes: Vec<i32>,
    /// Its reserved processor.
    pub processor: Option<u32>,
    /// What runs it. `None` if it was never started.
    pub sandbox: Option<SandboxKind>,
    /// What each of its ports is attached to.
    pub attachments: Vec<Attachment>,
    /// Its installed configurations.
    pub configurations: Vec<ConfigurationState>,
}

/// A box, for a daemon that adopts it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BoxInventory {
    /// Its definition, without texts and files.
    pub definition: CreateBox,
    /// Its phase.
    pub phase: Phase,
    /// The versions of its configurations, in order.
    pub configurations: Vec<(ConfigurationName, ConfigurationVersion)>,
    /// The number of the last line of its log.
    pub last_line: u64,
    /// The number of the last write that changed its configurations. A fabric that does not record them has none.
    #[serde(default)]
    pub last_write: u64,
}

/// The writes to a box's handlers that changed its configurations since it was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritesReply {
    /// The writes of clients, in order.
    pub writes: Vec<RecordedWrite>,
    /// The handlers that the box wrote itself, in the order of the last writes.
    #[serde(default)]
    pub own: Vec<RecordedWrite>,
    /// The number of the last write that was ever recorded.
    pub last: u64,
    /// Earlier writes that are not kept because there were too many.
    pub omitted: u64,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortInventory {
    /// Its definition, without addresses. `default` says whether it is the default port now.
    pub port: AddPort,
    /// Whether it came with a box or with the other end of a pipe.
    pub implied: bool,
}

/// The condition that a field of a packet has some bits. 128 bits are two words, the upper one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldMatch {
    /// The number of the field in OpenFlow.
    pub field: u8,
    /// The bits.
    pub value: [u64; 2],
    /// Which bits count.
    pub mask: [u64; 2],
}

/// A flow to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDefinition {
    /// Its number.
    pub id: u64,
    /// Its packets: those that meet all conditions of one of these lists.
    pub matches: Vec<Vec<FieldMatch>>,
    /// What the user wrote, with the priority. The fabric returns the text of the condition, and does not read it.
    pub flow: AddFlow,
}

/// A service of a steering switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceDefinition {
    /// Its name.
    pub name: ServiceName,
    /// The ports through which the packets of chains pass.
    pub faces: Faces,
    /// What its instances may send packets to, in the order in which their configurations know it.
    pub destinations: Vec<Destination>,
    /// Its instances: boxes whose ports at the faces are attached to the switch.
    pub instances: Vec<InstanceDefinition>,
    /// Milliseconds after which an instance counts as dead that takes none of the packets that wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_after_ms: Option<u32>,
    /// Functions that may have joined at a time, if their number is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u16>,
    /// The owner whose packet pool functions join. Absent: each has buffers of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Owner>,
    /// Set if it is a translator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationDefinition>,
}

/// What a service translates addresses to, beside the ranges of its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranslationDefinition {
    /// Packets from outside that all go to one instance.
    pub mappings: Vec<StaticMapping>,
}

/// An instance of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceDefinition {
    /// The box.
    pub name: BoxName,
    /// Whether it gets no new flows, because it will be removed.
    pub draining: bool,
    /// What it translates addresses to, if its service is a translator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<AddressRange>,
}

/// The services and chains of a steering switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringDefinition {
    /// The services.
    pub services: Vec<ServiceDefinition>,
    /// The chains.
    pub chains: Vec<CreateChain>,
}

/// The state of the services and chains of a steering switch, in the order of the definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteeringReply {
    /// The instances of each service.
    pub services: Vec<(ServiceName, Vec<InstanceStatus>)>,
    /// The chains.
    pub chains: Vec<ChainStatus>,
    /// What the instances counted that services no longer have. Earlier versions do not tell it.
    #[serde(default)]
    pub removed: Vec<(ServiceName, RemovedInstances)>,
    /// Packets for which services had no instance. Earlier versions do not tell it.
    #[serde(default)]
    pub no_instance: Vec<(ServiceName, u64)>,
    /// Answers that were overruled, by what they named. Earlier versions do not tell it.
    #[serde(default)]
    pub overruled: Vec<(ServiceName, Vec<OverruledAnswers>)>,
}

/// A switch, for a daemon that adopts it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SwitchInventory {
    /// Its definition, without ports.
    pub definition: CreateSwitch,
    /// Its ports.
    pub ports: Vec<PortInventory>,
    /// The addresses that were assigned.
    pub addresses: Vec<(MacAddr, PortName)>,
}

/// Everything that a fabric has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InventoryReply {
    /// The boxes.
    pub boxes: Vec<BoxInventory>,
    /// The switches.
    pub switches: Vec<SwitchInventory>,
    /// The number of the last event.
    pub last_event: u64,
    /// When the fabric started. Earlier versions report it among the [`FabricFacts`] only.
    #[serde(default)]
    pub started: Option<Time>,
    /// The images that were loaded for boxes.
    #[serde(default)]
    pub images: Vec<ImageDigest>,
}

/// What a fabric can run, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FabricFacts {
    /// The fabric's process.
    pub process: u32,
    /// The program's version.
    pub version: String,
    /// When it started.
    pub started: Time,
    /// The available sandboxes; the first is the default.
    pub sandboxes: Vec<SandboxKind>,
    /// The number of processors.
    pub cores: u32,
    /// The number of workers.
    pub workers: u32,
    /// Packets that captures skipped because readers were too slow.
    pub capture_lost: u64,
    /// Whether it may lower the niceness of boxes in processes.
    #[serde(default)]
    pub raises_priority: bool,
    /// What isolates boxes in processes.
    #[serde(default)]
    pub isolation: Isolation,
}

/// Counters of a port, from the switch's side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets that came in from the port.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that went out to the port.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Lost packets by reason, without the reasons that lost none.
    pub drops: BTreeMap<String, u64>,
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.received_packets += other.received_packets;
        self.received_bytes += other.received_bytes;
        self.sent_packets += other.sent_packets;
        self.sent_bytes += other.sent_bytes;
        for (reason, count) in &other.drops {
            *self.drops.entry(reason.clone()).or_default() += count;
        }
    }
}

/// The statistics of one port, from the switch's side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStats {
    /// Packets, bytes, drops.
    pub counters: Counters,
    /// Time that the switch spent on its packets.
    pub cost: Duration,
    /// Why the port is down; `None` if it works.
    pub fault: Option<String>,
    /// Whether a peer is connected to the port, if it has a connection of its own.
    #[serde(default)]
    pub link: Option<LinkState>,
    /// What the port waits for, if it does, although it works.
    #[serde(default)]
    pub awaits: Option<String>,
    /// The number of queues that it has of its device; 0 if there is none.
    #[serde(default)]
    pub queues: u32,
    /// Its number in OpenFlow; 0 if the switch does not steer.
    #[serde(default)]
    pub openflow: u32,
}

impl PortStats {
    /// The traffic of a port of a switch.
    pub fn traffic(&self) -> Traffic {
        let Counters { received_packets, received_bytes, sent_packets, sent_bytes, .. } = self.counters;
        Traffic { received_packets, received_bytes, sent_packets, sent_bytes }
    }

    /// The traffic from the box's side: what the switch sends, the box receives.
    pub fn box_traffic(&self) -> Traffic {
        let Traffic { received_packets, received_bytes, sent_packets, sent_bytes } = self.traffic();
        Traffic {
            received_packets: sent_packets,
            received_bytes: sent_bytes,
            sent_packets: received_packets,
            sent_bytes: received_bytes,
        }
    }

    /// Adds the statistics of another port.
    pub fn add(&mut self, other: &Self) {
        self.counters += &other.counters;
        self.cost += other.cost;
    }
}

/// What passed a port that is one end of a link to another fabric, since the link was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The switch.
    pub switch: SwitchName,
    /// Its port.
    pub port: PortName,
    /// The switch at the other end.
    pub far_switch: SwitchName,
    /// Its port.
    pub far_port: PortName,
    /// Identifies the link: both ends have the same number.
    pub link: u64,
    /// Packets that this end put into the link.
    pub sent: u64,
    /// Packets that this end took out of the link.
    pub received: u64,
    /// Packets from the other end that wait to be taken here.
    pub waiting: u64,
}

/// The statistics of all ports at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrafficSnapshot {
    /// By switch and port.
    pub switches: BTreeMap<SwitchName, BTreeMap<PortName, PortStats>>,
    /// The number of addresses in each switch's table.
    pub addresses: BTreeMap<SwitchName, u32>,
    /// By box and number of its port.
    pub boxes: BTreeMap<BoxName, BTreeMap<u8, PortStats>>,
    /// How packets found their flows, by steering switch.
    #[serde(default)]
    pub steering: BTreeMap<SwitchName, SteeringStatus>,
    /// The sum over the ports that were removed, by switch.
    #[serde(default)]
    pub removed: BTreeMap<SwitchName, PortStats>,
}

impl TrafficSnapshot {
    /// The sum over the ports of a switch, with those that were removed: it never becomes less.
    pub fn switch(&self, name: &SwitchName) -> PortStats {
        let ports = self.switches.get(name).into_iter().flat_map(BTreeMap::values);
        sum(ports.chain(self.removed.get(name)))
    }

    /// Counts a port among those that were removed.
    pub fn remove_port(&mut self, switch: &SwitchName, port: &PortName) {
        if let Some(stats) = self.switches.get_mut(switch).and_then(|ports| ports.remove(port)) {
            self.removed.entry(switch.clone()).or_default().add(&stats);
        }
    }

    /// The statistics of a box's ports, by number.
    pub fn ports(&self, name: &BoxName) -> impl Iterator<Item = (u8, &PortStats)> {
        self.boxes.get(name).into_iter().flatten().map(|(number, stats)| (*number, stats))
    }

    /// The sum over the ports of a box.
    pub fn whole_box(&self, name: &BoxName) -> PortStats {
        sum(self.ports(name).map(|(_, port)| port))
    }
}

fn sum<'a>(ports: impl Iterator<Item = &'a PortStats>) -> PortStats {
    let mut sum = PortStats::default();
    ports.for_each(|port| sum.add(port));
    sum
}

/// Lines of a box's log, each with its number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines.
    pub lines: Vec<(u64, LogLine)>,
    /// Requested lines that the fabric no longer has.
    pub lost: u64,
    /// The number of the last line of the log.
    pub last: u64,
    /// The number of the first line that the fabric still has.
    pub first: u64,
}

/// Events, each with the fabric's number of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventPage {
    /// The events. Their own sequence numbers are those of the fabric.
    pub events: Vec<Event>,
    /// Requested events that the fabric no longer has.
    pub lost: u64,
    /// Boxes whose logs have grown since the last page.
    pub talkative: Vec<BoxName>,
}

/// A file that a box has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatus {
    /// Its name in the box, escaped for display.
    pub name: String,
    /// Stored bytes.
    pub bytes: u64,
    /// Bytes that were dropped.
    pub lost: u64,
}

/// A moment in the life of a steering switch, as far as the numbers of its names go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortNumberMark {
    /// What distinguishes the switch from all others, also from those of other fabrics.
    pub switch: u64,
    /// The last change of its numbers.
    pub change: u64,
}

/// A part of a report about what controllers have added to a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerReportReply {
    /// The multipart replies: what follows the header of each message.
    pub bodies: Vec<ByteBuf>,
    /// Where the next part begins; `None` after the last one.
    pub next: Option<u64>,
}

/// Numbers that a switch has given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPortNumbersReply {
    /// The moment up to which this is all.
    pub mark: PortNumberMark,
    /// The names and their numbers, in the order in which they were given.
    pub numbers: Vec<(OpenFlowPort, u16)>,
}

/// A configuration whose elements were given other arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewriteReply {
    /// Its text.
    pub text: String,
    /// The elements whose arguments could not be changed, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// The result of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CheckOutcome {
    /// The box accepted the configuration, with these remarks.
    Accepted(Vec<Diagnostic>),
    /// It rejected the configuration.
    Rejected(Vec<Diagnostic>),
    /// The check itself failed, for this reason.
    Failed(String),
    /// The check was ended because it exceeded a limit. The answer to an order without limits is `Failed` instead, which
    /// earlier daemons know.
    Exceeded(CheckLimit),
}

/// The limits of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckLimits {
    /// The longest time from the start of its box to its answer.
    pub time: Duration,
    /// Bytes of private memory of its box. Only touched memory is allocated.
    pub memory: u64,
}

impl CheckLimits {
    /// Maximum time, whatever the daemon wants: a check takes one of the fabric's places for checks.
    pub const MAX_TIME: Duration = Duration::from_secs(600);

    /// Minimum memory: enough for the image to start.
    pub const MIN_MEMORY: u64 = 1 << 20;

    /// Maximum memory, whatever the daemon wants: several checks run at once.
    pub const MAX_MEMORY: u64 = 4 << 30;

    /// The limits that a fabric applies for a daemon that wants these.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self {
            time: self.time.min(Self::MAX_TIME),
            memory: self.memory.clamp(Self::MIN_MEMORY, Self::MAX_MEMORY),
        }
    }
}

impl Default for CheckLimits {
    /// Limits that no useful configuration exceeds: the check of a million routes takes seconds, and 200 MB.
    fn default() -> Self {
        Self { time: Duration::from_secs(60), memory: 1 << 30 }
    }
}

/// A limit of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckLimit {
    /// Its time.
    Time,
    /// Its memory.
    Memory,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_cannot_ask_for_unlimited_checks() {
        let limits = |time, memory| CheckLimits { time, memory };
        let (most_time, least, most) =
            (CheckLimits::MAX_TIME, CheckLimits::MIN_MEMORY, CheckLimits::MAX_MEMORY);
        for within in
            [CheckLimits::default(), limits(Duration::from_millis(1), least), limits(most_time, most)]
        {
            assert_eq!(within.bounded(), within);
        }
        assert_eq!(limits(Duration::ZERO, 0).bounded(), limits(Duration::ZERO, least));
        assert_eq!(limits(Duration::MAX, u64::MAX).bounded(), limits(most_time, most));
    }
}
