//! A firewall, a NAT and a flow monitor in one configuration, in this process.

use std::cell::Cell;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use router::{End, Options, Router};

use super::choice::CAPTURE;
use crate::configuration::{self, Text};
use crate::environment::{Process, Supplied};
use crate::live::{self, Live, Progress, grouped, scaled};
use crate::output;

/// The configuration.
const CONFIGURATION: (&str, &str) =
    ("examples/demo.click", include_str!("../../../../../examples/demo.click"));
/// Where packets come in.
const SOURCE: &str = "in";
/// Where packets come out, and what that means.
const SINKS: &[(&str, &str)] =
    &[("to_uplink", "to the uplink"), ("to_hosts", "to the hosts"), ("by_ip6", "by IPv6, either way")];
/// Elements that only sort packets, which the table leaves out.
const SORTERS: &[&str] = &["Classifier", "IPClassifier", "IPFilter", "Discard"];
/// What a reason for a drop means here: element, reason, meaning.
const MEANINGS: &[(&str, &str, &str)] = &[
    ("connections", "no_mapping", "belongs to no connection"),
    ("ping_nat", "no_mapping", "answers no ping"),
];
/// What the names of counters before a drop begin with.
const DROPPED: &str = "dropped_";
/// What says how many flows there are.
const FLOWS: &str = "monitor/counts.nagg";
/// Columns of the summary: what happened, where.
const WHAT: usize = 32;
const PLACE: usize = 18;

/// Prints the configuration.
pub(super) fn print() {
    output::text(CONFIGURATION.1);
}

/// Runs it.
pub(super) fn run(seconds: f64) -> ExitCode {
    let text = Text { name: CONFIGURATION.0.into(), text: CONFIGURATION.1.into() };
    let compiled = configuration::compile(&text, &[], &[]);
    let time = Duration::from_secs_f64(seconds);
    let rounds = Rc::new(Cell::new(0));
    let supplied = Supplied { name: CAPTURE.0, bytes: CAPTURE.1, time, rounds: rounds.clone() };
    let environment = Rc::new(Process::with(supplied));
    let options = Options { seed: Some(1), source: text.text.clone(), ..Options::default() };
    let mut router = match configuration::router(compiled.graph, environment, options) {
        Ok(router) => router,
        Err(problems) => {
            configuration::print(&compiled.diagnostics, &text);
            configuration::print(&problems, &text);
            return ExitCode::from(1);
        }
    };
    output::text(&format!(
        "A firewall, a NAT and a flow monitor between a small network and its uplink.\n\
         The packets are those of a capture, played again and again for {seconds} s.\n\n"
    ));
    let started = Instant::now();
    drive(&mut router, started, time);
    output::text(&summary(&router, started.elapsed(), rounds.get()));
    ExitCode::SUCCESS
}

fn drive(router: &mut Router, started: Instant, time: Duration) {
    let mut table = Live::new(true).without(|name, class| name.contains('@') || SORTERS.contains(&class));
    while router.run_for(Some(live::REFRESH)) == End::Paused {
        let done = started.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-3);
        let left = (time.as_secs_f64() - started.elapsed().as_secs_f64()).max(0.0).ceil();
        table.refresh(router, Some(&Progress { done, label: format!("{left:.0} s left; Ctrl-C ends it") }));
    }
    table.clear();
}

/// What went in, what came out, what was dropped and why.
fn summary(router: &Router, elapsed: Duration, rounds: u32) -> String {
    let (bold, plain) = if std::io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let total = count(router, SOURCE);
    let line = |what: &str, place: &str, number: u64| {
        let share = 100.0 * number as f64 / total.max(1) as f64;
        format!("  {what:<WHAT$}{place:<PLACE$}{:>14}{share:>8.2} %\n", grouped(number))
    };
    let mut came_out = String::new();
    let mut sum = 0;
    for (element, what) in SINKS {
        sum += count(router, element);
        came_out += &line(what, element, count(router, element));
    }
    let mut drops = drops(router);
    drops.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.cmp(other)));
    let dropped: u64 = drops.iter().map(|(.., count)| count).sum();
    let why: String = drops.iter().map(|(what, place, count)| line(what, place, *count)).collect();
    let rate = total as f64 / elapsed.as_secs_f64().max(1e-6);
    // The bytes of the packets: the file without its header and those of its records.
    let bytes = (CAPTURE.1.len() as f64 - 24.0) * f64::from(rounds) - 16.0 * total as f64;
    let bits = 8.0 * bytes.max(0.0) / elapsed.as_secs_f64().max(1e-6);
    let flows = router.read(FLOWS, "").unwrap_or_default();
    format!(
        "{bold}went in{plain}\n{}\n{bold}came out{plain}\n{came_out}{}\n{bold}was dropped, and why{plain}\n{why}{}\n\
         {:.1} s on one core: {} packets/s, {}bit/s; {} flows seen.\n\n\
         The configuration: clickbox demo --engine --print. Your own: clickbox run FILE.\n",
        line(&format!("the capture, {} times", grouped(rounds.into())), SOURCE, total),
        line("in all", "", sum),
        line("in all", "", dropped),
        elapsed.as_secs_f64(),
        grouped(rate as u64),
        scaled(bits),
        flows.trim(),
    )
}

/// Why packets were dropped, where, and how many: what elements have lost, and what stands before a drop on purpose.
fn drops(router: &Router) -> Vec<(String, String, u64)> {
    let lost = router.losses().into_iter().map(|(element, reason, count)| {
        let meaning = MEANINGS.iter().find(|known| (known.0, known.1) == (element.as_str(), reason));
        let why = meaning.map_or_else(|| reason.replace('_', " "), |meaning| meaning.2.to_string());
        (why, element, count)
    });
    let mut drops: Vec<_> = lost.collect();
    for (name, (packets, _)) in router.elements().zip(router.counts()) {
        if let Some(reason) = name.strip_prefix(DROPPED).filter(|_| packets > 0) {
            drops.push((reason.replace('_', " "), "firewall".into(), packets));
        }
    }
    drops
}

/// Packets that an element had.
fn count(router: &Router, element: &str) -> u64 {
    let mut counts = router.elements().zip(router.counts());
    counts.find(|(name, _)| *name == element).map_or(0, |(_, (inputs, outputs))| inputs.max(outputs))
}
