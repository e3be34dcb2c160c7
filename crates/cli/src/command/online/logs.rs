//! `clickbox logs`: what a box said.

use std::process::ExitCode;

use api::{BoxName, LogLine, LogQuery, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, CommandError, Connection};
use crate::output;

/// Print what a box wrote to its console.
#[derive(Args)]
#[command(after_help = "Example: clickbox logs --follow --lines 20 fw")]
pub(crate) struct Arguments {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Go on with lines to come.
    #[arg(long, short)]
    follow: bool,
    /// Print so many of the lines so far.
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u32>,
    /// Print the time of each line.
    #[arg(long, short)]
    time: bool,
    /// Print JSON: an object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
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
