//! Reads the accounts of all places through which packets pass.
//!
//! Boxes and network are read twice, alternately. A row has the numbers of one reading of each side; what changed between
//! the readings bounds by how much the two sides can differ.

use super::state::Fabric;
use crate::boxes::{ManagedBox, PastAccount};
use crate::error::OperationError;
use crate::limits::{ACCOUNT_TIMEOUT, ACCOUNTS_TIMEOUT};
use crate::network::{NetworkAccount, add_to_service};
use boundary::Stats;
use model::{AccountPlace, AccountRow, BoxName, ServiceName, SwitchName};
use reason::{Name, Reason};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::RingBooks;

/// Which places to read: the names of boxes and switches; `None` means all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountFilter<'a> {
    pub(crate) boxes: Option<&'a [BoxName]>,
    pub(crate) switches: Option<&'a [SwitchName]>,
    /// Also services and chains.
    pub(crate) services: bool,
}

/// How often the reading is repeated if a box starts or ends meanwhile.
const MAX_READINGS: usize = 3;

/// What a box reports of itself, and which of its runs reports it.
#[derive(Debug, Default)]
struct Word {
    /// Identifies the run; `None` while the box does not run.
    run: Option<usize>,
    stats: Option<Stats>,
    past: PastAccount,
}

type Words = BTreeMap<BoxName, Word>;

impl Fabric {
    /// The accounts of these places.
    pub(crate) fn account(&self, filter: AccountFilter) -> Result<Vec<AccountRow>, OperationError> {
        let boxes: Vec<Arc<ManagedBox>> = match filter.boxes {
            None => self.0.all(),
            Some(names) => {
                let mut all = names.to_vec();
                if filter.services {
                    let asked = names.to_vec();
                    all.extend(self.0.switches.ask(move |network| network.leaving_with(&asked))?);
                }
                all.iter().filter_map(|name| self.0.managed_box(name).ok()).collect()
            }
        };
        let mut readings = 0;
        loop {
            readings += 1;
            let words_before = self.words(&boxes);
            let before = self.0.switches.ask(|network| network.account())?;
            let words = self.words(&boxes);
            let after = self.0.switches.ask(|network| network.account())?;
            let same = |(name, word): (&BoxName, &Word)| {
                words_before.get(name).is_some_and(|before| before.run == word.run)
            };
            if words.iter().all(same) || readings == MAX_READINGS {
                let mut rows = network_rows(filter, &before, &after);
                let box_rows: BTreeMap<&BoxName, Vec<AccountRow>> =
                    sorting::collect(words.iter().map(|(name, word)| {
                        (name, box_rows(name, [words_before.get(name), Some(word)], [&before, &after]))
                    }));
                if filter.services {
                    rows.extend(service_rows(&after, &box_rows));
                }
                rows.extend(box_rows.into_values().flatten());
                return Ok(rows);
            }
        }
    }

    fn words(&self, boxes: &[Arc<ManagedBox>]) -> Words {
        let until = Instant::now() + ACCOUNTS_TIMEOUT;
        let word = |managed: &Arc<ManagedBox>| {
            let time = until.saturating_duration_since(Instant::now()).min(ACCOUNT_TIMEOUT);
            let (run, stats) = self.own_word(managed, time);
            (managed.name.clone(), Word { run, stats, past: managed.inner().past_account() })
        };
        boxes.iter().map(word).collect()
    }

    /// Asks a box for its counters, and keeps them.
    fn own_word(&self, managed: &Arc<ManagedBox>, time: Duration) -> (Option<usize>, Option<Stats>) {
        let Some(instance) = managed.instance() else { return (None, None) };
        let run = Some(Arc::as_ptr(&instance).addr());
        let stats = if managed.inner().is_running() { instance.stats_within(time) } else { None };
        let mut inner = managed.inner();
        if let (Some(stats), Some(present)) = (&stats, &inner.instance)
            && Arc::ptr_eq(present, &instance)
        {
            inner.update_account(stats);
        }
        (run, stats)
    }
}

