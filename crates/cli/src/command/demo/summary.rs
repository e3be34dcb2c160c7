//! What came of a demonstration: for people, and as JSON.

use std::io::IsTerminal;

use serde::Serialize;

use crate::live::{grouped, scaled};

/// Packets that ended at one place.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// What became of them.
    pub(super) what: String,
    /// In which box, or at which element.
    pub(super) place: String,
    pub(super) packets: u64,
}

/// What came of a demonstration.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// How long packets came.
    pub(super) seconds: f64,
    /// Packets that came in, and their bytes.
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    /// Packets that went out.
    pub(super) sent_packets: u64,
    /// By the way on which they went out.
    pub(super) sent: Vec<Row>,
    /// By the reason for which they were dropped, most first.
    pub(super) dropped: Vec<Row>,
    /// Flows that the monitor has seen.
    pub(super) flows: u64,
    /// How long the write of the firewall's new rules took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_ms: Option<f64>,
    /// How long it took until the box that was killed ran again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) back_ms: Option<f64>,
}

/// How a summary is laid out for people.
pub(super) struct Layout<'a> {
    /// Columns of what happened, and of where.
    pub(super) columns: (usize, usize),
    /// What packets came from, and where they came in.
    pub(super) source: (&'a str, &'a str),
    /// What did the work, as it goes on behind the time.
    pub(super) worker: &'a str,
    /// Where to go from here.
    pub(super) hint: &'a str,
}

impl Summary {
    /// The summary for people.
    pub(super) fn text(&self, layout: &Layout) -> String {
        let (bold, plain) = if std::io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let total = self.received_packets;
        let (wide, narrow) = layout.columns;
        let line = |what: &str, place: &str, number: u64| {
            let share = 100.0 * number as f64 / total.max(1) as f64;
            format!("  {what:<wide$}{place:<narrow$}{:>14}{share:>8.2} %\n", grouped(number))
        };
        let lines = |rows: &[Row]| -> String {
            rows.iter().map(|row| line(&row.what, &row.place, row.packets)).collect()
        };
        let seconds = self.seconds.max(1e-6);
        format!(
            "{bold}went in{plain}\n{}\n{bold}came out{plain}\n{}{}\n{bold}was dropped, and why{plain}\n{}{}\n\
             {:.1} s{}: {} packets/s, {}bit/s; {} flows seen.\n\n{}\n",
            line(layout.source.0, layout.source.1, total),
            lines(&self.sent),
            line("in all", "", self.sent_packets),
            lines(&self.dropped),
            line("in all", "", self.dropped.iter().map(|row| row.packets).sum()),
            self.seconds,
            layout.worker,
            grouped((total as f64 / seconds) as u64),
            scaled(8.0 * self.received_bytes as f64 / seconds),
            self.flows,
            layout.hint,
        )
    }
}
