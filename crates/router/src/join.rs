//! Where the parts of a split batch meet again, and how they get there in few batches.
//!
//! Outputs that lead to a common order-sensitive element share an order group: a batch ends where the next packet takes another
//! output. With many outputs, most batches then have one packet. But if all packets that can take different ways do so only up
//! to one element, and nothing on these ways depends on order, the order need only be restored before that element. Then packets
//! are gathered on each way, stamped with their order at the split, and sorted where they meet.
//!
//! A split qualifies if
//! - at least two of its outputs lead to one input of one order-sensitive element, or to several if its class mixes inputs, and none
//!   leads to another such element;
//! - the elements between are reached from the split only, and neither make, copy nor keep packets, nor read others' state;
//! - no loop leads through any of them.
//!
//! The ways may also end at several order-sensitive elements, as where the interfaces of an IP router have a queue each and report
//! errors. Then
//! - two of these elements may not affect a common one, unless packets may return from one of them to the split, as errors do;
//! - the elements between may make or copy packets if these keep their place in the order;
//! - no way leads back to the split but through one of those at the ends.
//!
//! If no packet waits that may return to the split, what was gathered goes on whole. Otherwise each of these packets goes on behind all
//! that were ahead of it, and what it causes is ahead of all others.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use click_lang::steps::pause_every;
use element::{ClassInfo, Fate, MixedInput, Part, STEP_WITH_COPIES};

use crate::hookup::{Hookup, PortRef};
use crate::order::{self, NO_LOOP, Order};
use crate::step_sizes::ELEMENTS_A_STEP;

/// The maximum number of connections that the search follows. Stops: many splits before a large graph.
const MAX_STEPS: usize = 1 << 18;

/// The maximum number of 64 bits that are compared to find out whether ends of ways affect a common element, in one step.
const MAX_WORDS: usize = 1 << 15;

/// The places where outputs gather packets.
#[derive(Default)]
pub(crate) struct Joins {
    /// For each output that gathers, by element and port, the numbers of the place and of the split, if the parts meet.
    pub(crate) outputs: BTreeMap<PortRef, (usize, Option<usize>)>,
    /// The places, upstream first.
    pub(crate) places: Vec<GatheringPlace>,
    /// The elements that split batches.
    pub(crate) splits: BTreeSet<usize>,
    /// Those of them from which the ways may end at several elements.
    pub(crate) several: BTreeSet<usize>,
    /// Those of them through which alone everything behind them is reached.
    pub(crate) closed: BTreeSet<usize>,
    /// Whether some element spreads packets over many outputs that gather them up to the end of a call.
    pub(crate) is_wide: bool,
}

/// A place where packets are gathered.
pub(crate) struct GatheringPlace {
    /// The input to which the packets go.
    pub(crate) before: PortRef,
    /// Whether the parts of a batch meet there.
    pub(crate) is_meeting: bool,
    /// The input, if the parts meet at several of them.
    pub(crate) mixed_input: Option<MixedInput>,
    /// The part of the place, if the ways end at several elements.
    pub(crate) part: Option<Part>,
}

/// Outputs from which packets are gathered even if they never meet, and over more than one round. With fewer outputs, batches
/// are large enough.
const MANY_OUTPUTS: usize = 16;

/// The ways from a split to the elements where they end.
struct Ways {
    /// The inputs of order-sensitive elements. Empty if they end at none.
    meeting: BTreeSet<PortRef>,
    /// The elements between.
    between: BTreeSet<usize>,
    /// Whether they may end at several elements.
    is_several: bool,
}

