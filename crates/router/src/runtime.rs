//! The router as elements see it: the implementation of `Runtime`.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::Any;

use element::{
    Descriptor, Direction, ElementState, Elements, HandlerError, HandlerInfo, HandlerTarget, Handlers,
    Outputs, Ports, Scheduler, Signal, Signals,
};
use packet::{Batch, Timestamp};

use crate::state::RouterState;

impl Ports for RouterState {
    fn is_push_input(&self, element: usize, port: usize) -> bool {
        self.input(element, port).is_some_and(|port| port.links.push)
    }

    fn is_push_output(&self, element: usize, port: usize) -> bool {
        self.output(element, port).is_some_and(|port| port.links.push)
    }

    fn passes_pulls_whole(&self, element: usize, port: usize) -> bool {
        RouterState::passes_pulls_whole(self, element, port)
    }

    fn gets_each_packet_once(&self, element: usize) -> bool {
        RouterState::gets_each_packet_once(self, element)
    }

    fn pull(&self, element: usize, port: usize, most: usize, into: &mut Batch) {
        if most <= self.batch() {
            return self.pull_from(element, port, most, into);
        }
        // One batch at a time, so that the output of upstream filters stays within the limit.
        let mut left = most;
        while left > 0 {
            let ask = left.min(self.batch());
            let before = into.len();
            self.pull_from(element, port, ask, into);
            if into.len() - before < ask {
                return;
            }
            left -= ask;
        }
    }

    fn pull_while(
        &self,
        element: usize,
        port: usize,
        into: &mut Batch,
        goes_on: &mut dyn FnMut(&mut Batch) -> bool,
    ) {
        RouterState::pull_while(self, element, port, into, goes_on);
    }

    fn deliver(&self, element: usize, outputs: &mut Outputs) {
        self.write_deferred();
        RouterState::deliver(self, outputs);
        outputs.set_limit(self.batch());
        self.running.set(element);
    }

    fn forward_pulls(&self, element: usize, output: usize, input: Option<usize>) {
        if let Some(port) = self.output(element, output) {
            port.forwards_to.set(input);
        }
    }
}

impl Scheduler for RouterState {
    fn schedule(&self, element: usize) {
        self.schedule.borrow_mut().schedule(element);
    }

    fn unschedule(&self, element: usize) {
        self.schedule.borrow_mut().unschedule(element);
    }

    fn is_scheduled(&self, element: usize) -> bool {
        self.schedule.borrow().is_scheduled(element)
    }

    fn tickets(&self, element: usize) -> u32 {
        self.schedule.borrow().tickets(element)
    }

    fn set_tickets(&self, element: usize, tickets: u32) {
        self.schedule.borrow_mut().set_tickets(element, tickets);
    }

    fn take_turns(&self, element: usize) -> usize {
        self.take_own_turns(element)
    }

    fn take_paced_turns(&self, element: usize) -> usize {
        RouterState::take_paced_turns(self, element)
    }

    fn more_turns(&self, element: usize, outputs: &mut Outputs) -> usize {
        RouterState::more_turns(self, element, outputs)
    }

    fn set_timer(&self, element: usize, timer: usize, at: Timestamp) {
        self.timers.borrow_mut().set(element, timer, at);
    }

    fn start_timer(&self, element: usize, timer: usize, at: Timestamp) {
        self.timers.borrow_mut().start(element, timer, at);
    }

    fn clear_timer(&self, element: usize, timer: usize) {
        self.timers.borrow_mut().clear(element, timer);
    }

    fn timer(&self, element: usize, timer: usize) -> Option<Timestamp> {
        self.timers.borrow().get(element, timer)
    }

    fn watch(&self, element: usize, descriptor: Descriptor, read: bool, write: bool) {
        let mut watched = self.watched.borrow_mut();
        let watch = watched.entry(descriptor).or_default();
        for (wanted, list) in [(read, &mut watch.read), (write, &mut watch.write)] {
            list.retain(|other| *other != element);
            if wanted {
                list.push(element);
            }
        }
        if watch.read.is_empty() && watch.write.is_empty() {
            watched.remove(&descriptor);
        }
    }
}

