//! Services and chains of steering switches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::CreateBox;
use crate::name::{BoxName, ChainName, NameError, Owner, PortName, ServiceName, StackName, SwitchName};
use crate::text::as_text;
use crate::time::Time;
use crate::translation::{RefusedTuples, Translation, TranslationStatus};

/// Instances of one service, including those that are drained.
pub const MAX_REPLICAS: u16 = 128;

/// Services of one chain.
pub const MAX_CHAIN_LENGTH: usize = 32;

/// Services, ports and chains that the instances of one service may send to.
pub const MAX_DESTINATIONS: usize = 64;

/// The ports of an instance through which the packets of chains pass.
///
/// Packets of the forward direction enter at the inner port, and those of the reverse direction at the outer one. What an
/// instance sends at one of the two leaves on that side. A service with one port receives and sends everything there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Faces {
    /// The number of the inner port.
    pub inner: u8,
    /// The number of the outer port. Absent: the service has one port.
    pub outer: Option<u8>,
}

impl Default for Faces {
    /// One port, number 0.
    fn default() -> Self {
        Self { inner: 0, outer: None }
    }
}

impl Faces {
    /// The ports, the inner one first.
    pub fn ports(self) -> impl Iterator<Item = u8> {
        [Some(self.inner), self.outer].into_iter().flatten()
    }

    /// The number of ports that an instance has at least.
    pub fn port_count(self) -> u8 {
        self.ports().max().map_or(0, |last| last.saturating_add(1))
    }
}

/// Text that does not name the faces of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacesError;

impl fmt::Display for FacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the faces of a service are `in=PORT`, or `in=PORT,out=PORT` with two different ports from 0 to 15")
    }
}

impl std::error::Error for FacesError {}

impl FromStr for Faces {
    type Err = FacesError;

    fn from_str(text: &str) -> Result<Self, FacesError> {
        let port = |text: &str| text.parse::<u8>().ok().filter(|port| *port < 16);
        let (inner, outer) = match text.split_once(',') {
            Some((inner, outer)) => (inner, Some(outer)),
            None => (text, None),
        };
        let inner = inner.strip_prefix("in=").and_then(port).ok_or(FacesError)?;
        let outer = match outer {
            Some(outer) => Some(outer.strip_prefix("out=").and_then(port).ok_or(FacesError)?),
            None => None,
        };
        if outer == Some(inner) { Err(FacesError) } else { Ok(Self { inner, outer }) }
    }
}

impl fmt::Display for Faces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "in={},out={outer}", self.inner),
            None => write!(f, "in={}", self.inner),
        }
    }
}

as_text!(
    Faces,
    "Faces",
    "^in=[0-9]{1,2}(,out=[0-9]{1,2})?$",
    "The ports of an instance through which the packets of chains pass: `in=PORT`, or `in=PORT,out=PORT`. Packets of the forward direction enter at `in`, those of the reverse direction at `out`."
);

/// A service, a port or a chain that instances may send packets to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// An instance of a service of the same switch: `ToService(NAME)`.
    Service(ServiceName),
    /// A port of the switch: `ToPort(NAME)`.
    Port(PortName),
    /// A chain of the switch: `ToChain(NAME)`.
    Chain(ChainName),
}

impl FromStr for Destination {
    type Err = crate::NameError;

    fn from_str(text: &str) -> Result<Self, crate::NameError> {
        match text.split_once(':') {
            Some(("port", name)) => name.parse().map(Self::Port),
            Some(("chain", name)) => name.parse().map(Self::Chain),
            _ => text.parse().map(Self::Service),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => name.fmt(f),
            Self::Port(name) => write!(f, "port:{name}"),
            Self::Chain(name) => write!(f, "chain:{name}"),
        }
    }
}

as_text!(
    Destination,
    "Destination",
    "^((port|chain):)?[a-z0-9][a-z0-9._-]{0,62}$",
    "What instances may send packets to: the name of a service, `port:NAME` for a port of the switch, or `chain:NAME` for a chain."
);

