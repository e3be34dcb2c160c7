//! The thread that notices the ends of boxes, restarts them when due, and collects their messages.

use super::state::Supervisor;
use crate::boxes::{Instance, Kept, ManagedBox, Phase};
use crate::escape;
use crate::limits::MAX_EVENTS_PER_ROUND;
use api::{LogLine, Time};
use boundary::Event;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between polls of the boxes' messages: the shortest while there are many, the longest while there are none.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(64);

/// Interval between measurements of resource usage.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Starts the thread. It ends when the last supervisor is dropped.
    pub(super) fn watch(&self) -> io::Result<()> {
        let core = Arc::downgrade(&self.0);
        let run = move || {
            let (mut pause, mut metered) = (MIN_POLL_INTERVAL, Instant::now());
            while let Some(core) = core.upgrade() {
                let supervisor = Self(core);
                pause = supervisor.round(pause, &mut metered);
            }
        };
        std::thread::Builder::new().name("watch".into()).spawn(run).map(drop)
    }

    /// Waits once and handles the events. Returns the next wait time.
    fn round(&self, pause: Duration, metered: &mut Instant) -> Duration {
        let until = self.next_restart().map(|at| at.saturating_duration_since(Instant::now()));
        for (managed, instance) in self.0.exit_events.wait(until.map_or(pause, |until| until.min(pause))) {
            self.ended(&managed, &instance);
        }
        self.restart_due();
        self.roll_back_due();
        let heard = self.0.all().iter().filter(|managed| self.listen(managed)).count();
        if metered.elapsed() >= MEASURE_INTERVAL {
            *metered = Instant::now();
            self.measure();
            self.0.reserve_events();
        }
        let pause = if heard > 0 { MIN_POLL_INTERVAL } else { (pause * 2).min(MAX_POLL_INTERVAL) };
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
    pub(super) fn listen(&self, managed: &ManagedBox) -> bool {
        managed.instance().is_some_and(|instance| self.keep_output(managed, &instance))
    }

    /// Collects a box's messages, unless another thread talks to it. Returns whether there were any.
    pub(super) fn keep_output(&self, managed: &ManagedBox, instance: &Instance) -> bool {
        let messages = instance.events(MAX_EVENTS_PER_ROUND);
        for message in &messages {
            match Event::decode(message) {
                Ok(Event::Console { name, line }) => {
                    let configuration = if name.is_empty() { "main".into() } else { escape::line(name) };
                    let text = escape::line(line);
                    let line =
                        LogLine { time: Time::now(), configuration: Some(configuration), text, lost: 0 };
                    managed.log.push(|_| line);
                }
                Ok(Event::Output { file, position, bytes }) => {
                    let name = escape::line(file);
                    match managed.outputs.keep(&self.0.output_store, &name, position, bytes) {
                        Kept::Yes => {}
                        Kept::First => managed.note(format!("the box writes a file {name}")),
                        Kept::No(why) => {
                            managed.note(format!("file {name} is incomplete: {why}"));
                        }
                    }
                }
                // An invalid event.
                Err(_) => {}
            }
        }
        !messages.is_empty()
    }
}