impl Signals for RouterState {
    fn set_signal(&self, element: usize, direction: Direction, active: bool) {
        let Some(node) = self.nodes.get(element) else { return };
        let notifier = if direction == Direction::Empty { &node.empty } else { &node.full };
        if notifier.cell.set(active) {
            for &listener in notifier.listeners.borrow().iter() {
                if self.nodes.get(listener).is_some_and(|node| node.element.class.task) {
                    self.schedule(listener);
                } else {
                    self.resources.deferred.wake(listener);
                }
            }
        }
    }

    fn signal(&self, element: usize, port: usize, direction: Direction) -> Signal {
        self.find_signal(element, port, direction)
    }

    fn describe_signal(&self, element: usize, port: usize, direction: Direction) -> String {
        RouterState::describe_signal(self, element, port, direction)
    }
}

impl Handlers for RouterState {
    fn read_handler(&self, from: usize, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.read_path(Some(from), path, parameter)
    }

    fn write_handler(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError> {
        self.write_path(Some(from), path, value)
    }

    fn begin_write(
        &self,
        from: usize,
        path: &str,
        value: String,
    ) -> Result<Option<HandlerTarget>, HandlerError> {
        self.begin_write_path(Some(from), path, value)
    }

    fn continue_write(&self, target: &HandlerTarget) -> Option<Result<(), HandlerError>> {
        self.continue_write_target(target)
    }

    fn read_shards(
        &self,
        from: usize,
        path: &str,
        parameter: &str,
        shard: Option<u32>,
    ) -> Result<String, HandlerError> {
        RouterState::read_shards(self, from, path, parameter, shard)
    }

    fn write_shards(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError> {
        RouterState::write_shards(self, from, path, value)
    }

    fn resolve(&self, from: usize, path: &str) -> Result<HandlerTarget, HandlerError> {
        self.resolve_path(Some(from), path)
    }

    fn has_handler(&self, element: Option<usize>, name: &str) -> bool {
        RouterState::has_handler(self, element, name)
    }

    fn handlers(&self, element: Option<usize>) -> Vec<HandlerInfo> {
        self.list_handlers(element)
    }
}

impl Elements for RouterState {
    fn element_count(&self) -> usize {
        self.nodes.len()
    }

    fn element(&self, element: usize) -> Option<&ElementState> {
        Some(&self.nodes.get(element)?.element)
    }

    fn location(&self, element: usize) -> String {
        self.nodes.get(element).map_or_else(String::new, |node| node.location.to_string())
    }

    fn find(&self, from: usize, name: &str) -> Option<usize> {
        self.find_from(Some(from), name)
    }

    fn export(&self, element: usize) -> Option<Rc<dyn Any>> {
        let object = self.nodes.get(element)?.object.try_borrow().ok()?;
        if object.is_none() {
            self.missed.set(true);
        }
        object.as_ref()?.export()
    }

    fn neighbours(&self, element: usize, port: Option<usize>, downstream: bool) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let mut queue = alloc::collections::VecDeque::from([(element, port)]);
        while let Some((at, port)) = queue.pop_front() {
            let Some(node) = self.nodes.get(at) else { continue };
            let ends = if downstream { &node.outputs } else { &node.inputs };
            for (number, end) in ends.iter().enumerate() {
                if port.is_some_and(|port| port != number) {
                    continue;
                }
                for &(peer, _) in &end.links.peers {
                    if seen.insert(peer) {
                        found.push(peer);
                        if !self.is_storage(peer) {
                            queue.push_back((peer, None));
                        }
                    }
                }
            }
        }
        found
    }

    fn is_sole_neighbour(&self, element: usize, queue: usize) -> bool {
        RouterState::is_sole_neighbour(self, element, queue)
    }
}
