//! Generates the capture for the demo and the tests.
//!
//! The same seed gives the same bytes on every machine. The traffic resembles that of a small network's gateway:
//! complete TCP connections, DNS, other UDP with a few fragments, pings, IPv4 and IPv6; a port scan from outside; and
//! some damaged packets.

mod flow;
mod frame;

use capture::{LinkType, PcapEncoder};
use flow::{Flow, FlowState};
use frame::{Frame, Size};
use packet::Timestamp;
use random::Random;

/// The time of the first packet: 2026-01-01 00:00 UTC.
const START: Timestamp = Timestamp::from_parts(1_767_225_600, 0);
/// Number of concurrent connections.
const CONCURRENT_FLOWS: usize = 40;
/// One in this many packets is damaged, and one in this many belongs to the scan.
const DAMAGED_ONE_IN: u64 = 60;
const SCAN_ONE_IN: u64 = 25;
/// Maximum time between two packets, in nanoseconds.
const MAX_GAP_NS: u64 = 400_000;
/// The share of each size class in thousandths, from a trace of web traffic: 44.3 % of 64 bytes, 18.5 % up to 1,023,
/// 37.2 % up to 1,518, with check sequences.
const SIZE_SHARES: [usize; 3] = [443, 185, 372];

/// Generates a capture of `packets` packets as a pcap file.
pub(crate) fn capture(seed: u64, packets: usize) -> Vec<u8> {
    let encoder = PcapEncoder::new(LinkType::ETHERNET);
    let mut random = Random::new(seed);
    let mut flows: Vec<Flow> = Vec::new();
    let mut counts = [0; 3];
    let mut time = START;
    let mut scanned = 0;
    let mut capture = encoder.file_header().to_vec();
    for number in 0..packets {
        time += Timestamp::from_nanos(1_000 + random.below_u64(MAX_GAP_NS) as i64);
        let mut frame = if random.below_u64(SCAN_ONE_IN) == 0 {
            scanned += 1;
            flow::scan(scanned, &mut random)
        } else {
            while flows.len() < CONCURRENT_FLOWS {
                flows.push(Flow::new(&mut random));
            }
            let index = random.below_u64(flows.len() as u64) as usize;
            let (frame, state) = flows[index].step(next_size(&counts, number), &mut random);
            if state == FlowState::Ended {
                flows.swap_remove(index);
            }
            frame
        };
        if random.below_u64(DAMAGED_ONE_IN) == 0 {
            frame.damage(&mut random);
        }
        let Frame { bytes, original_length } = frame;
        counts[Size::of(original_length) as usize] += 1;
        encoder.record(time.nanos(), original_length as u32, &bytes, &mut capture);
    }
    capture
}

/// The size class that is furthest below its share.
fn next_size(counts: &[usize; 3], number: usize) -> Size {
    let behind = |size: Size| {
        (SIZE_SHARES[size as usize] * (number + 1)) as isize - (counts[size as usize] * 1000) as isize
    };
    [Size::Small, Size::Medium, Size::Large]
        .into_iter()
        .max_by_key(|size| behind(*size))
        .unwrap_or(Size::Small)
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::Parser;

    #[test]
    fn the_same_seed_gives_the_same_capture() {
        assert_eq!(capture(7, 300), capture(7, 300));
        assert_ne!(capture(7, 300), capture(8, 300));
    }

    #[test]
    fn frame_sizes_have_the_documented_shares() {
        let capture = capture(1, 3000);
        let (mut parser, mut unread) = (Parser::new(), capture.as_slice());
        let (mut counts, mut ip6, mut fragments, mut bad) = ([0usize; 3], 0, 0, 0);
        while let Some(record) = parser.record(&mut unread).unwrap() {
            counts[Size::of(record.original_length as usize) as usize] += 1;
            let network = record.bytes.get(14..).unwrap_or(&[]);
            ip6 += usize::from(network.first().is_some_and(|byte| byte >> 4 == 6));
            match packet::Ip4View::check(network, true) {
                Ok(ip) => fragments += usize::from(ip.is_fragment()),
                Err(_) => bad += 1,
            }
        }
        for (count, share) in counts.iter().zip(SIZE_SHARES) {
            assert!(count.abs_diff(share * 3) <= 60, "{counts:?}");
        }
        assert!(ip6 > 100 && fragments > 2 && bad > ip6 + 10, "{ip6} {fragments} {bad}");
    }

    /// The capture in the repository is the generator's output. `clickbox generate` writes it.
    #[test]
    fn the_committed_capture_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");
        let committed = std::fs::read(path).expect("testdata/mix.pcap");
        assert!(committed == capture(1, 2500), "run `clickbox generate testdata/mix.pcap`");
    }
}
