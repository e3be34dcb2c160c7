//! `clickbox up`, `diff`, `down`, `stacks`: boxes and switches by the set.

use std::path::PathBuf;
use std::process::ExitCode;

use api::{ChangeAction, Changes, StackName, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::configuration::Text;
use crate::online::{self, Column, Connection, Failure, StackFile, Table};
use crate::output;

/// The file of a stack that nobody names.
const USUAL: &str = "stack.toml";

/// Make everything as a stack's file says: all of it, or nothing if anything is refused.
///
/// What the stack had and is not in the file any more is removed. Configurations that changed are swapped under traffic.
#[derive(Args)]
#[command(after_help = "Example: clickbox up examples/stack.toml")]
pub(crate) struct Up {
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

/// Remove a stack's boxes and switches.
#[derive(Args)]
#[command(after_help = "Examples: clickbox down\n          clickbox down edge")]
pub(crate) struct Down {
    /// The stack's name or its file.
    #[arg(value_name = "NAME|FILE", default_value = USUAL, add = ArgValueCompleter::new(online::stacks))]
    what: String,
    /// Print JSON: {"changes": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
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
pub(super) fn up(arguments: &Up, texts: &mut Vec<Text>) -> Result<ExitCode, Failure> {
    let What { file, json, daemon } = &arguments.what;
    let file = StackFile::read(file)?;
    *texts = file.texts;
    let changes = daemon.client()?.send(&operation::APPLY_STACK, &[file.name.as_str()], &file.stack)?;
    print(&changes, *json, "everything is as it is to be");
    Ok(ExitCode::SUCCESS)
}

/// Runs `diff`.
pub(super) fn diff(arguments: &Diff, texts: &mut Vec<Text>) -> Result<ExitCode, Failure> {
    let What { file, json, daemon } = &arguments.what;
    let file = StackFile::read(file)?;
    *texts = file.texts;
    let changes = daemon.client()?.send(&operation::DIFF_STACK, &[file.name.as_str()], &file.stack)?;
    print(&changes, *json, "nothing would change");
    Ok(ExitCode::from(u8::from(arguments.exit_code && !changes.changes.is_empty())))
}

/// Runs `down`.
pub(super) fn down(arguments: &Down) -> Result<ExitCode, Failure> {
    let path = PathBuf::from(&arguments.what);
    let name: StackName = match arguments.what.parse() {
        Ok(name) if !path.is_file() => name,
        _ => StackFile::name(&path)?,
    };
    let changes = arguments.daemon.client()?.ask(&operation::REMOVE_STACK, &[name.as_str()])?;
    print(&changes, arguments.json, "there was nothing");
    Ok(ExitCode::SUCCESS)
}

/// Runs `stacks`.
pub(super) fn list(arguments: &List) -> Result<ExitCode, Failure> {
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
        let applied = format!("{} ago", online::ago(status.applied));
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
