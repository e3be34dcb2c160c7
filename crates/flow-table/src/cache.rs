//! The exact-match cache in front of the pipeline.

use std::ops::Range;
use std::time::Duration;

use flow::{Key as _, Seed};

use crate::exact::{Care, ExactTable, Hash, Slot, is_equal};
use crate::layout::{NARROW_WORDS, WORDS};
use crate::pipeline::nanoseconds;
use crate::{Arrival, Key, PathId, Pipeline};

/// Packets that are looked up together, so that their cache misses overlap.
pub const BATCH: usize = 32;

/// Packets ahead whose counters are prefetched: a wait for all their slots at once would take longer.
const AHEAD: usize = 4;

/// Slots that are searched for unused keys for each key that is added.
const SWEEP: usize = 4;

/// Slots that are searched for unused keys while there is time.
const TIDY_SWEEP: usize = 4096;

/// The time to the next [`tidy`](FlowCache::tidy) of a cache that shrinks, and of others.
const SOON: Duration = Duration::from_millis(10);
const LATER: Duration = Duration::from_millis(250);

/// Seconds without a packet after which a key may be removed.
const MAX_IDLE: u32 = 60;

/// No handle.
const NONE: u32 = u32::MAX;

/// The capacity of a cache, in keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheCapacity {
    /// Keys of IPv4 packets without tunnel and metadata, of 64 bytes each.
    pub ip4: usize,
    /// All other keys, of 128 bytes each.
    pub other: usize,
}

impl Default for CacheCapacity {
    /// A million flows over IPv4, and a quarter of a million others.
    fn default() -> Self {
        Self { ip4: 1 << 20, other: 1 << 18 }
    }
}

impl CacheCapacity {
    /// The most memory that a cache takes, in bytes.
    #[must_use]
    pub fn max_bytes(self) -> usize {
        ExactTable::<NARROW_WORDS, 1>::max_bytes(self.ip4)
            .saturating_add(ExactTable::<WORDS>::max_bytes(self.other))
    }
}

/// Counters of a cache. Their sum, without `evicted`, is the number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheCounters {
    /// Packets whose decision was cached and right.
    pub hits: u64,
    /// Those whose decision was right, but had to be compared with entries that were added since its last use.
    pub confirmed: u64,
    /// Packets whose key was not cached.
    pub misses: u64,
    /// Packets whose cached decision involved an entry that was modified or removed.
    pub ended: u64,
    /// Packets whose cached decision was superseded by an entry that was added.
    pub superseded: u64,
    /// Keys that were displaced by others.
    pub evicted: u64,
}

/// Remembers the path of each key, for one thread.
///
/// # Changes of the entries
///
/// A cached decision is the path: the sequence of entries that the key matched. The cache stays correct as follows.
///
/// - **Removing or modifying an entry** ends the paths through it. A cached key refers to its path by slot and
///   generation, so it finds out at its next use, in a cache line that it reads anyway for the counters. This is exact:
///   such a change concerns a key only if the key matched the entry.
/// - **Adding an entry** concerns the keys that match it and matched an entry of lower priority before. The pipeline
///   numbers additions, and each tuple (the entries of one mask) knows the number of its latest one. A cached key carries
///   the number as of which its decision was right. If it is not the latest, the key is looked up at its next use, but
///   only in those tuples of the tables on its path that had additions since, and that hold a priority high enough. A
///   better entry found there must be new, so the decision is recomputed; otherwise it gets the latest number.
///
/// So a change costs nothing per cached key, and each key pays for the changes since its last use one hash lookup per
/// changed tuple, whatever their number. Only keys whose decision really changed are recomputed.
///
/// The alternatives were to search the cache for keys that overlap the change, which takes milliseconds for a million
/// keys; to compare each key with a log of changes, which costs thousands of comparisons per packet at 5,000 changes a
/// second; and to store a mask of consulted bits per key (megaflows, as in Open vSwitch), whose invalidation needs either
/// of the two.
pub struct FlowCache {
    /// Keys of IPv4 packets without tunnel and metadata. With a note, a slot fills its cache line.
    narrow: ExactTable<NARROW_WORDS, 1>,
    wide: ExactTable<WORDS>,
    counters: CacheCounters,
    paths: [PathId; BATCH],
    /// What was noted of the keys that were looked up last, and where their slots are.
    notes: [u64; BATCH],
    handles: [u32; BATCH],
}

impl FlowCache {
    /// An empty cache. The seed comes from the environment's random numbers.
    ///
    /// The memory ([`CacheCapacity::max_bytes`]) is reserved at once, but taken from the system as it is used.
    #[must_use]
    pub fn new(capacity: CacheCapacity, seed: Seed) -> Self {
        Self {
            narrow: ExactTable::new(capacity.ip4, 1u64.hash(seed)),
            wide: ExactTable::new(capacity.other, 2u64.hash(seed)),
            counters: CacheCounters::default(),
            paths: [PathId { slot: NONE, generation: 0 }; BATCH],
            notes: [0; BATCH],
            handles: [NONE; BATCH],
        }
    }

