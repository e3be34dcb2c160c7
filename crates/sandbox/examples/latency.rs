//! One packet's way through a box and back, and one handler's, idle each time.
//!
//! `cargo run --release -p sandbox --example latency -- machine|process [mirror|busy]`

use boundary::limits::BUFFER_SIZE;
use boundary::{Request, Slots};
use sandbox::{Host, Place, PortSettings, Settings, Worker};
use std::error::Error;
use std::time::{Duration, Instant};

const ROUNDS: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let command = arguments.next().unwrap_or_else(|| "mirror".into());
    let host = Host::new(image::PROBE)?;
    let worker = Worker::start()?;
    let place = if machine { Place::Machine(&worker) } else { Place::Process };
    let port = PortSettings { slots: Slots::new(256)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let mut sandbox = host.create(place, &Settings { ports: vec![port], ..Settings::new(1 << 20) })?;
    sandbox.start()?;
    sandbox.install("", &command, PATIENCE)?;
    let mut port = sandbox.take_port(0).ok_or("no port")?;
    let doorbell = sandbox.doorbell();
    let packet = report("packet", || {
        port.room(1)?;
        port.send(&[0; 60])?;
        if port.publish() {
            doorbell.ring();
        }
        while port.available(1)? == 0 {
            std::hint::spin_loop();
        }
        port.receive(&mut [0; BUFFER_SIZE])?;
        port.release();
        Ok(())
    });
    packet?;
    for size in [1, 4096, 65_536] {
        let value = vec![1; size];
        let write = Request::Write { name: "", handler: "value", value: &value };
        report(&format!("write {size} B"), || Ok(sandbox.call(&write, PATIENCE).map(drop)?))?;
        let read = Request::Read { name: "", handler: "value", argument: b"" };
        report(&format!("read {size} B"), || Ok(sandbox.call(&read, PATIENCE).map(drop)?))?;
    }
    Ok(())
}

fn report(name: &str, mut round: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round()?;
        times.push(start.elapsed());
        // Long enough for the box to go to sleep.
        std::thread::sleep(Duration::from_micros(100));
    }
    times.sort_unstable();
    println!("{name:>14}: min {:?} p50 {:?} p99 {:?}", times[0], times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    Ok(())
}
