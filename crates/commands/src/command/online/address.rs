//! `clickbox address`: the address tables of switches.

use std::process::ExitCode;

use api::{AddressKind, MacAddr, PortName, SetAddress, SwitchName, operation};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::switch::SwitchArguments;
use crate::error::CommandError;
use crate::online::{self, Column, Connection, Table};
use crate::output;

/// Manage the address tables of switches.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox address add lan 02:00:00:00:00:01 tap0\n          clickbox address ls lan"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: AddressCommand,
}

#[derive(Subcommand)]
enum AddressCommand {
    /// Assign an address to a port of a static switch.
    #[command(after_help = "Example: clickbox address add lan 02:00:00:00:00:01 tap0")]
    Add(AddAddress),
    /// Remove an address from a static switch.
    #[command(visible_alias = "remove", after_help = "Example: clickbox address rm lan 02:00:00:00:00:01")]
    Rm(RemoveAddress),
    /// List the addresses of a switch.
    #[command(visible_alias = "list", after_help = "Example: clickbox address ls lan")]
    Ls(SwitchArguments),
}

#[derive(Args)]
struct AddAddress {
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Ethernet address.
    #[arg(value_name = "MAC")]
    address: MacAddr,
    /// Name of the port.
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
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Ethernet address.
    #[arg(value_name = "MAC")]
    address: MacAddr,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const ADDRESSES: &[Column] =
    &[Column::text("ADDRESS"), Column::flexible("PORT", 10), Column::text("KIND"), Column::number("AGE")];

/// Runs `address`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        AddressCommand::Add(add) => {
            let path = [add.switch.as_str(), &add.address.to_string()];
            let request = SetAddress { port: add.port.clone() };
            add.daemon.client()?.send(&operation::SET_ADDRESS, &path, &request)?;
            online::print_success(add.json);
        }
        AddressCommand::Rm(remove) => {
            let path = [remove.switch.as_str(), &remove.address.to_string()];
            remove.daemon.client()?.ask(&operation::REMOVE_ADDRESS, &path)?;
            online::print_success(remove.json);
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
                online::print(&table, &format!("switch {} has no addresses", named.name));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
