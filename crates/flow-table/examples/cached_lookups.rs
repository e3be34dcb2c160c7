//! Measures lookups through the cache: `cargo run --release -p flow-table --example cached_lookups [FLOWS...]`.

use std::time::Duration;

use flow_table::{
    Arrival, BATCH, CacheCapacity, Change, Command, Field, FlowCache, Ingress, Instructions, Limits, Match,
    Output, Pipeline, Seed,
};
use random::Random;

const RULES: u64 = 1_000;
const PACKETS: usize = 1 << 20;
const RING: usize = 4_096;
const REPETITIONS: usize = 15;

fn frame(flow: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..30].copy_from_slice(&(0x0a00_0000 + flow).to_be_bytes());
    frame[30..34].copy_from_slice(&(0xc0a8_0000 + flow % 7_919).to_be_bytes());
    frame[34..38].copy_from_slice(&[(flow >> 3) as u8, flow as u8, 0, 80]);
    frame
}

fn pipeline(random: &mut Random) -> Pipeline {
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let udp = Match::any().with(Field::EthType, 0x0800).unwrap().with(Field::IpProto, 17).unwrap();
    for rule in 0..RULES {
        let bits = random.between(16, 32);
        let mask = u128::from(u32::MAX << (32 - bits));
        let net = (0xc0a8_0000 | u128::from(random.below(7_919))) & mask;
        let matching = udp.with_masked(Field::Ipv4Dst, net, mask).unwrap();
        let mut change = Change::new(Command::Add, matching, bits as u16);
        change.instructions = Instructions::output(Output::Port(rule as u32));
        pipeline.apply(&change, Duration::ZERO).unwrap();
    }
    pipeline.apply(&Change::new(Command::Add, Match::any(), 0), Duration::ZERO).unwrap();
    pipeline
}

fn main() {
    let mut sizes: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000, 60_000, 1_000_000];
    }
    for flows in sizes {
        let mut random = Random::new(7);
        let mut pipeline = pipeline(&mut random);
        let capacity = CacheCapacity { ip4: (flows as usize).next_power_of_two(), other: 1 << 10 };
        let mut cache = FlowCache::new(capacity, Seed::new(3, 4));
        let frames: Vec<[u8; 60]> = (0..flows).map(frame).collect();
        let start = processor_time();
        let mut batch = vec![Arrival::default(); BATCH];
        for chunk in frames.chunks(BATCH) {
            for (frame, place) in chunk.iter().zip(&mut batch) {
                read(place, frame);
            }
            cache.look_up(&mut pipeline, &batch[..chunk.len()], Duration::ZERO);
        }
        let insertion = (processor_time() - start) as f64 / f64::from(flows);

        let (mut extract, mut gather, mut whole, mut sum) = (f64::MAX, f64::MAX, f64::MAX, 0);
        for _ in 0..REPETITIONS {
            // Frames in a ring, as in the buffers of a switch; the flows in random order.
            let ring: Vec<[u8; 60]> = (0..RING).map(|_| frames[random.below(flows) as usize]).collect();
            let start = processor_time();
            for chunk in ring.chunks(BATCH).cycle().take(PACKETS / BATCH) {
                for (frame, place) in chunk.iter().zip(&mut batch) {
                    read(place, frame);
                }
                std::hint::black_box(&batch);
            }
            extract = extract.min((processor_time() - start) as f64 / PACKETS as f64);

            let order: Vec<u32> = (0..PACKETS).map(|_| random.below(flows)).collect();
            let timed = |with: &mut dyn FnMut(&[u32])| {
                let start = processor_time();
                order.chunks(BATCH).for_each(with);
                (processor_time() - start) as f64 / PACKETS as f64
            };
            gather = gather.min(timed(&mut |chunk| {
                for (flow, place) in chunk.iter().zip(&mut batch) {
                    read(place, &frame(*flow));
                }
                std::hint::black_box(&batch);
            }));
            whole = whole.min(timed(&mut |chunk| {
                for (flow, place) in chunk.iter().zip(&mut batch) {
                    read(place, &frame(*flow));
                }
                sum += cache.look_up(&mut pipeline, &batch, Duration::from_secs(1)).len();
            }));
        }
        println!(
            "{flows} flows: insertion {insertion:.0} ns, extraction {extract:.1} ns, lookup {:.1} ns, both {:.1} ns; \
             {:?} {sum}",
            whole - gather,
            whole - gather + extract,
            cache.counters()
        );
    }
}

/// Nanoseconds of processor time that this process has used.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap()
}

#[inline(always)]
fn read(place: &mut Arrival, frame: &[u8; 60]) {
    place.key.read(frame, &Ingress { port: 1, ..Ingress::default() });
    place.length = 60;
}
