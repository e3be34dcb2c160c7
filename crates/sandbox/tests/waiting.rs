//! How a caller waits for a reply or for a box to become idle, and what a box can do to it meanwhile.

#![allow(unsafe_code, reason = "system calls that no safe interface has")]

mod support;

use boundary::Request;
use sandbox::{CallError, ExitStatus, Sandbox, Settings, SnapshotError, State, Target};
use std::time::{Duration, Instant};
use support::{WAIT_TIMEOUT, begin, host, in_each, settings, until};

/// How long a box takes for a reply: the caller sleeps long before. A caller that polled every 0.1 ms would sleep about
/// 3,000 times.
const REPLY_DELAY: Duration = Duration::from_millis(300);

/// Upper bound on how often a thread sleeps while it waits for one reply. One is enough; locks add some.
const MAX_SLEEPS: i64 = 20;

/// Upper bound on the CPU time that a hostile box costs a caller: a few milliseconds of polling, then some wake-ups.
const MAX_CPU_TIME: Duration = Duration::from_millis(30);

/// How long that caller waits.
const HOSTILE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often this thread has slept, and the CPU time that it has used.
fn thread_usage() -> (i64, Duration) {
    // SAFETY: an all-zero structure is valid, and the kernel fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    (usage.ru_nvcsw, time(usage.ru_utime) + time(usage.ru_stime))
}

/// Runs an action. Returns its result, how often this thread slept, and the CPU time that it used.
fn measured<T>(action: impl FnOnce() -> T) -> (T, i64, Duration) {
    let (sleeps, time) = thread_usage();
    let result = action();
    let (sleeps_after, time_after) = thread_usage();
    (result, sleeps_after - sleeps, time_after - time)
}

fn call(sandbox: &mut Sandbox, timeout: Duration) -> (Result<Vec<u8>, CallError>, i64, Duration) {
    measured(|| sandbox.call(&Request::Stats, timeout))
}

/// The error of an attempt to take a snapshot.
fn snapshot_error(sandbox: &mut Sandbox, timeout: Duration) -> (Option<SnapshotError>, i64, Duration) {
    measured(|| sandbox.snapshot(timeout).err())
}

/// Starts a box with a command, and takes the line that it prints.
fn begin_silent(sandbox: &mut Sandbox, command: &str) {
    begin(sandbox, command);
    until("the box prints its line", || sandbox.event().unwrap().is_some());
}

#[test]
fn a_late_reply_wakes_its_caller() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin(&mut sandbox, &format!("late {}", REPLY_DELAY.as_micros()));
        let start = Instant::now();
        let (reply, sleeps, _) = call(&mut sandbox, WAIT_TIMEOUT);
        // The box counts cycles, and the clock here may be slowed down to be corrected.
        let elapsed = start.elapsed();
        assert!(reply.is_ok() && elapsed >= REPLY_DELAY * 9 / 10, "{kind}: {elapsed:?}, {reply:?}");
        assert!(sleeps <= MAX_SLEEPS, "{kind}: {sleeps} sleeps");
    });
}

/// A long request and a long reply need many frames: caller and box wake each other for room and for frames.
#[test]
fn long_messages_wake_both_sides() {
    in_each(&Settings::new(64 << 20), |kind, mut sandbox| {
        begin(&mut sandbox, "drop");
        let value: Vec<u8> = (0..8 << 20).map(|byte: u32| (byte >> 3) as u8).collect();
        let write = Request::Write { name: "", handler: "value", value: &value };
        assert_eq!(sandbox.call(&write, WAIT_TIMEOUT), Ok(Vec::new()), "{kind}");
        let read = Request::Read { name: "", handler: "value", argument: b"" };
        assert!(sandbox.call(&read, WAIT_TIMEOUT).as_ref() == Ok(&value), "{kind}");
    });
}

/// A box that never rings makes its caller wait until the time is over, and costs nothing meanwhile.
#[test]
fn a_box_that_never_rings_is_late() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin(&mut sandbox, "mute 20000");
        let start = Instant::now();
        let (reply, sleeps, time) = call(&mut sandbox, HOSTILE_TIMEOUT);
        // The last look at the channel finds a reply, if the busy machine has let the box send it.
        assert!(matches!(reply, Ok(_) | Err(CallError::TimedOut)), "{kind}: {reply:?}");
        assert!(sleeps <= MAX_SLEEPS && time < MAX_CPU_TIME, "{kind}: {sleeps} sleeps, {time:?}");
        assert!(start.elapsed() < WAIT_TIMEOUT, "{kind}: {:?}", start.elapsed());
    });
}

