//! Packets that enter a chain one after the other.
//!
//! Most packets of a batch enter the same way, as most go on the same way (see `pass`): into one chain. What they have in common is
//! found for the first one, and counted for all together. Each further packet costs its flow's record, which is one cache line and
//! says which instance of the first service it goes to. A packet that differs in more enters by itself.

use super::identity::{Identity, MAX_LOOKUPS};
use super::table::{Chains, Step};
use super::version::Version;
use crate::forward::PortKey;

/// Where packets enter, and how many did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryWay {
    pub(crate) chain: u16,
    version: u32,
    reverse: bool,
    packets: u64,
    bytes: u64,
    /// The first hop and its service.
    hop: u8,
    service: u16,
    /// The instance there that the last packet went to, its port, and how many packets in a row.
    slot: u8,
    to: PortKey,
    in_a_row: u64,
}

impl Chains {
    /// The way of a packet that entered a chain with this step, for others from the same port that go the same. There is none if
    /// more than the records of their flows says where they go.
    pub(crate) fn entry_way(&self, chain: u16, from: Option<PortKey>, step: Step) -> Option<EntryWay> {
        let Step::To(to, tag) = step else { return None };
        let Identity { record, hop, reverse, .. } = Identity::from_tag(tag)?;
        let found = self.chains.get(chain)?;
        let enters_reverse = from == Some(found.plan.to) && found.plan.from.is_some();
        let is_plain = !self.has_translators
            && self.freeze.is_none()
            && self.crowded.is_empty()
            && self.records.flow(record).1 == found.version
            && reverse == enters_reverse;
        let service = found.plan.services.get(usize::from(hop)).filter(|_| is_plain)?;
        Some(EntryWay {
            chain,
            version: found.version,
            reverse,
            packets: 0,
            bytes: 0,
            hop,
            service: *service,
            slot: self.records.slot(record, usize::from(hop)),
            to,
            in_a_row: 0,
        })
    }

    /// Where a packet of the flow with this hash goes, if it enters this way; it is counted then. `lookups` is how often it was
    /// looked up after a function had it. Nothing else may have changed since the way was found.
    #[inline(always)]
    pub(crate) fn enter_way(
        &mut self,
        way: &mut EntryWay,
        (hash, lookups): (u64, u8),
        length: usize,
        now: u64,
    ) -> Option<Step> {
        let EntryWay { version, hop, reverse, .. } = *way;
        let seconds = (now / 1_000_000_000) as u32;
        let hash = Version::record_hash(hash, version);
        if lookups > MAX_LOOKUPS {
            return None;
        }
        let (record, slot) = self.records.find_plain(hash, version, hop.into(), seconds)?;
        if slot != way.slot {
            let service = self.services.get(way.service).filter(|service| service.is_up(slot))?;
            let to = service.get(slot)?.ports[usize::from(reverse)];
            self.count_at_instance(way);
            (way.slot, way.to) = (slot, to);
        }
        way.in_a_row += 1;
        way.packets += 1;
        way.bytes += length as u64;
        let identity = Identity { record, check: (hash >> 48) as u16, hop, reverse, lookups };
        Some(Step::To(way.to, identity.to_tag()))
    }

    fn count_at_instance(&mut self, way: &mut EntryWay) {
        let packets = std::mem::take(&mut way.in_a_row);
        let service = self.services.get_mut(way.service);
        if let Some(instance) = service.and_then(|service| service.get_mut(way.slot)) {
            instance.packets += packets;
        }
    }

    /// Counts the packets that entered a way.
    pub(crate) fn count_entered(&mut self, mut way: EntryWay) {
        self.count_at_instance(&mut way);
        let EntryWay { version, hop, reverse, packets, bytes, .. } = way;
        let Some(version) = self.versions.get_mut(version).filter(|_| packets > 0) else { return };
        version.books.entered += packets;
        version.books.sent += packets;
        if let Some(counters) = version.counters.get_mut(usize::from(hop)) {
            counters[usize::from(reverse)].add_all(packets, bytes);
        }
    }
}
