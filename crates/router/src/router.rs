//! The router's public interface, and its driver.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::steps::Steps;
use click_lang::{Diagnostic, Graph};
use element::{Descriptor, Environment, HandlerError, HandlerInfo, WriteEffect};
use packet::{Pool, Timestamp};

use crate::hooks::Hook;
use crate::options::Options;
use crate::own_writes::OwnWrite;
use crate::pace::TURNS_PER_ROUND;
use crate::parts::Parts;
use crate::registry::Registry;
use crate::removal::continue_removal;
use crate::state::{RouterState, Watch};

/// The Click version whose language and handlers are implemented.
pub const ROUTER_VERSION: &str = "2.1";
/// Rounds between two checks of descriptors while there is work.
const ROUNDS_PER_WAIT: u32 = 32;

/// The step of simulated time while tasks look for work and find none.
const POLL_STEP: Timestamp = Timestamp::from_micros(1);

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The driver's count reached zero: by a source's STOP, a script, or the `stop` handler.
    Stopped,
    /// Nothing more could happen.
    Idle,
    /// The environment interrupted the run.
    Interrupted,
    /// The time limit was reached.
    Paused,
}

/// What a write to a handler changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its effect. A handler that writes to others has the effect of an edit if one of these changes the configuration.
    pub effect: WriteEffect,
    /// Whether the element's handler `config` shows what was written.
    pub in_config: bool,
}

/// A graph of elements that runs on the caller's thread.
pub struct Router {
    pub(crate) state: Box<RouterState>,
    pub(crate) warnings: Vec<Diagnostic>,
    rounds: u32,
    pub(crate) swaps: u64,
    /// What is freed of the previous configuration.
    pub(crate) removed: Option<Steps<()>>,
}

impl Router {
    /// Builds a router, or returns all errors in its configuration.
    pub fn new(
        graph: Graph,
        registry: Registry,
        environment: Rc<dyn Environment>,
        options: Options,
    ) -> Result<Router, Vec<Diagnostic>> {
        let (state, warnings) =
            RouterState::build(graph, Parts { registry, environment, options, pool: None, before: None })?;
        Ok(Router::start(state, warnings))
    }

    /// Like `new`, with a packet pool that others may use too.
    pub fn with_pool(
        graph: Graph,
        registry: Registry,
        environment: Rc<dyn Environment>,
        options: Options,
        pool: Pool,
    ) -> Result<Router, Vec<Diagnostic>> {
        let parts = Parts { registry, environment, options, pool: Some(pool), before: None };
        let (state, warnings) = RouterState::build(graph, parts)?;
        Ok(Router::start(state, warnings))
    }

    /// What elements write from now on is not part of their initialization.
    fn start(state: Box<RouterState>, warnings: Vec<Diagnostic>) -> Router {
        state.watch.set(state.watch_between_calls());
        Router { state, warnings, rounds: 0, swaps: 0, removed: None }
    }

    /// Warnings from the build, to be shown by the caller.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Runs until the router is stopped, idle or interrupted, or until the given steady time.
    pub fn run(&mut self, until: Option<Timestamp>) -> RunEnd {
        loop {
            self.switch_if_prepared();
            if !self.state.resources.driver.is_running() && !self.driver_continues() {
                while self.free_removed() {}
                return RunEnd::Stopped;
            }
            if self.state.resources.environment.is_interrupted() {
                return RunEnd::Interrupted;
            }
            let worked = self.state.move_packets(|| self.run_tasks()) | self.free_removed();
            self.run_timers();
            self.state.has_moved.set(false);
            self.rounds = self.rounds.wrapping_add(1);
            if !worked || self.rounds.is_multiple_of(ROUNDS_PER_WAIT) {
                if let Some(end) = self.wait(until) {
                    return end;
                }
            } else if self.rounds.is_multiple_of(4)
                && let Some(until) = until
            {
                self.state.resources.clock.refresh();
                if self.state.resources.steady() >= until {
                    return RunEnd::Paused;
                }
            }
        }
    }

