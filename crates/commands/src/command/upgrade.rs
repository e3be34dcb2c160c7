//! `clickbox upgrade`: replaces the daemon by another program, while boxes and traffic go on.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use api::client::ClientError;
use api::{Event, EventKind, EventQuery, Upgrade, UpgradeReply, operation};
use clap::Args;
use daemon::{ProgramDescription, serve_upgrades};
use serde::Serialize;

use crate::error::{CommandError, FileError};
use crate::online::{Client, Connection};
use crate::output;

/// How long the command waits for the new daemon.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Pause between two questions whether it serves.
const PAUSE: Duration = Duration::from_millis(2);

/// Replace the daemon while boxes and traffic go on.
///
/// The daemon checks that the new program reads its store and speaks with the fabric that runs. It then hands its sockets
/// to the new program, which it starts with its own arguments, and ends when that is ready. If the new program does not
/// become ready, the daemon goes on. Requests that come meanwhile wait. Boxes keep their state. The fabric and the launcher
/// keep their program: `clickbox fabric restart` replaces the fabric's.
#[derive(Args)]
#[command(after_help = "Examples: clickbox upgrade\n          clickbox upgrade /opt/clickbox-2/clickbox")]
pub(crate) struct Arguments {
    /// Program to run [default: the file at the path of the daemon's program]
    #[arg(value_name = "PROGRAM", value_hint = clap::ValueHint::FilePath)]
    program: Option<PathBuf>,
    /// Print JSON: {"program", "previous", "version", "pid", "running", "away_ms"}.
    #[arg(long)]
    json: bool,
    /// Describe this program to a daemon that it is to replace.
    #[arg(long, hide = true)]
    describe: bool,
    /// Start the successor of the daemon that started this process.
    #[arg(long, hide = true, conflicts_with = "describe")]
    helper: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// The output.
#[derive(Serialize)]
struct Upgraded {
    #[serde(flatten)]
    reply: UpgradeReply,
    /// The time from the daemon's answer to that of the new one.
    away_ms: f64,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    if arguments.describe {
        output::json_line(&ProgramDescription::own());
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.helper {
        serve_upgrades(None).map_err(CommandError::Helper)?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = arguments.program.as_ref().map(|path| {
        let whole = std::path::absolute(path).map_err(|error| FileError::new(path, error))?;
        Ok::<_, CommandError>(whole.display().to_string())
    });
    let request = Upgrade { program: program.transpose()? };
    let client = arguments.daemon.client()?;
    let last = events(&client)?.last().map_or(0, |event| event.sequence);
    let reply = client.send(&operation::UPGRADE_DAEMON, &[], &request)?;
    let start = Instant::now();
    let pid = wait(&client, reply.pid, last, start + TIMEOUT)?;
    let away = start.elapsed();
    let done = Upgraded { reply: UpgradeReply { pid, ..reply }, away_ms: away.as_secs_f64() * 1e3 };
    match arguments.json {
        true => output::json(&done),
        false => output::text(&sentence(&done)),
    }
    Ok(ExitCode::SUCCESS)
}

fn events(client: &Client) -> Result<Vec<Event>, CommandError> {
    let query = EventQuery::default();
    let lines = client.call(&operation::EVENTS, &[], &query, &())?;
    Ok(lines.collect::<Result<_, _>>()?)
}

/// Waits until a daemon other than this process serves. Returns its process ID.
fn wait(client: &Client, before: u32, last: u64, deadline: Instant) -> Result<u32, CommandError> {
    loop {
        match client.ask(&operation::HOST, &[]) {
            Ok(status) if status.pid != before => return Ok(status.pid),
            Ok(_) => {
                let failed = |event: &Event| event.kind == EventKind::UpgradeFailed && event.sequence > last;
                if let Some(event) = events(client).unwrap_or_default().into_iter().find(failed) {
                    return Err(CommandError::NotUpgraded(event.message));
                }
            }
            Err(error @ CommandError::Client(ClientError::NoDaemon { .. })) => return Err(error),
            // The old daemon refuses requests while it ends, and closes connections.
            Err(_) => {}
        }
        if Instant::now() > deadline {
            return Err(CommandError::NotUpgraded("the new daemon does not answer in time".into()));
        }
        thread::sleep(PAUSE);
    }
}

fn sentence(done: &Upgraded) -> String {
    let Upgraded { reply, away_ms } = done;
    let versions = match reply.previous == reply.version {
        true => format!("clickbox {}", reply.version),
        false => format!("clickbox {}, which replaces {}", reply.version, reply.previous),
    };
    let boxes = match reply.running {
        0 => String::new(),
        1 => "; 1 box went on".into(),
        running => format!("; {running} boxes went on"),
    };
    format!("the daemon is now {versions} (process {}), after {away_ms:.0} ms{boxes}\n", reply.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_versions_and_boxes() {
        let done = |version: &str, running| {
            let (program, version) = ("/bin/clickbox".into(), version.into());
            let reply = UpgradeReply { program, previous: "1.0.0".into(), version, pid: 7, running };
            sentence(&Upgraded { reply, away_ms: 12.3 })
        };
        assert_eq!(done("1.0.0", 0), "the daemon is now clickbox 1.0.0 (process 7), after 12 ms\n");
        let newer = "the daemon is now clickbox 1.1.0, which replaces 1.0.0 (process 7), after 12 ms; 1 box went on\n";
        assert_eq!(done("1.1.0", 1), newer);
    }
}