    /// The paths of up to [`BATCH`] packets; further packets are ignored. The packets are counted.
    ///
    /// A cache belongs to one pipeline. The paths are valid until the next change or lookup of that pipeline.
    pub fn look_up(&mut self, pipeline: &mut Pipeline, packets: &[Arrival], now: Duration) -> &[PathId] {
        let packets = &packets[..packets.len().min(BATCH)];
        pipeline.make_room(packets.len());
        let (mut narrow, mut wide) = ([0; BATCH], [0; BATCH]);
        let (mut narrow_count, mut wide_count) = (0, 0);
        for (lane, packet) in packets.iter().enumerate() {
            // Both are written, so that there is no branch to mispredict.
            let is_narrow = packet.key.is_narrow();
            narrow[narrow_count % BATCH] = lane as u8;
            wide[wide_count % BATCH] = lane as u8;
            narrow_count += usize::from(is_narrow);
            wide_count += usize::from(!is_narrow);
        }
        let Self { narrow: narrow_table, wide: wide_table, counters, paths, notes, handles } = self;
        let now = nanoseconds(now);
        let mut batch = Batch { pipeline, packets, counters, paths, notes, handles, now };
        batch.look_up(narrow_table, &narrow[..narrow_count]);
        if wide_count != 0 {
            batch.look_up(wide_table, &wide[..wide_count]);
        }
        &self.paths[..packets.len()]
    }

    /// The paths of the packets that were looked up last, in their order, as far as there are so many.
    #[must_use]
    pub fn paths(&self, count: usize) -> &[PathId] {
        self.paths.get(..count).unwrap_or_default()
    }

    /// What was [noted](Self::set_note) of the keys of the packets that were looked up last, in their order; 0: nothing.
    #[must_use]
    pub fn notes(&self) -> &[u64; BATCH] {
        &self.notes
    }

    /// Notes a word of the key of a packet that was looked up last. It is read with the key, in the same cache line, as long as the
    /// key is cached. Nothing is noted of a key that was not cached before, nor of one for which a note would take another line.
    pub fn set_note(&mut self, lane: usize, key: &Key, note: u64) {
        let handle = self.handles.get(lane).copied().unwrap_or(NONE);
        // Another key of the batch may have taken its slot.
        if let Some(slot) = self.narrow.slot_mut(handle).filter(|slot| slot.key == *key.first_words()) {
            slot.notes = [note];
        }
    }

    /// The memory of the keys: large, and read at random places.
    pub fn memory(&self) -> impl Iterator<Item = Range<*const u8>> {
        self.narrow.memory().into_iter().chain(self.wide.memory())
    }

    /// Removes some keys that were not used lately, and makes a step to use less memory if few are left: some tens of microseconds.
    /// Returns when to do so again; `None`: when there are more keys.
    pub fn tidy(&mut self, pipeline: &Pipeline, now: Duration) -> Option<Duration> {
        let seconds = now.as_secs() as u32;
        let cares = [self.narrow.tidy(pipeline, seconds), self.wide.tidy(pipeline, seconds)];
        let care = cares.into_iter().flatten().min()?;
        Some(match care {
            Care::Soon => SOON,
            Care::Later => LATER,
        })
    }

    /// Whether [`tidy`](Self::tidy) has something to do.
    #[must_use]
    pub fn needs_care(&self) -> bool {
        self.narrow.care().is_some() || self.wide.care().is_some()
    }

    /// Memory that holds nothing any more but is in use, at most about this number of bytes: its pages may be given back to the system
    /// if they are zeros when they are used next.
    pub fn take_idle_memory(&mut self, most: usize) -> impl Iterator<Item = Range<*const u8>> {
        let narrow = self.narrow.take_idle_memory(most / 4);
        narrow.into_iter().chain(self.wide.take_idle_memory(most / 4))
    }

    /// The counters since the start.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        CacheCounters { evicted: self.narrow.evicted + self.wide.evicted, ..self.counters }
    }

    /// Number of cached keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.narrow.len() + self.wide.len()
    }

    /// Whether no key is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.narrow.clear();
        self.wide.clear();
    }
}

/// Whether a key may be removed.
fn is_old<const N: usize, const NOTES: usize>(
    pipeline: &Pipeline,
    seconds: u32,
) -> impl Fn(&Slot<N, NOTES>) -> bool {
    move |slot| !pipeline.is_alive(slot.path) || seconds.saturating_sub(slot.used) > MAX_IDLE
}

impl<const N: usize, const NOTES: usize> ExactTable<N, NOTES> {
    /// As [`FlowCache::tidy`].
    fn tidy(&mut self, pipeline: &Pipeline, seconds: u32) -> Option<Care> {
        if self.care()? == Care::Later {
            self.sweep(TIDY_SWEEP, is_old(pipeline, seconds));
        }
        self.shrink();
        self.care()
    }
}

/// One batch of lookups.
struct Batch<'a> {
    pipeline: &'a mut Pipeline,
    packets: &'a [Arrival],
    counters: &'a mut CacheCounters,
    paths: &'a mut [PathId; BATCH],
    notes: &'a mut [u64; BATCH],
    handles: &'a mut [u32; BATCH],
    /// Nanoseconds.
    now: u64,
}

