//! The demonstration's live output and its summary.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{BoxStatus, operation};

use super::chain::{BOXES, Chain};
use super::summary::{Row, Summary, SummaryLayout};
use crate::error::CommandError;
use crate::online::{self, Column, Table};

/// The outputs of the last box, with descriptions.
const SINKS: &[(&str, &str)] =
    &[("to_uplink", "to the uplink"), ("to_hosts", "to the hosts"), ("by_ip6", "IPv6, in both directions")];
/// The meanings of drop reasons: box, reason, meaning.
const REASON_DESCRIPTIONS: &[(&str, &str, &str)] = &[
    ("firewall", "no_mapping", "belongs to no connection"),
    ("firewall", "denied", "denied by a rule"),
    ("nat", "no_mapping", "answers no ping"),
];
/// The prefix of counters before a deliberate drop.
const DROP_COUNTER_PREFIX: &str = "dropped_";
/// Column widths of the summary: description, location.
const OUTCOME_WIDTH: usize = 36;
const LOCATION_WIDTH: usize = 14;
/// Maximum line width.
const WIDTH: usize = 79;

const COLUMNS: &[Column] = &[
    Column::flexible("BOX", 10),
    Column::text("STATE"),
    Column::text("RUNS IN"),
    Column::number("RESTARTS"),
    Column::number("CPU"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::number("DROP/S"),
];

/// The boxes in the order of the chain, with their rates.
pub(super) fn rates(boxes: &[BoxStatus]) -> Vec<String> {
    let in_order =
        BOXES.iter().filter_map(|demo_box| boxes.iter().find(|status| status.name.as_str() == demo_box.name));
    let row = |status: &BoxStatus| {
        vec![
            status.name.to_string(),
            online::state(status.state).into(),
            online::sandbox(status.sandbox).into(),
            status.restarts.to_string(),
            online::share(status.rates.cores),
            online::rate(status.rates.received_packets),
            online::rate(status.rates.sent_packets),
            online::rate(status.rates.dropped_packets),
        ]
    };
    Table { columns: COLUMNS, rows: in_order.map(row).collect() }.lines(WIDTH)
}

/// Dropped packets by reason and box.
#[derive(Default)]
pub(super) struct DropCounts {
    counts: BTreeMap<(&'static str, String), u64>,
}

impl DropCounts {
    /// Adds a box's drops: those with a reason, and deliberate ones counted by a counter before them.
    pub(super) fn add(&mut self, chain: &Chain, name: &'static str) -> Result<(), CommandError> {
        let status = chain.client().ask(&operation::SHOW_BOX, &[name])?.status;
        for (reason, packets) in status.drops {
            let meaning =
                REASON_DESCRIPTIONS.iter().find(|known| (known.0, known.1) == (name, reason.as_str()));
            let why = meaning.map_or_else(|| reason.replace('_', " "), |meaning| meaning.2.to_string());
            *self.counts.entry((name, why)).or_insert(0) += packets;
        }
        for element in
            chain.read(name, "list")?.lines().filter(|element| element.starts_with(DROP_COUNTER_PREFIX))
        {
            let count = chain.read(name, &format!("{element}.count"))?.parse().unwrap_or(0);
            let why = element.trim_start_matches(DROP_COUNTER_PREFIX).replace('_', " ");
            *self.counts.entry((name, why)).or_insert(0) += count;
        }
        self.counts.retain(|_, packets| *packets > 0);
        Ok(())
    }
}

/// The summary: packets received, sent, and dropped by reason.
pub(super) fn summary(chain: &Chain, mut drops: DropCounts, time: Duration) -> Result<Summary, CommandError> {
    for demo_box in BOXES {
        drops.add(chain, demo_box.name)?;
    }
    let (capture, uplink) = chain.edge_ports()?;
    let total = capture.traffic.received_packets;
    let row = |what: &str, location: &str, packets: u64| Row {
        what: what.into(),
        location: location.into(),
        packets,
    };
    let mut sent = Vec::new();
    for (element, what) in SINKS {
        let count = chain.read("monitor", &format!("{element}.count"))?.parse().unwrap_or(0);
        sent.push(row(what, "monitor", count));
    }
    let left = uplink.traffic.sent_packets;
    let mut dropped: Vec<_> =
        drops.counts.iter().map(|((name, why), packets)| row(why, name, *packets)).collect();
    let known: u64 = dropped.iter().map(|row| row.packets).sum();
    // Packets that were inside the killed box were not counted.
    let lost = total.saturating_sub(left + known);
    if lost > 0 {
        dropped.push(row("lost with the killed box", "nat", lost));
    }
    sorting::sort_by(&mut dropped, |one, other| {
        (other.packets, &other.location, &other.what).cmp(&(one.packets, &one.location, &one.what))
    });
    Ok(Summary {
        seconds: time.as_secs_f64(),
        received_packets: total,
        received_bytes: capture.traffic.received_bytes,
        sent_packets: left,
        sent,
        dropped,
        flows: chain.read("monitor", "counts.nagg")?.trim().parse().unwrap_or(0),
        write_ms: None,
        restart_ms: None,
    })
}

/// The summary as text.
pub(super) fn text(summary: &Summary) -> String {
    let layout = SummaryLayout {
        columns: (OUTCOME_WIDTH, LOCATION_WIDTH),
        source: ("the capture", ""),
        worker: ", three boxes",
        hint: "The configurations: clickbox demo --print. Your own: clickbox daemon &, and\n\
               clickbox create NAME FILE.",
    };
    format!("\n{}", summary.text(&layout))
}
