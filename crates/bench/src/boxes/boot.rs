//! The time that a box takes to start and to process its first packet. Boxes that run Click run a firewall of ten
//! rules.

use crate::boxes::daemon_boot::{DaemonBoot, daemon_boot};
use crate::boxes::feed_port::FeedPort;
use crate::boxes::service_boot::service_boot;
use crate::boxes::service_death::service_death;
use crate::boxes::test_bed::{REPLY_TIMEOUT, TestBed};
use crate::boxes::workload::{PACKET, Workload};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{Times, median, milliseconds, rounded};
use boundary::{PlatformKind, Slots};
use sandbox::{Sandbox, Snapshot, SnapshotError};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Slots of the box's port: the minimum, since the measurement does not depend on it.
const SLOTS: u32 = 64;

/// Maximum number of points of the start-up curve.
const CURVE_POINTS: usize = 40;

/// Start-up times of boxes that are started one after the other and all kept, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Boot {
    /// Number of boxes.
    pub boxes: usize,
    /// From the request to a daemon to the first packet on a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daemon_ms: Option<DaemonBoot>,
    /// From the request for a service of one instance to its first packet on a steering switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_ms: Option<DaemonBoot>,
    /// From when the kernel tells of the end of an instance of a service to the next packet of its flow, which another
    /// instance passes. For processes.
    pub death_ms: Option<Times>,
    /// With the sandbox library alone, from the call to the first processed packet: without daemon and switch.
    pub boot_ms: Times,
    /// The steps of a start.
    pub steps_ms: BootSteps,
    /// From the request to install a configuration to the reply.
    pub install_ms: Times,
    /// Mean private memory of a box without its rings, in kilobytes.
    #[serde(serialize_with = "rounded")]
    pub private_kb: f64,
    /// From the call to the first processed packet, for copies of an installed box, if boxes can be copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_ms: Option<Times>,
    /// Start-up time by the number of boxes that already exist: medians over stretches of the sequence.
    pub curve_ms: Vec<(f64, f64)>,
    /// Removal of a box.
    #[serde(serialize_with = "rounded")]
    pub remove_ms: f64,
}

/// The medians of the steps of a start, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BootSteps {
    /// Memory, mailbox, ports and, for a virtual machine, the machine.
    #[serde(serialize_with = "rounded")]
    pub create: f64,
    /// For a process, its start.
    #[serde(serialize_with = "rounded")]
    pub start: f64,
    /// From the request to the reply, including the box's own initialisation.
    #[serde(serialize_with = "rounded")]
    pub install: f64,
    /// From the packet to the reply.
    #[serde(serialize_with = "rounded")]
    pub first_packet: f64,
}

/// The duration of each step of one start, in the order of [`BootSteps`].
pub(crate) type StepTimes = [f64; 4];

