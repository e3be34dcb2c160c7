//! How long the daemon takes to rebuild a fabric that was killed.

use super::requests::{NewBox, create_box, name};
use crate::error::MeasureError;
use crate::kills::{Processes, last_event, rebuild_ms, rebuilt};
use crate::statistics::{Times, milliseconds};
use crate::temporary_folder::TemporaryFolder;
use api::client::Client;
use api::{BoxState, CreateSwitch, Owner, Ring, Sandbox, operation};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The switch of all boxes. It learns addresses, as one that is created without options.
const SWITCH: &str = "lan";

/// The configuration of all boxes. They are equal, so that they start as copies of a template.
const CONFIGURATION: &str = "FromDevice(0) -> Counter -> ToDevice(0);";

/// The time between a rebuild and the next kill. The launcher prepares the next spare meanwhile.
const PAUSE: Duration = Duration::from_millis(1200);

/// What a rebuild may take, in milliseconds: in all, and for each box.
const GOAL_MS: f64 = 5.0;
const GOAL_MS_PER_BOX: f64 = 1.0;

/// Rebuilds of a fabric that was killed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rebuild {
    /// Equal boxes at one switch.
    pub boxes: u16,
    /// Kills.
    pub runs: u32,
    /// What a rebuild may take.
    pub goal_ms: f64,
    /// From the moment at which the daemon notices the end of the fabric until all boxes run.
    pub rebuild_ms: Times,
    /// From the kill until then. Its end is known in whole milliseconds.
    pub away_ms: Times,
}

/// Starts `program daemon` for the measurement, and kills its fabric `runs` times while it has this number of boxes.
pub fn rebuild(program: &Path, sandbox: Sandbox, boxes: u16, runs: u32) -> Result<Rebuild, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let mut processes = Processes::new(program, folder.path());
    processes.start().map_err(MeasureError::Daemon)?;
    let client = processes.client()?;
    client.send(&operation::CREATE_SWITCH, &[], &CreateSwitch::new(name(SWITCH)?))?;
    for number in 0..boxes {
        let [high, low] = number.to_be_bytes();
        let (of, mac) = (format!("box{number}"), format!("02:00:00:00:{high:02x}:{low:02x}"));
        let port = Some((SWITCH, mac.as_str()));
        let (owner, configuration) = (Owner::default(), CONFIGURATION.into());
        create_box(
            &client,
            NewBox { name: &of, owner, port, configuration, ring: Ring::default(), sandbox },
        )?;
    }
    let (mut rebuilds, mut away) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        sleep(PAUSE);
        let times = kill(&client)?;
        rebuilds.push(times.0);
        away.push(times.1);
        check(&client, usize::from(boxes))?;
    }
    Ok(Rebuild {
        boxes,
        runs,
        goal_ms: GOAL_MS + GOAL_MS_PER_BOX * f64::from(boxes),
        rebuild_ms: Times::of(&rebuilds),
        away_ms: Times::of(&away),
    })
}

/// Kills the fabric; returns the milliseconds that the daemon took to rebuild it, and those since the kill.
fn kill(client: &Client) -> Result<(f64, f64), MeasureError> {
    let last = last_event(client)?;
    let fabrics = client.ask(&operation::HOST, &[])?.fabrics;
    let fabric = fabrics.first().and_then(|fabric| Pid::from_raw(i32::try_from(fabric.pid).ok()?));
    let fabric = fabric.ok_or(MeasureError::Late { what: "the fabric" })?;
    let begin = since_epoch(SystemTime::now());
    kill_process(fabric, Signal::KILL).map_err(|error| MeasureError::Daemon(error.into()))?;
    // The answer of the daemon ends with the event, so that no other request takes processor time meanwhile.
    let late = MeasureError::Late { what: "the rebuild of the fabric" };
    let Some(event) = rebuilt(client, last, true)? else { return Err(late) };
    let Some(reported) = rebuild_ms(&event) else { return Err(late) };
    Ok((reported, since_epoch(event.time.system()) - begin))
}

fn since_epoch(time: SystemTime) -> f64 {
    milliseconds(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Checks that all boxes run.
fn check(client: &Client, boxes: usize) -> Result<(), MeasureError> {
    let found = client.ask(&operation::LIST_BOXES, &[])?;
    let run = found.iter().filter(|found| found.state == BoxState::Running).count();
    if run == boxes { Ok(()) } else { Err(MeasureError::Missing { expected: boxes, found: run }) }
}
