//! `clickbox install`, `reload`, `uninstall`: the configurations of a box.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::client::Client;
use api::{BoxName, ConfigurationName, ConfigurationStatus, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, CommandError, ConfigBundle, Connection};
use crate::output;
use crate::source::SourceText;

/// Install more configurations in a box, beside those that it runs.
///
/// Each is checked first. One that has the name of an installed one is swapped for it, and its state is carried over.
#[derive(Args)]
#[command(after_help = "Example: clickbox install fw second=monitor.click")]
pub(crate) struct Install {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// The configurations: a name and a file for each.
    #[arg(value_name = "NAME=FILE", required = true, value_parser = online::named)]
    configurations: Vec<(ConfigurationName, String)>,
    /// Another file for them, under the name that they have for it.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Print JSON: a list of configurations.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Swap a configuration of a box for another under traffic.
///
/// The new one is checked first, and takes over the state of elements that keep their name and class (queues, counters,
/// tables, flows). If it is refused, the old one goes on and has noticed nothing.
#[derive(Args)]
#[command(after_help = "Example: clickbox reload fw firewall.click")]
pub(crate) struct Reload {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// The file of the new configuration; `-` is standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    configuration: String,
    /// The configuration that is swapped.
    #[arg(long = "configuration", value_name = "NAME", default_value = "main")]
    which: ConfigurationName,
    /// Another file for it, under the name that it has for it.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Print JSON: the configuration.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Remove configurations from a box; its first one, `main`, stays as long as the box.
#[derive(Args)]
#[command(after_help = "Example: clickbox uninstall fw second")]
pub(crate) struct Uninstall {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Names of the configurations.
    #[arg(value_name = "NAME", required = true, add = ArgValueCompleter::new(online::configurations))]
    configurations: Vec<ConfigurationName>,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Installs one configuration; its text is left for diagnostics.
fn put(
    client: &Client,
    (name, configuration): (&BoxName, &ConfigurationName),
    file: &str,
    also: &[String],
    texts: &mut Vec<SourceText>,
) -> Result<ConfigurationStatus, CommandError> {
    let also: Vec<(String, PathBuf)> = also.iter().map(|text| online::file(text)).collect();
    let bundle = ConfigBundle::read(file, Path::new(""), &also)?;
    let request = bundle.install();
    texts.push(bundle.text);
    let status = client.send(&operation::INSTALL, &[name.as_str(), configuration.as_str()], &request)?;
    online::diagnostics(&status.diagnostics, texts);
    Ok(status)
}

fn sentence(status: &ConfigurationStatus) -> String {
    match status.swaps {
        0 => format!("{} is installed\n", status.name),
        swaps => format!("{} is swapped, for the {} time\n", status.name, ordinal(swaps)),
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Runs `install`.
pub(super) fn install(arguments: &Install, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let mut installed = Vec::new();
    for (configuration, file) in &arguments.configurations {
        let status = put(&client, (&arguments.name, configuration), file, &arguments.files, texts)?;
        if !arguments.json {
            output::text(&sentence(&status));
        }
        installed.push(status);
    }
    if arguments.json {
        output::json(&installed);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `reload`.
pub(super) fn reload(arguments: &Reload, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let which = (&arguments.name, &arguments.which);
    let status = put(&client, which, &arguments.configuration, &arguments.files, texts)?;
    if arguments.json {
        output::json(&status);
    } else {
        output::text(&sentence(&status));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `uninstall`.
pub(super) fn uninstall(arguments: &Uninstall) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    for configuration in &arguments.configurations {
        client.ask(&operation::REMOVE_CONFIGURATION, &[arguments.name.as_str(), configuration.as_str()])?;
    }
    online::done(arguments.json);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_endings() {
        let expected = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th"];
        assert_eq!([1, 2, 3, 4, 11, 12, 13, 21, 111].map(ordinal), expected);
    }
}
