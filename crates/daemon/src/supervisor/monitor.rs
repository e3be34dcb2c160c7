//! The thread that notices the ends of boxes, restarts them when due, and collects their messages.

use super::state::Supervisor;
use crate::boxes::{Instance, Kept, ManagedBox, Phase};
use crate::escape;
use crate::limits::MAX_EVENTS_PER_ROUND;
use api::{LogLine, Time};
use boundary::Event;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use sandbox::EventFd;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The token of the bell that rings when a virtual machine ends.
const BELL_TOKEN: u64 = 0;

/// Interval between polls of the boxes' messages: the shortest while there are many, the longest while there are none.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(64);

/// Interval between measurements of resource usage.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);

/// The events that the thread waits for.
#[derive(Debug)]
pub(super) struct Monitor {
    epoll: OwnedFd,
    bell: Arc<EventFd>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    processes: BTreeMap<u64, Entry>,
    /// Boxes in virtual machines. All are checked when the bell rings.
    machines: Vec<Watched>,
    /// Boxes that may have ended but could not be checked yet.
    again: Vec<Watched>,
    last: u64,
}

/// A watched box, as long as it exists.
type Watched = (Weak<ManagedBox>, Weak<Instance>);

/// A box that has ended.
type Ended = (Arc<ManagedBox>, Arc<Instance>);

#[derive(Debug)]
struct Entry {
    managed: Weak<ManagedBox>,
    instance: Weak<Instance>,
    /// Readable when the process has ended.
    _descriptor: OwnedFd,
}

impl Monitor {
    pub(super) fn new(bell: Arc<EventFd>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, bell.as_fd(), epoll::EventData::new_u64(BELL_TOKEN), epoll::EventFlags::IN)?;
        Ok(Self { epoll, bell, entries: Mutex::default() })
    }

    /// Wakes the thread to check everything now.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Watches a started box.
    pub(super) fn add(&self, managed: &Arc<ManagedBox>, instance: &Arc<Instance>) -> io::Result<()> {
        let (weak_managed, weak_instance) = (Arc::downgrade(managed), Arc::downgrade(instance));
        let mut entries = self.entries();
        let Some(descriptor) = instance.end_descriptor() else {
            entries.machines.retain(|(_, instance)| instance.strong_count() > 0);
            entries.machines.push((weak_managed, weak_instance));
            return Ok(());
        };
        entries.last += 1;
        let token = entries.last;
        epoll::add(
            &self.epoll,
            &descriptor,
            epoll::EventData::new_u64(token),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        let entry = Entry { managed: weak_managed, instance: weak_instance, _descriptor: descriptor };
        entries.processes.insert(token, entry);
        Ok(())
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread check a box that may already have ended.
    pub(super) fn look_again(&self, managed: &Arc<ManagedBox>, instance: &Arc<Instance>) {
        self.entries().again.push((Arc::downgrade(managed), Arc::downgrade(instance)));
        self.wake();
    }

    /// Sleeps until an event or until `time` has passed. Returns the boxes that have ended.
    fn wait(&self, time: Duration) -> Vec<Ended> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        let time = Timespec::try_from(time).ok();
        // A signal ends the wait early, without events.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), time.as_ref());
        let mut entries = self.entries();
        let mut suspects = std::mem::take(&mut entries.again);
        let mut found = Vec::new();
        for event in events {
            let token = event.data;
            match token.u64() {
                BELL_TOKEN if self.bell.rang() => suspects.extend(entries.machines.iter().cloned()),
                BELL_TOKEN => {}
                token => {
                    let entry = entries.processes.remove(&token);
                    found.extend(
                        entry.and_then(|entry| Some((entry.managed.upgrade()?, entry.instance.upgrade()?))),
                    );
                }
            }
        }
        for suspect in suspects {
            let Some(instance) = suspect.1.upgrade() else { continue };
            if instance.has_ended() {
                found.extend(suspect.0.upgrade().map(|managed| (managed, instance)));
            }
        }
        found
    }
}

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
        for (managed, instance) in self.0.watch.wait(until.map_or(pause, |until| until.min(pause))) {
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
