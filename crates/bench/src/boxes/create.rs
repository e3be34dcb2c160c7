//! The time from the start of the command `create` to the first packet of the new box at a port of its switch.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use api::client::ClientError;
use api::{HandlerWrite, Sandbox, SwitchMode, operation};
use boundary::PlatformKind;
use serde::Serialize;

use super::daemon_boot::{Arrivals, Daemon, SWITCH, box_number, configuration};
use super::state::Transaction;
use super::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{Times, microseconds, milliseconds, percentile};

/// Bytes that are appended to a file before each fsync: about those of a transaction.
const BLOCK: [u8; 4096] = [0; 4096];

/// Start-up times of boxes that are created one after the other, and all kept. Each sends a packet to its switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Create {
    /// Number of boxes.
    pub boxes: usize,
    /// From the start of `clickbox create` to the box's first packet at another port of the switch.
    pub command_to_packet_ms: Times,
    /// From the start of `clickbox create` to its end.
    pub command_ms: Times,
    /// From a request on an open connection to the box's first packet.
    pub request_to_packet_ms: Times,
    /// From a request on an open connection to the reply.
    pub request_ms: Times,
    /// Reads of a handler on an open connection.
    pub read_us: Transaction,
    /// Writes of a handler that changes no configuration.
    pub write_us: Transaction,
    /// A write of 4 KB with an fsync, on the disk with the store.
    pub fsync_ms: Times,
}

/// Starts a daemon, `program daemon`, and creates `count` boxes by the command and as many by requests, in turns.
pub fn create(bed: &TestBed, program: &Path, count: usize, plan: SamplePlan) -> Result<Create, MeasureError> {
    let (sandbox, option) = match bed.platform() {
        PlatformKind::Vm => (Sandbox::Vm, "vm"),
        PlatformKind::Process => (Sandbox::Process, "process"),
        PlatformKind::Thread => return Err(MeasureError::NoThreads),
    };
    let mut times = [const { Vec::new() }; 5];
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..plan.runs.max(1) {
        let daemon = bed.on_all_cores(|| Daemon::start(program))?;
        let arrivals = daemon.prepare(SwitchMode::Static, box_number)?;
        let mut run = [const { Vec::new() }; 5];
        for number in 0..count as u32 {
            let command = by_command(&daemon, program, (2 * number, option), &arrivals)?;
            let request = daemon.boot(sandbox, 2 * number + 1, &arrivals)?;
            let sample = [command.0, command.1, request.0, request.1, fsync(daemon.folder())?];
            run.iter_mut().zip(sample).for_each(|(times, time)| times.push(time));
        }
        times.iter_mut().zip(&run).for_each(|(times, run)| times.push(Times::of(run)));
        reads
            .push(repeat(plan, || daemon.client().ask(&operation::READ, &["box0", "seen.count"]).map(drop))?);
        writes.push(repeat(plan, || {
            let write = HandlerWrite::default();
            daemon.client().send(&operation::WRITE, &["box0", "seen.reset_counts"], &write).map(drop)
        })?);
    }
    let [command_to_packet_ms, command_ms, request_to_packet_ms, request_ms, fsync_ms] =
        times.map(|runs| Times::median(&runs));
    let (read_us, write_us) = (Transaction::median(&reads), Transaction::median(&writes));
    Ok(Create {
        boxes: 2 * count,
        command_to_packet_ms,
        command_ms,
        request_to_packet_ms,
        request_ms,
        read_us,
        write_us,
        fsync_ms,
    })
}

/// Creates a box by the command; returns the milliseconds to its first packet and to the end of the command.
fn by_command(
    daemon: &Daemon,
    program: &Path,
    (number, sandbox): (u32, &str),
    arrivals: &Arrivals,
) -> Result<(f64, f64), MeasureError> {
    let file = daemon.folder().join("box.click");
    std::fs::write(&file, configuration(number)).map_err(MeasureError::Folder)?;
    let mut command = Command::new(program);
    command.arg("create").arg(format!("box{number}")).arg(&file);
    command.args(["--attach", &format!("{SWITCH},transparent"), "--sandbox", sandbox, "--socket"]);
    command.arg(daemon.socket()).stdin(Stdio::null()).stdout(Stdio::null());
    // The child is started by posix_spawn.
    daemon.time(number, arrivals, |_| match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(MeasureError::Command(status)),
        Err(error) => Err(MeasureError::Daemon(error)),
    })
}

/// The milliseconds that a write of 4 KB with an fsync takes in a folder.
fn fsync(folder: &Path) -> Result<f64, MeasureError> {
    let mut file =
        File::options().create(true).append(true).open(folder.join("fsync")).map_err(MeasureError::Folder)?;
    let begin = Instant::now();
    file.write_all(&BLOCK).and_then(|()| file.sync_all()).map_err(MeasureError::Folder)?;
    Ok(milliseconds(begin.elapsed()))
}

/// Makes requests one after the other.
fn repeat(
    plan: SamplePlan,
    mut request: impl FnMut() -> Result<(), ClientError>,
) -> Result<Transaction, MeasureError> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < plan.time {
        let start = Instant::now();
        request()?;
        times.push(microseconds(start.elapsed()));
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(Transaction { p50: percentile(&times, 50), p99: percentile(&times, 99) })
}
