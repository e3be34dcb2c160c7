//! The flows of one rewriter, or of several that share a capacity.

use alloc::vec::Vec;

use super::mapping::{Lifetimes, Mapping};
use element::ImportError;
use flow::{BidirectionalFlow, BidirectionalTable, InsertError, Ip4Flow, Seed, TakenNumbers, Timeouts};

/// Index in `waiting` of the best-effort flows, whose guaranteed period has ended.
const BEST_EFFORT: usize = 0;
/// Index in `waiting` of the guaranteed flows.
const GUARANTEED: usize = 1;

/// Maximum entries examined at once, to make room for a new flow or by the timer. Bounds the pause when all of a
/// million flows were refreshed since the last time.
pub(crate) const BUDGET: usize = 8_192;

/// Flows with a common capacity.
pub(crate) struct FlowSet {
    /// Maximum number of flows.
    pub(crate) capacity: i32,
    /// The rewriters that share the capacity.
    pub(crate) members: Vec<Member>,
}

/// The flows of one rewriter.
#[derive(Default)]
pub(crate) struct Member {
    /// One table, or one for TCP and one for UDP.
    pub(crate) maps: Vec<Map>,
    /// Counters by input.
    pub(crate) counters: Vec<InputCounters>,
}

/// Counters of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputCounters {
    /// Live flows that began on this input.
    pub(crate) flows: u32,
    /// Flows that could not be created.
    pub(crate) failures: u32,
}

/// A table of flows with their deadlines.
pub(crate) struct Map {
    pub(crate) pairs: BidirectionalTable<Ip4Flow, Mapping>,
    /// Deadlines of the best-effort flows and of the guaranteed ones.
    waiting: [Timeouts; 2],
    /// Numbers known to be taken.
    pub(crate) known: TakenNumbers,
    /// Lifetimes of the flows.
    pub(crate) lifetimes: Lifetimes,
    /// Whether the source port of a reply follows from its destination port, as in the keys of pings.
    pub(crate) is_ping: bool,
}

/// The scope in which a number from a range must be unique: the remote address and other fixed fields.
pub(crate) fn peer(rewritten: Ip4Flow, has_ports: bool, is_ping: bool) -> u128 {
    let Ip4Flow { source, destination, source_port, destination_port } = rewritten;
    let port = if is_ping { 0 } else { u128::from(destination_port) };
    let (own, kind) = if has_ports { (u128::from(source), 1) } else { (source_port.into(), 0) };
    kind << 96 | u128::from(destination) << 64 | port << 48 | own
}

impl Map {
    /// Creates an empty table.
    pub(crate) fn new(lifetimes: Lifetimes, is_ping: bool) -> Map {
        Map {
            pairs: BidirectionalTable::new(Seed::new(0, 0)),
            waiting: Default::default(),
            known: TakenNumbers::new(),
            lifetimes,
            is_ping,
        }
    }

    /// Sets the hash seed of an empty table.
    pub(crate) fn seed(&mut self, seed: Seed) {
        if self.pairs.is_empty() {
            self.pairs = BidirectionalTable::new(seed);
        }
    }

    /// Removes a flow and returns it.
    pub(crate) fn remove(&mut self, flow: u32) -> Option<BidirectionalFlow<Ip4Flow, Mapping>> {
        let pair = self.pairs.remove(flow)?;
        self.waiting.iter_mut().for_each(|waiting| _ = waiting.remove(flow));
        if !self.known.is_empty() {
            // The reply's key uses the number, or the forward key if the flow came from the other direction.
            let [forward, reply] = pair.keys;
            for key in [reply, forward] {
                let rewritten = key.reverse();
                self.known.release(peer(rewritten, true, self.is_ping), rewritten.source_port.into());
                self.known.release(peer(rewritten, false, self.is_ping), rewritten.source);
            }
        }
        Some(pair)
    }

