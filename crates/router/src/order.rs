//! Packet order: which outputs may fill separate batches, and which elements must process packets one by one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::hookup::Hookup;

/// The analysis needs one bit per pair of elements. Above this number of elements it is skipped and order is kept
/// everywhere, so that a configuration of a million elements can't exhaust memory.
const MAX_ELEMENTS: usize = 16_384;

/// The constraints on delivery.
pub(crate) struct Order {
    /// For each element the group of each output; order is preserved within a group. If empty, all are in one group.
    pub(crate) groups: Vec<Vec<u16>>,
    /// Whether an element processes packets one by one, because they may return to an order-sensitive element.
    pub(crate) serial: Vec<bool>,
}

/// Analyses the push connections.
pub(crate) fn analyse(hookup: &Hookup) -> Order {
    let count = hookup.classes.len();
    let next = |element: usize| {
        let ends = hookup.outputs.get(element).into_iter().flatten();
        ends.filter(|end| end.push).flat_map(|end| end.peers.iter().map(|peer| peer.0))
    };
    let components = components(count, |element| next(element).collect());
    let sensitive =
        |element: usize| !hookup.classes.get(element).is_some_and(|class| class.info.order_insensitive);
    let serial = serial(&components, count, sensitive, |element| next(element).any(|to| to == element));
    if count > MAX_ELEMENTS {
        return Order { groups: alloc::vec![Vec::new(); count], serial };
    }
    let touched = |element: usize| touched(hookup, element, sensitive(element));
    let reach = reach(&components, count, touched, next);
    let groups = (0..count).map(|element| groups(hookup, element, &reach)).collect();
    Order { groups, serial }
}

/// Strongly connected components in reverse topological order (Tarjan's algorithm, without recursion).
fn components(count: usize, next: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = alloc::vec![NEW; count];
    let mut low = alloc::vec![0; count];
    let mut on_stack = alloc::vec![false; count];
    let (mut stack, mut found, mut counter) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        let mut calls: Vec<(usize, Vec<usize>, usize)> = Vec::new();
        let mut enter = Some(root);
        loop {
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

fn serial(
    components: &[Vec<usize>],
    count: usize,
    sensitive: impl Fn(usize) -> bool,
    loops: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut serial = alloc::vec![false; count];
    for component in components {
        let cyclic = component.len() > 1 || component.iter().any(|element| loops(*element));
        if cyclic && component.iter().any(|element| sensitive(*element)) {
            for &element in component {
                serial[element] = true;
            }
        }
    }
    serial
}

/// The order-sensitive elements that a packet affects at an element: the element itself, and those that it reads.
fn touched(hookup: &Hookup, element: usize, sensitive: bool) -> Vec<usize> {
    let reads = hookup.classes.get(element).map_or(&[][..], |class| class.info.reads);
    let mut touched = if sensitive { Vec::from([element]) } else { Vec::new() };
    if !reads.is_empty() {
        let classes = hookup.classes.iter().enumerate();
        touched.extend(classes.filter(|(_, class)| reads.contains(&class.info.name)).map(|(other, _)| other));
    }
    touched
}

/// For each element the set of order-sensitive elements that a packet pushed into it may reach, including itself.
fn reach<I: Iterator<Item = usize>>(
    components: &[Vec<usize>],
    count: usize,
    touched: impl Fn(usize) -> Vec<usize>,
    next: impl Fn(usize) -> I,
) -> Vec<Vec<u64>> {
    let words = count.div_ceil(64);
    let mut reach: Vec<Vec<u64>> = alloc::vec![Vec::new(); count];
    for component in components {
        let mut set = alloc::vec![0u64; words];
        for &element in component {
            for element in touched(element) {
                set[element / 64] |= 1 << (element % 64);
            }
            for to in next(element) {
                for (word, other) in set.iter_mut().zip(&reach[to]) {
                    *word |= other;
                }
            }
        }
        for &element in component {
            reach[element].clone_from(&set);
        }
    }
    reach
}

/// Outputs that reach a common order-sensitive element share a group.
fn groups(hookup: &Hookup, element: usize, reach: &[Vec<u64>]) -> Vec<u16> {
    let Some(ends) = hookup.outputs.get(element).filter(|ends| ends.len() > 1) else {
        return Vec::new();
    };
    let empty = Vec::new();
    let sets: Vec<&Vec<u64>> = ends
        .iter()
        .map(|end| {
            end.peers.first().filter(|_| end.push).and_then(|peer| reach.get(peer.0)).unwrap_or(&empty)
        })
        .collect();
    let mut group: Vec<usize> = (0..ends.len()).collect();
    let mut owner: BTreeMap<usize, usize> = BTreeMap::new();
    for (port, set) in sets.iter().enumerate() {
        for (word, bits) in set.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                let reached = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let first = *owner.entry(reached).or_insert(port);
                let (one, other) = (root(&group, first), root(&group, port));
                group[one.max(other)] = one.min(other);
            }
        }
    }
    (0..ends.len()).map(|port| root(&group, port) as u16).collect()
}

fn root(group: &[usize], mut port: usize) -> usize {
    while group[port] != port {
        port = group[port];
    }
    port
}