/// The rows of ports, switches, links and pipes.
fn network_rows(filter: AccountFilter, before: &NetworkAccount, after: &NetworkAccount) -> Vec<AccountRow> {
    let has_switch = |name: &SwitchName| filter.switches.is_none_or(|switches| switches.contains(name));
    let has_box = |name: &BoxName| filter.boxes.is_none_or(|boxes| boxes.contains(name));
    // A port of a box that was asked for is shown without its switch.
    let box_ports = &before.box_ports;
    let is_shown = |row: &AccountRow| match &row.place {
        AccountPlace::Switch { switch } => has_switch(switch),
        AccountPlace::Chain { switch, .. } => filter.services && has_switch(switch),
        AccountPlace::Port { switch, port } => {
            has_switch(switch) || box_ports.get(&(switch.clone(), port.clone())).is_some_and(&has_box)
        }
        AccountPlace::Link { switch, far_switch, .. } => has_switch(switch) || has_switch(far_switch),
        AccountPlace::Pipe { ends, .. } => ends.iter().any(|(name, _)| has_box(name)),
        _ => true,
    };
    let last: BTreeMap<&AccountPlace, &AccountRow> =
        sorting::collect(after.rows.iter().map(|row| (&row.place, row)));
    let row = |row: &AccountRow| {
        let moved = last.get(&row.place).map_or(0, |last| passed(last).saturating_sub(passed(row)));
        AccountRow { moved, ..row.clone() }.compare()
    };
    before.rows.iter().filter(|row| is_shown(row)).map(row).collect()
}

/// Packets that came into a place or were made there.
fn passed(row: &AccountRow) -> u64 {
    row.incoming.unwrap_or(0).saturating_add(row.made)
}

/// The rows of the services whose instances are all asked for: sums over these, and over those that were removed.
fn service_rows(network: &NetworkAccount, boxes: &BTreeMap<&BoxName, Vec<AccountRow>>) -> Vec<AccountRow> {
    let of = |(service, instances): (&ServiceName, &Vec<BoxName>)| {
        let all: Option<Vec<&Vec<AccountRow>>> = instances.iter().map(|name| boxes.get(name)).collect();
        let is_ring = |row: &&AccountRow| {
            matches!(row.place, AccountPlace::ReceiveRing { .. } | AccountPlace::TransmitRing { .. })
        };
        // What passed the rings is taken from what the boxes report.
        let (rings, boxes): (Vec<_>, Vec<_>) = all?.into_iter().flatten().partition(is_ring);
        let rows = network.removed.get(service).into_iter().chain(boxes).chain(rings);
        let place = AccountPlace::Service { service: service.clone() };
        Some(rows.fold(AccountRow::new(place), add_to_service).compare())
    };
    // What functions in other processes do with their packets is not known.
    network.services.iter().filter(|(_, instances)| !instances.is_empty()).filter_map(of).collect()
}

