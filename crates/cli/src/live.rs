//! The live table of a running configuration, and its summary.

use std::fmt::Write;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use router::Router;

/// Rows of the live table: it has to fit into a terminal of 24 lines.
const ROWS: usize = 18;
/// Between two refreshes.
pub(crate) const REFRESH: Duration = Duration::from_millis(100);
/// Shorter runs show nothing but their summary.
const PATIENCE: Duration = Duration::from_millis(300);

/// A table per element on the terminal, redrawn while the router runs; nothing where there is no terminal.
pub(crate) struct Live {
    display: MultiProgress,
    started: Instant,
    bar: Option<ProgressBar>,
    rows: Vec<ProgressBar>,
    before: Vec<(u64, u64)>,
    at: Instant,
}

impl Live {
    pub(crate) fn new() -> Live {
        let now = Instant::now();
        Live {
            display: MultiProgress::new(),
            started: now,
            bar: None,
            rows: Vec::new(),
            before: Vec::new(),
            at: now,
        }
    }

    /// Draws the table again. `progress` is how much of the input files has been read, of how much.
    pub(crate) fn refresh(&mut self, router: &Router, progress: (u64, u64)) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        if progress.1 > 0 {
            let bar = self.bar.get_or_insert_with(|| {
                let style = "{bar:40} {binary_bytes} of {binary_total_bytes}, {eta} left";
                let style =
                    ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
                self.display.add(ProgressBar::new(progress.1).with_style(style))
            });
            bar.set_length(progress.1);
            bar.set_position(progress.0);
        }
        let counts: Vec<(u64, u64)> = router.counts().collect();
        let seconds = self.at.elapsed().as_secs_f64().max(1e-6);
        self.at = Instant::now();
        let mut lines =
            vec![format!("{:<28} {:>14} {:>14} {:>12}", "element", "packets in", "out", "per second")];
        for ((name, class), (row, (inputs, outputs))) in
            router.elements().zip(router.classes()).zip(counts.iter().enumerate()).take(ROWS)
        {
            let before = self.before.get(row).map_or(0, |before| before.0.max(before.1));
            let rate = ((*inputs).max(*outputs) - before.min((*inputs).max(*outputs))) as f64 / seconds;
            let label = if name.contains('@') { name.to_string() } else { format!("{name} :: {class}") };
            lines.push(format!(
                "{:<28} {inputs:>14} {outputs:>14} {:>12}",
                shorten(&label, 28),
                rate_text(rate)
            ));
        }
        self.before = counts;
        while self.rows.len() < lines.len() {
            let style =
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            self.rows.push(self.display.add(ProgressBar::new(0).with_style(style)));
        }
        for (row, line) in self.rows.iter().zip(lines) {
            row.set_message(line);
        }
    }

    /// Takes the table off the terminal.
    pub(crate) fn clear(&self) {
        // A terminal that has gone needs no cleaning.
        let _ = self.display.clear();
    }
}

/// What went in, what came out, what was lost and why.
pub(crate) fn summary(router: &Router, elapsed: Duration) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<32} {:>12} {:>12} {:>12}", "element", "packets in", "out", "lost");
    let losses = router.losses();
    for ((name, class), (inputs, outputs)) in router.elements().zip(router.classes()).zip(router.counts()) {
        let lost: u64 = losses.iter().filter(|(element, ..)| element == name).map(|(.., count)| count).sum();
        if inputs == 0 && outputs == 0 && lost == 0 {
            continue;
        }
        let label = if name.contains('@') { name.to_string() } else { format!("{name} :: {class}") };
        let lost = if lost == 0 { String::new() } else { lost.to_string() };
        let _ = writeln!(text, "{:<32} {inputs:>12} {outputs:>12} {lost:>12}", shorten(&label, 32));
    }
    if !losses.is_empty() {
        let _ = writeln!(text, "\nlost packets");
        for (element, reason, count) in &losses {
            let _ =
                writeln!(text, "  {:<30} {:<24} {count:>12}", shorten(element, 30), reason.replace('_', " "));
        }
    }
    let _ = writeln!(text, "\n{:.3} s", elapsed.as_secs_f64());
    text
}

fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn rate_text(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
