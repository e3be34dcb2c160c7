//! The total rate at which many boxes on one core send, and its fairness.

use crate::boxes::attach;
use crate::boxes::io::gbps;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, microseconds, rounded, spread};
use boundary::Slots;
use serde::Serialize;
use std::time::{Duration, Instant};
use switch::driver::Null;
use switch::{PortId, PortSettings, StaticTable, SwitchRunner};

/// Minimum time per box and run: about a hundred turns with the largest ring. With only a few turns, the spread would
/// depend on whose turn it was at the end of the run.
const MIN_TIME_PER_BOX: Duration = Duration::from_millis(20);

/// Duration of the warm-up, during which every box gets turns.
const WARM_UP: Duration = Duration::from_millis(200);

/// The send rate of many boxes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Density {
    /// Number of boxes, all on one core.
    pub boxes: usize,
    /// Bytes of a frame.
    pub size: u16,
    /// Slots of each box's ring: the packets that it sends in one turn.
    pub ring: u32,
    /// Millions of packets per second, total.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second, total.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
    /// Standard deviation of the boxes' rates divided by their mean.
    #[serde(serialize_with = "rounded")]
    pub spread: f64,
    /// Microseconds that it takes to attach a box to the switch: the median.
    #[serde(serialize_with = "rounded")]
    pub attach_us: f64,
}

/// Measures boxes that send at full speed through one switch to a port that accepts everything.
pub fn density(
    bed: &TestBed,
    boxes: usize,
    size: u16,
    ring: u32,
    plan: SamplePlan,
) -> Result<Density, MeasureError> {
    let mut table = StaticTable::new();
    table.set_default(Some(PortId(0)));
    let mut switch = SwitchRunner::new(table).map_err(attach::system)?;
    switch.add_port(Box::new(Null), PortSettings::default())?;
    let (mut sandboxes, mut ports, mut attachments) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..boxes {
        let mut sandbox = bed.run(Workload::Send(size), Slots::new(ring)?, None)?;
        let start = Instant::now();
        ports.push(attach::attach(&mut switch, &mut sandbox, 0)?);
        attachments.push(microseconds(start.elapsed()));
        sandboxes.push(sandbox);
    }
    run(&mut switch, &ports, WARM_UP)?;
    TestBed::collapse_pages(&sandboxes);
    let time = plan.time.max(MIN_TIME_PER_BOX * u32::try_from(boxes).unwrap_or(u32::MAX));
    let (mut sums, mut spreads) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let rates = run(&mut switch, &ports, time)?;
        sums.push(rates.iter().sum::<f64>() / 1e6);
        spreads.push(spread(&rates));
    }
    let mpps = median(sums);
    Ok(Density {
        boxes,
        size,
        ring,
        mpps,
        gbps: gbps(mpps, size),
        spread: median(spreads),
        attach_us: median(attachments),
    })
}

/// Moves packets for `time` and until one has arrived; returns the packets per second of each port.
fn run(
    switch: &mut SwitchRunner<StaticTable>,
    ports: &[PortId],
    time: Duration,
) -> Result<Vec<f64>, MeasureError> {
    let (begin, before) = (Instant::now(), counts(switch, ports));
    loop {
        switch.step();
        let took = begin.elapsed();
        if took < time {
            continue;
        }
        let after = counts(switch, ports);
        let rates: Vec<f64> =
            after.iter().zip(&before).map(|(after, before)| (after - before) / took.as_secs_f64()).collect();
        if rates.iter().any(|rate| *rate > 0.0) {
            return Ok(rates);
        }
        if took >= time + REPLY_TIMEOUT {
            return Err(MeasureError::Late { what: "the first packet" });
        }
    }
}

/// Packets sent by each port.
fn counts(switch: &mut SwitchRunner<StaticTable>, ports: &[PortId]) -> Vec<f64> {
    let mut count =
        |port: &PortId| switch.switch().counters(*port).map_or(0, |counters| counters.received_frames);
    ports.iter().map(|port| count(port) as f64).collect()
}
