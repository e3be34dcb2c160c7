//! What a service translates addresses to: the ranges of its instances, and static mappings.

use super::plan::{MappingPlan, ServicePlan, TranslationPlan};
use flow_table::{FlowEnd, FlowTuple};
use packet::protocol;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Ports of one address that an instance translates to.
#[derive(Clone, Copy, Debug)]
struct Slice {
    first: u16,
    last: u16,
    slot: u8,
}

/// One side of the static mappings.
#[derive(Debug, Default)]
struct MappedEnds {
    ports: BTreeSet<(u8, FlowEnd)>,
    addresses: BTreeSet<u32>,
}

impl MappedEnds {
    fn new<'a>(ends: impl Iterator<Item = (Option<u8>, &'a FlowEnd)>) -> Self {
        let mut this = Self::default();
        for (protocol, end) in ends {
            match protocol {
                Some(protocol) => drop(this.ports.insert((protocol, *end))),
                None => drop(this.addresses.insert(end.address)),
            }
        }
        this
    }

    fn contains(&self, protocol: u8, end: FlowEnd) -> bool {
        self.addresses.contains(&end.address) || self.ports.contains(&(protocol, end))
    }
}

/// Where one end of a flow lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndPlace {
    /// In the range of the instance with this slot.
    Range(u8),
    /// At the outside of a static mapping.
    Outside,
    /// At the inside of a static mapping.
    Inside,
}

/// What a service translates addresses to.
#[derive(Debug, Default)]
pub(super) struct Translator {
    /// The slices of each address, in the order of their ports. They don't overlap.
    slices: BTreeMap<u32, Vec<Slice>>,
    outside: MappedEnds,
    inside: MappedEnds,
    /// What was handed over while the rest of its range was not.
    pub(super) moved: Moved,
}

/// The instances of flows that were handed over while the rest of their range was not.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Those of single flows, by their hashes.
    pub(super) flows: HashMap<u64, u8>,
    /// Those of all flows with an address of the range.
    hosts: HashMap<HostPair, u8>,
}

impl Moved {
    fn of(&self, tuple: &FlowTuple, end: FlowEnd) -> Option<u8> {
        if let Some(slot) = self.flows.get(&tuple.hash) {
            return Some(*slot);
        }
        if self.hosts.is_empty() {
            return None;
        }
        let ends = tuple.ends.unwrap_or_default().map(|end| end.address);
        let both = HostPair::new(ends[0], ends[1]);
        self.hosts.get(&HostPair::of(end.address)).or_else(|| self.hosts.get(&both)).copied()
    }

    pub(super) fn forget_hosts(&mut self, address: u32) {
        self.hosts.retain(|hosts, _| !hosts.0.contains(&address));
    }
}

/// All flows between two addresses. Address 0 stands for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPair([u32; 2]);

impl HostPair {
    /// All flows between two addresses.
    #[must_use]
    pub fn new(one: u32, other: u32) -> Self {
        Self(if one <= other { [one, other] } else { [other, one] })
    }

    /// All flows with an address.
    #[must_use]
    pub fn of(address: u32) -> Self {
        Self::new(0, address)
    }
}

impl Translator {
    /// `None` if the service is no translator.
    pub(super) fn new(plan: &ServicePlan, moved: Moved) -> Option<Self> {
        let TranslationPlan { mappings, held } = plan.translation.as_ref()?;
        let mut slices: BTreeMap<u32, Vec<Slice>> = BTreeMap::new();
        let own = plan.instances.iter().filter_map(|instance| Some((instance.slot, instance.range?)));
        for (slot, range) in own.chain(held.iter().copied()) {
            let slice = Slice { first: range.first, last: range.last, slot };
            slices.entry(range.address).or_default().push(slice);
        }
        slices.values_mut().for_each(|all| all.sort_unstable_by_key(|slice| slice.first));
        let ends = |end: fn(&MappingPlan) -> &FlowEnd| {
            MappedEnds::new(mappings.iter().map(move |mapping| (mapping.protocol, end(mapping))))
        };
        Some(Self {
            slices,
            outside: ends(|mapping| &mapping.outside),
            inside: ends(|mapping| &mapping.inside),
            moved,
        })
    }

