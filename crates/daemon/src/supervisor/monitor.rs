//! The monitor: fetches events from the fabric, measures rates, and carries out what is due. A second thread keeps the
//! connection to the fabric.

use super::fabric_counter::Counter;
use super::rate_meter::Used;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use api::{EventKind, Subject, with_causes};
use protocol::fabric::{
    Asked, BoxRuntime, Client, EventPage, FabricError, InventoryReply, Reader, ResourceUsage, orders,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Interval between measurements.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);

/// How long the first event waits for others, which are fetched and stored together with it. Meanwhile the operation that
/// they are about is usually answered: it would otherwise wait for the store.
const GATHER_TIME: Duration = Duration::from_millis(5);

/// How long the start of the daemon waits for a fabric.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);

/// The most events that are fetched at once.
const MAX_EVENTS: u32 = 1024;

/// Channels for one order at a time: the threads that give an order and receive its answer without another one. More share a channel.
const ORDER_CHANNELS: usize = 4;

/// Pauses between attempts to restart a fabric that has ended: the first, and the longest.
const MIN_PAUSE: Duration = Duration::from_millis(1);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The pause from which on it is reported that a fabric has ended, even if it is not known how.
const REPORT_PAUSE: Duration = Duration::from_millis(32);

impl Supervisor {
    /// Connects to a fabric, and brings it to the stored state. Returns false if it has ended meanwhile: then the thread of
    /// its reader connects to the next one.
    pub(super) fn connect(&self, link: &Arc<FabricLink>) -> Result<bool, OperationError> {
        self.connect_after(link, &mut None)
    }

    /// As [`connect`](Self::connect), after the fabric `lost` has ended, which is reported and taken once it is known how.
    fn connect_after(
        &self,
        link: &Arc<FabricLink>,
        lost: &mut Option<String>,
    ) -> Result<bool, OperationError> {
        let (client, reader) = link.connect()?;
        let ending = link.take_ending();
        if let Some(name) = lost.take() {
            let ending = ending.map_or_else(|| "has ended".to_string(), |ending| ending.to_string());
            self.0.journal.note(EventKind::FabricLost, Subject::Daemon, format!("{name} {ending}"));
        }
        self.start_reader(link, &client, reader)?;
        let rebuild = self.0.rebuilds.begin();
        link.set(client.clone());
        let rebuilt = self.reconcile(link);
        drop(rebuild);
        match rebuilt {
            Ok(()) => {
                // Orders can do without them.
                let _ = client.open_channels(ORDER_CHANNELS);
                Ok(true)
            }
            // Its reader then does not connect again, because the caller does.
            Err(failure) if link.lost(&client) => Err(failure),
            Err(_) => Ok(false),
        }
    }

    /// Finds out which events of this fabric were fetched, possibly by an earlier daemon.
    pub(super) fn find_fetched(
        &self,
        link: &FabricLink,
        there: &InventoryReply,
    ) -> Result<(), OperationError> {
        let started = match there.started {
            Some(started) => started,
            // An earlier version. The others answer this order only when their spawner has started.
            None => link.ask(orders::Facts {})?.started,
        };
        let started = started.system().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = u64::try_from(started.as_millis()).unwrap_or(u64::MAX);
        let (events, start) = (Counter::Events.name(link.number()), Counter::Started.name(link.number()));
        let _fetching = self.0.fetching();
        let mut store = self.0.store();
        let fetched = match store.counter(&start)? == started {
            true => store.counter(&events)?,
            false => {
                // A power failure ends the fabric too.
                store.set_volatile_counters(&[(&events, 0), (&start, started)])?;
                0
            }
        };
        link.fetched.store(fetched, Ordering::Relaxed);
        Ok(())
    }

    fn start_reader(
        &self,
        link: &Arc<FabricLink>,
        client: &Arc<Client>,
        reader: Reader,
    ) -> Result<(), OperationError> {
        let (state, news, client) = (Arc::downgrade(&self.0), self.0.news.clone(), client.clone());
        let link = link.clone();
        let run = move || {
            let why = reader.run(move |_| news.announce());
            if let Some(state) = state.upgrade()
                && link.lost(&client)
            {
                Self::of(state).replace_lost(&link, why);
            }
        };
        let thread = std::thread::Builder::new().name("fabric".into()).spawn(run);
        thread.map(drop).map_err(|error| OperationError::system("watch the fabric", error))
    }

    /// Connects to a fabric that may be just ending.
    pub(super) fn connect_first(&self, link: &Arc<FabricLink>) -> Result<(), OperationError> {
        let start = Instant::now();
        loop {
            match self.connect(link) {
                // A fabric that ends with the daemon before may still be there.
                Err(OperationError::Fabric(FabricError::Disconnected)) if start.elapsed() < FIRST_TIMEOUT => {
                    std::thread::sleep(MIN_PAUSE);
                }
                result => return result.map(drop),
            }
        }
    }

    /// Starts another fabric after one has ended.
    fn replace_lost(&self, link: &Arc<FabricLink>, why: Option<String>) {
        if self.0.is_ending() || link.is_closed() {
            return;
        }
        let name = self.fabric_name(link);
        let Some(why) = why else { return self.reconnect_after(link, Some(name)) };
        let message = format!("{name} violated the protocol: {why}");
        self.0.journal.note(EventKind::FabricLost, Subject::Daemon, message);
        self.reconnect(link);
    }

    /// Starts another fabric, again and again until one runs.
    pub(super) fn reconnect(&self, link: &Arc<FabricLink>) {
        self.reconnect_after(link, None);
    }

