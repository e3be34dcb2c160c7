//! Delivery of batches between elements.

use alloc::vec::Vec;

use element::{Context, Fate, Outputs, Reason};
use packet::Batch;

use crate::connection::{Arrival, Connection};
use crate::node::Node;
use crate::state::RouterState;

/// The maximum number of deliveries per turn. It ends a loop of elements that drops nothing.
const MAX_DELIVERIES: usize = 1 << 22;

impl RouterState {
    /// Delivers what a call has emitted, and everything that results from it: depth first, with an explicit stack instead of
    /// recursion, so that the depth of a configuration is not limited. `outputs` is that stack.
    pub(crate) fn deliver(&self, outputs: &mut Outputs) {
        outputs.end_call();
        let mut left = MAX_DELIVERIES;
        while let Some((number, mut batch)) = outputs.take_next() {
            let Some(connection) = self.connections.get(number as usize) else { continue };
            let most = if connection.arrival == Arrival::OneByOne { 1 } else { self.batch() };
            if batch.len() > most {
                batch = outputs.divide(number, batch, most);
            }
            left -= 1;
            if left == 0 {
                self.drop_undelivered(connection, batch, outputs);
                break;
            }
            self.push(connection, batch, outputs);
            if let Some(rest) = outputs.take_rest() {
                connection.take_back(rest.len());
                let node = self.nodes.get(connection.element as usize).filter(|_| connection.stamps);
                let split = node.and_then(|node| node.element.split());
                outputs.deliver_later(number, rest, split.map(|split| split.number));
            }
            self.write_deferred();
            outputs.end_call();
        }
    }

    /// Pushes a batch to the element at the end of a connection.
    #[inline]
    fn push(&self, connection: &Connection, mut batch: Batch, outputs: &mut Outputs) {
        let element = connection.element as usize;
        let Some(node) = self.nodes.get(element) else { return };
        match node.object.try_borrow_mut().as_deref_mut() {
            Ok(Some(object)) if connection.arrival != Arrival::Never => {
                connection.add(batch.len());
                // Their stamps are read before the packets are stamped again.
                let mixed = connection.is_mixed.then(|| self.inputs_of(&batch));
                if connection.stamps
                    && let Some(split) = node.element.split()
                {
                    outputs.stamp(&split, &mut batch);
                }
                self.running.set(element);
                self.current_batch.set(batch.trace());
                let mut cx = Context::new(self, &self.resources, &node.element, outputs);
                match mixed {
                    None => object.push(&mut cx, connection.input.into(), batch),
                    Some(inputs) => {
                        object.push_mixed(&mut cx, &inputs, batch);
                        self.mixed_inputs.set(inputs);
                    }
                }
            }
            // An upstream element pushed to an element that is pulling from it: the call has not returned yet.
            _ => self.drop_batch(connection, Reason::REENTERED, batch, outputs),
        }
    }

    /// The input of each packet in a batch that was gathered before several inputs of an element.
    fn inputs_of(&self, batch: &Batch) -> Vec<u16> {
        let mut inputs = self.mixed_inputs.take();
        inputs.clear();
        inputs.extend(batch.as_slice().iter().map(|packet| packet.stamp() as u16));
        inputs
    }

    /// Drops a batch at the end of a connection.
    #[cold]
    fn drop_batch(&self, connection: &Connection, reason: Reason, batch: Batch, outputs: &mut Outputs) {
        let Some(node) = self.nodes.get(connection.element as usize) else { return };
        if connection.arrival == Arrival::Never {
            node.element.count_drops(Reason::NO_OUTPUT, batch.len() as u64);
        } else {
            connection.add(batch.len());
            node.element.count_drops(reason, batch.len() as u64);
        }
        outputs.recycle(batch);
    }

    /// Drops a batch and those that are still to be delivered when an endless loop is cut.
    #[cold]
    fn drop_undelivered(&self, connection: &Connection, batch: Batch, outputs: &mut Outputs) {
        self.drop_batch(connection, Reason::ENDLESS_LOOP, batch, outputs);
        while let Some((number, batch)) = outputs.take_next() {
            if let Some(connection) = self.connections.get(number as usize) {
                self.drop_batch(connection, Reason::ENDLESS_LOOP, batch, outputs);
            }
        }
    }

    /// Whether no pull can be in vain because a packet ends between the input and the queues that feed it, so that one pull brings
    /// the same as several.
    pub(crate) fn passes_pulls_whole(&self, element: usize, port: usize) -> bool {
        let Some(input) = self.input(element, port) else { return false };
        let known = input.passes_whole.get();
        let result = known.unwrap_or_else(|| self.finds_only_queues(element, port));
        input.passes_whole.set(Some(result));
        result
    }