    /// The instance in whose range an end lies. Without ports, that is the only one with a range of the address.
    fn owner(&self, protocol: u8, end: FlowEnd) -> Option<u8> {
        let slices = self.slices.get(&end.address)?;
        if !matches!(protocol, protocol::ICMP | protocol::TCP | protocol::UDP | protocol::SCTP) {
            return slices.first().filter(|_| slices.len() == 1).map(|slice| slice.slot);
        }
        let before = slices.partition_point(|slice| slice.first <= end.port);
        let slice = slices.get(before.checked_sub(1)?)?;
        (end.port <= slice.last).then_some(slice.slot)
    }

    /// Where an end lies.
    pub(super) fn place(&self, protocol: u8, end: FlowEnd) -> Option<EndPlace> {
        if let Some(slot) = self.owner(protocol, end) {
            return Some(EndPlace::Range(slot));
        }
        if self.outside.contains(protocol, end) {
            return Some(EndPlace::Outside);
        }
        self.inside.contains(protocol, end).then_some(EndPlace::Inside)
    }

    /// Where one end of a flow lies.
    pub(super) fn place_in_flow(&self, tuple: &FlowTuple, end: FlowEnd) -> Option<EndPlace> {
        let place = self.place(tuple.protocol, end);
        match place {
            Some(EndPlace::Range(slot)) => Some(EndPlace::Range(self.moved.of(tuple, end).unwrap_or(slot))),
            _ => place,
        }
    }

    /// Notes that an instance has all flows between two addresses, one of which is of the range of another one. At most `most` are noted.
    pub(super) fn move_hosts(&mut self, hosts: HostPair, (from, to): (u8, u8), most: usize) {
        let is_own = |address: &u32| {
            // All ports of the address.
            let end = FlowEnd { address: *address, port: 0 };
            let moved = self.moved.hosts.get(&hosts).copied();
            moved.or_else(|| self.owner(0, end)) == Some(from)
        };
        // A box may name addresses of others, or ever new ones.
        if hosts.0.iter().any(is_own) && self.moved.hosts.len() < most {
            self.moved.hosts.insert(hosts, to);
        }
    }

    /// Where a flow lies, which is the same for both directions, and its other end.
    pub(super) fn place_of_flow(&self, tuple: &FlowTuple) -> Option<(EndPlace, FlowEnd)> {
        let mut ends = tuple.ends?;
        ends.sort_unstable();
        let [one, other] = ends;
        let places = [(one, other), (other, one)]
            .into_iter()
            .filter_map(|(end, far)| Some((self.place_in_flow(tuple, end)?, far)));
        // Ranges first, then outside addresses.
        places.min_by_key(|(place, _)| match place {
            EndPlace::Range(_) => 0,
            EndPlace::Outside => 1,
            EndPlace::Inside => 2,
        })
    }
}

