//! Attaches boxes' ports to switches, to pipes, or to nothing.

use super::ended_flows::EndedFlows;
use super::looks::Looks;
use super::pairs::{PairPipes, PairSlots, Port, rings_of};
use super::records::{
    AttachRequest, BoxPortRecord, Disconnected, Endpoint, PipeRecord, PortLocation, Silent, SwitchRecord,
};
use super::shard_threads::ShardThread;
use crate::error::{OperationError, PortError};
use model::{
    Attachment, BoxName, CapturePoint, Owner, PipeName, PortName, ServiceName, SwitchMode, SwitchName,
};
use packet::steering::Steering;
use sandbox::EventFd;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use switch::{Capture, Captures, ForwardingMode, RingBooks, Shards, StaticTable};

/// Index of the runner that has only pipes.
const PIPE_RUNNER: usize = 0;

/// All switches, pipes and ports. Only the fabric's thread uses it.
#[derive(Debug)]
pub(crate) struct Network {
    /// The runners: one for pipes, then one for each switch, in the order of `switches`.
    pub(super) runners: Vec<Shards<ForwardingMode>>,
    /// The other threads that run shards of them.
    pub(super) threads: Vec<Arc<ShardThread>>,
    /// The record of each switch.
    pub(super) switches: Vec<SwitchRecord>,
    /// The ports of boxes, by box and number.
    pub(super) box_ports: BTreeMap<(BoxName, u8), BoxPortRecord>,
    pipes: BTreeMap<(Owner, PipeName), PipeRecord>,
    /// The number of the next switch.
    pub(super) next_switch: u64,
    /// Signalled when something waits for the agent.
    pub(super) agent_bell: Arc<EventFd>,
    /// Who learns of flows that ended by a timeout.
    pub(super) ended_flows: Option<EndedFlows>,
    /// Who learns of instances that stand still.
    pub(super) silent: Option<SyncSender<Silent>>,
    /// Who hands flows over.
    pub(super) handovers: Option<SyncSender<()>>,
    /// The looks at the functions that attached themselves.
    pub(super) looks: Looks,
    /// The service whose flows were handed over last. The others have their turn before it.
    pub(super) last_handover: Option<(SwitchName, ServiceName)>,
}

impl Network {
    /// A network without switches, for this number of threads.
    pub(super) fn new(threads: usize) -> io::Result<Self> {
        let forward = || ForwardingMode::Static(StaticTable::new());
        Ok(Self {
            runners: vec![Shards::new(forward(), (1..threads).map(|_| forward()).collect(), 0)?],
            threads: Vec::new(),
            switches: Vec::new(),
            box_ports: BTreeMap::new(),
            pipes: BTreeMap::new(),
            next_switch: 1,
            agent_bell: Arc::new(EventFd::new().map_err(|error| error.cause)?),
            ended_flows: None,
            silent: None,
            handovers: None,
            looks: Looks::default(),
            last_handover: None,
        })
    }

    /// The number of switch threads.
    pub(super) fn thread_count(&self) -> usize {
        self.runners[PIPE_RUNNER].count()
    }

    fn add_box_pipe(&mut self, cores: usize) -> (PairPipes, usize) {
        let pipe = PairPipes::new(self.thread_count(), cores);
        // All shards have the same links, so they agree on the number.
        let links = pipe.links().enumerate();
        let links = links.map(|(shard, link)| self.runners[PIPE_RUNNER].add_link(shard, link));
        let link = links.last().flatten().unwrap_or_default();
        (pipe, link)
    }

    /// Attaches the ports of a new box: all of them, or none.
    pub(crate) fn attach(
        &mut self,
        name: &BoxName,
        owner: &Owner,
        ports: &[AttachRequest],
    ) -> Result<(), OperationError> {
        for (number, port) in (0u8..).zip(ports) {
            let attached = self.attach_one(name, number, owner, port);
            if let Err(failure) = attached {
                self.detach(name);
                return Err(failure);
            }
        }
        Ok(())
    }

    fn attach_one(
        &mut self,
        name: &BoxName,
        number: u8,
        owner: &Owner,
        port: &AttachRequest,
    ) -> Result<(), OperationError> {
        let endpoint = match &port.to {
            Attachment::Nothing => {
                let (pipe, link) = self.add_box_pipe(port.cores);
                Endpoint::Pipe { pipe, side: 0, link, name: None }
            }
            Attachment::Pipe(_) if port.cores > 1 => return Err(PortError::CoresAtPipe(name.clone()).into()),
            Attachment::Pipe(pipe) => self.enter_pipe(name, number, owner, pipe)?,
            Attachment::Switch(switch) => {
                let (port, slot) = self.add_box_port(switch, name, number, port)?;
                Endpoint::Switch { switch: switch.clone(), port, slot }
            }
        };
        let record = BoxPortRecord {
            owner: owner.clone(),
            mac: port.mac,
            limits: port.limits.clone(),
            cores: port.cores,
            steering: None,
            endpoint,
            lost: 0,
            ended: RingBooks::default(),
        };
        self.box_ports.insert((name.clone(), number), record);
        Ok(())
    }

