//! Services and their instances.

use super::flow_records::UNASSIGNED;
use super::plan::{DestinationPlan, MAX_SLOTS, ServicePlan};
use super::translator::Translator;
use crate::forward::PortKey;

/// A service.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// The instances by slot.
    slots: Vec<Option<Instance>>,
    pub(super) destinations: Vec<DestinationPlan>,
    /// The slots that new flows are assigned to: instances that are up and not drained; without any, those that are up.
    choices: Vec<u8>,
    /// Set if it translates addresses.
    pub(super) translator: Option<Translator>,
    /// Answers of instances that were overruled, also of those that it no longer has.
    pub(super) overruled: OverruledAnswers,
    /// What the instances counted that it no longer has.
    pub(super) removed: RemovedInstances,
    /// Packets for which no instance was up.
    pub(super) no_instance: u64,
}

/// Answers that were overruled, by what they named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverruledAnswers {
    /// Each destination of the service, in their order.
    pub known: Vec<u64>,
    /// Something that is no destination of it.
    pub others: u64,
}

impl OverruledAnswers {
    /// Follows a change of the destinations.
    fn follow(&mut self, before: &[DestinationPlan], after: &[DestinationPlan]) {
        let old = std::mem::take(&mut self.known);
        self.known = vec![0; after.len()];
        for (destination, count) in before.iter().zip(old) {
            let there = after.iter().position(|other| other == destination);
            match there.and_then(|at| self.known.get_mut(at)) {
                Some(sum) => *sum += count,
                None => self.others += count,
            }
        }
    }
}

/// What the instances of a service counted that it no longer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedInstances {
    /// Packets for them, also those that were lost.
    pub packets: u64,
    /// Their answers that were overruled.
    pub overruled: u64,
    /// Packets that they never had.
    pub lost: u64,
    /// What was not learnt from their output.
    pub refused: RefusedTuples,
}

impl RemovedInstances {
    fn add(&mut self, instance: &Instance) {
        self.packets += instance.packets;
        self.overruled += instance.overruled;
        self.lost += instance.lost;
        self.refused += instance.refused;
    }
}

/// What was not learnt from the output of an instance of a translator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedTuples {
    /// The instance may not translate to these addresses and ports.
    pub out_of_range: u64,
    /// A living flow of another instance has them.
    pub taken: u64,
    /// The instance has too many flows, or there was no room.
    pub no_room: u64,
}

/// An instance of a service.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// The inner port and the outer port.
    pub(super) ports: [PortKey; 2],
    pub(super) is_draining: bool,
    /// Whether it can receive packets.
    pub(super) is_up: bool,
    /// Whether it gets no packets any more, and answers those that it has.
    pub(super) is_leaving: bool,
    /// Flows that are assigned to it.
    pub(super) flows: u64,
    /// Packets for it, also those that were lost.
    pub(super) packets: u64,
    /// Answers that were overruled.
    pub(super) overruled: u64,
    /// Flows that were learnt from what it translated.
    pub(super) learnt: usize,
    pub(super) refused: RefusedTuples,
    /// Those of them that it never had.
    pub(super) lost: u64,
}

