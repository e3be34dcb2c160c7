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

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use click_lang::steps::pause_every;
use element::{ClassInfo, Fate, MixedInput};

use crate::hookup::{Hookup, PortRef};
use crate::order::{self, Order};
use crate::step_sizes::ELEMENTS_A_STEP;

/// The maximum number of connections that the search follows. Stops: many splits before a large graph.
const MAX_STEPS: usize = 1 << 18;

/// The places where outputs gather packets.
#[derive(Default)]
pub(crate) struct Joins {
    /// For each output that gathers, by element and port, the numbers of the place and of the split, if the parts meet.
    pub(crate) outputs: BTreeMap<PortRef, (usize, Option<usize>)>,
    /// The places, upstream first.
    pub(crate) places: Vec<GatheringPlace>,
    /// The elements that split batches.
    pub(crate) splits: BTreeSet<usize>,
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
}

/// Outputs from which packets are gathered even if they never meet, and over more than one round. With fewer outputs, batches
/// are large enough.
const MANY_OUTPUTS: usize = 16;

/// The ways from a split to the element where they meet.
struct Ways {
    /// The inputs of one order-sensitive element. Empty if they meet at none.
    meeting: BTreeSet<PortRef>,
    /// The elements between.
    between: BTreeSet<usize>,
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
    for &split in &upstream_first {
        let outputs = hookup.outputs.get(split).map_or(0, Vec::len);
        if outputs < 2 || inside.contains(&split) {
            continue;
        }
        let ways = ways(hookup, order, split, &mut steps).await;
        let Some(ways) = ways.filter(|ways| ways.between.is_disjoint(&inside)) else { continue };
        if ways.meeting.is_empty() {
            joins.is_wide = true;
            for (port, to) in pushed_to(hookup, split) {
                pause_every(ELEMENTS_A_STEP, port).await;
                gathering.insert((split, port), (to, None));
            }
            continue;
        }
        joins.splits.insert(split);
        if outputs >= MANY_OUTPUTS && is_closed(hookup, split, &mut steps).await {
            joins.is_wide = true;
            joins.closed.insert(split);
        }
        mixing.extend(ways.meeting.first().filter(|_| ways.meeting.len() > 1).map(|(element, _)| *element));
        let mut done = 0;
        for &element in ways.between.iter().chain([&split]) {
            let is_branch = hookup.outputs.get(element).is_some_and(|ends| ends.len() > 1);
            for (port, to) in pushed_to(hookup, element) {
                pause_every(ELEMENTS_A_STEP, done).await;
                done += 1;
                if ways.meeting.contains(&to) || is_branch && ways.between.contains(&to.0) {
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
        joins.places.push(GatheringPlace { before: to, is_meeting, mixed_input });
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

/// The ways on which the outputs of an element lead to one order-sensitive element, if they qualify.
async fn ways(hookup: &Hookup, order: &Order, split: usize, steps: &mut usize) -> Option<Ways> {
    let info = |element: usize| hookup.classes.get(element).map(|class| class.info);
    let is_in_loop = |element: usize| order.in_loop.get(element) != Some(&false);
    if is_in_loop(split) || !is_pushed_to(hookup, split) || info(split)?.task {
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
            if !class.reads.is_empty() {
                return None;
            } else if !class.order_insensitive {
                meetings.insert((peer, input));
            } else if seen.insert(peer) {
                open.push(peer);
            }
        }
    }
    if meetings.is_empty() && hookup.outputs.get(split)?.len() >= MANY_OUTPUTS {
        return Some(Ways { meeting: BTreeSet::new(), between: BTreeSet::new() });
    }
    let meeting_element = meetings.first()?.0;
    let is_one = meetings.len() == 1 || info(meeting_element)?.mixes_inputs;
    if !is_one || meetings.last()?.0 != meeting_element || !passes_on(info(split)?) {
        return None;
    }
    // Those among them that lead to the meeting.
    let mut between = BTreeSet::new();
    let mut open: Vec<PortRef> = meetings.iter().copied().collect();
    let mut leading = 0;
    while let Some((element, input)) = open.pop() {
        let inputs = hookup.inputs.get(element)?;
        let inputs = if element == meeting_element { inputs.get(input..=input)? } else { &inputs[..] };
        for &(peer, _) in inputs.iter().flat_map(|input| &input.peers) {
            pause_every(ELEMENTS_A_STEP, *steps).await;
            *steps = steps.checked_sub(1)?;
            if peer == split {
                leading += 1;
            } else if seen.contains(&peer) {
                if between.insert(peer) {
                    open.push((peer, 0));
                }
            } else if element != meeting_element {
                // Packets also come from elsewhere.
                return None;
            }
        }
    }
    let is_plain = |element: &usize| {
        !is_in_loop(*element)
            && is_pushed_to(hookup, *element)
            && info(*element).is_some_and(|class| passes_on(class) && !class.task && !class.storage)
    };
    (leading > 1 && !is_in_loop(meeting_element) && between.iter().all(is_plain))
        .then_some(Ways { meeting: meetings, between })
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

/// Whether packets are pushed to all inputs of an element, of which there is at least one.
fn is_pushed_to(hookup: &Hookup, element: usize) -> bool {
    hookup
        .inputs
        .get(element)
        .is_some_and(|inputs| !inputs.is_empty() && inputs.iter().all(|input| input.push))
}
