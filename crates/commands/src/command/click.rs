//! `clickbox click`: the drop-in driver, with the options and exit codes of Click's.

use std::ffi::OsString;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use clap::{ArgAction, CommandFactory, Parser};
use click_lang::{Element, Location};
use element::HandlerError;
use packet::Timestamp;
use router::{Options, Router};

use super::usage;
use crate::configuration;
use crate::environment::{self, Binding, ProcessEnvironment};
use crate::error::message;
use crate::output;
use crate::source::Source;

/// Run a configuration with the command-line options of Click.
#[derive(Parser)]
#[command(name = "click", disable_help_flag = true, disable_version_flag = true)]
#[command(infer_long_args = true, args_override_self = true)]
pub(crate) struct Arguments {
    /// Read the configuration from FILE.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Vec<String>,
    /// Use EXPR as the configuration.
    #[arg(short = 'e', long, value_name = "EXPR", allow_hyphen_values = true)]
    expression: Vec<String>,
    /// Number of threads that tasks may be assigned to; a single thread runs them all.
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1)]
    threads: i64,
    /// Pin the thread to CPU N (default 0).
    #[arg(short = 'a', long, visible_alias = "cpu", value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    affinity: Option<usize>,
    /// Listen for control connections on a TCP port; PORT+ also tries the ports after it.
    #[arg(short = 'p', long, value_name = "PORT", value_parser = port)]
    port: Vec<String>,
    /// Listen for control connections on a Unix socket.
    #[arg(short = 'u', long = "unix-socket", value_name = "FILE")]
    unix_socket: Vec<String>,
    /// Serve a control connection on an open file descriptor.
    #[arg(long, value_name = "FD")]
    socket: Vec<String>,
    /// Provide a writable `hotconfig` handler.
    #[arg(short = 'R', long = "allow-reconfigure")]
    allow_reconfigure: bool,
    /// Print the value of a read handler after the run; ELEMENT may be a pattern or a class.
    #[arg(short = 'h', long, value_name = "ELEMENT.H")]
    handler: Vec<String>,
    /// Use the value of a handler as the exit status.
    #[arg(short = 'x', long = "exit-handler", value_name = "ELEMENT.H")]
    exit_handler: Option<String>,
    /// Write the flat configuration to FILE.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<String>,
    /// Initialize the configuration, but do not run it.
    #[arg(short = 'q', long)]
    quit: bool,
    /// Print the CPU time and the elapsed time of the run.
    #[arg(short = 't', long)]
    time: bool,
    /// Do not print warnings.
    #[arg(short = 'w', long = "no-warnings", overrides_with = "warnings")]
    no_warnings: bool,
    /// Print warnings (the default).
    #[arg(long, overrides_with = "no_warnings")]
    warnings: bool,
    /// Run in simulated time, starting at T seconds.
    #[arg(long, visible_alias = "simulation-time", value_name = "T", num_args = 0..=1, require_equals = true, default_missing_value = "1000000000")]
    simtime: Option<f64>,
    /// Search the directories of PATH for libraries.
    #[arg(short = 'C', long, value_name = "PATH")]
    clickpath: Option<String>,
    /// Use an interface for a device name of the configuration, such as 0=af_packet:eth0, or captures, such as
    /// 0=pcap:in.pcap,out.pcap. With captures, the run ends when all are read and nothing else can happen. May be repeated.
    #[arg(long, value_name = "NAME=DRIVER:INTERFACE")]
    device: Vec<Binding>,
    /// Print this help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print the version.
    #[arg(short = 'v', visible_short_alias = 'V', long)]
    version: bool,
    /// A configuration file, or NAME=VALUE parameters.
    #[arg(value_name = "FILE | NAME=VALUE")]
    words: Vec<String>,
}

/// The program under the name `click`, with the arguments after its name.
pub(crate) fn main(given: impl Iterator<Item = OsString>) -> ExitCode {
    let given: Vec<OsString> = std::iter::once("click".into()).chain(given).collect();
    match Arguments::try_parse_from(&given) {
        Ok(arguments) => run(arguments),
        Err(error) if error.use_stderr() => {
            let given: Vec<String> = given.iter().map(|text| text.to_string_lossy().into_owned()).collect();
            usage::print_error(&error, &Arguments::command(), &given);
            ExitCode::from(1)
        }
        Err(error) => {
            print!("{error}");
            ExitCode::SUCCESS
        }
    }
}

/// Runs it.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    if arguments.version {
        println!("click (Clickbox {}) {}", env!("CARGO_PKG_VERSION"), router::ROUTER_VERSION);
        return ExitCode::SUCCESS;
    }
    switch::keep_freed_memory();
    if let Err(error) = environment::bind(&arguments.device) {
        eprintln!("{error}");
        return ExitCode::from(1);
    }
    match Driver::prepare(arguments) {
        Ok(mut driver) => driver.drive(),
        Err(()) => ExitCode::from(1),
    }
}

struct Driver {
    arguments: Arguments,
    router: Router,
    name: String,
}