/// What is known of a packet's key.
#[derive(Clone, Copy)]
struct Found {
    path: PathId,
    note: u64,
    /// The handle of its slot, if it takes a note.
    handle: u32,
}

impl Found {
    #[inline(always)]
    fn new<const N: usize, const NOTES: usize>(slot: &Slot<N, NOTES>, handle: u32) -> Self {
        match slot.notes.first() {
            Some(note) => Self { path: slot.path, note: *note, handle },
            None => Self { path: slot.path, note: 0, handle: NONE },
        }
    }
}

/// Consecutive packets of one path.
#[derive(Clone, Copy)]
struct Run {
    path: PathId,
    packets: u64,
    bytes: u64,
}

impl Batch<'_> {
    /// Finds the paths of the packets in `lanes`, whose keys belong in `table`.
    #[inline(always)]
    fn look_up<const N: usize, const NOTES: usize>(
        &mut self,
        table: &mut ExactTable<N, NOTES>,
        lanes: &[u8],
    ) {
        let packets = self.packets;
        let lanes =
            || lanes.iter().filter_map(|lane| Some((usize::from(*lane), packets.get(usize::from(*lane))?)));
        let (mut hashes, mut candidates) = ([Hash::default(); BATCH], [NONE; BATCH]);
        for ((_, packet), hash) in lanes().zip(&mut hashes) {
            *hash = table.hash(packet.key.first_words());
            table.prefetch_bucket(*hash);
        }
        for (_, (hash, candidate)) in lanes().zip(hashes.iter().zip(&mut candidates)) {
            *candidate = table.candidate(*hash).unwrap_or(NONE);
        }
        let seconds = (self.now / 1_000_000_000) as u32;
        let stamp = self.pipeline.stamp();
        let mut hits = 0;
        // The path of the packets before, which mostly is that of the next one too: they are counted together.
        let mut run = Run { path: PathId { slot: NONE, generation: 0 }, packets: 0, bytes: 0 };
        for (at, ((lane, packet), (hash, candidate))) in
            lanes().zip(hashes.iter().zip(&candidates)).enumerate()
        {
            if let Some(coming) = candidates.get(at + AHEAD)
                && let Some(slot) = table.slot(*coming)
                && let Some(hot) = self.pipeline.hot(slot.path.slot)
            {
                packet::prefetch(hot);
            }
            let key = packet.key.first_words::<N>();
            let Found { path, note, handle } = match table.slot_mut(*candidate) {
                Some(slot)
                    if is_equal(&slot.key, key)
                        && slot.stamp == stamp
                        && (slot.path == run.path || self.pipeline.is_alive(slot.path)) =>
                {
                    if slot.used != seconds {
                        slot.used = seconds;
                    }
                    hits += 1;
                    Found::new(slot, *candidate)
                }
                _ => self.find(table, *hash, packet, seconds),
            };
            if path != run.path {
                self.count(run);
                run = Run { path, packets: 0, bytes: 0 };
            }
            run.packets += 1;
            run.bytes += u64::from(packet.length);
            let found =
                self.paths.get_mut(lane).zip(self.notes.get_mut(lane)).zip(self.handles.get_mut(lane));
            if let Some(((paths, notes), handles)) = found {
                (*paths, *notes, *handles) = (path, note, handle);
            }
        }
        self.count(run);
        self.counters.hits += hits;
    }

    /// Counts the packets of a run.
    #[inline(always)]
    fn count(&mut self, Run { path, packets, bytes }: Run) {
        self.pipeline.count_at(path.slot, packets, bytes, self.now);
    }

    /// The path of a packet that is not where it was expected, or whose decision must be confirmed.
    #[cold]
    #[inline(never)]
    fn find<const N: usize, const NOTES: usize>(
        &mut self,
        table: &mut ExactTable<N, NOTES>,
        hash: Hash,
        packet: &Arrival,
        seconds: u32,
    ) -> Found {
        let key = packet.key.first_words::<N>();
        let stamp = self.pipeline.stamp();
        let handle = table.find(hash, key).unwrap_or(NONE);
        let Some(slot) = table.slot_mut(handle) else {
            self.counters.misses += 1;
            let path = self.pipeline.look_up_from(&packet.key, None);
            table.insert(hash, Slot { key: *key, notes: [0; NOTES], path, stamp, used: seconds });
            table.sweep(SWEEP, is_old(self.pipeline, seconds));
            return Found { path, note: 0, handle: NONE };
        };
        slot.used = seconds;
        if !self.pipeline.is_alive(slot.path) {
            self.counters.ended += 1;
            slot.path = self.pipeline.look_up_from(&packet.key, None);
        } else if slot.stamp == stamp {
            self.counters.hits += 1;
        } else if self.pipeline.is_current(slot.path, &packet.key, slot.stamp) {
            self.counters.confirmed += 1;
        } else {
            self.counters.superseded += 1;
            slot.path = self.pipeline.look_up_from(&packet.key, None);
        }
        slot.stamp = stamp;
        Found::new(slot, handle)
    }
}
