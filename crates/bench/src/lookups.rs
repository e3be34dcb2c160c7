//! Lookups in the flow table: reading the match fields of frames, and finding their entries through the cache.
//!
//! The cache is that of a steering switch. Packets are UDP over IPv4 at 60 bytes, of flows in random order. Times are processor time, and the least of several
//! runs. The cost of choosing and writing a frame is measured too, and subtracted.

use std::hint::black_box;
use std::time::Duration;

use flow_table::{
    Arrival, BATCH, CacheCapacity, CacheCounters, Change, Command, Field, FlowModError, Ingress,
    Instructions, Limits, Match, MatchError, Output, Pipeline, Seed,
};
use random::Random;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use switch::{ControlError, Steering, SteeringSettings, SteeringShards, flow_cache};

use crate::statistics::{minimum, rounded};
use crate::tables::Table;

/// Packets of a run.
const PACKETS: u32 = 1 << 20;

/// Frames from which extraction reads, as many as buffers in a large ring.
const RING: usize = 4096;

/// Packets for each change of the entries, when entries change: 5,000 changes a second at a million packets a second.
const PACKETS_PER_CHANGE: u32 = 200;

/// Ports that entries send packets to.
const PORTS: u32 = 1_000;

/// Changes whose rate is measured.
const CHANGES: u32 = 10_000;

/// Destinations of the flows.
const DESTINATIONS: u32 = 8_191;

const NOW: Duration = Duration::from_secs(1);

/// Processor time per packet, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lookups {
    /// Number of flows, all of them cached.
    pub flows: u32,
    /// Number of flow entries.
    pub entries: u32,
    /// Reading the match fields.
    #[serde(serialize_with = "rounded")]
    pub extract_ns: f64,
    /// Finding the entries of a key that is cached, and counting the packet.
    #[serde(serialize_with = "rounded")]
    pub lookup_ns: f64,
    /// Both.
    #[serde(serialize_with = "rounded")]
    pub total_ns: f64,
    /// Finding the entries of a key that is not cached, and caching it.
    #[serde(serialize_with = "rounded")]
    pub insert_ns: f64,
    /// Finding the entries of a cached key while an entry is added or removed for every 200 packets, with the changes.
    #[serde(serialize_with = "rounded")]
    pub lookup_while_changing_ns: f64,
    /// Share of the packets whose cached decision stayed valid meanwhile.
    #[serde(serialize_with = "rounded")]
    pub hit_rate_while_changing: f64,
    /// Changes of entries per second that a steering switch with these entries makes for a controller: additions and strict
    /// deletions in turn.
    #[serde(serialize_with = "rounded")]
    pub changes_per_second: f64,
}

impl Table for Lookups {
    fn head() -> String {
        format!(
            "{:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>10}",
            "flows", "entries", "extract", "lookup", "both", "insert", "changing", "hits", "changes/s"
        )
    }

    fn lines(&self) -> String {
        format!(
            "{:>8} {:>8} {:>8.1} {:>8.1} {:>8.1} {:>8.0} {:>9.1} {:>7.2} % {:>10.0}\n",
            self.flows,
            self.entries,
            self.extract_ns,
            self.lookup_ns,
            self.total_ns,
            self.insert_ns,
            self.lookup_while_changing_ns,
            self.hit_rate_while_changing * 100.0,
            self.changes_per_second
        )
    }
}

/// The reason why lookups can't be measured.
#[derive(Debug)]
pub enum LookupsError {
    /// A match is refused.
    Match(MatchError),
    /// An entry is refused.
    Entry(FlowModError),
    /// A controller's entry is refused.
    Control(ControlError),
}

impl std::fmt::Display for LookupsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Match(_) => "a match is refused",
            Self::Entry(_) | Self::Control(_) => "a flow entry is refused",
        })
    }
}

impl std::error::Error for LookupsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Match(error) => Some(error),
            Self::Entry(error) => Some(error),
            Self::Control(error) => Some(error),
        }
    }
}

impl From<MatchError> for LookupsError {
    fn from(error: MatchError) -> Self {
        Self::Match(error)
    }
}

