//! The flows of the traffic, and their frequencies.

use std::collections::HashSet;

use super::frame::{TCP, UDP};
use random::Random;

/// The number of servers.
const SERVERS: usize = 2_000;

/// Protocol, port and weight in percent of the servers' services. The remaining percent use other ports.
const SERVICES: [(u8, u16, u64); 12] = [
    (TCP, 443, 42),
    (TCP, 80, 14),
    (UDP, 53, 12),
    (UDP, 443, 8),
    (TCP, 22, 3),
    (TCP, 25, 3),
    (UDP, 123, 3),
    (TCP, 8080, 3),
    (TCP, 3306, 2),
    (TCP, 23, 1),
    (TCP, 445, 1),
    (UDP, 137, 1),
];

/// The 5-tuple of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    /// IPv4 address of the client.
    pub(crate) source: u32,
    /// IPv4 address of the server.
    pub(crate) destination: u32,
    /// Port of the client.
    pub(crate) source_port: u16,
    /// Port of the server.
    pub(crate) destination_port: u16,
    /// TCP or UDP; for other protocols the ports are zero.
    pub(crate) protocol: u8,
}

/// Generates `count` distinct flows from clients in 10.0.0.0/8 to servers: 70 % on the Internet, the others in
/// 10.0.0.0/8 and 172.16.0.0/12.
pub(crate) fn generate_flows(count: usize, random: &mut Random) -> Vec<Flow> {
    let networks: Vec<u32> = (0..200).map(|_| public_network(random)).collect();
    let servers: Vec<(u32, u8, u16)> = (0..SERVERS)
        .map(|_| {
            let host = random.below_u64(1 << 16) as u32;
            let address = match random.below_u64(10) {
                0..7 => networks[random.below_u64(networks.len() as u64) as usize] | host,
                7..9 => 0x0a40_0000 | (random.below_u64(64) as u32) << 16 | host,
                _ => 0xac10_0000 | (random.below_u64(16) as u32) << 16 | host,
            };
            let (protocol, port) = service(random);
            (address, protocol, port)
        })
        .collect();
    let mut known = HashSet::with_capacity(count);
    let mut flows = Vec::with_capacity(count);
    while flows.len() < count {
        // A few servers are popular: lower indices are more frequent.
        let bound = random.below_u64(SERVERS as u64) + 1;
        let (destination, protocol, destination_port) = servers[random.below_u64(bound) as usize];
        let source = 0x0a00_0000
            | (random.below_u64(16) as u32) << 16
            | (random.below_u64(256) as u32) << 8
            | random.between(1, 254) as u32;
        let source_port = random.between(1_024, 65_535) as u16;
        let flow = Flow { source, destination, source_port, destination_port, protocol };
        if known.insert(flow) {
            flows.push(flow);
        }
    }
    flows
}

/// A /16 network that is neither private nor reserved.
fn public_network(random: &mut Random) -> u32 {
    loop {
        let network = (random.between(1, 223) as u32) << 24 | (random.below_u64(256) as u32) << 16;
        let reserved = matches!(network >> 24, 10 | 127 | 169 | 172 | 192 | 198 | 203 | 100);
        if !reserved {
            return network;
        }
    }
}

fn service(random: &mut Random) -> (u8, u16) {
    let mut left = random.below_u64(100);
    for (protocol, port, weight) in SERVICES {
        if left < weight {
            return (protocol, port);
        }
        left -= weight;
    }
    let protocol = if random.below_u64(2) == 0 { TCP } else { UDP };
    (protocol, random.between(1_024, 65_535) as u16)
}

/// Draws flows by Zipf's law: the flow of rank n has weight 1/n.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Cumulative weights by rank.
    sums: Vec<f64>,
}

impl Zipf {
    /// Ranks from 0 to `count` - 1; at least one.
    pub(crate) fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let weights = (1..=count.max(1)).map(|rank| 1.0 / rank as f64);
        Self {
            sums: weights
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect(),
        }
    }

    /// The next rank.
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        // An `f64` mantissa holds 53 bits.
        let share = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let wanted = share * self.sums.last().copied().unwrap_or_default();
        self.sums.partition_point(|sum| *sum <= wanted).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_distinct_and_reproducible() {
        let flows = generate_flows(5_000, &mut Random::new(7));
        assert_eq!(flows.iter().collect::<HashSet<_>>().len(), 5_000);
        assert_eq!(flows, generate_flows(5_000, &mut Random::new(7)));
        assert_ne!(flows, generate_flows(5_000, &mut Random::new(8)));
    }

    #[test]
    fn ranks_follow_zipfs_law() {
        let (zipf, mut random) = (Zipf::new(1_000), Random::new(1));
        let mut counts = vec![0u32; 1_000];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut random)] += 1;
        }
        // The sum of 1/n up to 1,000 is 7.485.
        assert!((12_900..13_900).contains(&counts[0]), "{}", counts[0]);
        let ten: u32 = counts[..10].iter().sum();
        assert!((38_100..40_100).contains(&ten), "{ten}");
        assert!(counts.iter().filter(|count| **count > 0).count() > 980);
    }
}
