//! The supervisor's state, its start and its shutdown.

use super::claims::Claims;
use super::fabric_counter::Counter;
use super::function_sockets::FunctionSockets;
use super::hop_meter::HopMeter;
use super::image_table::ImageTable;
use super::link_table::Links;
use super::load_watch::LoadWatch;
use super::managed_box::ManagedBox;
use super::pending_confirmation::PendingConfirmation;
use super::rate_meter::RateMeter;
use super::rebuilds::Rebuilds;
use crate::audit::{Audit, AuditError, PendingEntry};
use crate::caller::Caller;
use crate::error::OperationError;
use crate::fabric::{FabricLink, Fabrics};
use crate::file_system::FileSystem;
use crate::journal::Journal;
use crate::news::News;
use crate::settings::Settings;
use crate::store::{DRAINING, Damage, Store, StoreError, StoredSwitch};
use crate::symbols::SymbolFile;
use crate::upgrade::UpgradeHelper;
use api::Subject;
use api::{BoxName, Event, EventKind, PortName, StackName, SwitchName, Time};
use protocol::StoreIdentity;
use protocol::fabric::{CheckLimits, PortNumberMark, orders};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Event numbers that are reserved at once, so that no number is used twice after an unexpected end.
const EVENT_BLOCK: u64 = 1 << 16;

/// Events that are stored in one transaction.
const SAVED_AT_ONCE: usize = 256;

/// The time after which events are stored again when that failed.
const SAVE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why a daemon cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The store could not be opened or read.
    Store(StoreError),
    /// The audit log could not be opened.
    Audit(AuditError),
    /// There is no fabric, or the stored state could not be restored.
    Operation(OperationError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Audit(error) => error.fmt(f),
            Self::Operation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Store(error) => error.source(),
            Self::Audit(error) => error.source(),
            Self::Operation(error) => error.source(),
        }
    }
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AuditError> for StartError {
    fn from(error: AuditError) -> Self {
        Self::Audit(error)
    }
}

impl From<OperationError> for StartError {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

/// How far the journal is stored.
#[derive(Debug)]
struct SavedEvents {
    /// The number of the last stored event.
    until: u64,
    /// When to try again after a failure.
    retry: Option<Instant>,
}

/// All boxes and switches as they are defined. Clones share them. What runs is in the fabrics, which go on without.
///
/// A supervisor acts for a [`Caller`], in a request whose entry of the audit log it stores; [`start`](Self::start) makes one for an
/// administrator and no request.
///
/// Lock order: claims, a box's `change` lock, then `change`, then one of the others, held briefly.
#[derive(Clone, Debug)]
pub struct Supervisor(pub(super) Arc<SupervisorState>, pub(super) Caller, pub(super) PendingEntry);

/// What is known of the socket of a port at which peers connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketKnowledge {
    /// It was there when it was last looked at.
    Seen,
    /// An earlier daemon had the port. The socket may have been removed before this one looked.
    Doubtful,
}