/// The definition of a service to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateService {
    /// The name of the service, unique in its daemon.
    pub name: ServiceName,
    /// The steering switch that its instances are attached to.
    pub switch: SwitchName,
    /// The definition of an instance. Its name is that of the service, to which the names of the instances add a number. Its ports at the
    /// faces are attached to the switch.
    pub instance: CreateBox,
    /// The ports through which the packets of chains pass.
    #[serde(default)]
    pub faces: Faces,
    /// The number of instances.
    #[serde(default = "one")]
    pub replicas: u16,
    /// Between which numbers the daemon scales the service by its load. Absent: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<ReplicaRange>,
    /// Milliseconds after which an instance counts as dead that takes none of the packets that wait for it. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_after_ms: Option<u32>,
    /// Whether the instances are functions in containers and other processes, which join the service by themselves, instead of
    /// boxes. The definition of an instance then has nothing but its owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub container: bool,
    /// Functions that may have joined the service at a time. Only with `container`. Absent: as many as a service can have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u16>,
    /// Whether the functions join the packet pool that the boxes of their owner share, so that packets pass between them without
    /// being copied. Each of their processes can then read and change all packets of the pool, also after it has left, until the
    /// last member of the pool has ended. Only with `container`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_pool: bool,
    /// What instances may send packets to, beside the next service of the chain.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub may_send_to: BTreeSet<Destination>,
    /// What the service translates addresses to. Absent: it is no translator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<Translation>,
}

/// The numbers of instances between which a service is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplicaRange {
    /// The fewest: at least one.
    pub min: u16,
    /// The most: at most [`MAX_REPLICAS`], and more than `min`.
    pub max: u16,
}

impl ReplicaRange {
    /// The number in the range that is nearest to another one.
    #[must_use]
    pub fn clamp(self, replicas: u16) -> u16 {
        replicas.clamp(self.min, self.max)
    }
}

/// Text that is no range of numbers of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaRangeError;

impl fmt::Display for ReplicaRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a range of instances is `MIN-MAX`, such as `1-4`: two numbers from 1 to {MAX_REPLICAS}, of which the first is smaller"
        )
    }
}

impl std::error::Error for ReplicaRangeError {}

impl FromStr for ReplicaRange {
    type Err = ReplicaRangeError;

    fn from_str(text: &str) -> Result<Self, ReplicaRangeError> {
        let number = |text: &str| text.parse::<u16>().ok().filter(|_| !text.starts_with('+'));
        let range =
            text.split_once('-').and_then(|(min, max)| Some(Self { min: number(min)?, max: number(max)? }));
        range
            .filter(|range| 0 < range.min && range.min < range.max && range.max <= MAX_REPLICAS)
            .ok_or(ReplicaRangeError)
    }
}

impl fmt::Display for ReplicaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}

as_text!(
    ReplicaRange,
    "ReplicaRange",
    "^[0-9]{1,3}-[0-9]{1,3}$",
    "The numbers of instances between which a service is scaled by its load: `MIN-MAX`."
);

fn one() -> u16 {
    1
}

impl CreateService {
    /// The name of an instance. Numbers begin with one.
    ///
    /// # Errors
    ///
    /// The name is too long for a box.
    pub fn instance_name(name: &ServiceName, number: u16) -> Result<BoxName, NameError> {
        format!("{name}-{number}").parse()
    }
}

/// Changes the number of instances of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleService {
    /// The number of instances. Absent: as many as before, or the nearest number in the range of `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u16>,
    /// Between which numbers the daemon scales the service by its load from now on. Absent: it does not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<ReplicaRange>,
    /// Seconds after which an instance that is drained is removed, even if it still has flows.
    #[serde(default = "drain_seconds")]
    pub drain_seconds: u32,
}

fn drain_seconds() -> u32 {
    30
}