    fn enter_pipe(
        &mut self,
        name: &BoxName,
        number: u8,
        owner: &Owner,
        pipe_name: &PipeName,
    ) -> Result<Endpoint, OperationError> {
        let key = (owner.clone(), pipe_name.clone());
        if !self.pipes.contains_key(&key) {
            let (pipe, link) = self.add_box_pipe(1);
            self.pipes.insert(key.clone(), PipeRecord { pipe, link, ends: [None, None] });
        }
        let found = self.pipes.get_mut(&key);
        let free = found.and_then(|pipe| {
            let side = pipe.ends.iter().position(Option::is_none)?;
            pipe.ends[side] = Some((name.clone(), number));
            Some((pipe.pipe.clone(), side, pipe.link))
        });
        match free {
            Some((pipe, side, link)) => {
                Ok(Endpoint::Pipe { pipe, side, link, name: Some(pipe_name.clone()) })
            }
            None => Err(PortError::PipeInUse(pipe_name.clone()).into()),
        }
    }

    /// The keys of a box's ports.
    pub(super) fn port_keys(&self, name: &BoxName) -> Vec<(BoxName, u8)> {
        let own = self.box_ports.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        own.map(|(key, _)| key.clone()).collect()
    }

    /// Detaches and forgets the ports of a box.
    pub(crate) fn detach(&mut self, name: &BoxName) {
        for key in self.port_keys(name) {
            if let Some(record) = self.box_ports.remove(&key) {
                self.detach_port(&key, record);
            }
        }
    }

    /// Detaches a box's port; returns its ring pairs if the box runs.
    fn detach_port(&mut self, key: &(BoxName, u8), record: BoxPortRecord) -> Option<Vec<Port>> {
        match record.endpoint {
            Endpoint::Switch { switch, port, slot } => {
                let connected = slot.set(None);
                self.drop_port(&switch, &port);
                self.count_ended(&switch, record.lost);
                connected
            }
            Endpoint::Pipe { pipe, side, link, name } => {
                let connected = pipe.set(side, None);
                pipe.captures(side).end();
                let Some(name) = name else {
                    self.runners[PIPE_RUNNER].remove_links(link);
                    return connected;
                };
                let pipe_key = (record.owner, name);
                if let Some(pipe) = self.pipes.get_mut(&pipe_key) {
                    pipe.ends.iter_mut().filter(|end| end.as_ref() == Some(key)).for_each(|end| *end = None);
                    if pipe.ends.iter().all(Option::is_none) {
                        self.runners[PIPE_RUNNER].remove_links(pipe.link);
                        self.pipes.remove(&pipe_key);
                    }
                }
                connected
            }
        }
    }

    /// Connects the ports of a started box, in order: all ring pairs of the first port, by threads and
    /// cores, then those of the next one.
    pub(crate) fn connect(&mut self, name: &BoxName, mut ports: Vec<Port>) {
        if self.port_keys(name).iter().any(|key| self.is_steered(key)) {
            Port::note_tags(&mut ports);
        }
        let mut ports = ports.into_iter();
        for number in 0u8.. {
            let key = (name.clone(), number);
            let cores = self.box_ports.get(&key).map_or(1, |record| record.cores);
            let pairs: Vec<Port> = ports.by_ref().take(self.thread_count() * cores).collect();
            if pairs.is_empty() {
                break;
            }
            self.set_port(&key, Some(pairs));
        }
    }

    /// Spreads packets to the ports of a box over its cores, until the box ends.
    pub(crate) fn steer(&mut self, name: &BoxName, steering: &Steering) {
        for key in self.port_keys(name) {
            if let Some(record) = self.box_ports.get_mut(&key) {
                record.steering = Some(steering.clone());
                if let Endpoint::Switch { slot, .. } = &record.endpoint {
                    slot.steer(steering);
                }
            }
        }
    }

    /// Whether a box's port is at a steering switch.
    fn is_steered(&self, key: &(BoxName, u8)) -> bool {
        let Some(Endpoint::Switch { switch, .. }) = self.box_ports.get(key).map(|record| &record.endpoint)
        else {
            return false;
        };
        let record = self.switches.iter().find(|record| record.name == *switch);
        record.is_some_and(|record| record.definition.mode == SwitchMode::Steering)
    }

