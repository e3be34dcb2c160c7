//! Where packets of chains go next.
//!
//! When a packet enters a chain, its flow gets a record, which assigns an instance at each hop. The record and the hop are the
//! packet's identity, which the host notes while a function has the packet. So later hops look nothing up.

use super::counters::{ChainBooks, HopCounters};
use super::flow_records::{FlowRecord, FlowRecords, Learnt, Outside, Redirect, UNASSIGNED};
use super::freeze::Freeze;
use super::identity::{Diversion, Identity, Translated};
use super::instances::{OverruledAnswers, RefusedTuples, RemovedInstances, Service};
use super::numbered::Numbered;
use super::plan::{ChainPlan, ChainsPlan, DestinationPlan, MAX_HOPS};
use super::translator::{EndPlace, end_hash};
use super::version::{End, Version, VersionCounters, Versions, place};
use super::way::Way;
use crate::batch::FrameMark;
use crate::forward::PortKey;
use boundary::Answer;
use flow_table::FlowTuple;
use reason::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Records that are looked at for each flow that gets one.
pub(super) const SWEEP: usize = 4;

/// Earlier versions of a chain that are searched for the instances of a flow.
const MAX_EARLIER: usize = 64;

/// Seconds in which all records are looked at.
const SWEEP_SECONDS: usize = 60;

/// The counters of a chain. Pairs are of the forward direction and of the reverse one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainCounters {
    /// The packets of each hop, in the forward direction.
    pub hops: Vec<[HopCounters; 2]>,
    /// The mean time that each hop takes, in nanoseconds.
    pub times: Vec<Option<u64>>,
    /// What left the chain.
    pub left: [HopCounters; 2],
}

/// The state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    /// Its number in the service.
    pub slot: u8,
    /// Whether it can receive packets.
    pub is_up: bool,
    /// Whether it gets no new flows.
    pub is_draining: bool,
    /// Flows that are assigned to it.
    pub flows: u64,
    /// Packets for it, also those that were lost.
    pub packets: u64,
    /// Its answers that were overruled.
    pub overruled: u64,
    /// Flows that were learnt from what it translated.
    pub learnt: usize,
    /// What was not learnt.
    pub refused: RefusedTuples,
    /// Those of them for which it had no room, or that chains did not take because it had little.
    pub lost: u64,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// To this port, which notes the tag.
    To(PortKey, u64),
    /// Nowhere.
    Lose(Reason),
    /// Where the flows say.
    LookUp,
    /// To an instance of a service, for which its headers are needed; in reverse or not.
    Service(u16, bool),
    /// Into a chain, for which they are needed too.
    Chain(Diversion),
    /// Out of a translator, for which its headers are needed too.
    Leave(Identity),
    /// As above, in another shard than the one that knew its identity.
    Arrive(Translated),
    /// Nowhere as long as its flow is frozen.
    Hold(Identity),
}

/// The instance behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) service: u16,
    pub(super) slot: u8,
    /// The direction in which a packet that is sent there goes; `None` if the port has both.
    pub(super) reverse: Option<bool>,
    /// Whether the service is a translator, and the port has one direction.
    pub(super) translates: bool,
}

impl Role {
    /// Whether the service is a translator, and the port has one direction.
    pub(crate) fn translates(self) -> bool {
        self.translates
    }
}

#[derive(Debug)]
pub(super) struct Chain {
    pub(super) plan: ChainPlan,
    pub(super) version: u32,
    /// What the versions counted that are forgotten.
    past: VersionCounters,
}

/// The services and chains of a switch.
#[derive(Debug)]
pub struct Chains {
    pub(super) services: Numbered<Service>,
    /// The version for packets that go to one instance of a service, outside of chains.
    pub(super) single: Numbered<u32>,
    pub(super) chains: Numbered<Chain>,
    /// Which of the chains that had a number one after the other has it now, or had it last.
    pub(super) generations: Numbered<u16>,
    pub(super) versions: Versions,
    pub(super) records: FlowRecords,
    /// Whether a service is a translator.
    pub(super) has_translators: bool,
    /// The instance behind each port.
    roles: Numbered<Role>,
    /// The chain whose packets come from a port if no flow concerns them.
    defaults: Numbered<u16>,
    /// The only place of each service in a chain, if it has one place.
    homes: Numbered<(u16, usize)>,
    /// Ports that are connected.
    up: BTreeSet<PortKey>,
    /// Ports of instances that have little room left.
    pub(super) crowded: BTreeSet<PortKey>,
    /// Ports of instances that stand still.
    silent: BTreeSet<PortKey>,
    /// Flows that wait.
    pub(super) freeze: Option<Box<Freeze>>,
    /// The way of packets that go straight to another function.
    pub(super) direct: Option<Way>,
    seconds: u32,
}