    /// Like `run`, for a span of steady time; `None` is unlimited.
    pub fn run_for(&mut self, span: Option<core::time::Duration>) -> RunEnd {
        self.state.resources.clock.refresh();
        let span = span.map(|span| Timestamp::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)));
        self.run(span.map(|span| self.state.resources.steady() + span))
    }

    /// Performs a step of the removal of the previous configuration. Returns whether there was one.
    #[inline]
    pub(crate) fn free_removed(&mut self) -> bool {
        let is_any = self.removed.is_some();
        if is_any {
            continue_removal(&mut self.removed);
        }
        is_any
    }

    /// Asks the element that manages the driver, if there is one, whether to continue.
    pub(crate) fn driver_continues(&self) -> bool {
        let Some(driver) = self.state.resources.driver.manager() else { return false };
        self.state.resources.clock.refresh();
        self.state.call(driver, |object, cx| object.stopped(cx));
        self.state.run_deferred();
        self.state.resources.driver.is_running()
    }

    /// Runs tasks; returns whether any was ready. If all ready tasks only look for work, simulated time advances a
    /// little, as it does in Click when the clock is read.
    pub(crate) fn run_tasks(&self) -> bool {
        let state = &self.state;
        let mut turns = TURNS_PER_ROUND;
        let mut worked = false;
        let simulated = state.resources.clock.simulated().is_some();
        let mut in_vain = 0;
        while turns > 0 && state.resources.driver.is_running() {
            let Some(element) = state.schedule.borrow_mut().next() else { break };
            worked = true;
            state.resources.clock.refresh();
            state.turns_left.set(turns);
            let found_work = state.call(element, |object, cx| object.task(cx));
            if let Some(node) = state.nodes.get(element) {
                let (time, calls) = node.work.get();
                node.work.set((time, calls + 1));
            }
            state.run_deferred();
            state.follow_paced_turns(element);
            // Subtract the turns that the task took at once.
            turns = state.turns_left.replace(1).min(turns) - 1;
            in_vain = if found_work == Some(false) { in_vain + 1 } else { 0 };
            let mut schedule = state.schedule.borrow_mut();
            let alone = schedule.finish(found_work != Some(false));
            if alone || simulated && in_vain > schedule.known() {
                break;
            }
            if state.resources.environment.is_turn_over() {
                break;
            }
        }
        if simulated && in_vain > 0 && !state.is_idle() {
            self.advance_simulated_time();
        }
        worked
    }

    /// Advances simulated time by one step, but not past a timer.
    fn advance_simulated_time(&self) {
        let state = &self.state;
        state.resources.clock.refresh();
        let now = state.resources.steady();
        let next = state.timers.borrow().next().filter(|at| *at > now);
        let step = now + POLL_STEP;
        state.resources.clock.simulate(next.map_or(step, |at| at.min(step)));
    }

    /// Runs expired timers; returns whether there were any.
    pub(crate) fn run_timers(&self) -> bool {
        if self.state.timers.borrow().next().is_none() {
            return false;
        }
        self.state.resources.clock.refresh();
        self.run_timers_due(self.state.resources.steady())
    }

    /// Runs the timers that expire at this time or before. Returns whether there were any.
    pub(crate) fn run_timers_due(&self, now: Timestamp) -> bool {
        let state = &self.state;
        // Timers set for the current time during this loop run in the next round.
        let mut left = state.timers.borrow().due_count(now);
        let worked = left > 0;
        while left > 0 && state.resources.driver.is_running() {
            let Some((element, timer)) = state.timers.borrow_mut().take(now) else { break };
            state.resources.clock.refresh();
            state.call(element, |object, cx| object.timer(cx, timer));
            state.run_deferred();
            left -= 1;
        }
        worked
    }

    /// Checks descriptors, and waits if there is nothing else to do.
    fn wait(&self, until: Option<Timestamp>) -> Option<RunEnd> {
        let state = &self.state;
        state.resources.clock.refresh();
        let now = state.resources.steady();
        if until.is_some_and(|until| now >= until) {
            return Some(RunEnd::Paused);
        }
        if !state.resources.driver.is_running() {
            return None;
        }
        let idle = state.is_idle();
        let mut watched = Vec::new();
        self.watched(|descriptor, read, write| watched.push((descriptor, read, write)));
        if idle && watched.is_empty() && state.options.stop_when_idle && state.has_only_upkeep() {
            return Some(RunEnd::Idle);
        }
        let timer = state.timers.borrow().next();
        let deadline = match (timer, until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if state.resources.clock.skips_waits() && idle {
            // What has arrived comes before the time of the next timer.
            if let Some(deadline) = deadline {
                if watched.is_empty() || !self.notify_ready(&watched, Some(Timestamp::ZERO)) {
                    state.resources.clock.skip_to(deadline.max(now), state.resources.environment.as_ref());
                }
                return None;
            }
        }
        let until = if !idle {
            Some(Timestamp::ZERO)
        } else {
            deadline.map(|deadline| state.resources.clock.to_environment_time(deadline))
        };
        if !idle && watched.is_empty() {
            return None;
        }
        self.notify_ready(&watched, until);
        None
    }

    /// Waits until a descriptor is ready, and calls the elements that watch it. Returns whether one was.
    fn notify_ready(&self, watched: &[(Descriptor, bool, bool)], until: Option<Timestamp>) -> bool {
        let ready = self.state.resources.environment.wait(watched, until);
        self.state.move_packets(|| {
            ready.iter().for_each(|descriptor| self.notify_watchers(*descriptor));
            !ready.is_empty()
        })
    }

    /// Reads a handler: `element.handler`, or `handler` of the router.
    pub fn read(&self, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.state.resources.clock.refresh();
        let result = self.state.read_path(None, path, parameter);
        self.state.run_deferred();
        result
    }

    /// Writes a handler. A write to `hotconfig` takes effect before this returns.
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.write_counted(path, value).0
    }

    /// Writes a handler. Returns also how many writes changed the configuration: this one, and those that it caused.
    fn write_counted(&mut self, path: &str, value: &str) -> (Result<(), HandlerError>, u32) {
        self.state.resources.clock.refresh();
        self.state.watch.set(Watch::Caller(0));
        let result = self.state.write_path(None, path, value);
        self.state.run_deferred();
        let watched = self.state.watch.replace(self.state.watch_between_calls());
        self.switch_if_prepared();
        (result, if let Watch::Caller(count) = watched { count } else { 0 })
    }

    /// Like [`write`](Self::write), and tells what the write changed.
    pub fn write_watched(&mut self, path: &str, value: &str) -> Result<Written, HandlerError> {
        let target = self.state.resolve_path(None, path)?;
        let own = self.state.effect_of(&target);
        let before = self.state.recordings(&target);
        let (written, changes) = self.write_counted(path, value);
        written?;
        // What it caused in other elements can't be told apart, so writes of this kind are taken to add up.
        let effect = if changes > u32::from(own != WriteEffect::Action) { WriteEffect::Edit } else { own };
        // An own handler `config` shows the present state.
        let shows_state = || effect != WriteEffect::Action && self.state.shows_state(&target);
        let in_config = effect == own && (self.state.recordings(&target) != before || shows_state());
        Ok(Written { effect, in_config })
    }

    /// Whether there are writes that [`own_writes`](Self::own_writes) has not passed on.
    pub fn has_new_writes(&self) -> bool {
        self.state.own_writes.has_news()
    }

    /// Passes on the handlers that elements wrote since the last call, and that changed the configuration, with the number of
    /// writes to handlers that are not kept because there are too many.
    pub fn own_writes(&self, mut each: impl FnMut(&str, &OwnWrite)) -> u64 {
        self.state.own_writes.take_news(&mut each)
    }

    /// Forgets the writes of elements: the caller has replaced the configuration. Returns whether there were any.
    pub fn forget_own_writes(&self) -> bool {
        self.state.own_writes.forget()
    }

    /// Whether elements have made writes that changed the configuration.
    pub fn has_own_writes(&self) -> bool {
        self.state.own_writes.is_any()
    }

    /// The handlers of the element called `name`, or of the router.
    pub fn handlers(&self, name: Option<&str>) -> Option<Vec<HandlerInfo>> {
        match name {
            None => Some(self.state.list_handlers(None)),
            Some(name) => Some(self.state.list_handlers(Some(*self.state.by_name.get(name)?))),
        }
    }

    /// The names of the elements, in order.
    pub fn elements(&self) -> impl Iterator<Item = &str> {
        self.state.nodes.iter().map(|node| &*node.element.name)
    }

    /// The classes of the elements, in order.
    pub fn classes(&self) -> impl Iterator<Item = &'static str> {
        self.state.nodes.iter().map(|node| node.element.class.name)
    }

    /// The number of packets into and out of each element, summed over its ports, in element order.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let state = &self.state;
        state.nodes.iter().map(|node| (state.packets_in(node).sum(), state.packets_out(node).sum()))
    }

    /// The packet pool.
    pub fn pool(&self) -> &Pool {
        &self.state.resources.pool
    }

    /// The maximum number of packets in a batch: 1 if an element acts on others while packets pass.
    pub fn batch(&self) -> usize {
        self.state.options.batch
    }

    /// Wall-clock time as elements see it.
    pub fn now(&self) -> Timestamp {
        self.state.resources.clock.refresh();
        self.state.resources.now()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        clean_up(&self.state);
    }
}

pub(crate) fn clean_up(state: &RouterState) {
    // Elements are cleaned up in reverse order of creation.
    let mut outputs = state.take_outputs();
    for &index in state.order.iter().rev() {
        if state.hooks.needs(index, Hook::CleanUp) {
            state.call_hook(Hook::CleanUp, &mut outputs, index, |object, cx| object.cleanup(cx));
        }
    }
}
