//! `clickbox events`: prints the event log.

use std::process::ExitCode;

use api::{EventQuery, operation};
use clap::Args;

use crate::error::CommandError;
use crate::online::{self, Connection};
use crate::output;

/// Print events of boxes, switches and stacks.
#[derive(Args)]
#[command(after_help = "Example: clickbox events --follow --json | jq 'select(.kind == \"box_crashed\")'")]
pub(crate) struct Arguments {
    /// Keep running and print new events.
    #[arg(long, short)]
    follow: bool,
    /// Print only events after this number.
    #[arg(long, value_name = "NUMBER")]
    since: Option<u64>,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    if arguments.follow {
        output::end_with_reader(|| ());
    }
    let query = EventQuery { follow: arguments.follow, since: arguments.since };
    for event in arguments.daemon.client()?.call(&operation::EVENTS, &[], &query, &())? {
        let event = event?;
        if arguments.json {
            output::json_line(&event);
        } else {
            let text = online::line(&format!("{}  {}", event.subject, event.message));
            output::text(&format!("{:>6} {}  {text}\n", event.sequence, event.time));
        }
    }
    Ok(ExitCode::SUCCESS)
}
