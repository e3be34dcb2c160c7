//! Performs the operations of flow entries on frames: changes, several outputs, groups, meters, and frames for controllers.

use super::chains::{Chains, Step};
use super::contract::{Decision, Outcome, Target};
use super::controllers::{
    ControllerPacket, Controllers, PacketOutStep, PacketReason, Pending, PendingOperations,
};
use super::flow::PortKey;
use super::ingress::{self, Tunnels, service_of};
use super::learning::LearningBridge;
use super::steering::{Steering, address};
use crate::port::PortId;
use flow_table::{
    Action, Effects, FrameBuffer, GroupContext, Key, MeterVerdict, Operation, Output, OutputState, PathId,
    Performed, Performer, TABLES, perform,
};
use reason::Reason;
use std::time::Duration;

/// Groups that the entries of one frame send it to. Each may copy it for all of its buckets.
const MAX_GROUPS_OF_FRAME: usize = 64;

/// The seed of the hash that selects buckets of groups. It need not be secret, because a bucket of a flow costs nothing. With zero
/// the hash would not depend on addresses.
const GROUP_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// The port of the switch.
    port: Option<PortId>,
    /// The number of its ingress port.
    number: Option<u32>,
    /// How often it was looked up after a function had it.
    lookups: u8,
}

/// What the operations on one frame do beyond it.
struct Outputs<'a> {
    controllers: &'a mut Controllers,
    bridge: &'a LearningBridge,
    ports: &'a [Option<PortId>],
    chains: &'a mut Chains,
    flow_seed: u64,
    outcome: &'a mut dyn Outcome,
    origin: Origin,
    /// The match fields of the frame, before the operations.
    key: &'a Key,
    now: u64,
    /// The entry whose operations these are.
    performer: Option<Performer>,
    /// Groups that may still process the frame.
    groups: usize,
    /// Whether anything became of the frame.
    has_outcome: bool,
}

impl Effects for Outputs<'_> {
    fn meter(&mut self, meter: u32, frame: &[u8]) -> MeterVerdict {
        let (length, now) = (frame.len() as u32, Duration::from_nanos(self.now));
        self.controllers.meters.meter(meter, length, now)
    }

    fn output(&mut self, output: Output, frame: &[u8], state: OutputState) {
        let target = match output {
            Output::Port(key) => match self.ports.get(key as usize).copied().flatten() {
                Some(port) => Target::Port(port),
                None => return self.lose(Reason::NO_ROUTE),
            },
            Output::InPort => match service_of(self.origin.number) {
                Some(service) => return self.steer(Output::Service(service.into()), frame),
                None => Target::Back,
            },
            // As to any port from which a frame comes (OpenFlow 1.3.5, 5.12).
            Output::Service(_) if output.port_number() == self.origin.number => {
                return self.lose(Reason::SAME_PORT);
            }
            Output::Flood => Target::Flood,
            Output::All => Target::All,
            Output::Normal => return self.bridge(frame),
            Output::Controller { max_length } => {
                let is_miss = self.performer.is_some_and(|performer| performer.is_table_miss);
                if is_miss && self.controllers.is_standalone() {
                    return self.bridge(frame);
                }
                let reason = if is_miss { PacketReason::TableMiss } else { PacketReason::Action };
                return self.report_frame(reason, Some(max_length), frame, state);
            }
            Output::Chain(_) | Output::Service(_) => return self.steer(output, frame),
            _ => return self.lose(Reason::FLOW_DROP),
        };
        self.has_outcome = true;
        self.outcome.send(target, frame);
    }

    fn group(&mut self, group: u32, frame: &[u8], state: OutputState) {
        let Some(left) = self.groups.checked_sub(1) else { return self.lose(Reason::FLOW_DROP) };
        self.groups = left;
        // Buckets change neither the groups nor the ports, and what they output reads neither.
        let mut groups = std::mem::take(&mut self.controllers.groups);
        let down = std::mem::take(&mut self.controllers.down);
        let ports = self.ports;
        let is_up = |port: u32| {
            ports.get(port as usize).is_some_and(Option::is_some)
                && !down.get(port as usize).copied().unwrap_or(false)
        };
        let context = GroupContext { flow_hash: self.key.flow_hash(GROUP_SEED), is_up: &is_up };
        groups.perform(group, frame, state, context, self);
        (self.controllers.groups, self.controllers.down) = (groups, down);
    }
}

