//! The interface of a rewriter's flows: `ICMPRewriter` and `FTPPortMapper` look flows up and create them.

use core::cell::{Cell, RefCell};
use core::fmt::Write;

use element::prelude::*;
use packet::checksum::Delta;
use packet::protocol;

use super::flowset::{FlowSet, InputCounters, Map, Member, peer};
use super::input::{Input, InputKind};
use super::mapping::{Lifetimes, Mapping};
use super::pattern::Target;
use super::sequence_shifts::SequenceShifts;
use super::translate::{Annotations, KeyFields, ping};
use flow::{BidirectionalTable, FlowDirection, Ip4Flow};

/// The flows that a rewriter exports.
pub(crate) struct Flows {
    /// The header fields that identify a flow.
    pub(crate) key_fields: KeyFields,
    /// The annotations to set.
    pub(crate) annotations: Annotations,
    /// Number of outputs.
    pub(crate) outputs: usize,
    /// The specifications of the inputs.
    pub(crate) inputs: RefCell<Vec<Input>>,
    /// The set with its flows, possibly shared with other rewriters.
    pub(crate) set: RefCell<Rc<RefCell<FlowSet>>>,
    /// Its index among the members of the set.
    pub(crate) member: Cell<usize>,
}

/// A flow that was looked up, and the direction of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Index of the table.
    pub(crate) map: usize,
    /// The flow and its direction.
    pub(crate) side: FlowDirection,
    /// The addresses and ports that packets of this direction get.
    pub(crate) rewritten: Ip4Flow,
    /// The output of that direction.
    pub(crate) output: u16,
    /// The reply annotation, copied from the flow's first packet.
    pub(crate) reply_annotation: u8,
}

/// The result for a packet without a flow.
pub(crate) enum Outcome {
    /// The packet starts this flow.
    Flow(u32),
    /// The packet goes to this output unchanged.
    Pass(u16),
    /// The packet is dropped for this reason.
    Drop(Reason),
}

/// Monotonic time in milliseconds.
#[inline]
pub(crate) fn clock(cx: &Context) -> u64 {
    u64::try_from(cx.steady().millis()).unwrap_or(0)
}

/// Rewrites a flow by a pattern. A number chosen from a range is one that no flow of the table uses.
fn rewrite(map: &mut Map, target: &Target, flow: Ip4Flow, cx: &Context) -> Option<Ip4Flow> {
    let Map { pairs, known, is_ping, .. } = map;
    let is_ping = *is_ping;
    let is_taken = |to: Ip4Flow| pairs.find(complete_ping(to, is_ping).reverse()).is_some();
    let peer = |to, has_ports| peer(to, has_ports, is_ping);
    let to = target.pattern.rewrite(flow, known, peer, |top| cx.random_between(0, top), is_taken)?;
    Some(complete_ping(to, is_ping))
}

/// Completes a rewritten flow: the second port of a ping follows from the first.
fn complete_ping(to: Ip4Flow, is_ping: bool) -> Ip4Flow {
    if is_ping { ping(to, to.source_port, true) } else { to }
}

impl Flows {
    /// Creates an empty set of flows.
    pub(crate) fn new(
        key_fields: KeyFields,
        annotations: Annotations,
        inputs: Vec<Input>,
        outputs: usize,
        lifetimes: &[Lifetimes],
    ) -> Flows {
        let maps =
            lifetimes.iter().map(|lifetimes| Map::new(*lifetimes, key_fields == KeyFields::Ping)).collect();
        let member = Member { maps, counters: vec![InputCounters::default(); inputs.len()] };
        let set = FlowSet { members: vec![member], ..FlowSet::default() };
        Flows {
            key_fields,
            annotations,
            outputs,
            inputs: RefCell::new(inputs),
            set: RefCell::new(Rc::new(RefCell::new(set))),
            member: Cell::new(0),
        }
    }

    /// The set that contains its flows.
    #[inline]
    pub(crate) fn set(&self) -> Rc<RefCell<FlowSet>> {
        self.set.borrow().clone()
    }

    /// Moves its flows to another rewriter's set, to share the capacity.
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

