//! Where packets go that translators sent.
//!
//! Behind a translator a packet belongs to another flow, with a record of its own in the same version of the chain. So both
//! directions of each flow find their instances by their own hash. Records are learnt before the packet leaves. At the translator
//! itself the range of addresses decides, so that nothing depends on the record.

use super::flow_records::{Learnt, Outside, UNASSIGNED};
use super::identity::{Identity, Translated};
use super::instances::{Instance, Service};
use super::table::{Chains, Role, SWEEP, Step, release};
use super::translator::{EndPlace, end_hash};
use super::version::Version;
use crate::batch::FrameMark;
use boundary::Answer;
use flow_table::{FlowEnd, FlowTuple};
use reason::Reason;

/// The records that one instance may have made, as a part of all: else it could fill the table.
const LEARNT_SHARE: usize = 8;

/// Why a flow is not learnt from what an instance sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OutOfRange,
    Taken,
    NoRoom,
}

impl Refusal {
    fn reason(self) -> Reason {
        match self {
            Self::OutOfRange => Reason::OUT_OF_RANGE,
            Self::Taken => Reason::FLOW_TAKEN,
            Self::NoRoom => Reason::TOO_MANY_FLOWS,
        }
    }
}

/// A place of a service in a version.
type At = (u32, usize);

impl Chains {
    /// Sends a packet on that a translator had.
    pub(crate) fn leave(
        &mut self,
        role: Role,
        identity: Identity,
        tuple: &FlowTuple,
        length: usize,
        now: u64,
    ) -> Step {
        let (hash, version) = self.records.flow(identity.record);
        let Some(ends) = tuple.ends.filter(|_| hash != Version::record_hash(tuple.hash, version)) else {
            return self.go_on(role, identity, length, now);
        };
        let (hop, seconds) = (usize::from(identity.hop), (now / 1_000_000_000) as u32);
        let allowed = self.check_tuple(role, identity.record, hop, tuple, ends);
        let learnt = allowed.and_then(|()| self.find_or_learn(role, (version, hop), tuple, true, seconds));
        match learnt {
            Ok(record) => self.go_on(role, Identity { record, ..identity }, length, now),
            Err(refusal) => {
                self.count_refusal(role, refusal);
                match refusal {
                    // It goes on by the record of its flow before the translation.
                    Refusal::NoRoom => {
                        self.assign_later(identity.record, (version, hop), tuple, role);
                        self.go_on(role, identity, length, now)
                    }
                    refusal => Step::Lose(refusal.reason()),
                }
            }
        }
    }

    /// The tag for another shard of a packet that a translator sent, if it belongs to another flow now, and may: towards the inside,
    /// that follows from the record of its flow here. All else is found out there.
    pub(crate) fn translated(
        &mut self,
        role: Role,
        mark: FrameMark,
        tuple: &FlowTuple,
        now: u64,
    ) -> Option<u64> {
        let identity = Identity::from_tag(mark.tag)?;
        let Identity { record, hop, lookups, .. } = identity;
        let (hash, version) = self.records.flow(record);
        let is_other = tuple.ends.is_some() && hash != Version::record_hash(tuple.hash, version);
        if !is_other || Answer::from_meta(mark.meta) == Answer::Drop || !self.is_own(role, identity) {
            return None;
        }
        let at = usize::from(hop);
        let [source, _] = tuple.ends?;
        if role.reverse == Some(true) && !self.came_from(record, at, tuple, source) {
            return None;
        }
        self.versions.get_mut(version)?.measure(at, record, now);
        Some(Translated { version, hop, lookups }.to_tag())
    }

    /// Whether an identity is that of a packet that the instance was given.
    fn is_own(&self, role: Role, identity: Identity) -> bool {
        let (hash, version) = self.records.flow(identity.record);
        let hop = usize::from(identity.hop);
        hash != 0
            && (hash >> 48) as u16 == identity.check
            && self.versions.hops(version).and_then(|hops| hops.get(hop)) == Some(&role.service)
            && self.records.slot(identity.record, hop) == role.slot
    }

    /// Notes that such a packet was passed on.
    pub(crate) fn passed_translated(&mut self, tag: u64) {
        let version =
            Translated::from_tag(tag).and_then(|translated| self.versions.get_mut(translated.version));
        version.into_iter().for_each(|version| version.books.returned += 1);
    }