/// The shared state.
#[derive(Debug)]
pub(super) struct SupervisorState {
    boxes: Mutex<BTreeMap<BoxName, Arc<ManagedBox>>>,
    switches: Mutex<BTreeMap<SwitchName, StoredSwitch>>,
    store: Mutex<Store>,
    pub(super) fabrics: Fabrics,
    /// The limits of each check of a configuration.
    pub(super) check_limits: CheckLimits,
    /// The images that users gave. It is locked before the boxes and the store.
    images: Mutex<ImageTable>,
    /// Held while the fabric of another owner is added.
    adding_fabric: Mutex<()>,
    links: Mutex<Links>,
    /// Held while events are fetched from the fabrics.
    fetching: Mutex<()>,
    pub(super) news: Arc<News>,
    pub(super) journal: Journal,
    pub(crate) audit: Audit,
    pub(super) meter: Mutex<RateMeter>,
    pub(super) hops: Mutex<HopMeter>,
    /// What was seen of the services that are scaled by their load.
    load_watch: Mutex<LoadWatch>,
    /// The objects that operations in progress use.
    pub(super) claims: Claims,
    /// The sockets at which functions join services.
    pub(super) function_sockets: FunctionSockets,
    /// Held while attachments change.
    change: Mutex<()>,
    /// Switch ports that are down, and why: their device could not be opened, or failed.
    pub(super) faults: Mutex<BTreeMap<(SwitchName, PortName), String>>,
    /// What is known of the sockets of ports at which peers connect. It has no socket that is known to be missing.
    sockets: Mutex<BTreeMap<(SwitchName, PortName), SocketKnowledge>>,
    /// Up to where the numbers of steering switches' names are stored.
    port_marks: Mutex<BTreeMap<SwitchName, PortNumberMark>>,
    /// Whether numbers may be missing in the store, of which no operation and no event tells any more.
    pub(super) lacks_port_numbers: AtomicBool,
    /// The folder for the files that boxes write. `None`: the system's folder for temporary files.
    pub(super) output_folder: Option<PathBuf>,
    /// The file of the store. `None`: it is in memory.
    pub(super) store_file: Option<PathBuf>,
    /// Whether the fabrics end with this daemon.
    pub(super) ends_fabric: bool,
    /// Starts the program that replaces this one.
    pub(super) upgrade_helper: Option<Arc<UpgradeHelper>>,
    /// Stacks that await confirmation.
    pending: Mutex<BTreeMap<StackName, PendingConfirmation>>,
    pub(super) started: Time,
    pub(super) image: String,
    /// The image's symbols.
    pub(super) symbols: Option<SymbolFile>,
    events_until: Mutex<u64>,
    saved_events: Mutex<SavedEvents>,
    /// Whether new boxes and starts are refused.
    pub(super) draining: AtomicBool,
    /// Which fabrics do not have all boxes again.
    pub(super) rebuilds: Rebuilds,
    ending: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SupervisorState {
    pub(super) fn boxes(&self) -> MutexGuard<'_, BTreeMap<BoxName, Arc<ManagedBox>>> {
        lock(&self.boxes)
    }

    pub(super) fn switches(&self) -> MutexGuard<'_, BTreeMap<SwitchName, StoredSwitch>> {
        lock(&self.switches)
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }

    pub(super) fn images(&self) -> MutexGuard<'_, ImageTable> {
        lock(&self.images)
    }

    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        lock(&self.change)
    }

    pub(super) fn meter(&self) -> MutexGuard<'_, RateMeter> {
        lock(&self.meter)
    }

    pub(super) fn hops(&self) -> MutexGuard<'_, HopMeter> {
        lock(&self.hops)
    }

    pub(super) fn load_watch(&self) -> MutexGuard<'_, LoadWatch> {
        lock(&self.load_watch)
    }

    pub(super) fn fetching(&self) -> MutexGuard<'_, ()> {
        lock(&self.fetching)
    }

    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }

    pub(super) fn adding_fabric(&self) -> MutexGuard<'_, ()> {
        lock(&self.adding_fabric)
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, BTreeMap<(SwitchName, PortName), String>> {
        lock(&self.faults)
    }

    pub(super) fn sockets(&self) -> MutexGuard<'_, BTreeMap<(SwitchName, PortName), SocketKnowledge>> {
        lock(&self.sockets)
    }

    pub(super) fn port_marks(&self) -> MutexGuard<'_, BTreeMap<SwitchName, PortNumberMark>> {
        lock(&self.port_marks)
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, BTreeMap<StackName, PendingConfirmation>> {
        lock(&self.pending)
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

    /// Reports damage of the store.
    pub(super) fn note_damage(&self, damage: &Damage) {
        self.journal.note(EventKind::StoreDamaged, damage.subject(), damage.to_string());
    }

    /// Reserves event numbers when few are left.
    pub(super) fn reserve_events(&self) {
        let mut until = lock(&self.events_until);
        if self.journal.history.last() + EVENT_BLOCK / 2 > *until {
            let next = self.journal.history.last() + EVENT_BLOCK;
            // If the disk is full, the remaining reserved numbers are used.
            if self.store().set_counter("events", next).is_ok() {
                *until = next;
            }
        }
    }
}

