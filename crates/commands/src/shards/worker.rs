//! The thread of one shard. Its engine never leaves it: others send calls, which it makes between turns.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use click_lang::Diagnostic;
use element::HandlerError;
use router::{Router, RunEnd, Successor};

use crate::environment::{ProcessEnvironment, Waker};

/// What a shard does for another thread between two turns.
type Call = Box<dyn FnOnce(&mut Worker) + Send>;

/// What a shard reports.
pub(super) enum Event {
    /// It has built its engine, with these warnings, or the configuration has errors.
    Built(u32, Result<Vec<Diagnostic>, Vec<Diagnostic>>),
    /// It does not run any more, since a point of time, after some CPU time.
    Ended(u32, RunEnd, Instant, Duration),
    /// It runs again.
    Resumed(u32),
}

/// The way to a shard.
#[derive(Clone)]
pub(super) struct Handle {
    calls: Sender<Call>,
    waker: Arc<Waker>,
}

impl Handle {
    /// A way to a shard, and the end from which that takes calls.
    pub(super) fn new(waker: Arc<Waker>) -> (Handle, Receiver<Call>) {
        let (calls, taken) = channel();
        (Handle { calls, waker }, taken)
    }

    /// Makes a call. Its result can be received once the shard has made it; if the shard has ended, never.
    pub(super) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Receiver<R> {
        let (result, received) = channel();
        // If the shard has ended, both ends of the result are gone.
        let _ = self.calls.send(Box::new(move |worker| drop(result.send(call(worker)))));
        self.waker.wake();
        received
    }
}

/// A shard's engine.
pub(super) struct Worker {
    pub(super) router: Router,
    pub(super) environment: Rc<ProcessEnvironment>,
    pub(super) shard: u32,
    pub(super) events: Sender<Event>,
    /// The CPU time of the thread before it ran.
    idle: Duration,
    /// Why it does not run.
    end: Option<RunEnd>,
    /// A configuration that can take over.
    successor: Option<Successor>,
    /// Whether the thread shall end.
    pub(super) quits: bool,
}

impl Worker {
    /// An engine that does not run yet.
    pub(super) fn new(
        router: Router,
        environment: Rc<ProcessEnvironment>,
        shard: u32,
        events: Sender<Event>,
    ) -> Worker {
        Worker {
            router,
            environment,
            shard,
            events,
            idle: Duration::ZERO,
            end: Some(RunEnd::Paused),
            successor: None,
            quits: false,
        }
    }

    /// Runs the engine and makes calls, until one ends the thread.
    pub(super) fn serve(&mut self, waker: &Waker, calls: &Receiver<Call>) {
        while !self.quits {
            if self.end.is_some() {
                // Without a sender, nothing can start it again.
                let Ok(call) = calls.recv() else { return };
                call(self);
            }
            waker.take();
            while let Ok(call) = calls.try_recv() {
                call(self);
            }
            if self.end.is_none() && !self.quits {
                match self.router.run(None) {
                    RunEnd::Interrupted if !self.environment.is_stopped() => {}
                    end => self.stop(end),
                }
            }
        }
    }

    /// Starts or goes on.
    pub(super) fn start(&mut self) {
        self.end = None;
        self.idle = cpu_time();
        self.environment.start_shard();
    }

    /// Stops running; calls are still made.
    pub(super) fn stop(&mut self, end: RunEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            let event = Event::Ended(self.shard, end, Instant::now(), cpu_time() - self.idle);
            // Nobody listens when the program ends.
            let _ = self.events.send(event);
        }
    }

    pub(super) fn prepare(&mut self, text: &str) -> Result<(), HandlerError> {
        self.successor = Some(self.router.prepare(text)?);
        Ok(())
    }

    pub(super) fn abort(&mut self) {
        self.successor = None;
    }

    /// Switches to what was prepared, and runs on.
    pub(super) fn switch(&mut self) {
        if let Some(successor) = self.successor.take() {
            self.router.switch(successor);
            self.end = None;
        }
    }
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec as u32)
}
