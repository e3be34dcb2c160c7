//! Which flows are handed over from one instance of a service to others, and where the ranges of translators are meanwhile.
//!
//! An instance that is drained hands over all of its flows. If the service is a translator, its range goes with them to one
//! instance, and comes back when the instance with this range is there again. That one gets no new flows before: it could
//! translate them to addresses and ports that others still have.

use super::attach::Network;
use super::flows::{all_steering, steering};
use super::handover_record::Holder;
use super::records::SwitchRecord;
use super::services::instances_of_shards;
use crate::error::OperationError;
use boundary::StateTuple;
use model::{AddressRange, BoxName, HandoverPhase, HandoverStatus, ServiceName, SwitchName};
use protocol::fabric::ServiceDefinition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use switch::{FlowTuple, HostPair, PortId, Steering};

/// The time after which it is tried again to hand over the flows of a range. It doubles each time, because all packets of an instance
/// may wait for a second at each attempt, up to this many times.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 6;

/// Records that are looked at at once for flows without state.
const RECORDS_AT_ONCE: usize = 1 << 14;

/// Flows to hand over.
#[derive(Clone, Debug)]
pub(crate) struct HandoverWork {
    pub(crate) switch: SwitchName,
    pub(crate) service: ServiceName,
    /// The instance that has them.
    pub(crate) from: BoxName,
    /// The instance that gets them; `None` if each flow has one of its own.
    pub(crate) to: Option<BoxName>,
    /// The range of the flows; `None` for all flows of the instance.
    pub(crate) range: Option<AddressRange>,
    /// Whether it was tried before.
    pub(crate) is_again: bool,
}

/// A flow has begun again at another instance, so that its state is out of date.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere;

/// What is to be done now.
#[derive(Debug)]
pub(crate) enum NextHandover {
    Work(HandoverWork),
    /// Instances that do not run have flows to hand over or to take over.
    Later,
    Nothing,
}

/// Packets that an instance had been given when its flows were frozen: by port, what it must have taken since.
#[derive(Clone, Debug)]
pub(crate) struct GivenPackets(Vec<(PortId, u64)>);

/// The service of a work, its number and the slots of its instances.
fn service_of<'a>(
    record: &'a SwitchRecord,
    work: &HandoverWork,
) -> Option<(&'a ServiceDefinition, u16, &'a BTreeMap<BoxName, u8>)> {
    let services = &record.services.definition.services;
    let service = services.iter().find(|service| service.name == work.service)?;
    let number = record.services.services.get(&work.service)?;
    Some((service, number, record.services.slots.get(&work.service)?))
}

fn flow_tuple(steering: &Steering, tuple: &StateTuple) -> FlowTuple {
    steering.flow_tuple(tuple.protocol, tuple.ends)
}

/// The addresses of a tuple that stands for all flows between them, over IPv4.
pub(crate) fn host_pair(tuple: &StateTuple) -> Option<HostPair> {
    let [one, other] = tuple.ends.map(|(address, _)| address.to_ipv4_mapped());
    Some(HostPair::new(one?.to_bits(), other?.to_bits())).filter(|_| tuple.is_of_addresses())
}

/// The hash that chooses the instance for a whole range.
fn range_hash(range: AddressRange) -> u64 {
    u64::from(range.address.to_bits()) << 16 | u64::from(range.first)
}

impl Network {
    /// Tells from now on when there may be flows to hand over.
    pub(crate) fn report_handovers(&mut self) -> Receiver<()> {
        let (sender, receiver) = sync_channel(1);
        self.handovers = Some(sender);
        receiver
    }

    /// Tells that there may be flows to hand over.
    pub(super) fn wake_handovers(&self) {
        if let Some(sender) = &self.handovers {
            // One message that waits is enough.
            let _ = SyncSender::try_send(sender, ());
        }
    }

