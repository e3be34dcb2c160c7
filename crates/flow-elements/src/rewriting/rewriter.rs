//! The element behind all rewriters, which differ in their arguments and in the fields that identify a flow.

use core::marker::PhantomData;

use element::arguments::{Annotation, Raw};
use element::prelude::*;
use element::{FlowKeeping, text};

use super::flows::{Flows, Outcome, clock};
use super::flowset::FlowSet;
use super::input::Input;
use super::mapping::Lifetimes;
use super::states::RewriterStates;
use super::translate::{Annotations, Key, KeyFields, PacketRewrite, translate};
use flow::{FlowDirection, FlowLookup, LOOKUP_GROUP, Seed};

/// No output of an element: the packet is dropped.
const NO_OUTPUT: u32 = u32::MAX;

/// The parameters of one rewriter class.
pub(crate) trait RewriterClass: Sized + 'static {
    type Args: Args;
    const HANDLERS: &'static [Handler<Rewriter<Self>>];
    /// The fields that identify a flow.
    const KEY_FIELDS: KeyFields;

    /// Converts its arguments to settings.
    fn settings(args: Self::Args) -> Settings;
}

/// The settings of a rewriter.
pub(crate) struct Settings {
    /// How packets of unknown flows are handled, by input.
    pub(crate) inputs: Vec<Raw>,
    /// Lifetimes of flows, by table.
    pub(crate) lifetimes: Vec<Lifetimes>,
    /// The maximum number of flows, or the name of the rewriter that defines it.
    pub(crate) capacity: Option<String>,
    /// Time between searches for expired flows; 0 for none.
    pub(crate) interval: Timestamp,
    /// Annotations to set.
    pub(crate) annotations: Annotations,
}

/// The annotations to set, from the arguments.
pub(crate) fn annotations(destination: bool, reply: Option<Annotation<1>>) -> Annotations {
    Annotations { destination, reply: reply.map(|Annotation(offset)| offset) }
}

/// An element that rewrites the packets of flows.
pub(crate) struct Rewriter<K: 'static> {
    pub(crate) flows: Rc<Flows>,
    states: RewriterStates,
    capacity: Option<String>,
    /// Errors in the specifications of inputs.
    problems: SetupError,
    interval: Timestamp,
    /// For each packet of a batch.
    lookups: Vec<PacketLookup>,
    /// The outputs of packets, while their batch is rewritten.
    outputs: Vec<u32>,
    kind: PhantomData<K>,
}

/// What is known of a packet when its batch has been looked up.
#[derive(Clone, Copy, Default)]
struct PacketLookup {
    key: Option<Key>,
    /// The likely flow of the key.
    likely: Option<FlowDirection>,
}

/// The input of each packet in a batch.
#[derive(Clone, Copy)]
enum Inputs<'a> {
    One(usize),
    Each(&'a [u16]),
}

impl Inputs<'_> {
    fn of(self, packet: usize) -> usize {
        match self {
            Inputs::One(input) => input,
            Inputs::Each(inputs) => inputs.get(packet).copied().unwrap_or_default().into(),
        }
    }
}

impl<K: RewriterClass> Rewriter<K> {
    /// Looks up the likely flows of a batch, all together.
    fn lookup_flow(&mut self, set: &FlowSet, batch: &Batch) {
        let packets = batch.as_slice();
        if self.lookups.len() < packets.len() {
            self.lookups.resize(packets.len(), PacketLookup::default());
        }
        let maps = set.members.get(self.flows.member.get()).map_or(&[][..], |member| &member.maps);
        for (packets, found) in packets.chunks(LOOKUP_GROUP).zip(self.lookups.chunks_mut(LOOKUP_GROUP)) {
            let mut lookups = [const { None }; LOOKUP_GROUP];
            for ((packet, found), lookup) in packets.iter().zip(&mut *found).zip(&mut lookups) {
                let Some(key) = K::KEY_FIELDS.key(packet) else {
                    *found = PacketLookup::default();
                    continue;
                };
                *found = PacketLookup { key: Some(key), likely: None };
                *lookup = maps.get(usize::from(key.map)).map(|map| map.pairs.begin_lookup(key.flow));
            }
            for (found, lookup) in found.iter_mut().zip(&lookups) {
                found.likely = lookup.as_ref().and_then(FlowLookup::likely);
            }
        }
    }

