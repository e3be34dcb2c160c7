//! `clickbox up`, `diff`, `export`, `confirm`, `rollback`, `down`, `stacks`: boxes and switches defined in one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use api::client::Receive;
use api::operation::{self, Nothing, Operation};
use api::{
    ApplyQuery, BoxName, ChangeAction, Changes, ConfigurationText, CreateBox, CreateService, ImageDigest,
    RecordedWrite, RemoveQuery, Stack, StackName, Subject,
};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use similar::TextDiff;

use crate::error::{CommandError, FileError};
use crate::number_format::count;
use crate::online::{self, Client, Column, Connection, StackFile, Table, Uploads};
use crate::output;
use crate::source::SourceText;
use crate::value::ValueError;

/// The stack file when none is named.
const DEFAULT_FILE: &str = "stack.toml";

/// The digits of an image's digest in the name of its file.
const IMAGE_NAME_DIGITS: usize = 12;

/// The time after which the difference between two texts need not be the shortest.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);

/// Create or update a stack from a file.
///
/// Creates what is missing, changes what differs, and removes what the file no longer defines. Changed configurations
/// are replaced while packets flow. If one step fails, all steps are undone.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox up examples/stack.toml\n          clickbox up --confirm-within 60s edge.toml && clickbox confirm edge"
)]
pub(crate) struct Up {
    /// Undo the changes after this time (such as 60s or 5m) unless `clickbox confirm` is run before.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    confirm_within: Option<u32>,
    /// Also remove switches of the stack that others use.
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    what: FileArguments,
}

/// Show what `clickbox up` would change.
///
/// Exits with 1 if there are changes, and with 0 if there are none.
#[derive(Args)]
#[command(after_help = "Example: clickbox diff stack.toml || echo 'up would change something'")]
pub(crate) struct Diff {
    /// Has no effect: `diff` always exits with 1 if there are changes.
    #[arg(long, hide = true)]
    exit_code: bool,
    #[command(flatten)]
    what: FileArguments,
}

#[derive(Args)]
struct FileArguments {
    /// Stack file.
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
    /// Print JSON: {"changes": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct NameArguments {
    /// Name of the stack, or its file.
    #[arg(value_name = "NAME|FILE", default_value = DEFAULT_FILE, add = ArgValueCompleter::new(online::stacks))]
    what: String,
    /// Print JSON: {"changes": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Remove a stack with its boxes and switches.
#[derive(Args)]
#[command(after_help = "Examples: clickbox down\n          clickbox down edge")]
pub(crate) struct Down {
    /// Also remove switches that others use: boxes outside the stack, or ports that were added by hand.
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    named: NameArguments,
}

/// Write a stack as it is now, as a stack file.
///
/// The file contains all configurations and files. `clickbox up` of it has nothing to change.
/// Writes to handlers that changed a configuration are not in the file. It names them in comments.
#[derive(Args)]
#[command(after_help = "Example: clickbox export edge > edge.toml")]
pub(crate) struct Export {
    /// Name of the stack. Without it, the only stack.
    #[arg(value_name = "STACK", add = ArgValueCompleter::new(online::stacks))]
    name: Option<StackName>,
    /// Save the images of boxes in this folder, and name these files in the stack file. Otherwise it has their digests, which
    /// only this daemon knows.
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath, conflicts_with = "json")]
    images: Option<PathBuf>,
    /// Print JSON: the definition, as the API has it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Keep the changes of `clickbox up --confirm-within`.
#[derive(Args)]
#[command(after_help = "Example: clickbox confirm edge")]
pub(crate) struct Confirm {
    #[command(flatten)]
    named: NameArguments,
}

/// Undo the changes of `clickbox up --confirm-within` now.
#[derive(Args)]
#[command(after_help = "Example: clickbox rollback edge")]
pub(crate) struct Rollback {
    #[command(flatten)]
    named: NameArguments,
}

