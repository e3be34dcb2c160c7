//! `clickbox run`: runs a configuration in this process.

use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Args;
use element::Fate;
use packet::Timestamp;
use router::{Options, RunEnd};
use serde::Serialize;

use crate::configuration::{self, ConfigurationArguments};
use crate::environment::ProcessEnvironment;
use crate::error::{CommandError, message};
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
    /// Stop after this many seconds.
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
    /// Packets in a batch, from 1 to 256. Results do not depend on it.
    #[arg(long, default_value_t = router::DEFAULT_BATCH as u16, value_parser = clap::value_parser!(u16).range(1..=256))]
    batch: u16,
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
    let (text, graph) = arguments.configuration.compile()?;
    let options = Options {
        batch: arguments.batch.into(),
        simulated: arguments.simtime.then_some(Timestamp::from_parts(1_000_000_000, 0)),
        seed: arguments.seed,
        source: text.text.clone(),
        ..Options::default()
    };
    let environment = Rc::new(ProcessEnvironment::new());
    let mut router = match configuration::router(graph, environment.clone(), options) {
        Ok(router) => router,
        Err(problems) => {
            configuration::print(&problems, &text);
            return Err(CommandError::Configuration);
        }
    };
    configuration::print(router.warnings(), &text);
    let started = Instant::now();
    let limit = arguments.seconds.map(Duration::from_secs_f64);
    let mut table = live::LiveTable::new(!arguments.quiet && !arguments.json);
    let end = loop {
        let wait =
            limit.map_or(live::REFRESH, |limit| live::REFRESH.min(limit.saturating_sub(started.elapsed())));
        // A pause would make simulated runs differ.
        let pause = if arguments.simtime { None } else { Some(wait) };
        match router.run_for(pause) {
            RunEnd::Paused if limit.is_some_and(|limit| started.elapsed() >= limit) => break RunEnd::Paused,
            RunEnd::Paused => {
                let progress = live::Progress::of_reading(environment.progress(), started);
                table.refresh(&router, progress.as_ref());
            }
            end => break end,
        }
    };
    table.clear();
    let elapsed = started.elapsed();
    let handlers = arguments.handler.iter().map(|path| (path, router.read(path, "")));
    let mut failed = false;
    let mut values = std::collections::BTreeMap::new();
    for (path, value) in handlers {
        match value {
            Ok(value) => drop(values.insert(path.clone(), value)),
            Err(error) => {
                eprintln!("clickbox: {}", message(&error));
                failed = true;
            }
        }
    }
    if arguments.json {
        output::json(&summary(&router, end, elapsed, values));
    } else {
        for (path, value) in &values {
            output::text(&format!("{path} = {}\n", value.trim_end()));
        }
        if !arguments.quiet {
            eprint!("{}", live::summary(&router, elapsed, end));
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn summary(
    router: &router::Router,
    end: RunEnd,
    elapsed: Duration,
    handlers: std::collections::BTreeMap<String, String>,
) -> Summary {
    let losses = router.losses();
    let rows = router.elements().zip(router.classes()).zip(router.counts());
    Summary {
        end: match end {
            RunEnd::Stopped => "stopped",
            RunEnd::Idle => "idle",
            RunEnd::Interrupted => "interrupted",
            RunEnd::Paused => "time",
        },
        seconds: elapsed.as_secs_f64(),
        elements: rows
            .map(|((name, class), (packets_in, packets_out))| Row {
                name: name.to_string(),
                class,
                packets_in,
                packets_out,
                lost: losses
                    .iter()
                    .filter(|loss| loss.element == name)
                    .map(|loss| (loss.reason.to_string(), loss.packets))
                    .collect(),
            })
            .collect(),
        account: account(router),
        handlers,
    }
}

fn account(router: &router::Router) -> AccountSummary {
    let account = router.account();
    let waiting = router.waiting().map(|(element, packets, oldest)| WaitingSummary {
        element: element.to_string(),
        packets,
        seconds: oldest.map(Timestamp::as_seconds),
    });
    AccountSummary {
        fates: Fate::COUNTED.into_iter().map(|fate| (fate.name(), account.fates.of(fate))).collect(),
        lost: account.lost.into_iter().map(|(reason, packets)| (reason.into_owned(), packets)).collect(),
        discarded: router.discards().into_iter().map(|one| (one.connection, one.packets)).collect(),
        waiting: waiting.collect(),
    }
}
