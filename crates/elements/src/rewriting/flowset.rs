//! The flows of one rewriter, or of several that share a capacity.

use alloc::vec::Vec;

use super::mapping::{Lifetimes, Mapping};
use flow::{Ip4Flow, Pair, PairError, Pairs, Seed, TakenNumbers, Timeouts};

/// The place among `waiting` of flows whose guarantee has ended.
const BEST_EFFORT: usize = 0;
/// The place among `waiting` of flows that are guaranteed.
const GUARANTEED: usize = 1;

/// Entries that are looked at in one go for a new flow that needs room, or by the timer. Bounds the pause when all of a
/// million flows have been used since the last time.
pub(crate) const BUDGET: usize = 8_192;

/// Flows under one capacity.
pub(crate) struct FlowSet {
    /// The most flows.
    pub(crate) capacity: i32,
    /// The rewriters that share it.
    pub(crate) members: Vec<Member>,
}

/// The flows of one rewriter.
#[derive(Default)]
pub(crate) struct Member {
    /// Tables: one, or one for TCP and one for UDP.
    pub(crate) maps: Vec<Map>,
    /// Counts by input.
    pub(crate) tallies: Vec<Tally>,
}

/// What happened on one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Flows that began there and are alive.
    pub(crate) flows: u32,
    /// Flows that could not be made.
    pub(crate) failures: u32,
}

/// A table of flows, with their deadlines.
pub(crate) struct Map {
    /// The flows.
    pub(crate) pairs: Pairs<Ip4Flow, Mapping>,
    /// Deadlines: of those that may go, and of those whose guarantee lasts.
    waiting: [Timeouts; 2],
    /// Numbers that are known to be taken.
    pub(crate) known: TakenNumbers,
    /// How long flows live.
    pub(crate) lifetimes: Lifetimes,
    /// Whether the source port of a reply follows from its destination port, as in the keys of pings.
    pub(crate) is_ping: bool,
}

/// For whom a number out of a range must be unique: the other address, and what else is fixed.
pub(crate) fn peer(rewritten: Ip4Flow, has_ports: bool, is_ping: bool) -> u128 {
    let Ip4Flow { source, destination, source_port, destination_port } = rewritten;
    let port = if is_ping { 0 } else { u128::from(destination_port) };
    let (own, kind) = if has_ports { (u128::from(source), 1) } else { (source_port.into(), 0) };
    kind << 96 | u128::from(destination) << 64 | port << 48 | own
}

impl Map {
    /// No flows.
    pub(crate) fn new(lifetimes: Lifetimes, is_ping: bool) -> Map {
        Map {
            pairs: Pairs::new(Seed::new(0, 0)),
            waiting: Default::default(),
            known: TakenNumbers::new(),
            lifetimes,
            is_ping,
        }
    }

    /// Makes its hashes differ from those of others, while it is empty.
    pub(crate) fn seed(&mut self, seed: Seed) {
        if self.pairs.is_empty() {
            self.pairs = Pairs::new(seed);
        }
    }

    /// Takes a flow out.
    pub(crate) fn remove(&mut self, flow: u32) -> Option<Pair<Ip4Flow, Mapping>> {
        let pair = self.pairs.remove(flow)?;
        self.waiting.iter_mut().for_each(|waiting| _ = waiting.remove(flow));
        if !self.known.is_empty() {
            // A number was taken by a reply's key, or by a flow that came the other way.
            let [forward, reply] = pair.keys;
            for key in [reply, forward] {
                let rewritten = key.reverse();
                self.known.release(peer(rewritten, true, self.is_ping), rewritten.source_port.into());
                self.known.release(peer(rewritten, false, self.is_ping), rewritten.source);
            }
        }
        Some(pair)
    }

    /// Puts a flow's deadline off after a packet, or sets the first one.
    #[inline]
    pub(crate) fn renew(&mut self, flow: u32, now: u64) {
        let Some(mapping) = self.pairs.get_mut(flow) else { return };
        let (deadline, guaranteed) = self.lifetimes.deadline(mapping.progress, now);
        // What is put off tells its deadline when it comes to the top.
        if guaranteed != mapping.guaranteed || deadline < mapping.deadline {
            let [best_effort, guarantee] = &mut self.waiting;
            let (to, from) = if guaranteed { (guarantee, best_effort) } else { (best_effort, guarantee) };
            from.remove(flow);
            to.set(flow, deadline);
        }
        (mapping.deadline, mapping.guaranteed) = (deadline, guaranteed);
    }

