//! The router's public interface, and its driver.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph};
use element::{Environment, HandlerError, HandlerInfo, Runtime};
use packet::{Pool, Timestamp};

use crate::build::Options;
use crate::node::Port;
use crate::registry::Registry;
use crate::state::RouterState;

/// The Click version whose language and handlers are implemented.
pub const ROUTER_VERSION: &str = "2.1";
/// Task turns between two checks of timers and descriptors.
const TURNS: usize = 128;
/// Rounds between two checks of descriptors while there is work.
const ROUNDS: u32 = 32;

/// The step of simulated time while tasks look for work and find none.
const POLL: Timestamp = Timestamp::from_micros(1);

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

/// The packets that an element lost for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The element's name.
    pub element: String,
    /// The reason's name.
    pub reason: Cow<'static, str>,
    /// The number of packets.
    pub packets: u64,
}

/// A graph of elements that runs on the caller's thread.
pub struct Router {
    pub(crate) core: Box<RouterState>,
    pub(crate) warnings: Vec<Diagnostic>,
    rounds: u32,
    pub(crate) swaps: u64,
}

impl Router {
    /// Builds a router, or returns all errors in its configuration.
    pub fn new(
        graph: Graph,
        registry: Registry,
        environment: Rc<dyn Environment>,
        options: Options,
    ) -> Result<Router, Vec<Diagnostic>> {
        let (core, warnings) = RouterState::build(graph, registry, environment, options, None)?;
        Ok(Router { core, warnings, rounds: 0, swaps: 0 })
    }

    /// Like `new`, with a packet pool that others may use too.
    pub fn in_pool(
        graph: Graph,
        registry: Registry,
        environment: Rc<dyn Environment>,
        options: Options,
        pool: Pool,
    ) -> Result<Router, Vec<Diagnostic>> {
        let (core, warnings) = RouterState::build(graph, registry, environment, options, Some(pool))?;
        Ok(Router { core, warnings, rounds: 0, swaps: 0 })
    }

    /// Warnings from the build, to be shown by the caller.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Runs until the router is stopped, idle or interrupted, or until the given steady time.
    pub fn run(&mut self, until: Option<Timestamp>) -> RunEnd {
        loop {
            self.succeed_if_prepared();
            if self.core.run_count.get() <= 0 && !self.continues() {
                return RunEnd::Stopped;
            }
            if self.core.environment.is_interrupted() {
                return RunEnd::Interrupted;
            }
            let worked = self.run_tasks();
            self.run_timers();
            self.rounds = self.rounds.wrapping_add(1);
            if !worked || self.rounds.is_multiple_of(ROUNDS) {
                if let Some(end) = self.wait(until) {
                    return end;
                }
            } else if self.rounds.is_multiple_of(4)
                && let Some(until) = until
            {
                self.core.clock.turn();
                if self.core.steady() >= until {
                    return RunEnd::Paused;
                }
            }
        }
    }

