//! The time from the request for a service to the first packet of its instance on a steering switch.

use api::{Sandbox, SwitchMode};
use boundary::PlatformKind;
use std::path::Path;

use super::daemon_boot::{Daemon, DaemonBoot, box_number};
use super::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::Times;

/// The most services of a run.
const MAX_SERVICES: usize = 50;

/// Creates up to `count` services of one instance with a daemon of its own, `program daemon`, and keeps them. All
/// configurations differ, so no box is a copy of another.
pub(crate) fn service_boot(
    bed: &TestBed,
    program: &Path,
    count: usize,
    plan: SamplePlan,
) -> Result<Option<DaemonBoot>, MeasureError> {
    let sandbox = match bed.platform() {
        PlatformKind::Vm => Sandbox::Vm,
        PlatformKind::Process => Sandbox::Process,
        PlatformKind::Thread => return Ok(None),
    };
    let count = count.min(MAX_SERVICES);
    let (mut packets, mut replies) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let daemon = bed.on_all_cores(|| Daemon::start(program))?;
        let arrivals = daemon.prepare(SwitchMode::Steering, box_number)?;
        let starts = (0..count as u32).map(|number| daemon.boot_service(sandbox, number, &arrivals));
        let (first, reply): (Vec<f64>, Vec<f64>) = starts.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        packets.push(Times::of(&first));
        replies.push(Times::of(&reply));
    }
    let (first_packet_ms, reply_ms) = (Times::median(&packets), Times::median(&replies));
    Ok(Some(DaemonBoot { boxes: count, first_packet_ms, reply_ms }))
}
