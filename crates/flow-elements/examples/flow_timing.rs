//! Prints nanoseconds per operation of the flow tables at several sizes.
//!
//! `cargo run --release -p flow-elements --example flow_timing`

mod timing;

use std::hint::black_box;
use std::time::Instant;

use flow::{
    BidirectionalFlow, BidirectionalTable, FlowLookup, Ip4Flow, LOOKUP_GROUP, NumberChooser, NumberPool,
    NumberSet, Seed, Table, TakenNumbers, Timeouts,
};
use random::Random;
use timing::fastest;

/// Lookups timed in one go.
const LOOKUPS: usize = 1 << 18;

/// A flow as a rewriter keeps it: with its key it fills a cache line.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Flow {
    deadline: u64,
    packets: u64,
    reply: [u64; 3],
    guaranteed: bool,
}

fn main() {
    println!(
        "{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "flows", "get", "batch", "+update", "insert", "remove", "worst insert"
    );
    for count in [1, 1_000, 60_000, 1_000_000, 4_000_000] {
        table(count);
    }
    for count in [1, 1_000, 60_000, 1_000_000] {
        pairs(count);
    }
    timeouts();
    ports();
}

/// What a rewriter does for each packet, of random flows in both directions: find it, postpone its deadline, read its
/// new addresses.
fn pairs(count: usize) {
    let mut random = Random::new(count as u64 | 1);
    let mut pairs = BidirectionalTable::new(Seed::new(random.next(), random.next()));
    let mut keys = Vec::new();
    while pairs.len() < count {
        let forward = Ip4Flow {
            source: 0x0a00_0000 | random.next() as u32 >> 8,
            destination: random.next() as u32,
            source_port: random.next() as u16,
            destination_port: 80,
        };
        let reply = Ip4Flow { destination: 0x0101_0101, ..forward.reverse() };
        if pairs
            .insert(BidirectionalFlow { keys: [forward, reply], flow: ([0u64; 4], 0u32, 0u16, false) })
            .is_ok()
        {
            keys.extend([forward, reply]);
        }
    }
    let queries: Vec<Ip4Flow> =
        (0..LOOKUPS).map(|_| keys[random.below(keys.len() as u32) as usize]).collect();
    let mut sides = vec![None; LOOKUPS];
    let packet = fastest(LOOKUPS, || {
        let mut sum = 0;
        for (keys, sides) in queries.chunks(256).zip(sides.chunks_mut(256)) {
            for (keys, sides) in keys.chunks(LOOKUP_GROUP).zip(sides.chunks_mut(LOOKUP_GROUP)) {
                let mut lookups = [const { None }; LOOKUP_GROUP];
                for (lookup, key) in lookups.iter_mut().zip(keys) {
                    *lookup = Some(pairs.begin_lookup(*key));
                }
                for (side, lookup) in sides.iter_mut().zip(&lookups) {
                    *side = lookup.as_ref().and_then(FlowLookup::likely);
                }
            }
            for side in sides.iter().flatten() {
                let Some(pair) = pairs.get(side.flow) else { continue };
                sum += u64::from(if side.reply { pair.keys[0].source } else { pair.keys[1].destination });
                if let Some(flow) = pairs.get_mut(side.flow) {
                    flow.0[0] += 1;
                }
            }
        }
        sum
    });
    println!("{count} flows of two directions: {packet:.1} ns a packet");
}

fn table(count: usize) {
    let mut random = Random::new(count as u64 | 1);
    let keys: Vec<u128> =
        (0..count).map(|_| u128::from(random.next()) << 40 | 17 << 32 | 0x0a00_0001).collect();
    let mut table = Table::new(Seed::new(random.next(), random.next()));
    let mut worst = 0.0_f64;
    let start = Instant::now();
    for &key in &keys {
        let before = Instant::now();
        let _ = table.insert(key, Flow { deadline: 0, packets: 0, reply: [0; 3], guaranteed: false });
        worst = worst.max(before.elapsed().as_secs_f64());
    }
    let insert = start.elapsed().as_secs_f64() * 1e9 / count as f64;

    let queries: Vec<u128> = (0..LOOKUPS).map(|_| keys[random.below(count as u32) as usize]).collect();
    let mut handles = vec![0; LOOKUPS];
    let get = fastest(LOOKUPS, || {
        queries.iter().map(|&key| table.get(key).map_or(0, |flow| flow.packets)).sum::<u64>()
    });
    let batch = fastest(LOOKUPS, || {
        for (keys, handles) in queries.chunks(256).zip(handles.chunks_mut(256)) {
            table.find_likely(keys, handles);
        }
        0
    });
    let update = fastest(LOOKUPS, || {
        let mut sum = 0;
        for (keys, handles) in queries.chunks(256).zip(handles.chunks_mut(256)) {
            table.find_likely(keys, handles);
            for &handle in &*handles {
                if let Some(flow) = table.value_mut(handle) {
                    flow.packets += 1;
                    flow.deadline += 10;
                    sum += flow.reply[2] + u64::from(flow.guaranteed);
                }
            }
        }
        sum
    });
    let start = Instant::now();
    for &key in &keys {
        black_box(table.remove(key));
    }
    let remove = start.elapsed().as_secs_f64() * 1e9 / count as f64;
    let worst = worst * 1e6;
    println!("{count:>9} {get:>9.1} {batch:>9.1} {update:>9.1} {insert:>9.1} {remove:>9.1} {worst:>9.1} us");
}

fn timeouts() {
    for count in [1_000, 1_000_000u32] {
        let mut random = Random::new(5);
        let mut timeouts = Timeouts::new();
        let deadlines: Vec<u64> = (0..count).map(|at| u64::from(at) + random.below_u64(1_000)).collect();
        let start = Instant::now();
        deadlines.iter().zip(0..).for_each(|(&deadline, handle)| timeouts.set(handle, deadline));
        let set = start.elapsed().as_secs_f64() * 1e9 / f64::from(count);
        let start = Instant::now();
        while let Some(handle) = timeouts.pop_expired(u64::MAX, |handle| deadlines[handle as usize]) {
            black_box(handle);
        }
        let pop = start.elapsed().as_secs_f64() * 1e9 / f64::from(count);
        println!("{count} timeouts: set {set:.1} ns, expire {pop:.1} ns");
    }
}

fn ports() {
    let range = NumberPool { base: 1_024, top: 64_511, sequential: false, same_first: false };
    let mut choice = NumberChooser::new(range);
    let mut known = TakenNumbers::new();
    let mut taken = NumberSet::new(65_536);
    let mut random = Random::new(3);
    for share in [50, 90, 99, 100] {
        let start = Instant::now();
        let mut chosen = 0;
        while chosen + 1_024 < 65_536 * share / 100 && chosen < 64_512 {
            chosen += 1;
            let number = choice.choose(1, 0, &mut known, |top| random.below(top + 1), |n| taken.contains(n));
            if let Some(number) = number {
                taken.add(number);
            }
        }
        let each = start.elapsed().as_secs_f64() * 1e9 / chosen as f64;
        println!("ports up to {share} % taken: {each:.1} ns a choice");
        (1_024..65_536).for_each(|number| {
            taken.remove(number);
            known.release(1, number);
        });
    }
}