    /// Like `run`, for a span of steady time; `None` is unlimited.
    pub fn run_for(&mut self, span: Option<core::time::Duration>) -> RunEnd {
        self.core.clock.turn();
        let span = span.map(|span| Timestamp::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)));
        self.run(span.map(|span| self.core.steady() + span))
    }

    /// Asks the element that manages the driver, if there is one, whether to continue.
    pub(crate) fn continues(&self) -> bool {
        let Some(driver) = self.core.driver.get() else { return false };
        self.core.clock.turn();
        self.core.call(driver, |object, cx| object.stopped(cx));
        self.core.settle();
        self.core.run_count.get() > 0
    }

    /// Runs tasks; returns whether any was ready. If all ready tasks only look for work, simulated time advances a
    /// little, as it does in Click when the clock is read.
    pub(crate) fn run_tasks(&self) -> bool {
        let core = &self.core;
        let mut turns = TURNS;
        let mut worked = false;
        let simulated = core.clock.simulated.get().is_some();
        let mut in_vain = 0;
        while turns > 0 && core.run_count.get() > 0 {
            let Some(element) = core.schedule.borrow_mut().next() else { break };
            worked = true;
            core.clock.turn();
            core.turns_left.set(turns);
            let found_work = core.call(element, |object, cx| object.task(cx));
            if let Some(node) = core.nodes.get(element) {
                let (time, calls) = node.work.get();
                node.work.set((time, calls + 1));
            }
            core.settle();
            // Subtract the turns that the task took at once.
            turns = core.turns_left.replace(1).min(turns) - 1;
            in_vain = if found_work == Some(false) { in_vain + 1 } else { 0 };
            let mut schedule = core.schedule.borrow_mut();
            let alone = schedule.finish(found_work != Some(false));
            if alone || simulated && in_vain > schedule.known() {
                break;
            }
            if core.environment.is_turn_over() {
                break;
            }
        }
        if simulated && in_vain > 0 && !core.is_idle() {
            self.pass_time();
        }
        worked
    }

    /// Advances simulated time by one step, but not past a timer.
    fn pass_time(&self) {
        let core = &self.core;
        core.clock.turn();
        let now = core.steady();
        let next = core.timers.borrow().next().filter(|at| *at > now);
        let step = now + POLL;
        core.clock.simulated.set(Some(next.map_or(step, |at| at.min(step))));
        core.clock.turn();
    }

    /// Runs expired timers; returns whether there were any.
    pub(crate) fn run_timers(&self) -> bool {
        let core = &self.core;
        if core.timers.borrow().next().is_none() {
            return false;
        }
        core.clock.turn();
        let now = core.steady();
        // Timers set for the current time during this loop run in the next round.
        let mut left = core.timers.borrow().due_count(now);
        let worked = left > 0;
        while left > 0 && core.run_count.get() > 0 {
            let Some((element, timer)) = core.timers.borrow_mut().take(now) else { break };
            core.clock.turn();
            core.call(element, |object, cx| object.timer(cx, timer));
            core.settle();
            left -= 1;
        }
        worked
    }

    /// Checks descriptors, and waits if there is nothing else to do.
    fn wait(&self, until: Option<Timestamp>) -> Option<RunEnd> {
        let core = &self.core;
        core.clock.turn();
        let now = core.steady();
        if until.is_some_and(|until| now >= until) {
            return Some(RunEnd::Paused);
        }
        if core.run_count.get() <= 0 {
            return None;
        }
        let idle = core.is_idle();
        let timer = core.timers.borrow().next();
        let mut watched = Vec::new();
        self.watched(|descriptor, read, write| watched.push((descriptor, read, write)));
        if idle && timer.is_none() && watched.is_empty() && core.options.stop_when_idle {
            return Some(RunEnd::Idle);
        }
        let deadline = match (timer, until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if core.clock.jumps() && idle {
            // Check descriptors once before the clock jumps.
            if let Some(deadline) = deadline {
                core.clock.jump(deadline.max(now), core.environment.as_ref());
                if watched.is_empty() {
                    return None;
                }
            }
        }
        let jumped = core.clock.jumps() && deadline.is_some();
        let until = if !idle || jumped {
            Some(Timestamp::ZERO)
        } else {
            deadline.map(|deadline| core.clock.outside(deadline))
        };
        if !idle && watched.is_empty() {
            return None;
        }
        for descriptor in core.environment.wait(&watched, until) {
            self.notify_watchers(descriptor);
        }
        None
    }

    /// Reads a handler: `element.handler`, or `handler` of the router.
    pub fn read(&self, path: &str, parameter: &str) -> Result<String, HandlerError> {
        self.core.clock.turn();
        let result = self.core.read_path(None, path, parameter);
        self.core.settle();
        result
    }

    /// Writes a handler. A write to `hotconfig` takes effect before this returns.
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), HandlerError> {
        self.core.clock.turn();
        let result = self.core.write_path(None, path, value);
        self.core.settle();
        self.succeed_if_prepared();
        result
    }

    /// The handlers of the element called `name`, or of the router.
    pub fn handlers(&self, name: Option<&str>) -> Option<Vec<HandlerInfo>> {
        match name {
            None => Some(self.core.list_handlers(None)),
            Some(name) => Some(self.core.list_handlers(Some(*self.core.by_name.get(name)?))),
        }
    }

    /// The names of the elements, in order.
    pub fn elements(&self) -> impl Iterator<Item = &str> {
        self.core.nodes.iter().map(|node| &*node.name)
    }

    /// The classes of the elements, in order.
    pub fn classes(&self) -> impl Iterator<Item = &'static str> {
        self.core.nodes.iter().map(|node| node.class.info.name)
    }

    /// The number of packets into and out of each element, summed over its ports, in element order.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.core.nodes.iter().map(|node| {
            let sum = |ports: &[Port]| ports.iter().map(|port| port.count.get()).sum();
            (sum(&node.inputs), sum(&node.outputs))
        })
    }

    /// Lost packets by element and reason.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for node in &self.core.nodes {
            let drops = node.drops.borrow();
            losses.extend(drops.iter().map(|(reason, packets)| Loss {
                element: node.name.clone(),
                reason: self.core.reason_name(*reason),
                packets: *packets,
            }));
        }
        losses
    }

    /// The running graph.
    pub fn graph(&self) -> &Graph {
        &self.core.graph
    }

    /// The packet pool.
    pub fn pool(&self) -> &Pool {
        &self.core.pool
    }

    /// The maximum number of packets in a batch: 1 if an element acts on others while packets pass.
    pub fn batch(&self) -> usize {
        self.core.options.batch
    }

    /// Wall-clock time as elements see it.
    pub fn now(&self) -> Timestamp {
        self.core.clock.turn();
        self.core.now()
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        clean_up(&self.core);
    }
}

pub(crate) fn clean_up(core: &RouterState) {
    // Elements are cleaned up in reverse order of creation.
    for index in core.in_order().into_iter().rev() {
        core.call(index, |object, cx| object.cleanup(cx));
    }
}
