//! The commands of the `clickbox` program.
//!
//! Each subcommand is a file in `command`. If the program is called `click`, it behaves like Click's driver.
//! `environment` provides the files, devices and sockets that configurations use.
//!
//! Absent: packet processing, which is in the engine; the element library and the box images, which the program passes
//! to [`main`].

mod color;
mod columns;
mod command;
mod components;
mod configuration;
mod diagnostic_printer;
mod environment;
mod error;
mod generate;
mod graph;
mod help;
mod host;
mod live;
mod number_format;
mod online;
mod output;
mod screen;
mod shards;
mod snapshot;
mod source;
mod thread_box;
mod value;
mod wrap;

pub use components::Components;

use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;

/// Run Click network functions, each in its own lightweight sandbox.
#[derive(Parser)]
#[command(name = "clickbox", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// The arguments of a command are put together only if it is the one to run: all of them take longer than most commands.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    Demo(command::demo::Arguments),
    Check(command::check::Arguments),
    Run(command::run::Arguments),
    Fmt(command::fmt::Arguments),
    Flatten(command::flatten::Arguments),
    Graph(command::graph::Arguments),
    Element(command::element::Arguments),
    #[command(disable_help_flag = true)]
    Click(command::click::Arguments),
    Bench(command::bench::Arguments),
    Function(command::function::Arguments),
    Generate(command::generate::Arguments),
    Completion(command::completion::Arguments),
    Daemon(command::daemon::Arguments),
    Token(command::token::Arguments),
    Launcher(command::launcher::Arguments),
    Fabric(command::fabric::Arguments),
    Agent(command::agent::Arguments),
    Upgrade(command::upgrade::Arguments),
    #[command(flatten)]
    Online(command::online::Command),
}

/// Runs the program with the arguments of this process. Returns its exit status.
pub fn main(components: Components) -> ExitCode {
    components::set(components);
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let is_click = std::path::Path::new(&name).file_name().is_some_and(|file| file == "click");
    if is_click {
        return command::click::main(arguments);
    }
    if std::env::var_os(command::completion::VARIABLE).is_some() {
        CompleteEnv::with_factory(Arguments::command).var(command::completion::VARIABLE).complete();
    }
    let first = arguments.next().unwrap_or_default();
    if first == "click" {
        return command::click::main(arguments);
    }
    if first == "--version" || first == "-V" {
        // Answered before the commands are put together, which takes longer than the rest.
        output::text(concat!("clickbox ", env!("CARGO_PKG_VERSION"), "\n"));
        return ExitCode::SUCCESS;
    }
    let program = Arguments::command();
    // The grouped help page, which needs all commands, is built only if it may be printed.
    let is_command = program.find_subcommand(first).is_some();
    // To take the commands apart takes as long as to parse the arguments, so it is left to the end of the process.
    let mut program = ManuallyDrop::new(if is_command { program } else { help::grouped(program) });
    let matches = program.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let result = match arguments.command {
        Command::Demo(arguments) => command::demo::run(&arguments),
        Command::Check(arguments) => command::check::run(&arguments),
        Command::Run(arguments) => command::run::run(&arguments),
        Command::Fmt(arguments) => command::fmt::run(&arguments),
        Command::Flatten(arguments) => command::flatten::run(&arguments),
        Command::Graph(arguments) => command::graph::run(&arguments),
        Command::Element(arguments) => command::element::run(&arguments),
        Command::Click(arguments) => Ok(command::click::run(arguments)),
        Command::Bench(arguments) => command::bench::run(&arguments),
        Command::Function(arguments) => command::function::run(&arguments),
        Command::Generate(arguments) => command::generate::run(arguments),
        Command::Daemon(arguments) => command::daemon::run(&arguments),
        Command::Token(arguments) => command::token::run(&arguments),
        Command::Launcher(arguments) => command::launcher::run(&arguments),
        Command::Fabric(arguments) => command::fabric::run(&arguments),
        Command::Agent(arguments) => command::agent::run(&arguments),
        Command::Upgrade(arguments) => command::upgrade::run(&arguments),
        Command::Online(command) => command::online::run(&command),
        Command::Completion(arguments) => command::completion::run(&arguments),
    };
    result.unwrap_or_else(|error| error.print())
}
