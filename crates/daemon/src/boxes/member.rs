//! What the supervisor knows of a box.

use super::instance::Instance;
use super::outputs::Outputs;
use crate::history::{History, HistoryLimits};
use crate::limits::{MAX_LOG_BYTES, MAX_LOG_LINES};
use crate::supervisor::CpuBudget;
use api::{
    BoxName, BoxState, ConfigurationName, CrashReport, CreateBox, Diagnostic, LogLine, StackName, Time,
};
use boundary::Stats;
use boundary::limits::MAX_DROP_REASONS;
use reason::{Name, Reason};
use sandbox::Usage;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long who wants to change a box sleeps between looks whether another one is done with it.
const NAP: Duration = Duration::from_millis(1);

/// What a box is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It is defined, and was not started.
    Created,
    /// It is being made, and its configurations are installed.
    Booting,
    /// It runs.
    Running,
    /// It stands still.
    Suspended,
    /// It was stopped, or stopped by itself.
    Stopped,
    /// It crashed, and stays so.
    Crashed,
    /// It crashed, and is made anew at this time.
    Waiting(Instant),
}

impl Phase {
    /// As the API has it.
    pub(crate) fn state(self) -> BoxState {
        match self {
            Self::Created => BoxState::Created,
            Self::Booting | Self::Running => BoxState::Running,
            Self::Suspended => BoxState::Suspended,
            Self::Stopped => BoxState::Stopped,
            Self::Crashed => BoxState::Crashed,
            Self::Waiting(_) => BoxState::Waiting,
        }
    }

    /// As a sentence goes on after the box's name.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Created => "was not started yet",
            Self::Booting => "is being started",
            Self::Running => "runs already",
            Self::Suspended => "stands still",
            Self::Stopped => "is stopped",
            Self::Crashed => "has crashed",
            Self::Waiting(_) => "has crashed, and waits to be made anew",
        }
    }
}

/// A configuration that a box has.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(crate) name: ConfigurationName,
    pub(crate) installed: Time,
    pub(crate) swaps: u32,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A box.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: BoxName,
    /// What it wrote.
    pub(crate) log: History<LogLine>,
    /// The files that it writes.
    pub(crate) outputs: Outputs,
    /// Held by whoever starts, stops or changes it: one at a time.
    pub(crate) busy: Mutex<()>,
    inner: Mutex<Inner>,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct Inner {
    /// What it was made by, without texts and files.
    pub(crate) definition: CreateBox,
    /// The stack that it belongs to.
    pub(crate) stack: Option<StackName>,
    /// When it was made.
    pub(crate) created: Time,
    /// What it is doing.
    pub(crate) phase: Phase,
    /// It, while it runs.
    pub(crate) instance: Option<Arc<Instance>>,
    /// Somebody wants it to end while it is being started.
    pub(crate) unwanted: bool,
    /// It is being removed: it is not made anew.
    pub(crate) removed: bool,
    /// When it last began to run.
    pub(crate) started: Option<(Time, Instant)>,
    /// How long that took.
    pub(crate) boot: Option<Duration>,
    /// How often it was made anew after a crash.
    pub(crate) restarts: u32,
    /// Crashes in a row, without working for a while between them.
    pub(crate) crashes: u32,
    /// Its last crash.
    pub(crate) crash: Option<CrashReport>,
    /// Its configurations, in order.
    pub(crate) installed: Vec<Installed>,
    /// What earlier instances used.
    pub(crate) past: Usage,
    /// What the present one had used when it was last looked at.
    pub(crate) present: Usage,
    /// What elements of earlier instances dropped, by reason, and packets that were in these as they ended.
    past_drops: BTreeMap<String, u64>,
    /// What elements of the present one had dropped when it was last asked.
    present_drops: BTreeMap<String, u64>,
    /// What the present one may still use, if its processor time is limited.
    pub(crate) budget: Option<CpuBudget>,
}

impl Member {
    /// A box that was not started.
    pub(crate) fn new(definition: CreateBox, stack: Option<StackName>, created: Time) -> Self {
        Self {
            name: definition.name.clone(),
            log: History::new(HistoryLimits { entries: MAX_LOG_LINES, bytes: MAX_LOG_BYTES, weigh }, 0),
            outputs: Outputs::default(),
            busy: Mutex::default(),
            inner: Mutex::new(Inner {
                definition,
                stack,
                created,
                phase: Phase::Created,
                instance: None,
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
                budget: None,
            }),
        }
    }

    /// What is known of it now. The lock is held shortly, and no other is taken meanwhile.
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else starts, stops or changes it.
    pub(crate) fn busy(&self) -> MutexGuard<'_, ()> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for that, but no longer than so long.
    pub(crate) fn busy_within(&self, time: Duration) -> Option<MutexGuard<'_, ()>> {
        let start = Instant::now();
        loop {
            match self.busy.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if start.elapsed() >= time => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(NAP),
            }
        }
    }

    /// The box, if it runs.
    pub(crate) fn instance(&self) -> Option<Arc<Instance>> {
        self.inner().instance.clone()
    }

    /// Adds a line of the daemon to its log.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let text = text.into();
        self.log.push(|_| LogLine { time: Time::now(), configuration: None, text, lost: 0 });
    }
}

impl Inner {
    /// What all instances used.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            time: self.past.time + self.present.time,
            turns: self.past.turns + self.present.turns,
            overruns: self.past.overruns + self.present.overruns,
        }
    }

    /// Notes what the present instance has used; it never becomes less.
    pub(crate) fn look(&mut self, used: Usage) {
        self.present.time = self.present.time.max(used.time);
        self.present.turns = self.present.turns.max(used.turns);
        self.present.overruns = self.present.overruns.max(used.overruns);
    }

    /// Packets that were lost inside of all instances, by reason.
    pub(crate) fn drops(&self) -> BTreeMap<String, u64> {
        let mut drops = self.past_drops.clone();
        add(&mut drops, &self.present_drops);
        drops
    }

    /// Notes what elements of the present instance have dropped.
    pub(crate) fn look_at_drops(&mut self, stats: &Stats) {
        self.present_drops.clear();
        for (reason, count) in &stats.drops {
            add_one(&mut self.present_drops, Name::parse(reason).as_str().into(), *count);
        }
    }

    /// Counts packets that were in the present instance as it ended.
    pub(crate) fn lose(&mut self, held: u64) {
        if held > 0 {
            add_one(&mut self.past_drops, Reason::IN_ENDED_BOX.name().into(), held);
        }
    }

    /// The present instance is gone: what it used and dropped is past.
    pub(crate) fn close(&mut self) {
        add(&mut self.past_drops, &std::mem::take(&mut self.present_drops));
        self.past = self.usage();
        self.present = Usage::default();
        self.budget = None;
        self.instance = None;
    }
}

/// Bytes of a line of a box's log.
fn weigh(line: &LogLine) -> usize {
    line.text.len() + line.configuration.as_ref().map_or(0, String::len)
}

fn add(sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    more.iter().for_each(|(reason, count)| add_one(sum, reason.clone(), *count));
}

/// Adds to what a box counted, which may be anything; a box can't make the table grow without end by being made anew.
fn add_one(sum: &mut BTreeMap<String, u64>, reason: String, count: u64) {
    if sum.contains_key(&reason) || sum.len() < MAX_DROP_REASONS {
        let sum = sum.entry(reason).or_default();
        *sum = sum.saturating_add(count);
    }
}