/// List stacks.
#[derive(Args)]
#[command(after_help = "Example: clickbox stacks")]
pub(crate) struct List {
    /// Print JSON: a list of stacks.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs `up`. Leaves the texts of configurations in `texts` for diagnostics.
pub(super) fn up(arguments: &Up, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let FileArguments { file, json, daemon } = &arguments.what;
    let mut file = StackFile::read(file)?;
    *texts = std::mem::take(&mut file.texts);
    let query = ApplyQuery { confirm_within: arguments.confirm_within, force: arguments.force };
    let name = file.name.clone();
    let name = name.as_str();
    let client = daemon.client()?;
    let mut uploads = Uploads::new(&client, &mut file.stack)?;
    file.upload_images(&mut uploads)?;
    let changes = client.call(&operation::APPLY_STACK, &[name], &query, &file.stack)?;
    uploads.installed();
    print(&changes, *json, "nothing to change");
    if let Some(seconds) = arguments.confirm_within {
        eprintln!("undone in {seconds} s unless you confirm: run `clickbox confirm {name}`");
    }
    Ok(ExitCode::SUCCESS)
}

/// A time in whole seconds.
/// A time of whole seconds, at least one.
pub(super) fn seconds(text: &str) -> Result<u32, ValueError> {
    const ERROR: ValueError = ValueError::Form("a time, such as 60s or 5m");
    let time = humantime::parse_duration(text).map_err(|_| ERROR)?;
    u32::try_from(time.as_secs()).ok().filter(|seconds| *seconds > 0).ok_or(ERROR)
}

impl NameArguments {
    /// The name of the stack.
    fn name(&self) -> Result<StackName, CommandError> {
        let path = Path::new(&self.what);
        if self.what == DEFAULT_FILE && !path.is_file() {
            return Err(CommandError::NoStackFile(DEFAULT_FILE));
        }
        match self.what.parse() {
            Ok(name) if !path.is_file() => Ok(name),
            _ => Ok(StackFile::name(path)?),
        }
    }

    /// Sends a request about the stack.
    fn ask<O: Receive>(&self, operation: &Operation<Nothing, Nothing, O>) -> Result<O::Value, CommandError> {
        self.daemon.client()?.ask(operation, &[self.name()?.as_str()])
    }
}

/// Runs `confirm`.
pub(super) fn confirm(arguments: &Confirm) -> Result<ExitCode, CommandError> {
    arguments.named.ask(&operation::CONFIRM_STACK)?;
    print(&Changes::default(), arguments.named.json, "the changes are confirmed");
    Ok(ExitCode::SUCCESS)
}

/// Runs `rollback`.
pub(super) fn rollback(arguments: &Rollback) -> Result<ExitCode, CommandError> {
    let changes = arguments.named.ask(&operation::ROLL_BACK_STACK)?;
    print(&changes, arguments.named.json, "nothing to undo");
    Ok(ExitCode::SUCCESS)
}

/// Runs `diff`.
pub(super) fn diff(arguments: &Diff, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let FileArguments { file, json, daemon } = &arguments.what;
    let mut file = StackFile::read(file)?;
    *texts = file.texts;
    let client = daemon.client()?;
    let _uploads = Uploads::new(&client, &mut file.stack)?;
    let changes = client.send(&operation::DIFF_STACK, &[file.name.as_str()], &file.stack)?;
    print(&changes, *json, "nothing to change");
    if !json {
        for wanted in &file.stack.boxes {
            if is_reloaded(&changes, &Subject::from(&wanted.name)) {
                let there = client.ask(&operation::SHOW_CONFIGURATION, &[wanted.name.as_str(), "main"])?;
                output::text(&text_difference(&Subject::from(&wanted.name), wanted, &there));
            }
        }
        for wanted in &file.stack.services {
            let subject = Subject::from(&wanted.name);
            if is_reloaded(&changes, &subject)
                && let Ok(first) = CreateService::instance_name(&wanted.name, 1)
            {
                let there = client.ask(&operation::SHOW_CONFIGURATION, &[first.as_str(), "main"])?;
                output::text(&text_difference(&subject, &wanted.instance, &there));
            }
        }
    }
    Ok(ExitCode::from(u8::from(!changes.changes.is_empty() || !changes.drift.is_empty())))
}

/// Whether the configuration of an existing box or service may change.
fn is_reloaded(changes: &Changes, subject: &Subject) -> bool {
    let subject = subject.to_string();
    changes.changes.iter().any(|change| {
        matches!(change.action, ChangeAction::Reload | ChangeAction::Replace) && change.subject == subject
    })
}

/// The difference between the configuration of a box or a service and its text in a stack file, in the unified format. Empty if there
/// is none.
fn text_difference(subject: &Subject, wanted: &CreateBox, there: &ConfigurationText) -> String {
    let mut config = TextDiff::configure();
    let diff = config.timeout(DIFF_TIMEOUT).diff_lines(&there.configuration, &wanted.configuration);
    let (before, after) = (subject.to_string(), wanted.source.as_deref().unwrap_or("stack"));
    online::lines(&diff.unified_diff().header(&before, after).to_string())
}

/// Saves the images of a stack, and returns the path of each.
fn save_images(
    client: &Client,
    folder: &Path,
    stack: &Stack,
) -> Result<BTreeMap<ImageDigest, String>, CommandError> {
    let mut paths = BTreeMap::new();
    let instances = stack.services.iter().map(|service| &service.instance);
    for digest in stack.boxes.iter().chain(instances).filter_map(CreateBox::image_digest) {
        let text = digest.to_string();
        let (_, digits) = text.split_once(':').unwrap_or_default();
        let path = folder.join(format!("{}.image", digits.get(..IMAGE_NAME_DIGITS).unwrap_or(digits)));
        let failed = |error| CommandError::Write(FileError::new(&path, error));
        let mut contents = client.call(&operation::IMAGE, &[&text], &Nothing, &())?;
        let mut file = std::fs::File::create(&path).map_err(failed)?;
        std::io::copy(&mut contents, &mut file).map_err(failed)?;
        paths.insert(*digest, path.display().to_string());
    }
    Ok(paths)
}

/// Runs `export`.
pub(super) fn export(arguments: &Export) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => {
            let stacks = client.ask(&operation::LIST_STACKS, &[])?;
            match stacks.as_slice() {
                [only] => only.name.clone(),
                others => {
                    let names = others.iter().map(|stack| stack.name.to_string()).collect();
                    return Err(CommandError::StackToExport(names));
                }
            }
        }
    };
    let stack = client.ask(&operation::EXPORT_STACK, &[name.as_str()])?;
    let mut notices = String::new();
    for definition in &stack.boxes {
        let detail = client.ask(&operation::SHOW_BOX, &[definition.name.as_str()])?;
        notices += &unsaved(&definition.name, &detail.writes, detail.omitted_writes);
    }
    eprint!("{notices}");
    if arguments.json {
        output::json(&stack);
    } else {
        let comments: String = notices.lines().map(|line| format!("# {line}\n")).collect();
        let images = match &arguments.images {
            Some(folder) => save_images(&client, folder, &stack)?,
            None => BTreeMap::new(),
        };
        output::text(&(comments + &online::exported(&name, stack, &images)?));
    }
    Ok(ExitCode::SUCCESS)
}

