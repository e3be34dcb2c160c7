//! `clickbox switch`: the switches that connect boxes.

use std::process::ExitCode;

use api::operation::{Json, Nothing, Operation};
use api::{
    ControllerAddress, ControllerRole, ControllerStatus, CreateSwitch, FailMode, OpenFlowNumber, Owner,
    RemoveQuery, SteeringStatus, SwitchDetail, SwitchMode, SwitchName, SwitchStatus, operation,
};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use super::port;
use crate::error::CommandError;
use crate::number_format::grouped;
use crate::online::{self, Column, Connection, Table};
use crate::output;

/// Manage switches, which connect boxes.
#[derive(Args)]
#[command(after_help = "Examples: clickbox switch create lan --mode learning\n          clickbox switch ls")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: SwitchCommand,
}

#[derive(Subcommand)]
enum SwitchCommand {
    /// Create a switch.
    #[command(after_help = "Example: clickbox switch create lan --mode learning")]
    Create(Create),
    /// Remove switches with their ports.
    ///
    /// A switch to which boxes or other switches are attached is removed only by force. Boxes then keep running, and are
    /// attached again when a switch of this name is created. A switch with services is removed only after them, even by force.
    #[command(
        visible_alias = "remove",
        after_help = "Examples: clickbox switch rm lan\n          clickbox switch rm --force lan"
    )]
    Rm(Remove),
    /// List switches.
    #[command(visible_alias = "list", after_help = "Example: clickbox switch ls --json")]
    Ls(Listing),
    /// Let the boxes and switches of other owners be attached to a switch.
    #[command(after_help = "Example: clickbox switch share lan alice bob")]
    Share(Sharing),
    /// Withdraw a switch from other owners.
    ///
    /// What they have attached to it is detached: the ports of their boxes lead nowhere, and the pipes of their switches are
    /// removed. Boxes keep running.
    #[command(after_help = "Example: clickbox switch unshare lan bob")]
    Unshare(Sharing),
    /// Show the ports of a switch.
    #[command(after_help = "Example: clickbox switch show lan")]
    Show(SwitchArguments),
}

/// How a switch finds the output port of a frame.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Mode {
    /// Learn addresses from source addresses; flood frames to unknown addresses.
    #[default]
    Learning,
    /// Use a table set with `clickbox address`.
    Static,
    /// Use flows set with `clickbox flow`; drop frames that match none.
    Steering,
}

/// What a switch does while no controller is connected.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailModeName {
    /// Keep the flows, and drop frames that match none.
    Secure,
    /// Keep the flows, and forward frames that match none by learned addresses.
    Standalone,
}