    /// Handles a packet that belongs to no flow and can't start one.
    fn pass_or_reject(&self, port: usize) -> Result<u16, Reason> {
        use super::input::InputKind;
        match self.flows.inputs.borrow().get(port).map(|input| &input.kind) {
            Some(InputKind::Pass(output)) => Ok(*output),
            _ => Err(Reason::NOT_REWRITABLE),
        }
    }

    /// Rewrites in place the leading `packets` that belong to known flows, and adds their outputs. `first` is the number of the
    /// first packet in the batch. This covers nearly all packets, so it is a single loop.
    fn rewrite_known(
        &self,
        set: &mut FlowSet,
        (first, packets): (usize, &mut [Packet]),
        outputs: &mut Vec<u32>,
        now: u64,
    ) {
        let Some(member) = set.members.get_mut(self.flows.member.get()) else { return };
        let annotations = self.flows.annotations;
        for (packet, lookup) in packets.iter_mut().zip(self.lookups.get(first..).unwrap_or_default()) {
            let PacketLookup { key: Some(key), likely: Some(side) } = lookup else { break };
            let Some(table) = member.maps.get_mut(usize::from(key.map)) else { break };
            let Some((keys, mapping)) = table.pairs.parts_mut(side.flow) else { break };
            // It may be another flow: that of the key may have been replaced since the batch was looked up.
            let direction = usize::from(side.reply);
            if keys[direction] != key.flow {
                break;
            }
            outputs.push(mapping.outputs[direction].into());
            let other = &keys[direction ^ 1];
            translate(
                K::KEY_FIELDS,
                packet,
                PacketRewrite { other, reply: side.reply, mapping },
                annotations,
            );
            if !table.lifetimes.postpone(mapping, now) {
                table.renew(side.flow, now);
            }
        }
    }

    /// Rewrites a packet. Returns its output or the drop reason.
    #[inline(never)]
    fn rewrite(
        &mut self,
        cx: &Context,
        set: &mut FlowSet,
        (port, lookup): (usize, PacketLookup),
        packet: &mut Packet,
        now: u64,
    ) -> Result<u16, Reason> {
        let Some(key) = lookup.key else { return self.pass_or_reject(port) };
        let map = usize::from(key.map);
        let member = self.flows.member.get();
        let Some(table) = set.table_mut(member, map) else { return Err(Reason::NOT_REWRITABLE) };
        // Flows may have been added or removed since the batch was looked up.
        let mut side = table.pairs.find_again(key.flow, lookup.likely);
        if side.is_none() {
            side = K::KEY_FIELDS.reply_key(packet).and_then(|reply| table.pairs.find(reply));
        }
        let side = match side {
            Some(side) => side,
            None if !key.begins => return self.pass_or_reject(port),
            None => match self.flows.create(set, (map, key.protocol), key.flow, port, cx) {
                Outcome::Flow(flow) => self.record_first_packet(set, map, flow, packet),
                Outcome::Pass(output) => return Ok(output),
                Outcome::Drop(reason) => return Err(reason),
            },
        };
        let Some(table) = set.table_mut(member, map) else { return Err(Reason::NOT_REWRITABLE) };
        let Some((keys, mapping)) = table.pairs.parts_mut(side.flow) else {
            return Err(Reason::NOT_REWRITABLE);
        };
        let (other, output) = (&keys[usize::from(!side.reply)], mapping.outputs[usize::from(side.reply)]);
        translate(
            K::KEY_FIELDS,
            packet,
            PacketRewrite { other, reply: side.reply, mapping },
            self.flows.annotations,
        );
        table.renew(side.flow, now);
        Ok(output)
    }

    /// Records data of a flow's first packet.
    #[cold]
    fn record_first_packet(
        &self,
        set: &mut FlowSet,
        map: usize,
        flow: u32,
        packet: &Packet,
    ) -> FlowDirection {
        if let Some(offset) = self.flows.annotations.reply
            && let Some(table) = set.table_mut(self.flows.member.get(), map)
            && let Some(mapping) = table.pairs.get_mut(flow)
        {
            mapping.reply_annotation = packet.annotation_u8(offset);
        }
        FlowDirection { flow, reply: false }
    }

