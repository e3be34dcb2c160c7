//! Versions of chains: packets under way finish the version that they are in.

use super::counters::{ChainBooks, HopCounters};
use crate::forward::PortKey;
use std::collections::BTreeMap;

/// Seconds after which a version that was replaced is forgotten, with the instances of flows that were idle since. A packet
/// that a function kept longer is looked up.
const RETIREMENT: u32 = 120;

/// Versions at a time: their numbers have 16 bits of place.
const MAX_VERSIONS: usize = 1 << 16;

/// How much a sample counts in the mean time: one part of this.
const SAMPLE_WEIGHT: u64 = 16;

/// A sample that takes longer is given up: the packet was lost.
const MAX_SAMPLE_NS: u64 = 1_000_000_000;

/// Where packets go that have passed all hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Port(PortKey),
    LookUp,
}

/// One version of a chain.
#[derive(Debug)]
pub(super) struct Version {
    number: u32,
    /// The chain; none for a single service.
    pub(super) chain: Option<u16>,
    /// The service of each hop, in the forward direction.
    pub(super) hops: Box<[u16]>,
    /// Where packets leave, in the forward direction and in reverse.
    pub(super) ends: [End; 2],
    /// The packets of each hop, in both directions.
    pub(super) counters: Vec<[HopCounters; 2]>,
    /// What left, in both directions.
    pub(super) left: [HopCounters; 2],
    /// What became of its packets.
    pub(super) books: ChainBooks,
    /// The version that this one replaced.
    pub(super) previous: Option<u32>,
    samples: Vec<Sample>,
    /// The second in which it was replaced.
    retired: Option<u32>,
}

/// The time that a hop takes: of one packet after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// The record of the packet that is being measured, and when it was sent.
    sent: Option<(u32, u64)>,
    mean: Option<u64>,
}

/// A place of a chain, whatever comes before and after it: a service, and which of the places of this service it is.
type Place = (u16, usize);

/// The place of a hop.
pub(super) fn place(hops: &[u16], hop: usize) -> Option<Place> {
    let service = *hops.get(hop)?;
    Some((service, hops.iter().take(hop).filter(|other| **other == service).count()))
}

/// What versions of a chain counted.
#[derive(Clone, Debug, Default)]
pub(super) struct VersionCounters {
    /// The packets of each place.
    pub(super) places: BTreeMap<Place, [HopCounters; 2]>,
    /// What left.
    pub(super) left: [HopCounters; 2],
    /// What became of the packets.
    pub(super) books: ChainBooks,
}

impl VersionCounters {
    /// Adds what a version counted.
    pub(super) fn add(&mut self, version: &Version) {
        let Version { hops, counters, left, books, .. } = version;
        for (hop, counters) in counters.iter().enumerate() {
            if let Some(place) = place(hops, hop) {
                add(self.places.entry(place).or_default(), counters);
            }
        }
        add(&mut self.left, left);
        self.books += *books;
    }
}

/// Adds the counters of both directions.
fn add(sum: &mut [HopCounters; 2], counters: &[HopCounters; 2]) {
    sum.iter_mut().zip(counters).for_each(|(sum, counters)| *sum += *counters);
}

impl Version {
    /// The hash under which the flow with this hash has its record.
    #[inline(always)]
    pub(super) fn record_hash(flow: u64, version: u32) -> u64 {
        let hash = Self::flow_hash(flow, version);
        // Zero means no record.
        if hash == 0 { 1 } else { hash }
    }