    /// What is to be handed over next. Services have their turns, so that none whose functions leave again and again keeps others waiting.
    pub(crate) fn next_handover(&mut self) -> NextHandover {
        let mut next = NextHandover::Nothing;
        let mut ended = false;
        let mut works: Vec<HandoverWork> = Vec::new();
        for (record, runner) in self.switches.iter_mut().zip(self.runners.iter_mut().skip(1)) {
            let Ok(all) = all_steering(&record.name, runner) else { continue };
            for service in &record.services.definition.services {
                let number = record.services.services.get(&service.name).unwrap_or(u16::MAX);
                let slots = record.services.slots.get(&service.name);
                let found = instances_of_shards(all.iter().map(|steering| &**steering), number);
                let is_up = |name: &BoxName| {
                    let slot = slots.and_then(|slots| slots.get(name)).copied();
                    found.iter().any(|instance| Some(instance.slot) == slot && instance.is_up)
                };
                let work = |from: &BoxName, to: Option<&BoxName>, range, is_again| HandoverWork {
                    switch: record.name.clone(),
                    service: service.name.clone(),
                    from: from.clone(),
                    to: to.cloned(),
                    range,
                    is_again,
                };
                for instance in service.instances.iter().filter(|instance| !instance.draining) {
                    let Some(range) = instance.range else { continue };
                    let key = (service.name.clone(), range);
                    let Some(holder) = record.services.handover.holders.get(&key).and_then(|all| all.first())
                    else {
                        continue;
                    };
                    if holder.retry_at.is_some_and(|time| time > Instant::now()) {
                        next = NextHandover::Later;
                        continue;
                    }
                    let (from, is_again) = (holder.name.clone(), holder.retry_at.is_some());
                    match (is_up(&from), is_up(&instance.name)) {
                        (true, true) => {
                            let to = Some(&instance.name);
                            works.push(work(&from, to, Some(range), is_again));
                        }
                        // Its flows have ended with it.
                        (false, _) => ended |= record.services.handover.release(&key, &from),
                        (true, false) => next = NextHandover::Later,
                    }
                }
                for instance in service.instances.iter().filter(|instance| instance.draining) {
                    let status = record.services.handover.drained.get(&instance.name);
                    if status.is_none_or(|status| status.phase != HandoverPhase::Waiting) {
                        continue;
                    }
                    if !is_up(&instance.name) {
                        next = NextHandover::Later;
                        continue;
                    }
                    works.push(work(&instance.name, None, None, false));
                }
            }
        }
        if ended {
            self.plan_all();
        }
        let key = |work: &HandoverWork| (work.switch.clone(), work.service.clone());
        let is_after = |work: &HandoverWork| Some(key(work)) > self.last_handover;
        let first =
            |works: &mut dyn Iterator<Item = &HandoverWork>| works.min_by_key(|work| key(work)).cloned();
        let work =
            first(&mut works.iter().filter(|work| is_after(work))).or_else(|| first(&mut works.iter()));
        match work {
            Some(work) => {
                self.last_handover = Some(key(&work));
                NextHandover::Work(work)
            }
            None => next,
        }
    }

    fn plan_all(&mut self) {
        let names: Vec<SwitchName> = self.switch_names().cloned().collect();
        for name in names {
            let _ = self.plan_again(&name);
        }
    }