/// The definition of a chain to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateChain {
    /// The name of the chain, unique in its switch.
    pub name: ChainName,
    /// The switch.
    pub switch: SwitchName,
    /// The services that packets pass, in the forward direction: at most 32.
    pub services: Vec<ServiceName>,
    /// The port whose packets take the chain unless a flow says otherwise. Absent: only flows send packets to the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<PortName>,
    /// The port that packets leave through.
    pub to: PortName,
    /// Whether packets that come from `to` pass the chain in reverse order and leave through `from`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub both_ways: bool,
}

/// The state of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStatus {
    /// The name of the service.
    pub name: ServiceName,
    /// The switch that its instances are attached to.
    pub switch: SwitchName,
    /// The owner of the service and of its instances.
    #[serde(default)]
    pub owner: Owner,
    /// The stack that the service belongs to.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// When the service was created.
    pub created: Time,
    /// The ports through which the packets of chains pass.
    pub faces: Faces,
    /// The number of instances that the definition asks for, or that the daemon chose by the load; 0 if functions join by
    /// themselves.
    pub replicas: u16,
    /// Between which numbers the daemon scales the service by its load.
    #[serde(default)]
    pub auto: Option<ReplicaRange>,
    /// Milliseconds after which an instance counts as dead that takes none of the packets that wait for it.
    #[serde(default)]
    pub dead_after_ms: Option<u32>,
    /// The socket at which functions join, on the host of the daemon. Absent: the instances are boxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Functions that may have joined at a time, if their number is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u16>,
    /// Whether the functions join the packet pool that the boxes of their owner share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_pool: bool,
    /// What instances may send packets to.
    #[serde(default)]
    pub may_send_to: BTreeSet<Destination>,
    /// What the service translates addresses to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<Translation>,
    /// The instances, in the order of their numbers.
    pub instances: Vec<InstanceStatus>,
    /// What the instances counted that were removed since the service was created. With it, the counters of a service never
    /// decrease.
    #[serde(default)]
    pub removed: RemovedInstances,
    /// Packets for the service that were lost because it had no instance.
    #[serde(default)]
    pub no_instance: u64,
    /// Answers of the instances that the switch overruled since the service was created, by what they named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overruled: Vec<OverruledAnswers>,
    /// The instances that a change of their number takes out of the service, also those that are gone already. Only in the
    /// answer to such a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<DrainedInstance>,
}

/// Answers of the instances of a service that the switch overruled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverruledAnswers {
    /// What they named: a destination of the service, which did not exist or is of another kind. Absent: something that the service
    /// may not send to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// Their number.
    pub answers: u64,
}

/// The counters of the instances of a service that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RemovedInstances {
    /// Packets for them, also those that were lost.
    pub packets: u64,
    /// Packets for them that they never had, because they had no room.
    pub lost: u64,
    /// Their answers that the switch overruled.
    pub overruled: u64,
    /// Flows whose state they took over from other instances.
    pub taken_over: u64,
    /// What they were refused as instances of a translator.
    #[serde(skip_serializing_if = "RefusedTuples::is_zero")]
    pub refused: RefusedTuples,
}

/// An instance that a change of their number takes out of its service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainedInstance {
    /// The box.
    pub name: BoxName,
    /// How the state of its flows was handed over when that was last known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverStatus>,
}

/// The state of an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceStatus {
    /// The box.
    pub name: BoxName,
    /// Whether it receives packets: its ports at the faces are connected.
    pub up: bool,
    /// Whether its box is suspended. It counts as up, and packets wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Whether it gets no new flows, because it will be removed.
    pub draining: bool,
    /// Flows that are assigned to it.
    pub flows: u64,
    /// Packets for it from chains and other functions, both directions together, also those that were lost.
    pub packets: u64,
    /// Answers that the switch overruled, because the service may not send there.
    pub overruled: u64,
    /// Packets that wait in its rings now.
    #[serde(default)]
    pub waiting: u64,
    /// Packets for it that it never had: it had no room for them, or chains did not take them because it had little.
    #[serde(default)]
    pub lost: u64,
    /// The counters that a function publishes which attached itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// What is known of it as an instance of a translator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<TranslationStatus>,
    /// How the state of its flows is handed over, if it is drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverStatus>,
    /// Flows whose state it took over from other instances.
    #[serde(default)]
    pub taken_over: u64,
}

