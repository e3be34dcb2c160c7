//! The result of a demonstration, as text and as JSON.

use serde::Serialize;

use crate::color::Palette;
use crate::number_format::{grouped, scaled};

/// Packets with the same outcome at the same location.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The outcome.
    pub(super) what: String,
    /// The box or element.
    #[serde(rename = "place")]
    pub(super) location: String,
    pub(super) packets: u64,
}

/// The result of a demonstration.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    /// Duration of the traffic.
    pub(super) seconds: f64,
    /// Received packets, and their bytes.
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    /// Sent packets.
    pub(super) sent_packets: u64,
    /// Sent packets by output.
    pub(super) sent: Vec<Row>,
    /// Dropped packets by reason, most frequent first.
    pub(super) dropped: Vec<Row>,
    /// Flows that the monitor has seen.
    pub(super) flows: u64,
    /// Duration of the write of the firewall's new rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_ms: Option<f64>,
    /// Time until the killed box ran again.
    #[serde(rename = "back_ms", skip_serializing_if = "Option::is_none")]
    pub(super) restart_ms: Option<f64>,
}

/// The layout of the text.
pub(super) struct SummaryLayout<'a> {
    /// Column widths of outcome and location.
    pub(super) columns: (usize, usize),
    /// The source of the packets, and the location where they entered.
    pub(super) source: (&'a str, &'a str),
    /// The processing unit, in words that continue the line with the time.
    pub(super) worker: &'a str,
    /// The closing line with next steps.
    pub(super) hint: &'a str,
}

impl Summary {
    /// The summary as text.
    pub(super) fn text(&self, layout: &SummaryLayout) -> String {
        let Palette { bold, plain, .. } = Palette::of(&std::io::stdout());
        let total = self.received_packets;
        let (wide, narrow) = layout.columns;
        let line = |what: &str, location: &str, number: u64| {
            let share = 100.0 * number as f64 / total.max(1) as f64;
            format!("  {what:<wide$}{location:<narrow$}{:>14}{share:>8.2} %\n", grouped(number))
        };
        let lines = |rows: &[Row]| -> String {
            rows.iter().map(|row| line(&row.what, &row.location, row.packets)).collect()
        };
        let seconds = self.seconds.max(1e-6);
        format!(
            "{bold}received{plain}\n{}\n{bold}sent{plain}\n{}{}\n{bold}dropped, by reason{plain}\n{}{}\n\
             {:.1} s{}: {} packets/s, {}bit/s; {} flows seen.\n\n{}\n",
            line(layout.source.0, layout.source.1, total),
            lines(&self.sent),
            line("total", "", self.sent_packets),
            lines(&self.dropped),
            line("total", "", self.dropped.iter().map(|row| row.packets).sum()),
            self.seconds,
            layout.worker,
            grouped((total as f64 / seconds) as u64),
            scaled(8.0 * self.received_bytes as f64 / seconds),
            self.flows,
            layout.hint,
        )
    }
}
