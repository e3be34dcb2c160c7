//! What a switch knows of the flows that are handed over, and of the ranges of translators that other instances hold meanwhile.

use model::{AddressRange, BoxName, HandoverPhase, HandoverStatus, ServiceName};
use protocol::fabric::{ServiceDefinition, SteeringDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use switch::RangePlan;

/// What is known of the hand-overs at a switch.
#[derive(Debug, Default)]
pub(super) struct HandoverRecord {
    /// The instances that are drained.
    pub(super) drained: BTreeMap<BoxName, HandoverStatus>,
    /// Flows that instances took over.
    pub(super) taken_over: BTreeMap<BoxName, u64>,
    /// Flows that instances took over which services no longer have.
    pub(super) taken_over_before: BTreeMap<ServiceName, u64>,
    /// The instances that have flows of ranges of others.
    pub(super) holders: BTreeMap<(ServiceName, AddressRange), Vec<Holder>>,
}

/// An instance that has flows of a range of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) name: BoxName,
    /// Whether it has all of them.
    pub(super) owns: bool,
    /// When to try again to hand them over, and how often it failed.
    pub(super) retry_at: Option<Instant>,
    pub(super) failures: u32,
}

impl Holder {
    pub(super) fn new(name: BoxName, owns: bool) -> Self {
        Self { name, owns, retry_at: None, failures: 0 }
    }
}

/// A range as the switch knows it.
pub(super) fn range_plan(range: AddressRange) -> RangePlan {
    let AddressRange { address, first, last } = range;
    RangePlan { address: address.to_bits(), first, last }
}

impl HandoverRecord {
    /// Forgets what other services and instances than those `before` make wrong.
    pub(super) fn follow(&mut self, before: &SteeringDefinition, definition: &SteeringDefinition) {
        self.keep_taken_over(before, definition);
        let mut drained = BTreeSet::new();
        let mut there = BTreeSet::new();
        let mut ranges = BTreeSet::new();
        for service in &definition.services {
            for instance in &service.instances {
                there.insert(&instance.name);
                if instance.draining {
                    drained.insert(&instance.name);
                }
                ranges.extend(instance.range.map(|range| (service.name.clone(), range)));
            }
        }
        let is_running = |status: &HandoverStatus| status.phase == HandoverPhase::Running;
        self.drained
            .retain(|name, status| drained.contains(name) || is_running(status) && there.contains(name));
        self.taken_over.retain(|name, _| there.contains(name));
        for name in drained {
            self.drained.entry(name.clone()).or_default();
        }
        for (key, holders) in &mut self.holders {
            holders.retain(|holder| there.contains(&holder.name));
            // The instance with the range has gone: who has some of its flows keeps them.
            if !ranges.contains(key)
                && !holders.iter().any(|holder| holder.owns)
                && let Some(first) = holders.first_mut()
            {
                first.owns = true;
            }
        }
        self.holders.retain(|_, holders| !holders.is_empty());
    }

    /// Keeps what instances counted that services no longer have.
    fn keep_taken_over(&mut self, before: &SteeringDefinition, definition: &SteeringDefinition) {
        let find = |name: &ServiceName| definition.services.iter().find(|service| service.name == *name);
        for service in &before.services {
            let Some(now) = find(&service.name) else { continue };
            let is_gone = |name: &BoxName| now.instances.iter().all(|instance| instance.name != *name);
            let gone = service.instances.iter().map(|instance| &instance.name).filter(|name| is_gone(name));
            for count in gone.filter_map(|name| self.taken_over.get(name)) {
                *self.taken_over_before.entry(service.name.clone()).or_default() += count;
            }
        }
        self.taken_over_before.retain(|name, _| find(name).is_some());
    }

    /// The ranges that an instance of a translator has, and those that it holds for others.
    pub(super) fn ranges_of(&self, service: &ServiceDefinition, name: &BoxName) -> Vec<AddressRange> {
        let instance = service.instances.iter().find(|instance| instance.name == *name);
        let own = instance.and_then(|instance| instance.range).filter(|range| !self.is_away(service, *range));
        let owns = |holders: &[Holder]| holders.iter().any(|holder| holder.owns && holder.name == *name);
        let held = self.holders.iter().filter(|((of, _), holders)| *of == service.name && owns(holders));
        own.into_iter().chain(held.map(|((_, range), _)| *range)).collect()
    }

    /// Whether another instance than its own has a range.
    pub(super) fn is_away(&self, service: &ServiceDefinition, range: AddressRange) -> bool {
        let holders = self.holders.get(&(service.name.clone(), range));
        holders.is_some_and(|holders| holders.iter().any(|holder| holder.owns))
    }

    /// Whether an instance has to wait for flows of its range, so that it gets no new ones.
    pub(super) fn is_waited_for(&self, service: &ServiceDefinition, name: &BoxName) -> bool {
        let instance = service.instances.iter().find(|instance| instance.name == *name);
        let range = instance.and_then(|instance| instance.range);
        range.is_some_and(|range| self.holders.contains_key(&(service.name.clone(), range)))
            || self.drained.contains_key(name)
    }

    /// The ranges of a service that are held for others, with the holders' slots.
    pub(super) fn held_ranges(
        &self,
        service: &ServiceName,
        slots: &BTreeMap<BoxName, u8>,
    ) -> Vec<(u8, RangePlan)> {
        let of_service = self.holders.iter().filter(|((of, _), _)| of == service);
        let held = of_service.filter_map(|((_, range), holders)| {
            let holder = holders.iter().find(|holder| holder.owns)?;
            Some((*slots.get(&holder.name)?, range_plan(*range)))
        });
        held.collect()
    }

    /// Notes that an instance has no flows of this range any more.
    pub(super) fn release(&mut self, key: &(ServiceName, AddressRange), from: &BoxName) -> bool {
        let Some(holders) = self.holders.get_mut(key) else { return false };
        holders.retain(|holder| holder.name != *from);
        if holders.is_empty() {
            self.holders.remove(key);
        }
        true
    }
}
