//! The record of a box.

use super::account;
use super::cpu_budget::CpuBudget;
use super::factory::CreatedBox;
use super::instance::Instance;
use super::output_store::Outputs;
use super::silence::Silence;
use super::write_record::WriteRecord;
use crate::fair_lock::FairLock;
use crate::history::{History, HistoryLimits};
use crate::limits::{MAX_LOG_BYTES, MAX_LOG_LINES};
use boundary::limits::MAX_DROP_REASONS;
use boundary::{PublishedAccount, Stats};
use model::{BoxName, CrashReport, CreateBox, LogLine, PacketAccount, PacketPlaces, Time};
use protocol::fabric::{self, Configuration, ConfigurationState};
use reason::{Name, Reason};
use sandbox::Usage;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The lifecycle phase of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was defined but never started.
    Created,
    /// It is being created, and its configurations are installed.
    Booting,
    /// It runs.
    Running,
    /// It is suspended.
    Suspended,
    /// It was stopped, or stopped on its own.
    Stopped,
    /// It crashed and will not restart.
    Crashed,
    /// It crashed and will restart at this time.
    Waiting(Instant),
}

impl Phase {
    /// The phase in the protocol.
    pub(crate) fn reported(self) -> fabric::Phase {
        match self {
            Self::Created => fabric::Phase::Created,
            Self::Booting => fabric::Phase::Booting,
            Self::Running => fabric::Phase::Running,
            Self::Suspended => fabric::Phase::Suspended,
            Self::Stopped => fabric::Phase::Stopped,
            Self::Crashed => fabric::Phase::Crashed,
            Self::Waiting(_) => fabric::Phase::Waiting,
        }
    }

    /// The state as a predicate in a sentence, after the box's name.
    pub(crate) fn words(self) -> &'static str {
        self.reported().words()
    }
}

/// What became of the packets in the earlier instances of a box, as each published after its last turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PastAccount {
    /// Packets by fate.
    pub(crate) account: PacketAccount,
    /// Lost packets by reason, including those that were inside an instance when it ended.
    pub(crate) drops: BTreeMap<String, u64>,
    /// Packets received at ports.
    pub(crate) received: u64,
    /// Packets sent at ports.
    pub(crate) sent: u64,
    /// Whether a part of it is not known.
    pub(crate) is_estimated: bool,
}

impl PastAccount {
    /// Whether there were no packets.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A box and its state.
#[derive(Debug)]
pub(crate) struct ManagedBox {
    /// Its name.
    pub(crate) name: BoxName,
    /// Its log.
    pub(crate) log: History<LogLine>,
    /// The files that it writes.
    pub(crate) outputs: Outputs,
    /// Held while the box is started, stopped or changed.
    pub(crate) change: FairLock<()>,
    /// Held while a handler is written, so that writes are recorded in their order.
    pub(crate) writing: FairLock<()>,
    /// Held while messages are taken from the box and stored, so that they are stored in their order.
    storing: Mutex<()>,
    inner: Mutex<Inner>,
}

/// The mutable state.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Its definition, without texts and files.
    pub(crate) definition: CreateBox,
    /// Its configurations, which a restart after a crash installs again.
    pub(crate) configurations: Vec<Arc<Configuration>>,
    /// The writes that changed its configurations since it was started.
    pub(crate) writes: WriteRecord,
    /// Whether the next start executes the recorded writes again, whatever the definition says.
    pub(crate) is_replay_ordered: bool,
    /// Whether boxes that are equal to it are being started as well.
    pub(crate) has_equals: bool,
    /// Its lifecycle phase.
    pub(crate) phase: Phase,
    /// The running instance.
    pub(crate) instance: Option<Arc<Instance>>,
    /// The sandbox of its first start, which was created before.
    pub(crate) prepared: Option<CreatedBox>,
    /// A stop or removal was requested while the box starts.
    pub(crate) unwanted: bool,
    /// It is being removed and must not restart.
    pub(crate) removed: bool,
    /// When it last started to run.
    pub(crate) started: Option<(Time, Instant)>,
    /// How long the last start took.
    pub(crate) boot: Option<Duration>,
    /// Restarts after crashes.
    pub(crate) restarts: u32,
    /// Consecutive crashes, without a working period between them.
    pub(crate) crashes: u32,
    /// Its last crash.
    pub(crate) crash: Option<CrashReport>,
    /// Its installed configurations, in order.
    pub(crate) installed: Vec<ConfigurationState>,
    /// Resources used by earlier instances.
    pub(crate) past: Usage,
    /// Resources used by the current instance when it was last measured.
    pub(crate) present: Usage,
    /// Drops in earlier instances, by reason, including packets that were inside them when they ended.
    past_drops: BTreeMap<String, u64>,
    /// Drops in the current instance when it last reported them.
    present_drops: BTreeMap<String, u64>,
    /// What became of the other packets in earlier instances.
    past_account: PacketAccount,
    /// What became of the other packets in the current instance when it last reported.
    present_account: boundary::PacketAccount,
    /// Packets received and sent at ports, in earlier instances.
    past_ports: [u64; 2],
    /// Whether a part of the account of earlier instances is not known.
    is_estimated: bool,
    /// Packets received and sent at ports, in the current instance when it last reported.
    present_ports: [u64; 2],
    /// The processor time of the current instance when it was last asked for its counters.
    pub(crate) asked: Option<Duration>,
    /// Whether the current instance answers.
    pub(crate) silence: Silence,
    /// The remaining CPU time of the current instance, if it is limited.
    pub(crate) budget: Option<CpuBudget>,
}

