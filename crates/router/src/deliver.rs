//! Delivery of batches between elements.

use element::{Context, Outputs, Reason};
use packet::Batch;

use crate::state::{Delivery, RouterState};

/// The maximum number of deliveries per turn. It ends a loop of elements that drops nothing.
const MAX_DELIVERIES: usize = 1 << 22;

impl RouterState {
    /// Delivers what `from` has emitted, and everything that results from it: depth first, with an explicit stack
    /// instead of recursion, so that the depth of a configuration is not limited.
    pub(crate) fn deliver(&self, from: usize, outputs: &mut Outputs) {
        let mut stack = self.stacks.borrow_mut().pop().unwrap_or_default();
        self.route(from, outputs, &mut stack);
        let mut left = MAX_DELIVERIES;
        while let Some(mut delivery) = stack.pop() {
            let Some(node) = self.nodes.get(delivery.element) else { continue };
            let most = if node.serial { 1 } else { self.options.batch };
            if delivery.batch.len() > most {
                let mut first = outputs.batch();
                delivery.batch.drain_front(most).for_each(|packet| first.push(packet));
                let Delivery { element, port, .. } = delivery;
                stack.push(delivery);
                delivery = Delivery { element, port, batch: first };
            }
            left -= 1;
            let count = delivery.batch.len();
            if let Some(port) = node.inputs.get(delivery.port) {
                port.add(count);
            }
            if left == 0 {
                node.element.count_drops(Reason::ENDLESS_LOOP, count as u64);
                self.drop_undelivered(&mut stack, outputs);
                break;
            }
            match node.object.try_borrow_mut().as_deref_mut() {
                Ok(Some(object)) => {
                    self.running.set(delivery.element);
                    self.current_batch.set(delivery.batch.trace());
                    let mut cx = Context::new(self, &self.resources, &node.element, outputs);
                    object.push(&mut cx, delivery.port, delivery.batch);
                }
                // An upstream element pushed to an element that is pulling from it: the call has not returned yet.
                _ => node.element.count_drops(Reason::REENTERED, count as u64),
            }
            self.write_deferred();
            if !outputs.is_empty() {
                self.route(delivery.element, outputs, &mut stack);
            }
        }
        self.stacks.borrow_mut().push(stack);
    }

    /// Drops the batches that are still to be delivered when an endless loop is cut.
    #[cold]
    fn drop_undelivered(&self, stack: &mut alloc::vec::Vec<Delivery>, outputs: &mut Outputs) {
        for Delivery { element, port, batch } in stack.drain(..) {
            if let Some(node) = self.nodes.get(element) {
                if let Some(port) = node.inputs.get(port) {
                    port.add(batch.len());
                }
                node.element.count_drops(Reason::ENDLESS_LOOP, batch.len() as u64);
            }
            outputs.recycle(batch);
        }
    }

    /// Turns the emitted batches of an element into deliveries.
    #[inline]
    fn route(&self, from: usize, outputs: &mut Outputs, stack: &mut alloc::vec::Vec<Delivery>) {
        let Some(node) = self.nodes.get(from) else { return };
        outputs.take_reversed(|port, batch| {
            match node.outputs.get(port).map(|port| (port, port.peer.filter(|_| port.links.push))) {
                Some((port, Some((element, to)))) => {
                    port.add(batch.len());
                    stack.push(Delivery { element, port: to, batch });
                }
                _ => node.element.count_drops(Reason::NO_OUTPUT, batch.len() as u64),
            }
        });
    }

    /// Pulls at most `most` packets from input `port` of `element`.
    pub(crate) fn pull_from(&self, element: usize, port: usize, most: usize, into: &mut Batch) {
        let Some(input) = self.input(element, port) else { return };
        let Some((peer, peer_port)) = input.peer.filter(|_| !input.links.push) else { return };
        let Some(output) = self.output(peer, peer_port) else { return };
        let before = into.len();
        match output.forwards_to.get() {
            None => drop(self.call(peer, |object, cx| object.pull(cx, peer_port, most, into))),
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
}
