//! `clickbox run`: runs a configuration in this process.

use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use click_lang::{Diagnostic, Graph};
use element::HandlerError;
use packet::Timestamp;
use router::{Options, RunEnd};
use serde::Serialize;

use crate::configuration::{self, ConfigurationArguments};
use crate::environment::{self, Binding, ProcessEnvironment};
use crate::error::{CommandError, message};
use crate::shards::{Engines, MAX_SHARDS, Plan};
use crate::snapshot::Snapshot;
use crate::source::SourceText;
use crate::{live, output};

/// Run a configuration in this process.
///
/// Runs until the configuration stops, no event can occur any more, or Ctrl-C is pressed. Then prints a summary: the
/// packets that passed each element, the dropped packets with their reasons, the packets that were discarded with the
/// connections that led there, and the packets that wait.
#[derive(Args)]
#[command(after_help = "Example: clickbox run examples/firewall.click")]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: ConfigurationArguments,
    /// Stop after this many seconds, with --simtime of simulated time.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Print the value of a handler at the end. May be repeated.
    #[arg(long, value_name = "ELEMENT.HANDLER")]
    handler: Vec<String>,
    /// Run in simulated time, which never waits and gives the same result every time.
    #[arg(long)]
    simtime: bool,
    /// Seed for all random numbers.
    #[arg(long)]
    seed: Option<u64>,
    /// Run in this many shards: engines with a thread of their own, each with a part of the flows.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "simtime", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)))]
    shards: u32,
    /// Packets in a batch, from 1 to 256. Results do not depend on it.
    #[arg(long, default_value_t = router::DEFAULT_BATCH as u16, value_parser = clap::value_parser!(u16).range(1..=256))]
    batch: u16,
    /// Use an interface for a device name of the configuration, such as a port number of DPDK. May be repeated.
    ///
    /// DRIVER is af_packet for an interface of this host, or af_xdp for XDP sockets, which take its packets from the host. For
    /// ToHost and FromHost it is tap: `host=tap:tap0` is the interface of a ToHost without a name, and `sniffers=tap:tap1` that
    /// of ToHostSniffers. With pcap, `0=pcap:in.pcap,out.pcap` receives the packets of the first capture, and writes those that
    /// are sent to the second.
    #[arg(long, value_name = "NAME=DRIVER:INTERFACE")]
    device: Vec<Binding>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Print no table and no summary.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

#[derive(Serialize)]
struct Summary {
    end: &'static str,
    seconds: f64,
    elements: Vec<Row>,
    account: AccountSummary,
    handlers: std::collections::BTreeMap<String, String>,
}

/// The books of the whole configuration.
#[derive(Serialize)]
struct AccountSummary {
    /// Packets by fate: received, made, copied, delivered, discarded, consumed, merged.
    fates: std::collections::BTreeMap<&'static str, u64>,
    /// Lost packets by reason.
    lost: std::collections::BTreeMap<String, u64>,
    /// Discarded packets by the connection that led there.
    discarded: std::collections::BTreeMap<String, u64>,
    waiting: Vec<WaitingSummary>,
}

