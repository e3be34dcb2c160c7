//! Limits on CPU time.
//!
//! This is the only test in its program, because it finds the threads of a worker and of the monitor by their names.

mod support;

use api::{CreateBox, Sandbox};
use daemon::Supervisor;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{TIMEOUT, handler, name, process, settings_of, until};
use test_support::{Capability, require};

/// The limit of the box, as a part of a CPU: so little that even on a very busy machine the box could use more.
const CPU_SHARE: f64 = 0.02;

/// How far the CPU time of the box may be from what its limit grants.
const TOLERANCE: f64 = 0.1;

/// The least length of a measurement.
const MEASUREMENT: Duration = Duration::from_secs(4);

/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// A delay of the monitor from which on a throttled box loses time: its budget does not grow any more.
const HARMFUL_DELAY: Duration = Duration::from_millis(80);

/// How long a thread has run, and how long it could have run while another one did, by the kernel's account in `/proc`.
fn ran_and_waited(thread: &Path) -> (Duration, Duration) {
    let account = std::fs::read_to_string(thread.join("schedstat")).unwrap();
    let mut fields = account.split_whitespace().map(|field| Duration::from_nanos(field.parse().unwrap()));
    (fields.next().unwrap(), fields.next().unwrap())
}

/// Whether a thread runs, or waits for a CPU only. The box never sleeps, so otherwise it is throttled.
fn is_runnable(thread: &Path) -> bool {
    let status = std::fs::read_to_string(thread.join("stat")).unwrap();
    status.rsplit_once(')').unwrap().1.trim_start().starts_with('R')
}

/// The threads of this process with a name.
fn threads(name: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|thread| std::fs::read_to_string(thread.join("comm")).is_ok_and(|found| found.trim() == name))
        .collect()
}

/// The state of the box at a moment.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    throttled: bool,
    used: Duration,
    waited: Duration,
    monitor_waited: Duration,
}

/// The end of a throttled period. Its budget is then used up but for a hundredth of a second, and its CPU time is known
/// exactly, however late this test looks.
#[derive(Clone, Copy)]
struct Release {
    earliest: Instant,
    latest: Instant,
    used: Duration,
    waited: Duration,
    /// The sum of the harmful delays of the monitor until then.
    delay: Duration,
}

/// A box that uses all the CPU time that it gets, the thread that it runs on, and the one that throttles it.
struct BusyBox {
    thread: PathBuf,
    monitor: PathBuf,
}

impl BusyBox {
    /// The box's time is that of its thread. To ask the daemon would let a throttled box run until it has replied.
    fn sample(&self) -> Sample {
        let (throttled, (used, waited)) = (!is_runnable(&self.thread), ran_and_waited(&self.thread));
        let (_, monitor_waited) = ran_and_waited(&self.monitor);
        Sample { at: Instant::now(), throttled, used, waited, monitor_waited }
    }

    /// Two releases that are a measurement apart.
    fn releases(&self) -> [Release; 2] {
        let (begin, mut last, mut first, mut delay) =
            (Instant::now(), self.sample(), None::<Release>, Duration::ZERO);
        loop {
            std::thread::sleep(SAMPLE_INTERVAL);
            let now = self.sample();
            delay += (now.monitor_waited - last.monitor_waited).saturating_sub(HARMFUL_DELAY);
            if last.throttled && (!now.throttled || now.used > last.used) {
                let Sample { at: earliest, used, waited, .. } = last;
                let release = Release { earliest, latest: now.at, used, waited, delay };
                match first {
                    Some(first) if release.earliest - first.latest >= MEASUREMENT => return [first, release],
                    Some(_) => {}
                    None => first = Some(release),
                }
            }
            assert!(begin.elapsed() < TIMEOUT, "the box is not throttled: {:?} used", now.used);
            last = now;
        }
    }

    /// Checks that the box uses what its limit grants, and is throttled for no longer than that requires.
    ///
    /// On a busy machine the box gets less, because it waits for a CPU. Then it is not throttled either, so the limit has
    /// to be granted for the time in which it did not wait. A box that waits saves a tenth of a second's budget at most.
    fn check(&self) {
        let [start, end] = self.releases();
        let (used, waited, delay) =
            (end.used - start.used, end.waited - start.waited, end.delay - start.delay);
        let longest = end.latest - start.earliest;
        let granted = (end.earliest - start.latest).saturating_sub(waited + delay);
        let found = format!(
            "{used:?} used in {longest:?}, of which it waited {waited:?}, throttled {delay:?} too long"
        );
        assert!(used <= longest.mul_f64(CPU_SHARE * (1.0 + TOLERANCE)), "the box exceeds its limit: {found}");
        assert!(
            used >= granted.mul_f64(CPU_SHARE * (1.0 - TOLERANCE)),
            "it is kept below its limit: {found}"
        );
    }
}

/// A busy box uses the CPU time that its limit grants, and answers. The limit holds after suspensions.
fn check(sandbox: Sandbox) {
    let supervisor = Supervisor::start(&settings_of(image::PROBE, "probe", 1)).unwrap();
    let fw = name("fw");
    let limited = CreateBox {
        sandbox,
        cpu_limit: Some("2%".parse().unwrap()),
        cpu_weight: 200.try_into().unwrap(),
        ..process("fw", "busy", &[])
    };
    let status = supervisor.create_box(limited).unwrap().status;
    // A thread sets its name itself, soon after it was started.
    let only = |thread_name: &str| {
        until(&format!("one thread is named {thread_name}"), || threads(thread_name).len() == 1);
        threads(thread_name).remove(0)
    };
    let thread = match status.pid {
        Some(pid) => PathBuf::from(format!("/proc/{pid}")),
        None => only("worker"),
    };
    let busy = BusyBox { thread, monitor: only("monitor") };
    busy.check();
    supervisor.write(&handler("fw/value"), b"answers").unwrap();
    assert_eq!(supervisor.read(&handler("fw/value"), b"").unwrap().value.0, b"answers");
    // The box is likely to be throttled when it is suspended; after resuming it must be throttled again.
    for _ in 0..3 {
        supervisor.suspend_box(&fw).unwrap();
        supervisor.resume_box(&fw).unwrap();
    }
    busy.check();
    supervisor.stop_box(&fw).unwrap();
    drop(supervisor);
    until("the threads have ended", || threads("worker").is_empty() && threads("monitor").is_empty());
}

#[test]
fn cpu_time_is_limited() {
    check(Sandbox::Process);
    if require(Capability::Kvm) {
        check(Sandbox::Vm);
    }
}
