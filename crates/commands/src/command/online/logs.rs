//! `clickbox logs`: prints the log of a box.

use std::process::ExitCode;

use api::{BoxName, LogLine, LogQuery, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::online::{self, Connection};
use crate::output;

/// Print the log of a box.
#[derive(Args)]
#[command(after_help = "Example: clickbox logs --follow --lines 20 fw")]
pub(crate) struct Arguments {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Keep running and print new lines.
    #[arg(long, short)]
    follow: bool,
    /// Print only the last N lines.
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u32>,
    /// Print the time of each line.
    #[arg(long, short)]
    time: bool,
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
    let query = LogQuery { follow: arguments.follow, lines: arguments.lines };
    let client = arguments.daemon.client()?;
    for line in client.call(&operation::LOGS, &[arguments.name.as_str()], &query, &())? {
        let line = line?;
        if arguments.json {
            output::json_line(&line);
        } else {
            output::text(&text(&line, arguments.time));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(line: &LogLine, has_time: bool) -> String {
    let lost = if line.lost > 0 { format!("({} lines were lost)\n", line.lost) } else { String::new() };
    let time = if has_time { format!("{} ", line.time) } else { String::new() };
    let from = match line.configuration.as_deref() {
        None => "-- ".to_string(),
        Some("main" | "") => String::new(),
        Some(name) => format!("{name}: "),
    };
    format!("{lost}{time}{}{}\n", online::line(&from), online::line(&line.text))
}