#[derive(Serialize)]
struct WaitingSummary {
    element: String,
    packets: u64,
    /// How long the oldest has waited, at most.
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    class: &'static str,
    packets_in: u64,
    packets_out: u64,
    lost: std::collections::BTreeMap<String, u64>,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    switch::keep_freed_memory();
    environment::bind(&arguments.device).map_err(CommandError::Devices)?;
    let (text, graph) = arguments.configuration.compile()?;
    let options = Options {
        batch: arguments.batch.into(),
        simulated: arguments.simtime.then_some(Timestamp::from_parts(1_000_000_000, 0)),
        seed: arguments.seed,
        source: text.text.clone(),
        ..Options::default()
    };
    let mut engine = Engine::build(arguments, graph, options, &text)?;
    environment::unused_bindings().for_each(|warning| eprintln!("{warning}"));
    let started = Instant::now();
    let mut table = live::LiveTable::new(!arguments.quiet && !arguments.json);
    let limit = arguments.seconds.map(Duration::from_secs_f64);
    let end = loop {
        let wait =
            limit.map_or(live::REFRESH, |limit| live::REFRESH.min(limit.saturating_sub(started.elapsed())));
        // A pause would make simulated runs differ.
        let span = if arguments.simtime { limit } else { Some(wait) };
        match engine.run_for(span) {
            RunEnd::Paused if arguments.simtime || limit.is_some_and(|limit| started.elapsed() >= limit) => {
                break RunEnd::Paused;
            }
            RunEnd::Paused if table.is_due() => {
                let progress = live::Progress::of_reading(engine.progress(), started);
                table.refresh(&engine.snapshot(), progress.as_ref());
            }
            RunEnd::Paused => {}
            end => break end,
        }
    };
    engine.stop();
    table.clear();
    let elapsed = started.elapsed();
    let mut failed = false;
    let mut values = std::collections::BTreeMap::new();
    for path in &arguments.handler {
        match engine.read(path) {
            Ok(value) => drop(values.insert(path.clone(), value)),
            Err(error) => {
                eprintln!("clickbox: {}", message(&error));
                failed = true;
            }
        }
    }
    let snapshot = engine.snapshot();
    for problem in engine.finish() {
        eprintln!("clickbox: {problem}");
        failed = true;
    }
    if arguments.json {
        output::json(&summary(&snapshot, end, elapsed, values));
    } else {
        for (path, value) in &values {
            output::text(&format!("{path} = {}\n", value.trim_end()));
        }
        if !arguments.quiet {
            eprint!("{}", live::summary(&snapshot, elapsed, end));
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// What runs the configuration: one engine in this thread, or several in theirs.
enum Engine {
    Here { router: Box<router::Router>, environment: Rc<ProcessEnvironment> },
    Shards(Engines),
}

impl Engine {
    fn build(
        arguments: &Arguments,
        graph: Graph,
        options: Options,
        text: &SourceText,
    ) -> Result<Engine, CommandError> {
        let refused = |problems: Vec<Diagnostic>| {
            configuration::print(&problems, text);
            CommandError::Configuration
        };
        if arguments.shards > 1 {
            let plan = Plan { graph, options, captures: Vec::new() };
            let built = Engines::build(arguments.shards, &plan).map_err(CommandError::Shards)?;
            let (engines, warnings) = built.map_err(refused)?;
            configuration::print(&warnings, text);
            engines.start();
            return Ok(Engine::Shards(engines));
        }
        let environment = Rc::new(ProcessEnvironment::new());
        let router = configuration::router(graph, environment.clone(), options).map_err(refused)?;
        configuration::print(router.warnings(), text);
        Ok(Engine::Here { router: Box::new(router), environment })
    }

    /// Runs for this time, or to its end.
    fn run_for(&mut self, time: Option<Duration>) -> RunEnd {
        match self {
            Engine::Here { router, .. } => router.run_for(time),
            Engine::Shards(engines) => engines.wait(time.unwrap_or(live::REFRESH)).unwrap_or(RunEnd::Paused),
        }
    }

    fn stop(&self) {
        if let Engine::Shards(engines) = self {
            engines.stop();
        }
    }

    fn progress(&self) -> (u64, u64) {
        match self {
            Engine::Here { environment, .. } => environment.progress(),
            Engine::Shards(engines) => engines.progress(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        match self {
            Engine::Here { router, .. } => Snapshot::of(router),
            Engine::Shards(engines) => engines.snapshot(),
        }
    }

    fn read(&self, path: &str) -> Result<String, HandlerError> {
        match self {
            Engine::Here { router, .. } => router.read(path, ""),
            Engine::Shards(engines) => engines.read(path),
        }
    }

    /// Ends the run; returns what could not be written.
    fn finish(&mut self) -> Vec<String> {
        match self {
            Engine::Here { .. } => Vec::new(),
            Engine::Shards(engines) => engines.finish(),
        }
    }
}

fn summary(
    snapshot: &Snapshot,
    end: RunEnd,
    elapsed: Duration,
    handlers: std::collections::BTreeMap<String, String>,
) -> Summary {
    Summary {
        end: match end {
            RunEnd::Stopped => "stopped",
            RunEnd::Idle => "idle",
            RunEnd::Interrupted => "interrupted",
            RunEnd::Paused => "time",
        },
        seconds: elapsed.as_secs_f64(),
        elements: snapshot
            .elements
            .iter()
            .map(|element| Row {
                name: element.name.clone(),
                class: element.class,
                packets_in: element.packets_in,
                packets_out: element.packets_out,
                lost: element.lost.iter().cloned().collect(),
            })
            .collect(),
        account: account(snapshot),
        handlers,
    }
}

fn account(snapshot: &Snapshot) -> AccountSummary {
    let waiting = snapshot.waiting.iter().map(|(element, packets, oldest)| WaitingSummary {
        element: element.clone(),
        packets: *packets,
        seconds: oldest.map(Timestamp::as_seconds),
    });
    let lost = snapshot.account.lost.iter();
    AccountSummary {
        fates: snapshot.fates().collect(),
        lost: lost.map(|(reason, packets)| (reason.to_string(), *packets)).collect(),
        discarded: snapshot.discards.iter().cloned().collect(),
        waiting: waiting.collect(),
    }
}
