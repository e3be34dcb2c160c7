//! Hands the state of flows over from instances that are drained to others of their service.
//!
//! Flows are moved in small batches. Those of a batch are frozen in the switch; the instance finishes the packets that it was
//! given before; its boxes' states go from mailbox to mailbox; then the switch sends the packets that waited to the instances that
//! have the states.

mod peer;
mod shared;

use super::state::Fabric;
use crate::error::OperationError;
use crate::functions::{StateCallError, StateCalls};
use crate::limits::{BOX_FREEZE_TIMEOUT, FUNCTION_FREEZE_TIMEOUT, FUNCTION_HANDOVER_TIMEOUT};
use crate::network::{GivenPackets, HandoverWork, NextHandover};
use boundary::{
    FlowExport, FlowList, FlowPosition, RefusedState, Request, StateRecord, StateTuple, encode_groups,
    encode_states,
};
use model::{BoxName, EventKind};
use sandbox::CallError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Flows that are moved at once. Their packets wait meanwhile.
const BATCH: u32 = 128;

/// The time for a function to answer, and for a box while no flows are frozen.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for a box to take states over or back. The bound is separate, so that none is lost because another box was slow before.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for a box to take and finish the packets that it was given.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for packets that waited to find room. Then they go on without, and are lost as `full`.
const THAW_TIMEOUT: Duration = Duration::from_secs(1);

/// The time between two looks at something that takes microseconds.
const LOOK_INTERVAL: Duration = Duration::from_micros(50);

/// The time after which instances that did not run are looked at again.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Lists of flows of one box: more than any has, so that a box can't list flows for ever.
const MAX_LISTS: usize = 1 << 16;

/// The time for all of them. Others wait for their turn meanwhile, and a box may take its time for each answer. A million flows take a
/// fourth of it.
const LISTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Batches of flows that are found when all others were moved: they began just before.
const MAX_LAST_BATCHES: usize = 64;

/// The same if flows share states, because none are moved before.
const MAX_BATCHES_OF_ALL: usize = 512;

/// How often a box is asked once more in all: when packets wait in it for too long, flows go on for a moment and are frozen again; when it
/// did not list its flows in time. The processor may have other work.
const MORE_ATTEMPTS: usize = 4;

/// What is said if no instance can take flows over.
const NO_HEIR: &str = "no other instance is up";

/// What is said if an instance answers with flows that it was not asked for.
const OTHER_FLOWS: &str = "states of other flows came than were asked for";

/// Why flows are not handed over.
#[derive(Debug)]
enum HandoverError {
    /// The network does not run, or lacks the switch.
    Network(OperationError),
    /// A box does not run.
    NotRunning(BoxName),
    /// A box did not answer rightly.
    Call(BoxName, CallError),
    /// A function did not answer rightly.
    StateCall(BoxName, StateCallError),
    /// The box keeps state of flows that it can't hand over.
    CannotExport(Vec<String>),
    /// Packets wait for too long in the rings or the queues of the box.
    Busy,
    /// The instance has gone, or other flows of the switch are frozen.
    Frozen,
    /// The instance takes too long.
    Late(Duration),
    /// Flows share more states than are moved.
    TooManyShared,
    /// The other instance refused a state that flows share.
    SharedRefused(String),
    /// No instance can take them over.
    NoHeir,
}

impl fmt::Display for HandoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(error) => error.fmt(f),
            Self::NotRunning(name) => write!(f, "box {name} does not run"),
            Self::Call(name, error) => write!(f, "box {name}: {error}"),
            Self::StateCall(name, error) => write!(f, "function {name}: {error}"),
            Self::CannotExport(elements) => {
                let names: Vec<String> =
                    elements.iter().map(|name| name.escape_debug().to_string()).collect();
                write!(f, "its elements cannot hand over the state of flows: {}", names.join(", "))
            }
            Self::Busy => f.write_str("packets of these flows wait in it for too long"),
            Self::Frozen => f.write_str("it is no instance of the service any more"),
            Self::Late(time) => write!(f, "it took more than {} s", time.as_secs()),
            Self::TooManyShared => f.write_str("it has too many states of whole addresses"),
            Self::SharedRefused(reason) => write!(f, "states of whole addresses move all or none: {reason}"),
            Self::NoHeir => f.write_str(NO_HEIR),
        }
    }
}

impl From<OperationError> for HandoverError {
    fn from(error: OperationError) -> Self {
        Self::Network(error)
    }
}

/// Flows that must move together, by their tuples.
type Group = Vec<StateTuple>;

