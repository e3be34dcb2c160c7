//! Packets a second through one box, and through many on one worker.
//!
//! `cargo run --release -p sandbox --example io -- machine|process [mirror|send|drop] [BYTES] [SLOTS] [BOXES]`
//!
//! The host's side runs in this thread on core 0, workers and processes on core 1.

use boundary::Slots;
use boundary::limits::BUFFER_SIZE;
use sandbox::{Doorbell, Host, HostPort, Place, PortSettings, Settings, Worker};
use std::error::Error;
use std::time::{Duration, Instant};

const RUN: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(5);

struct Line {
    port: HostPort,
    doorbell: Doorbell,
    sent: u64,
    received: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let mode = arguments.next().unwrap_or_else(|| "mirror".into());
    let mut number = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (bytes, slots, count) = (number(64)?, number(1024)?, number(1)?);
    let host = Host::new(image::PROBE)?;
    pin(1);
    let worker = Worker::start()?;
    pin(0);
    let place = if machine { Place::Machine(&worker) } else { Place::Process };
    let port = PortSettings { slots: Slots::new(slots as u32)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let settings = Settings { ports: vec![port], quantum: slots as u32, ..Settings::new(1 << 20) };
    let command = if mode == "send" { format!("send {bytes}") } else { mode.clone() };
    let (mut boxes, mut lines) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut sandbox = host.create(place, &settings)?;
        sandbox.start()?;
        if let Some(pid) = sandbox.process_id() {
            pin_process(pid, 1);
        }
        sandbox.install("", &command, PATIENCE)?;
        let port = sandbox.take_port(0).ok_or("no port")?;
        lines.push(Line { port, doorbell: sandbox.doorbell(), sent: 0, received: 0 });
        boxes.push(sandbox);
    }
    let packet = vec![7; bytes];
    run(&mut lines, &packet, &mode, WARM_UP)?;
    let before: Vec<u64> = lines.iter().map(|line| line.moved(&mode)).collect();
    let took = run(&mut lines, &packet, &mode, RUN)?;
    let rates: Vec<f64> = lines
        .iter()
        .zip(before)
        .map(|(line, before)| (line.moved(&mode) - before) as f64 / took.as_secs_f64() / 1e6)
        .collect();
    let sum: f64 = rates.iter().sum();
    let mean = sum / count as f64;
    let spread = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count as f64).sqrt() / mean;
    println!(
        "{mode} {bytes} B, {slots} slots, {count} boxes: {sum:.2} Mp/s, {:.1} Gb/s, spread {:.2} %",
        sum * bytes as f64 * 8.0 / 1e3,
        spread * 100.0
    );
    Ok(())
}

impl Line {
    fn moved(&self, mode: &str) -> u64 {
        if mode == "drop" { self.sent } else { self.received }
    }

    fn visit(
        &mut self,
        packet: &[u8],
        sends: bool,
        buffer: &mut [u8; BUFFER_SIZE],
    ) -> Result<(), Box<dyn Error>> {
        let mut ring = false;
        if sends {
            let room = self.port.room(2048)?;
            for _ in 0..room {
                self.sent += u64::from(self.port.send(packet)?);
            }
            ring |= self.port.publish();
        }
        for _ in 0..self.port.available(2048)? {
            self.received += u64::from(self.port.receive(buffer)?.is_some());
        }
        ring |= self.port.release();
        if ring {
            self.doorbell.ring();
        }
        Ok(())
    }
}

fn run(lines: &mut [Line], packet: &[u8], mode: &str, time: Duration) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let mut buffer = [0; BUFFER_SIZE];
    while start.elapsed() < time {
        for _ in 0..64 / lines.len() + 1 {
            for line in &mut *lines {
                line.visit(packet, mode != "send", &mut buffer)?;
            }
        }
    }
    Ok(start.elapsed())
}

fn pin(core: usize) {
    pin_process(0, core);
}

fn pin_process(pid: i32, core: usize) {
    // SAFETY: an all-zero set is empty, and is written only by these calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(pid, size_of_val(&set), &set);
    }
}