/// A hash of one end of a flow, which tells it from most others. The identifier of an echo message does not count: it is that of
/// the other end.
pub(super) fn end_hash(protocol: u8, end: FlowEnd) -> u32 {
    let port = if protocol == protocol::ICMP { 0 } else { end.port };
    let word = u64::from(end.address) << 24 | u64::from(port) << 8 | u64::from(protocol);
    let word = (word ^ word >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::super::plan::{InstancePlan, RangePlan, TranslationPlan};
    use super::*;
    use crate::forward::PortKey;

    fn end(address: u32, port: u16) -> FlowEnd {
        FlowEnd { address, port }
    }

    fn translator() -> Translator {
        let instance = |(slot, address, first, last)| InstancePlan {
            slot,
            ports: [PortKey(1), PortKey(2)],
            is_draining: false,
            range: Some(RangePlan { address, first, last }),
        };
        let ranges = [(4, 9, 2000, 2999), (0, 9, 1000, 1999), (1, 8, 0, 65535)];
        let mapping = |protocol, outside, inside| MappingPlan { protocol, outside, inside };
        let plan = ServicePlan {
            number: 0,
            instances: ranges.into_iter().map(instance).collect(),
            destinations: Vec::new(),
            translation: Some(TranslationPlan {
                mappings: vec![
                    mapping(Some(6), end(9, 80), end(100, 8080)),
                    mapping(None, end(7, 0), end(70, 0)),
                ],
                held: Vec::new(),
            }),
        };
        assert!(
            Translator::new(&ServicePlan { translation: None, ..plan.clone() }, Moved::default()).is_none()
        );
        Translator::new(&plan, Moved::default()).unwrap()
    }

    #[test]
    fn each_end_has_its_place() {
        let translator = translator();
        for (protocol, at, place) in [
            (17, end(9, 999), None),
            (17, end(9, 1000), Some(EndPlace::Range(0))),
            (6, end(9, 1999), Some(EndPlace::Range(0))),
            (1, end(9, 2000), Some(EndPlace::Range(4))),
            (17, end(9, 3000), None),
            (17, end(8, 0), Some(EndPlace::Range(1))),
            // Without ports, only one of the two instances could be meant.
            (47, end(9, 0), None),
            (47, end(8, 0), Some(EndPlace::Range(1))),
            (6, end(9, 80), Some(EndPlace::Outside)),
            (17, end(9, 80), None),
            (6, end(100, 8080), Some(EndPlace::Inside)),
            (47, end(7, 0), Some(EndPlace::Outside)),
            (17, end(70, 5), Some(EndPlace::Inside)),
            (17, end(71, 5), None),
        ] {
            assert_eq!(translator.place(protocol, at), place, "{protocol} {at:?}");
        }
    }

    /// Flows with a host, or between two, may have another instance than the rest of their range.
    #[test]
    fn hosts_move_by_themselves() {
        let mut translator = translator();
        let place = |translator: &Translator, one: FlowEnd, other: FlowEnd| {
            let tuple = |ends| FlowTuple { hash: 1, protocol: 17, ends: Some(ends) };
            let [there, back] =
                [[one, other], [other, one]].map(|ends| translator.place_of_flow(&tuple(ends)));
            assert_eq!(there, back);
            there.map(|(place, _)| place)
        };
        let flows = [(end(8, 1), end(1, 5)), (end(8, 1), end(2, 5)), (end(9, 1500), end(1, 5))];
        let places = |translator: &Translator| flows.map(|(one, other)| place(translator, one, other));
        let range = |slot| Some(EndPlace::Range(slot));
        assert_eq!(places(&translator), [range(1), range(1), range(0)]);
        translator.move_hosts(HostPair::new(1, 8), (1, 4), 9);
        assert_eq!(places(&translator), [range(4), range(1), range(0)]);
        // Not those of another instance, nor those of an address that several have, nor more than may be.
        translator.move_hosts(HostPair::new(2, 8), (0, 4), 9);
        translator.move_hosts(HostPair::new(1, 9), (0, 4), 9);
        translator.move_hosts(HostPair::new(2, 8), (1, 4), 1);
        assert_eq!(places(&translator), [range(4), range(1), range(0)]);
        translator.move_hosts(HostPair::of(8), (1, 0), 9);
        translator.move_hosts(HostPair::of(8), (0, 5), 9);
        assert_eq!(places(&translator), [range(5), range(5), range(0)]);
        translator.moved.forget_hosts(8);
        assert_eq!(places(&translator), [range(1), range(1), range(0)]);
    }

    #[test]
    fn a_flow_has_the_same_place_in_both_directions() {
        let translator = translator();
        for (one, other, place) in [
            (end(9, 1500), end(1, 53), Some((EndPlace::Range(0), end(1, 53)))),
            (end(70, 1), end(8, 1), Some((EndPlace::Range(1), end(70, 1)))),
            (end(9, 1500), end(9, 2500), Some((EndPlace::Range(0), end(9, 2500)))),
            (end(70, 1), end(1, 1), Some((EndPlace::Inside, end(1, 1)))),
            (end(1, 1), end(2, 2), None),
        ] {
            for ends in [[one, other], [other, one]] {
                let tuple = FlowTuple { hash: 1, protocol: 17, ends: Some(ends) };
                assert_eq!(translator.place_of_flow(&tuple), place, "{ends:?}");
            }
        }
    }
}
