//! Tests of the trie.

use super::*;
use crate::deferred::{BLOCKS_AT_ONCE, LARGE_BYTES};
use random::Random;

/// Searches all routes.
fn linear<A: Address>(routes: &[(Prefix<A>, Entry)], address: A) -> Option<u32> {
    let matching = routes.iter().filter(|(prefix, _)| prefix.contains(address));
    matching.max_by_key(|(prefix, _)| prefix.length()).map(|(_, entry)| entry.hop)
}

fn hop_of(hop: u32) -> Option<u32> {
    (hop != NO_HOP).then_some(hop)
}

#[track_caller]
fn check_lookups<A: Address>(table: &PrefixTable<A>, model: &[(Prefix<A>, Entry)], addresses: &[A]) {
    let expected: Vec<_> = addresses.iter().map(|&address| linear(model, address)).collect();
    let single: Vec<_> = addresses.iter().map(|&address| table.lookup(address)).collect();
    assert!(single == expected, "single lookups differ from a linear search");
    let matches = |hops: &[u32]| hops.iter().zip(&expected).all(|(hop, expected)| hop_of(*hop) == *expected);
    // Built in steps, by lookups alone.
    let mut settled = table.clone();
    settled.form = Form::Changed(0);
    let flat_routes = FLAT_ROUTES..=MAX_FLAT_ROUTES;
    let is_flat = A::BITS == 32
        && flat_routes.contains(&model.len())
        && model.iter().any(|(prefix, _)| prefix.length() > 16);
    for step in 0..2 + model.len().div_ceil(FLAT_STEP) {
        let mut hops = alloc::vec![7; addresses.len()];
        settled.lookup_batch(addresses, &mut hops);
        assert!(matches(&hops), "batch lookups differ from a linear search after {step} steps");
    }
    assert_eq!(matches!(settled.form, Form::Flat(_)), is_flat, "{} routes", model.len());
    for batch in [Trie::lookup_batch, Trie::lookup_overlapped] {
        let mut hops = alloc::vec![7; addresses.len()];
        batch(&table.trie, addresses, &mut hops);
        assert!(matches(&hops), "batch lookups differ from a linear search");
    }
}

/// Random changes to addresses that differ in few bytes, so that prefixes nest at every level.
fn check_changes<A: Address>(mut address: impl FnMut(&mut Random) -> A) {
    let mut random = Random::new(A::BITS.into());
    let mut table = PrefixTable::new();
    let empty = table.bytes();
    let mut model: Vec<(Prefix<A>, Entry)> = Vec::new();
    for step in 0..3_000u32 {
        let length = random.below(u32::from(A::BITS) + 1) as u8;
        let prefix = Prefix::new(address(&mut random), length).unwrap();
        let known = model.iter().position(|(other, _)| *other == prefix);
        let entry = Entry { hop: random.below(5), tag: step };
        if random.below(3) > 0 {
            let old = known.map(|at| model.swap_remove(at).1);
            assert_eq!(table.insert(prefix, entry), Ok(old));
            model.push((prefix, entry));
        } else if !model.is_empty() {
            let at = known.unwrap_or(random.below(model.len() as u32) as usize);
            let (prefix, old) = model.swap_remove(at);
            assert_eq!(table.remove(prefix), Some(old));
            assert_eq!(table.remove(prefix), None);
        }
        if step % 50 == 0 {
            let mut addresses: Vec<A> = (0..100).map(|_| address(&mut random)).collect();
            addresses.extend(
                model
                    .iter()
                    .flat_map(|(prefix, _)| [prefix.address(), prefix.address().last(prefix.length())]),
            );
            let built = PrefixTable::build(model.iter().copied()).unwrap();
            check_lookups(&built, &model, &addresses);
            if step % 200 == 150 {
                let other = Prefix::new(address(&mut random), A::BITS).unwrap();
                check_steps(table.clone(), other, &addresses);
            }
            table.apply_updates();
            check_lookups(&table, &model, &addresses);
            if step % 100 == 0 {
                table.defer_updates();
            }
        }
    }
    table.apply_updates();
    assert_eq!(table.len(), model.len());
    let mut listed: Vec<_> = table.iter().collect();
    listed.sort_by_key(|(prefix, _)| *prefix);
    model.sort_by_key(|(prefix, _)| *prefix);
    assert!(listed == model, "iteration lists other routes");
    for (prefix, entry) in &model {
        assert_eq!(table.get(*prefix), Some(*entry));
        table.remove(*prefix);
    }
    assert_eq!(table.trie.nodes.expand(0), [0; SLOTS]);
    assert!(table.trie.top.iter().all(|slot| *slot == Slot::default()), "blocks are left behind");
    table.clear();
    assert_eq!(table.bytes(), empty);
}

