//! Which thread a frame belongs to.

use flow_table::{Ingress, Key};
use packet::socket_filter::Mix;

/// The step for each word of an end.
pub(super) const WORD_MIX: Mix = Mix(0x9e37_79b1, 15, 0x85eb_ca77);
/// The step for the sum of both ends.
pub(super) const SUM_MIX: Mix = Mix(0xc2b2_ae3d, 16, 0x27d4_eb2f);

/// How the frames of a switch are spread over its threads. Linux can compute it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The number of threads.
    pub(super) count: u32,
    /// Secret: a sender who knew it could choose frames that one thread has to handle.
    pub(super) seed: [u32; 2],
}

impl Spread {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        Self { count: u32::try_from(count).unwrap_or(u32::MAX), seed: [seed as u32, (seed >> 32) as u32] }
    }

    /// The thread that handles the frame with these first bytes: the same for both directions of a flow, for the errors about
    /// it, and for all fragments between two addresses. The bytes must be as many as [`Key::needs_more`] asks for.
    pub(crate) fn thread_of(&self, head: &[u8]) -> usize {
        let mut key = Key::default();
        key.read(head, &Ingress::default());
        let [first, last] = self.seed;
        let sum = key.flow_words(head).ends().fold(0u32, |sum, (address, port)| {
            let words = address.iter().copied().chain([u32::from(port)]);
            sum.wrapping_add(words.fold(first, |state, word| WORD_MIX.apply(state ^ word)))
        });
        // The upper half, so that 32 bits are enough for the product.
        (((SUM_MIX.apply(sum ^ last) >> 16) * self.count) >> 16) as usize
    }
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

    /// Addresses and ports.
    type Flow = ([u32; 2], [u16; 2]);

    /// The flows that each thread gets.
    fn counts(count: usize, seed: u64, flows: impl Iterator<Item = Flow>) -> Vec<usize> {
        let (spread, mut found) = (Spread::new(count, seed), vec![0; count]);
        for (ends, ports) in flows {
            let thread = spread.thread_of(&packet(ends, ports, 0));
            let back = packet([ends[1], ends[0]], [ports[1], ports[0]], 0);
            assert_eq!(spread.thread_of(&back), thread);
            found[thread] += 1;
        }
        found
    }

    #[test]
    fn both_directions_of_many_flows_are_spread_evenly() {
        const FLOWS: u32 = 60_000;
        let mut random = Random::new(1);
        for count in [2usize, 3, 8] {
            let flows =
                (0..FLOWS).map(|_| ([random.next() as u32, 7], [random.next() as u16, random.next() as u16]));
            let found = counts(count, 99, flows);
            let fair = FLOWS as usize / count;
            assert!(found.iter().all(|flows| flows.abs_diff(fair) < fair / 20), "{found:?}");
        }
    }

    /// A scan of ports, one of addresses, clients with successive addresses and ports, and flows within a network.
    #[test]
    fn regular_flows_are_spread_evenly() {
        const FLOWS: u32 = 6_000;
        let net = 0x0a00_0000;
        let patterns: [&dyn Fn(u32) -> Flow; 6] = [
            &|at| ([net + 1, net + 2], [40_000, at as u16]),
            &|at| ([net + 1, net + at], [40_000, 443]),
            &|at| ([net + 1, net + (at << 16)], [40_000, 443]),
            &|at| ([net + at, 0x0808_0808], [32_768 + at as u16, 53]),
            &|at| ([net + at % 77, net + 256 + at / 77], [5_000, 5_000]),
            &|at| ([net + 1, net + 2], [2 * at as u16, 2 * at as u16]),
        ];
        for (number, pattern) in patterns.into_iter().enumerate() {
            for count in [2usize, 3, 8] {
                for seed in [0, 0x1234_5678_9abc_def0, u64::MAX] {
                    let found = counts(count, seed, (0..FLOWS).map(pattern));
                    let fair = FLOWS as usize / count;
                    let allowed = fair / 5;
                    assert!(
                        found.iter().all(|flows| flows.abs_diff(fair) < allowed),
                        "pattern {number}: {found:?}"
                    );
                }
            }
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
            let threads = [&first, &last, &back].map(|frame| Spread::new(4, 5).thread_of(frame));
            assert_eq!(threads, [threads[0]; 3]);
            elsewhere += usize::from(Spread::new(4, 6).thread_of(&first) != threads[0]);
        }
        assert!(elsewhere > 300, "the seed does not matter");
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let frame: Vec<u8> = (0..random.below(80)).map(|_| random.next() as u8).collect();
            assert!(Spread::new(3, 1).thread_of(&frame) < 3);
        }
    }
}