/// Finds the splits, in steps, and gives each of their outputs an order group of its own.
pub(crate) async fn find(hookup: &Hookup, order: &mut Order) -> Joins {
    let upstream_first = core::mem::take(&mut order.upstream_first);
    let mut joins = Joins::default();
    let mut inside: BTreeSet<usize> = BTreeSet::new();
    let mut steps = MAX_STEPS;
    // For each output that gathers, the input that it leads to, and the split.
    let mut gathering: BTreeMap<PortRef, (PortRef, Option<usize>)> = BTreeMap::new();
    let (mut meetings, mut mixing) = (BTreeSet::new(), BTreeSet::new());
    let (mut returning, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for split in candidates(hookup, order, upstream_first.clone()).await {
        let outputs = hookup.outputs.get(split).map_or(0, Vec::len);
        if outputs < 2 || inside.contains(&split) {
            continue;
        }
        let ways = ways(hookup, order, split, &mut steps).await;
        // Packets are stamped by one split at a time.
        let is_apart =
            |ways: &Ways| ways.between.iter().all(|at| !inside.contains(at) && !joins.splits.contains(at));
        let Some(ways) = ways.filter(is_apart) else { continue };
        if ways.meeting.is_empty() {
            joins.is_wide = true;
            for (port, to) in pushed_to(hookup, split) {
                pause_every(ELEMENTS_A_STEP, port).await;
                gathering.insert((split, port), (to, None));
            }
            continue;
        }
        joins.splits.insert(split);
        if outputs >= MANY_OUTPUTS && !ways.is_several && is_closed(hookup, split, &mut steps).await {
            joins.is_wide = true;
            joins.closed.insert(split);
        }
        let mixes = ways.meeting.len() > 1 && !ways.is_several;
        mixing.extend(ways.meeting.first().filter(|_| mixes).map(|(element, _)| *element));
        if ways.is_several {
            joins.several.insert(split);
            let own_loop = order.loops.get(split).copied().filter(|own| *own != NO_LOOP);
            for to in &ways.meeting {
                let returns = own_loop.is_some() && order.loops.get(to.0).copied() == own_loop;
                if returns { &mut returning } else { &mut ends }.insert(*to);
            }
        }
        let mut done = 0;
        for &element in ways.between.iter().chain([&split]) {
            let is_branch = hookup.outputs.get(element).is_some_and(|ends| ends.len() > 1);
            for (port, to) in pushed_to(hookup, element) {
                pause_every(ELEMENTS_A_STEP, done).await;
                done += 1;
                let joins_between = is_branch && !ways.is_several && ways.between.contains(&to.0);
                if ways.meeting.contains(&to) || joins_between {
                    gathering.insert((element, port), (to, Some(split)));
                }
            }
            if let Some(groups) = order.groups.get_mut(element).filter(|_| is_branch) {
                let count = hookup.outputs.get(element).map_or(0, Vec::len);
                *groups = (0..count).map(|port| port as u16).collect();
            }
        }
        meetings.extend(ways.meeting);
        inside.extend(ways.between);
    }
    let mut rank = alloc::vec![0; hookup.classes.len()];
    upstream_first.iter().enumerate().for_each(|(at, element)| rank[*element] = at);
    let mut targets = BTreeSet::new();
    for (done, (to, _)) in gathering.values().enumerate() {
        pause_every(ELEMENTS_A_STEP, done).await;
        targets.insert((rank[to.0], *to));
    }
    let mut numbers = BTreeMap::new();
    for (number, (_, to)) in targets.into_iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, number).await;
        numbers.insert(to, number);
        let (is_meeting, mixed_input) = (meetings.contains(&to), None);
        let end = ends.contains(&to).then_some(Part::End);
        let part = if returning.contains(&to) { Some(Part::Return) } else { end };
        joins.places.push(GatheringPlace { before: to, is_meeting, mixed_input, part });
    }
    // The places before an element follow each other.
    let is_mixed = |place: &GatheringPlace| mixing.contains(&place.before.0);
    for places in joins.places.chunk_by_mut(|one, other| one.before.0 == other.before.0) {
        pause_every(ELEMENTS_A_STEP, places.len()).await;
        let Some(first) = places.first().filter(|place| is_mixed(place)) else { continue };
        let (first, count) =
            (numbers.get(&first.before).map_or(0, |number| *number as u32), places.len() as u32);
        for place in places {
            place.mixed_input = Some(MixedInput { input: place.before.1 as u16, first, places: count });
        }
    }
    for (done, (from, (to, split))) in gathering.into_iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, done).await;
        joins.outputs.extend(numbers.get(&to).map(|number| (from, (*number, split))));
    }
    joins
}

