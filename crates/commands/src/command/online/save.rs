//! `clickbox save`: makes writes to handlers the definition of a box.

use std::process::ExitCode;

use api::{BoxName, ConfigurationName, Save, Saved, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use similar::TextDiff;

use crate::error::{CommandError, FileError};
use crate::online::{self, Connection};
use crate::output;

/// Make writes to handlers the definition of a box.
///
/// Gives the elements in the text of its configuration the arguments that they have now. The rest of the text stays as it
/// is, and the box runs on undisturbed. Writes that the text can't express are listed and stay: the exit code is then 1.
///
/// The definition of a box in a stack is its stack file, which the next `clickbox up` would apply. For such a box, prints
/// the change to make in the file, and changes nothing.
#[derive(Args)]
#[command(after_help = "Examples: clickbox save fw\n          clickbox save fw --to firewall.click")]
pub(crate) struct Arguments {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Configuration to save.
    #[arg(long, value_name = "NAME", default_value = "main")]
    configuration: ConfigurationName,
    /// Also write the new text into this file.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    to: Option<std::path::PathBuf>,
    /// Print the change without making it.
    #[arg(long)]
    preview: bool,
    /// Print JSON: the old and the new text, and which writes they contain.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let path = [arguments.name.as_str(), arguments.configuration.as_str()];
    let request = Save { preview: arguments.preview };
    let saved = arguments.daemon.client()?.send(&operation::SAVE, &path, &request)?;
    if let Some(file) = &arguments.to {
        std::fs::write(file, &saved.configuration).map_err(|cause| FileError::new(file, cause))?;
    }
    if arguments.json {
        output::json(&saved);
    } else {
        output::text(&text(&arguments.name, &saved));
        for left in &saved.left {
            eprintln!("{}", online::line(&format!("{} can't be saved: {}", left.handler, left.reason)));
        }
        if let Some(stack) = saved.stack.as_ref().filter(|_| !saved.saved.is_empty() && !arguments.preview) {
            eprintln!(
                "box {} belongs to stack {stack}: change its file as above, and apply it with `clickbox up`",
                arguments.name
            );
        }
    }
    Ok(ExitCode::from(u8::from(!saved.left.is_empty())))
}

fn text(name: &BoxName, saved: &Saved) -> String {
    if saved.stored {
        let handlers = saved.saved.join(", ");
        return online::lines(&format!("{name} is saved, with {handlers}\n"));
    }
    if saved.saved.is_empty() {
        return format!("{name} has nothing to save\n");
    }
    let diff = TextDiff::from_lines(&saved.before, &saved.configuration);
    let file = saved.source.as_deref().unwrap_or("configuration");
    online::lines(&diff.unified_diff().header(file, file).to_string())
}
