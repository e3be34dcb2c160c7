//! `clickbox switch`, `port`, `address`: what joins boxes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use api::{
    AddressKind, CreateSwitch, Mac, PortDriver, PortName, SetAddress, SwitchDetail, SwitchMode, SwitchName,
    SwitchPort, SwitchStatus, operation,
};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::live::grouped;
use crate::online::{self, Column, Connection, Failure, PortOptions, Table};
use crate::output;

/// Make, remove and list switches.
#[derive(Args)]
pub(crate) struct Switch {
    #[command(subcommand)]
    what: SwitchCommand,
}

#[derive(Subcommand)]
enum SwitchCommand {
    /// Make a switch.
    #[command(after_help = "Example: clickbox switch create lan --mode learning")]
    Create(Create),
    /// Remove switches and their ports; boxes that were attached go on, attached to nothing.
    #[command(visible_alias = "remove", after_help = "Example: clickbox switch rm lan")]
    Rm(Remove),
    /// List the switches.
    #[command(visible_alias = "list", after_help = "Example: clickbox switch ls --json")]
    Ls(Listing),
    /// Show the ports of a switch.
    #[command(after_help = "Example: clickbox switch show lan")]
    Show(Named),
}

/// How a switch finds the port of a frame.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Mode {
    /// By where an address was last seen; a frame to an unknown one goes everywhere.
    #[default]
    Learning,
    /// By a table that is set.
    Static,
}

#[derive(Args)]
struct Create {
    /// The name of the switch.
    name: SwitchName,
    /// How it finds the port of a frame.
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Seconds for which a learned address is believed.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    age: u32,
    /// Addresses that one port may teach.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    addresses_per_port: u32,
    /// Print JSON: the switch.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Remove {
    /// The switches.
    #[arg(value_name = "SWITCH", required = true, add = ArgValueCompleter::new(online::switches))]
    names: Vec<SwitchName>,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Listing {
    /// Print JSON: a list.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Named {
    /// The switch.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    name: SwitchName,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Add ports to switches, and remove them.
#[derive(Args)]
pub(crate) struct Port {
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

/// Say at which port of a static switch addresses are, and list those that a switch knows.
#[derive(Args)]
pub(crate) struct Address {
    #[command(subcommand)]
    what: AddressCommand,
}

#[derive(Subcommand)]
enum AddressCommand {
    /// Say at which port of a static switch an address is.
    #[command(after_help = "Example: clickbox address add lan 02:00:00:00:00:01 tap0")]
    Add(AddAddress),
    /// Make a static switch forget an address.
    #[command(visible_alias = "remove", after_help = "Example: clickbox address rm lan 02:00:00:00:00:01")]
    Rm(RemoveAddress),
    /// List the addresses that a switch knows.
    #[command(visible_alias = "list", after_help = "Example: clickbox address ls lan")]
    Ls(Named),
}

#[derive(Args)]
struct AddAddress {
    /// The switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// The address.
    #[arg(value_name = "MAC")]
    address: Mac,
    /// The port.
    #[arg(add = ArgValueCompleter::new(online::ports))]
    port: PortName,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct RemoveAddress {
    /// The switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// The address.
    #[arg(value_name = "MAC")]
    address: Mac,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs `switch`.
pub(super) fn switch(arguments: &Switch) -> Result<ExitCode, Failure> {
    match &arguments.what {
        SwitchCommand::Create(create) => {
            let request = CreateSwitch {
                mode: match create.mode {
                    Mode::Learning => SwitchMode::Learning,
                    Mode::Static => SwitchMode::Static,
                },
                age_seconds: create.age,
                addresses_per_port: create.addresses_per_port,
                ..CreateSwitch::new(create.name.clone())
            };
            let detail = create.daemon.client()?.send(&operation::CREATE_SWITCH, &[], &request)?;
            if create.json {
                output::json(&detail);
            }
        }
        SwitchCommand::Rm(remove) => {
            let client = remove.daemon.client()?;
            for name in &remove.names {
                client.ask(&operation::REMOVE_SWITCH, &[name.as_str()])?;
            }
            online::done(remove.json);
        }
        SwitchCommand::Ls(listing) => {
            let switches = listing.daemon.client()?.ask(&operation::LIST_SWITCHES, &[])?;
            if listing.json {
                output::json(&switches);
            } else {
                let table = Table { columns: SWITCHES, rows: switches.iter().map(switch_row).collect() };
                online::print(&table, "there are no switches: make one with `clickbox switch create NAME`");
            }
        }
        SwitchCommand::Show(named) => show_ports(named, output::json)?,
    }
    Ok(ExitCode::SUCCESS)
}

const SWITCHES: &[Column] = &[
    Column::long("NAME", 10),
    Column::text("MODE"),
    Column::number("PORTS"),
    Column::number("ADDRESSES"),
    Column::number("CPU"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::number("DROP/S"),
];

fn switch_row(status: &SwitchStatus) -> Vec<String> {
    vec![
        status.name.to_string(),
        match status.mode {
            SwitchMode::Learning => "learning".into(),
            SwitchMode::Static => "static".into(),
        },
        status.ports.to_string(),
        status.addresses.to_string(),
        online::share(status.rates.cores),
        online::rate(status.rates.received_packets),
        online::rate(status.rates.sent_packets),
        online::rate(status.rates.dropped_packets),
    ]
}

/// Runs `port`.
pub(super) fn port(arguments: &Port) -> Result<ExitCode, Failure> {
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

fn show_ports(named: &Named, json: impl Fn(&SwitchDetail)) -> Result<(), Failure> {
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

const ADDRESSES: &[Column] =
    &[Column::text("ADDRESS"), Column::long("PORT", 10), Column::text("KIND"), Column::number("AGE")];

/// Runs `address`.
pub(super) fn address(arguments: &Address) -> Result<ExitCode, Failure> {
    match &arguments.what {
        AddressCommand::Add(add) => {
            let path = [add.switch.as_str(), &add.address.to_string()];
            let request = SetAddress { port: add.port.clone() };
            add.daemon.client()?.send(&operation::SET_ADDRESS, &path, &request)?;
            online::done(add.json);
        }
        AddressCommand::Rm(remove) => {
            let path = [remove.switch.as_str(), &remove.address.to_string()];
            remove.daemon.client()?.ask(&operation::REMOVE_ADDRESS, &path)?;
            online::done(remove.json);
        }
        AddressCommand::Ls(named) => {
            let entries = named.daemon.client()?.ask(&operation::LIST_ADDRESSES, &[named.name.as_str()])?;
            if named.json {
                output::json(&entries);
            } else {
                let row = |entry: &api::AddressEntry| {
                    let kind = match entry.kind {
                        AddressKind::Static => "static",
                        AddressKind::Learned => "learned",
                    };
                    let age = entry.age_seconds.map_or("-".into(), |age| format!("{age}s"));
                    vec![entry.mac.to_string(), entry.port.to_string(), kind.to_string(), age]
                };
                let table = Table { columns: ADDRESSES, rows: entries.iter().map(row).collect() };
                online::print(&table, "it knows no addresses");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
