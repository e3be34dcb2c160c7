//! Hands flows over from one instance of a service to others.
//!
//! Frozen flows reach no instance: their frames wait here, in order. Then the flows are assigned to the instances that have taken
//! their state over, and the frames go on. Frames that come meanwhile wait behind those of their flow.

use super::flow_records::{FlowRecord, Learnt, UNASSIGNED};
use super::freeze::{Freeze, HeldFrame};
use super::identity::Identity;
use super::instances::Service;
use super::table::{Chains, Step};
use super::translator::{EndPlace, HostPair, Moved};
use super::version::Version;
use crate::forward::PortKey;
use crate::forward::contract::{Outcome, Target};
use crate::port::PortId;
use flow_table::FlowTuple;
use reason::Reason;
use std::collections::BTreeSet;

/// Frames that wait at once. More would be lost in the rings that they go to, too.
const MAX_HELD: usize = 4096;

impl Chains {
    /// Whether flows are frozen.
    #[inline(always)]
    pub(crate) fn is_frozen(&self) -> bool {
        self.freeze.is_some()
    }

    /// Freezes the flows with these hashes that are assigned to an instance. Returns false if others are frozen.
    pub fn freeze_flows(&mut self, service: u16, slot: u8, flows: BTreeSet<u64>) -> bool {
        self.begin_freeze(Freeze { service, slot, flows: Some(flows), ..Freeze::default() })
    }

    /// Freezes all flows of an instance. Returns false if others are frozen.
    pub fn freeze_instance(&mut self, service: u16, slot: u8) -> bool {
        self.begin_freeze(Freeze { service, slot, ..Freeze::default() })
    }

    fn begin_freeze(&mut self, freeze: Freeze) -> bool {
        let is_free = self.freeze.is_none();
        if is_free {
            self.freeze = Some(Box::new(freeze));
        }
        is_free
    }

    /// Lets the frames of frozen flows go on, to the instances that these are assigned to now. `is_forced`: even if these have no
    /// room.
    pub fn thaw(&mut self, is_forced: bool) {
        if let Some(freeze) = &mut self.freeze {
            freeze.is_thawing = true;
            freeze.is_forced |= is_forced;
        }
        self.end_thaw();
    }

    fn end_thaw(&mut self) {
        if self.freeze.as_ref().is_some_and(|freeze| freeze.is_thawing && freeze.held.is_empty()) {
            self.freeze = None;
        }
    }

    /// Keeps a frame of a frozen flow.
    pub(crate) fn hold(&mut self, identity: Identity, frame: &[u8], outcome: &mut dyn Outcome) {
        let (record, version) = self.records.flow(identity.record);
        let (version, Some(freeze)) = (self.versions.get_mut(version), &mut self.freeze) else {
            return outcome.lose(Reason::NO_INSTANCE);
        };
        let has_room = freeze.held.len() < MAX_HELD;
        if let Some(version) = version {
            let count = if has_room { &mut version.books.waiting } else { &mut version.books.overflowed };
            *count += 1;
        }
        if !has_room {
            let slot = self.records.slot(identity.record, identity.hop.into());
            let (_, version) = self.records.flow(identity.record);
            self.count_overflow(version, identity, Some(slot), frame.len());
            return outcome.lose(Reason::HANDOVER_FULL);
        }
        let (_, version) = self.records.flow(identity.record);
        let hash = Version::flow_hash(record, version);
        *freeze.waiting.entry(hash).or_default() += 1;
        freeze.held.push_back(HeldFrame { identity, hash, version, frame: frame.into() });
        outcome.take();
    }

    /// Counts a frame of a frozen flow that is lost, at its hop and at its instance. Without a flow it has no instance.
    #[cold]
    fn count_overflow(&mut self, version: u32, identity: Identity, slot: Option<u8>, length: usize) {
        let (hop, direction) = (usize::from(identity.hop), usize::from(identity.reverse));
        let Some(version) = self.versions.get_mut(version) else { return };
        if let Some(counters) = version.counters.get_mut(hop) {
            counters[direction].add_lost(length);
        }
        let Some(service) = version.hops.get(hop).copied() else { return };
        match slot {
            Some(slot) => self.refuse_at_instance(service, slot),
            None => self.services.get_mut(service).into_iter().for_each(|service| service.no_instance += 1),
        }
    }

