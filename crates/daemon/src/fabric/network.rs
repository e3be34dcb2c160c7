//! Where the ports of boxes are: at switches, at pipes, at nothing.

use super::joint::Joint;
use super::plug::{Plug, Port};
use super::switches::{Bridge, Socket};
use super::tap::{Tap, Taps};
use super::way::Way;
use crate::error::Failure;
use api::{Attachment, BoxName, CapturePoint, Limits, Mac, Owner, PipeName, PortName, SwitchName};
use std::collections::BTreeMap;
use std::io;
use switch::{StaticTable, Worker};

/// The number of the worker that has pipes only.
const JOINTS: usize = 0;

/// All switches, pipes and ports. It is used by the fabric's thread alone.
#[derive(Debug)]
pub(crate) struct Network {
    /// The workers: one for pipes, then one for each switch, in the order of `bridges`.
    pub(super) workers: Vec<Worker<Way>>,
    /// What is known of each switch, but the first worker's.
    pub(super) bridges: Vec<Bridge>,
    /// Where the ports of boxes are.
    pub(super) sockets: BTreeMap<(BoxName, u8), BoxSocket>,
    pipes: BTreeMap<(Owner, PipeName), Pipe>,
}

/// A pipe, and who is at its ends.
#[derive(Debug)]
struct Pipe {
    joint: Joint,
    link: usize,
    ends: [Option<(BoxName, u8)>; 2],
}

/// What is known of a box's port.
#[derive(Debug)]
pub(super) struct BoxSocket {
    pub(super) owner: Owner,
    pub(super) mac: Mac,
    pub(super) limits: Limits,
    pub(super) end: End,
    /// Packets that were in the box's rings when it ended.
    pub(super) lost: u64,
}

/// Where a box's port is.
#[derive(Debug)]
pub(super) enum End {
    /// At a switch.
    Switch { switch: SwitchName, port: PortName, plug: Plug },
    /// At a pipe, or at nothing: a joint whose other side nobody takes.
    Joint { joint: Joint, side: usize, link: usize, pipe: Option<PipeName> },
}

/// A port of a box to be attached.
#[derive(Clone, Debug)]
pub(crate) struct Attach {
    /// To what.
    pub(crate) to: Attachment,
    /// Its Ethernet address.
    pub(crate) mac: Mac,
    /// What it may cost a switch.
    pub(crate) limits: Limits,
}