/// The outputs of an element that push, and the inputs that they push to.
fn pushed_to(hookup: &Hookup, element: usize) -> impl Iterator<Item = (usize, PortRef)> {
    let ends = hookup.outputs.get(element).into_iter().flatten().enumerate();
    ends.filter_map(|(port, end)| Some((port, *end.peers.first().filter(|_| end.push)?)))
}

/// The elements, upstream first. In a loop, where each is upstream of the others, first comes the one with the most outputs.
async fn candidates(hookup: &Hookup, order: &Order, mut upstream_first: Vec<usize>) -> Vec<usize> {
    let loop_of = |element: &usize| order.loops.get(*element).copied().unwrap_or(NO_LOOP);
    for members in upstream_first.chunk_by_mut(|one, other| loop_of(one) == loop_of(other)) {
        pause_every(ELEMENTS_A_STEP, members.len()).await;
        let outputs = |at: &usize| {
            members.get(*at).and_then(|element| hookup.outputs.get(*element)).map_or(0, Vec::len)
        };
        if members.first().is_some_and(|element| loop_of(element) != NO_LOOP)
            && let Some(most) = (0..members.len()).max_by_key(outputs)
        {
            members.swap(0, most);
        }
    }
    upstream_first
}

/// The ways on which the outputs of an element lead to one order-sensitive element, or to several, if they qualify.
async fn ways(hookup: &Hookup, order: &Order, split: usize, steps: &mut usize) -> Option<Ways> {
    let info = |element: usize| hookup.classes.get(element).map(|class| class.info);
    let loop_of = |element: usize| order.loops.get(element).copied().unwrap_or(0);
    if order.serial.get(split) != Some(&false) || !is_pushed_to(hookup, split) || info(split)?.task {
        return None;
    }
    // Everything that the outputs lead to, and the order-sensitive elements where that ends.
    let (mut seen, mut meetings) = (BTreeSet::from([split]), BTreeSet::new());
    let mut open = Vec::from([split]);
    while let Some(element) = open.pop() {
        for output in hookup.outputs.get(element)?.iter().filter(|output| output.push) {
            pause_every(ELEMENTS_A_STEP, *steps).await;
            *steps = steps.checked_sub(1)?;
            let Some(&(peer, input)) = output.peers.first() else { continue };
            u16::try_from(input).ok()?;
            let class = info(peer)?;
            if !class.reads.is_empty() || peer == split {
                return None;
            } else if !class.order_insensitive {
                meetings.insert((peer, input));
            } else if seen.insert(peer) {
                open.push(peer);
            }
        }
    }
    if meetings.is_empty() && hookup.outputs.get(split)?.len() >= MANY_OUTPUTS && loop_of(split) == NO_LOOP {
        return Some(Ways { meeting: BTreeSet::new(), between: BTreeSet::new(), is_several: false });
    }
    let meeting_element = meetings.first()?.0;
    let is_one = meetings.len() == 1 || info(meeting_element)?.mixes_inputs;
    let is_one = is_one && meetings.last()?.0 == meeting_element && loop_of(split) == NO_LOOP;
    if !passes_on(info(split)?) {
        return None;
    }
    // With several ends, there is nothing to gain if no output waits for another.
    let groups = order.groups.get(split)?;
    let waits =
        groups.is_empty() || groups.iter().enumerate().any(|(port, group)| port != usize::from(*group));
    let is_several = !is_one && waits && are_apart(order, split, &meetings);
    if !is_one && !is_several {
        return None;
    }
    // Those among them that lead to the meeting.
    let mut between = BTreeSet::new();
    let mut open: Vec<PortRef> = meetings.iter().copied().collect();
    let mut leading = 0;
    while let Some((element, input)) = open.pop() {
        let is_meeting = meetings.contains(&(element, input)) && !seen.contains(&element);
        let inputs = hookup.inputs.get(element)?;
        let inputs = if is_meeting { inputs.get(input..=input)? } else { &inputs[..] };
        for &(peer, _) in inputs.iter().flat_map(|input| &input.peers) {
            pause_every(ELEMENTS_A_STEP, *steps).await;
            *steps = steps.checked_sub(1)?;
            if peer == split {
                leading += 1;
            } else if seen.contains(&peer) {
                if between.insert(peer) {
                    open.push((peer, 0));
                }
            } else if !is_meeting {
                // Packets also come from elsewhere.
                return None;
            }
        }
    }
    let is_plain = |element: &usize| {
        let own_loop = loop_of(*element);
        (own_loop == NO_LOOP || !is_one && own_loop == loop_of(split))
            && is_pushed_to(hookup, *element)
            && info(*element).is_some_and(|class| {
                (passes_on(class) || !is_one && passes_on_in_place(class)) && !class.task && !class.storage
            })
    };
    let copying =
        between.iter().filter(|element| info(**element).is_some_and(|class| class.keeps_place)).count();
    let is_qualified = copying < STEP_WITH_COPIES as usize && leading > 1 && between.iter().all(is_plain);
    is_qualified.then_some(Ways { meeting: meetings, between, is_several: !is_one })
}