/// Applies deferred changes in steps, with one more change in the middle: lookups see all of them after the last step,
/// and none before.
fn check_steps<A: Address>(mut table: PrefixTable<A>, other: Prefix<A>, addresses: &[A]) {
    assert!(table.is_deferring());
    let mut at_once = table.clone();
    let lookups = |table: &PrefixTable<A>| -> Vec<Option<u32>> {
        addresses.iter().map(|address| table.lookup(*address)).collect()
    };
    let before = lookups(&table);
    let mut steps = 1;
    while !table.apply_some_updates() {
        assert!(lookups(&table) == before, "lookups see a change after {steps} steps");
        if steps == 3 {
            for table in [&mut table, &mut at_once] {
                table.insert(other, Entry { hop: 6, tag: 0 }).unwrap();
            }
        }
        steps += 1;
    }
    assert!(steps > 3 && !table.is_deferring(), "{steps} steps");
    at_once.apply_updates();
    assert!(lookups(&table) == lookups(&at_once) && table.iter().eq(at_once.iter()));
    assert_eq!(table.lookup(other.address()), Some(6));
    while !table.free_some() {}
    assert!(table.is_empty());
}

/// A table of /24 networks in different /16 networks, after enough lookups.
fn settled(routes: u32, hops: u32) -> PrefixTable<u32> {
    let route = |number: u32| {
        let prefix = Prefix::new(number.reverse_bits(), 24).unwrap();
        (prefix, Entry { hop: number % hops, tag: 0 })
    };
    let mut table = PrefixTable::build((0..routes).map(route)).unwrap();
    for _ in 0..routes {
        table.lookup_batch(&[0; 256], &mut [0; 256]);
    }
    table
}

#[test]
fn the_nodes_that_changes_need_are_counted_before() {
    // Scattered over the address space, and side by side.
    let scattered = [(300_u32, 24), (300, 48), (3_000, 48), (300, 128)].map(|case| (case, 2_654_435_761));
    let dense = [(300, 48), (3_000, 48), (3_000, 56)].map(|case| (case, 1));
    for ((routes, length), distance) in scattered.into_iter().chain(dense) {
        let mut table = PrefixTable::new();
        table.defer_updates();
        for number in 0..routes {
            let address = (0x2001 << 112) | u128::from(number.wrapping_mul(distance)) << 80;
            let hop = number % 3;
            table.insert(Prefix::new(address, length).unwrap(), Entry { hop, tag: 0 }).unwrap();
        }
        let (mut count, blocks) = (NodeCount::new(), table.deferred.as_ref().unwrap().blocks.clone());
        let counted = blocks.len();
        let steps = 1 + (0..).take_while(|_| !count.go_on(&blocks, &table.routes)).count();
        while !table.apply_some_updates() {}
        let (nodes, values) = table.trie.nodes.count();
        assert_eq!((1 + count.nodes, steps), (nodes, 1 + counted / 128));
        let room = 1 + count.values;
        assert!((room / 4..=room).contains(&values), "{routes}/{length}: {values} values, room for {room}");
    }
}

#[test]
fn a_large_table_is_copied_for_many_changes_only() {
    for (changes, is_copied) in [(BLOCKS_AT_ONCE as u32, false), (BLOCKS_AT_ONCE as u32 + 1, true)] {
        let prefix = |number: u32| Prefix::new(number.reverse_bits(), 24).unwrap();
        let route = |number: u32| (prefix(number), Entry { hop: number % 2, tag: 0 });
        let mut table = PrefixTable::build((0..40_000).map(route)).unwrap();
        assert!(table.bytes() > LARGE_BYTES, "{} bytes", table.bytes());
        table.defer_updates();
        for number in 0..changes {
            table.insert(prefix(number), Entry { hop: 9, tag: 0 }).unwrap();
        }
        assert_eq!(table.apply_some_updates(), !is_copied, "{changes} changes");
        while !table.apply_some_updates() {}
        assert_eq!(table.lookup((changes - 1).reverse_bits()), Some(9));
    }
}