    /// Updates a flow's deadline after a packet, or sets the first one.
    #[inline]
    pub(crate) fn renew(&mut self, flow: u32, now: u64) {
        let Some(mapping) = self.pairs.get_mut(flow) else { return };
        let (deadline, guaranteed) = self.lifetimes.deadline(mapping.progress, now);
        // A postponed deadline is read when the entry reaches the top of the heap.
        if guaranteed != mapping.guaranteed || deadline < mapping.deadline {
            let [best_effort, guarantee] = &mut self.waiting;
            let (to, from) = if guaranteed { (guarantee, best_effort) } else { (best_effort, guarantee) };
            from.remove(flow);
            to.set(flow, deadline);
        }
        (mapping.deadline, mapping.guaranteed) = (deadline, guaranteed);
    }

    /// Makes flows best-effort whose guaranteed period has ended.
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

    /// The best-effort or guaranteed flow that expires first, and its deadline.
    fn first(&mut self, guaranteed: bool) -> Option<(u32, u64)> {
        let Map { pairs, waiting, .. } = self;
        let index = if guaranteed { GUARANTEED } else { BEST_EFFORT };
        waiting.get_mut(index)?.earliest(|flow| pairs.get(flow).map_or(0, |pair| pair.flow.deadline))
    }

    /// Stores a flow, replacing one with the same reply key. Returns the handle and the input of the replaced flow;
    /// `None` if the table is full.
    fn insert(&mut self, forward: Ip4Flow, reply: Ip4Flow, mapping: Mapping) -> Option<(u32, Option<u16>)> {
        let old = self.pairs.find(reply).and_then(|side| self.remove(side.flow));
        let waiting = if mapping.guaranteed { GUARANTEED } else { BEST_EFFORT };
        let deadline = mapping.deadline;
        let flow = match self.pairs.insert(BidirectionalFlow { keys: [forward, reply], flow: mapping }) {
            Ok(flow) => flow,
            Err(InsertError::Known(_) | InsertError::Full) => return None,
        };
        if let Some(waiting) = self.waiting.get_mut(waiting) {
            waiting.set(flow, deadline);
        }
        Some((flow, old.map(|pair| pair.flow.input)))
    }
}

impl Member {
    /// Number of flows in all tables.
    pub(crate) fn len(&self) -> usize {
        self.maps.iter().map(|map| map.pairs.len()).sum()
    }

    fn input_counters(&mut self, input: u16) -> Option<&mut InputCounters> {
        self.counters.get_mut(usize::from(input))
    }

    /// Removes a flow from one of its tables.
    pub(crate) fn remove(&mut self, map: usize, flow: u32) {
        let gone = self.maps.get_mut(map).and_then(|map| map.remove(flow));
        if let Some(counters) = gone.and_then(|pair| self.input_counters(pair.flow.input)) {
            counters.flows = counters.flows.saturating_sub(1);
        }
    }

    /// Removes the flows that began on an input, and resets its counters.
    pub(crate) fn clear_input(&mut self, input: u16) {
        for map in 0..self.maps.len() {
            let flows: Vec<u32> = self.maps.get(map).map_or(Vec::new(), |map| {
                map.pairs.iter().filter(|(_, pair)| pair.flow.input == input).map(|(flow, _)| flow).collect()
            });
            flows.into_iter().for_each(|flow| self.remove(map, flow));
        }
        if let Some(counters) = self.input_counters(input) {
            *counters = InputCounters::default();
        }
    }
}

impl Default for FlowSet {
    fn default() -> FlowSet {
        FlowSet { capacity: i32::MAX, members: Vec::new() }
    }
}

impl FlowSet {
    /// Number of flows of all members.
    pub(crate) fn len(&self) -> usize {
        self.members.iter().map(Member::len).sum()
    }

    /// A table of a member.
    #[inline]
    pub(crate) fn table(&self, member: usize, map: usize) -> Option<&Map> {
        self.members.get(member)?.maps.get(map)
    }

    /// A table of a member, mutable.
    #[inline]
    pub(crate) fn table_mut(&mut self, member: usize, map: usize) -> Option<&mut Map> {
        self.members.get_mut(member)?.maps.get_mut(map)
    }

    fn is_over_capacity(&self) -> bool {
        self.len() as u64 > self.capacity.max(0) as u64
    }