    /// Rewrites a batch.
    fn push_all(&mut self, cx: &mut Context, inputs: Inputs, mut batch: Batch) {
        let set = self.flows.set();
        let mut set = set.borrow_mut();
        self.lookup_flow(&set, &batch);
        let now = clock(cx);
        let mut outputs = core::mem::take(&mut self.outputs);
        outputs.reserve(batch.len());
        let mut rejected = Vec::new();
        loop {
            let first = outputs.len();
            let left = batch.as_mut_slice().get_mut(first..).unwrap_or_default();
            self.rewrite_known(&mut set, (first, left), &mut outputs, now);
            // One of a new flow, or of none.
            let at = outputs.len();
            let Some(packet) = left.get_mut(at - first) else { break };
            let lookup = self.lookups.get(at).copied().unwrap_or_default();
            let output = self.rewrite(cx, &mut set, (inputs.of(at), lookup), packet, now);
            outputs.push(output.map_or_else(
                |reason| {
                    rejected.push((at, reason));
                    NO_OUTPUT
                },
                u32::from,
            ));
        }
        if let Some(&(first, reason)) = rejected.first() {
            if rejected.len() == batch.len() && rejected.iter().all(|(_, other)| *other == reason) {
                outputs.clear();
                self.outputs = outputs;
                return cx.drop_batch(batch, reason);
            }
            outputs.retain(|output| *output != NO_OUTPUT);
            let (mut at, mut rejected) = (first, rejected.into_iter().peekable());
            batch.filter_map_from(first, |packet| {
                let reason = rejected.next_if(|(rejected, _)| *rejected == at);
                at += 1;
                let Some((_, reason)) = reason else { return Some(packet) };
                cx.drop(packet, reason);
                None
            });
        }
        cx.send_to_ports(batch, &outputs, Reason::NO_OUTPUT);
        outputs.clear();
        self.outputs = outputs;
    }

    fn connect(&self, cx: &Context) -> Result<(), SetupError> {
        let mut problems = SetupError::default();
        for (index, input) in self.flows.inputs.borrow_mut().iter_mut().enumerate() {
            if let Err(problem) = input.connect(cx) {
                problems.merge(SetupError::argument(format!("input spec {index}"), problem));
            }
        }
        problems.into_result()
    }

    fn check_mappers(&self, cx: &Context) -> Result<(), SetupError> {
        let mut problems = SetupError::default();
        for (index, input) in self.flows.inputs.borrow().iter().enumerate() {
            for problem in input.problems(cx.outputs()) {
                problems.merge(SetupError::argument(format!("input spec {index}"), problem));
            }
        }
        problems.into_result()
    }

    fn share_capacity(&self, cx: &Context) -> Result<(), SetupError> {
        let Some(capacity) = &self.capacity else { return Ok(()) };
        if let Ok(number) = cx.argument(capacity) {
            self.flows.set().borrow_mut().capacity = own_capacity(cx, number)?;
            return Ok(());
        }
        let other = cx.import::<Flows>(capacity).ok_or_else(|| SetupError::new("bad MAPPING_CAPACITY"))?;
        self.flows.join(&other);
        Ok(())
    }

    fn expire(&self, cx: &Context) {
        let is_done = self.flows.set().borrow_mut().shrink(clock(cx));
        if !is_done {
            cx.set_timer_after(0, Timestamp::ZERO);
        } else if self.interval > Timestamp::ZERO {
            cx.set_timer_after(0, self.interval);
        }
    }
}

/// The part of the capacity that this shard has. A negative one is none at all.
pub(crate) fn own_capacity(cx: &Context, capacity: i32) -> Result<i32, SetupError> {
    let total = u32::try_from(capacity).unwrap_or_default();
    Ok(i32::try_from(cx.shard().divide("CAPACITY", total)?).unwrap_or(i32::MAX).min(capacity))
}