    /// Moves flows whose guarantee has ended to those that may go.
    fn end_guarantees(&mut self, now: u64, budget: &mut usize) {
        let Map { pairs, waiting: [best_effort, guaranteed], lifetimes, .. } = self;
        let actual = |flow| pairs.get(flow).map_or(0, |pair| pair.flow.deadline);
        let mut ended = Vec::new();
        while let Some(flow) = guaranteed.pop_expired_within(now, budget, actual) {
            ended.push(flow);
        }
        for flow in ended {
            let Some(mapping) = pairs.get_mut(flow) else { continue };
            mapping.guaranteed = false;
            mapping.deadline = lifetimes.after_guarantee(mapping.deadline, mapping.progress);
            best_effort.set(flow, mapping.deadline);
        }
    }

    /// The flow that goes first, of those that may go or of those that are guaranteed, and when.
    fn first(&mut self, guaranteed: bool) -> Option<(u32, u64)> {
        let Map { pairs, waiting, .. } = self;
        let place = if guaranteed { GUARANTEED } else { BEST_EFFORT };
        waiting.get_mut(place)?.earliest(|flow| pairs.get(flow).map_or(0, |pair| pair.flow.deadline))
    }

    /// Stores a flow that takes the place of one that has the same reply. The handle, and the input of the one that
    /// went; `None` if there are as many as a table can hold.
    fn insert(&mut self, forward: Ip4Flow, reply: Ip4Flow, mapping: Mapping) -> Option<(u32, Option<u16>)> {
        let old = self.pairs.find(reply).and_then(|side| self.remove(side.flow));
        let waiting = if mapping.guaranteed { GUARANTEED } else { BEST_EFFORT };
        let deadline = mapping.deadline;
        let flow = match self.pairs.insert(Pair { keys: [forward, reply], flow: mapping }) {
            Ok(flow) => flow,
            Err(PairError::Known(_) | PairError::Full) => return None,
        };
        if let Some(waiting) = self.waiting.get_mut(waiting) {
            waiting.set(flow, deadline);
        }
        Some((flow, old.map(|pair| pair.flow.input)))
    }
}

impl Member {
    /// Flows in all tables.
    pub(crate) fn len(&self) -> usize {
        self.maps.iter().map(|map| map.pairs.len()).sum()
    }

    fn tally(&mut self, input: u16) -> Option<&mut Tally> {
        self.tallies.get_mut(usize::from(input))
    }

    /// Takes a flow out of one of its tables.
    pub(crate) fn remove(&mut self, map: usize, flow: u32) {
        let gone = self.maps.get_mut(map).and_then(|map| map.remove(flow));
        if let Some(tally) = gone.and_then(|pair| self.tally(pair.flow.input)) {
            tally.flows = tally.flows.saturating_sub(1);
        }
    }

    /// Takes out the flows that began on an input, and forgets its counts.
    pub(crate) fn clear_input(&mut self, input: u16) {
        for map in 0..self.maps.len() {
            let flows: Vec<u32> = self.maps.get(map).map_or(Vec::new(), |map| {
                map.pairs.iter().filter(|(_, pair)| pair.flow.input == input).map(|(flow, _)| flow).collect()
            });
            flows.into_iter().for_each(|flow| self.remove(map, flow));
        }
        if let Some(tally) = self.tally(input) {
            *tally = Tally::default();
        }
    }
}

impl Default for FlowSet {
    fn default() -> FlowSet {
        FlowSet { capacity: i32::MAX, members: Vec::new() }
    }
}

impl FlowSet {
    /// Flows of all members.
    pub(crate) fn len(&self) -> usize {
        self.members.iter().map(Member::len).sum()
    }

    /// A table of a member.
    #[inline]
    pub(crate) fn table(&self, member: usize, map: usize) -> Option<&Map> {
        self.members.get(member)?.maps.get(map)
    }