    /// The hash of the flow whose record has this hash.
    #[inline(always)]
    pub(super) fn flow_hash(record: u64, version: u32) -> u64 {
        record ^ u64::from(version).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Measures the packet that is sent to a hop now, unless another one is being measured.
    #[inline(always)]
    pub(super) fn start_sample(&mut self, hop: usize, record: u32, now: u64) {
        if let Some(sample) = self.samples.get_mut(hop)
            && sample.sent.is_none_or(|(_, since)| now.saturating_sub(since) > MAX_SAMPLE_NS)
        {
            sample.sent = Some((record, now));
        }
    }

    /// Notes that a packet of a flow came back from a hop.
    #[inline(always)]
    pub(super) fn measure(&mut self, hop: usize, record: u32, now: u64) {
        if let Some(sample) = self.samples.get_mut(hop)
            && let Some((_, since)) = sample.sent.filter(|(sent, _)| *sent == record)
        {
            let time = now.saturating_sub(since);
            sample.sent = None;
            sample.mean = Some(match sample.mean {
                None => time,
                Some(mean) => mean - mean / SAMPLE_WEIGHT + time / SAMPLE_WEIGHT,
            });
        }
    }

    /// The flow of which a packet is being measured at a hop.
    pub(super) fn timed(&self, hop: usize) -> Option<u32> {
        self.samples.get(hop).and_then(|sample| sample.sent).map(|(record, _)| record)
    }

    /// The mean time that each hop takes.
    pub(super) fn times(&self) -> Vec<Option<u64>> {
        self.samples.iter().map(|sample| sample.mean).collect()
    }
}

/// All versions, by number: the place in the lower half, and how often the place was used in the upper one.
#[derive(Debug, Default)]
pub(super) struct Versions {
    places: Vec<(u16, Option<Version>)>,
    retired: Vec<u32>,
}

impl Versions {
    /// Adds a version. Returns its number; `None` if there are too many.
    pub(super) fn add(&mut self, hops: &[u16], ends: [End; 2], previous: Option<u32>) -> Option<u32> {
        let free = self.places.iter().position(|(_, version)| version.is_none());
        let place = free.unwrap_or(self.places.len());
        if place >= MAX_VERSIONS {
            return None;
        }
        if place == self.places.len() {
            self.places.push((0, None));
        }
        let (uses, there) = self.places.get_mut(place)?;
        *uses = uses.wrapping_add(1);
        let number = u32::from(*uses) << 16 | place as u32;
        *there = Some(Version {
            number,
            chain: None,
            hops: hops.into(),
            ends,
            counters: vec![Default::default(); hops.len()],
            left: Default::default(),
            books: ChainBooks::default(),
            previous,
            samples: vec![Sample::default(); hops.len()],
            retired: None,
        });
        Some(number)
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&Version> {
        let (_, version) = self.places.get(number as usize & 0xffff)?;
        version.as_ref().filter(|version| version.number == number)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Version> {
        let (_, version) = self.places.get_mut(number as usize & 0xffff)?;
        version.as_mut().filter(|version| version.number == number)
    }

    /// The versions that a service is in.
    pub(super) fn with_service(&self, service: u16) -> Vec<u32> {
        let versions = self.places.iter().filter_map(|(_, version)| version.as_ref());
        versions.filter(|version| version.hops.contains(&service)).map(|version| version.number).collect()
    }

    /// The services of a version.
    pub(super) fn hops(&self, number: u32) -> Option<&[u16]> {
        self.get(number).map(|version| version.hops.as_ref())
    }

    pub(super) fn set_chain(&mut self, number: u32, chain: u16) {
        if let Some(version) = self.get_mut(number) {
            version.chain = Some(chain);
        }
    }

    /// Notes that a version was replaced.
    pub(super) fn retire(&mut self, number: u32, seconds: u32) {
        if let Some(version) = self.get_mut(number)
            && version.retired.is_none()
        {
            version.retired = Some(seconds);
            self.retired.push(number);
        }
    }

    /// Whether a version waits to be removed.
    pub(super) fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Adds what the versions of a chain counted that are not forgotten.
    pub(super) fn sum(&self, chain: u16, sum: &mut VersionCounters) {
        let versions = self.places.iter().filter_map(|(_, version)| version.as_ref());
        versions.filter(|version| version.chain == Some(chain)).for_each(|version| sum.add(version));
    }

    /// Forgets what was counted at hops of a service that is removed: another one can get its number.
    pub(super) fn clear_service(&mut self, service: u16) {
        for version in self.places.iter_mut().filter_map(|(_, version)| version.as_mut()) {
            let hops = version.hops.iter().zip(&mut version.counters);
            hops.filter(|(hop, _)| **hop == service).for_each(|(_, counters)| *counters = Default::default());
        }
    }

    /// Forgets what a chain counted that is removed: the next one of its number starts at zero. Packets that wait stay in the books.
    pub(super) fn clear_chain(&mut self, chain: u16) {
        let versions = self.places.iter_mut().filter_map(|(_, version)| version.as_mut());
        for version in versions.filter(|version| version.chain == Some(chain)) {
            version.counters.fill(Default::default());
            version.left = Default::default();
            let waiting = version.books.waiting;
            version.books = ChainBooks { entered: waiting, waiting, ..ChainBooks::default() };
        }
    }

    /// Removes versions that were replaced long ago, and returns them.
    pub(super) fn expire(&mut self, seconds: u32) -> Vec<Version> {
        let mut removed = Vec::new();
        let mut retired = std::mem::take(&mut self.retired);
        retired.retain(|number| {
            let since = self.get(*number).and_then(|version| version.retired);
            let is_over = since.is_none_or(|since| seconds.saturating_sub(since) > RETIREMENT);
            if is_over && let Some((_, place)) = self.places.get_mut(*number as usize & 0xffff) {
                removed.extend(place.take());
            }
            !is_over
        });
        self.retired = retired;
        removed
    }
}