impl ManagedBox {
    /// A box that was not started.
    pub(crate) fn new(definition: CreateBox) -> Self {
        Self {
            name: definition.name.clone(),
            log: History::new(HistoryLimits { entries: MAX_LOG_LINES, bytes: MAX_LOG_BYTES, size_of }),
            outputs: Outputs::default(),
            change: FairLock::default(),
            writing: FairLock::default(),
            storing: Mutex::default(),
            inner: Mutex::new(Inner {
                definition,
                configurations: Vec::new(),
                writes: WriteRecord::default(),
                is_replay_ordered: false,
                has_equals: false,
                phase: Phase::Created,
                instance: None,
                prepared: None,
                unwanted: false,
                removed: false,
                started: None,
                boot: None,
                restarts: 0,
                crashes: 0,
                crash: None,
                installed: Vec::new(),
                past: Usage::default(),
                present: Usage::default(),
                past_drops: BTreeMap::new(),
                present_drops: BTreeMap::new(),
                past_account: PacketAccount::default(),
                present_account: boundary::PacketAccount::default(),
                past_ports: [0; 2],
                is_estimated: false,
                present_ports: [0; 2],
                asked: None,
                silence: Silence::default(),
                budget: None,
            }),
        }
    }

    /// The mutable state. The lock is held briefly, and no other lock is taken while it is held.
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn to take messages from the box and store them. It is taken before any other lock.
    pub(crate) fn storing(&self) -> MutexGuard<'_, ()> {
        self.storing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running instance.
    pub(crate) fn instance(&self) -> Option<Arc<Instance>> {
        self.inner().instance.clone()
    }

    /// Adds a line of the fabric to the box's log.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let text = text.into();
        self.log.push(|_| LogLine { time: Time::now(), configuration: None, text, lost: 0 });
    }
}

