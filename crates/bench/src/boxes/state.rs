//! The time to write and read a handler of a box.

use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, percentile, rounded};
use boundary::{Request, Slots};
use sandbox::Sandbox;
use serde::Serialize;
use std::time::Duration;

/// Slots of a ring; the box has none.
const SLOTS: u32 = 64;

/// Pause between requests: long enough for a box to go to sleep.
const PAUSE: Duration = Duration::from_micros(100);

/// Handler access times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Writing a value of one byte.
    pub write_us: Transaction,
    /// Reading it back.
    pub read_us: Transaction,
    /// The same for each length.
    pub rows: Vec<StateRow>,
}

/// Handler access times for values of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StateRow {
    /// Length of the value in bytes.
    pub size: usize,
    /// Writing it.
    pub write_us: Transaction,
    /// Reading it back.
    pub read_us: Transaction,
}

/// Duration of requests, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Transaction {
    /// The median.
    #[serde(serialize_with = "rounded")]
    pub p50: f64,
    /// The 99th percentile.
    #[serde(serialize_with = "rounded")]
    pub p99: f64,
}

impl Transaction {
    /// The medians of several runs.
    pub(super) fn median(runs: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(runs.iter().map(figure).collect());
        Self { p50: of(|run| run.p50), p99: of(|run| run.p99) }
    }
}

/// Writes and reads a handler of a box that is idle in between, with values of each length.
pub fn state(bed: &TestBed, sizes: &[usize], plan: SamplePlan) -> Result<State, MeasureError> {
    let mut sandbox = bed.run(Workload::Store, Slots::new(SLOTS)?, None)?;
    let mut rows = Vec::new();
    for &size in sizes {
        let (handler, before) = bed.box_program().write_handler();
        let value = [before.as_bytes(), &vec![b'1'; size]].concat();
        let write = Request::Write { name: "", handler, value: &value };
        let read = Request::Read { name: "", handler: bed.box_program().read_handler(), argument: b"" };
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs.max(1) {
            writes.push(run(&mut sandbox, &write, plan)?);
            reads.push(run(&mut sandbox, &read, plan)?);
        }
        rows.push(StateRow {
            size,
            write_us: Transaction::median(&writes),
            read_us: Transaction::median(&reads),
        });
    }
    let (write_us, read_us) = rows.first().map(|row| (row.write_us, row.read_us)).unwrap_or_default();
    Ok(State { write_us, read_us, rows })
}

fn run(sandbox: &mut Sandbox, request: &Request, plan: SamplePlan) -> Result<Transaction, MeasureError> {
    let times = plan.sample(PAUSE, || Ok(sandbox.call(request, REPLY_TIMEOUT).map(drop)?))?;
    Ok(Transaction { p50: percentile(&times, 50), p99: percentile(&times, 99) })
}