impl<K: RewriterClass> Element for Rewriter<K> {
    type Args = K::Args;
    const HANDLERS: &'static [Handler<Self>] = K::HANDLERS;
    const NUMBERED: Option<NumberedHandlers<Self>> = Some(NumberedHandlers {
        prefix: "pattern",
        summary: "What input N does, and its flows in brackets; writing ends the flows that began there.",
        count: |rewriter| rewriter.flows.inputs.borrow().len(),
        read: |rewriter, input| rewriter.flows.patterns(Some(input)),
        write: |rewriter, cx, input, value| rewriter.flows.replace_input(input, cx, value),
    });

    fn new(args: K::Args, setup: &mut Setup) -> Result<Self, SetupError> {
        let settings = K::settings(args);
        let form = |text: &str| text::is_identifier(text) || i32::from_argument(text, setup).is_ok();
        if settings.capacity.as_deref().is_some_and(|text| !form(text)) {
            return Err(SetupError::new("bad MAPPING_CAPACITY"));
        }
        if settings.inputs.len() != setup.inputs() {
            return Err(SetupError::ports(format!("need {} arguments, one per input port", setup.inputs())));
        }
        let mut problems = SetupError::default();
        let mut inputs = Vec::new();
        for (index, Raw(line)) in settings.inputs.iter().enumerate() {
            match Input::parse(line, setup.outputs(), setup) {
                Ok(input) => inputs.push(input),
                Err(text) => problems.merge(SetupError::argument(format!("input spec {index}"), text)),
            }
        }
        // These errors are reported in `resolve`, after errors of the capacity, which may refer to another element.
        let flows =
            Flows::new(K::KEY_FIELDS, settings.annotations, inputs, setup.outputs(), &settings.lifetimes);
        let flows = Rc::new(flows);
        Ok(Rewriter {
            states: RewriterStates(flows.clone()),
            flows,
            capacity: settings.capacity,
            problems,
            interval: settings.interval,
            lookups: Vec::new(),
            outputs: Vec::new(),
            kind: PhantomData,
        })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.share_capacity(cx)?;
        core::mem::take(&mut self.problems).into_result()?;
        self.connect(cx)
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.check_mappers(cx)?;
        let word = || cx.hash_seed();
        if let Some(member) = self.flows.set().borrow_mut().members.get_mut(self.flows.member.get()) {
            member.maps.iter_mut().for_each(|map| map.seed(Seed::new(word(), word())));
        }
        if self.interval > Timestamp::ZERO {
            cx.set_timer_after(0, self.interval);
        }
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        self.push_all(cx, Inputs::One(port), batch);
    }

    fn push_mixed(&mut self, cx: &mut Context, inputs: &[u16], batch: Batch) {
        self.push_all(cx, Inputs::Each(inputs), batch);
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.expire(cx);
    }

    /// Takes over the flows that began on inputs with unchanged specifications.
    fn inherit(&mut self, old: &mut Self, cx: &mut Context) {
        let texts = |flows: &Flows| -> Vec<String> {
            flows.inputs.borrow().iter().map(|input| input.text.clone()).collect()
        };
        let (new_texts, old_texts) = (texts(&self.flows), texts(&old.flows));
        let old_set = old.flows.set();
        for (input, text) in old_texts.iter().enumerate() {
            if new_texts.get(input) != Some(text)
                && let Some(member) = old_set.borrow_mut().members.get_mut(old.flows.member.get())
            {
                member.clear_input(input as u16);
            }
        }
        let taken = old_set.borrow_mut().members.get_mut(old.flows.member.get()).map(core::mem::take);
        let (set, Some(taken)) = (self.flows.set(), taken) else { return };
        let mut set = set.borrow_mut();
        if let Some(member) = set.members.get_mut(self.flows.member.get()) {
            let new = core::mem::replace(member, taken);
            member.counters.resize(new.counters.len(), Default::default());
            for (map, new) in member.maps.iter_mut().zip(new.maps) {
                map.lifetimes = new.lifetimes;
            }
        }
        set.shrink(clock(cx));
    }

    fn export(&self) -> Option<Rc<dyn core::any::Any>> {
        Some(self.flows.clone())
    }

    fn flow_states(&mut self) -> FlowKeeping<'_> {
        FlowKeeping::HandedOver(&mut self.states)
    }
}