impl Network {
    /// A network without switches.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            workers: vec![Worker::new(Way::Static(StaticTable::new()))?],
            bridges: Vec::new(),
            sockets: BTreeMap::new(),
            pipes: BTreeMap::new(),
        })
    }

    fn add_joint(&mut self) -> (Joint, usize) {
        let joint = Joint::new();
        let link = self.workers[JOINTS].add_link(Box::new(joint.clone()));
        (joint, link)
    }

    /// Attaches the ports of a new box: all of them, or none.
    pub(crate) fn attach(&mut self, name: &BoxName, owner: &Owner, ports: &[Attach]) -> Result<(), Failure> {
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
        port: &Attach,
    ) -> Result<(), Failure> {
        let end = match &port.to {
            Attachment::Nothing => {
                let (joint, link) = self.add_joint();
                End::Joint { joint, side: 0, link, pipe: None }
            }
            Attachment::Pipe(pipe) => self.enter_pipe(name, number, owner, pipe)?,
            Attachment::Switch(switch) => {
                let (port, plug) = self.add_box_port(switch, name, number, port)?;
                End::Switch { switch: switch.clone(), port, plug }
            }
        };
        let socket = BoxSocket { owner: owner.clone(), mac: port.mac, limits: port.limits, end, lost: 0 };
        self.sockets.insert((name.clone(), number), socket);
        Ok(())
    }

    fn enter_pipe(
        &mut self,
        name: &BoxName,
        number: u8,
        owner: &Owner,
        pipe: &PipeName,
    ) -> Result<End, Failure> {
        let key = (owner.clone(), pipe.clone());
        if !self.pipes.contains_key(&key) {
            let (joint, link) = self.add_joint();
            self.pipes.insert(key.clone(), Pipe { joint, link, ends: [None, None] });
        }
        let found = self.pipes.get_mut(&key);
        let free = found.and_then(|pipe| {
            let side = pipe.ends.iter().position(Option::is_none)?;
            pipe.ends[side] = Some((name.clone(), number));
            Some((pipe.joint.clone(), side, pipe.link))
        });
        match free {
            Some((joint, side, link)) => Ok(End::Joint { joint, side, link, pipe: Some(pipe.clone()) }),
            None => Err(Failure::Denied(format!(
                "pipe {pipe} has two ends already: give the pipe between other boxes another name"
            ))),
        }
    }

    /// What the ports of a box are known by.
    fn places(&self, name: &BoxName) -> Vec<(BoxName, u8)> {
        let own = self.sockets.range((name.clone(), 0)..=(name.clone(), u8::MAX));
        own.map(|(place, _)| place.clone()).collect()
    }

    /// Takes the ports of a box away from everything.
    pub(crate) fn detach(&mut self, name: &BoxName) {
        for place in self.places(name) {
            if let Some(socket) = self.sockets.remove(&place) {
                self.leave(&place, socket);
            }
        }
    }

    /// Ends where a box's port is; what was plugged in there.
    fn leave(&mut self, place: &(BoxName, u8), socket: BoxSocket) -> Option<Port> {
        match socket.end {
            End::Switch { switch, port, plug } => {
                let live = plug.set(None);
                self.drop_port(&switch, &port);
                live
            }
            End::Joint { joint, side, link, pipe } => {
                let live = joint.set(side, None);
                joint.taps(side).end();
                let Some(pipe) = pipe else {
                    self.workers[JOINTS].remove_link(link);
                    return live;
                };
                let key = (socket.owner, pipe);
                if let Some(pipe) = self.pipes.get_mut(&key) {
                    pipe.ends
                        .iter_mut()
                        .filter(|end| end.as_ref() == Some(place))
                        .for_each(|end| *end = None);
                    if pipe.ends.iter().all(Option::is_none) {
                        self.workers[JOINTS].remove_link(pipe.link);
                        self.pipes.remove(&key);
                    }
                }
                live
            }
        }
    }

    /// Puts a running box's ports where they are to be, in order.
    pub(crate) fn plug(&mut self, name: &BoxName, ports: Vec<Port>) {
        for (number, port) in (0u8..).zip(ports) {
            self.set_live(&(name.clone(), number), Some(port));
        }
    }

    /// Takes the ports of a box that runs no more away, and counts what was in its rings; how many packets that was.
    pub(crate) fn unplug(&mut self, name: &BoxName) -> u64 {
        let mut all = 0;
        for place in self.places(name) {
            let lost = self.set_live(&place, None).map_or(0, |mut port| port.waiting());
            if let Some(socket) = self.sockets.get_mut(&place) {
                socket.lost += lost;
            }
            all += lost;
        }
        all
    }

    fn set_live(&mut self, place: &(BoxName, u8), port: Option<Port>) -> Option<Port> {
        let plugged = port.is_some();
        match &self.sockets.get(place)?.end {
            End::Joint { joint, side, .. } => joint.set(*side, port),
            End::Switch { switch, port: name, plug } => {
                let before = plug.set(port);
                if plugged {
                    let (switch, name, plug) = (switch.clone(), name.clone(), plug.clone());
                    self.revive(&switch, &name, plug);
                }
                before
            }
        }
    }

    /// Moves a box's port to a port of a switch, or away from it to nothing, while the box goes on.
    pub(super) fn move_port(
        &mut self,
        place: &(BoxName, u8),
        to: Option<(SwitchName, PortName, Plug)>,
    ) -> bool {
        let Some(socket) = self.sockets.remove(place) else { return false };
        let (owner, mac, limits) = (socket.owner.clone(), socket.mac, socket.limits);
        let live = self.leave(place, socket);
        let end = match to {
            Some((switch, port, plug)) => End::Switch { switch, port, plug },
            None => {
                let (joint, link) = self.add_joint();
                End::Joint { joint, side: 0, link, pipe: None }
            }
        };
        self.sockets.insert(place.clone(), BoxSocket { owner, mac, limits, end, lost: 0 });
        if live.is_some() {
            self.set_live(place, live);
        }
        true
    }

    /// Where a box's port is.
    pub(crate) fn attachment(&self, name: &BoxName, number: u8) -> Option<Socket> {
        let socket = self.sockets.get(&(name.clone(), number))?;
        Some(match &socket.end {
            End::Switch { switch, port, .. } => Socket::Switch(switch.clone(), port.clone()),
            End::Joint { pipe: Some(pipe), .. } => Socket::Pipe(pipe.clone()),
            End::Joint { pipe: None, .. } => Socket::Nothing,
        })
    }

    /// Captures at a port.
    pub(crate) fn capture(&mut self, point: &CapturePoint, tap: Tap) -> Result<(), Failure> {
        self.taps(point)?.add(tap);
        Ok(())
    }

    fn taps(&self, point: &CapturePoint) -> Result<Taps, Failure> {
        match point {
            CapturePoint::Switch(switch, port) => self.switch_taps(switch, port),
            CapturePoint::Box(name, number) => {
                let missing = || Failure::NoBoxPort(name.clone(), *number);
                match &self.sockets.get(&(name.clone(), *number)).ok_or_else(missing)?.end {
                    End::Joint { joint, side, .. } => Ok(joint.taps(*side)),
                    End::Switch { switch, port, .. } => self.switch_taps(switch, port),
                }
            }
        }
    }

    /// Whether packets become due somewhere by themselves.
    pub(super) fn is_paced(&self) -> bool {
        self.bridges.iter().any(Bridge::is_paced)
    }
}
