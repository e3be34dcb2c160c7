//! Hundreds of boxes on one switch: the CPU time that they use while idle, and the number of descriptors.
//!
//! This is the only test in its program, because it measures the whole process.

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

use boundary::Slots;
use sandbox::{EventFd, Host, Sandbox, Settings, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switch::driver::BoxPort;
use switch::{LearningBridge, LearningSettings, PortSettings, SwitchRunner};
use test_support::{Capability, require};

const TIMEOUT: Duration = Duration::from_secs(40);

/// Number of boxes: half of them processes and half virtual machines, or all processes where KVM is not available.
const BOXES: usize = 500;

/// Length of the idle period.
const QUIET: Duration = Duration::from_millis(1000);

/// Processor time that this process has used.
fn own_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time to a live variable.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[test]
fn idle_boxes_use_almost_no_cpu_time() {
    let host = Host::new(image::PROBE).unwrap();
    let runner = sandbox::Worker::start().unwrap();
    let machines = require(Capability::Kvm);
    let mut bridge = SwitchRunner::new(LearningBridge::new(LearningSettings::default())).unwrap();
    let wake_event = Arc::new(EventFd::from(bridge.wake_event().unwrap()));
    let port = sandbox::PortSettings { slots: Slots::new(64).unwrap(), mac: [0; 6], mtu: 1500 };
    let settings =
        Settings { ports: vec![port], wake_event: Some(wake_event.clone()), ..Settings::new(1 << 20) };
    let before = descriptors();
    let mut boxes: Vec<Sandbox> = Vec::new();
    for number in 0..BOXES {
        let target = match machines && number % 2 == 0 {
            true => Target::Vm(&runner),
            false => Target::Process,
        };
        let mut sandbox = host.create(target, &settings).unwrap();
        sandbox.start().unwrap();
        sandbox.install("", "mirror", TIMEOUT).unwrap();
        let (port, doorbell) = (sandbox.take_port(0).unwrap(), sandbox.doorbell());
        let driver = BoxPort::new(port, move || doorbell.ring());
        bridge.add_port(Box::new(driver), PortSettings::default()).unwrap();
        boxes.push(sandbox);
    }
    let taken = descriptors() - before;
    assert!(taken <= 3 * BOXES, "{taken} descriptors for {BOXES} boxes");

    let done = Arc::new(AtomicBool::new(false));
    let ends = done.clone();
    let switch = std::thread::spawn(move || {
        bridge.run(TIMEOUT, |_| ends.load(Ordering::SeqCst));
        bridge
    });
    let used = |boxes: &[Sandbox]| {
        let processes = boxes.iter().filter(|sandbox| sandbox.process_id().is_some());
        own_time() + processes.map(|sandbox| sandbox.usage().time).sum::<Duration>()
    };
    // The share of a core that the boxes use over a while, without the measurement's own share.
    let share = || {
        let (from, before) = (Instant::now(), used(&boxes));
        std::thread::sleep(QUIET);
        let reading = Instant::now();
        let spent = (used(&boxes) - before).saturating_sub(reading.elapsed());
        spent.as_secs_f64() / from.elapsed().as_secs_f64()
    };
    // Start-up ends at the first idle period; the boxes must stay idle from then on.
    let begin = Instant::now();
    while share() > 0.02 && begin.elapsed() < TIMEOUT {}
    let mut shares: [f64; 5] = std::array::from_fn(|_| share());
    shares.sort_by(f64::total_cmp);
    let median = shares[2];
    done.store(true, Ordering::SeqCst);
    wake_event.ring();
    switch.join().unwrap();
    assert!(median <= 0.02, "{BOXES} idle boxes use {:.1} % of a core: {shares:?}", median * 100.0);
}
