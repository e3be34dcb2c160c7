//! `clickbox create`: creates a box.

use std::path::Path;
use std::process::ExitCode;

use api::{BoxDetail, BoxName, CreateBox, Owner, PortRequest, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::box_options::{BoxOptions, port};
use crate::error::CommandError;
use crate::online::{self, ConfigBundle, Connection, Image, Uploads};
use crate::output;
use crate::source::SourceText;

/// Create a box and start it.
///
/// The configuration is checked first; if it has errors, no box is created. The files that it reads (captures for
/// FromDump, libraries that it requires) are copied into the box. Each --attach adds a port; the first one is port 0,
/// which the configuration uses as FromDevice(0) and ToDevice(0).
#[derive(Args)]
#[command(
    after_help = "Example: clickbox create fw firewall.click --attach lan --attach wan --memory 16M --restart always"
)]
pub(crate) struct Arguments {
    /// Name of the box.
    name: BoxName,
    /// Configuration file, or `-` for standard input. Without it, the image's own configuration.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, required_unless_present = "image")]
    configuration: Option<String>,
    /// Image that the box runs in place of the built-in one: a file, or the digest of an image that another box runs.
    /// `clickbox function build` makes one.
    #[arg(long, value_name = "FILE|DIGEST", value_hint = clap::ValueHint::FilePath)]
    image: Option<String>,
    /// Add a port and attach it to a switch, to a pipe (pipe:NAME), or to nothing (-). Settings may follow, as in
    /// lan,mac=02:00:00:00:00:01: mac, the port's Ethernet address; bind-ip, an IP address or prefix that the box may send
    /// from (may be repeated); transparent, which lets the box send from any Ethernet address, as bridges do; max-frames,
    /// max-bits, max-broadcasts and max-new-addresses, which limit what the box sends per second.
    #[arg(
        long,
        value_name = "SWITCH|pipe:NAME|-",
        value_parser = port,
        allow_hyphen_values = true,
        add = ArgValueCompleter::new(online::attachments)
    )]
    attach: Vec<PortRequest>,
    #[command(flatten)]
    options: BoxOptions,
    /// Owner of the box. Pipes connect boxes of one owner only.
    #[arg(long, default_value_t)]
    owner: Owner,
    /// Print JSON: the box.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs the command. Leaves the configuration's text in `texts` for diagnostics.
pub(super) fn run(arguments: &Arguments, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let files = arguments.options.files();
    let bundle = match &arguments.configuration {
        Some(path) => ConfigBundle::read(path, Path::new(""), &files)?,
        None => ConfigBundle::of_image(arguments.name.as_str(), &files)?,
    };
    let image = arguments.image.as_ref().map(|text| Image::read(text, Path::new(""))).transpose()?;
    let mut request = CreateBox {
        ports: arguments.attach.clone(),
        owner: arguments.owner.clone(),
        ..arguments.options.apply(bundle.create(arguments.name.clone()))
    };
    texts.push(bundle.text);
    let client = arguments.daemon.client()?;
    let mut uploads = Uploads::new(&client, &mut request)?;
    request.image = image.map(|image| image.upload(&mut uploads)).transpose()?;
    let detail = client.send(&operation::CREATE_BOX, &[], &request)?;
    uploads.installed();
    let warnings: Vec<_> =
        detail.installed.iter().flat_map(|installed| &installed.diagnostics).cloned().collect();
    online::diagnostics(&warnings, texts);
    if arguments.json {
        output::json(&detail);
    } else {
        output::text(&sentence(&detail));
    }
    Ok(ExitCode::SUCCESS)
}

/// The message about the new box.
fn sentence(detail: &BoxDetail) -> String {
    let status = &detail.status;
    let phrase = online::runs_in(status.sandbox);
    match (status.started, status.boot_ms) {
        (Some(_), Some(time)) => {
            format!("{} runs {phrase}, {time:.1} ms after the request\n", status.name)
        }
        (Some(_), None) => format!("{} runs {phrase}\n", status.name),
        (None, _) => format!("{} is created: start it with `clickbox start {0}`\n", status.name),
    }
}