impl Driver {
    /// Reads, compiles and initialises the configuration; prints errors.
    fn prepare(arguments: Arguments) -> Result<Driver, ()> {
        let (source, parameters) = source(&arguments)?;
        let text = source.read().map_err(|error| eprintln!("{}", message(&error)))?;
        let warnings = !arguments.no_warnings;
        let path = clickpath(arguments.clickpath.as_deref());
        let compiled = configuration::compile(&text, &parameters, &path);
        configuration::print_plain(&compiled.diagnostics, warnings);
        if compiled.has_errors() {
            return Err(());
        }
        let mut graph = compiled.graph;
        graph.elements.extend(control_sockets(&arguments, ""));
        let options = Options {
            simulated: arguments.simtime.map(Timestamp::from_seconds),
            source: text.text,
            allow_reconfigure: arguments.allow_reconfigure,
            // The addresses are in use until the previous sockets are handed over.
            added: control_sockets(&arguments, ", RETRIES 1, RETRY_WARNINGS false"),
            // Click never ends on its own, but has no captures that stand for devices.
            stop_when_idle: arguments.device.iter().any(Binding::is_capture),
            threads: usize::try_from(arguments.threads).unwrap_or_default().max(1),
            ..Options::default()
        };
        match configuration::router(graph, Rc::new(ProcessEnvironment::new()), options) {
            Ok(router) => {
                configuration::print_plain(router.warnings(), warnings);
                if warnings {
                    environment::unused_bindings().for_each(|warning| eprintln!("{warning}"));
                }
                Ok(Driver { arguments, router, name: text.name })
            }
            Err(problems) => {
                configuration::print_plain(&problems, warnings);
                eprintln!("Router could not be initialized!");
                Err(())
            }
        }
    }

    fn drive(&mut self) -> ExitCode {
        let mut status = self.write_output();
        let started = Instant::now();
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        if self.arguments.quit {
        } else if self.router.elements().next().is_some() {
            self.router.run(None);
        } else if !self.arguments.no_warnings {
            eprintln!("warning: {}: configuration has no elements, exiting", self.name);
        }
        if self.arguments.time {
            let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
            let cpu = (cpu.tv_sec - used.tv_sec) as f64 + (cpu.tv_nsec - used.tv_nsec) as f64 / 1e9;
            let wall = started.elapsed().as_secs_f64();
            output::text(&format!("{cpu:.3}u 0.000s {}:{:05.2}\n", (wall / 60.0) as u64, wall % 60.0));
        }
        if !self.print_handlers() {
            status = 1;
        }
        if let Some(path) = &self.arguments.exit_handler {
            return self.exit_status(path);
        }
        ExitCode::from(status)
    }

    fn write_output(&self) -> u8 {
        let Some(path) = &self.arguments.output else { return 0 };
        let flat = self.router.read("flatconfig", "").unwrap_or_default();
        if path == "-" {
            output::text(&flat);
        } else if let Err(error) = std::fs::write(path, flat) {
            eprintln!("{path}: {}", message(&error));
            return 1;
        }
        0
    }

    /// Prints the requested handlers; returns whether all could be read.
    fn print_handlers(&self) -> bool {
        let many = self.arguments.handler.len() > 1;
        let mut good = true;
        for path in &self.arguments.handler {
            for (path, named) in self.matching(path) {
                match self.read(&path) {
                    Ok(value) => {
                        let end = if value.is_empty() || value.ends_with('\n') { "" } else { "\n" };
                        if many || named {
                            output::text(&format!("{path}:\n{value}{end}\n"));
                        } else {
                            output::text(&format!("{value}{end}"));
                        }
                    }
                    // With a pattern, elements without the handler are skipped.
                    Err(HandlerError::NoHandler(_) | HandlerError::WrongKind { .. }) if named => {}
                    Err(error) => {
                        print_error(match &error {
                            HandlerError::NoElement(name) if is_pattern(name) => {
                                format!("no element matching ‘{name}’")
                            }
                            HandlerError::NoElement(name) => format!("no element ‘{name}’"),
                            HandlerError::NoHandler(path) => format!("no ‘{path}’ handler"),
                            other => other.to_string(),
                        });
                        good = false;
                    }
                }
            }
        }
        good
    }

    /// Reads a handler that is not hidden.
    fn read(&self, path: &str) -> Result<String, HandlerError> {
        let (element, name) =
            path.split_once('.').map_or((None, path), |(element, name)| (Some(element), name));
        let handlers = self.router.handlers(element).unwrap_or_default();
        if handlers.iter().any(|info| info.name == name && info.hidden) {
            return Err(HandlerError::NoHandler(path.into()));
        }
        match self.router.read(path, "") {
            // A handler that can't answer, such as one that needs a parameter, gives an empty value.
            Err(HandlerError::Rejected(_) | HandlerError::RejectedWithCode { .. }) => Ok(String::new()),
            Err(HandlerError::ReadWithErrors { value, .. }) => Ok(value),
            answer => answer,
        }
    }