impl SupervisorState {
    /// Stores new events. If the store is in use, or its disk is full, the events wait: nothing waits for them.
    pub(super) fn save_events(&self) {
        let fetched = {
            let _fetching = self.fetching();
            let links = self.fabrics.all();
            let fetched = |link: &Arc<FabricLink>| {
                (Counter::Events.name(link.number()), link.fetched.load(Ordering::Relaxed))
            };
            links.iter().map(fetched).collect::<Vec<_>>()
        };
        let mut saved = lock(&self.saved_events);
        if saved.until == self.journal.history.last()
            || saved.retry.is_some_and(|retry| retry > Instant::now())
        {
            return;
        }
        let Ok(mut store) = self.store.try_lock() else { return };
        loop {
            let page = self.journal.history.after(saved.until, SAVED_AT_ONCE);
            let Some((last, _)) = page.entries.last() else { break };
            let last = *last;
            let events: Vec<Event> = page.entries.into_iter().map(|(_, event)| event).collect();
            if store.save_events(&events, self.journal.history.first(), &fetched).is_err() {
                saved.retry = Some(Instant::now() + SAVE_RETRY_INTERVAL);
                break;
            }
            (saved.until, saved.retry) = (last, None);
        }
    }
}

impl Drop for SupervisorState {
    fn drop(&mut self) {
        self.fabrics.close();
    }
}

impl Supervisor {
    /// The supervisor with this state, for what the daemon does by itself.
    pub(super) fn of(state: Arc<SupervisorState>) -> Self {
        Self(state, Caller::Administrator, PendingEntry::default())
    }

    /// Names the file system in the error of an operation that could not be stored for want of room.
    pub(crate) fn name_file_system(&self, error: OperationError) -> OperationError {
        match (error, &self.0.store_file) {
            (OperationError::Store(StoreError::Full), Some(file)) => {
                OperationError::StoreFull(FileSystem::of(file))
            }
            (error, _) => error,
        }
    }

    /// Whether the threads that move packets respond. Blocks until they do.
    pub(crate) fn is_responsive(&self) -> bool {
        self.0.fabrics.are_responsive()
    }

    /// Starts a supervisor: restores the stored boxes and switches, and starts the boxes that ran.
    pub fn start(settings: &Settings) -> Result<Self, StartError> {
        let supervisor = Self::start_unwatched(settings)?;
        let watched = supervisor.watch_services();
        watched.map_err(|error| OperationError::system("watch the services", error))?;
        Ok(supervisor)
    }

    /// The same without the thread that watches services: tests decide when they are looked at.
    pub(super) fn start_unwatched(settings: &Settings) -> Result<Self, StartError> {
        let store = Store::open(settings.store.as_deref(), settings.store_pages)?;
        // No other daemon could adopt the boxes of one without a store.
        Self::start_with_store(settings, store, settings.ends_fabric || settings.store.is_none())
    }

    /// The same with a store that is open already.
    pub(super) fn start_with_store(
        settings: &Settings,
        mut store: Store,
        ends_fabric: bool,
    ) -> Result<Self, StartError> {
        let (damage, interrupted) = (store.take_damage(), store.take_interrupted());
        let (earlier, events) = (store.events()?, store.counter("events")?);
        let news = Arc::<News>::default();
        let journal = Journal::new(earlier, events, news.clone());
        let events = journal.history.last();
        let until = events + EVENT_BLOCK;
        // Detects now whether the store is writable.
        store.set_counter("events", until)?;
        let identity = identity(&mut store)?;
        let draining = store.counter(DRAINING)? > 0;
        let images = ImageTable::new(store.image_digests()?);
        let audit =
            Audit::open(settings.store.as_deref().map(audit_path).as_deref(), store.audit_entries()?)?;
        let state = SupervisorState {
            boxes: Mutex::default(),
            switches: Mutex::default(),
            store: Mutex::new(store),
            check_limits: settings.check_limits,
            fabrics: Fabrics::new(settings.connector.clone(), identity, settings.fabric_per_owner),
            images: Mutex::new(images),
            adding_fabric: Mutex::default(),
            links: Mutex::default(),
            fetching: Mutex::default(),
            news,
            journal,
            audit,
            meter: Mutex::default(),
            hops: Mutex::default(),
            load_watch: Mutex::default(),
            claims: Claims::default(),
            function_sockets: FunctionSockets::new(settings.function_folder.clone()),
            change: Mutex::default(),
            output_folder: settings.store.as_deref().and_then(output_folder),
            store_file: settings.store.clone(),
            ends_fabric,
            upgrade_helper: settings.upgrade_helper.clone(),
            faults: Mutex::default(),
            sockets: Mutex::default(),
            port_marks: Mutex::default(),
            lacks_port_numbers: AtomicBool::new(false),
            pending: Mutex::default(),
            started: Time::now(),
            image: settings.image_name.clone(),
            symbols: settings.symbols.clone(),
            events_until: Mutex::new(until),
            saved_events: Mutex::new(SavedEvents { until: events, retry: None }),
            draining: AtomicBool::new(draining),
            rebuilds: Rebuilds::default(),
            ending: AtomicBool::new(false),
        };
        let supervisor = Self::of(Arc::new(state));
        for damage in damage {
            supervisor.0.note_damage(&damage);
        }
        for interrupted in &interrupted {
            let (subject, message) = (interrupted.subject.clone(), interrupted.to_string());
            supervisor.0.journal.note(EventKind::OperationInterrupted, subject, message);
        }
        supervisor.load()?;
        supervisor.connect_all()?;
        supervisor.start_interrupted(&interrupted);
        supervisor.start_monitor().map_err(|error| OperationError::system("start the monitor", error))?;
        supervisor.watch_launcher().map_err(|error| OperationError::system("watch the launcher", error))?;
        supervisor.roll_back_unconfirmed()?;
        if settings.store.is_some() {
            supervisor.check_store_beside_service();
        }
        let message = format!("the daemon {} started", env!("CARGO_PKG_VERSION"));
        supervisor.0.journal.note(EventKind::DaemonStarted, Subject::Daemon, message);
        Ok(supervisor)
    }

