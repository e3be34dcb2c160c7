//! The monitor: the thread that restarts boxes when due, and collects their messages. Another one waits for the ends of boxes,
//! so that their flows go on elsewhere at once. A third one stores what these boxes left, which may wait for the disk.

use super::state::Fabric;
use super::writes::OwnWriteEvent;
use crate::boxes::{Instance, ManagedBox, Phase, StoreResult};
use crate::limits::MAX_EVENTS_PER_ROUND;
use boundary::Event;
use model::escape;
use model::{BoxName, LogLine, Time, with_causes};
use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Interval between polls of the boxes' messages: the shortest while there are many, the longest while there are none.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(64);

/// Interval between measurements of resource usage.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);

impl Fabric {
    /// Starts the threads. They end when the last handle of the fabric is dropped.
    pub(super) fn start_monitor(&self) -> io::Result<()> {
        let (sender, disconnected) = mpsc::channel();
        let (events, state) = (self.0.exit_events.clone(), Arc::downgrade(&self.0));
        let run = move || {
            loop {
                let found = events.wait();
                let Some(state) = state.upgrade() else { return };
                for ended in Self(state).disconnect_ended(found) {
                    // The other thread ends later than this one.
                    let _ = sender.send(ended);
                }
            }
        };
        std::thread::Builder::new().name("ends".into()).spawn(run)?;
        let state = Arc::downgrade(&self.0);
        let run = move || {
            while let Ok(ended) = disconnected.recv() {
                let Some(state) = state.upgrade() else { return };
                Self(state).conclude(ended);
            }
        };
        std::thread::Builder::new().name("remains".into()).spawn(run)?;
        let state = Arc::downgrade(&self.0);
        let run = move || {
            let (mut pause, mut metered) = (MIN_POLL_INTERVAL, Instant::now());
            while let Some(state) = state.upgrade() {
                let fabric = Self(state);
                pause = fabric.round(pause, &mut metered);
                let until = fabric.next_restart().map(|at| at.saturating_duration_since(Instant::now()));
                drop(fabric);
                // A restart that is scheduled meanwhile ends the sleep.
                std::thread::park_timeout(until.map_or(pause, |until| until.min(pause)));
            }
        };
        let thread = std::thread::Builder::new().name("monitor".into()).spawn(run)?;
        self.0.set_monitor(thread.thread().clone());
        Ok(())
    }

    /// Handles what is due. Returns the time until the next round.
    fn round(&self, pause: Duration, metered: &mut Instant) -> Duration {
        self.restart_due();
        let talkative: Vec<BoxName> = self
            .0
            .all()
            .iter()
            .filter(|managed| self.collect_messages(managed))
            .map(|managed| managed.name.clone())
            .collect();
        let is_talkative = !talkative.is_empty();
        self.0.note_talkative(talkative);
        if metered.elapsed() >= MEASURE_INTERVAL {
            *metered = Instant::now();
            self.measure();
            self.give_up_spares();
        }
        let pause = if is_talkative { MIN_POLL_INTERVAL } else { (pause * 2).min(MAX_POLL_INTERVAL) };
        self.throttle().map_or(pause, |look| look.min(pause))
    }

    fn next_restart(&self) -> Option<Instant> {
        let waiting = |managed: &Arc<ManagedBox>| match managed.inner().phase {
            Phase::Waiting(at) => Some(at),
            _ => None,
        };
        self.0.all().iter().filter_map(waiting).min()
    }

    fn restart_due(&self) {
        let now = Instant::now();
        for managed in self.0.all() {
            let due = matches!(managed.inner().phase, Phase::Waiting(at) if at <= now);
            if due && !self.0.is_ending() {
                self.start_restart(&managed);
            }
        }
    }

    /// Collects a box's messages. Returns whether there were any.
    pub(super) fn collect_messages(&self, managed: &ManagedBox) -> bool {
        managed.instance().is_some_and(|instance| self.store_messages(managed, &instance))
    }

    /// Stores the pending messages of an instance of a box. Returns whether there were any.
    pub(super) fn store_messages(&self, managed: &ManagedBox, instance: &Instance) -> bool {
        let _storing = managed.storing();
        let messages = instance.events(MAX_EVENTS_PER_ROUND);
        let mut handlers = Vec::new();
        let mut note = |name: &[u8], event| {
            handlers.extend(self.note_own_write(managed, instance, (name, event)));
        };
        let has_cores = instance.core_count() > 1;
        for (core, message) in &messages {
            match Event::decode(message) {
                Ok(Event::Console { name, line }) => {
                    let configuration = if name.is_empty() { "main".into() } else { escape::line(name) };
                    let mut text = escape::line(line);
                    if has_cores {
                        text = format!("core {core}: {text}");
                    }
                    let line =
                        LogLine { time: Time::now(), configuration: Some(configuration), text, lost: 0 };
                    managed.log.push(|_| line);
                }
                Ok(Event::Output { file, position, bytes }) => {
                    let mut name = escape::line(file);
                    if has_cores {
                        name = format!("{name}.core{core}");
                    }
                    match managed.outputs.append(&self.0.output_store, &name, position, bytes) {
                        StoreResult::Unremarkable => {}
                        StoreResult::NewFile => managed.note(format!("the box writes a file {name}")),
                        StoreResult::FirstDrop(error) => {
                            managed.note(format!("file {name} is incomplete: {}", with_causes(&error)));
                        }
                    }
                }
                Ok(Event::OwnWrites { name, handler, value, written, count }) => {
                    note(name, OwnWriteEvent::Write { handler, value, written, times: count });
                }
                Ok(Event::MoreOwnWrites { name, count }) => note(name, OwnWriteEvent::More(count)),
                Ok(Event::OwnWritesGone { name }) => note(name, OwnWriteEvent::Gone),
                // An invalid event.
                Err(_) => {}
            }
        }
        self.report_own_writes(managed, &handlers);
        !messages.is_empty()
    }
}
