//! `clickbox fabric drain` and `clickbox fabric restart`.

use std::process::ExitCode;

use api::{BoxName, DrainStatus, FabricRestart, RestartQuery, operation};
use clap::{Args, Subcommand};

use crate::error::CommandError;
use crate::online::Connection;
use crate::output;

/// The commands.
#[derive(Subcommand)]
pub(super) enum Control {
    Drain(Drain),
    Restart(Restart),
}

/// Take no new boxes and start none, and list those that still run.
///
/// Boxes that run go on, and restart by their policy after a crash. Draining lasts until `--cancel` or
/// `clickbox fabric restart`, also over restarts of the daemon.
#[derive(Args)]
#[command(after_help = "Examples: clickbox fabric drain\n          clickbox fabric drain --cancel")]
pub(super) struct Drain {
    /// Take and start boxes again.
    #[arg(long)]
    cancel: bool,
    /// Print JSON: {"draining", "running"}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Stop all boxes, start another fabric, and bring everything back.
///
/// Boxes start again with fresh state: packets in flight are lost, and counters start at zero. The launcher starts the
/// program that is at the path of its own.
#[derive(Args)]
#[command(after_help = "Example: clickbox fabric restart --force")]
pub(super) struct Restart {
    /// Restart it even if boxes run.
    #[arg(long, short)]
    force: bool,
    /// Print JSON: {"boxes", "missing", "away_ms"}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs it.
pub(super) fn run(control: &Control) -> Result<ExitCode, CommandError> {
    match control {
        Control::Drain(drain) => {
            let client = drain.daemon.client()?;
            let status = match drain.cancel {
                true => client.ask(&operation::UNDRAIN_FABRIC, &[])?,
                false => client.ask(&operation::DRAIN_FABRIC, &[])?,
            };
            match drain.json {
                true => output::json(&status),
                false => output::text(&drained(&status)),
            }
            Ok(ExitCode::SUCCESS)
        }
        Control::Restart(restart) => {
            let query = RestartQuery { force: restart.force };
            let done = restart.daemon.client()?.call(&operation::RESTART_FABRIC, &[], &query, &())?;
            match restart.json {
                true => output::json(&done),
                false => output::text(&restarted(&done)),
            }
            // A box that ran before does not.
            Ok(ExitCode::from(u8::from(!done.missing.is_empty())))
        }
    }
}

fn drained(status: &DrainStatus) -> String {
    let what = match status.draining {
        true => "the fabric takes no new boxes and starts none",
        false => "the fabric takes new boxes and starts them",
    };
    let rest = match (status.draining, status.running.as_slice()) {
        (false, _) => String::new(),
        (true, []) => "; no box runs".into(),
        (true, [name]) => format!("; 1 box still runs: {name}"),
        (true, names) => format!("; {} boxes still run: {}", names.len(), listed(names)),
    };
    format!("{what}{rest}\n")
}

fn restarted(done: &FabricRestart) -> String {
    let away = match done.boxes.as_slice() {
        [] => format!("the fabric was restarted in {:.1} ms", done.away_ms),
        [name] => format!("the fabric was restarted; {name} was away for {:.1} ms", done.away_ms),
        names => {
            format!("the fabric was restarted; {} boxes were away for {:.1} ms", names.len(), done.away_ms)
        }
    };
    match done.missing.as_slice() {
        [] => format!("{away}\n"),
        names => format!("{away}\nnot running again: {}\n", listed(names)),
    }
}

fn listed(names: &[BoxName]) -> String {
    names.iter().map(BoxName::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<BoxName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_messages_name_boxes() {
        let status = |draining, running: &[&str]| drained(&DrainStatus { draining, running: names(running) });
        assert_eq!(status(true, &[]), "the fabric takes no new boxes and starts none; no box runs\n");
        assert!(status(true, &["a"]).ends_with("; 1 box still runs: a\n"));
        assert!(status(true, &["a", "b"]).ends_with("; 2 boxes still run: a, b\n"));
        assert_eq!(status(false, &["a"]), "the fabric takes new boxes and starts them\n");
        let done = |boxes: &[&str], missing: &[&str]| {
            restarted(&FabricRestart { boxes: names(boxes), missing: names(missing), away_ms: 12.34 })
        };
        assert_eq!(done(&[], &[]), "the fabric was restarted in 12.3 ms\n");
        assert_eq!(done(&["a"], &[]), "the fabric was restarted; a was away for 12.3 ms\n");
        let text = done(&["a", "b"], &["c"]);
        assert_eq!(text, "the fabric was restarted; 2 boxes were away for 12.3 ms\nnot running again: c\n");
    }
}