/// How the state of the flows of a drained instance is handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoverStatus {
    /// How far it is.
    pub phase: HandoverPhase,
    /// Flows whose state other instances have.
    pub handed_over: u64,
    /// Flows whose state stays until the instance is removed.
    pub kept: u64,
    /// Flows whose state was lost on the way.
    pub lost: u64,
    /// Why it ended early, or flows stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far a hand-over is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandoverPhase {
    /// It has not begun.
    #[default]
    Waiting,
    /// Flows are handed over.
    Running,
    /// All flows are at other instances.
    Done,
    /// Flows stay at the instance until it is removed.
    Failed,
}

/// The state of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainStatus {
    /// The definition.
    #[serde(flatten)]
    pub chain: CreateChain,
    /// The hops, in the forward direction.
    pub hops: Vec<HopStatus>,
    /// What left the chain at its end, in the forward direction and in reverse.
    pub left: [HopTraffic; 2],
}

/// All details of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainDetail {
    /// The state of the chain.
    #[serde(flatten)]
    pub status: ChainStatus,
    /// The current rates of each hop, in the forward direction and in reverse. Empty until they are measured.
    #[serde(default)]
    pub rates: Vec<[HopRates; 2]>,
    /// The stack that the chain belongs to.
    #[serde(default)]
    pub stack: Option<StackName>,
}

/// Rates of one direction at one hop of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopRates {
    /// Packets per second.
    pub packets: f64,
    /// Bits per second.
    pub bits: f64,
    /// Lost packets per second.
    pub lost: f64,
}

/// The state of one hop of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopStatus {
    /// The service.
    pub service: ServiceName,
    /// The packets for it, in the forward direction and in reverse.
    pub traffic: [HopTraffic; 2],
    /// The mean time from the delivery of a packet to its return, in nanoseconds, from samples: waiting and processing
    /// together. Absent: no sample yet.
    #[serde(default)]
    pub mean_ns: Option<u64>,
    /// Packets that wait in the rings of its instances now, those of other chains too.
    #[serde(default)]
    pub waiting: u64,
}

/// Packets of one direction at one place of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopTraffic {
    /// Packets, also those that were lost here.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets lost here, which `packets` counts too: there was no room, or no instance.
    pub lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_one_or_two_ports() {
        for text in ["in=0", "in=3,out=0", "in=15,out=14"] {
            assert_eq!(text.parse::<Faces>().unwrap().to_string(), text);
        }
        for text in ["", "0", "in=16", "in=1,out=1", "out=1", "in=0,in=1", "in=0,out=1,out=2", "in=+0x"] {
            assert_eq!(text.parse::<Faces>(), Err(FacesError), "{text}");
        }
        let faces: Faces = "in=2,out=0".parse().unwrap();
        assert_eq!((faces.ports().collect::<Vec<_>>(), faces.port_count()), (vec![2, 0], 3));
    }

    #[test]
    fn ranges_of_instances_are_two_numbers() {
        for text in ["1-4", "2-128"] {
            assert_eq!(text.parse::<ReplicaRange>().unwrap().to_string(), text);
        }
        for text in
            ["", "4", "0-4", "4-4", "4-1", "1-129", "1-", "-4", "+1-4", "1-+4", "1-4-5", "1 - 4", "1-99999"]
        {
            assert_eq!(text.parse::<ReplicaRange>(), Err(ReplicaRangeError), "{text}");
        }
        let range: ReplicaRange = "2-4".parse().unwrap();
        assert_eq!([1, 2, 3, 9].map(|replicas| range.clamp(replicas)), [2, 2, 3, 4]);
    }

    #[test]
    fn destinations_are_services_ports_or_chains() {
        for text in ["quarantine", "port:wan0", "chain:web"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        for text in ["port:", "chain:", "flow:web", ":web", "chain:port:web"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
