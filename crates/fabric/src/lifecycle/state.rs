//! The fabric's state, its start and its end.

use super::check_slots::CheckSlots;
use super::exit_events::ExitEvents;
use super::function_server::FunctionServer;
use crate::Settings;
use crate::boxes::{ManagedBox, OutputStore, SandboxFactory, Templates};
use crate::error::OperationError;
use crate::history::{History, HistoryLimits, HistoryPage};
use crate::limits::{MAX_CHECKS, MAX_EVENT_BYTES, MAX_EVENTS, MAX_QUICK_CHECKS, NEWS_DELAY, SLOW_CHECK};
use crate::network::SwitchThread;
use crate::processors::Processors;
use model::{BoxName, Event, EventKind, Subject, Time};
use protocol::StoreIdentity;
use sandbox::{EventFd, HostError, HostSettings, SystemError};
use seccomp::FilterError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// Why a fabric cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The image was rejected, or the workers could not start.
    Host(HostError),
    /// A thread or a descriptor could not be created.
    System(SystemError),
    /// The system call filter was refused.
    Filter(FilterError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Host(error) => error.source(),
            Self::System(error) => error.source(),
            Self::Filter(error) => error.source(),
        }
    }
}

impl From<HostError> for StartError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<FilterError> for StartError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

impl From<SystemError> for StartError {
    fn from(error: SystemError) -> Self {
        Self::System(error)
    }
}

/// All boxes and switches. Clones share them; dropping the last one ends all boxes.
///
/// Lock order: a box's `change` lock, then one of the others, held briefly.
#[derive(Clone, Debug)]
pub struct Fabric(pub(super) Arc<FabricState>);

/// The shared state.
#[derive(Debug)]
pub(super) struct FabricState {
    /// Declared before the switches and the factory, so that boxes are dropped first.
    boxes: Mutex<BTreeMap<BoxName, Arc<ManagedBox>>>,
    pub(super) switches: SwitchThread,
    pub(super) factory: SandboxFactory,
    pub(super) templates: Templates,
    pub(super) exit_events: Arc<ExitEvents>,
    /// The thread that restarts boxes.
    monitor: OnceLock<Thread>,
    pub(super) checks: CheckSlots,
    /// The files that boxes write.
    pub(super) output_store: OutputStore,
    /// Accepts functions in other processes.
    pub(super) functions: FunctionServer,
    pub(super) captures: Arc<AtomicUsize>,
    /// Packets that captures dropped because their readers were too slow.
    pub(super) capture_lost: Arc<AtomicU64>,
    events: History<Event>,
    news: News,
    pub(super) store: StoreIdentity,
    pub(super) started: Time,
    ending: AtomicBool,
    /// It ends with the daemon's connection.
    ends_with_connection: AtomicBool,
}

