//! Which thread a frame belongs to.

use flow_table::{Field, Ingress, Key};

/// The thread of `count` that handles the frame with these first bytes: the same for both directions of a flow, for the
/// errors about it, and for all fragments between two addresses. `seed` is secret: a sender who knew it could choose frames
/// that one thread has to handle. The bytes must be as many as [`Key::needs_more`] asks for.
pub(crate) fn thread_of(head: &[u8], count: usize, seed: u64) -> usize {
    let mut key = Key::default();
    let hash = match key.read(head, &Ingress::default()) {
        // Only the first fragment has ports, so none of them counts.
        Some(_) => hash_of_addresses(&key, seed),
        None => key.flow_tuple(head, seed).hash,
    };
    ((u128::from(mix(hash)) * count as u128) >> 64) as usize
}

#[cold]
fn hash_of_addresses(key: &Key, seed: u64) -> u64 {
    let ends = [Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst].map(|field| key.get(field));
    let hash = |address: u128| mix(mix(address as u64 ^ seed) ^ (address >> 64) as u64);
    ends.into_iter().flatten().fold(seed, |sum, address| sum.wrapping_add(hash(address)))
}

fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Random;

    /// A UDP packet over IPv4, with these bits of fragmentation.
    fn packet([source, destination]: [u32; 2], ports: [u16; 2], fragment: u16) -> Vec<u8> {
        let mut frame = vec![0; 64];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&50u16.to_be_bytes());
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        (frame[22], frame[23]) = (64, 17);
        frame[26..30].copy_from_slice(&source.to_be_bytes());
        frame[30..34].copy_from_slice(&destination.to_be_bytes());
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame
    }

    #[test]
    fn both_directions_of_many_flows_are_spread_evenly() {
        for count in [1usize, 2, 3, 8] {
            let (mut random, mut found) = (Random::new(1), vec![0usize; count]);
            for _ in 0..8_000 {
                let (ends, ports) = ([random.next() as u32, 7], [random.next() as u16, random.next() as u16]);
                let thread = thread_of(&packet(ends, ports, 0), count, 99);
                let back = packet([ends[1], ends[0]], [ports[1], ports[0]], 0);
                assert_eq!(thread_of(&back, count, 99), thread);
                found[thread] += 1;
            }
            let (least, most) = (found.iter().min().unwrap(), found.iter().max().unwrap());
            assert!(most - least < 8_000 / count / 5, "{found:?}");
        }
    }

    #[test]
    fn fragments_go_by_their_addresses() {
        let mut random = Random::new(2);
        let mut elsewhere = 0;
        for _ in 0..500 {
            let ends = [random.next() as u32, random.next() as u32];
            // The first one has ports, the last one has none at this place.
            let first = packet(ends, [random.next() as u16, 80], 0x2000);
            let last = packet(ends, [random.next() as u16, random.next() as u16], 0x00b9);
            let back = packet([ends[1], ends[0]], [80, 9], 0x2000);
            let threads = [&first, &last, &back].map(|frame| thread_of(frame, 4, 5));
            assert_eq!(threads, [threads[0]; 3]);
            elsewhere += usize::from(thread_of(&first, 4, 6) != threads[0]);
        }
        assert!(elsewhere > 300, "the seed does not matter");
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let frame: Vec<u8> = (0..random.below(80)).map(|_| random.next() as u8).collect();
            assert!(thread_of(&frame, 3, 1) < 3);
        }
    }
}