impl Chains {
    /// No services, and room for the records of this many flows.
    pub(crate) fn new(flows: usize) -> Self {
        Self {
            services: Numbered::default(),
            single: Numbered::default(),
            chains: Numbered::default(),
            generations: Numbered::default(),
            versions: Versions::default(),
            records: FlowRecords::new(flows),
            has_translators: false,
            roles: Numbered::default(),
            defaults: Numbered::default(),
            homes: Numbered::default(),
            up: BTreeSet::new(),
            crowded: BTreeSet::new(),
            silent: BTreeSet::new(),
            freeze: None,
            direct: None,
            seconds: 0,
        }
    }

    /// Takes over a definition. Chains that change get another version; packets under way finish the one that they are in.
    /// Flows keep their instances.
    pub(crate) fn set(&mut self, plan: &ChainsPlan) {
        let Self { up, silent, .. } = self;
        let wanted: BTreeSet<u16> = plan.services.iter().map(|service| service.number).collect();
        for service in &plan.services {
            let there = self.services.entry(service.number).get_or_insert_default();
            there.redefine(service, |ports| {
                ports.iter().all(|port| up.contains(port) && !silent.contains(port))
            });
            let single = self.single.entry(service.number);
            if single.is_none() {
                *single = self.versions.add(&[service.number], [End::LookUp; 2], None);
            }
        }
        let unwanted = |(number, _): (u16, &Service)| (!wanted.contains(&number)).then_some(number);
        for number in self.services.iter().filter_map(unwanted).collect::<Vec<_>>() {
            self.services.remove(number);
            self.versions.clear_service(number);
            if let Some(version) = self.single.remove(number) {
                self.versions.retire(version, self.seconds);
            }
        }
        let mut old = std::mem::take(&mut self.chains);
        for chain in &plan.chains {
            let mut before = old.remove(chain.number);
            if before.is_none() {
                let generation = self.generations.entry(chain.number).get_or_insert_default();
                *generation = (*generation + 1) % Redirect::GENERATIONS;
            }
            let kept = before.as_ref().filter(|before| before.plan == *chain).map(|before| before.version);
            let mut past = before.as_mut().map(|before| std::mem::take(&mut before.past)).unwrap_or_default();
            past.places.retain(|(service, _), _| wanted.contains(service));
            let version = kept.or_else(|| {
                let previous = before.as_ref().map(|before| before.version);
                let ends = [End::Port(chain.to), chain.from.map_or(End::LookUp, End::Port)];
                let version = self.versions.add(&chain.services, ends, previous)?;
                self.versions.set_chain(version, chain.number);
                previous.into_iter().for_each(|previous| self.versions.retire(previous, self.seconds));
                Some(version)
            });
            *self.chains.entry(chain.number) =
                version.map(|version| Chain { plan: chain.clone(), version, past });
        }
        for chain in old.into_values() {
            self.versions.clear_chain(chain.plan.number);
            self.versions.retire(chain.version, self.seconds);
        }
        self.index();
    }

    /// Finds again what follows from the definition.
    fn index(&mut self) {
        self.roles.clear();
        self.has_translators = self.services.iter().any(|(_, service)| service.translator.is_some());
        if !self.has_translators {
            self.records.forget_hosts();
        }
        for (number, service) in self.services.iter() {
            let translates = service.translator.is_some();
            for (slot, instance) in service.instances() {
                let [inner, outer] = instance.ports;
                let directions = if inner == outer { [None, None] } else { [Some(true), Some(false)] };
                for (port, reverse) in instance.ports.into_iter().zip(directions) {
                    *self.roles.entry(port.0) = Some(Role {
                        service: number,
                        slot,
                        reverse,
                        translates: translates && reverse.is_some(),
                    });
                }
            }
        }
        self.defaults.clear();
        let mut places: BTreeMap<u16, Vec<(u16, usize)>> = BTreeMap::new();
        for (number, chain) in self.chains.iter() {
            let reverse = chain.plan.both_ways.then_some(chain.plan.to);
            for port in chain.plan.from.into_iter().chain(reverse) {
                self.defaults.entry(port.0).get_or_insert(number);
            }
            for (hop, service) in chain.plan.services.iter().enumerate() {
                places.entry(*service).or_default().push((number, hop));
            }
        }
        self.homes.clear();
        for (service, places) in places {
            if let [place] = places.as_slice() {
                *self.homes.entry(service) = Some(*place);
            }
        }
    }