    /// The handler paths that match `path`, and whether each is printed with its name. `path` may contain an element's
    /// name, a pattern or a class.
    fn matching(&self, path: &str) -> Vec<(String, bool)> {
        let Some((element, handler)) = path.split_once('.') else { return vec![(path.to_string(), false)] };
        if self.router.elements().any(|name| name == element) {
            return vec![(path.to_string(), false)];
        }
        let pattern = pattern(element);
        let names = self.router.elements().zip(self.router.classes());
        let matching = names.filter(|(name, class)| match &pattern {
            Some(pattern) => pattern.matches(name),
            None => *class == element,
        });
        let paths: Vec<_> = matching.map(|(name, _)| (format!("{name}.{handler}"), true)).collect();
        if paths.is_empty() { vec![(path.to_string(), false)] } else { paths }
    }

    fn exit_status(&self, path: &str) -> ExitCode {
        let value = match self.router.read(path, "") {
            Ok(value) => value,
            Err(error) => {
                print_error(error.of_call(true));
                return ExitCode::from(255);
            }
        };
        let value = element::text::uncomment(&value);
        match (value.parse::<i64>(), value.as_str()) {
            (Ok(number), _) => ExitCode::from(number as u8),
            (_, "true" | "yes") => ExitCode::SUCCESS,
            (_, "false" | "no") => ExitCode::from(1),
            _ => {
                eprintln!("exit handler value should be integer");
                ExitCode::from(255)
            }
        }
    }
}

/// Whether an element name is a shell pattern with `*`, `?` or `[a-z]`.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The pattern of a name. The crate writes `[^...]` as `[!...]` and does not accept consecutive stars.
fn pattern(name: &str) -> Option<glob::Pattern> {
    if !is_pattern(name) {
        return None;
    }
    let mut text = name.replace("[^", "[!");
    while text.contains("**") {
        text = text.replace("**", "*");
    }
    glob::Pattern::new(&text).ok()
}

/// Prints an error on standard error.
fn print_error(message: impl std::fmt::Display) {
    eprintln!("{}", configuration::quoted(&message.to_string()));
}

/// The configuration and the parameters on the command line.
fn source(arguments: &Arguments) -> Result<(Source, Vec<(String, String)>), ()> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    let mut sources = Vec::new();
    sources.extend(arguments.expression.iter().cloned().map(Source::Expression));
    sources.extend(arguments.file.iter().cloned().map(Source::File));
    for word in &arguments.words {
        match word.split_once('=') {
            Some((name, value)) if is_parameter(name) => {
                if parameters.iter().any(|(known, _)| known == name) {
                    print_error(format_args!("parameter ‘{name}’ multiply defined"));
                }
                parameters.push((name.to_string(), value.to_string()));
            }
            _ => sources.push(Source::File(word.clone())),
        }
    }
    if sources.len() > 1 {
        eprintln!(
            "router configuration specified twice\nUsage: click [OPTION]... [ROUTERFILE]\n\
             Try 'click --help' for more information."
        );
        return Err(());
    }
    Ok((sources.pop().unwrap_or_else(|| Source::File("-".into())), parameters))
}

/// A port, optionally with a `+`.
fn port(text: &str) -> Result<String, &'static str> {
    let number = text.strip_suffix('+').unwrap_or(text);
    number.parse::<u16>().map(|_| text.to_string()).map_err(|_| "not a TCP port number")
}

fn is_parameter(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The library folders; an empty entry in PATH stands for those of the environment.
fn clickpath(option: Option<&str>) -> Vec<String> {
    let inherited = std::env::var("CLICKPATH").unwrap_or_default();
    let text = option.unwrap_or(&inherited);
    std::iter::once(String::new())
        .chain(text.split(':').filter(|folder| !folder.is_empty()).map(Into::into))
        .collect()
}

/// The elements that serve the control connections requested on the command line.
fn control_sockets(arguments: &Arguments, more: &str) -> Vec<Element> {
    let addresses =
        [("TCP", &arguments.port), ("UNIX", &arguments.unix_socket), ("SOCKET", &arguments.socket)];
    let all = addresses.iter().flat_map(|(kind, list)| list.iter().map(move |address| (*kind, address)));
    let element = |(number, (kind, address)): (usize, (&str, &String))| Element {
        name: format!(
            "click_driver@@ControlSocket{}",
            if number == 0 { String::new() } else { format!("@{number}") }
        ),
        class: "ControlSocket".into(),
        config: format!("{kind}, {address}{more}"),
        location: Location { file: "click".into(), line: 0, column: 0, span: 0..0 },
        config_location: None,
        is_verbatim: false,
    };
    all.enumerate().map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let many_stars = "*a".repeat(40);
        for (text, name, expected) in [
            ("c*", "counter", true),
            ("c*", "compound/counter", true),
            ("?1", "c1", true),
            ("[a-c]1", "d1", false),
            ("[^a]", "b", true),
            ("[^a]", "a", false),
            ("c?", "cc1", false),
            ("*b?", "abab", false),
            ("**", "c", true),
            ("a***c", "abc", true),
            ("[a", "a", false),
            (&many_stars, &"a".repeat(39), false),
        ] {
            let matches = pattern(text).is_some_and(|pattern| pattern.matches(name));
            assert_eq!(matches, expected, "{text} {name}");
        }
        assert_eq!(pattern("counter"), None);
    }
}
