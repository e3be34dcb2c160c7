//! Packet order: which outputs may fill separate batches, and which elements must process packets one by one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use click_lang::steps::{free_many, pause_every};
use element::Class;

use crate::hookup::Hookup;
use crate::step_sizes::{CONNECTIONS_A_STEP, ELEMENTS_A_STEP};

/// The maximum number of steps of the analysis, each of which reads 64 bits or one set bit. The analysis has one bit per
/// pair of elements, and reads a row of bits for each connection. Order is kept everywhere where it can't be finished.
/// Stops: a configuration of a hundred thousand elements, and one element with many outputs before a long chain.
const MAX_STEPS: usize = 1 << 22;

/// The constraints on delivery.
pub(crate) struct Order {
    /// For each element the group of each output; order is preserved within a group. If empty, all are in one group.
    pub(crate) groups: Vec<Vec<u16>>,
    /// The number of the loop that an element is in, or `NO_LOOP`. Loops that meet are one.
    pub(crate) loops: Vec<u32>,
    /// Whether an element processes packets one by one, because it depends on order and packets may return to it.
    pub(crate) serial: Vec<bool>,
    /// All elements, each behind those that push to it except in loops. Empty if the analysis can't be finished.
    pub(crate) upstream_first: Vec<usize>,
    /// For each element the set of order-sensitive elements that a packet pushed into it may affect. Empty with `upstream_first`.
    pub(crate) reach: Vec<Vec<u64>>,
}

/// An element is in no loop.
pub(crate) const NO_LOOP: u32 = u32::MAX;

/// Analyses the push connections.
pub(crate) async fn analyse(hookup: &Hookup) -> Order {
    let count = hookup.classes.len();
    let next = |element: usize| {
        let ends = hookup.outputs.get(element).into_iter().flatten();
        ends.filter(|end| end.push).flat_map(|end| end.peers.iter().map(|peer| peer.0))
    };
    let components = components(count, |element| next(element).collect()).await;
    let sensitive =
        |element: usize| !hookup.classes.get(element).is_some_and(|class| class.info.order_insensitive);
    let loops = loops(&components, count, |element| next(element).any(|to| to == element)).await;
    // The others see no difference between a packet that returns before those behind it and one that returns after them.
    let needs_order = |element: usize| {
        let info = hookup.classes.get(element).map(|class| class.info);
        info.is_none_or(|info| !info.puts_back && (!info.order_insensitive || !info.reads.is_empty()))
    };
    let serial = (0..count).map(|element| loops[element] != NO_LOOP && needs_order(element)).collect();
    let words = count.div_ceil(64);
    let mut connections = 0;
    for element in 0..count {
        pause_every(CONNECTIONS_A_STEP, element).await;
        connections += next(element).count();
    }
    let Some(mut steps) = MAX_STEPS.checked_sub(words.saturating_mul(2 * count + connections)) else {
        let groups = alloc::vec![Vec::new(); count];
        return Order { groups, loops, serial, upstream_first: Vec::new(), reach: Vec::new() };
    };
    let reads = read_sets(hookup, words).await;
    let reach = reach(hookup, &components, words, (sensitive, &reads), next).await;
    let mut all_groups = Vec::with_capacity(count);
    for element in 0..count {
        pause_every(ELEMENTS_A_STEP, element).await;
        all_groups.push(groups(hookup, element, &reach, &mut steps).await);
    }
    let upstream_first = components.iter().rev().flatten().copied().collect();
    free_many(components, ELEMENTS_A_STEP).await;
    Order { groups: all_groups, loops, serial, upstream_first, reach }
}

/// The elements that packets pushed by `from` reach; `None` after too many visits.
pub(crate) async fn reached(hookup: &Hookup, from: usize, visits: &mut usize) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    let mut open = Vec::from([from]);
    while let Some(element) = open.pop() {
        for output in hookup.outputs.get(element)?.iter().filter(|output| output.push) {
            pause_every(ELEMENTS_A_STEP, *visits).await;
            *visits = visits.checked_sub(1)?;
            open.extend(output.peers.iter().map(|(peer, _)| *peer).filter(|peer| found.insert(*peer)));
        }
    }
    Some(found)
}

/// Strongly connected components in reverse topological order (Tarjan's algorithm, without recursion).
async fn components(count: usize, next: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = alloc::vec![NEW; count];
    let mut low = alloc::vec![0; count];
    let mut on_stack = alloc::vec![false; count];
    let (mut stack, mut found, mut counter, mut visits) = (Vec::new(), Vec::new(), 0, 0);
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        let mut calls: Vec<(usize, Vec<usize>, usize)> = Vec::new();
        let mut enter = Some(root);
        loop {
            visits += 1;
            pause_every(ELEMENTS_A_STEP, visits).await;
            if let Some(element) = enter.take() {
                index[element] = counter;
                low[element] = counter;
                counter += 1;
                stack.push(element);
                on_stack[element] = true;
                calls.push((element, next(element), 0));
            }
            let Some((element, successors, at)) = calls.last_mut() else { break };
            let element = *element;
            if let Some(&successor) = successors.get(*at) {
                *at += 1;
                if index[successor] == NEW {
                    enter = Some(successor);
                } else if on_stack[successor] {
                    low[element] = low[element].min(index[successor]);
                }
                continue;
            }
            calls.pop();
            if let Some((parent, ..)) = calls.last() {
                low[*parent] = low[*parent].min(low[element]);
            }
            if low[element] == index[element] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == element {
                        break;
                    }
                }
                found.push(component);
            }
        }
    }
    found
}

