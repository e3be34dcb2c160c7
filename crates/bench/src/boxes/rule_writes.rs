//! How long packets wait while the rules of a firewall in a box, or its whole configuration, are replaced.

use crate::boxes::feed_port::FeedPort;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, microseconds, rounded};
use boundary::{Request, Slots};
use sandbox::{PortSettings, Settings};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Slots of the box's port.
const SLOTS: u32 = 1024;
/// Private memory of the box, with room for ten thousands of rules.
const MEMORY: usize = 96 << 20;
/// Bytes of each frame.
const FRAME: usize = 64;
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

/// The longest times without a packet from a box, in microseconds: the median of the runs, and the least, in which the
/// least else disturbed the box.
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
    /// While the handler `rules` is written.
    pub write: RuleGap,
    /// While a configuration with as many other rules is replaced.
    pub swap: RuleGap,
}

/// A change under traffic.
enum Change<'a> {
    /// The rules are written to the handler of a firewall that has none.
    Write(&'a str),
    /// The configuration is replaced by this one.
    Swap(&'a str),
}

/// Sends traffic at full speed through a box, alternately with and without changing its rules.
pub fn rule_writes(bed: &TestBed, rules: u32, plan: SamplePlan) -> Result<RuleWrites, MeasureError> {
    let (one, other) = (rules_text(rules, 0), rules_text(rules, 1));
    let write = gap(bed, &firewall("allow all"), &Change::Write(&one), plan)?;
    let swap = gap(bed, &firewall(&one), &Change::Swap(&firewall(&other)), plan)?;
    Ok(RuleWrites { rules, write, swap })
}

/// Changes a configuration under traffic.
fn gap(
    bed: &TestBed,
    configuration: &str,
    change: &Change,
    plan: SamplePlan,
) -> Result<RuleGap, MeasureError> {
    let (mut without, mut with, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let (gap, took) = run(bed, configuration, Some(change), Duration::ZERO)?;
        with.push(gap);
        times.push(microseconds(took));
        without.push(run(bed, configuration, None, took)?.0);
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
            std::thread::sleep(MARGIN);
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
                    std::thread::sleep(time);
                    Ok(())
                }
            };
            let took = begin.elapsed();
            std::thread::sleep(MARGIN);
            over.store(true, Ordering::Relaxed);
            result.map(|()| took)
        });
        let gap = longest_gap(&mut port, &over);
        let took = writer.join().map_err(|_| MeasureError::Late { what: "the reply to the change" })?;
        Ok((gap?, took?))
    })
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