    /// Notes whether a port is connected.
    pub(crate) fn set_port_up(&mut self, port: PortKey, is_up: bool) {
        let has_changed = match is_up {
            true => self.up.insert(port),
            false => self.up.remove(&port),
        };
        self.crowded.remove(&port);
        if self.silent.remove(&port) || has_changed {
            self.update_instance(port);
        }
    }

    /// Notes whether the instance behind a port stands still. Its flows go on at others then, as if it had ended.
    pub(crate) fn set_silent(&mut self, port: PortKey, is_silent: bool) {
        let has_changed = match is_silent {
            true => self.silent.insert(port),
            false => self.silent.remove(&port),
        };
        if has_changed {
            self.update_instance(port);
        }
    }

    /// Lets the instance behind a port leave: its flows go on at others, and it answers the packets that it has. Or ends that.
    pub fn set_leaving(&mut self, port: PortKey, is_leaving: bool) {
        if let Some(Role { service, slot, .. }) = self.roles.get(port.0).copied()
            && let Some(instance) = self.services.get_mut(service).and_then(|service| service.get_mut(slot))
        {
            instance.is_leaving = is_leaving;
            self.update_instance(port);
        }
    }

    /// Finds out again whether the instance behind a port can receive packets.
    fn update_instance(&mut self, port: PortKey) {
        let Self { up, silent, .. } = self;
        if let Some(Role { service, slot, .. }) = self.roles.get(port.0).copied()
            && let Some(service) = self.services.get_mut(service)
            && let Some(ports) = service.get(slot).map(|instance| instance.ports)
        {
            service.set_up(slot, ports.iter().all(|port| up.contains(port) && !silent.contains(port)));
        }
    }

    /// The instance behind a port.
    #[inline(always)]
    pub(crate) fn role(&self, port: PortKey) -> Option<Role> {
        self.roles.get(port.0).copied()
    }

    /// How often a frame that a function sent was looked up, if it is looked up now.
    #[inline(always)]
    pub(crate) fn lookups(mark: FrameMark) -> u8 {
        Identity::from_tag(mark.tag).map_or(0, |identity| identity.lookups + 1)
    }