/// The loops: elements that packets may return to.
async fn loops(components: &[Vec<usize>], count: usize, is_own_next: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut loops = alloc::vec![NO_LOOP; count];
    for (number, component) in components.iter().enumerate() {
        pause_every(CONNECTIONS_A_STEP, number).await;
        if component.len() > 1 || component.iter().any(|element| is_own_next(*element)) {
            component.iter().for_each(|element| loops[*element] = number as u32);
        }
    }
    loops
}

/// For each class that reads elements of other classes: the set of these elements.
async fn read_sets(hookup: &Hookup, words: usize) -> BTreeMap<&'static str, Vec<u64>> {
    let mut by_class: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (element, class) in hookup.classes.iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, element).await;
        by_class.entry(class.info.name).or_default().push(element);
    }
    let classes = by_class.values().filter_map(|elements| hookup.classes.get(*elements.first()?));
    let reading = classes.filter(|class| !class.info.reads.is_empty());
    let set = |class: &&'static Class| {
        let mut set = alloc::vec![0; words];
        let read = class.info.reads.iter().filter_map(|name| by_class.get(name));
        read.flatten().for_each(|element| insert(&mut set, *element));
        (class.info.name, set)
    };
    sorting::collect(reading.map(set))
}

fn insert(set: &mut [u64], element: usize) {
    set[element / 64] |= 1 << (element % 64);
}

fn merge(set: &mut [u64], other: &[u64]) {
    set.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
}

/// For each element the set of order-sensitive elements that a packet pushed into it may affect: the element itself,
/// those that it reads, and the same for all elements that the packet reaches.
async fn reach<I: Iterator<Item = usize>>(
    hookup: &Hookup,
    components: &[Vec<usize>],
    words: usize,
    (sensitive, reads): (impl Fn(usize) -> bool, &BTreeMap<&'static str, Vec<u64>>),
    next: impl Fn(usize) -> I,
) -> Vec<Vec<u64>> {
    let mut reach: Vec<Vec<u64>> = alloc::vec![Vec::new(); hookup.classes.len()];
    for (done, component) in components.iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, done).await;
        let mut set = alloc::vec![0u64; words];
        for &element in component {
            if sensitive(element) {
                insert(&mut set, element);
            }
            let class = hookup.classes.get(element);
            if let Some(read) = class.and_then(|class| reads.get(class.info.name)) {
                merge(&mut set, read);
            }
            for (port, to) in next(element).enumerate() {
                pause_every(ELEMENTS_A_STEP, port).await;
                merge(&mut set, &reach[to]);
            }
        }
        for &element in component {
            reach[element].clone_from(&set);
        }
    }
    reach
}

/// Outputs that reach a common order-sensitive element share a group. Empty, which is one group, if that takes too many
/// steps.
async fn groups(hookup: &Hookup, element: usize, reach: &[Vec<u64>], steps: &mut usize) -> Vec<u16> {
    let Some(ends) = hookup.outputs.get(element).filter(|ends| ends.len() > 1) else {
        return Vec::new();
    };
    let mut group: Vec<usize> = (0..ends.len()).collect();
    let mut owner: BTreeMap<usize, usize> = BTreeMap::new();
    // The first output that leads to each element.
    let mut leading: BTreeMap<usize, usize> = BTreeMap::new();
    for (port, end) in ends.iter().enumerate() {
        pause_every(ELEMENTS_A_STEP, port).await;
        let Some(&(peer, _)) = end.peers.first().filter(|_| end.push) else { continue };
        let set = reach.get(peer).map_or(&[][..], Vec::as_slice);
        let first = *leading.entry(peer).or_insert(port);
        if first != port {
            if set.iter().any(|bits| *bits != 0) {
                join(&mut group, first, port);
            }
            continue;
        }
        for (word, bits) in set.iter().enumerate() {
            let mut bits = *bits;
            let Some(left) = steps.checked_sub(1 + bits.count_ones() as usize) else {
                return Vec::new();
            };
            *steps = left;
            while bits != 0 {
                let reached = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let first = *owner.entry(reached).or_insert(port);
                join(&mut group, first, port);
            }
        }
    }
    (0..ends.len()).map(|port| root(&mut group, port) as u16).collect()
}

/// Puts two outputs into one group, which the lower root names.
fn join(group: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(group, one), root(group, other));
    group[one.max(other)] = one.min(other);
}

/// The output that names a group. Shortens the path to it.
fn root(group: &mut [usize], mut port: usize) -> usize {
    while group[port] != port {
        group[port] = group[group[port]];
        port = group[port];
    }
    port
}