    /// A table of a member, to be changed.
    #[inline]
    pub(crate) fn table_mut(&mut self, member: usize, map: usize) -> Option<&mut Map> {
        self.members.get_mut(member)?.maps.get_mut(map)
    }

    fn is_over_capacity(&self) -> bool {
        self.len() as u64 > self.capacity.max(0) as u64
    }

    /// Stores a new flow of a member. `None`, which counts as a failure, if there is no room: if all others are
    /// guaranteed, or go later than this one.
    pub(crate) fn store(
        &mut self,
        (member, map): (usize, usize),
        (forward, rewritten): (Ip4Flow, Ip4Flow),
        mut mapping: Mapping,
        now: u64,
    ) -> Option<u32> {
        let input = mapping.input;
        let owner = self.members.get_mut(member)?;
        let table = owner.maps.get_mut(map)?;
        (mapping.deadline, mapping.guaranteed) = table.lifetimes.deadline(0, now);
        let (flow, replaced) = table.insert(forward, rewritten.reverse(), mapping)?;
        if let Some(tally) = replaced.and_then(|input| owner.tally(input)) {
            tally.flows = tally.flows.saturating_sub(1);
        }
        if let Some(tally) = owner.tally(input) {
            tally.flows += 1;
        }
        if self.is_over_capacity() && self.make_room((member, map, flow), now) {
            if let Some(tally) = self.members.get_mut(member).and_then(|owner| owner.tally(input)) {
                tally.failures += 1;
            }
            return None;
        }
        Some(flow)
    }

    /// Takes out one flow for a new one; whether that is the new one itself.
    fn make_room(&mut self, new: (usize, usize, u32), now: u64) -> bool {
        let mut budget = BUDGET;
        self.end_guarantees(now, &mut budget);
        let (member, map, flow) = self.first(false).map_or(new, |(place, _)| place);
        if let Some(member) = self.members.get_mut(member) {
            member.remove(map, flow);
        }
        (member, map, flow) == new
    }

    fn end_guarantees(&mut self, now: u64, budget: &mut usize) {
        for map in self.members.iter_mut().flat_map(|member| &mut member.maps) {
            map.end_guarantees(now, budget);
        }
    }

    /// The flow of any member that goes first: its place, and when.
    fn first(&mut self, guaranteed: bool) -> Option<((usize, usize, u32), u64)> {
        let mut first: Option<((usize, usize, u32), u64)> = None;
        for (at, member) in self.members.iter_mut().enumerate() {
            for (place, map) in member.maps.iter_mut().enumerate() {
                if let Some((flow, deadline)) = map.first(guaranteed)
                    && first.is_none_or(|(_, best)| deadline < best)
                {
                    first = Some(((at, place, flow), deadline));
                }
            }
        }
        first
    }

    /// Takes out flows whose time has come, and those beyond the capacity. Whether it is done: it stops after a while,
    /// to be called again.
    pub(crate) fn shrink(&mut self, now: u64) -> bool {
        let mut budget = BUDGET;
        self.end_guarantees(now, &mut budget);
        for member in &mut self.members {
            for place in 0..member.maps.len() {
                while let Some(flow) = member.maps.get_mut(place).and_then(|map| {
                    let Map { pairs, waiting: [best_effort, _], .. } = map;
                    let actual = |flow| pairs.get(flow).map_or(0, |pair| pair.flow.deadline);
                    best_effort.pop_expired_within(now, &mut budget, actual)
                }) {
                    member.remove(place, flow);
                }
            }
        }
        while self.is_over_capacity() {
            let first = self.first(false).or_else(|| self.first(true));
            let Some(((member, map, flow), _)) = first else { break };
            if let Some(member) = self.members.get_mut(member) {
                member.remove(map, flow);
            }
        }
        budget > 0
    }

    /// Takes out all flows.
    pub(crate) fn clear(&mut self) {
        for member in &mut self.members {
            for map in &mut member.maps {
                map.pairs.clear();
                map.waiting = Default::default();
                map.known.clear();
            }
            member.tallies.iter_mut().for_each(|tally| tally.flows = 0);
        }
    }
}