/// A notice about writes to the handlers of a box that its definition does not have, and so the exported file neither.
fn unsaved(name: &BoxName, writes: &[RecordedWrite], omitted: u64) -> String {
    let number = writes.len() as u64 + omitted;
    if number == 0 {
        return String::new();
    }
    let what = count(number, "handler write");
    let summary = online::line(&RecordedWrite::summary(writes));
    format!("box {name} has {what} that this file does not have: {summary}; see clickbox save {name}\n")
}

/// Runs `down`.
pub(super) fn down(arguments: &Down) -> Result<ExitCode, CommandError> {
    let (path, query) = (arguments.named.name()?, RemoveQuery { force: arguments.force });
    let client = arguments.named.daemon.client()?;
    let changes = client.call(&operation::REMOVE_STACK, &[path.as_str()], &query, &())?;
    print(&changes, arguments.named.json, "nothing to remove");
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
        Column::flexible("NAME", 10),
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
        "there are no stacks: create one with `clickbox up FILE`",
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
    for api::Drift { name, writes } in &changes.drift {
        for write in writes {
            let line = format!("* written  box/{name}: {}", online::drift(write));
            output::text(&(line + "\n"));
        }
    }
    match changes.changes.as_slice() {
        [] => eprintln!("{nothing}"),
        changes => output::text(&changes.iter().map(line).collect::<String>()),
    }
    for api::Drift { name, writes } in &changes.lost {
        for write in writes {
            let line = format!("* lost     box/{name}: {}", online::drift(write));
            output::text(&(line + "\n"));
        }
    }
    for port in &changes.left_alone {
        eprintln!("  keep     {}: not part of the stack; left alone", online::line(port));
    }
}