    /// Frames that wait.
    pub fn held(&self) -> usize {
        self.freeze.as_ref().map_or(0, |freeze| freeze.held.len())
    }

    /// Where the next frame goes that may go on: its port, unless room there does not matter.
    pub(crate) fn next_held(&self) -> Option<Option<PortKey>> {
        let freeze = self.freeze.as_ref().filter(|freeze| freeze.is_thawing)?;
        let HeldFrame { identity, .. } = freeze.held.front()?;
        if freeze.is_forced {
            return Some(None);
        }
        let Identity { record, hop, reverse, .. } = *identity;
        let service = self.services.get(freeze.service);
        let instance = service.and_then(|service| service.get(self.records.slot(record, hop.into())));
        Some(instance.map(|instance| instance.ports[usize::from(reverse)]))
    }

    /// Sends the next frame on.
    pub(crate) fn release_held(
        &mut self,
        now: u64,
        port: impl Fn(PortKey) -> Option<PortId>,
        outcome: &mut dyn Outcome,
    ) {
        let held = self.freeze.as_mut().filter(|freeze| freeze.is_thawing).and_then(|freeze| {
            let held = freeze.held.pop_front()?;
            if let Some(count) = freeze.waiting.get_mut(&held.hash) {
                *count -= 1;
                if *count == 0 {
                    freeze.waiting.remove(&held.hash);
                }
            }
            Some(held)
        });
        let Some(HeldFrame { identity, hash, version, frame }) = held else { return };
        let is_known = self.records.flow(identity.record) == (Version::record_hash(hash, version), version);
        if let Some(version) = self.versions.get_mut(version) {
            version.books.waiting = version.books.waiting.saturating_sub(1);
            version.books.overflowed += u64::from(!is_known);
        }
        // The frame goes on whatever waits behind it.
        let freeze = self.freeze.take();
        let Identity { record, hop, reverse, lookups, .. } = identity;
        let step = match is_known {
            true => self.deliver(record, Some(hop.into()), (reverse, lookups), frame.len(), now),
            // Its flow was displaced by others meanwhile.
            false => {
                self.count_overflow(version, identity, None, frame.len());
                Step::Lose(Reason::HANDOVER_FULL)
            }
        };
        self.freeze = freeze;
        self.end_thaw();
        match step {
            Step::To(key, tag) => match port(key) {
                Some(port) => outcome.send(Target::Function(port, tag), &frame),
                None => outcome.lose(Reason::NO_ROUTE),
            },
            Step::Lose(reason) => outcome.lose(reason),
            _ => outcome.lose(Reason::NO_INSTANCE),
        }
    }

    /// The instance that takes a flow over from another one: `None` if there is none.
    pub fn heir(&self, service: u16, slot: u8, hash: u64) -> Option<u8> {
        let service = self.services.get(service)?;
        let heir = service.choose(hash).filter(|heir| *heir != slot)?;
        service.get(heir).filter(|instance| !instance.is_draining).map(|_| heir)
    }

    /// Whether a flow is assigned to another instance that is up. What an instance knows of it is then out of date: the flow was
    /// forgotten while it was idle, and has begun again elsewhere.
    pub fn is_elsewhere(&self, service: u16, hash: u64, slot: u8) -> bool {
        let Some(found) = self.services.get(service) else {
            return false;
        };
        self.versions.with_service(service).into_iter().any(|version| {
            let at = self.records.peek(Version::record_hash(hash, version), version);
            let Some(record) = at.and_then(|at| self.records.get(at)) else { return false };
            let hops = self.versions.hops(version).unwrap_or_default();
            // The range decides about packets from outside, not the record.
            let is_inside = |hop: usize| record.outside.is_none_or(|outside| usize::from(outside.hop) != hop);
            hops.iter().enumerate().any(|(hop, number)| {
                let there = record.slots.get(hop).copied().unwrap_or(UNASSIGNED);
                *number == service && is_inside(hop) && there != slot && found.is_up(there)
            })
        })
    }