/// Whether a group is of states that flows share.
fn is_shared(group: &Group) -> bool {
    group.iter().any(StateTuple::is_of_addresses)
}

/// A hand-over that goes on.
struct Handover<'a> {
    fabric: &'a Fabric,
    work: HandoverWork,
    /// The instance that has the flows, if it is a function. Another one may get its name meanwhile.
    function: Option<Arc<StateCalls>>,
    begin: Instant,
    /// Since when flows are frozen.
    frozen_at: Option<Instant>,
    /// How often flows may still be frozen once more.
    attempts: usize,
    /// Flows that no instance takes, by one of their tuples.
    refused: BTreeSet<StateTuple>,
    moved: u64,
    lost: u64,
    /// Why flows were refused.
    reason: Option<String>,
}

impl Fabric {
    /// Starts the thread that hands flows over. It ends with the thread that moves packets.
    pub(super) fn start_handovers(&self) -> io::Result<()> {
        let Ok(receiver) = self.network(crate::network::Network::report_handovers) else { return Ok(()) };
        let state = Arc::downgrade(&self.0);
        let run = move || run(&receiver, || state.upgrade().map(Fabric));
        std::thread::Builder::new().name("handover".into()).spawn(run).map(drop)
    }

    fn hand_over(&self, mut work: HandoverWork) {
        let name = work.from.clone();
        let begin = Instant::now();
        let function = self.0.functions.state_calls(&work.switch, &name);
        if function.as_ref().is_some_and(|function| !function.is_leaving()) {
            // Another one has taken the place of the one that left.
            return;
        }
        if self.change_network(&mut work).is_err() {
            return;
        }
        let is_function = function.is_some();
        let (is_return, is_again) = (work.range.is_some(), work.is_again);
        let mut handover = Handover {
            fabric: self,
            work,
            function,
            begin,
            frozen_at: None,
            // A function leaves when it likes, and so has less time than a box.
            attempts: if is_function { 0 } else { MORE_ATTEMPTS },
            refused: BTreeSet::new(),
            moved: 0,
            lost: 0,
            reason: None,
        };
        let result = handover.run();
        let Handover { work, refused, moved, lost, reason, .. } = handover;
        let service = work.service.clone();
        let kept = refused.len() as u64;
        let problem = match &result {
            Err(error) => Some(error.to_string()),
            Ok(()) => reason.filter(|_| kept + lost > 0),
        };
        let to = work.to.clone();
        let ended = self.network({
            let (work, problem) = (work, problem.clone());
            move |network| network.end_handover(&work, (kept, lost), problem)
        });
        drop(ended);
        // A function leaves now.
        self.0.functions.wake();
        let time = begin.elapsed().as_millis();
        let to = to.map_or_else(|| "other instances".into(), |to| format!("instance {to}"));
        if moved > 0 || !is_return && problem.is_none() {
            let message = match moved {
                0 => format!("instance {name} of service {service} had no state of flows to hand over"),
                _ => format!(
                    "instance {name} of service {service} handed {moved} flows over to {to} in {time} ms"
                ),
            };
            self.0.note(EventKind::StateHandedOver, &service, message);
        }
        if let Some(problem) = problem.filter(|_| !is_again) {
            let flows = if result.is_err() { "flows".into() } else { format!("{kept} flows") };
            let stay = match is_function {
                true => format!("{flows} go on without their state"),
                false => format!("{flows} stay there"),
            };
            let lost = if lost > 0 { format!(", {lost} were lost") } else { String::new() };
            let message = format!(
                "not all flows of instance {name} of service {service} were handed over: {problem}; {stay}{lost}"
            );
            self.0.note(EventKind::StateKept, &service, message);
        }
    }

    fn change_network(&self, work: &mut HandoverWork) -> Result<(), HandoverError> {
        let mut own = work.clone();
        *work = self.network(move |network| network.begin_handover(&mut own).map(|()| own))??;
        Ok(())
    }
}

