//! Performs the operations of flow entries on frames: changes, several outputs, groups, meters, and frames for controllers.

use super::chains::{Chains, Step};
use super::contract::{Decision, Outcome, Target};
use super::controllers::{ControllerPacket, Controllers, PacketOutStep, PacketReason, Pending};
use super::flow::PortKey;
use super::learning::LearningBridge;
use super::steering::{NO_PORT_KEY, Steering, address};
use crate::port::PortId;
use flow_table::{
    Action, Effects, FrameBuffer, GroupContext, Ingress, Key, LastEntry, MeterVerdict, Operation, Output,
    OutputState, PathId, Performed, TABLES, perform,
};
use reason::Reason;
use std::time::Duration;

/// Groups that process one frame. Their frames are copied.
const MAX_GROUPS_OF_FRAME: usize = 64;

/// The seed of the hash that selects buckets of groups: it need not be secret, because a bucket of a flow costs nothing.
const GROUP_SEED: u64 = 0;

/// What the operations on one frame do beyond it.
struct Outputs<'a> {
    controllers: &'a mut Controllers,
    bridge: &'a LearningBridge,
    ports: &'a [Option<PortId>],
    chains: &'a mut Chains,
    flow_seed: u64,
    outcome: &'a mut dyn Outcome,
    from: Option<PortId>,
    in_port: Option<PortKey>,
    now: u64,
    last: Option<LastEntry>,
    /// Groups to process the frame by, as it was at that moment.
    groups: Vec<(u32, Vec<u8>, OutputState)>,
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
            Output::InPort => Target::Back,
            Output::Flood | Output::All => Target::Flood,
            Output::Normal => return self.bridge(frame),
            Output::Controller { max_length } => {
                let is_miss = self.last.is_some_and(|last| last.is_table_miss);
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
        if self.groups.len() < MAX_GROUPS_OF_FRAME {
            self.groups.push((group, frame.to_vec(), state));
        }
    }
}

