//! Packets that enter a chain one after the other.
//!
//! Most packets of a batch enter the same way, as most go on the same way (see `pass`): into one chain. What they have in common is
//! found once, and counted for all together. Each further packet costs its flow's record, which is one cache line and
//! says which instance of the first service it goes to. A packet that differs in more enters by itself.

use super::flow_records::FlowRecords;
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
    /// The instance there that the last packet went to with its port, and how many packets in a row.
    last: Option<(u8, PortKey)>,
    in_a_row: u64,
    /// The record of the first packet.
    first: u32,
}

/// What is known of the flow of a packet that enters a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownFlow {
    /// Its hash.
    Hash(u64),
    /// The note that leads to its record: see [`Chains::flow_note`].
    Note(u64),
}

impl Chains {
    /// The way of packets from a port that enter a chain. There is none if more than the records of their flows says where they go.
    pub(crate) fn entry_way(&self, chain: u16, from: Option<PortKey>) -> Option<EntryWay> {
        let found = self.chains.get(chain)?;
        let reverse = from == Some(found.plan.to) && found.plan.from.is_some();
        let is_plain = !self.has_translators && self.freeze.is_none() && self.crowded.is_empty();
        let services = &found.plan.services;
        let hop = if reverse { services.len().checked_sub(1)? } else { 0 };
        let service = services.get(hop).filter(|_| is_plain)?;
        Some(EntryWay {
            chain,
            version: found.version,
            reverse,
            packets: 0,
            bytes: 0,
            hop: u8::try_from(hop).ok()?,
            service: *service,
            last: None,
            in_a_row: 0,
            first: 0,
        })
    }

    /// Where a packet of a flow goes, if it enters this way; it is counted then. `lookups` is how often it was looked up after a
    /// function had it. Nothing else may have changed since the way was found.
    #[inline(always)]
    pub(crate) fn enter_way(
        &mut self,
        way: &mut EntryWay,
        (flow, lookups): (KnownFlow, u8),
        length: usize,
        now: u64,
    ) -> Option<Step> {
        let EntryWay { version, hop, reverse, .. } = *way;
        let seconds = (now / 1_000_000_000) as u32;
        if lookups > MAX_LOOKUPS {
            return None;
        }
        let (hash, found) = match flow {
            KnownFlow::Hash(hash) => {
                let hash = Version::record_hash(hash, version);
                (hash, self.records.find_plain(hash, version, hop.into(), seconds))
            }
            // It has the upper bits of the hash.
            KnownFlow::Note(note) => (note, self.records.find_noted(note, version, hop.into(), seconds)),
        };
        let (record, slot) = found?;
        let to = match way.last {
            Some((last, to)) if last == slot => to,
            _ => {
                let service = self.services.get(way.service).filter(|service| service.is_up(slot))?;
                let to = service.get(slot)?.ports[usize::from(reverse)];
                self.count_at_instance(way);
                way.last = Some((slot, to));
                to
            }
        };
        if way.packets == 0 {
            way.first = record;
        }
        way.in_a_row += 1;
        way.packets += 1;
        way.bytes += length as u64;
        let identity = Identity { record, check: (hash >> 48) as u16, hop, reverse, lookups };
        Some(Step::To(to, identity.to_tag()))
    }

    /// A note of the record of the flow with this hash, which entered a chain with this step, for the next packets of the flow; `None`
    /// if its record is another one.
    pub(crate) fn flow_note(&self, chain: u16, step: Step, hash: u64) -> Option<u64> {
        let Step::To(_, tag) = step else { return None };
        let Identity { record, .. } = Identity::from_tag(tag)?;
        let version = self.chains.get(chain)?.version;
        let hash = Version::record_hash(hash, version);
        (self.records.flow(record) == (hash, version)).then(|| FlowRecords::note(record, hash))
    }

    /// Prefetches the record that a note leads to.
    #[inline(always)]
    pub(crate) fn prefetch_noted(&self, note: u64) {
        self.records.prefetch_at(note as u32);
    }

    fn count_at_instance(&mut self, way: &mut EntryWay) {
        let packets = std::mem::take(&mut way.in_a_row);
        if let Some((slot, _)) = way.last
            && let Some(service) = self.services.get_mut(way.service)
            && let Some(instance) = service.get_mut(slot)
        {
            instance.packets += packets;
        }
    }

    /// Counts the packets that entered a way.
    pub(crate) fn count_entered(&mut self, mut way: EntryWay, now: u64) {
        self.count_at_instance(&mut way);
        let EntryWay { version, hop, reverse, packets, bytes, first, .. } = way;
        let Some(version) = self.versions.get_mut(version).filter(|_| packets > 0) else { return };
        version.books.entered += packets;
        version.books.sent += packets;
        if let Some(counters) = version.counters.get_mut(usize::from(hop)) {
            counters[usize::from(reverse)].add_all(packets, bytes);
        }
        version.start_sample(hop.into(), first, now);
    }
}
