//! How long a box takes to answer, alone and beside others.

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

/// A pause between questions: long enough for a box to go to sleep.
const PAUSE: Duration = Duration::from_micros(100);

/// What a box does while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleMode {
    /// It sleeps.
    Idle,
    /// It looks for work all the time.
    Polling,
}

/// What the other boxes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NeighbourLoad {
    /// Nothing.
    Idle,
    /// They use all of the processor that they get.
    Cpu,
    /// They use all of it, too, to write to more memory than the caches of a core hold.
    Memory,
}

impl NeighbourLoad {
    /// What others can do, by what is inside.
    pub fn all(box_program: BoxProgram) -> &'static [Self] {
        match box_program {
            BoxProgram::Click => &[Self::Idle, Self::Cpu, Self::Memory],
            BoxProgram::Probe => &[Self::Idle, Self::Cpu],
        }
    }
}

/// How long boxes take to answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// One row for each number and kind of neighbours.
    pub rows: Vec<LatencyRow>,
}

/// How long one box takes to answer beside others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyRow {
    /// How the box waits.
    #[serde(rename = "box")]
    pub waiting: IdleMode,
    /// Other boxes on its core.
    pub others: usize,
    /// What they do.
    pub load: NeighbourLoad,
    /// The median, in microseconds.
    #[serde(serialize_with = "rounded")]
    pub p50_us: f64,
    /// Ninety-nine percent took no longer.
    #[serde(serialize_with = "rounded")]
    pub p99_us: f64,
}

/// Asks a box again and again, each time after it came to rest.
pub fn latency(
    bed: &TestBed,
    waiting: IdleMode,
    others: usize,
    load: NeighbourLoad,
    plan: SamplePlan,
) -> Result<LatencyRow, MeasureError> {
    let slots = Slots::new(SLOTS)?;
    let settings = TestBed::settings(Workload::Ping, slots, None);
    // As a box polls that has a processor for itself. Others are on the same core here, where the kernel divides the
    // time.
    let alone = if waiting == IdleMode::Polling { bed.worker_alone()? } else { None };
    let settings = match waiting {
        IdleMode::Idle => settings,
        IdleMode::Polling => Settings { polls: true, quantum: 0, ..settings },
    };
    let mut sandbox = bed.run_alone(alone.as_ref(), Workload::Ping, &settings)?;
    let neighbour = match load {
        NeighbourLoad::Idle => Workload::Mirror,
        NeighbourLoad::Cpu => Workload::Loop,
        NeighbourLoad::Memory => Workload::Memory,
    };
    let neighbours = (0..others).map(|_| bed.run(neighbour, slots, None));
    let _neighbours = neighbours.collect::<Result<Vec<_>, _>>()?;
    let mut line = FeedPort::take(&mut sandbox, 0)?;
    line.exchange(&PACKET)?;
    let (mut middles, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let times = plan.sample(PAUSE, || line.exchange(&PACKET))?;
        middles.push(percentile(&times, 50));
        tails.push(percentile(&times, 99));
    }
    Ok(LatencyRow { waiting, others, load, p50_us: median(middles), p99_us: median(tails) })
}