    /// Disconnects the ports of a box that has ended, and counts the packets that were in its rings.
    pub(crate) fn disconnect(&mut self, name: &BoxName) -> Disconnected {
        let mut all = Disconnected { waiting: 0, flows: self.flows_of(name) };
        for key in self.port_keys(name) {
            let rings = self.set_port(&key, None).map(|mut pairs| rings_of(&mut pairs)).unwrap_or_default();
            if let Some(record) = self.box_ports.get_mut(&key) {
                record.lost += rings.waiting();
                record.ended += rings;
                record.steering = None;
            }
            all.waiting += rings.waiting();
        }
        all
    }

    fn set_port(&mut self, key: &(BoxName, u8), port: Option<Vec<Port>>) -> Option<Vec<Port>> {
        let plugged = port.is_some();
        let record = self.box_ports.get(key)?;
        match &record.endpoint {
            Endpoint::Pipe { pipe, side, .. } => pipe.set(*side, port),
            Endpoint::Switch { switch, port: name, slot } => {
                let before = slot.set(port);
                record.steering.iter().for_each(|steering| slot.steer(steering));
                let (switch, name, slot) = (switch.clone(), name.clone(), slot.clone());
                match plugged {
                    true => self.resume_port(&switch, &name, &slot),
                    false => self.flush_port(&switch, &name),
                }
                before
            }
        }
    }

    /// Moves a box's port to a port of a switch, or to nothing. The box may be running.
    pub(super) fn move_port(
        &mut self,
        key: &(BoxName, u8),
        to: Option<(SwitchName, PortName, PairSlots)>,
    ) -> bool {
        let Some(record) = self.box_ports.remove(key) else { return false };
        let (owner, mac) = (record.owner.clone(), record.mac);
        let (limits, ended) = (record.limits.clone(), record.ended);
        let (cores, steering) = (record.cores, record.steering.clone());
        let port = self.detach_port(key, record);
        let endpoint = match to {
            Some((switch, port, slot)) => Endpoint::Switch { switch, port, slot },
            None => {
                let (pipe, link) = self.add_box_pipe(cores);
                Endpoint::Pipe { pipe, side: 0, link, name: None }
            }
        };
        let record = BoxPortRecord { owner, mac, limits, cores, steering, endpoint, lost: 0, ended };
        self.box_ports.insert(key.clone(), record);
        if port.is_some() {
            self.set_port(key, port);
        }
        true
    }

    /// Attaches a box's port to a switch if it is attached to nothing. Returns whether it was.
    pub(crate) fn reattach(
        &mut self,
        name: &BoxName,
        number: u8,
        port: &AttachRequest,
    ) -> Result<bool, OperationError> {
        let Attachment::Switch(switch) = &port.to else { return Ok(false) };
        if self.attachment(name, number) != Some(PortLocation::Nothing) {
            return Ok(false);
        }
        let (added, slot) = self.add_box_port(switch, name, number, port)?;
        Ok(self.move_port(&(name.clone(), number), Some((switch.clone(), added, slot))))
    }

    /// What the ports of a box are attached to.
    pub(crate) fn attachments(&self, name: &BoxName, count: usize) -> Vec<Attachment> {
        let numbers = (0..count).map(|number| u8::try_from(number).unwrap_or(u8::MAX));
        numbers.map(|number| self.attachment(name, number).map(Into::into).unwrap_or_default()).collect()
    }

    /// What a box's port is attached to.
    pub(crate) fn attachment(&self, name: &BoxName, number: u8) -> Option<PortLocation> {
        let record = self.box_ports.get(&(name.clone(), number))?;
        Some(match &record.endpoint {
            Endpoint::Switch { switch, port, .. } => PortLocation::Switch(switch.clone(), port.clone()),
            Endpoint::Pipe { name: Some(name), .. } => PortLocation::Pipe(name.clone()),
            Endpoint::Pipe { name: None, .. } => PortLocation::Nothing,
        })
    }

    /// Starts a capture at a port.
    pub(crate) fn capture(&mut self, point: &CapturePoint, capture: Capture) -> Result<(), OperationError> {
        self.captures(point)?.add(capture);
        Ok(())
    }

    fn captures(&self, point: &CapturePoint) -> Result<Captures, OperationError> {
        match point {
            CapturePoint::Switch(switch, port) => self.switch_captures(switch, port),
            CapturePoint::Box(name, number) => {
                let missing = || OperationError::NoBoxPort(name.clone(), *number);
                match &self.box_ports.get(&(name.clone(), *number)).ok_or_else(missing)?.endpoint {
                    Endpoint::Pipe { pipe, side, .. } => Ok(pipe.captures(*side)),
                    Endpoint::Switch { switch, port, .. } => self.switch_captures(switch, port),
                }
            }
        }
    }
}