impl From<FlowModError> for LookupsError {
    fn from(error: FlowModError) -> Self {
        Self::Entry(error)
    }
}

/// Measures lookups of `flows` flows among `entries` entries: prefixes of destinations, of 17 different lengths.
///
/// # Errors
/// The pipeline refuses the entries.
pub fn lookups(flows: u32, entries: u32, runs: u32) -> Result<Lookups, LookupsError> {
    let mut random = Random::new(7);
    let mut pipeline = pipeline(entries, &mut random)?;
    let mut cache = flow_cache(CacheCapacity::default(), Seed::new(3, 4));
    let mut batch = [Arrival::default(); BATCH];

    let all: Vec<u32> = (0..flows).collect();
    let insert_all = time(|| {
        for chunk in all.chunks(BATCH) {
            fill(&mut batch, chunk);
            cache.look_up(&mut pipeline, &batch[..chunk.len()], NOW);
        }
    });
    let [mut extract, mut gather, mut whole, mut changing] = [const { Vec::new() }; 4];
    let mut hit_rate = Vec::new();
    for _ in 0..runs.max(1) {
        let ring: Vec<[u8; 60]> = (0..RING).map(|_| frame(random.below(flows))).collect();
        extract.push(per_packet(time(|| {
            for chunk in ring.chunks(BATCH).cycle().take(PACKETS as usize / BATCH) {
                for (place, frame) in batch.iter_mut().zip(chunk) {
                    read(place, frame);
                }
                black_box(&batch);
            }
        })));
        let order: Vec<u32> = (0..PACKETS).map(|_| random.below(flows)).collect();
        gather.push(per_packet(time(|| {
            for chunk in order.chunks(BATCH) {
                fill(&mut batch, chunk);
                black_box(&batch);
            }
        })));
        whole.push(per_packet(time(|| {
            for chunk in order.chunks(BATCH) {
                fill(&mut batch, chunk);
                black_box(cache.look_up(&mut pipeline, &batch, NOW));
            }
        })));
        let before = cache.counters();
        let mut refused = None;
        changing.push(per_packet(time(|| {
            for (packets, chunk) in (0..).step_by(BATCH).zip(order.chunks(BATCH)) {
                let change = packets / PACKETS_PER_CHANGE;
                if change != (packets + BATCH as u32) / PACKETS_PER_CHANGE {
                    let made = self::change(change).and_then(|change| Ok(pipeline.apply(&change, NOW)?));
                    refused = refused.take().or(made.err());
                }
                fill(&mut batch, chunk);
                black_box(cache.look_up(&mut pipeline, &batch, NOW));
            }
        })));
        refused.map_or(Ok(()), Err)?;
        hit_rate.push(valid_share(before, cache.counters()));
    }
    let (extract_ns, gather_ns) = (minimum(&extract), minimum(&gather));
    let lookup_ns = minimum(&whole) - gather_ns;
    Ok(Lookups {
        flows,
        entries,
        extract_ns,
        lookup_ns,
        total_ns: extract_ns + lookup_ns,
        insert_ns: insert_all / f64::from(flows.max(1)) - gather_ns,
        lookup_while_changing_ns: minimum(&changing) - gather_ns,
        hit_rate_while_changing: minimum(&hit_rate),
        changes_per_second: changes_per_second(entries, runs)?,
    })
}

/// The rate at which a steering switch changes entries for a controller. It has `entries` of them already, or as many as it takes.
fn changes_per_second(entries: u32, runs: u32) -> Result<f64, LookupsError> {
    let mut steering = Steering::new(SteeringSettings::default());
    let mut switch = SteeringShards::new([&mut steering]);
    let (mut random, entries) = (Random::new(7), entries.min(switch.max_entries() - 1));
    for entry in 0..entries {
        switch.change_entries(&prefix(entry, &mut random)?, 0).map_err(LookupsError::Control)?;
    }
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let changes = (0..CHANGES).map(self::change).collect::<Result<Vec<_>, _>>()?;
        let mut refused = Ok(());
        times.push(time(|| {
            for change in changes {
                let made = switch.change_entries(&change, 1);
                refused = std::mem::replace(&mut refused, Ok(())).and(made);
            }
        }));
        refused.map_err(LookupsError::Control)?;
    }
    Ok(f64::from(CHANGES) * 1e9 / minimum(&times))
}