    /// Sends a packet on that a translator sent through another shard. Without room for its flow it is lost: the record of its flow
    /// before the translation is there.
    pub(crate) fn arrive(
        &mut self,
        role: Role,
        translated: Translated,
        tuple: &FlowTuple,
        length: usize,
        now: u64,
    ) -> Step {
        let Translated { version, hop, lookups } = translated;
        let (at, seconds) = ((version, usize::from(hop)), (now / 1_000_000_000) as u32);
        let is_there = self.versions.hops(version).and_then(|hops| hops.get(at.1)) == Some(&role.service);
        let Some([source, _]) = tuple.ends.filter(|_| is_there) else { return Step::LookUp };
        let allowed = match role.reverse {
            Some(true) => Ok(()),
            _ => self.check_source(role, at, tuple, source),
        };
        match allowed.and_then(|()| self.find_or_learn(role, at, tuple, true, seconds)) {
            Ok(record) => {
                self.go_on(role, Identity { record, check: 0, hop, reverse: false, lookups }, length, now)
            }
            Err(refusal) => {
                self.count_refusal(role, refusal);
                Step::Lose(refusal.reason())
            }
        }
    }

    /// The record for a packet of a translator that has no identity, so that it may be one that the function made.
    pub(super) fn made_by_translator(
        &mut self,
        role: Role,
        (version, hop): At,
        tuple: &FlowTuple,
        now: u64,
    ) -> Result<u32, Reason> {
        let seconds = (now / 1_000_000_000) as u32;
        let place = tuple.ends.and_then(|[source, _]| self.place(role, tuple, source));
        let found = match (role.reverse, place) {
            (Some(false), Some(EndPlace::Range(slot))) if slot != role.slot => Err(Refusal::OutOfRange),
            (Some(false), Some(EndPlace::Range(_))) => {
                self.find_or_learn(role, (version, hop), tuple, true, seconds)
            }
            (Some(false), Some(EndPlace::Outside))
                if !self.is_first(role) && !self.has_record(role, (version, hop), tuple) =>
            {
                Err(Refusal::OutOfRange)
            }
            // What it made itself is no flow of its own; nor is it one of another instance.
            _ => self.find_or_learn(role, (version, hop), tuple, false, seconds),
        };
        found.map_err(|refusal| {
            self.count_refusal(role, refusal);
            refusal.reason()
        })
    }

    /// Returns an error if an instance may not make this flow of the one with a record.
    fn check_tuple(
        &self,
        role: Role,
        record: u32,
        hop: usize,
        tuple: &FlowTuple,
        [source, _]: [FlowEnd; 2],
    ) -> Result<(), Refusal> {
        let (_, version) = self.records.flow(record);
        match role.reverse {
            Some(true) if self.came_from(record, hop, tuple, source) => Ok(()),
            Some(true) => Err(Refusal::OutOfRange),
            _ => self.check_source(role, (version, hop), tuple, source),
        }
    }

    /// Towards the inside: whether the flow with a record is that of packets which came to the instance's range from this source.
    fn came_from(&self, record: u32, hop: usize, tuple: &FlowTuple, source: FlowEnd) -> bool {
        self.records.outside(record).is_some_and(|Outside { hop: at, far }| {
            usize::from(at) == hop && far == end_hash(tuple.protocol, source)
        })
    }

    /// Towards the outside: returns an error unless a flow comes from the range of an instance.
    fn check_source(&self, role: Role, at: At, tuple: &FlowTuple, source: FlowEnd) -> Result<(), Refusal> {
        let is_allowed = match self.place(role, tuple, source) {
            Some(EndPlace::Range(slot)) => slot == role.slot,
            // The instance that gets the packets to a static mapping.
            Some(EndPlace::Outside) => self.is_first(role) || self.has_record(role, at, tuple),
            _ => false,
        };
        if is_allowed { Ok(()) } else { Err(Refusal::OutOfRange) }
    }

    fn place(&self, role: Role, tuple: &FlowTuple, end: FlowEnd) -> Option<EndPlace> {
        let service = self.services.get(role.service)?;
        service.translator.as_ref()?.place_in_flow(tuple, end)
    }

    fn is_first(&self, role: Role) -> bool {
        let service = self.services.get(role.service);
        service.and_then(|service| service.first()) == Some(role.slot)
    }

    /// Whether a flow has a record that assigns it to an instance.
    fn has_record(&self, role: Role, (version, hop): At, tuple: &FlowTuple) -> bool {
        let found = self.records.peek(Version::record_hash(tuple.hash, version), version);
        found.is_some_and(|record| self.records.slot(record, hop) == role.slot)
    }

