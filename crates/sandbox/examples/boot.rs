//! Time from the wish for a box to its first packet mirrored.
//!
//! `cargo run --release -p sandbox --example boot -- machine|process [COUNT]`

use boundary::Slots;
use boundary::limits::BUFFER_SIZE;
use sandbox::{Host, Place, PortSettings, Sandbox, Settings, Worker};
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

/// The moments of one start, each since the wish.
struct Steps([Duration; 4]);

const NAMES: [&str; 4] = ["created", "started", "installed", "first packet"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let count: usize = arguments.next().map_or(Ok(100), |count| count.parse())?;
    let host = Host::new(image::PROBE)?;
    let worker = Worker::start()?;
    let place = if machine { Place::Machine(&worker) } else { Place::Process };
    let port = PortSettings { slots: Slots::new(64)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let settings = Settings { ports: vec![port], ..Settings::new(8 << 20) };
    let mut boxes = Vec::new();
    let mut all = Vec::new();
    for _ in 0..count {
        let (sandbox, steps) = start(&host, place, &settings)?;
        boxes.push(sandbox);
        all.push(steps);
    }
    for (step, name) in NAMES.into_iter().enumerate() {
        let mut times: Vec<Duration> = all.iter().map(|steps| steps.0[step]).collect();
        let (first, last) = (times[0], times[count - 1]);
        times.sort_unstable();
        let at = |share: usize| times[(count * share / 100).min(count - 1)];
        println!(
            "{name:>13}: p50 {:?} p99 {:?} max {:?} first {first:?} last {last:?}",
            at(50),
            at(99),
            at(100)
        );
    }
    let begin = Instant::now();
    drop(boxes);
    println!("      removed: {:?} each", begin.elapsed() / count as u32);
    Ok(())
}

fn start(host: &Host, place: Place, settings: &Settings) -> Result<(Sandbox, Steps), Box<dyn Error>> {
    let begin = Instant::now();
    let mut steps = Steps([Duration::ZERO; 4]);
    let mut sandbox = host.create(place, settings)?;
    steps.0[0] = begin.elapsed();
    sandbox.start()?;
    steps.0[1] = begin.elapsed();
    sandbox.install("", "mirror", PATIENCE)?;
    steps.0[2] = begin.elapsed();
    let mut port = sandbox.take_port(0).ok_or("no port")?;
    port.send(&[0; 60])?;
    if port.publish() {
        sandbox.doorbell().ring();
    }
    while port.available(1)? == 0 {
        std::hint::spin_loop();
    }
    port.receive(&mut [0; BUFFER_SIZE])?;
    steps.0[3] = begin.elapsed();
    Ok((sandbox, steps))
}