#[derive(Args)]
struct Create {
    /// Name of the switch.
    name: SwitchName,
    /// How the switch finds the output port of a frame.
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// OpenFlow controller that a steering switch connects to, `tcp:ADDRESS:PORT` or `tls:ADDRESS:PORT`, or where it listens
    /// for controllers, `ptcp:PORT:ADDRESS` or `ptls:PORT:ADDRESS`. May be repeated.
    #[arg(long = "controller", value_name = "ADDRESS")]
    controllers: Vec<ControllerAddress>,
    /// What a switch with controllers does while none is connected [default: secure]
    #[arg(long, value_enum, requires = "controllers")]
    fail_mode: Option<FailModeName>,
    /// Seconds until a learned address expires.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    age: u32,
    /// Limit of learned addresses per port.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    addresses_per_port: u32,
    /// Owner of the switch. Only this owner's boxes and switches can be attached to it.
    #[arg(long, default_value_t)]
    owner: Owner,
    /// Let the boxes and switches of another owner be attached too. May be repeated.
    #[arg(long = "share-with", value_name = "OWNER")]
    shared_with: Vec<Owner>,
    /// Print JSON: the switch.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Remove {
    /// Names of the switches.
    #[arg(value_name = "SWITCH", required = true, add = ArgValueCompleter::new(online::switches))]
    names: Vec<SwitchName>,
    /// Also remove switches that boxes or other switches use.
    #[arg(long, short)]
    force: bool,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Sharing {
    /// Name of the switch.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    name: SwitchName,
    /// The other owners.
    #[arg(value_name = "OWNER", required = true)]
    owners: Vec<Owner>,
    /// Print JSON: the switch.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

impl Sharing {
    /// Calls an operation for each owner.
    fn call(&self, operation: &Operation<Nothing, Nothing, Json<SwitchDetail>>) -> Result<(), CommandError> {
        let client = self.daemon.client()?;
        for (number, owner) in self.owners.iter().enumerate() {
            let detail = client.ask(operation, &[self.name.as_str(), owner.as_str()])?;
            if self.json && number + 1 == self.owners.len() {
                output::json(&detail);
            }
        }
        Ok(())
    }
}

#[derive(Args)]
struct Listing {
    /// Print JSON: a list of switches.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// A switch, by its name.
#[derive(Args)]
pub(super) struct SwitchArguments {
    /// Name of the switch.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    pub(super) name: SwitchName,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) daemon: Connection,
}

/// Runs `switch`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        SwitchCommand::Create(create) => {
            let request = CreateSwitch {
                mode: match create.mode {
                    Mode::Learning => SwitchMode::Learning,
                    Mode::Static => SwitchMode::Static,
                    Mode::Steering => SwitchMode::Steering,
                },
                age_seconds: create.age,
                addresses_per_port: create.addresses_per_port,
                owner: create.owner.clone(),
                shared_with: create.shared_with.iter().cloned().collect(),
                controllers: create.controllers.clone(),
                fail_mode: match create.fail_mode {
                    None | Some(FailModeName::Secure) => FailMode::Secure,
                    Some(FailModeName::Standalone) => FailMode::Standalone,
                },
                ..CreateSwitch::new(create.name.clone())
            };
            let detail = create.daemon.client()?.send(&operation::CREATE_SWITCH, &[], &request)?;
            if create.json {
                output::json(&detail);
            }
        }
        SwitchCommand::Rm(remove) => {
            let client = remove.daemon.client()?;
            let query = RemoveQuery { force: remove.force };
            for name in &remove.names {
                client.call(&operation::REMOVE_SWITCH, &[name.as_str()], &query, &())?;
            }
            online::print_success(remove.json);
        }
        SwitchCommand::Ls(listing) => {
            let switches = listing.daemon.client()?.ask(&operation::LIST_SWITCHES, &[])?;
            if listing.json {
                output::json(&switches);
            } else {
                let table = Table { columns: SWITCHES, rows: switches.iter().map(switch_row).collect() };
                online::print(&table, "there are no switches: create one with `clickbox switch create NAME`");
            }
        }
        SwitchCommand::Share(sharing) => sharing.call(&operation::SHARE_SWITCH)?,
        SwitchCommand::Unshare(sharing) => sharing.call(&operation::UNSHARE_SWITCH)?,
        SwitchCommand::Show(named) => {
            let detail = named.daemon.client()?.ask(&operation::SHOW_SWITCH, &[named.name.as_str()])?;
            if named.json {
                output::json(&detail);
            } else {
                print_controllers(&detail);
                print_steering(&detail);
                port::print(&[detail]);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the controllers of a switch, if it has any.
fn print_controllers(detail: &SwitchDetail) {
    if !detail.controllers.is_empty() {
        let rows = detail.controllers.iter().map(controller_row).collect();
        online::print(&Table { columns: CONTROLLERS, rows }, "");
        // What the configuration of a controller has to name, and what its entries name.
        output::text(&format!("\ndatapath {}\n\n", detail.datapath.as_deref().unwrap_or("-")));
        let row = |found: &OpenFlowNumber| vec![found.number.to_string(), found.port.to_string()];
        let rows: Vec<Vec<String>> = detail.openflow_numbers.iter().map(row).collect();
        if !rows.is_empty() {
            online::print(&Table { columns: OPENFLOW_NUMBERS, rows }, "");
            output::text("\n");
        }
    }
}

const OPENFLOW_NUMBERS: &[Column] = &[Column::number("OPENFLOW"), Column::flexible("PORT", 20)];

const CONTROLLERS: &[Column] = &[
    Column::flexible("CONTROLLER", 20),
    Column::text("STATE"),
    Column::text("ROLE"),
    Column::number("SINCE"),
    Column::flexible("LAST ERROR", 10),
];

fn controller_row(status: &ControllerStatus) -> Vec<String> {
    let role = match status.role {
        Some(ControllerRole::Equal) => "equal",
        Some(ControllerRole::Master) => "master",
        Some(ControllerRole::Slave) => "slave",
        None => "-",
    };
    vec![
        status.address.to_string(),
        if status.connected { "connected".into() } else { "not connected".into() },
        role.into(),
        format!("{}s", status.since_seconds),
        status.error.clone().unwrap_or("-".into()),
    ]
}

/// Prints how packets found their flows, if it is a steering switch.
fn print_steering(detail: &SwitchDetail) {
    if let Some(steering) = &detail.status.steering {
        online::print(&Table { columns: STEERING, rows: vec![steering_row(steering)] }, "");
        output::text("\n");
    }
}

const STEERING: &[Column] = &[
    Column::number("FLOWS"),
    Column::number("OF CONTROLLERS"),
    Column::number("LOOKUPS"),
    Column::number("CACHED"),
    Column::number("EVICTED"),
    Column::number("FRAGMENTS"),
    Column::number("UNKNOWN"),
    Column::number("LOST REPORTS"),
];

fn steering_row(status: &SteeringStatus) -> Vec<String> {
    let cached = match status.lookups {
        0 => "-".into(),
        // Rounded down, so that 100 % means all.
        lookups => format!("{:.1}%", (status.cache_hits as f64 / lookups as f64 * 1000.0).floor() / 10.0),
    };
    let mut row: Vec<String> =
        [u64::from(status.flows), status.controller_entries.into(), status.lookups].map(grouped).into();
    row.push(cached);
    let rest =
        [status.cache_evictions, status.fragments_followed, status.fragments_unknown, status.lost_reports];
    row.extend(rest.map(grouped));
    row
}

const SWITCHES: &[Column] = &[
    Column::flexible("NAME", 10),
    Column::flexible("OWNER", 8),
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
        status.owner.to_string(),
        match status.mode {
            SwitchMode::Learning => "learning".into(),
            SwitchMode::Static => "static".into(),
            SwitchMode::Steering => "steering".into(),
        },
        status.ports.to_string(),
        status.addresses.to_string(),
        online::share(status.rates.cores),
        online::rate(status.rates.received_packets),
        online::rate(status.rates.sent_packets),
        online::rate(status.rates.dropped_packets),
    ]
}
