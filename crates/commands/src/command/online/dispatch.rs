//! The commands that talk to a daemon.

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    account, address, audit, capture, chain, create, doctor, events, files, flow, handlers, install,
    lifecycle, list, logs, port, save, service, show, stack, store, switch, top,
};
use crate::error::CommandError;
use crate::online;

/// The commands that talk to a daemon, in the order of the help.
#[derive(Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Create(create::Arguments),
    Ps(list::Arguments),
    Top(top::Arguments),
    Show(show::Arguments),
    Account(account::Arguments),
    Logs(logs::Arguments),
    Files(files::Arguments),
    Read(handlers::Read),
    Write(handlers::Write),
    Handlers(handlers::List),
    Install(install::Install),
    Reload(install::Reload),
    Uninstall(install::Uninstall),
    Save(save::Arguments),
    #[command(flatten)]
    Lifecycle(lifecycle::Command),
    Capture(capture::Arguments),
    Events(events::Arguments),
    Audit(audit::Arguments),
    Switch(switch::Arguments),
    Port(port::Arguments),
    Address(address::Arguments),
    Flow(flow::Arguments),
    Service(service::Arguments),
    Chain(chain::Arguments),
    Up(stack::Up),
    Diff(stack::Diff),
    Export(stack::Export),
    Confirm(stack::Confirm),
    Rollback(stack::Rollback),
    Down(stack::Down),
    Stacks(stack::List),
    Store(store::Arguments),
    Doctor(doctor::Arguments),
}

/// Runs a command. If the daemon rejects a configuration, prints its diagnostics.
pub(crate) fn run(command: &Command) -> Result<ExitCode, CommandError> {
    let mut texts = Vec::new();
    let result = match command {
        Command::Create(arguments) => create::run(arguments, &mut texts),
        Command::Ps(arguments) => list::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Account(arguments) => account::run(arguments),
        Command::Logs(arguments) => logs::run(arguments),
        Command::Files(arguments) => files::run(arguments),
        Command::Read(arguments) => handlers::read(arguments),
        Command::Write(arguments) => handlers::write(arguments),
        Command::Handlers(arguments) => handlers::list(arguments),
        Command::Install(arguments) => install::install(arguments, &mut texts),
        Command::Reload(arguments) => install::reload(arguments, &mut texts),
        Command::Uninstall(arguments) => install::uninstall(arguments),
        Command::Save(arguments) => save::run(arguments),
        Command::Lifecycle(command) => lifecycle::run(command),
        Command::Capture(arguments) => capture::run(arguments),
        Command::Events(arguments) => events::run(arguments),
        Command::Audit(arguments) => audit::run(arguments),
        Command::Switch(arguments) => switch::run(arguments),
        Command::Port(arguments) => port::run(arguments),
        Command::Address(arguments) => address::run(arguments),
        Command::Flow(arguments) => flow::run(arguments, &mut texts),
        Command::Service(arguments) => service::run(arguments, &mut texts),
        Command::Chain(arguments) => chain::run(arguments),
        Command::Up(arguments) => stack::up(arguments, &mut texts),
        Command::Diff(arguments) => stack::diff(arguments, &mut texts),
        Command::Export(arguments) => stack::export(arguments),
        Command::Confirm(arguments) => stack::confirm(arguments),
        Command::Rollback(arguments) => stack::rollback(arguments),
        Command::Down(arguments) => stack::down(arguments),
        Command::Stacks(arguments) => stack::list(arguments),
        Command::Store(arguments) => store::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
    };
    result.inspect_err(|error| online::diagnostics(error.details(), &texts))
}
