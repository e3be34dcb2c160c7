//! The response time of a box, alone and beside other boxes.

use crate::boxes::feed_port::FeedPort;
use crate::boxes::test_bed::TestBed;
use crate::boxes::workload::{BoxProgram, PACKET, Workload};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, percentile, rounded};
use boundary::Slots;
use sandbox::Settings;
use serde::Serialize;
use std::time::Duration;

/// Slots of the box's port.
const SLOTS: u32 = 256;

/// Pause between requests: long enough for a box to go to sleep.
const PAUSE: Duration = Duration::from_micros(100);

/// How a box waits for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleMode {
    /// It sleeps.
    Idle,
    /// It polls.
    Polling,
}

/// The load of the other boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourLoad {
    /// None.
    Idle,
    /// They use all the CPU time that they get.
    Cpu,
    /// They use all the CPU time that they get, and write to more memory than a core's caches hold.
    Memory,
}

impl NeighbourLoad {
    /// The loads that the box program supports.
    pub fn all(box_program: BoxProgram) -> &'static [Self] {
        match box_program {
            BoxProgram::Click => &[Self::Idle, Self::Cpu, Self::Memory],
            BoxProgram::Probe => &[Self::Idle, Self::Cpu],
        }
    }
}

/// Response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// One row for each number of neighbours and load.
    pub rows: Vec<LatencyRow>,
}

/// The response time of one box beside others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyRow {
    /// How the box waits.
    #[serde(rename = "box")]
    pub waiting: IdleMode,
    /// Number of other boxes on its core.
    pub others: usize,
    /// Their load.
    pub load: NeighbourLoad,
    /// The median, in microseconds.
    #[serde(serialize_with = "rounded")]
    pub p50_us: f64,
    /// The 99th percentile, in microseconds.
    #[serde(serialize_with = "rounded")]
    pub p99_us: f64,
}

/// Measures a box repeatedly, each time after it has become idle.
pub fn latency(
    bed: &TestBed,
    waiting: IdleMode,
    others: usize,
    load: NeighbourLoad,
    plan: SamplePlan,
) -> Result<LatencyRow, MeasureError> {
    let slots = Slots::new(SLOTS)?;
    let settings = TestBed::settings(Workload::Ping, slots, None);
    // A box with a dedicated core polls. Here others share the core, and the kernel divides the time.
    let alone = if waiting == IdleMode::Polling { bed.dedicated_worker(None)? } else { None };
    let settings = match waiting {
        IdleMode::Idle => settings,
        IdleMode::Polling => Settings { polls: true, quantum: 0, ..settings },
    };
    let mut sandbox = bed.run_on_worker(alone.as_ref(), Workload::Ping, &settings)?;
    let neighbour = match load {
        NeighbourLoad::Idle => Workload::Mirror,
        NeighbourLoad::Cpu => Workload::Loop,
        NeighbourLoad::Memory => Workload::Memory,
    };
    let neighbours = (0..others).map(|_| bed.run(neighbour, slots, None));
    let _neighbours = neighbours.collect::<Result<Vec<_>, _>>()?;
    let mut port = FeedPort::take(&mut sandbox, 0)?;
    port.exchange(&PACKET)?;
    let (mut medians, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let times = plan.sample(PAUSE, || port.exchange(&PACKET))?;
        medians.push(percentile(&times, 50));
        tails.push(percentile(&times, 99));
    }
    Ok(LatencyRow { waiting, others, load, p50_us: median(medians), p99_us: median(tails) })
}
