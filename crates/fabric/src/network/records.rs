//! The fabric's records of switches, pipes and ports: names, owners and limits. All else is kept by the `switch` crate.

use super::controller_news::ReportedController;
use super::handover_record::HandoverRecord;
use super::numbers::Numbers;
use super::pairs::{PairPipes, PairSlots};
use model::{
    AccountRow, AddFlow, AddPort, Attachment, BoxName, ChainName, CreateSwitch, Faces, Limits, MacAddr,
    Owner, PipeName, PortName, ServiceName, SwitchName,
};
use packet::steering::Steering;
use protocol::agent::ControllerState;
use protocol::fabric::{PortNumberMark, PortStats, ServiceDefinition, SteeringDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use switch::driver::FunctionPort;
use switch::{Captures, Counters, Driver, PortId, RingBooks};

/// A port of a box that is to be attached.
#[derive(Clone, Debug)]
pub(crate) struct AttachRequest {
    /// What it is attached to.
    pub(crate) to: Attachment,
    /// Its MAC address.
    pub(crate) mac: MacAddr,
    /// Its limits at a switch.
    pub(crate) limits: Limits,
    /// The number of the box's cores.
    pub(crate) cores: usize,
}

/// What a box's port is attached to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortLocation {
    /// Nothing.
    Nothing,
    /// A pipe.
    Pipe(PipeName),
    /// A port of a switch.
    Switch(SwitchName, PortName),
}

impl From<PortLocation> for Attachment {
    fn from(location: PortLocation) -> Self {
        match location {
            PortLocation::Switch(switch, _) => Self::Switch(switch),
            PortLocation::Pipe(pipe) => Self::Pipe(pipe),
            PortLocation::Nothing => Self::Nothing,
        }
    }
}

/// A switch, without its runner.
#[derive(Debug)]
pub(super) struct SwitchRecord {
    pub(super) name: SwitchName,
    /// Its definition, without ports.
    pub(super) definition: CreateSwitch,
    pub(super) ports: BTreeMap<PortName, PortRecord>,
    /// The sum over the ports that were removed.
    pub(super) removed: PortStats,
    /// The port for frames to unknown addresses, in a static switch.
    pub(super) default: Option<PortName>,
    /// The numbers of ports, also of those that are gone, in a steering switch: the keys that flows use for them.
    pub(super) port_numbers: Numbers<PortName>,
    /// The last change of the numbers of ports, services and chains.
    pub(super) numbered: PortNumberMark,
    /// What the daemon wrote of each flow.
    pub(super) flows: BTreeMap<u64, AddFlow>,
    /// Services and chains, in a steering switch.
    pub(super) services: ServiceRecord,
    /// Never that of another switch.
    pub(super) number: u64,
    /// What the agent and the fabric told each other about it.
    pub(super) agent: AgentRecord,
}

/// Functions that attached themselves, by service and number.
pub(super) type AttachedInstances = BTreeMap<ServiceName, BTreeMap<u16, AttachedInstance>>;

/// The services and chains of a switch, with the numbers that its forwarding knows them by.
#[derive(Debug, Default)]
pub(super) struct ServiceRecord {
    pub(super) definition: SteeringDefinition,
    pub(super) services: Numbers<ServiceName>,
    /// Numbers of chains, also of those that only flows name.
    pub(super) chains: Numbers<ChainName>,
    /// The slots of instances, by service.
    pub(super) slots: BTreeMap<ServiceName, BTreeMap<BoxName, u8>>,
    /// Functions that attached themselves, by service.
    pub(super) attached: AttachedInstances,
    /// Flows that are handed over.
    pub(super) handover: HandoverRecord,
    /// The boxes that are no longer instances, and still there: of which service, and with which faces.
    pub(super) leaving: BTreeMap<BoxName, (ServiceName, Faces)>,
    /// What ports of instances counted that are removed, by service.
    pub(super) removed_ports: BTreeMap<ServiceName, Counters>,
    /// What became of the packets of boxes that were instances and were removed: a row for each service.
    pub(super) removed: BTreeMap<ServiceName, AccountRow>,
}

impl ServiceRecord {
    /// Follows the definition that replaces `before`.
    pub(super) fn follow(&mut self, before: &SteeringDefinition) {
        let now = &self.definition;
        for service in &before.services {
            let instances = service.instances.iter().map(|instance| instance.name.clone());
            self.leaving.extend(instances.map(|name| (name, (service.name.clone(), service.faces))));
        }
        let present: BTreeSet<&BoxName> = sorting::collect(now.services.iter().flat_map(boxes_of));
        let services: BTreeSet<&ServiceName> =
            sorting::collect(now.services.iter().map(|service| &service.name));
        self.leaving.retain(|name, (service, _)| !present.contains(name) && services.contains(service));
        self.removed.retain(|service, _| services.contains(service));
        self.removed_ports.retain(|service, _| services.contains(service));
    }