/// What the daemon has not fetched yet.
#[derive(Debug, Default)]
struct News {
    state: Mutex<NewsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct NewsState {
    /// There is something new.
    fresh: bool,
    /// The daemon was told so, and has not fetched it yet.
    told: bool,
    /// Boxes whose logs have grown.
    talkative: BTreeSet<BoxName>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FabricState {
    pub(super) fn boxes(&self) -> MutexGuard<'_, BTreeMap<BoxName, Arc<ManagedBox>>> {
        lock(&self.boxes)
    }

    /// All boxes, by name.
    pub(super) fn all(&self) -> Vec<Arc<ManagedBox>> {
        self.boxes().values().cloned().collect()
    }

    /// The box with this name.
    pub(super) fn managed_box(&self, name: &BoxName) -> Result<Arc<ManagedBox>, OperationError> {
        self.boxes().get(name).cloned().ok_or_else(|| OperationError::NoBox(name.clone()))
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Sets the thread that [`wake_monitor`](Self::wake_monitor) wakes.
    pub(super) fn set_monitor(&self, thread: Thread) {
        // There is one.
        let _ = self.monitor.set(thread);
    }

    /// Wakes the monitor to look at once for what is due.
    pub(super) fn wake_monitor(&self) {
        if let Some(thread) = self.monitor.get() {
            thread.unpark();
        }
    }

    /// Records an event. Texts from a box must already be escaped in `message`.
    pub(super) fn note(&self, kind: EventKind, subject: impl Into<Subject>, message: impl Into<String>) {
        let (subject, message, time) = (subject.into().to_string(), message.into(), Time::now());
        self.events.push(|sequence| Event { sequence, time, kind, subject, owner: None, message });
        self.announce(Vec::new());
    }

    /// Records that the logs of these boxes have grown.
    pub(super) fn note_talkative(&self, boxes: Vec<BoxName>) {
        if !boxes.is_empty() {
            self.announce(boxes);
        }
    }

    fn announce(&self, talkative: Vec<BoxName>) {
        let mut state = lock(&self.news.state);
        state.fresh = true;
        state.talkative.extend(talkative);
        let is_told = state.told;
        drop(state);
        if !is_told {
            self.news.changed.notify_all();
        }
    }
}

impl Drop for FabricState {
    fn drop(&mut self) {
        for managed in self.all() {
            managed.inner().removed = true;
            if let Some(instance) = managed.instance() {
                instance.discard();
            }
        }
        self.exit_events.wake();
        self.functions.wake();
    }
}

/// How long the idle thread of the switches polls for packets before it sleeps, where it shares no processor.
const SPIN_TIME: Duration = Duration::from_micros(50);

impl Fabric {
    /// Starts a fabric without boxes and switches, for the daemon of this store.
    pub fn start(settings: &Settings, host: HostSettings, store: StoreIdentity) -> Result<Self, StartError> {
        let (cores, exit_event) = (Arc::new(Processors::new()), Arc::new(EventFd::new()?));
        let spin_time = if settings.shares_processors { Duration::ZERO } else { SPIN_TIME };
        let system = |action| move |cause| SystemError { action, cause };
        let exit_events =
            ExitEvents::new(exit_event.clone()).map_err(system("watch for the end of boxes"))?;
        let fabric = Self(Arc::new(FabricState {
            boxes: Mutex::default(),
            switches: SwitchThread::start(cores.clone(), spin_time, settings.switch_threads)?,
            factory: SandboxFactory::new(settings, host, cores, exit_event)?,
            templates: Templates::default(),
            exit_events: Arc::new(exit_events),
            monitor: OnceLock::new(),
            checks: CheckSlots::new(MAX_QUICK_CHECKS, MAX_CHECKS, SLOW_CHECK),
            output_store: OutputStore::default(),
            functions: FunctionServer::new()?,
            captures: Arc::default(),
            capture_lost: Arc::default(),
            events: History::new(HistoryLimits {
                entries: MAX_EVENTS,
                bytes: MAX_EVENT_BYTES,
                size_of: |event| event.subject.len() + event.message.len(),
            }),
            news: News::default(),
            store,
            started: Time::now(),
            ending: AtomicBool::new(false),
            ends_with_connection: AtomicBool::new(false),
        }));
        fabric.start_monitor().map_err(system("start the monitor"))?;
        fabric.start_ended_flows().map_err(system("start the thread that notes ended flows"))?;
        fabric.start_handovers().map_err(system("start the thread that hands flows over"))?;
        fabric.start_silence().map_err(system("start the thread that ends silent instances"))?;
        Ok(fabric)
    }

    /// The store whose boxes it holds.
    pub(crate) fn store(&self) -> StoreIdentity {
        self.0.store
    }

    /// Whether it has no boxes and no switches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.boxes().is_empty()
            && self.0.switches.ask(|network| network.switch_names().next().is_none()).unwrap_or(true)
    }

    /// Creates the files that boxes write in this folder from now on.
    pub(crate) fn set_folder(&self, folder: OwnedFd) {
        self.0.output_store.set_folder(folder);
    }

    /// Events after a number, at most `most`.
    pub(crate) fn events(&self, after: u64, most: usize) -> (HistoryPage<Event>, Vec<BoxName>) {
        let talkative = {
            let mut state = lock(&self.0.news.state);
            (state.fresh, state.told) = (false, false);
            std::mem::take(&mut state.talkative)
        };
        (self.0.events.after(after, most), talkative.into_iter().collect())
    }

    /// The number of the last event.
    pub(crate) fn last_event(&self) -> u64 {
        self.0.events.last()
    }

    /// Lets the news be told again: to a new daemon, or because the message was lost.
    pub(crate) fn retell_news(&self) {
        lock(&self.0.news.state).told = false;
        self.wake_news();
    }

    /// Sleeps until there is something new that was neither fetched nor told, or until `stop` says so after a
    /// [`wake_news`](Self::wake_news). Returns whether there is something new, which then counts as told.
    pub(crate) fn wait_for_news(&self, stop: impl Fn() -> bool) -> bool {
        loop {
            let is_known = |state: &mut NewsState| (!state.fresh || state.told) && !stop();
            let waited = self.0.news.changed.wait_while(lock(&self.0.news.state), is_known);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if !stop() {
                std::thread::sleep(NEWS_DELAY);
            }
            if stop() {
                return false;
            }
            let mut state = lock(&self.0.news.state);
            if state.fresh && !state.told {
                state.told = true;
                return true;
            }
        }
    }

    /// Wakes the threads that wait for news.
    pub(crate) fn wake_news(&self) {
        let _state = lock(&self.0.news.state);
        self.0.news.changed.notify_all();
    }

    /// Ends all boxes, and refuses to start others.
    pub fn end(&self) {
        if self.0.ending.swap(true, Ordering::SeqCst) {
            return;
        }
        for managed in self.0.all() {
            managed.inner().unwanted = true;
            if let Some(instance) = managed.instance() {
                instance.discard();
            }
        }
        self.0.factory.spares.give_up(Duration::ZERO);
        self.0.exit_events.wake();
        self.0.functions.wake();
    }

    /// Lets the fabric end with the daemon's connection.
    pub(crate) fn set_ends_with_connection(&self) {
        self.0.ends_with_connection.store(true, Ordering::SeqCst);
    }

    /// Whether the fabric ends with the daemon's connection.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.0.ends_with_connection.load(Ordering::SeqCst)
    }

    /// Whether it is ending.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.is_ending()
    }
}
