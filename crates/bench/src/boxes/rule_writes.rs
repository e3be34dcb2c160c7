//! How long packets wait while the rules of a firewall, or its whole configuration, are replaced: in a box and in a plain process.

use crate::boxes::feed_port::FeedPort;
use crate::boxes::plain_process::PlainProcess;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, microseconds, rounded};
use boundary::{Request, Slots};
use sandbox::{PortSettings, Settings};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Slots of the box's port.
const SLOTS: u32 = 1024;
/// Private memory of the box, with room for ten thousands of rules.
const MEMORY: usize = 96 << 20;
/// Bytes of each frame.
const FRAME: usize = 64;
/// Packets that the source in a plain process sends in a turn.
const BURST: u32 = 32;
/// How long the traffic lasts before and after a change.
const MARGIN: Duration = Duration::from_millis(20);
/// Time limit of a change.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);
/// A feeder that was away for longer was not scheduled: that time says nothing about the box, and is taken off.
const MAX_ABSENCE: Duration = Duration::from_micros(50);

/// The configuration of the box: it returns the packets that its rules allow.
fn firewall(rules: &str) -> String {
    format!(
        "FromDevice(0) -> Strip(14) -> MarkIPHeader -> f :: IPFilter({rules}) -> Unstrip(14) -> ToDevice(0);"
    )
}

/// The configuration of a plain process: it writes the times at which packets have passed its rules to the standard output.
fn plain_firewall(rules: &str, control: &Path) -> String {
    let data = frame().iter().fold(String::new(), |mut data, byte| {
        // Writing to a string can't fail.
        let _ = write!(data, "{byte:02x}");
        data
    });
    format!(
        "InfiniteSource(DATA \\<{data}>, BURST {BURST}) -> Strip(14) -> MarkIPHeader -> f :: IPFilter({rules})
            -> Unstrip(14) -> SetTimestamp -> ToDump(-, SNAPLEN 1);
         control :: ControlSocket(UNIX, {}, RETRIES 1, RETRY_WARNINGS false);",
        control.display()
    )
}

/// The longest times without a packet, in microseconds: the median of the runs, and the least, in which the least else disturbed
/// the firewall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RuleGap {
    /// Without a change, in runs as long as those with one.
    #[serde(serialize_with = "rounded")]
    pub without_us: f64,
    /// During the change.
    #[serde(serialize_with = "rounded")]
    pub with_us: f64,
    /// The least without a change.
    #[serde(serialize_with = "rounded")]
    pub least_without_us: f64,
    /// The least during the change.
    #[serde(serialize_with = "rounded")]
    pub least_with_us: f64,
    /// From the request of the change to its reply, under the same traffic.
    #[serde(serialize_with = "rounded")]
    pub took_us: f64,
}

/// How long packets wait while a firewall gets many rules.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RuleWrites {
    /// Number of rules.
    pub rules: u32,
    /// In a box.
    pub in_box: RuleGaps,
    /// In a plain process, by its ControlSocket.
    pub in_process: RuleGaps,
}

/// How long packets wait during each change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RuleGaps {
    /// While the handler `rules` is written.
    pub write: RuleGap,
    /// While a configuration with as many other rules is replaced.
    pub swap: RuleGap,
}

