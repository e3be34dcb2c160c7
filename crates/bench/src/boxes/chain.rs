//! Packets per second through a chain of boxes.

use crate::boxes::attach;
use crate::boxes::io::gbps;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use boundary::Slots;
use sandbox::Settings;
use serde::Serialize;
use std::time::{Duration, Instant};
use switch::{BoxLink, PIPE_RINGS, PortId, StaticTable, SwitchRunner};

/// Duration of the warm-up, during which packets reach the end of the chain.
const WARM_UP: Duration = Duration::from_millis(200);

/// The connections between the boxes of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Interconnect {
    /// Switches that pass packets on in their buffers: boxes of one owner that share a packet pool.
    Pool,
    /// Switches that copy packets: boxes that share nothing.
    Copy,
    /// Pipes between boxes that share a packet pool.
    Pipe,
}

impl Interconnect {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Pool, Self::Copy, Self::Pipe];
}

/// Throughput of a chain of boxes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chain {
    /// Number of boxes: the first sends, the last receives, the others forward.
    pub length: usize,
    /// The connections.
    #[serde(rename = "joint")]
    pub interconnect: Interconnect,
    /// Bytes of a frame.
    pub size: u16,
    /// Slots of a ring.
    pub ring: u32,
    /// Millions of packets per second that reach the last box.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second that reach the last box.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
}

/// Measures the rate at which the first of `length` boxes can send to the last, through all others. All boxes run on
/// one core; each pair is connected by a switch of its own or by a pipe. Boxes in threads can't share a pool, so their
/// packets are copied.
pub fn chain(
    bed: &TestBed,
    length: usize,
    interconnect: Interconnect,
    size: u16,
    ring: u32,
    plan: SamplePlan,
) -> Result<Chain, MeasureError> {
    let slots = Slots::new(ring)?;
    let pool = if interconnect == Interconnect::Copy { None } else { bed.pool()? };
    let interconnect =
        if pool.is_none() && interconnect == Interconnect::Pool { Interconnect::Copy } else { interconnect };
    // The same as in the daemon.
    let quantum = slots.count() * if interconnect == Interconnect::Pipe { PIPE_RINGS } else { 1 };
    let run = |program| {
        let settings = Settings { pool: pool.clone(), quantum, ..TestBed::settings(program, slots, None) };
        bed.run_with(program, &settings)
    };
    let mut boxes = vec![run(Workload::Send(size))?];
    for _ in 2..length {
        boxes.push(run(Workload::Forward)?);
    }
    boxes.push(run(Workload::Drop)?);
    let mut hops = Vec::new();
    for (index, pair) in (0..).zip(1..boxes.len()) {
        let (before, after) = boxes.split_at_mut(pair);
        let (Some(from), Some(to)) = (before.last_mut(), after.first_mut()) else { break };
        // The first box has one port; the others send at their second port.
        let from_port = usize::from(index > 0);
        let mut table = StaticTable::new();
        table.set_default(Some(PortId(1)));
        let mut hop = SwitchRunner::new(table).map_err(attach::system)?;
        if interconnect == Interconnect::Pipe {
            hop.add_link(Box::new(BoxLink::new(attach::port(from, from_port)?, attach::port(to, 0)?)));
        } else {
            attach::attach(&mut hop, from, from_port)?;
            attach::attach(&mut hop, to, 0)?;
        }
        hops.push(hop);
    }
    forward(&mut hops, interconnect, WARM_UP)?;
    TestBed::collapse_pages(&boxes);
    let mut rates = Vec::new();
    for _ in 0..plan.runs.max(1) {
        rates.push(forward(&mut hops, interconnect, plan.time)? / 1e6);
    }
    let mpps = median(rates);
    Ok(Chain { length, interconnect, size, ring, mpps, gbps: gbps(mpps, size) })
}

/// Moves packets for `time` and until one has reached the last box; returns packets per second.
fn forward(
    hops: &mut [SwitchRunner<StaticTable>],
    interconnect: Interconnect,
    time: Duration,
) -> Result<f64, MeasureError> {
    let (begin, before) = (Instant::now(), arrived(hops, interconnect));
    loop {
        for hop in &mut *hops {
            hop.step();
        }
        let took = begin.elapsed();
        if took >= time {
            let moved = arrived(hops, interconnect) - before;
            if moved > 0.0 {
                return Ok(moved / took.as_secs_f64());
            }
            if took >= time + REPLY_TIMEOUT {
                return Err(MeasureError::Late { what: "the first packet" });
            }
        }
    }
}

/// Packets delivered to the last box.
fn arrived(hops: &mut [SwitchRunner<StaticTable>], interconnect: Interconnect) -> f64 {
    let Some(last) = hops.last_mut() else { return 0.0 };
    let counters = match interconnect {
        Interconnect::Pipe => last.link(0).map(|link| link.counters()[1]),
        Interconnect::Pool | Interconnect::Copy => last.switch().counters(PortId(1)).copied(),
    };
    counters.map_or(0, |counters| counters.sent_frames) as f64
}