    /// Refuses further changes. All boxes go on; the next daemon adopts them.
    pub fn end(&self) {
        {
            // Events that are being fetched come before the last one.
            let _fetching = self.0.fetching();
            if self.0.ending.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        self.0.journal.note(EventKind::DaemonStopping, Subject::Daemon, "the daemon is shutting down");
        self.0.fabrics.close();
    }

    /// Ends all boxes and the fabrics too. The store is unchanged, so that the next daemon starts them again.
    pub fn end_all(&self) {
        let ending = self.0.is_ending();
        if !ending {
            // What boxes have written themselves is stored, so that the next daemon can tell that it is lost.
            self.fetch_events();
            // An error means that the fabric has ended already.
            for link in self.0.fabrics.all() {
                let _ = link.ask(orders::End {});
            }
        }
        self.end();
        self.0.fabrics.connector().end();
    }

    /// Writes all definitions into the store's file, without a write-ahead log beside it. Call it after
    /// [`end`](Self::end), when no operation runs: later changes fail.
    pub fn close_store(&self) {
        self.0.save_events();
        let mut store = self.0.store();
        // No later event is stored, so the next daemon continues the numbers without a gap.
        let _ = store.set_counter("events", lock(&self.0.saved_events).until);
        // If it fails, for example because the disk is full, the definitions stay in the log, which is read at the next
        // start.
        let _ = store.close();
    }

    /// Ends the daemon as if it had been killed: what it does later has no effect. Returns the store as the next one finds it.
    #[cfg(test)]
    pub(super) fn kill(&self) -> Store {
        self.0.ending.store(true, Ordering::SeqCst);
        self.0.fabrics.close();
        self.0.store().leave().unwrap()
    }

    /// Whether the daemon is shutting down.
    pub fn is_ending(&self) -> bool {
        self.0.is_ending()
    }
}

/// The number that tells the store from others. It is made when the store is.
fn identity(store: &mut Store) -> Result<StoreIdentity, StoreError> {
    let mut identity = StoreIdentity::default();
    for (name, half) in ["identity_high", "identity_low"].into_iter().zip(identity.chunks_exact_mut(8)) {
        let mut number = store.counter(name)?;
        if number == 0 {
            // The hasher's keys come from the system's random numbers. The store holds 63 bits.
            number = RandomState::new().hash_one(name) >> 1 | 1;
            store.set_counter(name, number)?;
        }
        half.copy_from_slice(&number.to_be_bytes());
    }
    Ok(identity)
}

/// The path of the audit log of a store.
fn audit_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".audit");
    path.into()
}

/// The folder for the files that boxes write: beside the store.
fn output_folder(store: &Path) -> Option<PathBuf> {
    let mut path = std::path::absolute(store).ok()?.into_os_string();
    path.push(".files");
    Some(path.into())
}