/// A change under traffic.
enum Change<'a> {
    /// The rules are written to the handler of a firewall that has none.
    Write(&'a str),
    /// The configuration is replaced by this one, or in a plain process by that with these rules.
    Swap(&'a str),
}

/// Sends traffic at full speed through a box, and through `program click` in a plain process, alternately with and without changing
/// the rules.
pub fn rule_writes(
    bed: &TestBed,
    program: &Path,
    rules: u32,
    plan: SamplePlan,
) -> Result<RuleWrites, MeasureError> {
    let (one, other) = (rules_text(rules, 0), rules_text(rules, 1));
    let in_box = |configuration: &str, change: &Change| {
        gap(plan, |time| run(bed, configuration, time.is_none().then_some(change), time.unwrap_or_default()))
    };
    let in_process =
        |before: &str, change: &Change| gap(plan, |time| run_plain(bed, program, before, change, time));
    Ok(RuleWrites {
        rules,
        in_box: RuleGaps {
            write: in_box(&firewall("allow all"), &Change::Write(&one))?,
            swap: in_box(&firewall(&one), &Change::Swap(&firewall(&other)))?,
        },
        in_process: RuleGaps {
            write: in_process("allow all", &Change::Write(&one))?,
            swap: in_process(&one, &Change::Swap(&other))?,
        },
    })
}

/// Repeats runs with a change, and without for as long. `run` returns the longest gap of a run in microseconds, and how long the
/// change took.
fn gap(
    plan: SamplePlan,
    run: impl Fn(Option<Duration>) -> Result<(f64, Duration), MeasureError>,
) -> Result<RuleGap, MeasureError> {
    let (mut without, mut with, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let (gap, took) = run(None)?;
        with.push(gap);
        times.push(microseconds(took));
        without.push(run(Some(took))?.0);
    }
    let least = |gaps: &[f64]| gaps.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(RuleGap {
        least_without_us: least(&without),
        least_with_us: least(&with),
        without_us: median(without),
        with_us: median(with),
        took_us: median(times),
    })
}

/// Runs a new box under traffic, for `time` or during a change. Returns the longest gap in microseconds, and how long the
/// change took.
fn run(
    bed: &TestBed,
    configuration: &str,
    change: Option<&Change>,
    time: Duration,
) -> Result<(f64, Duration), MeasureError> {
    let port = PortSettings { slots: Slots::new(SLOTS)?, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
    let settings = Settings { ports: vec![port], quantum: SLOTS, ..Settings::new(MEMORY) };
    let mut sandbox = bed.create(&settings)?;
    bed.start(&mut sandbox)?;
    sandbox.install("", configuration, CHANGE_TIMEOUT)?;
    let mut port = FeedPort::take(&mut sandbox, 0)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            sleep(MARGIN);
            let begin = Instant::now();
            let result = match change {
                Some(Change::Write(value)) => {
                    let request = Request::Write { name: "", handler: "f.rules", value: value.as_bytes() };
                    sandbox.call(&request, CHANGE_TIMEOUT).map(drop)
                }
                Some(Change::Swap(configuration)) => {
                    sandbox.install("", configuration, CHANGE_TIMEOUT).map(drop)
                }
                None => {
                    sleep(time);
                    Ok(())
                }
            };
            let took = begin.elapsed();
            sleep(MARGIN);
            over.store(true, Ordering::Relaxed);
            result.map(|()| took)
        });
        let gap = longest_gap(&mut port, &over);
        let took = writer.join().map_err(|_| MeasureError::Late { what: "the reply to the change" })?;
        Ok((gap?, took?))
    })
}

/// Runs a plain process with a firewall of the rules `before`, for `time` or during a change, whose text are rules too. Returns
/// the longest gap between two packets in microseconds, and how long the change took.
fn run_plain(
    bed: &TestBed,
    program: &Path,
    before: &str,
    change: &Change,
    time: Option<Duration>,
) -> Result<(f64, Duration), MeasureError> {
    let mut process =
        bed.on_all_cores(|| PlainProcess::start(program, |control| plain_firewall(before, control)))?;
    sleep(MARGIN);
    let begin = Instant::now();
    match (time, change) {
        (Some(time), _) => sleep(time),
        (None, Change::Write(rules)) => process.write("f.rules", rules)?,
        (None, Change::Swap(rules)) => {
            let configuration = plain_firewall(rules, &process.control_path());
            process.write("hotconfig", &configuration)?;
        }
    }
    let took = begin.elapsed();
    sleep(MARGIN);
    Ok((microseconds(process.end()?), took))
}

/// Feeds a port until it is over. Returns the longest time without a packet, in microseconds.
fn longest_gap(port: &mut FeedPort, over: &AtomicBool) -> Result<f64, MeasureError> {
    let frame = frame();
    let mut longest = Duration::ZERO;
    let (mut last_packet, mut last_look) = (None, Instant::now());
    while !over.load(Ordering::Relaxed) {
        port.fill(&frame)?;
        let received = port.drain()?;
        let now = Instant::now();
        if now - last_look > MAX_ABSENCE {
            last_packet = last_packet.map(|last| last + (now - last_look));
        }
        last_look = now;
        if received > 0 {
            longest = last_packet.map_or(longest, |last| longest.max(now - last));
            last_packet = Some(now);
        }
    }
    Ok(microseconds(longest))
}

/// A UDP packet that only the last rule matches.
fn frame() -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[16..18].copy_from_slice(&((FRAME - 14) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[10, 1, 2, 3, 10, 9, 9, 9]);
    frame
}

/// The argument of an IPFilter: rules about hosts in one of several networks and about ports, and one that allows the rest.
fn rules_text(count: u32, network: u32) -> String {
    let rule = |number: u32| {
        let (high, low) = (number / 250 % 250, number % 250);
        let first = 8 * network + number % 7;
        format!("deny tcp and dst host 10.{first}.{high}.{low} and dst port {},\n", number % 50)
    };
    (1..count).map(rule).collect::<String>() + "allow all"
}