impl Outputs<'_> {
    fn lose(&mut self, reason: Reason) {
        self.has_outcome = true;
        self.outcome.lose(reason);
    }

    /// Sends a frame into a chain, or to an instance of a service.
    fn steer(&mut self, output: Output, frame: &[u8]) {
        let Origin { number, lookups, .. } = self.origin;
        let tuple =
            Key::extract(frame, &Tunnels::default().ingress(number)).0.flow_tuple(frame, self.flow_seed);
        let flow = (&tuple, lookups);
        let from = number.and_then(|number| u16::try_from(number).ok()).map(PortKey);
        let step = match output {
            Output::Chain(chain) => self.chains.enter_chain(chain as u16, flow, from, frame.len(), self.now),
            Output::Service(service) => {
                self.chains.enter_service(service as u16, flow, from, frame.len(), self.now)
            }
            _ => Step::LookUp,
        };
        match step {
            Step::To(key, tag) => match self.ports.get(usize::from(key.0)).copied().flatten() {
                Some(port) => {
                    self.has_outcome = true;
                    let target = if tag == 0 { Target::Port(port) } else { Target::Function(port, tag) };
                    self.outcome.send(target, frame);
                }
                None => self.lose(Reason::NO_ROUTE),
            },
            Step::Lose(reason) => self.lose(reason),
            Step::Hold(identity) => {
                self.has_outcome = true;
                self.chains.hold(identity, frame, self.outcome);
            }
            Step::LookUp | Step::Service(..) | Step::Chain(_) | Step::Leave(_) | Step::Arrive(_) => {
                self.lose(Reason::FLOW_MISS)
            }
        }
    }

    /// Forwards a frame by learned addresses.
    fn bridge(&mut self, frame: &[u8]) {
        self.has_outcome = true;
        // No port has this number, so that no port counts as the one that the frame came from.
        let from = self.origin.port.unwrap_or(PortId(u16::MAX));
        match self.bridge.route(address(frame, 0), from, self.now) {
            Decision::To(port) => self.outcome.send(Target::Port(port), frame),
            Decision::Flood => self.outcome.send(Target::Flood, frame),
            _ => self.outcome.lose(Reason::NO_ROUTE),
        }
    }

    fn report_frame(
        &mut self,
        reason: PacketReason,
        max_length: Option<u16>,
        frame: &[u8],
        state: OutputState,
    ) {
        self.has_outcome = true;
        let packet = ControllerPacket {
            reason,
            table: self.performer.map_or(0, |performer| performer.table),
            cookie: self.performer.map_or(u64::MAX, |performer| performer.cookie),
            in_port: self.origin.number,
            metadata: self.performer.map_or(0, |performer| performer.metadata),
            tunnel: state.tunnel,
            max_length,
            frame: frame.to_vec(),
        };
        self.controllers.queue(packet, self.outcome);
    }
}

impl Steering {
    /// Performs the operations on the next frame that waits for it.
    pub(super) fn perform_pending(
        &mut self,
        frame: &[u8],
        from: PortId,
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let Some((_, pending)) = self.pending.pop_front() else { return };
        let PendingOperations { key, path, lookups } = match pending {
            Pending::Operations(pending) => pending,
            Pending::Held(identity) => return self.chains.hold(identity, frame, outcome),
        };
        let mut buffer = FrameBuffer::default();
        buffer.set(frame);
        let port = self.key(from);
        let number = ingress::number(port, port.and_then(|port| self.chains.role(port)));
        let origin = Origin { port: Some(from), number, lookups };
        // Lookups of the same batch may have ended the path.
        let path = if self.pipeline.path(path).is_some() { path } else { self.pipeline.look_up(&key) };
        self.perform_path(path, key, &mut buffer, origin, now, outcome);
    }

