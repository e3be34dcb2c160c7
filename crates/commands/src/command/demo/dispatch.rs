//! The options of `clickbox demo`.

use std::process::ExitCode;

use clap::Args;

use super::{boxes, engine, network};
use crate::error::CommandError;
use crate::value;

/// Run a demonstration with three boxes under traffic.
///
/// Starts a private daemon, boots a firewall, a NAT and a flow monitor in virtual machines (or in processes if KVM is
/// not usable), and sends a built-in capture through them. While packets flow, it changes a rule of the firewall, then
/// kills a box and lets it restart. At the end it prints the packets received, sent, and dropped for each reason. It
/// needs no network and no privileges.
///
/// With `--network`, it makes network namespaces, connects them by the stacks of `examples/networks`, runs clients and
/// servers in them, and prints what passes. This needs root and the program `ip`. Nothing remains afterwards.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox demo\n          clickbox demo --engine --seconds 2\n          clickbox demo --network router"
)]
pub(crate) struct Arguments {
    /// Run the three functions as one configuration in this process, without boxes, at full speed.
    #[arg(long)]
    engine: bool,
    /// Run an example stack between network namespaces: bridge-firewall, router, nat, load-balancer [default: all]
    #[arg(long, value_enum, value_name = "NAME", num_args = 0..=1, default_missing_value = "all", hide_possible_values = true)]
    #[arg(conflicts_with_all = ["engine", "seconds", "rate"])]
    network: Option<network::Choice>,
    /// Duration of the traffic.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = value::seconds(0.0..=86_400.0))]
    seconds: f64,
    /// Packets per second sent into the chain of boxes.
    #[arg(long, default_value_t = 20_000, value_name = "N", conflicts_with = "engine")]
    rate: u64,
    /// Sandbox of the boxes.
    #[arg(long, value_enum, default_value_t, conflicts_with = "engine")]
    sandbox: boxes::SandboxOption,
    /// Print the configurations and exit.
    #[arg(long)]
    print: bool,
    /// Print JSON at the end instead: {"seconds", "received_packets", "sent": [...], "dropped": [...], ...}.
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    if let Some(choice) = arguments.network {
        return network::run(choice, arguments.sandbox, arguments.print, arguments.json);
    }
    match (arguments.engine, arguments.print) {
        (true, true) => engine::print(),
        (true, false) => engine::run(arguments.seconds, arguments.json)?,
        (false, true) => boxes::print(),
        (false, false) => {
            boxes::run(arguments.seconds, arguments.rate, arguments.sandbox, arguments.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
