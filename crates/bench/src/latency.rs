//! How long a box takes to answer, alone and beside others.

use crate::effort::Effort;
use crate::error::Error;
use crate::line::Line;
use crate::program::{Inside, PACKET, Program};
use crate::stand::Stand;
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
pub enum Waiting {
    /// It sleeps.
    Idle,
    /// It looks for work all the time.
    Polling,
}

/// What the other boxes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Nothing.
    Idle,
    /// They use all of the processor that they get.
    Cpu,
    /// They use all of it, too, to write to more memory than the caches of a core hold.
    Memory,
}

impl Load {
    /// What others can do, by what is inside.
    pub fn all(inside: Inside) -> &'static [Self] {
        match inside {
            Inside::Click => &[Self::Idle, Self::Cpu, Self::Memory],
            Inside::Probe => &[Self::Idle, Self::Cpu],
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
    pub waiting: Waiting,
    /// Other boxes on its core.
    pub others: usize,
    /// What they do.
    pub load: Load,
    /// The median, in microseconds.
    #[serde(serialize_with = "rounded")]
    pub p50_us: f64,
    /// Ninety-nine percent took no longer.
    #[serde(serialize_with = "rounded")]
    pub p99_us: f64,
}

/// Asks a box again and again, each time after it came to rest.
pub fn latency(
    stand: &Stand,
    waiting: Waiting,
    others: usize,
    load: Load,
    effort: Effort,
) -> Result<LatencyRow, Error> {
    let slots = Slots::new(SLOTS)?;
    let settings = Stand::settings(Program::Ping, slots, None);
    // As a box polls that has a processor for itself. Others are on the same core here, where the kernel divides the
    // time.
    let alone = if waiting == Waiting::Polling { stand.worker_alone()? } else { None };
    let settings = match waiting {
        Waiting::Idle => settings,
        Waiting::Polling => Settings { polls: true, quantum: 0, ..settings },
    };
    let mut sandbox = stand.run_alone(alone.as_ref(), Program::Ping, &settings)?;
    let neighbour = match load {
        Load::Idle => Program::Mirror,
        Load::Cpu => Program::Loop,
        Load::Memory => Program::Memory,
    };
    let neighbours = (0..others).map(|_| stand.run(neighbour, slots, None));
    let _neighbours = neighbours.collect::<Result<Vec<_>, _>>()?;
    let mut line = Line::take(&mut sandbox, 0)?;
    line.exchange(&PACKET)?;
    let (mut middles, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..effort.runs.max(1) {
        let times = effort.sample(PAUSE, || line.exchange(&PACKET))?;
        middles.push(percentile(&times, 50));
        tails.push(percentile(&times, 99));
    }
    Ok(LatencyRow { waiting, others, load, p50_us: median(middles), p99_us: median(tails) })
}
