//! `clickbox start`, `stop`, `suspend`, `resume`, `kill`, `restart`, `rm`: the life cycle of boxes.

use std::process::ExitCode;

use api::operation::{Json, Nothing, Operation};
use api::{BoxName, BoxState, BoxStatus, RemoveQuery, operation};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::online::{self, Connection};
use crate::output;

/// The commands.
#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Start(Start),
    Stop(Stop),
    Suspend(Suspend),
    Resume(Resume),
    Kill(Kill),
    Restart(Restart),
    #[command(visible_alias = "remove")]
    Rm(Remove),
}

/// The arguments of commands that take nothing but boxes. Each command has a type, because its description is that of the type.
macro_rules! of_boxes {
    ($($(#[$attribute:meta])* $name:ident;)*) => {$(
        #[derive(Args)]
        $(#[$attribute])*
        pub(crate) struct $name {
            #[command(flatten)]
            boxes: Boxes,
        }
    )*};
}

of_boxes! {
    /// Start boxes.
    #[command(after_help = "Example: clickbox start fw")]
    Start;
    /// Stop boxes until they are started again.
    #[command(after_help = "Example: clickbox stop fw")]
    Stop;
    /// Pause boxes.
    ///
    /// A paused box keeps its state. Packets for it are dropped once its rings are full.
    #[command(after_help = "Example: clickbox suspend fw")]
    Suspend;
    /// Resume suspended boxes.
    #[command(after_help = "Example: clickbox resume fw")]
    Resume;
    /// Kill boxes as if they had crashed.
    ///
    /// The restart policy of a box decides whether it starts again.
    #[command(after_help = "Example: clickbox kill fw")]
    Kill;
    /// Stop boxes and start them again with fresh state.
    #[command(after_help = "Example: clickbox restart fw")]
    Restart;
}

/// Remove boxes that are stopped.
#[derive(Args)]
#[command(after_help = "Examples: clickbox rm fw nat\n          clickbox rm --force fw")]
pub(crate) struct Remove {
    /// Also remove boxes that are not stopped.
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    boxes: Boxes,
}

/// Boxes.
#[derive(Args)]
struct Boxes {
    /// Names of the boxes.
    #[arg(value_name = "BOX", required = true, add = ArgValueCompleter::new(online::boxes))]
    names: Vec<BoxName>,
    /// Print JSON: a list of the boxes.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs the command. If it fails for one box, it continues with the others and fails at the end.
pub(super) fn run(command: &Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::Start(Start { boxes }) => change(boxes, &operation::START_BOX, is),
        Command::Stop(Stop { boxes }) => change(boxes, &operation::STOP_BOX, is),
        Command::Suspend(Suspend { boxes }) => change(boxes, &operation::SUSPEND_BOX, is),
        Command::Resume(Resume { boxes }) => change(boxes, &operation::RESUME_BOX, is),
        Command::Kill(Kill { boxes }) => change(boxes, &operation::KILL_BOX, was_killed),
        Command::Restart(Restart { boxes }) => change(boxes, &operation::RESTART_BOX, is),
        Command::Rm(Remove { force, boxes }) => {
            let client = boxes.daemon.client()?;
            let query = RemoveQuery { force: *force };
            let remove = |name: &BoxName| client.call(&operation::REMOVE_BOX, &[name.as_str()], &query, &());
            let (_, failed) = each(boxes, remove);
            online::print_success(boxes.json);
            failed.map_or(Ok(ExitCode::SUCCESS), Err)
        }
    }
}

/// The message about a box.
fn is(status: &BoxStatus) -> String {
    format!("{} is {}\n", status.name, online::state(status.state))
}

/// The message about a killed box.
fn was_killed(status: &BoxStatus) -> String {
    let follows = match status.state {
        BoxState::Waiting | BoxState::Running => ", and restarts",
        _ => "",
    };
    format!("{} was killed{follows}\n", status.name)
}

fn change(
    boxes: &Boxes,
    operation: &Operation<Nothing, Nothing, Json<BoxStatus>>,
    line: fn(&BoxStatus) -> String,
) -> Result<ExitCode, CommandError> {
    let client = boxes.daemon.client()?;
    let (changed, failed) = each(boxes, |name| client.ask(operation, &[name.as_str()]));
    if boxes.json {
        output::json(&changed);
    } else {
        output::text(&changed.iter().map(line).collect::<String>());
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Applies `act` to each box. Returns the results, and the last error; earlier errors are printed.
fn each<T>(
    boxes: &Boxes,
    act: impl Fn(&BoxName) -> Result<T, CommandError>,
) -> (Vec<T>, Option<CommandError>) {
    let mut done = Vec::new();
    let mut failed = None;
    for name in &boxes.names {
        match act(name) {
            Ok(value) => done.push(value),
            Err(error) => {
                if let Some(earlier) = failed.replace(error) {
                    earlier.print();
                }
            }
        }
    }
    (done, failed)
}
