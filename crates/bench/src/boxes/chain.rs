//! Packets a second through a chain of boxes.

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

/// What comes before the first run: packets have reached the end.
const WARM_UP: Duration = Duration::from_millis(200);

/// What joins the boxes of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Interconnect {
    /// Switches, which hand packets on with their buffers: boxes of one owner that share a packet pool.
    Pool,
    /// Switches, which copy packets: boxes that share nothing.
    Copy,
    /// Pipes, between boxes that share a packet pool.
    Pipe,
}

impl Interconnect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pool, Self::Copy, Self::Pipe];
}

/// How fast a chain of boxes is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chain {
    /// Boxes: the first sends, the last takes, those between send on.
    pub length: usize,
    /// What joins them.
    pub joint: Interconnect,
    /// Bytes of a frame.
    pub size: u16,
    /// Slots of a ring.
    pub ring: u32,
    /// Millions of packets a second that reach the last box.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames a second that reach the last box.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
}

/// Lets the first of `length` boxes send as fast as it can to the last, through all others. All boxes are
/// on one core; between each two is a switch of its own, or a pipe. Boxes in threads can share no pool: their packets
/// are copied.
pub fn chain(
    bed: &TestBed,
    length: usize,
    joint: Interconnect,
    size: u16,
    ring: u32,
    plan: SamplePlan,
) -> Result<Chain, MeasureError> {
    let slots = Slots::new(ring)?;
    let pool = if joint == Interconnect::Copy { None } else { bed.pool()? };
    let joint = if pool.is_none() && joint == Interconnect::Pool { Interconnect::Copy } else { joint };
    // As in the daemon.
    let quantum = slots.count() * if joint == Interconnect::Pipe { PIPE_RINGS } else { 1 };
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
        // The first box has one port; the others send on by their second.
        let from_port = usize::from(index > 0);
        let mut table = StaticTable::new();
        table.set_default(Some(PortId(1)));
        let mut hop = SwitchRunner::new(table).map_err(attach::system)?;
        if joint == Interconnect::Pipe {
            hop.add_link(Box::new(BoxLink::new(attach::port(from, from_port)?, attach::port(to, 0)?)));
        } else {
            attach::attach(&mut hop, from, from_port)?;
            attach::attach(&mut hop, to, 0)?;
        }
        hops.push(hop);
    }
    carry(&mut hops, joint, WARM_UP)?;
    TestBed::settle(&boxes);
    let mut rates = Vec::new();
    for _ in 0..plan.runs.max(1) {
        rates.push(carry(&mut hops, joint, plan.time)? / 1e6);
    }
    let mpps = median(rates);
    Ok(Chain { length, joint, size, ring, mpps, gbps: gbps(mpps, size) })
}

/// Moves packets for so long, and until one reached the last box; how many did in a second.
fn carry(
    hops: &mut [SwitchRunner<StaticTable>],
    joint: Interconnect,
    time: Duration,
) -> Result<f64, MeasureError> {
    let (begin, before) = (Instant::now(), arrived(hops, joint));
    loop {
        for hop in &mut *hops {
            hop.step();
        }
        let took = begin.elapsed();
        if took >= time {
            let moved = arrived(hops, joint) - before;
            if moved > 0.0 {
                return Ok(moved / took.as_secs_f64());
            }
            if took >= time + REPLY_TIMEOUT {
                return Err(MeasureError::Late { what: "the first packet" });
            }
        }
    }
}

/// Packets that were given to the last box.
fn arrived(hops: &mut [SwitchRunner<StaticTable>], joint: Interconnect) -> f64 {
    let Some(last) = hops.last_mut() else { return 0.0 };
    let counters = match joint {
        Interconnect::Pipe => last.link(0).map(|link| link.counters()[1]),
        Interconnect::Pool | Interconnect::Copy => last.switch().counters(PortId(1)).copied(),
    };
    counters.map_or(0, |counters| counters.sent_frames) as f64
}