impl Inner {
    /// Resources used by all instances.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            time: self.past.time + self.present.time,
            turns: self.past.turns + self.present.turns,
            overruns: self.past.overruns + self.present.overruns,
        }
    }

    /// Updates the resources used by the current instance. They never decrease.
    pub(crate) fn update_usage(&mut self, used: Usage) {
        self.present.time = self.present.time.max(used.time);
        self.present.turns = self.present.turns.max(used.turns);
        self.present.overruns = self.present.overruns.max(used.overruns);
    }

    /// Packets dropped inside all instances, by reason.
    pub(crate) fn drops(&self) -> BTreeMap<String, u64> {
        let mut drops = self.past_drops.clone();
        add(&mut drops, &self.present_drops);
        drops
    }

    /// What became of the other packets in all instances.
    pub(crate) fn account(&self) -> PacketAccount {
        let mut account = account::totals(&self.present_account);
        account.add(&self.past_account);
        account
    }

    /// Where packets of the current instance were lost, were discarded or wait.
    pub(crate) fn places(&self) -> PacketPlaces {
        account::places(&self.present_account)
    }

    /// What became of the packets in earlier instances.
    pub(crate) fn past_account(&self) -> PastAccount {
        let [received, sent] = self.past_ports;
        let is_estimated = self.is_estimated;
        PastAccount {
            account: self.past_account,
            drops: self.past_drops.clone(),
            received,
            sent,
            is_estimated,
        }
    }

    /// Whether it answers requests.
    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Updates what became of the packets in the current instance.
    pub(crate) fn update_account(&mut self, stats: &Stats) {
        self.present_account.clone_from(&stats.account);
        let ports = stats.ports.iter();
        self.present_ports = ports.fold([0u64; 2], |[received, sent], port| {
            [received.saturating_add(port.received_packets), sent.saturating_add(port.sent_packets)]
        });
        self.present_drops.clear();
        for (reason, count) in &stats.drops {
            add_one(&mut self.present_drops, Name::parse(reason).as_str().into(), *count);
        }
    }

    /// Updates what became of the packets in the current instance, which has ended, up to its last turn.
    pub(crate) fn complete_account(&mut self, last: &PublishedAccount) {
        if !last.is_plausible() {
            // What it last reported stays.
            self.is_estimated = true;
            return;
        }
        self.present_account.fates = last.fates;
        self.present_ports = [last.received, last.sent];
        // The page has no names of users' reasons: those of the last report stay.
        let is_user = |reason: &str| Reason::find(reason).is_none();
        let named = self.present_drops.iter().filter(|(name, _)| is_user(name));
        let known = named.fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        self.is_estimated |= known != last.unlisted;
        self.present_drops.retain(|reason, _| is_user(reason));
        let names: Vec<&str> = Reason::all().map(Reason::name).collect();
        for (number, count) in &last.lost {
            if let Some(name) = names.get(usize::from(*number)) {
                add_one(&mut self.present_drops, (*name).into(), *count);
            }
        }
    }

    /// Counts packets that were inside the current instance when it ended.
    pub(crate) fn count_held(&mut self, held: u64) {
        if held > 0 {
            add_one(&mut self.past_drops, Reason::IN_ENDED_BOX.name().into(), held);
        }
    }

    /// Closes the current instance: adds its usage, drops and account to those of earlier instances.
    pub(crate) fn close(&mut self) {
        add(&mut self.past_drops, &std::mem::take(&mut self.present_drops));
        for (sum, count) in self.past_ports.iter_mut().zip(std::mem::take(&mut self.present_ports)) {
            *sum = sum.saturating_add(count);
        }
        self.past_account.add(&account::totals(&std::mem::take(&mut self.present_account)));
        self.past = self.usage();
        self.present = Usage::default();
        self.budget = None;
        self.silence = Silence::default();
        self.instance = None;
    }
}

/// The size of a log line in bytes.
fn size_of(line: &LogLine) -> usize {
    line.text.len() + line.configuration.as_ref().map_or(0, String::len)
}

fn add(sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    more.iter().for_each(|(reason, count)| add_one(sum, reason.clone(), *count));
}

/// Adds a counter that a box reported. The reason may be any text: the number of reasons is bounded, so that restarts
/// of a box cannot make the table grow without limit.
fn add_one(sum: &mut BTreeMap<String, u64>, reason: String, count: u64) {
    if sum.contains_key(&reason) || sum.len() < MAX_DROP_REASONS {
        let sum = sum.entry(reason).or_default();
        *sum = sum.saturating_add(count);
    }
}
