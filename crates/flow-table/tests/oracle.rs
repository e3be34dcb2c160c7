//! The pipeline and the cache decide and count as a linear search does, after every change.

mod support;

use std::collections::HashMap;
use std::time::Duration;

use flow_table::{
    Arrival, BATCH, CacheCapacity, Change, Command, FlowCache, FlowModError, Key, Limits, PathId, Pipeline,
    Seed,
};
use random::Random;
use support::{Decision, Reference, change, comparable, frame};

struct World {
    random: Random,
    pipeline: Pipeline,
    cache: FlowCache,
    reference: Reference,
    packets: Vec<Arrival>,
    now: Duration,
    /// The decision at the last lookup of each key.
    known: HashMap<Key, Decision>,
}

impl World {
    fn new(seed: u64, capacity: CacheCapacity, paths: usize) -> Self {
        let mut random = Random::new(seed);
        let packet = |random: &mut Random| {
            let (bytes, ingress) = frame(random);
            Arrival { key: Key::extract(&bytes, &ingress).0, length: 60 + random.below(100) }
        };
        let packets = (0..100).map(|_| packet(&mut random)).collect();
        Self {
            packets,
            pipeline: Pipeline::new(Limits { paths, ..Limits::default() }, Seed::new(random.next(), 1)),
            cache: FlowCache::new(capacity, Seed::new(random.next(), 2)),
            random,
            reference: Reference::default(),
            now: Duration::from_secs(1),
            known: HashMap::new(),
        }
    }

    fn change(&mut self) {
        let change = change(&mut self.random);
        let expected = self.reference_apply(&change);
        let found = self.pipeline.apply(&change, self.now);
        let found = found.map(|summary| {
            let mut removed: Vec<_> = summary.removed.iter().map(comparable).collect();
            removed.sort();
            (summary.modified, removed)
        });
        assert_eq!(found, expected, "{change:?}");
    }

    /// The reference accepts what only the checks of actions refuse, so these are asked first.
    fn reference_apply(&mut self, change: &Change) -> Result<(usize, Vec<String>), FlowModError> {
        let mut probe = Pipeline::new(Limits::default(), Seed::new(0, 0));
        if change.command == Command::Add {
            probe.apply(change, self.now)?;
        }
        self.reference.apply(change, self.now).map(|(modified, mut removed)| {
            removed.sort();
            (modified, removed)
        })
    }

    fn expire(&mut self) {
        let mut expected = self.reference.expire(self.now);
        let mut found: Vec<_> = self.pipeline.expire(self.now, usize::MAX).iter().map(comparable).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }

    /// Looks up a random batch. Returns the number of packets whose decision changed since the last lookup of their key,
    /// or whose key is new.
    fn look_up(&mut self) -> u64 {
        let count = 1 + self.random.below(BATCH as u32) as usize;
        let batch: Vec<Arrival> =
            (0..count).map(|_| self.packets[self.random.below(self.packets.len() as u32) as usize]).collect();
        let found: Vec<PathId> = self.cache.look_up(&mut self.pipeline, &batch, self.now).to_vec();
        let mut changed = 0;
        for (packet, id) in batch.iter().zip(&found) {
            let decision = self.reference.decide(&packet.key, packet.length, self.now);
            let path = self.pipeline.path(*id).expect("a living path");
            assert_eq!(path.operations(), decision.operations, "{:?}", packet.key);
            let ends = path.program().parts().scan(0, |end, (operations, performer)| {
                *end += operations.len();
                Some((*end, performer))
            });
            assert_eq!(ends.collect::<Vec<_>>(), decision.performers, "{:?}", packet.key);
            assert!(path.tables().eq(decision.steps.iter().map(|(table, _)| *table)));
            assert_eq!(path.is_miss(), decision.steps.last().unwrap().1.is_none());
            assert_eq!(path.resume().is_some(), decision.resume.is_some());
            let before = self.known.insert(packet.key, decision.clone());
            changed += u64::from(before.is_none_or(|before| before.steps != decision.steps));
        }
        self.resume(&batch, &found);
        changed
    }

    /// Continues one path after a revealed header, with another packet's key.
    fn resume(&mut self, batch: &[Arrival], found: &[PathId]) {
        let resumed = batch
            .iter()
            .zip(found)
            .find_map(|(packet, id)| Some((*id, self.known[&packet.key].resume.clone()?)));
        let Some((id, (table, metadata, set))) = resumed else { return };
        let inner = self.packets[self.random.below(self.packets.len() as u32) as usize];
        let next = self.pipeline.resume(id, &inner.key).expect("a path that continues");
        self.pipeline.count(next, 1, u64::from(inner.length), self.now);
        let expected =
            self.reference.decide_from(&inner.key, inner.length, self.now, table, Some(metadata), set);
        assert_eq!(self.pipeline.path(next).unwrap().operations(), expected.operations);
    }

    fn compare_counters(&mut self) {
        let mut expected = self.reference.entries();
        let mut found: Vec<_> = self
            .pipeline
            .entries()
            .map(|entry| {
                let times = (entry.created, entry.used, entry.packets, entry.bytes);
                format!("{} {:?} {} {times:?}", entry.table, entry.matching, entry.priority)
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        for table in 0..6 {
            let found = self.pipeline.table_counters(table).unwrap();
            assert_eq!((found.active, found.lookups, found.matches), self.reference.table_counters(table));
        }
    }
}

/// After every change the cache decides as the linear search, and recomputes exactly the keys whose decision changed.
#[test]
fn every_change_concerns_only_the_keys_that_it_overlaps() {
    let (mut superseded_in_all, mut confirmed) = (0, 0);
    for seed in 0..40 {
        let mut world = World::new(seed, CacheCapacity { ip4: 1 << 10, other: 1 << 10 }, 1 << 16);
        for _ in 0..250 {
            world.change();
            // Less than a minute in all, so that no key is forgotten because of its age.
            world.now += Duration::from_millis(world.random.below(400).into());
            world.expire();
            let before = world.cache.counters();
            let changed = world.look_up();
            let after = world.cache.counters();
            let superseded = after.superseded - before.superseded;
            let recomputed = after.ended + after.misses - before.ended - before.misses + superseded;
            assert_eq!(recomputed, changed, "seed {seed}");
            superseded_in_all += superseded;
            confirmed += after.confirmed - before.confirmed;
            world.compare_counters();
        }
        let sum = world.cache.counters();
        let packets = sum.hits + sum.confirmed + sum.misses + sum.ended + sum.superseded;
        assert_eq!(packets, world.pipeline.table_counters(0).unwrap().lookups);
        assert!(world.known.len() as u64 <= sum.misses && sum.evicted == 0);
    }
    assert!(superseded_in_all > 1_000 && confirmed > 10_000, "{superseded_in_all} {confirmed}");
}

/// A cache and a pipeline that must forget all the time decide as the linear search.
#[test]
fn small_capacities_change_no_decision() {
    for seed in 0..20 {
        let mut world = World::new(1_000 + seed, CacheCapacity { ip4: 8, other: 8 }, 0);
        for _ in 0..250 {
            world.change();
            world.now += Duration::from_millis(world.random.below(500).into());
            world.expire();
            world.look_up();
            world.look_up();
            world.compare_counters();
        }
        assert!(world.cache.counters().evicted > 100 && world.cache.len() <= 16);
    }
}