    /// As [`reconnect`](Self::reconnect), after the fabric `lost` has ended, which is reported.
    fn reconnect_after(&self, link: &Arc<FabricLink>, mut lost: Option<String>) {
        let name = self.fabric_name(link);
        let (start, mut pause) = (Instant::now(), MIN_PAUSE);
        while !self.0.is_ending() && !link.is_closed() {
            match self.connect_after(link, &mut lost) {
                Ok(false) => return,
                Ok(true) => {
                    let message = format!(
                        "{name} was restarted with all boxes in {:.1} ms",
                        start.elapsed().as_secs_f64() * 1e3
                    );
                    self.0.journal.note(EventKind::FabricRestarted, Subject::Daemon, message);
                    return;
                }
                Err(failure) => {
                    // The next attempt may tell how it ended.
                    if let Some(name) = lost.take_if(|_| pause >= REPORT_PAUSE) {
                        let message = format!("{name} has ended");
                        self.0.journal.note(EventKind::FabricLost, Subject::Daemon, message);
                    }
                    if pause == MAX_PAUSE / 2 {
                        let message = format!("{name} can't be restarted: {}", with_causes(&failure));
                        self.0.journal.note(EventKind::FabricLost, Subject::Daemon, message);
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    }

    /// Starts the monitor. It ends with the last supervisor.
    pub(super) fn start_monitor(&self) -> io::Result<()> {
        let (state, news) = (Arc::downgrade(&self.0), self.0.news.clone());
        let run = move || {
            let mut due = Instant::now();
            loop {
                news.wait(due, GATHER_TIME);
                let Some(state) = Weak::upgrade(&state) else { return };
                let supervisor = Self::of(state);
                if supervisor.0.is_ending() {
                    return;
                }
                supervisor.fetch_events();
                supervisor.0.save_events();
                if due <= Instant::now() {
                    due = Instant::now() + MEASURE_INTERVAL;
                    let _ = supervisor.measure();
                    supervisor.roll_back_due();
                    supervisor.retire_fabrics();
                    supervisor.remove_unused_images();
                    supervisor.0.reserve_events();
                }
            }
        };
        std::thread::Builder::new().name("events".into()).spawn(run).map(drop)
    }

    /// Fetches the fabrics' new events into the journal.
    pub(super) fn fetch_events(&self) {
        let _fetching = self.0.fetching();
        for link in self.0.fabrics.all() {
            // If the fabric has ended, its events are lost, and another one starts.
            let _ = self.fetch_events_of(&link);
        }
    }

    /// Asks the fabrics for their new events while `meanwhile` runs, and then fetches them into the journal if it succeeds.
    pub(super) fn fetch_events_after<T, E>(&self, meanwhile: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let _fetching = self.0.fetching();
        let links = self.0.fabrics.all();
        let begun: Vec<_> = links.iter().map(|link| link.begin_now(next_events(link)).ok()).collect();
        let done = meanwhile()?;
        for (link, begun) in links.iter().zip(begun) {
            // As above.
            let _ = begun.map(|begun| self.take_events(link, begun.wait()?));
        }
        Ok(done)
    }

    fn fetch_events_of(&self, link: &FabricLink) -> Result<(), OperationError> {
        let page = link.ask_now(next_events(link))?;
        self.take_events(link, page)
    }

    /// Takes a page of events into the journal, and fetches those after it.
    fn take_events(&self, link: &FabricLink, mut page: EventPage) -> Result<(), OperationError> {
        loop {
            if self.0.is_ending() {
                // The journal is complete. The next daemon fetches them.
                return Ok(());
            }
            let is_full = page.events.len() >= MAX_EVENTS as usize;
            if page.lost > 0 {
                self.0.lacks_port_numbers.store(true, Ordering::Relaxed);
                let message = format!("{} events of {} were discarded", page.lost, self.fabric_name(link));
                self.0.journal.note(EventKind::EventsLost, Subject::Daemon, message);
            }
            for name in page.talkative {
                if let Ok(managed) = self.0.managed_box(&name) {
                    managed.log.send_replace(());
                }
            }
            let Some(last) = page.events.last() else { return Ok(()) };
            link.fetched.store(last.sequence, Ordering::Relaxed);
            self.store_changed_writes(&page.events);
            self.store_joined_numbers(&page.events);
            page.events.into_iter().for_each(|event| self.0.journal.forward(event));
            // A page with room has all events that there were. The fabric announces others.
            if !is_full {
                return Ok(());
            }
            page = link.ask_now(next_events(link))?;
        }
    }

    /// Measures traffic and processor time of everything.
    fn measure(&self) -> Result<(), OperationError> {
        let snapshot = self.0.fabrics.traffic()?;
        let runtimes = self.0.fabrics.runtimes(Asked::Active)?;
        let used = |runtime: BoxRuntime| {
            let ResourceUsage { time, .. } = runtime.usage;
            let lost = runtime.drops.values().sum();
            (runtime.name, Used { time, cores: runtime.core_times, lost })
        };
        let used: BTreeMap<_, _> = sorting::collect(runtimes.into_iter().map(used));
        self.store_lacking_numbers();
        self.recover_ports(&snapshot);
        self.0.meter().advance(Instant::now(), snapshot, used);
        Ok(())
    }
}

/// The order for the events of a fabric that were not fetched yet.
fn next_events(link: &FabricLink) -> orders::Events {
    orders::Events { after: link.fetched.load(Ordering::Relaxed), most: MAX_EVENTS }
}
