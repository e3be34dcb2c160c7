//! Boxes in a chain behind switches: packets a second from the sender to the end.
//!
//! `cargo run --release -p switch --example boxes -- machine|process [BYTES] [SLOTS] [LENGTH]`
//!
//! A box sends, LENGTH boxes forward, each over a switch to the next; the last switch ends in a null
//! port, or, when LENGTH is 0, in a box that drops. The switches run in this thread on core 0, machines
//! and processes on core 1.

use boundary::Slots;
use packet::MacAddr;
use sandbox::{Bell, Host, Place, Sandbox, Settings};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::driver::{BoxPort, Null};
use switch::{PortId, PortSettings, StaticTable, Worker};

const PATIENCE: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_millis(200);
const RUN: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().is_none_or(|kind| kind == "machine");
    let mut number = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (bytes, slots, length) = (number(64)?, number(1024)?, number(0)?);
    let host = Host::new(image::PROBE)?;
    pin(1);
    let runner = sandbox::Worker::start()?;
    // Processes are made by a thread of the host's, and stay where it is.
    pin(0);
    let place = if machine { Place::Machine(&runner) } else { Place::Process };
    // All frames are for the address zero, which is behind port 1 of every switch.
    let mut links: Vec<Worker<StaticTable>> = Vec::new();
    for _ in 0..=length {
        let mut table = StaticTable::new();
        table.insert(MacAddr::ZERO, PortId(1))?;
        links.push(Worker::new(table)?);
    }
    let bell = Arc::new(Bell::from(links[0].bell()?));
    let port = sandbox::PortSettings { slots: Slots::new(slots as u32)?, mac: [0; 6], mtu: 1500 };
    let make = |ports: usize, command: &str| -> Result<Sandbox, Box<dyn Error>> {
        let settings = Settings {
            ports: vec![port; ports],
            quantum: slots as u32,
            bell: Some(bell.clone()),
            ..Settings::new(1 << 20)
        };
        let mut sandbox = host.create(place, &settings)?;
        sandbox.start()?;
        sandbox.install("", command, PATIENCE)?;
        if let Some(pid) = sandbox.process_id() {
            pin_process(pid, 1);
        }
        Ok(sandbox)
    };
    let mut boxes = vec![make(1, &format!("send {bytes}"))?];
    attach(&mut links[0], &mut boxes[0], 0)?;
    for hop in 0..length {
        let mut middle = make(2, "forward")?;
        attach(&mut links[hop], &mut middle, 0)?;
        attach(&mut links[hop + 1], &mut middle, 1)?;
        boxes.push(middle);
    }
    match length {
        0 => {
            let mut sink = make(1, "drop")?;
            attach(&mut links[0], &mut sink, 0)?;
            boxes.push(sink);
        }
        _ => {
            // The last switch's port 0 is the last box's; what it sends has the address zero too.
            links[length].add_port(Box::new(Null), PortSettings::default())?;
        }
    }
    let count = |links: &mut [Worker<StaticTable>]| {
        links[length].switch().counters(PortId(1)).map_or(0, |counters| counters.sent_frames)
    };
    run(&mut links, WARM_UP);
    let before = count(&mut links);
    let took = run(&mut links, RUN);
    let rate = (count(&mut links) - before) as f64 / took.as_secs_f64() / 1e6;
    println!(
        "{bytes} B, {slots} slots, {length} hops: {rate:.2} Mp/s, {:.1} Gb/s",
        rate * bytes as f64 * 8.0 / 1e3
    );
    Ok(())
}

fn attach(link: &mut Worker<StaticTable>, sandbox: &mut Sandbox, index: usize) -> Result<(), Box<dyn Error>> {
    let port = sandbox.take_port(index).ok_or("no such port")?;
    let doorbell = sandbox.doorbell();
    link.add_port(Box::new(BoxPort::new(port, move || doorbell.ring())), PortSettings::default())?;
    Ok(())
}

fn run(links: &mut [Worker<StaticTable>], time: Duration) -> Duration {
    let start = Instant::now();
    while start.elapsed() < time {
        for link in &mut *links {
            link.step();
        }
    }
    start.elapsed()
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
