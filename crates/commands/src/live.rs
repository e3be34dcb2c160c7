//! The live table of a running configuration, and its summary.

use std::fmt::Write;
use std::time::{Duration, Instant};

use router::RunEnd;

use crate::color::Palette;
use crate::columns::padded;
use crate::number_format::{bytes, grouped, scaled};
use crate::screen;
use crate::snapshot::{ElementCounts, Snapshot};

/// Interval between two updates.
pub(crate) const REFRESH: Duration = Duration::from_millis(100);
/// Runs shorter than this show only their summary.
const DISPLAY_DELAY: Duration = Duration::from_millis(300);
/// The window over which rates are computed; shorter ones fluctuate.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// Lines of the terminal that are not rows of the table: header, progress bar, count of hidden rows, cursor.
const OTHER_LINES: usize = 5;
/// Maximum width of the table in columns: wider tables are hard to read.
const MAX_TABLE_WIDTH: usize = 100;
/// Total width of all columns except the name.
const NUMBER_COLUMNS: usize = 3 * 14;
/// Width of the progress bar in columns.
const PROGRESS_BAR_WIDTH: usize = 30;

/// The progress of a run.
pub(crate) struct Progress {
    /// The completed fraction, 0 to 1.
    pub(crate) done: f64,
    /// The text beside the bar.
    pub(crate) label: String,
}

impl Progress {
    /// The progress of reading files: bytes read and total bytes, since `started`. `None` if there are no files.
    pub(crate) fn of_reading((read, all): (u64, u64), started: Instant) -> Option<Progress> {
        if all == 0 {
            return None;
        }
        let done = (read as f64 / all as f64).min(1.0);
        let left = started.elapsed().as_secs_f64() * (1.0 - done) / done.max(1e-9);
        let mut label = format!("{} of {}", bytes(read as f64), bytes(all as f64));
        if done > 0.01 {
            let _ = write!(label, ", {} left", duration(left));
        }
        Some(Progress { done, label })
    }
}

/// The counters of an element.
struct Row {
    label: String,
    is_named: bool,
    packets: u64,
    lost: u64,
}

/// Whether to omit an element with this name and class.
type IsHidden = fn(&str, &str) -> bool;

/// A live table of elements on the terminal; does nothing without a terminal.
pub(crate) struct LiveTable {
    is_shown: bool,
    started: Instant,
    /// Packet counts of each element in the past, oldest first.
    history: Vec<(Instant, Vec<u64>)>,
    is_hidden: IsHidden,
    palette: Palette,
}

impl LiveTable {
    /// A table that appears at the first update, if it is `wanted`.
    pub(crate) fn new(wanted: bool) -> LiveTable {
        LiveTable {
            is_shown: wanted && screen::is_available(),
            started: Instant::now(),
            history: Vec::new(),
            is_hidden: |_, _| false,
            palette: Palette::of(&std::io::stderr()),
        }
    }

    /// Omits elements from the table.
    pub(crate) fn hiding(self, is_hidden: IsHidden) -> LiveTable {
        LiveTable { is_hidden, ..self }
    }

    /// Whether the table is shown now.
    pub(crate) fn is_due(&self) -> bool {
        self.is_shown && self.started.elapsed() >= DISPLAY_DELAY
    }

    /// Redraws the table.
    pub(crate) fn refresh(&mut self, snapshot: &Snapshot, progress: Option<&Progress>) {
        if !self.is_due() {
            return;
        }
        let Palette { bold, dim, green, plain, .. } = self.palette;
        let rows = rows(snapshot, self.is_hidden);
        let now = Instant::now();
        while self.history.len() > 1 && self.history.get(1).is_some_and(|(at, _)| now - *at >= RATE_WINDOW) {
            self.history.remove(0);
        }
        let (width, height) = screen::size();
        let width = width.saturating_sub(1).min(MAX_TABLE_WIDTH);
        let name_width = width.saturating_sub(NUMBER_COLUMNS).max(8);
        let mut lines = vec![format!(
            "{bold}{:<name_width$}{:>14}{:>14}{:>14}{plain}",
            "element", "packets", "per second", "lost"
        )];
        let rates: Vec<f64> = (0..rows.len())
            .map(|row| {
                let packets = rows.get(row).map_or(0, |row| row.packets);
                let (at, before) = match self.history.first() {
                    Some((at, counts)) => (*at, counts.get(row).copied().unwrap_or(0)),
                    None => (self.started, 0),
                };
                packets.saturating_sub(before) as f64 / (now - at).as_secs_f64().max(1e-6)
            })
            .collect();
        let room = height.saturating_sub(OTHER_LINES).max(1);
        let shown = select_rows(&rows, room);
        for &index in &shown {
            if let (Some(row), Some(rate)) = (rows.get(index), rates.get(index)) {
                lines.push(row.line(name_width, *rate, self.palette));
            }
        }
        if shown.len() < rows.len() {
            lines.push(format!("{dim}and {} more elements{plain}", rows.len() - shown.len()));
        }
        if let Some(progress) = progress {
            let full = (progress.done.clamp(0.0, 1.0) * PROGRESS_BAR_WIDTH as f64).round() as usize;
            let (full, empty) = ("━".repeat(full), "━".repeat(PROGRESS_BAR_WIDTH - full));
            let label: String =
                progress.label.chars().take(width.saturating_sub(PROGRESS_BAR_WIDTH + 2)).collect();
            lines.push(String::new());
            lines.push(format!("{green}{full}{plain}{dim}{empty}{plain} {label}"));
        }
        screen::draw(&lines);
        self.history.push((now, rows.iter().map(|row| row.packets).collect()));
    }

