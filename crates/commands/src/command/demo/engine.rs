//! A firewall, a NAT and a flow monitor in one configuration, in this process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capture::FILE_HEADER_LENGTH;
use router::{Options, Router, RunEnd};

use super::error::DemoError;
use super::sample;
use super::summary::{Row, Summary, SummaryLayout};
use crate::configuration;
use crate::environment::{MemoryCapture, ProcessEnvironment};
use crate::error::CommandError;
use crate::live::{self, LiveTable, Progress};
use crate::number_format::grouped;
use crate::output;
use crate::snapshot::Snapshot;
use crate::source::SourceText;

/// The configuration.
const CONFIGURATION: (&str, &str) =
    ("examples/demo.click", include_str!("../../../../../examples/demo.click"));
/// The element where packets enter.
const SOURCE: &str = "in";
/// The elements where packets leave, with descriptions.
const SINKS: &[(&str, &str)] =
    &[("to_uplink", "to the uplink"), ("to_hosts", "to the hosts"), ("by_ip6", "IPv6, in both directions")];
/// Elements that only classify packets, which the table omits.
const CLASSIFIERS: &[&str] = &["Classifier", "IPClassifier", "IPFilter", "Discard"];
/// The meanings of drop reasons: element, reason, meaning.
const REASON_DESCRIPTIONS: &[(&str, &str, &str)] = &[
    ("connections", "no_mapping", "belongs to no connection"),
    ("ping_nat", "no_mapping", "answers no ping"),
];
/// The prefix of counters before a deliberate drop.
const DROP_COUNTER_PREFIX: &str = "dropped_";
/// The handler with the number of flows.
const FLOW_COUNT_HANDLER: &str = "monitor/counts.nagg";
/// Column widths of the summary: description, location.
const OUTCOME_WIDTH: usize = 32;
const LOCATION_WIDTH: usize = 18;

/// Prints the configuration.
pub(super) fn print() {
    output::text(CONFIGURATION.1);
}

/// Runs it.
pub(super) fn run(seconds: f64, json: bool) -> Result<(), CommandError> {
    let text = SourceText { name: CONFIGURATION.0.into(), text: CONFIGURATION.1.into() };
    let compiled = configuration::compile(&text, &[], &[]);
    let time = Duration::from_secs_f64(seconds);
    let rounds = Rc::new(Cell::new(0));
    let bytes: Rc<[u8]> = sample::capture().map_err(DemoError::Capture)?.into();
    let capture_length = bytes.len() as u64;
    let capture = MemoryCapture { name: sample::NAME, bytes, time, rounds: rounds.clone() };
    let environment = Rc::new(ProcessEnvironment::with(capture));
    let options = Options { seed: Some(1), source: text.text.clone(), ..Options::default() };
    let mut router = match configuration::router(compiled.graph, environment, options) {
        Ok(router) => router,
        Err(problems) => {
            configuration::print(&compiled.diagnostics, &text);
            configuration::print(&problems, &text);
            return Err(CommandError::Configuration);
        }
    };
    if !json {
        output::text(&format!(
            "A firewall, a NAT and a flow monitor between a small network and its uplink.\n\
             The packets come from a capture, which is replayed for {seconds} s.\n\n"
        ));
    }
    let started = Instant::now();
    run_router(&mut router, started, time, !json);
    let replayed = capture_length.saturating_sub(FILE_HEADER_LENGTH as u64) * u64::from(rounds.get());
    let summary = summary(&router, started.elapsed(), replayed);
    if json {
        output::json(&summary);
    } else {
        output::text(&summary.text(&SummaryLayout {
            columns: (OUTCOME_WIDTH, LOCATION_WIDTH),
            source: (&format!("the capture, {} times", grouped(rounds.get().into())), SOURCE),
            worker: " on one core",
            hint: "The configuration: clickbox demo --engine --print. Your own: clickbox run FILE.",
        }));
    }
    Ok(())
}

fn run_router(router: &mut Router, started: Instant, time: Duration, is_shown: bool) {
    let mut table =
        LiveTable::new(is_shown).hiding(|name, class| name.contains('@') || CLASSIFIERS.contains(&class));
    while router.run_for(Some(live::REFRESH)) == RunEnd::Paused {
        let done = started.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-3);
        let left = (time.as_secs_f64() - started.elapsed().as_secs_f64()).max(0.0).ceil();
        table.refresh(
            &Snapshot::of(router),
            Some(&Progress { done, label: format!("{left:.0} s left; Ctrl-C ends it") }),
        );
    }
    table.clear();
}

/// The summary: packets received, sent, and dropped by reason. `replayed` is the length of all rounds without file
/// headers, so their packets and record headers.
fn summary(router: &Router, elapsed: Duration, replayed: u64) -> Summary {
    let total = count(router, SOURCE);
    let row = |(what, location, packets): (String, String, u64)| Row { what, location, packets };
    let sinks = SINKS
        .iter()
        .map(|(element, what)| row((what.to_string(), element.to_string(), count(router, element))));
    let sent: Vec<Row> = sinks.collect();
    let mut drops = drops(router);
    sorting::sort_by(&mut drops, |one, other| other.2.cmp(&one.2).then_with(|| one.cmp(other)));
    Summary {
        seconds: elapsed.as_secs_f64(),
        received_packets: total,
        received_bytes: replayed.saturating_sub(16 * total),
        sent_packets: sent.iter().map(|row| row.packets).sum(),
        sent,
        dropped: drops.into_iter().map(row).collect(),
        flows: router.read(FLOW_COUNT_HANDLER, "").unwrap_or_default().trim().parse().unwrap_or(0),
        write_ms: None,
        restart_ms: None,
    }
}

/// The drops by reason and element: losses of elements, and counters before deliberate drops.
fn drops(router: &Router) -> Vec<(String, String, u64)> {
    let lost = router.losses().into_iter().map(|router::Loss { element, reason, packets }| {
        let meaning =
            REASON_DESCRIPTIONS.iter().find(|known| (known.0, known.1) == (element.as_str(), &*reason));
        let why = meaning.map_or_else(|| reason.replace('_', " "), |meaning| meaning.2.to_string());
        (why, element, packets)
    });
    let mut drops: Vec<_> = lost.collect();
    for (name, (packets, _)) in router.elements().zip(router.counts()) {
        if let Some(reason) = name.strip_prefix(DROP_COUNTER_PREFIX).filter(|_| packets > 0) {
            drops.push((reason.replace('_', " "), "firewall".into(), packets));
        }
    }
    drops
}

/// The packet count of an element.
fn count(router: &Router, element: &str) -> u64 {
    let mut counts = router.elements().zip(router.counts());
    counts.find(|(name, _)| *name == element).map_or(0, |(_, (inputs, outputs))| inputs.max(outputs))
}