impl Handover<'_> {
    fn run(&mut self) -> Result<(), HandoverError> {
        let (mut position, mut has_shared) = (FlowPosition::default(), false);
        for _ in 0..MAX_LISTS {
            if self.begin.elapsed() > LISTS_TIMEOUT {
                return Err(HandoverError::Late(LISTS_TIMEOUT));
            }
            let list = match self.list(position) {
                Err(HandoverError::Call(_, CallError::TimedOut)) if self.attempts > 0 => {
                    self.attempts -= 1;
                    continue;
                }
                list => list?,
            };
            if list.groups.iter().any(is_shared) {
                if self.work.range.is_none() {
                    break;
                }
                // They come first, and are gone then.
                if std::mem::replace(&mut has_shared, true) {
                    return Err(HandoverError::TooManyShared);
                }
                self.move_shared_of_range()?;
                continue;
            }
            if !list.groups.is_empty() {
                if self.function.is_some() && self.heir_of_all()?.is_none() {
                    return Err(HandoverError::NoHeir);
                }
                let given = self.freeze(Some(list.groups.clone()))?;
                let moved = self.move_flows(list.groups, &given);
                self.thaw()?;
                if self.tries_again(&moved) {
                    continue;
                }
                moved?;
            }
            match list.next {
                Some(next) => position = next,
                None => break,
            }
        }
        if self.work.range.is_some() || !self.refused.is_empty() {
            return Ok(());
        }
        // The rest at once: flows that have just begun, those without state, and all flows if they share states.
        loop {
            let given = self.freeze(None)?;
            let finished = self.wait_until_taken(&given);
            if self.tries_again(&finished) {
                self.thaw()?;
                continue;
            }
            let moved = finished.and_then(|finished| self.move_rest(finished));
            if moved.is_ok() {
                let work = self.work.clone();
                self.fabric.network(move |network| network.pass_ranges(&work, true))??;
            }
            self.thaw()?;
            return moved;
        }
    }

    /// Whether flows are to be frozen once more, because the box was too busy. Nothing was moved then that is asked for again.
    fn tries_again<T>(&mut self, moved: &Result<T, HandoverError>) -> bool {
        let tries = matches!(moved, Err(HandoverError::Busy)) && self.attempts > 0;
        self.attempts -= usize::from(tries);
        tries
    }

    /// Moves what is left. `finished`: since when the instance has all packets of these flows.
    fn move_rest(&mut self, finished: Instant) -> Result<(), HandoverError> {
        let has_shared = self.move_shared(finished)?;
        let mut position = FlowPosition::default();
        for _ in 0..if has_shared { MAX_BATCHES_OF_ALL } else { MAX_LAST_BATCHES } {
            let list = self.list(position)?;
            if !list.groups.is_empty() {
                self.exchange(list.groups, finished)?;
            }
            match list.next {
                Some(next) => position = next,
                None => break,
            }
        }
        self.collect()?;
        let mut at = Some(0);
        while let Some(next) = at {
            let work = self.work.clone();
            at = self.fabric.network(move |network| network.reassign_rest(&work, next))??;
        }
        Ok(())
    }

    /// Some flows of the instance that were not refused.
    fn list(&self, position: FlowPosition) -> Result<FlowList, HandoverError> {
        let range = self.work.range.map(|range| (range.address.to_bits(), range.first, range.last));
        let request = Request::ListFlows { position, most: BATCH, range };
        let time = self.time_to_answer()?;
        let mut list = self.call(&self.work.from, &request, time, FlowList::decode)?;
        self.peer(&self.work.from)?.check(&self.work.from, &list)?;
        if !list.lost.is_empty() {
            return Err(HandoverError::CannotExport(list.lost));
        }
        list.groups.retain(|group| group.first().is_some_and(|tuple| !self.refused.contains(tuple)));
        Ok(list)
    }

    fn call<T>(
        &self,
        name: &BoxName,
        request: &Request,
        time: Duration,
        decode: impl FnOnce(&[u8]) -> Result<T, boundary::DecodeError>,
    ) -> Result<T, HandoverError> {
        let peer = self.peer(name)?;
        let reply = peer.call(name, request, time)?;
        decode(&reply).map_err(|error| peer.malformed(name, error))
    }

    /// The time for the instance that has the flows to answer. What it does not export in time is lost, so a box has all the time for
    /// which its flows may be frozen. A function leaves when it likes, and so has less: others wait for their turn.
    fn time_to_answer(&self) -> Result<Duration, HandoverError> {
        let (freeze, all, mut time) = match (&self.function, self.frozen_at) {
            (Some(_), _) => (FUNCTION_FREEZE_TIMEOUT, FUNCTION_HANDOVER_TIMEOUT, CALL_TIMEOUT),
            (None, Some(_)) => (BOX_FREEZE_TIMEOUT, Duration::MAX, BOX_FREEZE_TIMEOUT),
            (None, None) => (BOX_FREEZE_TIMEOUT, Duration::MAX, CALL_TIMEOUT),
        };
        let frozen_at = self.frozen_at.map(|frozen_at| (frozen_at, freeze));
        for (since, limit) in frozen_at.into_iter().chain([(self.begin, all)]) {
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(HandoverError::Late(limit));
            }
            time = time.min(left);
        }
        Ok(time)
    }

    /// The time for an instance to take states over or back.
    fn time_to_import(&self) -> Result<Duration, HandoverError> {
        if self.function.is_some() { self.time_to_answer() } else { Ok(IMPORT_TIMEOUT) }
    }

    fn freeze(&mut self, groups: Option<Vec<Group>>) -> Result<GivenPackets, HandoverError> {
        let work = self.work.clone();
        let given = self.fabric.network(move |network| network.freeze(&work, groups.as_deref()))??;
        self.frozen_at = Some(Instant::now());
        given.ok_or(HandoverError::Frozen)
    }

    /// Lets frozen flows go on, and waits until their packets have gone on.
    fn thaw(&mut self) -> Result<(), HandoverError> {
        let begin = Instant::now();
        loop {
            let (switch, is_forced) = (self.work.switch.clone(), begin.elapsed() > THAW_TIMEOUT);
            let waiting = self.fabric.network(move |network| network.thaw(&switch, is_forced))??;
            if waiting == 0 {
                self.frozen_at = None;
                return Ok(());
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Waits until the instance has taken all packets that it was given before its flows were frozen. Returns when it had.
    fn wait_until_taken(&self, given: &GivenPackets) -> Result<Instant, HandoverError> {
        let begin = Instant::now();
        loop {
            let (work, given) = (self.work.clone(), given.clone());
            if self.fabric.network(move |network| network.has_taken(&work, &given))?? {
                return Ok(Instant::now());
            }
            if begin.elapsed() > FINISH_TIMEOUT {
                return Err(HandoverError::Busy);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    fn heir_of_all(&self) -> Result<Option<BoxName>, HandoverError> {
        let work = self.work.clone();
        Ok(self.fabric.network(move |network| network.heir_of_all(&work))??)
    }

    fn collect(&self) -> Result<(), HandoverError> {
        let work = self.work.clone();
        Ok(self.fabric.network(move |network| network.collect_from(&work))??)
    }

    fn move_flows(&mut self, groups: Vec<Group>, given: &GivenPackets) -> Result<(), HandoverError> {
        let finished = self.wait_until_taken(given)?;
        self.exchange(groups, finished)
    }

    /// Moves the state of frozen flows, and assigns them to the instances that have it. `finished`: since when the instance has
    /// all packets of these flows.
    fn exchange(&mut self, mut groups: Vec<Group>, finished: Instant) -> Result<(), HandoverError> {
        while !groups.is_empty() {
            let export = self.export(&self.work.from, &groups, finished)?;
            // At least one, so that this ends.
            let count = export.groups.unwrap_or(0).max(1) as usize;
            let rest = groups.split_off(count.min(groups.len()));
            let part = std::mem::replace(&mut groups, rest);
            self.collect()?;
            self.give(part, export.states)?;
        }
        Ok(())
    }

    /// Takes the state of flows from a box.
    fn export(&self, name: &BoxName, groups: &[Group], since: Instant) -> Result<FlowExport, HandoverError> {
        let (encoded, begin) = (encode_groups(groups), Instant::now());
        loop {
            let age = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let request = Request::ExportFlows { age, groups: &encoded };
            let export = self.call(name, &request, self.time_to_answer()?, FlowExport::decode)?;
            if export.groups.is_some() {
                return Ok(export);
            }
            if begin.elapsed() > FINISH_TIMEOUT {
                return Err(HandoverError::Busy);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Gives the states of flows to the instances that get them. What these refuse goes back.
    fn give(&mut self, groups: Vec<Group>, states: Vec<StateRecord>) -> Result<(), HandoverError> {
        let (work, asked) = (self.work.clone(), groups.clone());
        let heirs = self.fabric.network(move |network| network.heirs(&work, &asked))??;
        let members: HashMap<StateTuple, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(at, group)| group.iter().map(move |tuple| (*tuple, at)))
            .collect();
        let mut by_heir: BTreeMap<Option<BoxName>, Vec<(usize, StateRecord)>> = BTreeMap::new();
        for state in states {
            // An instance that answers with flows it was not asked for loses them.
            let Some(group) = members.get(&state.tuples[0]) else {
                self.lost += 1;
                self.reason.get_or_insert_with(|| OTHER_FLOWS.into());
                continue;
            };
            if let Some(Ok(heir)) = heirs.get(*group) {
                by_heir.entry(heir.clone()).or_default().push((*group, state));
            }
        }
        let mut refused: BTreeMap<usize, Vec<StateRecord>> = BTreeMap::new();
        for (heir, states) in by_heir {
            let mut bad = self.import_to(heir.as_ref(), &states);
            if let Some(name) = heir.as_ref().filter(|_| !bad.is_empty()) {
                // What the box knows of the same flows is out of date: they are assigned to the other one. States that it accepted
                // go, too.
                let is_bad = |(group, _): &&(usize, StateRecord)| bad.contains(group);
                let again: Vec<(usize, StateRecord)> = states.iter().filter(is_bad).cloned().collect();
                self.discard(name, &groups, &bad);
                bad = self.import_to(heir.as_ref(), &again);
                if !bad.is_empty() {
                    self.discard(name, &groups, &bad);
                }
            }
            for (group, state) in states.into_iter().filter(|(group, _)| bad.contains(group)) {
                refused.entry(group).or_default().push(state);
            }
        }
        let own = self.work.from.clone();
        for (group, states) in &refused {
            let states: Vec<(usize, StateRecord)> =
                states.iter().map(|state| (*group, state.clone())).collect();
            self.lost += u64::from(self.import(&own, &states).map_or(true, |problems| !problems.is_empty()));
            self.refused.extend(groups.get(*group).and_then(|group| group.first()));
        }
        let moved: Vec<(Group, BoxName)> = groups
            .into_iter()
            .zip(heirs)
            .enumerate()
            .filter(|(at, _)| !refused.contains_key(at))
            .filter_map(|(_, (group, heir))| Some((group, heir.ok()??)))
            .collect();
        self.moved += moved.len() as u64;
        let work = self.work.clone();
        Ok(self.fabric.network(move |network| network.reassign(&work, &moved))??)
    }

    /// Gives states of groups to a box. Returns the groups of which it refused any.
    fn import_to(&mut self, name: Option<&BoxName>, states: &[(usize, StateRecord)]) -> BTreeSet<usize> {
        let problems = match name {
            Some(name) => self.import(name, states),
            None => Err(NO_HEIR.to_string()),
        };
        match problems {
            Ok(problems) => {
                self.reason = problems.first().map(|(_, reason)| reason.clone()).or(self.reason.take());
                problems.iter().filter_map(|(at, _)| states.get(*at).map(|(group, _)| *group)).collect()
            }
            Err(problem) => {
                self.reason = Some(problem);
                states.iter().map(|(group, _)| *group).collect()
            }
        }
    }

    /// Removes flows from a box.
    fn discard(&self, name: &BoxName, groups: &[Group], which: &BTreeSet<usize>) {
        let which: Vec<Group> = which.iter().filter_map(|at| groups.get(*at).cloned()).collect();
        let request = Request::ExportFlows { age: u64::MAX, groups: &encode_groups(&which) };
        // If it does not answer, it takes no flows either.
        let _ = self.time_to_import().and_then(|time| self.call(name, &request, time, FlowExport::decode));
    }

    /// Gives states to a box. Returns those that it refused, with the reasons.
    fn import(
        &self,
        name: &BoxName,
        states: &[(usize, StateRecord)],
    ) -> Result<Vec<(usize, String)>, String> {
        let records: Vec<StateRecord> = states.iter().map(|(_, state)| state.clone()).collect();
        let request = Request::ImportFlows { states: &encode_states(&records) };
        let refused =
            self.time_to_import().and_then(|time| self.call(name, &request, time, RefusedState::decode));
        let refused = refused.map_err(|error| error.to_string())?;
        let kind = if self.function.is_some() { "function" } else { "box" };
        let reason = |refused: RefusedState| {
            (refused.number as usize, format!("{kind} {name}: {}", refused.reason.escape_debug()))
        };
        Ok(refused.into_iter().map(reason).collect())
    }
}

fn run(receiver: &Receiver<()>, fabric: impl Fn() -> Option<Fabric>) {
    let mut is_later = false;
    loop {
        let woken = match is_later {
            true => receiver.recv_timeout(RETRY_INTERVAL),
            false => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        if woken == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        loop {
            let Some(fabric) = fabric() else { return };
            match fabric.network(crate::network::Network::next_handover) {
                Ok(NextHandover::Work(work)) => fabric.hand_over(work),
                Ok(NextHandover::Later) => {
                    is_later = true;
                    break;
                }
                Ok(NextHandover::Nothing) => {
                    is_later = false;
                    break;
                }
                Err(_) => return,
            }
        }
    }
}