    /// Assigns a flow of an instance to another one, which has its state.
    pub fn reassign(&mut self, service: u16, tuple: &FlowTuple, (from, to): (u8, u8)) {
        let (hash, most) = (tuple.hash, self.records.capacity());
        if let Some(translator) = self.translator_mut(service)
            // A box may name the flows of others, or ever new ones.
            && translator.moved.flows.len() < most
            && translator.place_of_flow(tuple).is_some_and(|(place, _)| place == EndPlace::Range(from))
        {
            translator.moved.flows.insert(hash, to);
        }
        for version in self.versions.with_service(service) {
            let found = self.records.peek(Version::record_hash(hash, version), version);
            if let Some(at) = found {
                self.move_record(at, service, (from, to));
            }
        }
    }

    /// Notes that an instance has the state of all flows between two addresses. Assign their records as well.
    pub fn move_hosts(&mut self, service: u16, hosts: HostPair, slots: (u8, u8)) {
        let most = self.records.capacity();
        if let Some(translator) = self.translator_mut(service) {
            translator.move_hosts(hosts, slots, most);
        }
    }

    /// Assigns all flows between these addresses from one instance of a translator to another one, among these records. Returns
    /// whether there are more records.
    pub fn reassign_hosts(
        &mut self,
        service: u16,
        hosts: &BTreeSet<HostPair>,
        slots: (u8, u8),
        records: std::ops::Range<usize>,
    ) -> bool {
        for at in records.clone() {
            let at = at as u32;
            let is_of = |[inside, outside]: [u32; 2]| {
                hosts.contains(&HostPair::of(inside)) || hosts.contains(&HostPair::new(inside, outside))
            };
            if self.records.hosts(at).is_some_and(is_of) {
                self.move_record(at, service, slots);
            }
        }
        records.end < self.records.places()
    }

    /// Assigns all flows of an instance to others, among these records. `to`: the instance, unless each flow is assigned on its
    /// own. Returns whether there are more records.
    pub fn reassign_rest(
        &mut self,
        (service, from): (u16, u8),
        to: Option<u8>,
        records: std::ops::Range<usize>,
    ) -> bool {
        for at in records.clone() {
            let at = at as u32;
            let (record, version) = self.records.flow(at);
            if record != 0
                && let Some(to) = to.or_else(|| self.heir(service, from, Version::flow_hash(record, version)))
            {
                self.move_record(at, service, (from, to));
            }
        }
        records.end < self.records.places()
    }

    /// Notes that an instance has all flows of an address, which is of its range.
    pub fn forget_moved_hosts(&mut self, service: u16, address: u32) {
        if let Some(translator) = self.translator_mut(service) {
            translator.moved.forget_hosts(address);
        }
    }

    /// Notes that the instances of a translator have their ranges, and no single flows of others.
    pub fn forget_moved(&mut self, service: u16) {
        if let Some(translator) = self.translator_mut(service) {
            translator.moved = Moved::default();
        }
    }

    fn translator_mut(&mut self, service: u16) -> Option<&mut super::translator::Translator> {
        self.services.get_mut(service)?.translator.as_mut()
    }

    /// Gives a record another instance at the hops of a service.
    fn move_record(&mut self, at: u32, service: u16, (from, to): (u8, u8)) {
        let Some(FlowRecord { version, slots, outside, learnt, .. }) = self.records.get(at) else { return };
        let Self { records, services, versions, .. } = self;
        let Some(found) = services.get_mut(service) else { return };
        for (hop, number) in versions.hops(version).unwrap_or_default().iter().enumerate() {
            if *number != service || slots.get(hop) != Some(&from) || from == UNASSIGNED {
                continue;
            }
            records.set_slot(at, hop, to);
            if outside.is_none_or(|outside| usize::from(outside.hop) != hop) {
                found.release(from);
                found.assign(to);
            }
        }
        if learnt == Some(Learnt { service, slot: from }) {
            records.set_learnt(at, Some(Learnt { service, slot: to }));
            let count = |found: &mut Service, slot, by: isize| {
                if let Some(instance) = found.get_mut(slot) {
                    instance.learnt = instance.learnt.saturating_add_signed(by);
                }
            };
            count(found, from, -1);
            count(found, to, 1);
        }
    }
}