    /// The service that a box is or was an instance of.
    pub(super) fn service_of(&self, name: &BoxName) -> Option<&ServiceName> {
        let mut services = self.definition.services.iter();
        let present = services.find(|service| boxes_of(service).any(|there| there == name));
        present.map(|service| &service.name).or_else(|| self.leaving.get(name).map(|(service, _)| service))
    }
}

/// The instances of a service.
fn boxes_of(service: &ServiceDefinition) -> impl Iterator<Item = &BoxName> {
    service.instances.iter().map(|instance| &instance.name)
}

/// An instance that attached itself.
#[derive(Debug)]
pub(super) struct AttachedInstance {
    pub(super) name: BoxName,
    /// The connection of its function; `None` if it went.
    pub(super) connection: Option<u64>,
    /// Its ports. It has none if it went.
    pub(super) ports: Vec<FunctionPort>,
    /// Packets that it had taken when it was last seen to take some, and when this was.
    pub(super) progress: (u64, Instant),
    /// The counters that its function publishes.
    pub(super) counters: BTreeMap<String, u64>,
    /// Whether it hands over the state of its flows before its function leaves.
    pub(super) is_draining: bool,
}

/// What the agent knows about a switch, and what it said about its controllers.
#[derive(Debug, Default)]
pub(super) struct AgentRecord {
    /// The ports as they were reported, by number.
    pub(super) ports: BTreeMap<u32, openflow::message::Port>,
    /// The ports without a link, and when they were looked at.
    pub(super) unlinked: BTreeSet<PortId>,
    pub(super) looked: Option<Instant>,
    /// The connections to the controllers, and when this was known.
    pub(super) states: Option<(Vec<ControllerState>, Instant)>,
    /// What the events have said of each controller.
    pub(super) reported: Vec<ReportedController>,
}

/// A port of a switch.
#[derive(Debug)]
pub(super) struct PortRecord {
    pub(super) id: PortId,
    pub(super) captures: Captures,
    /// Its definition.
    pub(super) definition: AddPort,
    /// Whether it came with a box or with the other end of a pipe.
    pub(super) implied: bool,
    /// What a controller configured (`OFPPC_*`).
    pub(super) config: u32,
}

/// A port to be added to a switch.
pub(super) struct NewPort {
    pub(super) definition: AddPort,
    /// Whether it comes with a box or with the other end of a pipe.
    pub(super) implied: bool,
    /// Its driver, or one for each switch thread.
    pub(super) drivers: Vec<Box<dyn Driver>>,
    /// The address of the box's port behind it, if there is one. Without the right to be `transparent`, the box sends from
    /// this address only.
    pub(super) mac: Option<MacAddr>,
}

/// A named pipe, and the ports of boxes at its ends.
#[derive(Debug)]
pub(super) struct PipeRecord {
    pub(super) pipe: PairPipes,
    /// Their link number in the shards of the runner.
    pub(super) link: usize,
    pub(super) ends: [Option<(BoxName, u8)>; 2],
}

/// A box's port.
#[derive(Debug)]
pub(super) struct BoxPortRecord {
    pub(super) owner: Owner,
    pub(super) mac: MacAddr,
    pub(super) limits: Limits,
    /// The number of the box's cores.
    pub(super) cores: usize,
    /// How packets are spread over the cores, once the configurations of the box are installed.
    pub(super) steering: Option<Steering>,
    pub(super) endpoint: Endpoint,
    /// Packets that were in the box's rings when it ended.
    pub(super) lost: u64,
    /// What passed the rings in the box's earlier runs. What waits is what was lost.
    pub(super) ended: RingBooks,
}

/// The host's end of a box's port.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// At a switch.
    Switch { switch: SwitchName, port: PortName, slot: PairSlots },
    /// At a pipe. If it has no name, the port is attached to nothing and the pipe has no other end.
    Pipe { pipe: PairPipes, side: usize, link: usize, name: Option<PipeName> },
}

/// What was lost with a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disconnected {
    /// Packets in its rings.
    pub(crate) waiting: u64,
    /// Flows of services that it had.
    pub(crate) flows: u64,
}

/// An instance that took none of the packets that wait for it.
#[derive(Debug)]
pub(crate) struct Silent {
    /// The service.
    pub(crate) service: ServiceName,
    /// The box.
    pub(crate) name: BoxName,
    /// Packets that wait for it.
    pub(crate) waiting: u64,
    /// Its flows.
    pub(crate) flows: u64,
    /// For how long it took none.
    pub(crate) time: Duration,
}