/// Whether no two of several order-sensitive elements affect a common one, apart from those in the loop of the split.
fn are_apart(order: &Order, split: usize, meetings: &BTreeSet<PortRef>) -> bool {
    let own_loop = order.loops.get(split).copied().filter(|own| *own != NO_LOOP);
    let (mut affected, mut words) = (Vec::new(), MAX_WORDS);
    let mut last = None;
    for &(element, _) in meetings {
        // Each has one input, so that packets of one stamp come in their order.
        if last.replace(element) == Some(element) {
            return false;
        }
        if own_loop.is_some() && order.loops.get(element).copied() == own_loop {
            continue;
        }
        let Some(reach) = order.reach.get(element) else { return false };
        let Some(left) = words.checked_sub(reach.len()) else { return false };
        words = left;
        affected.resize(reach.len(), 0);
        if affected.iter().zip(reach).any(|(one, other)| one & other != 0) {
            return false;
        }
        affected.iter_mut().zip(reach).for_each(|(one, other)| *one |= other);
    }
    true
}

/// Whether packets reach everything behind an element through it only.
async fn is_closed(hookup: &Hookup, element: usize, steps: &mut usize) -> bool {
    let Some(behind) = order::reached(hookup, element, steps).await else { return false };
    let inputs = behind.iter().filter_map(|element| hookup.inputs.get(*element)).flatten();
    let peers = inputs.filter(|input| input.push).flat_map(|input| &input.peers);
    for (done, (peer, _)) in peers.enumerate() {
        pause_every(ELEMENTS_A_STEP, done).await;
        if *peer != element && !behind.contains(peer) {
            return false;
        }
    }
    true
}

/// Whether a class neither makes, copies nor keeps packets.
fn passes_on(class: &ClassInfo) -> bool {
    [Fate::Received, Fate::Made, Fate::Copied, Fate::Waiting].iter().all(|fate| !class.fates.contains(fate))
}

/// Whether the packets that a class makes or copies keep their place in the order.
fn passes_on_in_place(class: &ClassInfo) -> bool {
    class.keeps_place && [Fate::Received, Fate::Waiting].iter().all(|fate| !class.fates.contains(fate))
}

/// Whether packets are pushed to all inputs of an element, of which there is at least one.
fn is_pushed_to(hookup: &Hookup, element: usize) -> bool {
    hookup
        .inputs
        .get(element)
        .is_some_and(|inputs| !inputs.is_empty() && inputs.iter().all(|input| input.push))
}
