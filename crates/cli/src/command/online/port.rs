//! `clickbox port`: how a switch is joined to what is outside of boxes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use api::{PortDriver, PortName, SwitchDetail, SwitchName, SwitchPort, operation};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::switch::Named;
use crate::live::grouped;
use crate::online::{self, Column, Connection, Failure, PortOptions, Table};
use crate::output;

/// Add ports to switches, and remove them.
#[derive(Args)]
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
    #[command(visible_alias = "remove", after_help = "Example: clickbox port rm lan tap0")]
    Rm(RemovePort),
    /// List the ports of a switch.
    #[command(visible_alias = "list", after_help = "Example: clickbox port ls lan")]
    Ls(Named),
}

#[derive(Args)]
struct AddPort {
    /// The switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// The name of the port.
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
    /// The switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// The port.
    #[arg(value_name = "PORT", add = ArgValueCompleter::new(online::ports))]
    name: PortName,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs `port`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        PortCommand::Add(add) => {
            let request = add.options.add(add.name.clone(), Path::new(""))?;
            let port = add.daemon.client()?.send(&operation::ADD_PORT, &[add.switch.as_str()], &request)?;
            if add.json {
                output::json(&port);
            }
        }
        PortCommand::Rm(remove) => {
            let path = [remove.switch.as_str(), remove.name.as_str()];
            remove.daemon.client()?.ask(&operation::REMOVE_PORT, &path)?;
            online::done(remove.json);
        }
        PortCommand::Ls(named) => show_ports(named, |detail| output::json(&detail.port_list))?,
    }
    Ok(ExitCode::SUCCESS)
}

const PORTS: &[Column] = &[
    Column::long("PORT", 10),
    Column::long("DRIVER", 10),
    Column::number("RECEIVED"),
    Column::number("SENT"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::long("DROPS", 8),
];

/// Prints the ports of a switch, or what `json` makes of it.
pub(super) fn show_ports(named: &Named, json: impl Fn(&SwitchDetail)) -> Result<(), Failure> {
    let detail = named.daemon.client()?.ask(&operation::SHOW_SWITCH, &[named.name.as_str()])?;
    if named.json {
        json(&detail);
    } else {
        let table = Table { columns: PORTS, rows: detail.port_list.iter().map(port_row).collect() };
        online::print(&table, "it has no ports: add one with `clickbox port add SWITCH NAME --driver tap`");
    }
    Ok(())
}

fn port_row(port: &SwitchPort) -> Vec<String> {
    let device = |kind: &str, device: &Option<api::Device>| match device {
        Some(device) => format!("{kind} {device}"),
        None => kind.to_string(),
    };
    let driver = match &port.driver {
        PortDriver::Tap { device: name } => device("tap", name),
        PortDriver::AfPacket { device: name } => device("af_packet", name),
        PortDriver::Pcap { read, write, .. } => {
            let files: Vec<&str> = [read, write].into_iter().flatten().map(String::as_str).collect();
            format!("pcap {}", files.join(" "))
        }
        PortDriver::Null {} => "null".into(),
        PortDriver::Pipe { switch, port } => format!("pipe {switch}/{port}"),
        PortDriver::Box { name, port } => format!("box {name}:{port}"),
    };
    let driver = match &port.fault {
        Some(fault) => format!("{driver} ({fault})"),
        None => driver,
    };
    vec![
        port.name.to_string(),
        online::line(&driver),
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
