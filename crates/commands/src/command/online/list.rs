//! `clickbox ps`: lists the boxes.

use std::process::ExitCode;

use api::{BoxState, BoxStatus, Owner, operation};
use clap::Args;

use crate::error::CommandError;
use crate::online::{self, Column, Connection, Table};
use crate::output;

/// List boxes.
#[derive(Args)]
#[command(after_help = "Example: clickbox ps --label site=north")]
pub(crate) struct Arguments {
    /// Print names only.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// List only boxes of this owner.
    #[arg(long)]
    owner: Option<Owner>,
    /// List only boxes with this label. May be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Print JSON: a list of boxes.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const COLUMNS: &[Column] = &[
    Column::flexible("NAME", 10),
    Column::text("STATE"),
    Column::text("SANDBOX"),
    Column::number("UPTIME"),
    Column::number("RESTARTS"),
    Column::number("CPU"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::number("DROP/S"),
];

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let mut boxes = arguments.daemon.client()?.ask(&operation::LIST_BOXES, &[])?;
    let none = match boxes.is_empty() {
        true => "there are no boxes: create one with `clickbox create NAME FILE`",
        false => "no box has that owner and those labels: `clickbox ps` lists all",
    };
    boxes.retain(|status| {
        let has =
            |label: &String| status.labels.iter().any(|(key, value)| *label == format!("{key}={value}"));
        arguments.owner.as_ref().is_none_or(|owner| *owner == status.owner)
            && arguments.labels.iter().all(has)
    });
    if arguments.json {
        output::json(&boxes);
    } else if arguments.quiet {
        output::text(&boxes.iter().map(|status| format!("{}\n", status.name)).collect::<String>());
    } else {
        let table = Table { columns: COLUMNS, rows: boxes.iter().map(row).collect() };
        online::print(&table, none);
    }
    Ok(ExitCode::SUCCESS)
}

/// The sandbox, the number of its cores if there are several, and the CPU of a dedicated box.
fn sandbox(status: &BoxStatus) -> String {
    let sandbox = online::cores_of(status);
    match status.processor.filter(|_| status.cores.is_one()) {
        Some(number) => format!("{sandbox}, cpu {number}"),
        None => sandbox,
    }
}

fn row(status: &BoxStatus) -> Vec<String> {
    let uptime = match status.state {
        BoxState::Running | BoxState::Suspended => online::uptime(status.uptime_ms),
        _ => "-".into(),
    };
    vec![
        status.name.to_string(),
        online::state(status.state).into(),
        sandbox(status),
        uptime,
        status.restarts.to_string(),
        online::share(status.rates.cores),
        online::rate(status.rates.received_packets),
        online::rate(status.rates.sent_packets),
        online::rate(status.rates.dropped_packets),
    ]
}
