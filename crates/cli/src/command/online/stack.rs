//! `clickbox up`, `diff`, `confirm`, `rollback`, `down`, `stacks`: boxes and switches by the set.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::client::Receive;
use api::operation::{self, Nothing, Operation};
use api::{ApplyQuery, ChangeAction, Changes, StackName};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, Column, CommandError, Connection, StackFile, Table};
use crate::output;
use crate::source::SourceText;

/// The file of a stack that nobody names.
const USUAL: &str = "stack.toml";

/// Make everything as a stack's file says: all of it, or nothing if anything is refused.
///
/// What the stack had and is not in the file any more is removed. Configurations that changed are swapped under
/// traffic.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox up examples/stack.toml\n          clickbox up --confirm-within 60s edge.toml && clickbox confirm edge"
)]
pub(crate) struct Up {
    /// Take everything back after this time, as in 60s or 5m, unless `clickbox confirm` comes first.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    confirm_within: Option<u32>,
    #[command(flatten)]
    what: What,
}

/// Tell what `clickbox up` would change.
#[derive(Args)]
#[command(after_help = "Example: clickbox diff --exit-code stack.toml || echo 'somebody changed something'")]
pub(crate) struct Diff {
    /// Exit with 1 if there is anything to change.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    what: What,
}

#[derive(Args)]
struct What {
    /// The file of the stack.
    #[arg(value_name = "FILE", default_value = USUAL)]
    file: PathBuf,
    /// Print JSON: {"changes": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Named {
    /// The stack's name or its file.
    #[arg(value_name = "NAME|FILE", default_value = USUAL, add = ArgValueCompleter::new(online::stacks))]
    what: String,
    /// Print JSON: {"changes": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Remove a stack's boxes and switches.
#[derive(Args)]
#[command(after_help = "Examples: clickbox down\n          clickbox down edge")]
pub(crate) struct Down {
    #[command(flatten)]
    named: Named,
}

/// Keep a stack that `clickbox up --confirm-within` has applied.
#[derive(Args)]
#[command(after_help = "Example: clickbox confirm edge")]
pub(crate) struct Confirm {
    #[command(flatten)]
    named: Named,
}

/// Take a stack back that `clickbox up --confirm-within` has applied, without waiting for its time.
#[derive(Args)]
#[command(after_help = "Example: clickbox rollback edge")]
pub(crate) struct Rollback {
    #[command(flatten)]
    named: Named,
}

/// List the stacks.
#[derive(Args)]
#[command(after_help = "Example: clickbox stacks")]
pub(crate) struct List {
    /// Print JSON: a list of stacks.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs `up`; texts of configurations are left for diagnostics.
pub(super) fn up(arguments: &Up, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let What { file, json, daemon } = &arguments.what;
    let file = StackFile::read(file)?;
    *texts = file.texts;
    let query = ApplyQuery { confirm_within: arguments.confirm_within };
    let name = file.name.as_str();
    let changes = daemon.client()?.call(&operation::APPLY_STACK, &[name], &query, &file.stack)?;
    print(&changes, *json, "everything is as it is to be");
    if let Some(seconds) = arguments.confirm_within {
        eprintln!("taken back in {seconds} s unless confirmed: clickbox confirm {name}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A time in whole seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let wrong = || "a time is wanted, as in 60s or 5m".to_string();
    let time = humantime::parse_duration(text).map_err(|_| wrong())?;
    u32::try_from(time.as_secs()).ok().filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

impl Named {
    /// The name of the stack that is meant.
    fn name(&self) -> Result<StackName, CommandError> {
        let path = Path::new(&self.what);
        if self.what == USUAL && !path.is_file() {
            let text = format!("there is no {USUAL} here: name a stack; `clickbox stacks` lists them");
            return Err(CommandError::Usage(text));
        }
        match self.what.parse() {
            Ok(name) if !path.is_file() => Ok(name),
            _ => StackFile::name(path),
        }
    }

    /// Asks for something to be done with it.
    fn ask<O: Receive>(&self, operation: &Operation<Nothing, Nothing, O>) -> Result<O::Value, CommandError> {
        Ok(self.daemon.client()?.ask(operation, &[self.name()?.as_str()])?)
    }
}

/// Runs `confirm`.
pub(super) fn confirm(arguments: &Confirm) -> Result<ExitCode, CommandError> {
    arguments.named.ask(&operation::CONFIRM_STACK)?;
    print(&Changes::default(), arguments.named.json, "it stays");
    Ok(ExitCode::SUCCESS)
}

/// Runs `rollback`.
pub(super) fn rollback(arguments: &Rollback) -> Result<ExitCode, CommandError> {
    let changes = arguments.named.ask(&operation::ROLL_BACK_STACK)?;
    print(&changes, arguments.named.json, "there was nothing to take back");
    Ok(ExitCode::SUCCESS)
}

/// Runs `diff`.
pub(super) fn diff(arguments: &Diff, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let What { file, json, daemon } = &arguments.what;
    let file = StackFile::read(file)?;
    *texts = file.texts;
    let changes = daemon.client()?.send(&operation::DIFF_STACK, &[file.name.as_str()], &file.stack)?;
    print(&changes, *json, "nothing would change");
    Ok(ExitCode::from(u8::from(arguments.exit_code && !changes.changes.is_empty())))
}

/// Runs `down`.
pub(super) fn down(arguments: &Down) -> Result<ExitCode, CommandError> {
    let changes = arguments.named.ask(&operation::REMOVE_STACK)?;
    print(&changes, arguments.named.json, "there was nothing");
    Ok(ExitCode::SUCCESS)
}

/// Runs `stacks`.
pub(super) fn list(arguments: &List) -> Result<ExitCode, CommandError> {
    let stacks = arguments.daemon.client()?.ask(&operation::LIST_STACKS, &[])?;
    if arguments.json {
        output::json(&stacks);
        return Ok(ExitCode::SUCCESS);
    }
    let columns = &[
        Column::long("NAME", 10),
        Column::number("BOXES"),
        Column::number("SWITCHES"),
        Column::text("APPLIED"),
    ];
    let row = |status: &api::StackStatus| {
        let unconfirmed = if status.confirm_until.is_some() { ", unconfirmed" } else { "" };
        let applied = format!("{} ago{unconfirmed}", online::ago(status.applied));
        vec![
            status.name.to_string(),
            status.boxes.len().to_string(),
            status.switches.len().to_string(),
            applied,
        ]
    };
    online::print(
        &Table { columns, rows: stacks.iter().map(row).collect() },
        "there are no stacks: make one with `clickbox up FILE`",
    );
    Ok(ExitCode::SUCCESS)
}

fn print(changes: &Changes, is_json: bool, nothing: &str) {
    if is_json {
        output::json(changes);
        return;
    }
    let line = |change: &api::Change| {
        let sign = match change.action {
            ChangeAction::Create => "+ create ",
            ChangeAction::Reload => "~ reload ",
            ChangeAction::Change => "~ change ",
            ChangeAction::Replace => "! replace",
            ChangeAction::Remove => "- remove ",
        };
        let detail = if change.detail.is_empty() { String::new() } else { format!(": {}", change.detail) };
        format!("{sign} {}\n", online::line(&format!("{}{detail}", change.subject)))
    };
    match changes.changes.as_slice() {
        [] => eprintln!("{nothing}"),
        changes => output::text(&changes.iter().map(line).collect::<String>()),
    }
}