    /// Prefetches what the next step of a frame needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, mark: FrameMark) {
        if let Some(identity) = Identity::from_tag(mark.tag) {
            self.records.prefetch_at(identity.record);
        }
    }

    /// Where a frame goes that an instance sent.
    pub(crate) fn follow(&mut self, role: Role, mark: FrameMark, length: usize, now: u64) -> Step {
        let translated = if role.translates { Translated::from_tag(mark.tag) } else { None };
        let identity = match translated {
            None => Identity::from_tag(mark.tag).and_then(|identity| self.confirm(role, identity, now)),
            Some(_) => None,
        };
        let version = || {
            identity
                .map(|identity| self.records.flow(identity.record).1)
                .or(translated.map(|found| found.version))
        };
        match Answer::from_meta(mark.meta) {
            Answer::Drop => {
                self.note(version(), |books| books.dropped += 1);
                Step::Lose(Reason::FUNCTION_DROP)
            }
            Answer::LookUp => {
                self.note(version(), |books| books.elsewhere += 1);
                Step::LookUp
            }
            Answer::Next => self.next(role, (identity, translated), length, now),
            answer @ (Answer::Service(destination)
            | Answer::Port(destination)
            | Answer::Chain(destination)
            | Answer::FlowChain(destination)) => {
                let version = version();
                // The side at which the instance sends it says so, or else how it passed its own chain.
                let reverse = role.reverse.or(identity.map(|identity| identity.reverse)).unwrap_or(false);
                let service = self.services.get_mut(role.service);
                let allowed = service
                    .as_ref()
                    .and_then(|service| service.destinations.get(usize::from(destination)))
                    .copied();
                let step = match (answer, allowed) {
                    (Answer::Service(_), Some(DestinationPlan::Service(service))) => {
                        Step::Service(service, reverse)
                    }
                    (Answer::Port(_), Some(DestinationPlan::Port(port))) => Step::To(port, 0),
                    (Answer::Chain(_) | Answer::FlowChain(_), Some(DestinationPlan::Chain(chain)))
                        if self.chains.get(chain).is_some() =>
                    {
                        Step::Chain(Diversion {
                            chain,
                            version,
                            record: identity.map(|identity| identity.record),
                            reverse,
                            has_flow: matches!(answer, Answer::FlowChain(_)),
                        })
                    }
                    _ => {
                        if let Some(service) = service {
                            service.overrule(role.slot, destination);
                        }
                        return self.next(role, (identity, translated), length, now);
                    }
                };
                self.note(version, |books| books.elsewhere += 1);
                step
            }
        }
    }

    /// Notes something about a packet of a chain.
    #[inline(always)]
    pub(super) fn note(&mut self, version: Option<u32>, note: impl FnOnce(&mut ChainBooks)) {
        if let Some(version) = version.and_then(|version| self.versions.get_mut(version)) {
            note(&mut version.books);
        }
    }

    /// The identity, if it is that of a packet that the instance was given.
    #[inline(always)]
    fn confirm(&mut self, role: Role, identity: Identity, now: u64) -> Option<Identity> {
        let (hash, version) = self.records.flow(identity.record);
        let hop = usize::from(identity.hop);
        let version = self.versions.get_mut(version)?;
        let is_own = hash != 0
            && (hash >> 48) as u16 == identity.check
            && version.hops.get(hop) == Some(&role.service)
            && (self.records.slot(identity.record, hop) == role.slot
                // The tag is the host's: the instance was given the packet.
                || self.services.get(role.service).is_some_and(|service| service.is_leaving(role.slot)));
        if !is_own {
            return None;
        }
        version.measure(hop, identity.record, now);
        version.books.returned += 1;
        Some(identity)
    }

    #[inline(always)]
    fn next(
        &mut self,
        role: Role,
        (identity, translated): (Option<Identity>, Option<Translated>),
        length: usize,
        now: u64,
    ) -> Step {
        let Some(identity) = identity else { return translated.map_or(Step::LookUp, Step::Arrive) };
        if role.translates {
            return Step::Leave(identity);
        }
        self.go_on(role, identity, length, now)
    }

    /// Sends a frame of an instance on in its chain.
    #[inline(always)]
    pub(super) fn go_on(&mut self, role: Role, identity: Identity, length: usize, now: u64) -> Step {
        let Identity { record, hop, reverse, lookups, .. } = identity;
        let reverse = role.reverse.unwrap_or(reverse);
        let next = if reverse { hop.checked_sub(1) } else { hop.checked_add(1) };
        self.deliver(record, next.map(usize::from), (reverse, lookups), length, now)
    }

    /// Sends a frame to a hop of its chain, or out of it.
    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        record: u32,
        hop: Option<usize>,
        (reverse, lookups): (bool, u8),
        length: usize,
        now: u64,
    ) -> Step {
        let (hash, number) = self.records.flow(record);
        let direction = usize::from(reverse);
        let Some(version) = self.versions.get_mut(number) else { return Step::LookUp };
        let Some((hop, number_of_service)) = hop.and_then(|hop| Some((hop, *version.hops.get(hop)?))) else {
            let end = match version.ends[direction] {
                End::LookUp if reverse => self.records.back(record).map_or(End::LookUp, End::Port),
                end => end,
            };
            return match end {
                End::Port(port) => {
                    version.books.left += 1;
                    version.left[direction].add(length);
                    Step::To(port, 0)
                }
                End::LookUp => {
                    version.books.elsewhere += 1;
                    Step::LookUp
                }
            };
        };
        let counters = version.counters.get_mut(hop).map(|both| &mut both[direction]);
        let mut slot = self.records.slot(record, hop);
        let check = (hash >> 48) as u16;
        let identity = Identity { record, check, hop: hop as u8, reverse, lookups };
        if let Some(freeze) = &self.freeze
            && freeze.holds(number_of_service, slot, Version::flow_hash(hash, number))
        {
            return Step::Hold(identity);
        }
        let mut service = self.services.get_mut(number_of_service);
        let instance = service.as_mut().and_then(|service| {
            if !service.is_up(slot) {
                // No other instance could translate it.
                if self.records.outside(record).is_some_and(|outside| usize::from(outside.hop) == hop) {
                    return None;
                }
                let chosen = service.choose(Version::flow_hash(hash, number))?;
                service.release(slot);
                service.assign(chosen);
                slot = chosen;
                self.records.set_slot(record, hop, slot);
            }
            service.get_mut(slot)
        });
        let Some(instance) = instance else {
            counters.into_iter().for_each(|counters| counters.add_lost(length));
            version.books.no_instance += 1;
            service.into_iter().for_each(|service| service.no_instance += 1);
            return Step::Lose(Reason::NO_INSTANCE);
        };
        instance.packets += 1;
        version.books.sent += 1;
        counters.into_iter().for_each(|counters| counters.add(length));
        version.start_sample(hop, record, now);
        Step::To(instance.ports[direction], identity.to_tag())
    }

    /// Counts a packet that was not sent to its instance because of it.
    #[cold]
    pub(super) fn refuse_at_instance(&mut self, service: u16, slot: u8) {
        let service = self.services.get_mut(service);
        if let Some(instance) = service.and_then(|service| service.get_mut(slot)) {
            instance.packets += 1;
            instance.lost += 1;
        }
    }

    /// Counts packets that were sent to an instance, for which there was no room.
    #[cold]
    fn lose_at_instance(&mut self, service: u16, slot: u8, frames: u64) {
        let Some(service) = self.services.get_mut(service) else { return };
        match service.get_mut(slot) {
            Some(instance) => instance.lost += frames,
            // It was removed while its packets were on the way.
            None => service.removed.lost += frames,
        }
    }

    /// The chain that packets from a port take if no flow concerns them.
    #[inline(always)]
    pub(crate) fn default_chain(&self, port: PortKey) -> Option<u16> {
        self.defaults.get(port.0).copied()
    }

    /// Whether the service of a function has one place in one chain.
    #[inline(always)]
    pub(crate) fn has_home(&self, role: Role) -> bool {
        self.homes.get(role.service).is_some()
    }

    /// Where a frame goes that has no identity and that no flow concerns: on from the only place of its service in a chain,
    /// if there is one.
    pub(crate) fn continue_at_home(
        &mut self,
        role: Role,
        (tuple, lookups): (&FlowTuple, u8),
        length: usize,
        now: u64,
    ) -> Option<Step> {
        let (chain, hop) = self.homes.get(role.service)?;
        let (version, hop) = (self.chains.get(*chain)?.version, *hop);
        let reverse = role.reverse.unwrap_or(false);
        let next = if reverse { hop.checked_sub(1) } else { Some(hop + 1) };
        let record = match role.translates {
            true => match self.made_by_translator(role, (version, hop), tuple, now) {
                Ok(record) => record,
                Err(reason) => return Some(Step::Lose(reason)),
            },
            false => self.record(tuple, version, reverse, now)?,
        };
        self.note(Some(version), |books| books.entered += 1);
        Some(self.deliver(record, next, (reverse, lookups), length, now))
    }

    /// Prefetches what leads to the record of a flow that enters a chain.
    #[inline(always)]
    pub(crate) fn prefetch_index(&self, chain: u16, hash: u64) {
        if let Some(chain) = self.chains.get(chain) {
            self.records.prefetch_index(Version::record_hash(hash, chain.version));
        }
    }

    /// Prefetches the record of a flow that enters a chain, after what leads to it.
    #[inline(always)]
    pub(crate) fn prefetch_record(&self, chain: u16, hash: u64) {
        if let Some(chain) = self.chains.get(chain) {
            self.records.prefetch(Version::record_hash(hash, chain.version));
        }
    }

    /// The record of a flow in a version. `reverse`: the direction in which a frame passes the chain.
    #[inline(always)]
    pub(super) fn record(&mut self, tuple: &FlowTuple, version: u32, reverse: bool, now: u64) -> Option<u32> {
        let seconds = (now / 1_000_000_000) as u32;
        let hash = Version::record_hash(tuple.hash, version);
        match self.records.find(hash, version, seconds) {
            Some(record) => {
                if self.has_translators {
                    self.assign_owner(record, tuple, version);
                }
                Some(record)
            }
            None => self.new_record(tuple, version, reverse, seconds),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_record(&mut self, tuple: &FlowTuple, version: u32, reverse: bool, seconds: u32) -> Option<u32> {
        let translator = self.first_translator(version, reverse);
        let record = self.assignment(tuple, version, translator, seconds)?;
        let (record, displaced) = self.records.insert(record, seconds);
        if self.has_translators {
            self.records.set_hosts(record, tuple, reverse);
        }
        displaced.into_iter().for_each(|old| release(&mut self.services, &self.versions, &old));
        self.forget(SWEEP, seconds);
        Some(record)
    }

    /// The hop of the first translator that a frame meets which passes a version in this direction.
    fn first_translator(&self, version: u32, reverse: bool) -> Option<usize> {
        let translates = |number: &u16| {
            let service = self.services.get(*number);
            service.is_some_and(|service| service.translator.is_some())
        };
        let hops = self.versions.hops(version)?;
        if reverse { hops.iter().rposition(translates) } else { hops.iter().position(translates) }
    }

    /// Assigns a new flow to instances. With a `translator`, those of other hops are assigned when a packet comes there, unless
    /// the flow had them before: behind the translator, the packets belong to another flow.
    pub(super) fn assignment(
        &mut self,
        tuple: &FlowTuple,
        number: u32,
        translator: Option<usize>,
        seconds: u32,
    ) -> Option<FlowRecord> {
        let flow = tuple.hash;
        let version = self.versions.get(number)?;
        let mut slots = [UNASSIGNED; MAX_HOPS];
        let mut outside = None;
        // A flow keeps what was assigned to it in an earlier version of the chain.
        let versions = &self.versions;
        let earlier = std::iter::successors(version.previous, |number| versions.get(*number)?.previous);
        let old = earlier.take(MAX_EARLIER).find_map(|number| {
            let record = self.records.find(Version::record_hash(flow, number), number, seconds)?;
            Some((versions.get(number)?, self.records.get(record)?))
        });
        for (hop, number) in version.hops.iter().enumerate() {
            let kept = old.as_ref().and_then(|(version, record)| {
                let place = version.hops.iter().position(|hop| hop == number)?;
                record.slots.get(place).copied()
            });
            let service = self.services.get_mut(*number);
            let Some(service) = service else { continue };
            let kept = kept.filter(|slot| service.is_up(*slot));
            let place = service.translator.as_ref().and_then(|found| found.place_of_flow(tuple));
            let chosen = match place {
                Some((EndPlace::Range(slot), _)) => Some(slot),
                Some((EndPlace::Outside | EndPlace::Inside, _)) => kept.or_else(|| service.first()),
                None if translator.is_none_or(|first| hop == first) => kept.or_else(|| service.choose(flow)),
                None => kept,
            };
            if let (Some((EndPlace::Range(_) | EndPlace::Outside, far)), None) = (place, outside) {
                outside = Some(Outside { hop: hop as u8, far: end_hash(tuple.protocol, far) });
            }
            if let (Some(slot), Some(place)) = (chosen, slots.get_mut(hop)) {
                *place = slot;
                if outside.is_none_or(|outside| usize::from(outside.hop) != hop) {
                    service.assign(slot);
                }
            }
        }
        let hash = Version::record_hash(flow, number);
        let redirect = old.and_then(|(_, record)| record.redirect);
        Some(FlowRecord { hash, version: number, slots, outside, learnt: None, redirect })
    }

    pub(super) fn forget(&mut self, count: usize, seconds: u32) {
        let Self { records, services, versions, .. } = self;
        let is_dead = |version| versions.get(version).is_none();
        records.forget(count, seconds, is_dead, |old| release(services, versions, &old));
    }

    /// Forgets flows without packets, and versions that no packet is in any more. Call it at
    /// [`next_deadline`](Self::next_deadline), or more often.
    pub(crate) fn expire(&mut self, now: u64) {
        let seconds = (now / 1_000_000_000) as u32;
        if seconds == self.seconds {
            return;
        }
        self.seconds = seconds;
        let Self { versions, chains, .. } = self;
        for version in versions.expire(seconds) {
            if let Some(chain) = version.chain.and_then(|chain| chains.get_mut(chain)) {
                chain.past.add(&version);
            }
        }
        if self.records.len() > 0 {
            self.forget(self.records.places() / SWEEP_SECONDS + 1, seconds);
        }
    }

    /// When [`expire`](Self::expire) has something to do, in nanoseconds.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let has_work = self.records.len() > 0 || self.versions.has_retired();
        has_work.then(|| (u64::from(self.seconds) + 1) * 1_000_000_000)
    }

    /// Counts a frame that there was no room for at the port that it was sent to with this tag.
    #[cold]
    pub(crate) fn count_lost(&mut self, tag: u64, frames: u64) {
        let Some(Identity { record, hop, reverse, .. }) = Identity::from_tag(tag) else { return };
        let (_, version) = self.records.flow(record);
        let Some(version) = self.versions.get_mut(version) else { return };
        let hop = usize::from(hop);
        version.books.full += frames;
        if let Some(counters) = version.counters.get_mut(hop) {
            counters[usize::from(reverse)].lost += frames;
        }
        if let Some(service) = version.hops.get(hop).copied() {
            self.lose_at_instance(service, self.records.slot(record, hop), frames);
        }
    }

    /// What became of the packets of a chain.
    pub fn books(&self, chain: u16) -> Option<ChainBooks> {
        Some(self.counted(chain)?.books)
    }

    /// What all versions of a chain counted.
    fn counted(&self, chain: u16) -> Option<VersionCounters> {
        let mut sum = self.chains.get(chain)?.past.clone();
        self.versions.sum(chain, &mut sum);
        Some(sum)
    }

    /// The counters of a chain. A hop keeps its counters in the next version, wherever its service is there.
    pub fn counters(&self, chain: u16) -> Option<ChainCounters> {
        let version = self.versions.get(self.chains.get(chain)?.version)?;
        let VersionCounters { places, left, .. } = self.counted(chain)?;
        let counters = |hop| place(&version.hops, hop).and_then(|place| places.get(&place).copied());
        let hops = (0..version.hops.len()).map(|hop| counters(hop).unwrap_or_default()).collect();
        Some(ChainCounters { hops, times: version.times(), left })
    }

    /// The instances of a service.
    pub fn instances(&self, service: u16) -> Vec<InstanceStatus> {
        let service = self.services.get(service);
        let status = |(slot, instance): (u8, &super::instances::Instance)| InstanceStatus {
            slot,
            is_up: instance.is_up || instance.is_leaving,
            is_draining: instance.is_draining || instance.is_leaving,
            flows: instance.flows,
            packets: instance.packets,
            overruled: instance.overruled,
            learnt: instance.learnt,
            refused: instance.refused,
            lost: instance.lost,
        };
        service.into_iter().flat_map(Service::instances).map(status).collect()
    }

    /// Packets for which a service had no instance.
    pub fn without_instance(&self, service: u16) -> u64 {
        self.services.get(service).map_or(0, |service| service.no_instance)
    }

    /// Answers of the instances of a service that were overruled.
    pub fn overruled(&self, service: u16) -> OverruledAnswers {
        self.services.get(service).map(|service| service.overruled.clone()).unwrap_or_default()
    }

    /// What the instances of a service counted that it no longer has.
    pub fn removed_instances(&self, service: u16) -> RemovedInstances {
        self.services.get(service).map(|service| service.removed).unwrap_or_default()
    }

    /// Flows that are assigned to instances, and living ones that were displaced by others.
    pub fn flows(&self) -> (usize, u64) {
        (self.records.len(), self.records.displaced)
    }
}

/// Notes that a flow is no longer assigned to instances.
pub(super) fn release(services: &mut Numbered<Service>, versions: &Versions, record: &FlowRecord) {
    if let Some(Learnt { service, slot }) = record.learnt
        && let Some(service) = services.get_mut(service)
        && let Some(instance) = service.get_mut(slot)
    {
        instance.learnt = instance.learnt.saturating_sub(1);
    }
    let Some(hops) = versions.hops(record.version) else { return };
    for (hop, (service, slot)) in (0u8..).zip(hops.iter().zip(record.slots)) {
        if record.outside.is_some_and(|outside| outside.hop == hop) {
            continue;
        }
        if let Some(service) = services.get_mut(*service) {
            service.release(slot);
        }
    }
}
