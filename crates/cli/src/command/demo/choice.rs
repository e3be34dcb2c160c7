//! Which demonstration it is.

use std::process::ExitCode;

use clap::Args;

use super::{boxes, engine};

/// Show a firewall, a NAT and a flow monitor at work, each in a box of its own.
///
/// Starts a daemon of its own, boots the three boxes in virtual machines (in processes where there is no usable KVM),
/// and plays a capture that is in the program through them. Shows what passes each box, changes a rule of the firewall
/// under traffic, kills a box and shows it back; says at the end what went in, what came out, and why packets were
/// dropped. Needs no network and no rights.
#[derive(Args)]
#[command(after_help = "Examples: clickbox demo\n          clickbox demo --engine --seconds 2")]
pub(crate) struct Arguments {
    /// Show the same three in one configuration in this process, without boxes, as fast as it goes.
    #[arg(long)]
    engine: bool,
    /// For how long packets come.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    seconds: f64,
    /// Packets a second that come into the boxes.
    #[arg(long, default_value_t = 20_000, value_name = "N", conflicts_with = "engine")]
    rate: u64,
    /// What the boxes run in.
    #[arg(long, value_enum, default_value_t, conflicts_with = "engine")]
    sandbox: boxes::SandboxOption,
    /// Print the configurations and do not run them.
    #[arg(long)]
    print: bool,
    /// Print JSON at the end instead: {"seconds", "received_packets", "sent": [...], "dropped": [...], ...}.
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0 to 86400 is wanted".into()),
    }
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match (arguments.engine, arguments.print) {
        (true, true) => engine::print(),
        (true, false) => return engine::run(arguments.seconds, arguments.json),
        (false, true) => boxes::print(),
        (false, false) => {
            return boxes::run(arguments.seconds, arguments.rate, arguments.sandbox, arguments.json);
        }
    }
    ExitCode::SUCCESS
}