impl Outputs<'_> {
    fn lose(&mut self, reason: Reason) {
        self.has_outcome = true;
        self.outcome.lose(reason);
    }

    /// Sends a frame into a chain, or to an instance of a service.
    fn steer(&mut self, output: Output, frame: &[u8]) {
        let ingress =
            Ingress { port: self.in_port.map_or(NO_PORT_KEY, |key| key.0.into()), ..Ingress::default() };
        let flow = Key::extract(frame, &ingress).0.flow_tuple(frame, self.flow_seed);
        let step = match output {
            Output::Chain(chain) => {
                self.chains.enter_chain(chain as u16, &flow, self.in_port, frame.len(), self.now)
            }
            Output::Service(service) => {
                self.chains.enter_service(service as u16, &flow, frame.len(), self.now)
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
            Step::LookUp | Step::Service(_) | Step::Leave(_) => self.lose(Reason::FLOW_MISS),
        }
    }

    /// Forwards a frame by learned addresses.
    fn bridge(&mut self, frame: &[u8]) {
        self.has_outcome = true;
        // No port has this number, so that no port counts as the one that the frame came from.
        let from = self.from.unwrap_or(PortId(u16::MAX));
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
            table: self.last.map_or(0, |last| last.table),
            cookie: self.last.map_or(u64::MAX, |last| last.cookie),
            in_port: self.in_port,
            metadata: self.last.map_or(0, |last| last.metadata),
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
        let Some(Pending { key, path }) = self.pending.pop_front() else { return };
        let mut buffer = FrameBuffer::default();
        buffer.set(frame);
        let in_port = self.keys.get(usize::from(from.0)).copied().flatten();
        // Lookups of the same batch may have ended the path.
        let path = if self.pipeline.path(path).is_some() { path } else { self.pipeline.look_up(&key) };
        self.perform_path(path, key, &mut buffer, (Some(from), in_port), now, outcome);
    }

    /// Performs a packet-out message on a frame, as if it had arrived at a port. The actions were
    /// [checked](Self::check_packet_out).
    pub fn packet_out(
        &mut self,
        in_port: Option<PortKey>,
        steps: &[PacketOutStep],
        frame: &[u8],
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let from = in_port.and_then(|key| self.port(key));
        let mut buffer = FrameBuffer::default();
        buffer.set(frame);
        let ingress = Ingress { port: in_port.map_or(NO_PORT_KEY, |key| key.0.into()), ..Ingress::default() };
        for part in steps.split_inclusive(|step| *step == PacketOutStep::Table) {
            let operations = part.iter().filter_map(|step| match step {
                PacketOutStep::Perform(action) => Some(Operation::Action(*action)),
                PacketOutStep::Table => None,
            });
            let operations: Vec<Operation> = operations.collect();
            let key = Key::extract(buffer.frame(), &ingress).0;
            let (_, done) = self.run(&operations, None, &key, &mut buffer, (from, in_port), now, outcome);
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
                self.perform_path(path, key, &mut buffer, (from, in_port), now, outcome);
            }
        }
    }

    /// Performs the operations of a path, and of those that it continues in.
    fn perform_path(
        &mut self,
        mut id: PathId,
        mut key: Key,
        buffer: &mut FrameBuffer,
        (from, in_port): (Option<PortId>, Option<PortKey>),
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let mut had_outcome = false;
        // Each continuation is in a later table.
        for _ in 0..TABLES {
            let Some(path) = self.pipeline.path(id) else { return };
            let (operations, last, is_miss) = (path.operations().to_vec(), path.last(), path.is_miss());
            let resumes = path.resume().is_some();
            let (has_outcome, done) =
                self.run(&operations, last, &key, buffer, (from, in_port), now, outcome);
            had_outcome |= has_outcome;
            if !resumes || done != Performed::All {
                if is_miss && !had_outcome && done == Performed::All {
                    match self.controllers.is_standalone() {
                        true => self.run_normal(&key, buffer, (from, in_port), now, outcome),
                        false if self.controllers.gets_misses => {
                            let packet = ControllerPacket::of_miss(in_port, buffer.frame());
                            self.controllers.queue(packet, outcome);
                        }
                        false => outcome.lose(Reason::FLOW_MISS),
                    }
                }
                return;
            }
            let ingress =
                Ingress { port: in_port.map_or(NO_PORT_KEY, |key| key.0.into()), ..Ingress::default() };
            key = Key::extract(buffer.frame(), &ingress).0;
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
        ports: (Option<PortId>, Option<PortKey>),
        now: u64,
        outcome: &mut dyn Outcome,
    ) {
        let normal = [Operation::Action(Action::Output(Output::Normal))];
        self.run(&normal, None, key, buffer, ports, now, outcome);
    }

    /// Performs operations. Returns whether anything became of the frame, and how they ended.
    #[expect(clippy::too_many_arguments, reason = "all of them differ between the callers")]
    fn run(
        &mut self,
        operations: &[Operation],
        last: Option<LastEntry>,
        key: &Key,
        buffer: &mut FrameBuffer,
        (from, in_port): (Option<PortId>, Option<PortKey>),
        now: u64,
        outcome: &mut dyn Outcome,
    ) -> (bool, Performed) {
        let mut groups = std::mem::take(&mut self.controllers.groups);
        let down = std::mem::take(&mut self.controllers.down);
        let mut outputs = Outputs {
            controllers: &mut self.controllers,
            bridge: &self.bridge,
            ports: &self.ports,
            chains: &mut self.chains,
            flow_seed: self.flow_seed,
            outcome,
            from,
            in_port,
            now,
            last,
            groups: Vec::new(),
            has_outcome: false,
        };
        let mut state = OutputState::default();
        let done = perform(operations, buffer, &mut state, &mut outputs);
        let ports = outputs.ports;
        let is_up = |port: u32| {
            ports.get(port as usize).is_some_and(Option::is_some)
                && !down.get(port as usize).copied().unwrap_or(false)
        };
        let context = GroupContext { flow_hash: key.flow_hash(GROUP_SEED), is_up: &is_up };
        for (group, frame, state) in std::mem::take(&mut outputs.groups) {
            groups.perform(group, &frame, state, context, &mut outputs);
        }
        match done {
            Performed::InvalidTtl => {
                outputs.report_frame(PacketReason::InvalidTtl, None, buffer.frame(), state);
            }
            Performed::Metered => outputs.lose(Reason::FLOW_DROP),
            Performed::All => {}
        }
        let has_outcome = outputs.has_outcome;
        (self.controllers.groups, self.controllers.down) = (groups, down);
        (has_outcome, done)
    }
}
