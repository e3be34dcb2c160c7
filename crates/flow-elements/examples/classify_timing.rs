//! Prints what a packet costs in compiled filters of growing size: nanoseconds, memory and time to compile.

use std::hint::black_box;
use std::time::Instant;

use classify::{Columns, Headers, Layout, NoNames, Program, filter_rules};
use random::Random;

/// Rules as firewalls have them: hosts, networks, ports and protocols, and at the end everything else.
fn firewall(count: usize, random: &mut Random) -> Vec<String> {
    let mut next = |limit| random.below(limit);
    let mut rules: Vec<String> = (1..count)
        .map(|_| {
            let host = format!("{}.{}.{}.{}", 1 + next(220), next(256), next(256), next(256));
            match next(5) {
                0 => format!("deny src host {host} && tcp && dst port {}", next(65536)),
                1 => format!("deny src net {host}/{} && dst port < {}", 16 + next(9), 1 + next(65535)),
                2 => format!("deny dst host {host} && udp && src port {}", next(65536)),
                3 => format!("deny dst net {host}/24 && proto tcp && syn"),
                _ => format!("deny src {host} && dst {}.{}.0.0/16", 1 + next(220), next(256)),
            }
        })
        .collect();
    rules.push("allow all".into());
    rules
}

fn udp(random: &mut Random) -> [u8; 46] {
    let mut bytes = [0; 46];
    bytes[0] = 0x45;
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&random.next().to_be_bytes());
    bytes[20..24].copy_from_slice(&(random.next() as u32).to_be_bytes());
    bytes
}

fn main() {
    println!(
        "{:>7} {:>12} {:>12} {:>11} {:>9}  structure",
        "rules", "same ns", "random ns", "compile ms", "KiB"
    );
    for count in [10, 100, 1000, 10_000] {
        let texts = firewall(count, &mut Random::new(1));
        let start = Instant::now();
        let (rules, _) = filter_rules(&texts, 1, &NoNames);
        let program = Program::new(rules, Layout::Ip);
        let compile = start.elapsed().as_secs_f64() * 1e3;
        let mut random = Random::new(2);
        let packets: Vec<_> = (0..4096).map(|_| udp(&mut random)).collect();
        let mut columns = Columns::default();
        let mut time = |packets: &[[u8; 46]]| {
            let mut run = || {
                let start = Instant::now();
                for _ in 0..100 {
                    for batch in black_box(packets).chunks(32) {
                        black_box(program.decide(&mut columns, batch, |packet| Headers::new(packet, 20)));
                    }
                }
                start.elapsed().as_secs_f64() * 1e9 / (100 * packets.len()) as f64
            };
            (0..15).map(|_| run()).fold(f64::INFINITY, f64::min)
        };
        let (same, random) = (time(&[packets[0]; 4096]), time(&packets));
        let summary = program.summary();
        println!(
            "{count:>7} {same:>12.1} {random:>12.1} {compile:>11.2} {:>9}  {:?}, {} fields, {} classes, {} terms",
            summary.bytes / 1024,
            summary.strategy,
            summary.fields,
            summary.classes,
            summary.terms
        );
    }
}
