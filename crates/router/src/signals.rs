//! Search for notifiers along the packet paths.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::{Direction, Notifies, Signal};

use crate::hookup::PortRef;
use crate::node::{Notifier, Port};
use crate::ports::{self, FlowCode};
use crate::state::RouterState;

impl RouterState {
    /// Follows the pull path upstream of an input, or the push path downstream of an output, to the nearest notifiers,
    /// and adds `element` to their listeners.
    pub(crate) fn find_signal(&self, element: usize, port: usize, direction: Direction) -> Signal {
        let (notifiers, busy) = self.notifiers(element, port, direction);
        let notifiers = notifiers.into_iter().filter_map(|found| self.notifier(found, direction));
        let cells = notifiers.map(|notifier| {
            let mut listeners = notifier.listeners.borrow_mut();
            if !listeners.contains(&element) {
                listeners.push(element);
            }
            notifier.cell.clone()
        });
        Signal::new(cells.collect(), busy)
    }

    /// The notifiers that `find_signal` finds: their bits in 32-bit words, numbered in element order, then which of
    /// these are set.
    pub(crate) fn describe_signal(&self, element: usize, port: usize, direction: Direction) -> String {
        let (found, busy) = self.notifiers(element, port, direction);
        if busy {
            return "busy*".into();
        }
        let name = if direction == Direction::Empty { "empty" } else { "full" };
        let all = (0..self.nodes.len()).filter_map(|at| Some((at, self.notifier(at, direction)?)));
        let mut words: Vec<(usize, u32, u32)> = Vec::new();
        for (number, (_, notifier)) in all.enumerate().filter(|(_, (at, _))| found.contains(at)) {
            let bit = 1 << (number % 32);
            let set = if notifier.cell.is_active() { bit } else { 0 };
            match words.last_mut().filter(|(word, ..)| *word == number / 32) {
                Some((_, mask, value)) => (*mask, *value) = (*mask | bit, *value | set),
                None => words.push((number / 32, bit, set)),
            }
        }
        if words.is_empty() {
            return "idle".into();
        }
        let words = words.into_iter().map(|(word, mask, value)| {
            let star = if value == 0 { "" } else { "*" };
            format!("{name}.{word}/{mask:x}:{value:x}{star}")
        });
        words.collect::<Vec<_>>().join("+")
    }

    /// The element's notifier, if it gives that signal.
    fn notifier(&self, element: usize, direction: Direction) -> Option<&Notifier> {
        let node = self.nodes.get(element)?;
        match (direction, node.element.class.notifies) {
            (Direction::Empty, Notifies::Empty | Notifies::EmptyAndFull) => Some(&node.empty),
            (Direction::Full, Notifies::Full | Notifies::EmptyAndFull) => Some(&node.full),
            _ => None,
        }
    }

    /// The elements with the nearest notifiers, and whether a path has none.
    fn notifiers(&self, element: usize, port: usize, direction: Direction) -> (Vec<usize>, bool) {
        let (mut found, mut busy) = (Vec::new(), false);
        let search = self.searches.get() + 1;
        self.searches.set(search);
        let mut queue = Vec::from([(element, port)]);
        while let Some((at, port)) = queue.pop() {
            let Some(port) = self.moving_port(at, port, direction) else { continue };
            if port.searched.replace(search) == search {
                continue;
            }
            for &(peer, peer_port) in &port.links.peers {
                if self.notifier(peer, direction).is_some() {
                    found.push(peer);
                    continue;
                }
                if let Some(last) = self.relays.last(peer, direction) {
                    queue.push((last, 0));
                    continue;
                }
                let known = queue.len();
                self.add_onward((peer, peer_port), direction, &mut queue);
                busy |= queue.len() == known && !self.is_unfed(peer, direction);
            }
        }
        (found, busy)
    }

    /// Whether an element has no connected inputs although its class allows some, like a scheduler. It produces no
    /// packets itself, so it can be ignored.
    fn is_unfed(&self, element: usize, direction: Direction) -> bool {
        let node = self.nodes.get(element).filter(|node| node.inputs.is_empty());
        direction == Direction::Empty
            && node.is_some_and(|node| ports::port_counts(node.element.class.ports, (1, 1)).0 > 0)
    }

    /// An input (`Empty`) or output (`Full`), if this side moves the packets.
    fn moving_port(&self, element: usize, port: usize, direction: Direction) -> Option<&Port> {
        let node = self.nodes.get(element)?;
        match direction {
            Direction::Empty => node.inputs.get(port).filter(|port| !port.links.push),
            Direction::Full => node.outputs.get(port).filter(|port| port.links.push),
        }
    }

    /// Adds the ports on the far side of an element where packets come from, or go to, in the same mode.
    fn add_onward(&self, (element, port): PortRef, direction: Direction, queue: &mut Vec<PortRef>) {
        let Some(node) = self.nodes.get(element) else { return };
        // In most classes, packets may leave at any output.
        let flow = node.element.class.flow;
        let flow = (flow != "x/x").then(|| FlowCode::parse(flow));
        let reaches = |input, output| flow.as_ref().is_none_or(|flow| flow.connects(input, output));
        match direction {
            Direction::Empty => {
                let inputs = node.inputs.iter().enumerate().filter(|(_, input)| !input.links.push);
                let reaching = inputs.filter(|(input, _)| reaches(*input, port));
                queue.extend(reaching.map(|(input, _)| (element, input)));
            }
            Direction::Full => {
                let outputs = node.outputs.iter().enumerate().filter(|(_, output)| output.links.push);
                let reached = outputs.filter(|(output, _)| reaches(port, *output));
                queue.extend(reached.map(|(output, _)| (element, output)));
            }
        }
    }
}
