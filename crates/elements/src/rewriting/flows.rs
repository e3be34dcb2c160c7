//! A rewriter's flows as others see them: `ICMPRewriter` and `FTPPortMapper` look them up and make new ones.

use core::cell::{Cell, RefCell};

use element::prelude::*;
use packet::checksum::Delta;
use packet::protocol;

use super::flowset::{FlowSet, Map, Member, Tally, peer};
use super::input::{Input, InputKind};
use super::mapping::{Lifetimes, Mapping};
use super::pattern::Target;
use super::splice::Splices;
use super::translate::{Annotations, Shape, ping};
use flow::{Ip4Flow, Pairs, Side};

/// What a rewriter exports.
pub(crate) struct Flows {
    /// What it tells flows by.
    pub(crate) shape: Shape,
    /// Which annotations it sets.
    pub(crate) annotations: Annotations,
    /// Its outputs.
    pub(crate) outputs: usize,
    /// Its inputs.
    pub(crate) inputs: RefCell<Vec<Input>>,
    /// Its flows, perhaps with those of others.
    pub(crate) set: RefCell<Rc<RefCell<FlowSet>>>,
    /// Its place in the set.
    pub(crate) member: Cell<usize>,
}

/// A flow that was looked up, and the direction that the key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The table.
    pub(crate) map: usize,
    /// The flow and its direction.
    pub(crate) side: Side,
    /// The addresses and ports that packets of the direction get.
    pub(crate) rewritten: Ip4Flow,
    /// The output of that direction.
    pub(crate) output: u16,
    /// The annotation of the packet that the flow began with.
    pub(crate) reply_annotation: u8,
}

/// What becomes of a packet without a flow.
pub(crate) enum Outcome {
    /// It begins this one.
    Flow(u32),
    /// It goes to an output, unchanged.
    Pass(u16),
    /// It is dropped, for a reason.
    Drop(Reason),
}

/// Milliseconds of steady time.
#[inline]
pub(crate) fn clock(cx: &Context) -> u64 {
    u64::try_from(cx.steady().millis()).unwrap_or(0)
}

/// Rewrites by a pattern whose choice no flow of the table has taken.
fn rewrite(map: &mut Map, target: &Target, flow: Ip4Flow, cx: &Context) -> Option<Ip4Flow> {
    let Map { pairs, known, is_ping, .. } = map;
    let is_ping = *is_ping;
    let is_taken = |to: Ip4Flow| pairs.find(finished(to, is_ping).reverse()).is_some();
    let peer = |to, has_ports| peer(to, has_ports, is_ping);
    let to = target.pattern.rewrite(flow, known, peer, |top| cx.random_between(0, top), is_taken)?;
    Some(finished(to, is_ping))
}

/// The second port of a ping follows from the first.
fn finished(to: Ip4Flow, is_ping: bool) -> Ip4Flow {
    if is_ping { ping(to, to.source_port, true) } else { to }
}

impl Flows {
    /// Without flows.
    pub(crate) fn new(
        shape: Shape,
        annotations: Annotations,
        inputs: Vec<Input>,
        outputs: usize,
        lifetimes: &[Lifetimes],
    ) -> Flows {
        let maps = lifetimes.iter().map(|lifetimes| Map::new(*lifetimes, shape == Shape::Ping)).collect();
        let member = Member { maps, tallies: vec![Tally::default(); inputs.len()] };
        let set = FlowSet { members: vec![member], ..FlowSet::default() };
        Flows {
            shape,
            annotations,
            outputs,
            inputs: RefCell::new(inputs),
            set: RefCell::new(Rc::new(RefCell::new(set))),
            member: Cell::new(0),
        }
    }

    /// The set that its flows are in.
    #[inline]
    pub(crate) fn set(&self) -> Rc<RefCell<FlowSet>> {
        self.set.borrow().clone()
    }

    /// Moves to the set of another rewriter, to share its capacity.
    pub(crate) fn join(&self, other: &Flows) {
        let (old, new) = (self.set(), other.set());
        if Rc::ptr_eq(&old, &new) {
            return;
        }
        let member = old.borrow_mut().members.get_mut(self.member.get()).map(core::mem::take);
        let mut set = new.borrow_mut();
        self.member.set(set.members.len());
        set.members.push(member.unwrap_or_default());
        drop(set);
        self.set.replace(new);
    }