/// The rows of a box: its rings, its inside, and its earlier runs. The network was read before the box's last word.
fn box_rows(
    name: &BoxName,
    [before, word]: [Option<&Word>; 2],
    [first, last]: [&NetworkAccount; 2],
) -> Vec<AccountRow> {
    let mut rows = Vec::new();
    let Some(word) = word else { return rows };
    let stats = word.stats.as_ref();
    for ((_, port), rings) in first.rings.range((name.clone(), 0)..=(name.clone(), u8::MAX)) {
        let later = last.rings.get(&(name.clone(), *port)).unwrap_or(rings);
        let own = stats.and_then(|stats| stats.ports.get(usize::from(*port)));
        // What the box took out of the ring, and put into it, between the host's two readings.
        let received = |rings: &RingBooks| rings.put.saturating_sub(rings.waiting_to_box);
        let sent = |rings: &RingBooks| rings.taken.saturating_add(rings.waiting_from_box);
        let place = AccountPlace::ReceiveRing { name: name.clone(), port: *port };
        rows.push(AccountRow {
            own_word: true,
            incoming: Some(rings.put),
            out: own.map(|own| own.received_packets),
            waiting: Some(rings.waiting_to_box),
            moved: received(later).saturating_sub(received(rings)),
            ..AccountRow::new(place)
        });
        let place = AccountPlace::TransmitRing { name: name.clone(), port: *port };
        rows.push(AccountRow {
            own_word: true,
            incoming: own.map(|own| own.sent_packets),
            out: Some(rings.taken),
            waiting: Some(rings.waiting_from_box),
            moved: sent(later).saturating_sub(sent(rings)),
            ..AccountRow::new(place)
        });
    }
    if word.run.is_some() {
        rows.push(inside(name, stats, before.and_then(|before| before.stats.as_ref())));
    }
    let ended = last.ended.get(name).copied().unwrap_or_default();
    if ended != RingBooks::default() || !word.past.is_empty() {
        rows.push(ended_row(name, &word.past, &ended));
    }
    rows.into_iter().map(AccountRow::compare).collect()
}

/// The inside of a box, as the box reports.
fn inside(name: &BoxName, stats: Option<&Stats>, before: Option<&Stats>) -> AccountRow {
    let row = AccountRow { own_word: true, ..AccountRow::new(AccountPlace::Box { name: name.clone() }) };
    let Some(stats) = stats else { return AccountRow { incoming: None, out: None, waiting: None, ..row } };
    let fates = &stats.account.fates;
    let began = |stats: &Stats| {
        let fates = &stats.account.fates;
        fates.received.saturating_add(fates.made).saturating_add(fates.copied)
    };
    let mut lost = BTreeMap::new();
    for (reason, count) in stats.drops.iter().filter(|(_, count)| *count > 0) {
        let sum: &mut u64 = lost.entry(Name::parse(reason).as_str().to_string()).or_default();
        *sum = sum.saturating_add(*count);
    }
    AccountRow {
        incoming: Some(fates.received),
        made: fates.made.saturating_add(fates.copied),
        out: Some(fates.delivered),
        lost,
        discarded: fates.discarded,
        consumed: fates.consumed.saturating_add(fates.merged),
        waiting: Some(stats.account.waiting),
        moved: before.map_or(0, |before| began(stats).saturating_sub(began(before))),
        ..row
    }
}

/// What became of the packets of a box's earlier runs. The fabric counted what came into the rings and out of them, and
/// what they and the box's pool held at the end; the rest is the last report of each run.
pub(super) fn ended_row(name: &BoxName, past: &PastAccount, rings: &RingBooks) -> AccountRow {
    let PastAccount { account, drops, received, sent, is_estimated } = past;
    let mut lost: BTreeMap<String, u64> = sorting::collect(
        drops.iter().filter(|(_, count)| **count > 0).map(|(reason, count)| (reason.clone(), *count)),
    );
    if rings.waiting() > 0 {
        *lost.entry(Reason::BOX_ENDED.name().into()).or_default() += rings.waiting();
    }
    // What the box received and delivered elsewhere than at its ports: files.
    let files_read = account.received.saturating_sub(*received);
    let files_written = account.delivered.saturating_sub(*sent);
    // What went in and out during the last turns, of which the rest is not known.
    let taken_out = rings.put.saturating_sub(rings.waiting_to_box);
    let put_in = rings.taken.saturating_add(rings.waiting_from_box);
    let moved = taken_out.saturating_sub(*received).max(put_in.saturating_sub(*sent));
    AccountRow {
        own_word: true,
        estimated: *is_estimated,
        moved,
        incoming: Some(rings.put),
        made: account.made.saturating_add(account.copied).saturating_add(files_read),
        out: Some(rings.taken),
        lost,
        discarded: account.discarded,
        delivered: files_written,
        consumed: account.consumed.saturating_add(account.merged),
        ..AccountRow::new(AccountPlace::Ended { name: name.clone() })
    }
}