/// Starts `count` boxes one after the other: with the sandbox library, then as copies of one of them, and, if `program`
/// is the path of the `clickbox` program, with a daemon.
pub fn boot(
    bed: &TestBed,
    count: usize,
    plan: SamplePlan,
    program: Option<&Path>,
) -> Result<Boot, MeasureError> {
    // First, before this process has created many boxes, so that the machine is as free as for a daemon.
    let (daemon, service, death) = match program {
        Some(program) => (
            daemon_boot(bed, program, count, plan)?,
            service_boot(bed, program, count, plan)?,
            service_death(bed, program, plan)?,
        ),
        None => (None, None, None),
    };
    let (mut whole, mut installs, mut steps) = (Vec::new(), Vec::new(), [const { Vec::new() }; 4]);
    let (mut private, mut removals, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    let mut copies = Vec::new();
    for _ in 0..plan.runs.max(1) {
        let (mut boxes, mut starts) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (sandbox, start) = start(bed)?;
            boxes.push(sandbox);
            starts.push(start);
        }
        let sums: Vec<f64> = starts.iter().map(|start| start.iter().sum()).collect();
        whole.push(Times::of(&sums));
        curves.push(sums);
        installs.push(Times::of(&starts.iter().map(|start| start[2]).collect::<Vec<_>>()));
        for (step, medians) in steps.iter_mut().enumerate() {
            medians.push(median(starts.iter().filter_map(|start| start.get(step).copied()).collect()));
        }
        let memory: Result<Vec<usize>, _> = boxes.iter().map(Sandbox::private_memory).collect();
        private.push(memory?.iter().sum::<usize>() as f64 / 1024.0 / count.max(1) as f64);
        let begin = Instant::now();
        drop(boxes);
        removals.push(milliseconds(begin.elapsed()) / count.max(1) as f64);
        if bed.platform() != PlatformKind::Thread {
            copies.push(Times::of(&copy(bed, count)?));
        }
    }
    let [create, start, install, first_packet] = steps.map(median);
    Ok(Boot {
        boxes: count,
        daemon_ms: daemon,
        service_ms: service,
        death_ms: death,
        boot_ms: Times::median(&whole),
        steps_ms: BootSteps { create, start, install, first_packet },
        install_ms: Times::median(&installs),
        private_kb: median(private),
        copy_ms: (!copies.is_empty()).then(|| Times::median(&copies)),
        curve_ms: curve(count, &curves),
        remove_ms: median(removals),
    })
}

/// Makes `count` copies of one box and keeps them; returns the time that each took to its first packet. The
/// installation of the original and the snapshot happen once and are excluded.
fn copy(bed: &TestBed, count: usize) -> Result<Vec<f64>, MeasureError> {
    let program = Workload::Firewall;
    let settings = TestBed::settings(program, Slots::new(SLOTS)?, None);
    let mut original = bed.run(program, Slots::new(SLOTS)?, None)?;
    let snapshot = snapshot(&mut original)?;
    let (mut boxes, mut times) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let begin = Instant::now();
        let mut sandbox = bed.host().restore(bed.target(), &snapshot, &settings)?;
        bed.start(&mut sandbox)?;
        FeedPort::take(&mut sandbox, 0)?.exchange(&PACKET)?;
        times.push(milliseconds(begin.elapsed()));
        boxes.push(sandbox);
    }
    Ok(times)
}

/// A snapshot of a box as soon as it is idle and its events are read.
fn snapshot(sandbox: &mut Sandbox) -> Result<Snapshot, MeasureError> {
    loop {
        match sandbox.snapshot(REPLY_TIMEOUT) {
            // It is idle, so that it has sent its events.
            Err(SnapshotError::Busy) if sandbox.event()?.is_some() => {}
            result => return Ok(result?),
        }
    }
}

/// The medians, over all runs, of stretches of starts.
fn curve(count: usize, runs: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let stretch = count.div_ceil(CURVE_POINTS).max(1);
    let point = |from: usize| {
        let starts = runs.iter().flat_map(|run| run.iter().skip(from).take(stretch));
        let time = (median(starts.copied().collect()) * 1e3).round() / 1e3;
        ((from + stretch / 2) as f64, time)
    };
    (0..count).step_by(stretch).map(point).collect()
}

/// Starts a box and sends a packet through it.
pub(crate) fn start(bed: &TestBed) -> Result<(Sandbox, StepTimes), MeasureError> {
    let program = Workload::Firewall;
    let configuration = program.configuration(bed.box_program());
    let settings = TestBed::settings(program, Slots::new(SLOTS)?, None);
    let mut clock = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        milliseconds(now.duration_since(std::mem::replace(&mut clock, now)))
    };
    let mut sandbox = bed.create(&settings)?;
    let create = lap();
    bed.start(&mut sandbox)?;
    let start = lap();
    sandbox.install("", &configuration, REPLY_TIMEOUT)?;
    let install = lap();
    FeedPort::take(&mut sandbox, 0)?.exchange(&PACKET)?;
    Ok((sandbox, [create, start, install, lap()]))
}