    /// Whether a search upstream of a pull input finds queues, and before them only elements that pass on all that they pull, or pull
    /// again for what they drop.
    #[cold]
    fn finds_only_queues(&self, element: usize, port: usize) -> bool {
        const ENDS: [Fate; 5] = [Fate::Delivered, Fate::Discarded, Fate::Consumed, Fate::Merged, Fate::Lost];
        let search = self.searches.get() + 1;
        self.searches.set(search);
        let mut open = Vec::from([(element, port)]);
        while let Some((element, port)) = open.pop() {
            let Some(input) = self.input(element, port).filter(|input| !input.links.push) else {
                return false;
            };
            if input.searched.replace(search) == search {
                continue;
            }
            for &(peer, _) in &input.links.peers {
                let Some(node) = self.nodes.get(peer) else { return false };
                let info = node.class.info;
                if info.storage {
                    continue;
                }
                let has = |fates: &[Fate]| fates.iter().any(|fate| info.fates.contains(fate));
                // A copy may take another way, but the packet itself stays on this one.
                let has_one_way = node.outputs.len() == 1 || has(&[Fate::Copied]);
                let passes_all = has_one_way && (info.pulls_again || info.drops.is_empty() && !has(&ENDS));
                // An element without inputs sends nothing, unless it makes packets.
                let is_silent = node.inputs.is_empty() && !has(&[Fate::Received, Fate::Made]);
                if !is_silent && (node.inputs.is_empty() || !passes_all) {
                    return false;
                }
                open.extend((0..node.inputs.len()).map(|port| (peer, port)));
            }
        }
        true
    }

    /// Pulls at most `most` packets from input `port` of `element`.
    pub(crate) fn pull_from(&self, element: usize, port: usize, most: usize, into: &mut Batch) {
        let Some(input) = self.input(element, port) else { return };
        let Some((peer, peer_port)) = input.peer.filter(|_| !input.links.push) else { return };
        let Some(node) = self.nodes.get(peer) else { return };
        let Some(output) = node.outputs.get(peer_port) else { return };
        let before = into.len();
        match output.forwards_to.get() {
            None => self.call_pull(peer, node, (peer_port, most), into),
            // Outputs that forward to each other in a cycle have no packets.
            Some(_) if output.forwarding.get() => {}
            Some(through) => {
                output.forwarding.set(true);
                self.pull_from(peer, through, most, into);
                output.forwarding.set(false);
            }
        }
        let count = into.len() - before;
        input.add(count);
        output.add(count);
    }

    /// Pulls packets one by one from input `port` of `element`, until there is none or `goes_on` returns false. The element that
    /// they come from is looked up and borrowed once for as many as possible.
    pub(crate) fn pull_while(
        &self,
        element: usize,
        port: usize,
        into: &mut Batch,
        goes_on: &mut dyn FnMut(&mut Batch) -> bool,
    ) {
        let Some(input) = self.input(element, port) else { return };
        let Some((peer, peer_port)) = input.peer.filter(|_| !input.links.push) else { return };
        let Some(node) = self.nodes.get(peer) else { return };
        let Some(output) = node.outputs.get(peer_port) else { return };
        loop {
            let before = into.len();
            if output.forwards_to.get().is_some() {
                self.pull_from(element, port, 1, into);
                if into.len() == before || !goes_on(into) {
                    return;
                }
                continue;
            }
            let Ok(mut guard) = node.object.try_borrow_mut() else { return };
            let Some(object) = guard.as_mut() else { return };
            let mut outputs = self.take_outputs();
            let caller = self.running.replace(peer);
            let start = into.len();
            let (last, causes) = loop {
                let before = into.len();
                let mut cx = Context::new(self, &self.resources, &node.element, &mut outputs);
                object.pull(&mut cx, peer_port, 1, into);
                let causes = !outputs.is_empty() || self.resources.deferred.has_writes();
                if into.len() == before || causes || !goes_on(into) {
                    break (into.len() - before, causes);
                }
            };
            drop(guard);
            let count = |packets| {
                input.add(packets);
                output.add(packets);
            };
            // What the last pull has caused comes before that is counted, as after a single pull.
            count(into.len() - start - last);
            self.write_deferred();
            if !outputs.is_empty() {
                self.deliver(&mut outputs);
            }
            self.running.set(caller);
            self.outputs.borrow_mut().push(outputs);
            count(last);
            if last == 0 || !causes || !goes_on(into) {
                return;
            }
        }
    }

    /// Pulls at most `most` packets from output `port` of an element, unless it is already being called. This is `call` in fewer
    /// instructions, because many elements pull packets one by one.
    #[inline]
    fn call_pull(&self, element: usize, node: &Node, (port, most): (usize, usize), into: &mut Batch) {
        let Ok(mut guard) = node.object.try_borrow_mut() else { return };
        let Some(object) = guard.as_mut() else { return };
        let mut outputs = self.take_outputs();
        let caller = self.running.replace(element);
        object.pull(&mut Context::new(self, &self.resources, &node.element, &mut outputs), port, most, into);
        drop(guard);
        self.write_deferred();
        if !outputs.is_empty() {
            self.deliver(&mut outputs);
        }
        self.running.set(caller);
        self.outputs.borrow_mut().push(outputs);
    }
}
