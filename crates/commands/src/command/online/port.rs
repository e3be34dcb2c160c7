//! `clickbox port`: the ports that connect switches to the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use api::{LinkState, PortDriver, PortName, RemoveQuery, SwitchDetail, SwitchName, SwitchPort, operation};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::error::CommandError;
use crate::number_format::grouped;
use crate::online::{self, Column, Connection, PortOptions, Table};
use crate::output;

/// Manage the ports of switches.
#[derive(Args)]
#[command(after_help = "Examples: clickbox port add lan tap0 --driver tap\n          clickbox port ls")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: PortCommand,
}

#[derive(Subcommand)]
enum PortCommand {
    /// Add a port to a switch.
    #[command(after_help = "Example: clickbox port add lan tap0 --driver tap")]
    Add(Box<AddPort>),
    /// Remove a port from a switch.
    ///
    /// A port that connects a box or another switch, or where a chain begins or ends, is removed only by force.
    #[command(
        visible_alias = "remove",
        after_help = "Examples: clickbox port rm lan tap0\n          clickbox port rm --force lan fw.0"
    )]
    Rm(RemovePort),
    /// List the ports of a switch, or of all switches.
    #[command(visible_alias = "list", after_help = "Example: clickbox port ls lan")]
    Ls(Listing),
}

#[derive(Args)]
struct AddPort {
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Name of the port.
    name: PortName,
    #[command(flatten)]
    options: PortOptions,
    /// Print JSON: the port.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct RemovePort {
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Name of the port.
    #[arg(value_name = "PORT", add = ArgValueCompleter::new(online::ports))]
    name: PortName,
    /// Also remove a port that connects a box or another switch.
    #[arg(long, short)]
    force: bool,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Listing {
    /// Name of the switch. Without it, list the ports of all switches.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    name: Option<SwitchName>,
    /// Print JSON: a list of ports, each with its switch.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// A port, and the switch that it belongs to.
#[derive(Serialize)]
struct Entry<'a> {
    switch: &'a SwitchName,
    #[serde(flatten)]
    port: &'a SwitchPort,
}

/// Runs `port`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        PortCommand::Add(add) => {
            let request = add.options.add(add.name.clone(), Path::new(""))?;
            let port = add.daemon.client()?.send(&operation::ADD_PORT, &[add.switch.as_str()], &request)?;
            if add.json {
                output::json(&port);
            }
            match (&port.fault, &port.awaits) {
                (None, Some(why)) if port.link == Some(LinkState::Up) => {
                    eprintln!("port {}: {why}", port.name)
                }
                (Some(why), _) | (None, Some(why)) => eprintln!("port {} waits: {why}", port.name),
                (None, None) => {}
            }
        }
        PortCommand::Rm(remove) => {
            let path = [remove.switch.as_str(), remove.name.as_str()];
            let query = RemoveQuery { force: remove.force };
            remove.daemon.client()?.call(&operation::REMOVE_PORT, &path, &query, &())?;
            online::print_success(remove.json);
        }
        PortCommand::Ls(listing) => list(listing)?,
    }
    Ok(ExitCode::SUCCESS)
}

const COLUMNS: &[Column] = &[
    Column::flexible("SWITCH", 10),
    Column::flexible("PORT", 10),
    Column::flexible("DRIVER", 10),
    Column::number("RECEIVED"),
    Column::number("SENT"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::flexible("DROPS", 8),
];

fn list(listing: &Listing) -> Result<(), CommandError> {
    let client = listing.daemon.client()?;
    let names = match &listing.name {
        Some(name) => vec![name.clone()],
        None => client.ask(&operation::LIST_SWITCHES, &[])?.into_iter().map(|status| status.name).collect(),
    };
    let show = |name: &SwitchName| client.ask(&operation::SHOW_SWITCH, &[name.as_str()]);
    let switches = names.iter().map(show).collect::<Result<Vec<_>, _>>()?;
    if listing.json {
        output::json(&ports(&switches).collect::<Vec<_>>());
    } else {
        print(&switches);
    }
    Ok(())
}

/// Prints the ports of switches, and below them why some do not work, or work in another way.
pub(super) fn print(switches: &[SwitchDetail]) {
    let rows = ports(switches).map(row).collect();
    online::print(
        &Table { columns: COLUMNS, rows },
        "there are no ports: add one with `clickbox port add SWITCH NAME --driver tap`",
    );
    for Entry { switch, port } in ports(switches) {
        if let Some(why) = port.fault.as_ref().or(port.awaits.as_ref()) {
            output::text(&format!("{switch}/{}: {}\n", port.name, online::line(why)));
        }
    }
}

fn ports(switches: &[SwitchDetail]) -> impl Iterator<Item = Entry<'_>> {
    switches.iter().flat_map(|detail| {
        let switch = &detail.status.name;
        detail.port_list.iter().map(move |port| Entry { switch, port })
    })
}

fn row(Entry { switch, port }: Entry) -> Vec<String> {
    let name = port.driver.name();
    let driver = match &port.driver {
        PortDriver::Tap { device: Some(device), .. }
        | PortDriver::AfPacket { device: Some(device) }
        | PortDriver::AfXdp { device: Some(device), .. } => format!("{name} {device}"),
        PortDriver::Tap { .. } | PortDriver::AfPacket { .. } | PortDriver::AfXdp { .. } => name.into(),
        PortDriver::Pcap { read, write, .. } => {
            let files: Vec<&str> = [read, write].into_iter().flatten().map(String::as_str).collect();
            format!("{name} {}", files.join(" "))
        }
        PortDriver::Memif { path, role, id, .. } => format!("{name} {role} {path} {id}"),
        PortDriver::Vxlan { remote, vni, .. } | PortDriver::Geneve { remote, vni, .. } => {
            format!("{name} {remote} vni {}", u32::from(*vni))
        }
        PortDriver::VhostUser { path, .. } => format!("{name} {path}"),
        PortDriver::Null {} => name.into(),
        PortDriver::Pipe { switch, port } => format!("{name} {switch}/{port}"),
        PortDriver::Box { name: other, port } => format!("{name} {other}:{port}"),
    };
    let state = match (&port.fault, port.link, &port.awaits) {
        // A client that can't connect yet has a fault too.
        (_, Some(LinkState::Waiting), _) => " (waiting)",
        (Some(_), ..) => " (fault)",
        (None, Some(LinkState::Connected), _) => " (connected)",
        (None, Some(LinkState::Up) | None, Some(_)) => " (see below)",
        (None, Some(LinkState::Up) | None, None) => "",
    };
    let queues = port.queues.map_or_else(String::new, |queues| format!(", {queues} queues"));
    vec![
        switch.to_string(),
        port.name.to_string(),
        online::line(&driver) + &queues + state,
        grouped(port.traffic.received_packets),
        grouped(port.traffic.sent_packets),
        online::rate(port.rates.received_packets),
        online::rate(port.rates.sent_packets),
        drops(&port.drops),
    ]
}

/// Drops by reason, in a line.
fn drops(drops: &BTreeMap<String, u64>) -> String {
    let lost = drops.iter().filter(|(_, packets)| **packets > 0);
    let lost: Vec<String> = lost.map(|(reason, packets)| format!("{reason} {}", grouped(*packets))).collect();
    if lost.is_empty() { "-".into() } else { online::line(&lost.join(", ")) }
}