/// A caller stops listening to a box that rings without having anything to say, but still notices its end.
#[test]
fn endless_rings_of_a_box_are_ignored() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin(&mut sandbox, "ring-mailbox");
        let (reply, _, time) = call(&mut sandbox, HOSTILE_TIMEOUT);
        assert_eq!(reply, Err(CallError::TimedOut), "{kind}");
        assert!(time < MAX_CPU_TIME, "{kind}: the caller used {time:?}");
        let control = sandbox.control_handle();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| call(&mut sandbox, WAIT_TIMEOUT));
            control.kill();
            let (reply, _, time) = caller.join().unwrap();
            assert_eq!(reply, Err(CallError::Ended), "{kind}");
            assert!(time < MAX_CPU_TIME, "{kind}: the caller used {time:?}");
        });
        assert_eq!(control.state(), State::Ended(ExitStatus::Killed), "{kind}");
    });
}

/// Nothing but its descriptor announces the end of a process that this program did not cause.
#[test]
fn the_end_of_a_process_wakes_its_caller() {
    let mut sandbox = host().create(Target::Process, &settings(0)).unwrap();
    begin(&mut sandbox, "loop");
    let (start, pid) = (Instant::now(), sandbox.process_id().unwrap());
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| call(&mut sandbox, WAIT_TIMEOUT));
        // SAFETY: the process is this program's child, which is not reaped before this test asks for its state.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        let (reply, sleeps, _) = caller.join().unwrap();
        assert_eq!(reply, Err(CallError::Ended));
        assert!(sleeps <= MAX_SLEEPS && start.elapsed() < WAIT_TIMEOUT / 2, "{sleeps} {:?}", start.elapsed());
    });
    assert_eq!(sandbox.state(), State::Ended(ExitStatus::Vanished { status: -libc::SIGKILL }));
}

/// A caller that waits for a box before its start gets its reply, and the end of a box that is never started.
#[test]
fn a_caller_may_come_before_the_box() {
    for starts in [true, false] {
        let mut sandbox = host().create(Target::Process, &settings(0)).unwrap();
        let control = sandbox.control_handle();
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| sandbox.call(&Request::Stats, WAIT_TIMEOUT));
            match starts {
                true => control.start().unwrap(),
                false => control.kill(),
            }
            let reply = caller.join().unwrap();
            assert_eq!(reply.is_ok(), starts, "{reply:?}");
        });
    }
}

#[test]
fn a_snapshot_waits_until_the_box_is_idle() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin_silent(&mut sandbox, &format!("work {}", REPLY_DELAY.as_micros()));
        let (error, sleeps, _) = snapshot_error(&mut sandbox, WAIT_TIMEOUT);
        assert!(error.is_none(), "{kind}: {error:?}");
        assert!(sleeps <= MAX_SLEEPS, "{kind}: {sleeps} sleeps");
    });
}

/// A box becomes idle and busy again all the time; no moment of that is missed.
#[test]
fn a_box_that_is_idle_for_moments_is_copied() {
    in_each(&settings(0), |kind, mut sandbox| {
        begin_silent(&mut sandbox, "drop");
        for turn in 0..200 {
            let start = Instant::now();
            sandbox.install("", "late 0", WAIT_TIMEOUT).unwrap();
            until("the box prints its line", || sandbox.event().unwrap().is_some());
            let snapshot = sandbox.snapshot(WAIT_TIMEOUT);
            assert!(snapshot.is_ok(), "{kind}, turn {turn}: {snapshot:?} after {:?}", start.elapsed());
        }
    });
}

/// A box that never becomes idle, even if it rings without end, costs its host little, and its end is noticed.
#[test]
fn a_box_that_is_never_idle_is_not_copied() {
    for command in ["busy", "loop", "ring-mailbox"] {
        in_each(&settings(0), |kind, mut sandbox| {
            begin_silent(&mut sandbox, command);
            let (error, sleeps, time) = snapshot_error(&mut sandbox, HOSTILE_TIMEOUT);
            assert!(matches!(error, Some(SnapshotError::NotIdle)), "{kind}: {command}: {error:?}");
            assert!(time < MAX_CPU_TIME, "{kind}: {command}: {sleeps} sleeps, {time:?}");
            if command != "ring-mailbox" {
                assert!(sleeps <= MAX_SLEEPS, "{kind}: {command}: {sleeps} sleeps");
                let (control, start) = (sandbox.control_handle(), Instant::now());
                std::thread::scope(|scope| {
                    let copier = scope.spawn(|| snapshot_error(&mut sandbox, WAIT_TIMEOUT).0);
                    control.kill();
                    let error = copier.join().unwrap();
                    assert!(matches!(error, Some(SnapshotError::NotRunning)), "{kind}: {error:?}");
                });
                assert!(start.elapsed() < WAIT_TIMEOUT / 2, "{kind}: {command}: {:?}", start.elapsed());
            }
        });
    }
}