    /// Clears the table from the terminal.
    pub(crate) fn clear(&self) {
        screen::clear();
    }
}

impl Row {
    fn line(&self, width: usize, rate: f64, palette: Palette) -> String {
        let Palette { red, dim, plain, .. } = palette;
        let lost = match self.lost {
            0 => format!("{:>14}", ""),
            lost => format!("{red}{:>14}{plain}", grouped(lost)),
        };
        let (start, end) = if self.packets == 0 { (dim, plain) } else { ("", "") };
        let name = padded(&self.label, width);
        format!("{start}{name}{:>14}{:>14}{end}{lost}", grouped(self.packets), scaled(rate))
    }
}

/// The rows to show if not all fit: named elements before anonymous ones, active before idle.
fn select_rows(rows: &[Row], room: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..rows.len()).collect();
    if indices.len() > room {
        sorting::sort_by_key(&mut indices, |&index| {
            rows.get(index).map_or((true, true), |row| (!row.is_named, row.packets == 0))
        });
        indices.truncate(room);
        sorting::sort(&mut indices);
    }
    indices
}

fn rows(snapshot: &Snapshot, is_hidden: IsHidden) -> Vec<Row> {
    let shown = snapshot
        .elements
        .iter()
        .filter(|element| !is_hidden(&element.name, element.class) && !element.class.ends_with("Info"));
    shown
        .map(|element| {
            let ElementCounts { name, class, packets_in, packets_out, .. } = element;
            let is_named = !name.contains('@');
            Row {
                label: if is_named { format!("{name} :: {class}") } else { name.to_string() },
                is_named,
                packets: (*packets_in).max(*packets_out),
                lost: element.lost(),
            }
        })
        .collect()
}

/// The summary: packets received, sent, lost by reason, discarded by connection, and waiting.
pub(crate) fn summary(snapshot: &Snapshot, elapsed: Duration, end: RunEnd) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<34}{:>14}{:>14}{:>14}", "element", "packets in", "out", "lost");
    for element in &snapshot.elements {
        let ElementCounts { name, class, packets_in, packets_out, .. } = element;
        let lost = element.lost();
        if *packets_in == 0 && *packets_out == 0 && lost == 0 {
            continue;
        }
        let label = if name.contains('@') { name.to_string() } else { format!("{name} :: {class}") };
        let lost = if lost == 0 { String::new() } else { grouped(lost) };
        let label = padded(&label, 33);
        let line = format!("{label} {:>14}{:>14}{lost:>14}", grouped(*packets_in), grouped(*packets_out));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let mut heading = "\nlost packets\n";
    for element in &snapshot.elements {
        for (reason, packets) in &element.lost {
            let (name, reason) = (padded(&element.name, 31), reason.replace('_', " "));
            let _ = writeln!(text, "{heading}  {name} {reason:<28}{:>14}", grouped(*packets));
            heading = "";
        }
    }
    if !snapshot.discards.is_empty() {
        let _ = writeln!(text, "\ndiscarded packets");
        for (connection, packets) in &snapshot.discards {
            let _ = writeln!(text, "  {} {:>14}", padded(connection, 59), grouped(*packets));
        }
    }
    if !snapshot.waiting.is_empty() {
        let _ = writeln!(text, "\nwaiting packets");
    }
    for (element, packets, oldest) in &snapshot.waiting {
        let oldest = oldest.map_or_else(String::new, |oldest| format!("for at most {oldest:.3} s"));
        let _ = writeln!(text, "  {} {oldest:<28}{:>14}", padded(element, 31), grouped(*packets));
    }
    let end = match end {
        RunEnd::Stopped | RunEnd::Idle => "",
        RunEnd::Interrupted => ", interrupted",
        RunEnd::Paused => ", time limit reached",
    };
    let _ = writeln!(text, "\n{:.3} s{end}", elapsed.as_secs_f64());
    text
}

fn duration(seconds: f64) -> String {
    let whole = seconds.ceil() as u64;
    if whole < 60 { format!("{whole} s") } else { format!("{} min {} s", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_rounded_up() {
        assert_eq!([duration(0.1), duration(61.2)], ["1 s", "1 min 2 s"]);
    }

    #[test]
    fn rows_without_styles_have_no_control_sequences() {
        let row = Row { label: "a".into(), is_named: true, packets: 0, lost: 7 };
        assert!(row.line(8, 0.0, Palette::ANSI).contains("\x1b[31m"));
        assert!(!row.line(8, 0.0, Palette::NONE).contains('\x1b'));
    }

    #[test]
    fn active_named_elements_come_first() {
        let row = |label: &str, packets| Row {
            label: label.into(),
            is_named: !label.contains('@'),
            packets,
            lost: 0,
        };
        let rows = [row("A@1", 5), row("b", 0), row("c", 1), row("D@2", 0)];
        assert_eq!(select_rows(&rows, 4), [0, 1, 2, 3]);
        assert_eq!(select_rows(&rows, 2), [1, 2]);
        assert_eq!(select_rows(&rows, 1), [2]);
    }
}
