//! `clickbox create`: creates a box.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{
    Attachment, BoxDetail, BoxName, Cores, CreateBox, IpPrefix, MacAddr, Owner, PortRequest, Restart, Ring,
    Sandbox, Size, Weight, operation,
};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::online::{self, ConfigBundle, Connection, Image, Uploads};
use crate::output;
use crate::source::SourceText;
use crate::value::{self, ValueError};

/// The sandbox of a box.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SandboxOption {
    /// A virtual machine if KVM is usable, else a process.
    #[default]
    Auto,
    /// A virtual machine.
    Vm,
    /// A process without privileges.
    Process,
}

/// When a box that ended is started again.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RestartOption {
    /// Never.
    Never,
    /// After a crash.
    #[default]
    OnFailure,
    /// Whenever it ends without being stopped. A configuration that stops does not end its box.
    Always,
}

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
    /// Slots in each ring of the ports: a power of two from 64 to 2048.
    #[arg(long, value_name = "SLOTS", default_value_t)]
    ring: Ring,
    /// Private memory.
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    memory: Size,
    /// Weight when boxes compete for CPU time.
    #[arg(long, value_name = "N", default_value_t)]
    cpu_weight: Weight,
    /// Limit of CPU time, such as 0.5 or 50% of a CPU.
    #[arg(long, value_name = "CPUS")]
    cpu_limit: Option<Cores>,
    /// Reserve a CPU for the box, for low latency. The box then polls instead of sleeping.
    #[arg(long)]
    dedicated: bool,
    /// Share a packet pool with this owner's other boxes that have this option. Packets between them are not copied, but
    /// each box can read and change all packets in the pool.
    #[arg(long)]
    share_packets: bool,
    /// Sandbox of the box.
    #[arg(long, value_enum, default_value_t)]
    sandbox: SandboxOption,
    /// When to start the box again after it has ended.
    #[arg(long, value_enum, default_value_t)]
    restart: RestartOption,
    /// Repeat writes to handlers that change the configuration, such as rules and routes, after each start of the box.
    /// Otherwise a start loses them.
    #[arg(long)]
    keep_writes: bool,
    /// Owner of the box. Pipes connect boxes of one owner only.
    #[arg(long, default_value_t)]
    owner: Owner,
    /// Label to find the box by. May be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Copy another file into the box, under the name that the configuration uses. May be repeated.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Create the box without starting it.
    #[arg(long)]
    no_start: bool,
    /// Print JSON: the box.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// `SWITCH|pipe:NAME|-[,SETTING...]`.
fn port(text: &str) -> Result<PortRequest, ValueError> {
    let mut parts = text.split(',');
    let attach: Attachment = parts.next().unwrap_or_default().parse()?;
    let mut port = PortRequest { attach, ..PortRequest::default() };
    let number = |text: &str| text.parse().map_err(|_| ValueError::Form("a number per second"));
    let mut bound = Vec::new();
    for part in parts {
        match part.split_once('=') {
            None if part == "transparent" => port.limits.transparent = true,
            Some(("mac", mac)) => port.mac = Some(mac.parse::<MacAddr>()?),
            Some(("max-frames", count)) => port.limits.frames = Some(number(count)?),
            Some(("max-bits", count)) => port.limits.bits = Some(number(count)?),
            Some(("max-broadcasts", count)) => port.limits.broadcasts = Some(number(count)?),
            Some(("max-new-addresses", count)) => port.limits.new_addresses = Some(number(count)?),
            Some(("bind-ip", address)) => bound.push(address.parse::<IpPrefix>()?),
            _ => return Err(ValueError::PortSetting(part.into())),
        }
    }
    port.limits.bind_ip = bound.try_into()?;
    Ok(port)
}

fn label(text: &str) -> Result<(String, String), ValueError> {
    value::pair(text, "KEY=VALUE")
}

/// Runs the command. Leaves the configuration's text in `texts` for diagnostics.
pub(super) fn run(arguments: &Arguments, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    let files: Vec<(String, PathBuf)> = arguments.files.iter().map(|text| online::file(text)).collect();
    let bundle = match &arguments.configuration {
        Some(path) => ConfigBundle::read(path, Path::new(""), &files)?,
        None => ConfigBundle::of_image(arguments.name.as_str(), &files)?,
    };
    let image = arguments.image.as_ref().map(|text| Image::read(text, Path::new(""))).transpose()?;
    let mut request = CreateBox {
        sandbox: match arguments.sandbox {
            SandboxOption::Auto => Sandbox::Auto,
            SandboxOption::Vm => Sandbox::Vm,
            SandboxOption::Process => Sandbox::Process,
        },
        memory: arguments.memory,
        ring: arguments.ring,
        ports: arguments.attach.clone(),
        cpu_weight: arguments.cpu_weight,
        cpu_limit: arguments.cpu_limit,
        dedicated: arguments.dedicated,
        share_packets: arguments.share_packets,
        restart: match arguments.restart {
            RestartOption::Never => Restart::Never,
            RestartOption::OnFailure => Restart::OnFailure,
            RestartOption::Always => Restart::Always,
        },
        keep_writes: arguments.keep_writes,
        owner: arguments.owner.clone(),
        labels: arguments.labels.iter().cloned().collect(),
        start: !arguments.no_start,
        ..bundle.create(arguments.name.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_have_settings() {
        assert_eq!(port("lan").map(|port| port.attach.to_string()), Ok("lan".into()));
        assert_eq!(port("-").map(|port| port.attach), Ok(Attachment::Nothing));
        let full = port("pipe:a,mac=02:00:00:00:00:01").expect("a port");
        assert_eq!(
            (full.attach.to_string(), full.mac),
            ("pipe:a".into(), Some(MacAddr::new([2, 0, 0, 0, 0, 1])))
        );
        let bound = port("lan,bind-ip=192.0.2.1,bind-ip=2001:db8::/64").expect("a port").limits.bind_ip;
        assert_eq!(
            bound.iter().map(|prefix| prefix.to_string()).collect::<Vec<_>>(),
            ["192.0.2.1", "2001:db8::/64"]
        );
        let limits =
            port("lan,max-frames=1,max-bits=2,max-broadcasts=3,max-new-addresses=4").expect("a port").limits;
        let rates = [limits.frames, limits.bits, limits.broadcasts, limits.new_addresses];
        assert_eq!(rates, [1, 2, 3, 4].map(Some));
        let bridge = port("lan,transparent").expect("a port");
        assert!(bridge.limits.transparent && bridge.mac.is_none() && !full.limits.transparent);
        for bad in [
            "",
            "LAN",
            "lan,",
            "lan,mtu=9000",
            "lan,mac=1",
            "lan,transparent=1",
            "lan,bind-ip=",
            "lan,max-frames=x",
            "lan,bind-ip=192.0.2.1/24",
            "lan,mac",
        ] {
            assert!(port(bad).is_err(), "{bad}");
        }
    }
}
