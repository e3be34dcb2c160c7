//! The router as elements see it: the implementation of `Runtime`.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::any::Any;

use click_lang::Severity;
use element::{
    AdditiveRandom, Descriptor, Direction, Environment, HandlerError, HandlerInfo, HandlerTarget, LogTap,
    Names, Outputs, Reason, Runtime, Signal,
};
use packet::{Batch, Pool, Timestamp};

use crate::state::{RouterState, SetupDiagnostic};

/// The maximum number of drop reasons that users' functions may declare per router: bounds what a configuration can add
/// to the metrics.
const MOST_USER_REASONS: usize = 1 << 8;

impl Runtime for RouterState {
    fn now(&self) -> Timestamp {
        self.clock.now(self.environment.as_ref())
    }

    fn steady(&self) -> Timestamp {
        self.clock.steady(self.environment.as_ref())
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn environment(&self) -> &dyn Environment {
        self.environment.as_ref()
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn random(&self, element: usize) -> u32 {
        match self.shared_random.borrow_mut().as_mut() {
            Some(shared) => shared.draw(),
            None => (self.hash_seed(element) >> 33) as u32,
        }
    }

    /// Per-element splitmix64 sequence.
    fn hash_seed(&self, element: usize) -> u64 {
        let Some(node) = self.nodes.get(element) else { return 0 };
        let state = node.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        node.random.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn reseed(&self, seed: u64) {
        for (index, node) in self.nodes.iter().enumerate() {
            node.random.set(crate::build::element_seed(seed, index));
        }
        self.shared_random.take();
    }

    fn share_random(&self, seed: u32) {
        self.shared_random.replace(Some(AdditiveRandom::new(seed)));
    }

    fn shares_random(&self) -> bool {
        self.shared_random.borrow().is_some()
    }

    fn ports(&self, element: usize) -> (usize, usize) {
        self.nodes.get(element).map_or((0, 0), |node| (node.inputs.len(), node.outputs.len()))
    }

    fn is_push_input(&self, element: usize, port: usize) -> bool {
        self.input(element, port).is_some_and(|port| port.links.push)
    }

    fn is_push_output(&self, element: usize, port: usize) -> bool {
        self.output(element, port).is_some_and(|port| port.links.push)
    }

    fn pull(&self, element: usize, port: usize, most: usize, into: &mut Batch) {
        // One batch at a time, so that the output of upstream filters stays within the limit.
        let mut left = most;
        while left > 0 {
            let ask = left.min(self.options.batch);
            let before = into.len();
            self.pull_from(element, port, ask, into);
            if into.len() - before < ask {
                return;
            }
            left -= ask;
        }
    }

    fn is_fed_by_storage(&self, element: usize, port: usize) -> bool {
        self.input(element, port)
            .is_some_and(|input| input.links.peers.iter().all(|(peer, _)| self.is_storage(*peer)))
    }

    fn deliver(&self, element: usize, outputs: &mut Outputs) {
        self.write_deferred();
        RouterState::deliver(self, element, outputs);
        self.running.set(element);
    }

    fn forward_pulls(&self, element: usize, output: usize, input: Option<usize>) {
        if let Some(port) = self.output(element, output) {
            port.forwards_to.set(input);
        }
    }

    fn declare_reason(&self, element: usize, name: &str) -> Option<Reason> {
        let node = self.nodes.get(element).filter(|_| reason::is_user_name(name))?;
        let mut names = self.user_reasons.borrow_mut();
        let number = match names.iter().position(|known| &**known == name) {
            Some(number) => number,
            None if names.len() >= MOST_USER_REASONS => return None,
            None => {
                names.push(name.into());
                names.len() - 1
            }
        };
        let reason = Reason::user(number as u16);
        node.user_reasons.borrow_mut().push(reason);
        Some(reason)
    }

    fn count_drops(&self, element: usize, reason: Reason, count: u64) {
        if let Some(node) = self.nodes.get(element)
            && count > 0
        {
            node.drop(reason, count);
        }
    }

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

    fn assign(&self, element: usize, thread: usize) {
        if let Some(node) = self.nodes.get(element) {
            node.thread.set(thread);
        }
    }

    fn take_turns(&self, element: usize) -> usize {
        // The caller takes all turns at once.
        let alone = self.options.batch > 1 && self.schedule.borrow().is_alone(element);
        if alone { self.turns_left.replace(1).max(1) } else { 1 }
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

    fn set_signal(&self, element: usize, direction: Direction, active: bool) {
        let Some(node) = self.nodes.get(element) else { return };
        let notifier = if direction == Direction::Empty { &node.empty } else { &node.full };
        if notifier.cell.set(active) {
            for &listener in notifier.listeners.borrow().iter() {
                if self.nodes.get(listener).is_some_and(|node| node.class.info.task) {
                    self.schedule(listener);
                } else {
                    self.woken.borrow_mut().push(listener);
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

    fn read_handler(&self, from: usize, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.read_path(Some(from), path, parameter)
    }

    fn write_handler(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError> {
        self.write_path(Some(from), path, value)
    }

    fn defer_write(&self, from: usize, path: String, value: String) {
        self.deferred.borrow_mut().push_back((from, path, value));
    }

    fn resolve(&self, from: usize, path: &str) -> Result<HandlerTarget, HandlerError> {
        self.resolve_path(Some(from), path)
    }

    fn handlers(&self, element: Option<usize>) -> Vec<HandlerInfo> {
        self.list_handlers(element)
    }

    fn record_argument(&self, element: usize, position: Option<usize>, keyword: &str, value: &str) {
        let Some(node) = self.nodes.get(element) else { return };
        let mut arguments = element::text::split_arguments(&node.config.borrow());
        let words = element::text::words;
        let is_named =
            |text: &str| words(text).first().is_some_and(|first| first == keyword && first != text);
        arguments.retain(|text| !is_named(text));
        // Text that starts with a word and continues may be another argument with its keyword.
        let is_bare = |text: &str| {
            let spaced = text.starts_with(|first: char| first.is_ascii_alphabetic()) && words(text).len() > 1;
            keyword.is_empty() || !spaced
        };
        match position.and_then(|position| arguments.get_mut(position)).filter(|text| is_bare(text)) {
            Some(argument) => *argument = value.to_string(),
            None => arguments.push([keyword, value].join(" ")),
        }
        *node.config.borrow_mut() = arguments.join(", ");
    }

    fn configuration(&self, element: usize) -> String {
        self.nodes.get(element).map_or_else(String::new, |node| node.config.borrow().clone())
    }

    fn record_configuration(&self, element: usize, config: &str) {
        if let Some(node) = self.nodes.get(element) {
            *node.config.borrow_mut() = config.to_string();
        }
    }

    fn element_name(&self, element: usize) -> String {
        self.nodes.get(element).map_or_else(String::new, |node| node.name.clone())
    }

    fn class_name(&self, element: usize) -> String {
        self.nodes.get(element).map_or_else(String::new, |node| node.class.info.name.to_string())
    }

    fn message_heading(&self, element: usize, what: &str) -> String {
        let location = self.nodes.get(element).map_or_else(String::new, |node| node.location.to_string());
        let (name, class) = (self.element_name(element), self.class_name(element));
        alloc::format!("{location}: {what} ‘{name} :: {class}’:")
    }

    fn element_count(&self) -> usize {
        self.nodes.len()
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

    fn stop(&self, count: i64) {
        self.run_count.set(self.run_count.get().saturating_sub(count));
    }

    fn run_count(&self) -> i64 {
        self.run_count.get()
    }

    fn set_run_count(&self, count: i64) {
        self.run_count.set(count);
    }

    fn attach_driver(&self, element: usize) {
        self.driver.set(Some(element));
    }

    fn remark(&self, element: usize, is_wrong: bool, data_location: Option<&str>, text: &str) {
        let severity = if is_wrong { Severity::Note } else { Severity::Warning };
        let text = match data_location {
            Some(location) => alloc::format!("{location}: {text}"),
            None => text.to_string(),
        };
        let data_location = data_location.map(ToString::to_string);
        self.remarks.borrow_mut().push(SetupDiagnostic { severity, element, data_location, text });
    }

    fn log(&self, text: &str) {
        self.environment.console(text);
        self.taps.borrow_mut().retain(|(element, tap)| {
            let tap = tap.upgrade();
            if tap.as_ref().is_some_and(|tap| tap.put(text)) {
                self.woken.borrow_mut().push(*element);
            }
            tap.is_some()
        });
    }

    fn tap(&self, element: usize) -> Rc<LogTap> {
        let tap = Rc::new(LogTap::default());
        self.taps.borrow_mut().push((element, Rc::downgrade(&tap)));
        tap
    }
}