    /// Stores a new flow of a member. Returns `None` and counts a failure if there is no room, because all other flows
    /// are guaranteed or expire later than this one.
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
        if let Some(counters) = replaced.and_then(|input| owner.input_counters(input)) {
            counters.flows = counters.flows.saturating_sub(1);
        }
        if let Some(counters) = owner.input_counters(input) {
            counters.flows += 1;
        }
        if self.is_over_capacity() && self.make_room((member, map, flow), now) {
            if let Some(counters) = self.members.get_mut(member).and_then(|owner| owner.input_counters(input))
            {
                counters.failures += 1;
            }
            return None;
        }
        Some(flow)
    }

    /// Counts a flow as used now if a member has it already: with these keys, outputs and this input.
    pub(crate) fn use_equal(
        &mut self,
        (member, map): (usize, usize),
        keys: [Ip4Flow; 2],
        mapping: &Mapping,
        now: u64,
    ) -> bool {
        let Some(table) = self.table_mut(member, map) else { return false };
        let Some(side) = table.pairs.find(keys[0]) else { return false };
        let is_equal = table.pairs.get(side.flow).is_some_and(|pair| {
            pair.keys == keys && (pair.flow.outputs, pair.flow.input) == (mapping.outputs, mapping.input)
        });
        if is_equal {
            table.renew(side.flow, now);
        }
        is_equal
    }

    /// Takes over a flow of another box for a member. Fails if one of its keys is known, or if there is no room: it evicts none.
    pub(crate) fn take_over(
        &mut self,
        (member, map): (usize, usize),
        forward: Ip4Flow,
        rewritten: Ip4Flow,
        mapping: Mapping,
    ) -> Result<(), ImportError> {
        if self.len() as u64 >= self.capacity.max(0) as u64 {
            return Err(ImportError::NoRoom);
        }
        let owner = self.members.get_mut(member).ok_or(ImportError::Malformed)?;
        let table = owner.maps.get_mut(map).ok_or(ImportError::Malformed)?;
        let (reply, input) = (rewritten.reverse(), mapping.input);
        if [forward, reply].into_iter().any(|key| table.pairs.find(key).is_some()) {
            return Err(ImportError::Taken);
        }
        table.insert(forward, reply, mapping).ok_or(ImportError::NoRoom)?;
        if let Some(counters) = owner.input_counters(input) {
            counters.flows += 1;
        }
        Ok(())
    }

    /// Evicts one flow in favour of a new one. Returns whether the new flow itself was evicted.
    fn make_room(&mut self, new: (usize, usize, u32), now: u64) -> bool {
        let mut budget = BUDGET;
        self.end_guarantees(now, &mut budget);
        let (member, map, flow) = self.first(false).map_or(new, |(index, _)| index);
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

    /// The flow of any member that expires first, as (member, table, handle), and its deadline.
    fn first(&mut self, guaranteed: bool) -> Option<((usize, usize, u32), u64)> {
        let mut first: Option<((usize, usize, u32), u64)> = None;
        for (at, member) in self.members.iter_mut().enumerate() {
            for (index, map) in member.maps.iter_mut().enumerate() {
                if let Some((flow, deadline)) = map.first(guaranteed)
                    && first.is_none_or(|(_, best)| deadline < best)
                {
                    first = Some(((at, index, flow), deadline));
                }
            }
        }
        first
    }

    /// Removes expired flows and those above the capacity. Returns false if the budget ran out and another call is
    /// needed.
    pub(crate) fn shrink(&mut self, now: u64) -> bool {
        let mut budget = BUDGET;
        self.end_guarantees(now, &mut budget);
        for member in &mut self.members {
            for index in 0..member.maps.len() {
                while let Some(flow) = member.maps.get_mut(index).and_then(|map| {
                    let Map { pairs, waiting: [best_effort, _], .. } = map;
                    let actual = |flow| pairs.get(flow).map_or(0, |pair| pair.flow.deadline);
                    best_effort.pop_expired_within(now, &mut budget, actual)
                }) {
                    member.remove(index, flow);
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

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        for member in &mut self.members {
            for map in &mut member.maps {
                map.pairs.clear();
                map.waiting = Default::default();
                map.known.clear();
            }
            member.counters.iter_mut().for_each(|counters| counters.flows = 0);
        }
    }
}