#[test]
fn changes_without_memory_for_a_copy_are_made_in_steps() {
    const CHANGES: u32 = 3_000;
    let prefix = |number: u32| Prefix::new(number.reverse_bits(), 24).unwrap();
    let mut table = settled(1_000, 2);
    assert!(matches!(table.form, Form::Flat(_)));
    table.defer_updates();
    for number in 0..CHANGES {
        table.insert(prefix(number), Entry { hop: 9, tag: 0 }).unwrap();
    }
    let changed = |table: &PrefixTable<u32>| {
        (0..CHANGES).filter(|number| table.lookup(number.reverse_bits()) == Some(9)).count()
    };
    // More nodes than any memory has.
    let mut count = NodeCount::new();
    count.nodes = usize::MAX / 64;
    table.deferred.as_mut().unwrap().next = Next::Counting(count);
    let (mut before, mut steps) = (0, 0);
    while !table.apply_some_updates() {
        let now = changed(&table);
        assert!(now - before <= LEVELS_A_STEP, "{before} and then {now}");
        (before, steps) = (now, steps + 1);
        if steps == 60 {
            assert!(matches!(table.deferred.as_ref().unwrap().next, Next::InPlace));
            table.insert(Prefix::new(0, 0).unwrap(), Entry { hop: 4, tag: 0 }).unwrap();
        }
    }
    assert_eq!(changed(&table), CHANGES as usize);
    assert_eq!((table.lookup(u32::MAX), table.is_deferring()), (Some(4), false));
    let mut hops = [0; 2];
    table.lookup_batch(&[1_u32.reverse_bits(), u32::MAX], &mut hops);
    assert_eq!(hops, [9, 4]);
}

#[test]
fn tables_of_medium_size_get_a_flat_form() {
    let is_flat = |table: PrefixTable<u32>| matches!(table.form, Form::Flat(_));
    assert!(is_flat(settled(1_000, 1_000)));
    // 8,200 blocks of 512 bytes are more than 4 MB.
    assert!(!is_flat(settled(8_200, 2)));
    assert!(!is_flat(settled(FLAT_ROUTES as u32 - 1, 2)));
    let mut table = settled(1_000, 1);
    table.insert(Prefix::new(0, 8).unwrap(), Entry { hop: 3, tag: 0 }).unwrap();
    assert!(matches!(table.form, Form::Changed(FLAT_LOOKUPS)), "a change ends the flat form");
    table.defer_updates();
    table.insert(Prefix::new(0, 32).unwrap(), Entry { hop: 5, tag: 0 }).unwrap();
    let mut hops = [0; 256];
    for _ in 0..1_000 {
        table.lookup_batch(&[0; 256], &mut hops);
    }
    assert_eq!((hops[0], is_flat(table.clone())), (0, false), "deferred changes stay unseen");
    table.apply_updates();
    for _ in 0..1_000 {
        table.lookup_batch(&[0; 256], &mut hops);
    }
    assert_eq!((hops[0], is_flat(table)), (5, true));
    // Hops do not fit in 15 bits.
    let mut table = settled(1_000, 1);
    table.insert(Prefix::new(7, 32).unwrap(), Entry { hop: 32_767, tag: 0 }).unwrap();
    for _ in 0..1_000 {
        table.lookup_batch(&[7; 256], &mut hops);
    }
    assert!(matches!(table.form, Form::Trie) && hops[255] == 32_767);
}

#[test]
fn ip4_changes_agree_with_a_linear_search() {
    check_changes(|random| random.next() as u32 & 0x8101_0303);
    check_changes(|random| random.next() as u32);
}

#[test]
fn ip6_changes_agree_with_a_linear_search() {
    check_changes(|random| {
        let high = u128::from(random.next() & 0x2001_0000_0001_0101) << 64;
        high | u128::from(random.next() & 0x8000_0000_0100_0001)
    });
}

#[test]
fn hops_have_a_limit() {
    let mut table = PrefixTable::new();
    let prefix = Prefix::new(0x0a00_0000u32, 8).unwrap();
    assert_eq!(table.insert(prefix, Entry { hop: MAX_HOP + 1, tag: 0 }), Err(NextHopTooLarge));
    assert_eq!(table.insert(prefix, Entry { hop: MAX_HOP, tag: 0 }), Ok(None));
    assert_eq!(table.lookup(0x0a01_0203), Some(MAX_HOP));
    assert_eq!(table.lookup(0x0b01_0203), None);
}