    /// Makes a flow of packets `from` that arrive on `input`.
    pub(crate) fn create(
        &self,
        set: &mut FlowSet,
        (map, protocol): (usize, u8),
        from: Ip4Flow,
        input: usize,
        cx: &Context,
    ) -> Outcome {
        let member = self.member.get();
        let inputs = self.inputs.borrow();
        let Some(specified) = inputs.get(input) else { return Outcome::Drop(Reason::NO_MAPPING) };
        let Some(table) = set.table_mut(member, map) else { return Outcome::Drop(Reason::NO_MAPPING) };
        let made = match &specified.kind {
            InputKind::Drop | InputKind::Mapper(_, None) => return Outcome::Drop(Reason::NO_MAPPING),
            InputKind::Pass(output) => return Outcome::Pass(*output),
            InputKind::Keep(outputs) => Some((from, *outputs)),
            InputKind::Pattern(target) => rewrite(table, target, from, cx).map(|to| (to, target.outputs)),
            InputKind::Mapper(_, Some(mapper)) => mapper.map(from, |target| rewrite(table, target, from, cx)),
        };
        let Some((to, outputs)) = made else {
            let tallies = set.members.get_mut(member).map(|member| &mut member.tallies);
            if let Some(tally) = tallies.and_then(|tallies| tallies.get_mut(input)) {
                tally.failures += 1;
            }
            return Outcome::Drop(Reason::NO_FREE_MAPPING);
        };
        let has_ports = to.source_port != 0 || to.destination_port != 0;
        match self.shape {
            Shape::Address if has_ports || to.destination != 0 => return Outcome::Drop(Reason::BAD_PATTERN),
            Shape::AddressPair if has_ports => return Outcome::Drop(Reason::BAD_PATTERN),
            _ => {}
        }
        let mut mapping = Mapping::new(from, to, outputs, input as u16, protocol);
        if self.shape == Shape::Ping {
            mapping.transport = Delta::NONE.word(from.source_port, to.source_port).normalised();
        }
        match set.store((member, map), (from, to), mapping, clock(cx)) {
            Some(flow) => Outcome::Flow(flow),
            None => Outcome::Drop(Reason::TOO_MANY_FLOWS),
        }
    }

    /// The flow of a key, as this rewriter tells flows by it. `reply` says that the key is one of a reply, where that
    /// can't be seen. If there is none, one is made as if its first packet had arrived on `input`.
    pub(crate) fn look_up(
        &self,
        number: u8,
        key: Ip4Flow,
        reply: bool,
        input: Option<usize>,
        cx: &Context,
    ) -> Option<Found> {
        let map = self.shape.map(number)?;
        let addresses = Ip4Flow { source_port: 0, destination_port: 0, ..key };
        let key = match self.shape {
            Shape::Address => Ip4Flow { destination: 0, ..addresses },
            Shape::AddressPair => addresses,
            Shape::Ping => ping(addresses, key.source_port, !reply),
            _ => key,
        };
        let set = self.set();
        let mut set = set.borrow_mut();
        let find = |set: &FlowSet| {
            let map = set.table(self.member.get(), map)?;
            let reply = Ip4Flow { source: 0, ..addresses };
            let side = map.pairs.find(key);
            side.or_else(|| (self.shape == Shape::Address).then(|| map.pairs.find(reply)).flatten())
        };
        let side = match (find(&set), input) {
            (Some(side), _) => side,
            (None, None) => return None,
            (None, Some(input)) => {
                let protocol =
                    if matches!(self.shape, Shape::Address | Shape::AddressPair) { 0 } else { number };
                match self.create(&mut set, (map, protocol), key, input, cx) {
                    Outcome::Flow(flow) => Side { flow, reply: false },
                    _ => return None,
                }
            }
        };
        let pair = set.table(self.member.get(), map)?.pairs.get(side.flow)?;
        if self.shape == Shape::Udp && pair.flow.protocol != number {
            return None;
        }
        let other = pair.keys[usize::from(!side.reply)];
        let output = pair.flow.outputs[usize::from(side.reply)];
        let reply_annotation = pair.flow.reply_annotation;
        Some(Found { map, side, rewritten: other.reverse(), output, reply_annotation })
    }

    /// Changes a flow that was looked up.
    pub(crate) fn change<T>(&self, found: Found, change: impl FnOnce(&mut Mapping) -> T) -> Option<T> {
        let set = self.set();
        let mut set = set.borrow_mut();
        let map = set.table_mut(self.member.get(), found.map)?;
        map.pairs.get_mut(found.side.flow).map(change)
    }

    /// Moves the sequence numbers of what a flow's direction sends from `trigger` on by `by`.
    pub(crate) fn splice(&self, found: Found, trigger: u32, by: i32) {
        self.change(found, |mapping| {
            let splices = mapping.splices.get_or_insert_with(|| Box::new(Splices::default()));
            splices.add(found.side.reply, trigger, by)
        });
    }

    /// Whether it keeps TCP flows and can move their sequence numbers.
    pub(crate) fn moves_sequence_numbers(&self) -> bool {
        matches!(self.shape, Shape::Both | Shape::Tcp)
    }

    /// One of its tables, read while nobody changes it.
    pub(crate) fn with_map<T>(
        &self,
        map: usize,
        read: impl FnOnce(&Pairs<Ip4Flow, Mapping>, &Lifetimes) -> T,
    ) -> Option<T> {
        let set = self.set();
        let set = set.borrow();
        let map = set.table(self.member.get(), map)?;
        Some(read(&map.pairs, &map.lifetimes))
    }
}

/// The table of TCP flows, or the only one.
pub(crate) const FIRST_MAP: usize = 0;
/// The table of UDP flows, where they have one of their own.
pub(crate) const UDP_MAP: usize = 1;

/// The protocol of the flows whose sequence numbers can be moved.
pub(crate) const SPLICED: u8 = protocol::TCP;
