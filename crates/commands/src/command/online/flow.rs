//! `clickbox flow`: the flows of steering switches.

use std::process::ExitCode;
use std::time::Duration;

use api::{
    AddFlow as FlowRequest, CONDITION, ChainName, FlowOutput, FlowStatus, PortName, SwitchName, operation,
};
use clap::{ArgGroup, Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::flow_entries;
use super::stack::seconds;
use crate::error::CommandError;
use crate::online::{self, Column, Connection, Table};
use crate::output;
use crate::source::SourceText;

/// Manage the flows of steering switches.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox flow add lan --match 'tcp dst port 80 or 443' --output wan0\n          clickbox flow ls lan"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: FlowCommand,
}

#[derive(Subcommand)]
enum FlowCommand {
    /// Add a flow to a steering switch.
    ///
    /// A flow with a timeout is not stored: it also ends when the fabric ends.
    #[command(
        after_help = "Examples: clickbox flow add lan --match 'tcp dst port 80 or 443' --output wan0\n          clickbox flow add lan --match 'tcp dst port 80 or 443' --chain web"
    )]
    Add(AddFlow),
    /// Remove flows from a steering switch.
    #[command(visible_alias = "remove", after_help = "Example: clickbox flow rm lan 1")]
    Rm(RemoveFlow),
    /// List the flows of a switch.
    #[command(
        visible_alias = "list",
        after_help = "Examples: clickbox flow ls lan\n          clickbox flow ls lan --controllers"
    )]
    Ls(ListFlows),
}

#[derive(Args)]
#[command(group(ArgGroup::new("where").required(true).args(["output", "chain"])))]
struct AddFlow {
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Condition on the packets, in the language of `IPClassifier`; without it, all packets.
    #[arg(long = "match", value_name = "EXPRESSION")]
    condition: Option<String>,
    /// Port that the packets come from; without it, any.
    #[arg(long, value_name = "PORT", add = ArgValueCompleter::new(online::ports))]
    in_port: Option<PortName>,
    /// Where the packets go: the name of a port (or port:NAME), chain:NAME, `normal` (as a learning switch forwards them),
    /// `flood` or `drop`.
    #[arg(long, value_name = "OUTPUT", add = ArgValueCompleter::new(online::ports))]
    output: Option<FlowOutput>,
    /// Chain of services that the packets take, as with --output chain:CHAIN.
    #[arg(long, value_name = "CHAIN", add = ArgValueCompleter::new(online::chains))]
    chain: Option<ChainName>,
    /// Priority: of the flows that a packet matches, the one with the highest counts. Default: 32768, or 0 for a flow
    /// without `--match` and `--in-port`.
    #[arg(long, value_name = "N")]
    priority: Option<u16>,
    /// End the flow after this time (such as 60s or 5m) without packets.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    idle: Option<u32>,
    /// End the flow after this time.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u32>,
    /// Print JSON: the flow.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct ListFlows {
    /// List what the OpenFlow controllers of the switch have added in place of its flows: flow entries, groups and meters.
    #[arg(long)]
    controllers: bool,
    /// Name of the switch. Default: the only steering switch.
    #[arg(value_name = "SWITCH", add = ArgValueCompleter::new(online::switches))]
    switch: Option<SwitchName>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct RemoveFlow {
    /// Name of the switch.
    #[arg(add = ArgValueCompleter::new(online::switches))]
    switch: SwitchName,
    /// Numbers of the flows.
    #[arg(value_name = "ID", required = true)]
    flows: Vec<u64>,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const FLOWS: &[Column] = &[
    Column::number("ID"),
    Column::number("PRIORITY"),
    Column::flexible("MATCH", 10),
    Column::text("IN-PORT"),
    Column::text("OUTPUT"),
    Column::number("PACKETS"),
    Column::number("BYTES"),
    Column::number("AGE"),
    Column::text("ENDS"),
];

/// Runs `flow`.
pub(super) fn run(arguments: &Arguments, texts: &mut Vec<SourceText>) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        FlowCommand::Add(add) => {
            let text = add.condition.clone().unwrap_or_default();
            texts.push(SourceText { name: CONDITION.into(), text });
            let request = FlowRequest {
                condition: add.condition.clone(),
                in_port: add.in_port.clone(),
                // One of the two is there.
                output: match (&add.output, &add.chain) {
                    (_, Some(chain)) => FlowOutput::Chain(chain.clone()),
                    (Some(output), None) => output.clone(),
                    (None, None) => FlowOutput::Drop,
                },
                priority: add.priority,
                idle_seconds: add.idle,
                timeout_seconds: add.timeout,
            };
            let flow = add.daemon.client()?.send(&operation::ADD_FLOW, &[add.switch.as_str()], &request)?;
            match add.json {
                true => output::json(&flow),
                false => output::text(&format!("flow {} was added to switch {}\n", flow.id, add.switch)),
            }
        }
        FlowCommand::Rm(remove) => {
            let client = remove.daemon.client()?;
            for flow in &remove.flows {
                client.ask(&operation::REMOVE_FLOW, &[remove.switch.as_str(), &flow.to_string()])?;
            }
            online::print_success(remove.json);
        }
        FlowCommand::Ls(list) => {
            let client = list.daemon.client()?;
            let switch = online::chosen_switch(&client, list.switch.as_ref(), "`clickbox flow ls SWITCH`")?;
            if list.controllers {
                flow_entries::list(&client, &switch, list.json)?;
                return Ok(ExitCode::SUCCESS);
            }
            let flows = client.ask(&operation::LIST_FLOWS, &[switch.as_str()])?;
            if list.json {
                output::json(&flows);
                return Ok(ExitCode::SUCCESS);
            }
            let detail = client.ask(&operation::SHOW_SWITCH, &[switch.as_str()])?;
            let rest = match detail.controllers.is_empty() {
                true => "it drops what no chain takes",
                false => "its controllers decide about packets (see --controllers)",
            };
            let table = Table { columns: FLOWS, rows: flows.iter().map(row).collect() };
            online::print(&table, &format!("switch {switch} has no flows: {rest}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(status: &FlowStatus) -> Vec<String> {
    let FlowStatus { id, flow, packets, bytes, age_seconds, .. } = status;
    let time = |seconds: u32| humantime::format_duration(Duration::from_secs(seconds.into())).to_string();
    let idle = flow.idle_seconds.map(|seconds| format!("idle {}", time(seconds)));
    let hard = flow.timeout_seconds.map(|seconds| format!("after {}", time(seconds)));
    let ends: Vec<String> = [idle, hard].into_iter().flatten().collect();
    vec![
        id.to_string(),
        flow.effective_priority().to_string(),
        flow.condition.clone().unwrap_or_else(|| "any".into()),
        flow.in_port.as_ref().map_or("any".into(), ToString::to_string),
        flow.output.to_string(),
        packets.to_string(),
        bytes.to_string(),
        format!("{age_seconds}s"),
        if ends.is_empty() { "-".into() } else { ends.join(", ") },
    ]
}