    /// Performs a packet-out message on a frame, as if it had arrived at the port with this number. The actions were
    /// [checked](super::SteeringShards::check_packet_out).
    pub fn packet_out(
        &mut self,
        in_port: Option<u32>,
        steps: &[PacketOutStep],
        frame: &[u8],
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let key = in_port.and_then(|number| u16::try_from(number).ok()).map(PortKey);
        let origin =
            Origin { port: key.and_then(|key| self.port(key)), number: in_port, ..Origin::default() };
        let mut buffer = FrameBuffer::default();
        buffer.set(frame);
        let ingress = self.tunnels.ingress(in_port);
        for part in steps.split_inclusive(|step| *step == PacketOutStep::Table) {
            let operations = part.iter().filter_map(|step| match step {
                PacketOutStep::Perform(action) => Some(Operation::Action(*action)),
                PacketOutStep::Table => None,
            });
            let operations: Vec<Operation> = operations.collect();
            let key = Key::extract(buffer.frame(), &ingress).0;
            let parts = [(&operations[..], None)];
            let (_, done) = self.run(parts, &key, &mut buffer, origin, now, outcome);
            if done != Performed::All {
                return;
            }
            if part.last() == Some(&PacketOutStep::Table) {
                let (mut key, fragment) = Key::extract(buffer.frame(), &ingress);
                let time = Duration::from_nanos(now);
                if let Some(fragment) = fragment {
                    self.fragments.resolve(&mut key, fragment, time);
                }
                let path = self.pipeline.look_up(&key);
                self.pipeline.count(path, 1, buffer.frame().len() as u64, time);
                self.perform_path(path, key, &mut buffer, origin, now, outcome);
            }
        }
    }

    /// Performs the operations of a path, and of those that it continues in.
    fn perform_path(
        &mut self,
        mut id: PathId,
        mut key: Key,
        buffer: &mut FrameBuffer,
        origin: Origin,
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let mut had_outcome = false;
        // Each continuation is in a later table.
        for _ in 0..TABLES {
            let Some(path) = self.pipeline.path(id) else { return };
            let (program, is_miss) = (path.program().clone(), path.is_miss());
            let resumes = path.resume().is_some();
            let parts = program.parts().map(|(operations, performer)| (operations, Some(performer)));
            let (has_outcome, done) = self.run(parts, &key, buffer, origin, now, outcome);
            had_outcome |= has_outcome;
            if !resumes || done != Performed::All {
                if is_miss && !had_outcome && done == Performed::All {
                    match self.controllers.is_standalone() {
                        true => self.run_normal(&key, buffer, origin, now, outcome),
                        false if self.controllers.gets_misses => {
                            let tunnel = self.tunnels.of(origin.number);
                            let packet = ControllerPacket::of_miss(origin.number, tunnel, buffer.frame());
                            self.controllers.queue(packet, outcome);
                        }
                        false => outcome.lose(Reason::FLOW_MISS),
                    }
                }
                return;
            }
            key = Key::extract(buffer.frame(), &self.tunnels.ingress(origin.number)).0;
            let Some(next) = self.pipeline.resume(id, &key) else { return };
            let length = buffer.frame().len() as u64;
            self.pipeline.count(next, 1, length, Duration::from_nanos(now));
            id = next;
        }
    }

    fn run_normal(
        &mut self,
        key: &Key,
        buffer: &mut FrameBuffer,
        origin: Origin,
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let normal = [Operation::Action(Action::Output(Output::Normal))];
        self.run([(&normal[..], None)], key, buffer, origin, now, outcome);
    }

    /// Performs operations. Returns whether anything became of the frame, and how they ended.
    fn run<'o>(
        &mut self,
        parts: impl IntoIterator<Item = (&'o [Operation], Option<Performer>)>,
        key: &Key,
        buffer: &mut FrameBuffer,
        origin: Origin,
        now: u64,
        outcome: &mut dyn Outcome,
    ) -> (bool, Performed) {
        let mut outputs = Outputs {
            controllers: &mut self.controllers,
            bridge: &self.bridge,
            ports: &self.ports,
            chains: &mut self.chains,
            flow_seed: self.flow_seed,
            outcome,
            origin,
            key,
            now,
            performer: None,
            groups: MAX_GROUPS_OF_FRAME,
            has_outcome: false,
        };
        let mut state = OutputState { tunnel: self.tunnels.of(origin.number), ..OutputState::default() };
        let mut done = Performed::All;
        for (operations, performer) in parts {
            outputs.performer = performer;
            done = perform(operations, buffer, &mut state, &mut outputs);
            if done != Performed::All {
                break;
            }
        }
        match done {
            Performed::InvalidTtl => {
                outputs.report_frame(PacketReason::InvalidTtl, None, buffer.frame(), state);
            }
            Performed::Metered => outputs.lose(Reason::METER_DROP),
            Performed::All => {}
        }
        (outputs.has_outcome, done)
    }
}
