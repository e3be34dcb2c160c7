//! `clickbox install`, `reload`, `uninstall`: the configurations of a box.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{BoxName, ConfigurationName, ConfigurationStatus, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::online::{self, Client, ConfigBundle, Connection, Uploads};
use crate::output;
use crate::source::SourceText;

/// Install additional configurations in a box.
///
/// Each configuration is checked first. If the box already runs one with this name, it is replaced and its state is
/// carried over, as `clickbox reload` does.
#[derive(Args)]
#[command(after_help = "Example: clickbox install fw second=monitor.click")]
pub(crate) struct Install {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Configurations to install: a name and a file for each.
    #[arg(value_name = "NAME=FILE", required = true, value_parser = online::named)]
    configurations: Vec<(ConfigurationName, String)>,
    /// Copy another file into the box, under the name that the configurations use. May be repeated.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Print JSON: a list of configurations.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Replace a configuration of a running box without losing packets.
///
/// The new configuration is checked first. Elements that keep their name and class keep their state (queues, counters,
/// tables, flows). If the new configuration has errors, the old one continues unchanged.
#[derive(Args)]
#[command(after_help = "Example: clickbox reload fw firewall.click")]
pub(crate) struct Reload {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// File of the new configuration, or `-` for standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    configuration: String,
    /// Configuration to replace.
    #[arg(long = "configuration", value_name = "NAME", default_value = "main")]
    which: ConfigurationName,
    /// Copy another file into the box, under the name that the configuration uses. May be repeated.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Print JSON: the configuration.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Remove configurations from a box, except `main`.
#[derive(Args)]
#[command(after_help = "Example: clickbox uninstall fw second")]
pub(crate) struct Uninstall {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// Names of the configurations to remove.
    #[arg(value_name = "NAME", required = true, add = ArgValueCompleter::new(online::configurations))]
    configurations: Vec<ConfigurationName>,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Installs one configuration. Leaves its text in `texts` for diagnostics.
fn put(
    client: &Client,
    (name, configuration): (&BoxName, &ConfigurationName),
    file: &str,
    extra_files: &[String],
    texts: &mut Vec<SourceText>,
) -> Result<ConfigurationStatus, CommandError> {
    let extra_files: Vec<(String, PathBuf)> = extra_files.iter().map(|text| online::file(text)).collect();
    let bundle = ConfigBundle::read(file, Path::new(""), &extra_files)?;
    let mut request = bundle.install();
    texts.push(bundle.text);
    let uploads = Uploads::new(client, &mut request)?;
    let status = client.send(&operation::INSTALL, &[name.as_str(), configuration.as_str()], &request)?;
    uploads.installed();
    online::diagnostics(&status.diagnostics, texts);
    Ok(status)
}

fn sentence(status: &ConfigurationStatus) -> String {
    match status.swaps {
        0 => format!("{} is installed\n", status.name),
        swaps => format!("{} is replaced, for the {} time\n", status.name, ordinal(swaps)),
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
    online::print_success(arguments.json);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_have_endings() {
        let expected = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th"];
        assert_eq!([1, 2, 3, 4, 11, 12, 13, 21, 111].map(ordinal), expected);
    }
}