/// Mixes a flow's hash with a slot, for rendezvous hashing: each slot draws a number for the flow, and the largest wins. So
/// a slot that comes or goes moves no flow between others.
fn weight(hash: u64, slot: u8) -> u64 {
    let word = (hash ^ (u64::from(slot) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xff51_afd7_ed55_8ccd);
    (word ^ word >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

impl Service {
    /// Takes over a definition. Instances that stay keep their counters; those of the others go to
    /// [`removed`](Self::removed).
    pub(super) fn redefine(&mut self, plan: &ServicePlan, is_up: impl Fn([PortKey; 2]) -> bool) {
        let mut slots: Vec<Option<Instance>> = Vec::new();
        for instance in plan.instances.iter().filter(|instance| usize::from(instance.slot) < MAX_SLOTS) {
            let slot = usize::from(instance.slot);
            let old = self.slots.get_mut(slot);
            let old = old.and_then(|old| old.take_if(|old| old.ports == instance.ports));
            let [flows, packets, overruled, lost] =
                old.as_ref().map_or([0; 4], |old| [old.flows, old.packets, old.overruled, old.lost]);
            let is_leaving = old.as_ref().is_some_and(|old| old.is_leaving);
            let (learnt, refused) = old.map_or_else(Default::default, |old| (old.learnt, old.refused));
            if slots.len() <= slot {
                slots.resize(slot + 1, None);
            }
            slots[slot] = Some(Instance {
                ports: instance.ports,
                is_draining: instance.is_draining,
                is_up: is_up(instance.ports) && !is_leaving,
                is_leaving,
                flows,
                packets,
                overruled,
                learnt,
                refused,
                lost,
            });
        }
        let gone = std::mem::replace(&mut self.slots, slots);
        gone.iter().flatten().for_each(|instance| self.removed.add(instance));
        self.overruled.follow(&self.destinations, &plan.destinations);
        self.destinations.clone_from(&plan.destinations);
        let moved = self.translator.take().map(|old| old.moved).unwrap_or_default();
        self.translator = Translator::new(plan, moved);
        self.update_choices();
    }

    fn update_choices(&mut self) {
        let of = |draining: bool| {
            let slots = (0u8..).zip(&self.slots);
            let chosen = slots.filter(move |(_, slot)| {
                slot.as_ref().is_some_and(|found| found.is_up && (draining || !found.is_draining))
            });
            chosen.map(|(slot, _)| slot).collect::<Vec<u8>>()
        };
        self.choices = of(false);
        if self.choices.is_empty() {
            self.choices = of(true);
        }
    }

    /// Notes whether the ports of an instance are up.
    pub(super) fn set_up(&mut self, slot: u8, is_up: bool) {
        if let Some(instance) = self.get_mut(slot) {
            instance.is_up = is_up && !instance.is_leaving;
        }
        self.update_choices();
    }

    /// Whether an instance gets no packets any more and answers those that it has, also of flows that others have now.
    #[cold]
    pub(super) fn is_leaving(&self, slot: u8) -> bool {
        self.get(slot).is_some_and(|instance| instance.is_leaving)
    }

    pub(super) fn get(&self, slot: u8) -> Option<&Instance> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u8) -> Option<&mut Instance> {
        self.slots.get_mut(usize::from(slot))?.as_mut()
    }

    /// Whether an instance can receive packets.
    #[inline(always)]
    pub(super) fn is_up(&self, slot: u8) -> bool {
        self.get(slot).is_some_and(|instance| instance.is_up)
    }

    /// Counts an answer of an instance that is overruled.
    #[cold]
    pub(super) fn overrule(&mut self, slot: u8, destination: u16) {
        if let Some(instance) = self.get_mut(slot) {
            instance.overruled += 1;
            let OverruledAnswers { known, others } = &mut self.overruled;
            *known.get_mut(usize::from(destination)).unwrap_or(others) += 1;
        }
    }

    /// The instances, by slot.
    pub(super) fn instances(&self) -> impl Iterator<Item = (u8, &Instance)> {
        (0u8..).zip(&self.slots).filter_map(|(slot, instance)| Some((slot, instance.as_ref()?)))
    }

    /// The instance for a new flow; `None` if no instance is up.
    pub(super) fn choose(&self, hash: u64) -> Option<u8> {
        self.choices.iter().copied().max_by_key(|slot| weight(hash, *slot))
    }

    /// The instance for static mappings: the first that is up and not drained.
    pub(super) fn first(&self) -> Option<u8> {
        self.choices.first().copied()
    }

    /// Notes that a flow was assigned to an instance.
    pub(super) fn assign(&mut self, slot: u8) {
        if let Some(instance) = self.get_mut(slot) {
            instance.flows += 1;
        }
    }

    /// Notes that a flow is no longer assigned to an instance.
    pub(super) fn release(&mut self, slot: u8) {
        if slot != UNASSIGNED
            && let Some(instance) = self.get_mut(slot)
        {
            instance.flows = instance.flows.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::InstancePlan;
    use super::*;

    fn plan(slots: impl IntoIterator<Item = u8>, draining: &[u8]) -> ServicePlan {
        let instance = |slot: u8| InstancePlan {
            range: None,
            slot,
            ports: [PortKey(u16::from(slot) + 1); 2],
            is_draining: draining.contains(&slot),
        };
        ServicePlan {
            number: 0,
            instances: slots.into_iter().map(instance).collect(),
            destinations: Vec::new(),
            translation: None,
        }
    }

    #[test]
    fn flows_are_balanced_and_stay_when_instances_come() {
        let mut service = Service::default();
        service.redefine(&plan(0..8, &[]), |_| true);
        let mut counts = [0u32; 8];
        for flow in 0..60_000u64 {
            counts[usize::from(service.choose(flow.wrapping_mul(0x2545_f491_4f6c_dd1d)).unwrap())] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(7500) < 375), "{counts:?}");
        let before: Vec<_> = (0..1000).map(|flow| service.choose(flow)).collect();
        service.redefine(&plan(0..9, &[]), |_| true);
        for (flow, old) in (0..1000).zip(before) {
            let new = service.choose(flow);
            assert!(new == old || new == Some(8), "{flow}");
        }
    }

    #[test]
    fn counters_of_removed_instances_stay() {
        let mut service = Service::default();
        let refused = |count| RefusedTuples { out_of_range: 3 * count, taken: 4 * count, no_room: 6 * count };
        service.redefine(&plan(0..3, &[]), |_| true);
        for (slot, count) in [(0, 1), (1, 10), (2, 100)] {
            let instance = service.get_mut(slot).unwrap();
            (instance.packets, instance.overruled, instance.lost) = (5 * count, 2 * count, count);
            instance.refused = refused(count);
        }
        service.redefine(&plan(0..2, &[]), |_| true);
        let expected =
            |packets, overruled, lost| RemovedInstances { packets, overruled, lost, refused: refused(lost) };
        assert_eq!(service.removed, expected(500, 200, 100));
        // One whose ports are others is another one.
        let mut other = plan([0, 1], &[]);
        other.instances[1].ports = [PortKey(9); 2];
        service.redefine(&other, |_| true);
        assert_eq!(service.removed, expected(550, 220, 110));
        let left: Vec<u64> = service.instances().map(|(_, instance)| instance.packets).collect();
        assert_eq!(left, [5, 0]);
    }

    #[test]
    fn overruled_answers_follow_their_destinations() {
        let mut service = Service::default();
        let destinations = |all: &[u16]| ServicePlan {
            destinations: all.iter().map(|number| DestinationPlan::Chain(*number)).collect(),
            ..plan(0..1, &[])
        };
        service.redefine(&destinations(&[7, 8]), |_| true);
        for (destination, count) in [(0, 1), (1, 10), (2, 100), (u16::MAX, 1000)] {
            (0..count).for_each(|_| service.overrule(0, destination));
        }
        // Of an instance that it does not have.
        service.overrule(1, 0);
        assert_eq!(service.overruled, OverruledAnswers { known: vec![1, 10], others: 1100 });
        service.redefine(&destinations(&[9, 7]), |_| true);
        assert_eq!(service.overruled, OverruledAnswers { known: vec![0, 1], others: 1110 });
        assert_eq!(service.get(0).map(|instance| instance.overruled), Some(1111));
    }

    #[test]
    fn only_instances_that_are_up_get_flows() {
        let mut service = Service::default();
        service.redefine(&plan(0..3, &[0]), |ports| ports[0] != PortKey(2));
        assert!((0..100).all(|flow| service.choose(flow) == Some(2)));
        service.set_up(2, false);
        assert!((0..100).all(|flow| service.choose(flow) == Some(0)));
        service.set_up(0, false);
        assert_eq!(service.choose(1), None);
        service.set_up(1, true);
        assert_eq!(service.choose(1), Some(1));
    }
}
