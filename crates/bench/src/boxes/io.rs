//! Packets per second through one box.

use crate::boxes::feed_port::FeedPort;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::Workload;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use boundary::Slots;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Duration of the warm-up, which touches the memory and fills the caches.
const WARM_UP: Duration = Duration::from_millis(50);

/// Visits to the box between two readings of the clock.
const VISITS_PER_CLOCK_READ: u32 = 16;

/// The box's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IoMode {
    /// Generates packets.
    Send,
    /// Discards packets.
    Receive,
    /// Forwards packets from one port to another.
    Forward,
    /// Returns packets with their addresses swapped.
    Mirror,
}

/// Packet rate of one box.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Io {
    /// Its task.
    pub mode: IoMode,
    /// Bytes of a frame.
    pub size: u16,
    /// Slots of a ring.
    pub ring: u32,
    /// Millions of packets per second.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
}

/// Gigabits per second of `mpps` million frames per second.
pub(crate) fn gbps(mpps: f64, size: u16) -> f64 {
    mpps * f64::from(size) * 8.0 / 1e3
}

/// Feeds one box at full speed, and receives what it sends.
pub fn io(bed: &TestBed, mode: IoMode, size: u16, ring: u32, plan: SamplePlan) -> Result<Io, MeasureError> {
    let program = match mode {
        IoMode::Send => Workload::Send(size),
        IoMode::Receive => Workload::Drop,
        IoMode::Forward => Workload::Forward,
        IoMode::Mirror => Workload::Mirror,
    };
    let mut sandbox = bed.run(program, Slots::new(ring)?, None)?;
    let ports = (0..program.ports()).map(|port| FeedPort::take(&mut sandbox, port));
    let mut ports = ports.collect::<Result<Vec<_>, _>>()?;
    let packet = vec![7; usize::from(size)];
    run(&mut ports, mode, &packet, WARM_UP)?;
    TestBed::collapse_pages([&sandbox]);
    let mut rates = Vec::new();
    for _ in 0..plan.runs.max(1) {
        rates.push(run(&mut ports, mode, &packet, plan.time)? / 1e6);
    }
    let mpps = median(rates);
    Ok(Io { mode, size, ring, mpps, gbps: gbps(mpps, size) })
}

/// Moves packets for `time` and until one has passed; returns packets per second.
fn run(ports: &mut [FeedPort], mode: IoMode, packet: &[u8], time: Duration) -> Result<f64, MeasureError> {
    let begin = Instant::now();
    let mut moved = 0;
    loop {
        for _ in 0..VISITS_PER_CLOCK_READ {
            moved += match (mode, &mut *ports) {
                (IoMode::Receive, [port, ..]) => port.fill(packet)?,
                (IoMode::Send, [port, ..]) => port.drain()?,
                (IoMode::Forward, [from, to, ..]) => {
                    from.fill(packet)?;
                    to.drain()?
                }
                (_, [port, ..]) => {
                    port.fill(packet)?;
                    port.drain()?
                }
                (_, []) => 0,
            };
        }
        let took = begin.elapsed();
        if took >= time && moved > 0 {
            return Ok(moved as f64 / took.as_secs_f64());
        }
        if took >= time + REPLY_TIMEOUT {
            return Err(MeasureError::Late { what: "the first packet" });
        }
    }
}