    /// Creates a flow for packets with the key `from` that arrive on `input`.
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
            let counters = set.members.get_mut(member).map(|member| &mut member.counters);
            if let Some(counters) = counters.and_then(|counters| counters.get_mut(input)) {
                counters.failures += 1;
            }
            return Outcome::Drop(Reason::NO_FREE_MAPPING);
        };
        let has_ports = to.source_port != 0 || to.destination_port != 0;
        match self.key_fields {
            KeyFields::Address if has_ports || to.destination != 0 => {
                return Outcome::Drop(Reason::BAD_PATTERN);
            }
            KeyFields::AddressPair if has_ports => return Outcome::Drop(Reason::BAD_PATTERN),
            _ => {}
        }
        let mut mapping = Mapping::new(from, to, outputs, input as u16, protocol);
        if self.key_fields == KeyFields::Ping {
            mapping.transport = Delta::NONE.word(from.source_port, to.source_port).normalised();
        }
        match set.store((member, map), (from, to), mapping, clock(cx)) {
            Some(flow) => Outcome::Flow(flow),
            None => Outcome::Drop(Reason::TOO_MANY_FLOWS),
        }
    }

    /// Looks up the flow of a key, whose fields are reduced to those that identify a flow here. `reply` marks the key
    /// of a reply where the key does not show it. If there is no flow, one is created as if its first packet had
    /// arrived on `input`.
    pub(crate) fn lookup_flow(
        &self,
        number: u8,
        key: Ip4Flow,
        reply: bool,
        input: Option<usize>,
        cx: &Context,
    ) -> Option<Found> {
        let map = self.key_fields.map(number)?;
        let addresses = Ip4Flow { source_port: 0, destination_port: 0, ..key };
        let key = match self.key_fields {
            KeyFields::Address => Ip4Flow { destination: 0, ..addresses },
            KeyFields::AddressPair => addresses,
            KeyFields::Ping => ping(addresses, key.source_port, !reply),
            _ => key,
        };
        let set = self.set();
        let mut set = set.borrow_mut();
        let find = |set: &FlowSet| {
            let map = set.table(self.member.get(), map)?;
            let reply = Ip4Flow { source: 0, ..addresses };
            let side = map.pairs.find(key);
            side.or_else(|| (self.key_fields == KeyFields::Address).then(|| map.pairs.find(reply)).flatten())
        };
        let side = match (find(&set), input) {
            (Some(side), _) => side,
            (None, None) => return None,
            (None, Some(input)) => {
                let protocol = if self.key_fields.has_only_addresses() { 0 } else { number };
                match self.create(&mut set, (map, protocol), key, input, cx) {
                    Outcome::Flow(flow) => FlowDirection { flow, reply: false },
                    _ => return None,
                }
            }
        };
        let pair = set.table(self.member.get(), map)?.pairs.get(side.flow)?;
        if self.key_fields == KeyFields::Udp && pair.flow.protocol != number {
            return None;
        }
        let other = pair.keys[usize::from(!side.reply)];
        let output = pair.flow.outputs[usize::from(side.reply)];
        let reply_annotation = pair.flow.reply_annotation;
        Some(Found { map, side, rewritten: other.reverse(), output, reply_annotation })
    }

    /// Modifies a flow that was looked up.
    pub(crate) fn change<T>(&self, found: Found, change: impl FnOnce(&mut Mapping) -> T) -> Option<T> {
        let set = self.set();
        let mut set = set.borrow_mut();
        let map = set.table_mut(self.member.get(), found.map)?;
        map.pairs.get_mut(found.side.flow).map(change)
    }

    /// Shifts the sequence numbers of a flow's direction by `by`, from `trigger` on.
    pub(crate) fn shift_sequence_numbers(&self, found: Found, trigger: u32, by: i32) {
        self.change(found, |mapping| {
            let shifts = mapping.shifts.get_or_insert_with(|| Box::new(SequenceShifts::default()));
            shifts.add(found.side.reply, trigger, by)
        });
    }

    /// Whether it keeps TCP flows and can shift their sequence numbers.
    pub(crate) fn can_shift_sequence_numbers(&self) -> bool {
        matches!(self.key_fields, KeyFields::Both | KeyFields::Tcp)
    }

    /// Reads one of its tables.
    pub(crate) fn with_map<T>(
        &self,
        map: usize,
        read: impl FnOnce(&BidirectionalTable<Ip4Flow, Mapping>, &Lifetimes) -> T,
    ) -> Option<T> {
        let set = self.set();
        let set = set.borrow();
        let map = set.table(self.member.get(), map)?;
        Some(read(&map.pairs, &map.lifetimes))
    }

    /// Describes all inputs, or one, with the number of their flows.
    pub(crate) fn patterns(&self, only: Option<usize>) -> String {
        let set = self.set();
        let set = set.borrow();
        let mut text = String::new();
        for (index, input) in self.inputs.borrow().iter().enumerate() {
            if only.is_some_and(|only| only != index) {
                continue;
            }
            text.push_str(&input.describe());
            let member = set.members.get(self.member.get());
            match member.and_then(|member| member.counters.get(index)).map_or(0, |counters| counters.flows) {
                0 => text.push('\n'),
                count => _ = writeln!(text, " [{count}]"),
            }
        }
        text
    }

    /// Replaces the specification of an input, and removes the flows that began there.
    pub(crate) fn replace_input(&self, index: usize, cx: &Context, value: &str) -> Result<(), HandlerError> {
        let problem = |text: String| HandlerError::new(format!("input spec {index}: {text}"));
        let name = cx.name();
        let mut input = Input::parse(value, self.outputs, &cx.setup(&name)).map_err(problem)?;
        input.connect(cx).map_err(|text| problem(text.into()))?;
        match input.problems(self.outputs).as_slice() {
            [] => {}
            problems => return Err(problem(problems.join("; "))),
        }
        let set = self.set();
        if let Some(member) = set.borrow_mut().members.get_mut(self.member.get()) {
            member.clear_input(index as u16);
        }
        if let Some(old) = self.inputs.borrow_mut().get_mut(index) {
            *old = input;
        }
        Ok(())
    }
}

/// The table of TCP flows, or the only one.
pub(crate) const FIRST_MAP: usize = 0;
/// The table of UDP flows, if they have a separate one.
pub(crate) const UDP_MAP: usize = 1;

/// The protocol of flows whose sequence numbers can be shifted.
pub(crate) const SHIFTABLE_PROTOCOL: u8 = protocol::TCP;
