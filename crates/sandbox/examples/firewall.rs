//! Time from the wish for a box with a firewall of ten rules to its first packet, and the memory that it takes.
//!
//! `cargo run --release -p sandbox --example firewall -- machine|process [COUNT]`

use boundary::limits::BUFFER_SIZE;
use boundary::{Request, Slots, Stats};
use sandbox::{Host, Place, PortSettings, Sandbox, Settings, Worker};
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

const FIREWALL: &str = "FromDevice(0) -> Strip(14) -> CheckIPHeader
    -> rules :: IPFilter(
        deny src net 127.0.0.0/8 or src net 224.0.0.0/4,
        deny src net 192.0.2.0/24,
        deny dst net 172.16.0.0/12,
        deny ip frag,
        deny tcp and dst port 23,
        deny tcp and dst port 445,
        allow tcp and dst host 192.0.2.9 and dst port 443,
        deny udp and dst port 137,
        allow udp and dst port 53,
        deny all)
    -> Unstrip(14) -> out :: Counter -> ToDevice(1);
rules [1] -> denied :: Counter -> Discard;";

/// A frame that the firewall lets pass: UDP to port 53.
const FRAME: [u8; 64] = {
    let start = [
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0x32, 0, 1, 0, 0, 0x40, 0x11, 0xac, 0xad, 10,
        1, 2, 3, 0xc0, 0, 2, 9, 0x9c, 0x40, 0, 0x35, 0, 0x1e, 0, 0,
    ];
    let mut frame = [0; 64];
    let mut at = 0;
    while at < start.len() {
        frame[at] = start[at];
        at += 1;
    }
    frame
};

const NAMES: [&str; 5] = ["created", "started", "ready", "installed", "first packet"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let count: usize = arguments.next().map_or(Ok(100), |count| count.parse())?;
    let host = Host::new(image::CLICKBOX)?;
    let worker = Worker::start()?;
    let place = if machine { Place::Machine(&worker) } else { Place::Process };
    let port = PortSettings { slots: Slots::new(64)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let settings = Settings { ports: vec![port; 2], ..Settings::new(8 << 20) };
    println!("image: {} KB", image::CLICKBOX.len() / 1024);
    let (mut boxes, mut all) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (sandbox, steps) = start(&host, place, &settings)?;
        boxes.push(sandbox);
        all.push(steps);
    }
    for (step, name) in NAMES.into_iter().enumerate() {
        let mut times: Vec<Duration> = all.iter().map(|steps| steps[step]).collect();
        times.sort_unstable();
        let at = |share: usize| times[(count * share / 100).min(count - 1)];
        println!("{name:>13}: min {:?} p50 {:?} p99 {:?}", at(0), at(50), at(99));
    }
    if let Some(sandbox) = boxes.first_mut() {
        let stats = Stats::decode(&sandbox.call(&Request::Stats, PATIENCE)?)?;
        println!("heap: {} KB, at most {} KB", stats.heap_used / 1024, stats.heap_peak / 1024);
        println!("private: {} KB", sandbox.private_memory()? / 1024);
    }
    Ok(())
}

fn start(host: &Host, place: Place, settings: &Settings) -> Result<(Sandbox, [Duration; 5]), Box<dyn Error>> {
    let begin = Instant::now();
    let mut sandbox = host.create(place, settings)?;
    let created = begin.elapsed();
    sandbox.start()?;
    let started = begin.elapsed();
    while !sandbox.is_ready() {
        std::hint::spin_loop();
    }
    let ready = begin.elapsed();
    sandbox.install("", FIREWALL, PATIENCE)?;
    let installed = begin.elapsed();
    let (mut to, mut from) = (sandbox.take_port(0).ok_or("no port")?, sandbox.take_port(1).ok_or("no port")?);
    to.send(&FRAME)?;
    if to.publish() {
        sandbox.doorbell().ring();
    }
    while from.available(1)? == 0 {
        std::hint::spin_loop();
    }
    from.receive(&mut [0; BUFFER_SIZE])?;
    Ok((sandbox, [created, started, ready, installed, begin.elapsed()]))
}