    /// Begins to hand over the flows of an instance. A translator's flows all go to one instance, which is set then.
    pub(crate) fn begin_handover(&mut self, work: &mut HandoverWork) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let steering = steering(&work.switch, runner)?;
        let Some((service, number, slots)) = service_of(record, work) else { return Ok(()) };
        if work.range.is_some() {
            return Ok(());
        }
        let slot = slots.get(&work.from).copied().unwrap_or(u8::MAX);
        let ranges = record.services.handover.ranges_of(service, &work.from);
        if let Some(first) = ranges.first() {
            let heir = steering.chains().heir(number, slot, range_hash(*first));
            let heir = slots.iter().find(|(_, slot)| Some(**slot) == heir).map(|(name, _)| name.clone());
            for range in ranges.into_iter().filter(|_| heir.is_some()) {
                let holders =
                    record.services.handover.holders.entry((work.service.clone(), range)).or_default();
                if let Some(name) = heir.clone()
                    && !holders.iter().any(|holder| holder.name == name)
                {
                    holders.push(Holder::new(name, false));
                }
            }
            work.to = heir;
        }
        if let Some(status) = record.services.handover.drained.get_mut(&work.from) {
            status.phase = HandoverPhase::Running;
        }
        Ok(())
    }

    /// The instances that get these flows; `Err` for those that have begun again at other instances.
    pub(crate) fn heirs(
        &mut self,
        work: &HandoverWork,
        groups: &[Vec<StateTuple>],
    ) -> Result<Vec<Result<Option<BoxName>, Elsewhere>>, OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let all = all_steering(&work.switch, runner)?;
        let (Some(steering), Some((_, number, slots))) = (all.first(), service_of(record, work)) else {
            return Ok(vec![Ok(None); groups.len()]);
        };
        let from = slots.get(&work.from).copied().unwrap_or(u8::MAX);
        let is_elsewhere = |tuple: &StateTuple| {
            let hash = flow_tuple(steering, tuple).hash;
            all.iter().any(|steering| steering.chains().is_elsewhere(number, hash, from))
        };
        let heir = |group: &Vec<StateTuple>| {
            if work.to.is_some() {
                return work.to.clone();
            }
            let heir = steering.chains().heir(number, from, flow_tuple(steering, group.first()?).hash)?;
            slots.iter().find(|(_, slot)| **slot == heir).map(|(name, _)| name.clone())
        };
        let of_group = |group: &Vec<StateTuple>| match group.iter().any(is_elsewhere) {
            true => Err(Elsewhere),
            false => Ok(heir(group)),
        };
        Ok(groups.iter().map(of_group).collect())
    }

    /// The instance that gets all flows of an instance whose state they share.
    pub(crate) fn heir_of_all(&mut self, work: &HandoverWork) -> Result<Option<BoxName>, OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let steering = steering(&work.switch, runner)?;
        let Some((_, number, slots)) = service_of(record, work) else { return Ok(None) };
        let from = slots.get(&work.from).copied().unwrap_or(u8::MAX);
        let heir = steering.chains().heir(number, from, u64::from(number) << 8 | u64::from(from));
        Ok(slots.iter().find(|(_, slot)| Some(**slot) == heir).map(|(name, _)| name.clone()))
    }

    /// Freezes flows of an instance: `None` for all. Returns what the instance was given before.
    pub(crate) fn freeze(
        &mut self,
        work: &HandoverWork,
        groups: Option<&[Vec<StateTuple>]>,
    ) -> Result<Option<GivenPackets>, OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let ports = record.ports_of_instance(&work.service, &work.from);
        let given = ports.into_iter().filter_map(|port| {
            let progress = runner.progress(port)?;
            Some((port, progress.taken + progress.waiting))
        });
        let given = GivenPackets(given.collect());
        let mut all = all_steering(&work.switch, runner)?;
        let Some((_, number, slots)) = service_of(record, work) else { return Ok(None) };
        let Some(slot) = slots.get(&work.from).copied() else { return Ok(None) };
        let freeze = |steering: &mut &mut Steering| match groups {
            Some(groups) => {
                let hashes = groups.iter().flatten().map(|tuple| flow_tuple(steering, tuple).hash).collect();
                steering.chains_mut().freeze_flows(number, slot, hashes)
            }
            None => steering.chains_mut().freeze_instance(number, slot),
        };
        let is_frozen = all.iter_mut().all(freeze);
        if !is_frozen {
            // In some threads they may be.
            all.into_iter().for_each(|steering| steering.chains_mut().thaw(true));
        }
        Ok(is_frozen.then_some(given))
    }

    /// Whether an instance has taken all that it was given.
    pub(crate) fn has_taken(
        &mut self,
        work: &HandoverWork,
        given: &GivenPackets,
    ) -> Result<bool, OperationError> {
        let (_, runner) = self.record_and_runner(&work.switch)?;
        let has_taken = |(port, count): &(PortId, u64)| {
            runner.progress(*port).is_none_or(|progress| progress.taken >= *count)
        };
        Ok(given.0.iter().all(has_taken))
    }

    /// Takes all that an instance has sent.
    pub(crate) fn collect_from(&mut self, work: &HandoverWork) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let ports = record.ports_of_instance(&work.service, &work.from);
        ports.into_iter().for_each(|port| runner.collect(port));
        Ok(())
    }

    /// Assigns flows to the instances that have their state.
    pub(crate) fn reassign(
        &mut self,
        work: &HandoverWork,
        moved: &[(Vec<StateTuple>, BoxName)],
    ) -> Result<(), OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let mut all = all_steering(&work.switch, runner)?;
        let Some((_, number, slots)) = service_of(record, work) else { return Ok(()) };
        let slot = |name: &BoxName| slots.get(name).copied();
        let mut counts: BTreeMap<BoxName, u64> = BTreeMap::new();
        for (group, to) in moved {
            if let (Some(from), Some(slot)) = (slot(&work.from), slot(to)) {
                // A record is in one of the threads; what follows from addresses holds in all.
                for steering in &mut all {
                    for tuple in group {
                        if let Some(hosts) = host_pair(tuple) {
                            steering.chains_mut().move_hosts(number, hosts, (from, slot));
                        } else if !tuple.is_of_addresses() {
                            let flow = flow_tuple(steering, tuple);
                            steering.chains_mut().reassign(number, &flow, (from, slot));
                        }
                    }
                }
                *counts.entry(to.clone()).or_default() += 1;
            }
        }
        let handover = &mut record.services.handover;
        for (name, count) in counts {
            *handover.taken_over.entry(name).or_default() += count;
        }
        if let Some(status) = handover.drained.get_mut(&work.from) {
            status.handed_over += moved.len() as u64;
        }
        Ok(())
    }

    /// Assigns the flows between these addresses, whose state another instance has. `at`: where to go on. Returns whether there are
    /// more.
    pub(crate) fn reassign_hosts(
        &mut self,
        work: &HandoverWork,
        hosts: &BTreeSet<HostPair>,
        at: usize,
    ) -> Result<Option<usize>, OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let mut all = all_steering(&work.switch, runner)?;
        let Some((_, number, slots)) = service_of(record, work) else { return Ok(None) };
        let to = work.to.as_ref().and_then(|to| slots.get(to));
        let (Some(from), Some(to)) = (slots.get(&work.from), to) else { return Ok(None) };
        let end = at + RECORDS_AT_ONCE;
        let chains = all.iter_mut().map(|steering| steering.chains_mut());
        let more = chains.map(|chains| chains.reassign_hosts(number, hosts, (*from, *to), at..end));
        Ok(more.fold(false, |any, has_more| any | has_more).then_some(end))
    }

    /// Assigns the flows without state. `at`: where to go on. Returns whether there are more.
    pub(crate) fn reassign_rest(
        &mut self,
        work: &HandoverWork,
        at: usize,
    ) -> Result<Option<usize>, OperationError> {
        let (record, runner) = self.record_and_runner(&work.switch)?;
        let mut all = all_steering(&work.switch, runner)?;
        let Some((_, number, slots)) = service_of(record, work) else { return Ok(None) };
        let Some(from) = slots.get(&work.from).copied() else { return Ok(None) };
        let to = work.to.as_ref().and_then(|to| slots.get(to)).copied();
        let instances = instances_of_shards(all.iter().map(|steering| &**steering), number);
        if instances.into_iter().any(|instance| instance.slot == from && instance.flows == 0) {
            // Packets from outside of a translator follow their range.
            return Ok(None);
        }
        let end = at + RECORDS_AT_ONCE;
        // All threads have equal tables.
        let rest =
            all.iter_mut().map(|steering| steering.chains_mut().reassign_rest((number, from), to, at..end));
        Ok(rest.fold(false, |any, has_more| any | has_more).then_some(end))
    }

    /// Lets the frames of frozen flows go on. Returns how many wait.
    pub(crate) fn thaw(&mut self, switch: &SwitchName, is_forced: bool) -> Result<usize, OperationError> {
        let (_, runner) = self.record_and_runner(switch)?;
        let held = all_steering(switch, runner)?.into_iter().map(|steering| {
            steering.chains_mut().thaw(is_forced);
            steering.chains().held()
        });
        Ok(held.sum())
    }

    /// Notes how a hand-over ended, and what was not handed over.
    pub(crate) fn end_handover(
        &mut self,
        work: &HandoverWork,
        (kept, lost): (u64, u64),
        problem: Option<String>,
    ) -> Result<Option<HandoverStatus>, OperationError> {
        let (record, _) = self.record_and_runner(&work.switch)?;
        let is_draining = service_of(record, work).is_some_and(|(service, ..)| {
            let mut instances = service.instances.iter();
            instances.any(|instance| instance.name == work.from && instance.draining)
        });
        let handover = &mut record.services.handover;
        let is_done = problem.is_none() && kept == 0;
        let status = handover.drained.get_mut(&work.from).map(|status| {
            status.phase = if is_done { HandoverPhase::Done } else { HandoverPhase::Failed };
            (status.kept, status.lost, status.problem) = (kept, status.lost + lost, problem);
            status.clone()
        });
        if !is_draining {
            // It is wanted again, and gets its flows back.
            handover.drained.remove(&work.from);
        }
        self.pass_ranges(work, is_done)?;
        Ok(status)
    }

    /// Gives the ranges of an instance whose flows others have to these, or, if not all of them have gone, notes when a range that goes
    /// back is tried again.
    pub(crate) fn pass_ranges(&mut self, work: &HandoverWork, is_done: bool) -> Result<(), OperationError> {
        let (record, _) = self.record_and_runner(&work.switch)?;
        let ranges = service_of(record, work)
            .map_or_else(Vec::new, |(service, ..)| record.services.handover.ranges_of(service, &work.from));
        let handover = &mut record.services.handover;
        let mut whole = Vec::new();
        if is_done {
            match (&work.range, &work.to) {
                (Some(range), _) => {
                    handover.release(&(work.service.clone(), *range), &work.from);
                    whole.push(*range);
                }
                (None, Some(to)) => {
                    whole.extend(ranges.iter().copied());
                    for range in ranges {
                        let key = (work.service.clone(), range);
                        let holders = handover.holders.entry(key).or_default();
                        holders.retain(|holder| holder.name != work.from && holder.name != *to);
                        holders.push(Holder::new(to.clone(), true));
                    }
                }
                (None, None) => {}
            }
        } else if let Some(range) = work.range {
            let holders = handover.holders.get_mut(&(work.service.clone(), range));
            let holder = holders.and_then(|all| all.iter_mut().find(|holder| holder.name == work.from));
            if let Some(holder) = holder {
                holder.retry_at = Some(Instant::now() + RETRY_INTERVAL * 2u32.pow(holder.failures));
                holder.failures = MAX_DOUBLINGS.min(holder.failures + 1);
            }
        }
        let is_whole = handover
            .holders
            .iter()
            .filter(|((service, _), _)| *service == work.service)
            .all(|(_, holders)| holders.iter().all(|holder| holder.owns));
        self.plan_again(&work.switch)?;
        let (record, runner) = self.record_and_runner(&work.switch)?;
        if let Some((_, number, _)) = service_of(record, work) {
            for steering in all_steering(&work.switch, runner)? {
                let chains = steering.chains_mut();
                whole.iter().for_each(|range| chains.forget_moved_hosts(number, range.address.to_bits()));
                if is_whole {
                    chains.forget_moved(number);
                }
            }
        }
        // Instances that wait for their ranges may have them now.
        self.wake_handovers();
        Ok(())
    }
}

impl SwitchRecord {
    /// The ports through which an instance gets the packets of chains.
    fn ports_of_instance(&self, service: &ServiceName, name: &BoxName) -> Vec<PortId> {
        let found = self.services.definition.services.iter().find(|found| found.name == *service);
        let faces = found.into_iter().flat_map(|service| service.faces.ports());
        let ports = faces.filter_map(|port| self.ports.get(&format!("{name}.{port}").parse().ok()?));
        ports.map(|port| port.id).collect()
    }
}
