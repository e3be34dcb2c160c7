//! `clickbox audit`: prints the audit log.

use std::process::ExitCode;

use api::{AuditQuery, operation};
use clap::Args;

use crate::error::CommandError;
use crate::online::{self, Connection};
use crate::output;

/// Print who changed what: the audit log.
///
/// It has each request that changes something, also those that were refused. Only administrators can read it. The daemon
/// keeps it in files beside its store.
#[derive(Args)]
#[command(after_help = "Example: clickbox audit --json | jq 'select(.user == \"alice\")'")]
pub(crate) struct Arguments {
    /// Keep running and print new entries.
    #[arg(long, short)]
    follow: bool,
    /// Print only entries after this number.
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
    let query = AuditQuery { follow: arguments.follow, since: arguments.since };
    for entry in arguments.daemon.client()?.call(&operation::AUDIT, &[], &query, &())? {
        let entry = entry?;
        if arguments.json {
            output::json_line(&entry);
        } else {
            let parts = [&entry.user, &entry.peer, &entry.operation, &entry.object, &entry.detail];
            let parts: Vec<&str> =
                parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let text = online::line(&format!("{}: {}", parts.join("  "), entry.result));
            output::text(&format!("{:>6} {}  {text}\n", entry.sequence, entry.time));
        }
    }
    Ok(ExitCode::SUCCESS)
}
