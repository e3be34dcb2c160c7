//! Time to copy a box, and from the wish for a copy to its first packet mirrored.
//!
//! `cargo run --release -p sandbox --example copy -- machine|process [COUNT]`

use boundary::Slots;
use boundary::limits::BUFFER_SIZE;
use sandbox::{Host, Place, PortSettings, Sandbox, Settings, Worker};
use std::error::Error;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let count: usize = arguments.next().map_or(Ok(100), |count| count.parse())?;
    let host = Host::new(image::PROBE)?;
    let worker = Worker::start()?;
    let place = if machine { Place::Machine(&worker) } else { Place::Process };
    let port = PortSettings { slots: Slots::new(64)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let settings = Settings { ports: vec![port], ..Settings::new(8 << 20) };
    let mut original = host.create(place, &settings)?;
    original.start()?;
    original.install("", "mirror", PATIENCE)?;
    while original.event()?.is_none() {}
    let begin = Instant::now();
    let snapshot = loop {
        match original.snapshot() {
            Ok(snapshot) => break snapshot,
            Err(_) if begin.elapsed() < PATIENCE => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    };
    println!("snapshot of {} KB in {:?}", snapshot.size() / 1024, begin.elapsed());
    let (mut copies, mut times) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let begin = Instant::now();
        let mut copy = host.restore(place, &snapshot, &settings)?;
        copy.start()?;
        mirror_one(&mut copy)?;
        times.push(begin.elapsed());
        copies.push(copy);
    }
    times.sort_unstable();
    println!("first packet: min {:?} p50 {:?} p99 {:?}", times[0], times[count / 2], times[count * 99 / 100]);
    Ok(())
}

fn mirror_one(sandbox: &mut Sandbox) -> Result<(), Box<dyn Error>> {
    let mut port = sandbox.take_port(0).ok_or("no port")?;
    port.send(&[0; 60])?;
    if port.publish() {
        sandbox.doorbell().ring();
    }
    while port.available(1)? == 0 {
        std::hint::spin_loop();
    }
    port.receive(&mut [0; BUFFER_SIZE])?;
    Ok(())
}
