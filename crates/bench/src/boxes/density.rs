//! How fast many boxes on one core send in sum, and how evenly.

use crate::boxes::attach;
use crate::boxes::io::gbps;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded, spread};
use boundary::Slots;
use serde::Serialize;
use std::time::{Duration, Instant};
use switch::driver::Null;
use switch::{PortId, PortSettings, StaticTable, SwitchRunner};

/// What each box gets of a run, at least: about a hundred turns of the largest ring. With a few, the spread would tell
/// whose turn it was when the run ended, and not who gets more.
const SHARE: Duration = Duration::from_millis(20);

/// What comes before the first run: every box has had turns.
const WARM_UP: Duration = Duration::from_millis(200);

/// How fast many boxes send.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Density {
    /// Boxes, all on one core.
    pub boxes: usize,
    /// Bytes of a frame.
    pub size: u16,
    /// Slots of each box's ring: what it sends in one turn.
    pub ring: u32,
    /// Millions of packets a second, in sum.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames a second, in sum.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
    /// Standard deviation of the boxes' rates over their mean.
    #[serde(serialize_with = "rounded")]
    pub spread: f64,
}

/// Lets boxes send as fast as they can, through one switch, to a port that takes everything.
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
    let (mut kept, mut ports) = (Vec::new(), Vec::new());
    for _ in 0..boxes {
        let mut sandbox = bed.run(Workload::Send(size), Slots::new(ring)?, None)?;
        ports.push(attach::attach(&mut switch, &mut sandbox, 0)?);
        kept.push(sandbox);
    }
    run(&mut switch, &ports, WARM_UP)?;
    TestBed::settle(&kept);
    let time = plan.time.max(SHARE * u32::try_from(boxes).unwrap_or(u32::MAX));
    let (mut sums, mut spreads) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let rates = run(&mut switch, &ports, time)?;
        sums.push(rates.iter().sum::<f64>() / 1e6);
        spreads.push(spread(&rates));
    }
    let mpps = median(sums);
    Ok(Density { boxes, size, ring, mpps, gbps: gbps(mpps, size), spread: median(spreads) })
}

/// Moves packets for so long, and until one came; how many each port sent in a second.
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

/// What each port has sent.
fn counts(switch: &mut SwitchRunner<StaticTable>, ports: &[PortId]) -> Vec<f64> {
    let mut count =
        |port: &PortId| switch.switch().counters(*port).map_or(0, |counters| counters.received_frames);
    ports.iter().map(|port| count(port) as f64).collect()
}