    /// The record of a flow that an instance sent. If there is none, it is made, and `claims` the flow for the instance.
    fn find_or_learn(
        &mut self,
        role: Role,
        (version, hop): At,
        tuple: &FlowTuple,
        claims: bool,
        seconds: u32,
    ) -> Result<u32, Refusal> {
        let hash = Version::record_hash(tuple.hash, version);
        let learnt = Learnt { service: role.service, slot: role.slot };
        if let Some(record) = self.records.find(hash, version, seconds) {
            let slot = self.records.slot(record, hop);
            let is_up = |service: &Service| service.is_up(slot);
            let service = self.services.get(role.service);
            return match slot {
                slot if slot == role.slot => Ok(record),
                // Others than IPv4 are not translated.
                _ if tuple.ends.is_none() || self.records.learnt(record) == Some(learnt) => Ok(record),
                slot if slot == UNASSIGNED || service.is_some_and(is_up) => Err(Refusal::Taken),
                _ => {
                    if claims {
                        self.assign_slot(record, hop, role.service, role.slot);
                    }
                    Ok(record)
                }
            };
        }
        let most = self.records.capacity() / LEARNT_SHARE;
        if self.instance(role).is_none_or(|instance| instance.learnt >= most) {
            return Err(Refusal::NoRoom);
        }
        let mut record = self.assignment(tuple, version, Some(hop), seconds).ok_or(Refusal::NoRoom)?;
        let is_outside = record.outside.is_some_and(|outside| usize::from(outside.hop) == hop);
        if claims && let Some(slot) = record.slots.get_mut(hop) {
            let before = std::mem::replace(slot, role.slot);
            if !is_outside && let Some(service) = self.service(role.service) {
                service.release(before);
                service.assign(role.slot);
            }
        }
        if let Some(instance) = self.instance(role) {
            instance.learnt += 1;
        }
        record.learnt = Some(learnt);
        let Some((at, displaced)) = self.records.insert_learnt(record, seconds) else {
            release(&mut self.services, &self.versions, &record);
            return Err(Refusal::NoRoom);
        };
        self.records.set_hosts(at, tuple, role.reverse == Some(true));
        displaced.into_iter().for_each(|old| release(&mut self.services, &self.versions, &old));
        self.forget(SWEEP, seconds);
        Ok(at)
    }

    /// Assigns the hops behind a translator as the flow behind it would be, if it had a record.
    #[cold]
    fn assign_later(&mut self, record: u32, (version, hop): At, tuple: &FlowTuple, role: Role) {
        let hops: Vec<u16> = self.versions.hops(version).unwrap_or_default().to_vec();
        let is_later = |at: usize| if role.reverse == Some(true) { at < hop } else { at > hop };
        for (at, number) in hops.iter().enumerate().filter(|(at, _)| is_later(*at)) {
            let slot = self.records.slot(record, at);
            let Some(service) = self.service(*number).filter(|service| !service.is_up(slot)) else {
                continue;
            };
            if let Some(chosen) = service.choose(tuple.hash) {
                self.assign_slot(record, at, *number, chosen);
            }
        }
    }

    /// Gives a record another instance at a hop.
    fn assign_slot(&mut self, record: u32, hop: usize, service: u16, slot: u8) {
        let before = self.records.slot(record, hop);
        let is_outside = self.records.outside(record).is_some_and(|found| usize::from(found.hop) == hop);
        self.records.set_slot(record, hop, slot);
        if !is_outside && let Some(service) = self.service(service) {
            service.release(before);
            service.assign(slot);
        }
    }

    /// Assigns a flow that is there to the instance that translates its addresses now.
    #[inline(never)]
    pub(super) fn assign_owner(&mut self, record: u32, tuple: &FlowTuple, version: u32) {
        let Some(version) = self.versions.get(version) else { return };
        for (hop, number) in version.hops.iter().enumerate() {
            let service = self.services.get_mut(*number);
            let Some(service) = service else { continue };
            let place = service.translator.as_ref().and_then(|translator| translator.place_of_flow(tuple));
            let Some((place, far)) = place else { continue };
            let slot = self.records.slot(record, hop);
            let owner = match place {
                EndPlace::Range(owner) => owner,
                EndPlace::Outside | EndPlace::Inside if service.is_up(slot) => slot,
                EndPlace::Outside | EndPlace::Inside => service.first().unwrap_or(slot),
            };
            let found = self.records.outside(record);
            let was_counted = found.is_none_or(|found| usize::from(found.hop) != hop);
            let is_counted = place == EndPlace::Inside || found.is_some() && was_counted;
            if slot == owner && was_counted == is_counted {
                continue;
            }
            if was_counted {
                service.release(slot);
            }
            if is_counted {
                service.assign(owner);
            } else {
                let outside = Outside { hop: hop as u8, far: end_hash(tuple.protocol, far) };
                self.records.set_outside(record, Some(outside));
            }
            self.records.set_slot(record, hop, owner);
        }
    }

    fn service(&mut self, number: u16) -> Option<&mut Service> {
        self.services.get_mut(number)
    }

    fn instance(&mut self, role: Role) -> Option<&mut Instance> {
        self.service(role.service)?.get_mut(role.slot)
    }

    fn count_refusal(&mut self, role: Role, refusal: Refusal) {
        let Some(instance) = self.instance(role) else { return };
        match refusal {
            Refusal::OutOfRange => instance.refused.out_of_range += 1,
            Refusal::Taken => instance.refused.taken += 1,
            Refusal::NoRoom => instance.refused.no_room += 1,
        }
    }
}