/// An entry for a prefix of destinations.
fn prefix(entry: u32, random: &mut Random) -> Result<Change, LookupsError> {
    let bits = random.between(16, 32) as u32;
    let mask = u32::MAX << (32 - bits);
    let net = (0xc0a8_0000 + random.below(DESTINATIONS)) & mask;
    let matching = udp()?.with_masked(Field::Ipv4Dst, net.into(), mask.into())?;
    let mut change = Change::new(Command::Add, matching, bits as u16);
    change.instructions = Instructions::output(Output::Port(1 + entry % PORTS));
    Ok(change)
}

/// A pipeline with prefixes of destinations, and a table-miss entry.
fn pipeline(entries: u32, random: &mut Random) -> Result<Pipeline, LookupsError> {
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    for entry in 0..entries {
        pipeline.apply(&prefix(entry, random)?, Duration::ZERO)?;
    }
    pipeline.apply(&Change::new(Command::Add, Match::any(), 0), Duration::ZERO)?;
    Ok(pipeline)
}

/// The addition or removal of an entry for one flow of a protocol that no packet of the measurement has.
fn change(number: u32) -> Result<Change, LookupsError> {
    let command = if number.is_multiple_of(2) { Command::Add } else { Command::DeleteStrict };
    let destination = 0xc0a8_0000 + (number / 2) % DESTINATIONS;
    let matching = Match::any().with(Field::EthType, 0x0800)?.with(Field::IpProto, 6)?;
    let matching = matching.with(Field::Ipv4Dst, destination.into())?.with(Field::TcpDst, 80)?;
    Ok(Change::new(command, matching, 1_000))
}

fn udp() -> Result<Match, MatchError> {
    Match::any().with(Field::EthType, 0x0800)?.with(Field::IpProto, 17)
}

fn frame(flow: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..30].copy_from_slice(&0x0a00_0000u32.wrapping_add(flow).to_be_bytes());
    frame[30..34].copy_from_slice(&(0xc0a8_0000 + flow % DESTINATIONS).to_be_bytes());
    frame[34..38].copy_from_slice(&[(flow >> 3) as u8, flow as u8, 0, 80]);
    frame
}

#[inline(always)]
fn read(place: &mut Arrival, frame: &[u8; 60]) {
    place.key.read(frame, &Ingress { port: 1, ..Ingress::default() });
    place.length = 60;
}

#[inline(always)]
fn fill(batch: &mut [Arrival; BATCH], flows: &[u32]) {
    for (place, flow) in batch.iter_mut().zip(flows) {
        read(place, &frame(*flow));
    }
}

/// Share of packets whose cached decision was valid.
fn valid_share(before: CacheCounters, after: CacheCounters) -> f64 {
    let valid = after.hits + after.confirmed - before.hits - before.confirmed;
    let recomputed = |counters: CacheCounters| counters.misses + counters.ended + counters.superseded;
    let others = recomputed(after) - recomputed(before);
    valid as f64 / (valid + others).max(1) as f64
}

/// Processor time of this thread in nanoseconds.
fn time(work: impl FnOnce()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let start = now();
    work();
    now() - start
}

fn per_packet(nanoseconds: f64) -> f64 {
    nanoseconds / f64::from(PACKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_other_flows_leave_cached_decisions_valid() {
        let found = lookups(100, 50, 1).expect("a measurement");
        assert_eq!((found.flows, found.entries), (100, 50));
        assert!(found.hit_rate_while_changing > 0.999, "{found:?}");
        assert!(found.changes_per_second > 0.0, "{found:?}");
        assert!(found.total_ns > 0.0 && found.total_ns >= found.extract_ns, "{found:?}");
    }
}
