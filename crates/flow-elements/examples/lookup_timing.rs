//! Prints nanoseconds per lookup of the route tables at several sizes.
//!
//! `cargo run --release -p flow-elements --example lookup_timing`

mod timing;

use std::hint::black_box;
use std::time::Instant;

use lookup::{Address, Entry, Ip4Table, Prefix, PrefixTable};
use random::Random;
use timing::fastest;

/// Lookups timed in one go.
const ADDRESSES: usize = 1 << 18;

fn main() {
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}",
        "table", "routes", "single", "batch", "build ms", "update us", "KB"
    );
    for count in [10, 100, 1_000, 10_000] {
        let mut random = Random::new(7);
        let routes: Vec<_> = (0..count).map(|_| ip4_route(&mut random)).collect();
        let prefixes: Vec<_> = routes.iter().map(|(prefix, _)| *prefix).collect();
        // Every packet has a route, as behind a default route or in a network.
        time("ip4, addresses of routes", routes, |random| {
            let prefix = prefixes[random.below(count) as usize];
            prefix.address() | random.next() as u32 & !u32::MAX.first(prefix.length())
        });
    }
    for count in [1, 1_000, 60_000, 1_000_000] {
        let mut random = Random::new(7);
        time("ip4, random prefixes", (0..count).map(|_| ip4_route(&mut random)).collect(), |random| {
            random.next() as u32
        });
        let mut random = Random::new(8);
        let rows: Vec<_> = (0..count).map(|_| host_route(&mut random)).collect();
        time("ip4, 1 in 10 over /24", rows, |random| random.next() as u32);
    }
    for count in [1, 1_000, 60_000, 100_000] {
        let mut random = Random::new(9);
        let known: Vec<u64> = (0..1 + count / 4).map(|_| random.next() >> 3 | 1 << 61).collect();
        let address = move |random: &mut Random| {
            let high = known[random.below(known.len() as u32) as usize] ^ random.next() >> 44;
            u128::from(high) << 64 | u128::from(random.next())
        };
        let lengths = [32, 40, 44, 48, 48, 48, 56, 64];
        let rows = (0..count)
            .map(|at| (Prefix::new(address(&mut random), lengths[at % 8]).unwrap(), entry(&mut random)))
            .collect();
        time("ip6", rows, address);
    }
    worst_update();
}

/// A route with the lengths of a backbone's table: most of 24 bits, none beyond.
fn ip4_route(random: &mut Random) -> (Prefix<u32>, Entry) {
    let length = [24, 24, 24, 24, 24, 24, 23, 22, 22, 21, 20, 19, 18, 16, 16, 14][random.below(16) as usize];
    (Prefix::new(random.next() as u32, length).unwrap(), entry(random))
}

fn host_route(random: &mut Random) -> (Prefix<u32>, Entry) {
    let (prefix, entry) = ip4_route(random);
    let length = if random.below(10) == 0 { 25 + random.below(8) as u8 } else { prefix.length() };
    (Prefix::new(random.next() as u32, length).unwrap(), entry)
}

fn entry(random: &mut Random) -> Entry {
    Entry { hop: random.below(64), tag: 0 }
}

fn time<A: Address>(name: &str, routes: Vec<(Prefix<A>, Entry)>, address: impl Fn(&mut Random) -> A) {
    let start = Instant::now();
    let mut table = PrefixTable::build(routes.iter().copied()).unwrap();
    let build = start.elapsed().as_secs_f64() * 1e3;

    let mut random = Random::new(11);
    let addresses: Vec<A> = (0..ADDRESSES).map(|_| address(&mut random)).collect();
    let mut hops = vec![0; ADDRESSES];
    let single = fastest(ADDRESSES, || {
        for (&address, hop) in addresses.iter().zip(&mut hops) {
            *hop = table.lookup(address).unwrap_or(u32::MAX);
        }
    });
    let batch = fastest(ADDRESSES, || {
        for (addresses, hops) in addresses.chunks(256).zip(hops.chunks_mut(256)) {
            table.lookup_batch(addresses, hops);
        }
    });
    black_box(&hops);

    let changes = routes.len().min(10_000);
    let start = Instant::now();
    for (prefix, entry) in &routes[..changes] {
        table.remove(*prefix);
        table.insert(*prefix, *entry).unwrap();
    }
    let update = start.elapsed().as_secs_f64() * 1e6 / changes as f64 / 2.0;
    let kilobytes = table.bytes() / 1024;
    println!(
        "{name:<24} {:>9} {single:>9.1} {batch:>9.1} {build:>9.1} {update:>10.2} {kilobytes:>9}",
        table.len()
    );
}

/// Short prefixes cover the most; they are the most expensive to change.
fn worst_update() {
    let mut random = Random::new(7);
    let mut table = Ip4Table::build((0..1_000_000).map(|_| ip4_route(&mut random))).unwrap();
    for length in [0, 1, 8, 9, 16, 17, 24, 25, 32] {
        let mut worst = 0.0_f64;
        for turn in 0..1_000 {
            let prefix = Prefix::new(random.next() as u32, length).unwrap();
            let start = Instant::now();
            table.insert(prefix, Entry { hop: turn, tag: 0 }).unwrap();
            worst = worst.max(start.elapsed().as_secs_f64() * 1e6);
        }
        println!("slowest of 1,000 inserts of a /{length} in 1,000,000 routes: {worst:.1} us");
    }
}
