//! Formats the line of a progress bar.

use element::prelude::*;

/// Width of the line in characters, without banner, percentage and bar.
const FIXED_WIDTH: usize = 25;
/// Width of the position, which is part of it.
const POSITION_WIDTH: usize = 8;
/// The maximum length of the bar.
const MAX_BAR_WIDTH: usize = 240;
/// Seconds without progress after which the operation counts as stalled.
pub(super) const STALLED: i64 = 5;

/// The progress of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Progress {
    /// The current position, if known.
    pub(super) position: Option<f64>,
    /// The final position, if known.
    pub(super) size: Option<f64>,
    /// Whether the size is a given number, so that the position is not shown.
    pub(super) fixed: bool,
    /// Elapsed seconds, without stalls.
    pub(super) elapsed: f64,
    /// Whether there was no progress for [`STALLED`] seconds.
    pub(super) stalled: bool,
    /// Whether this is the last line.
    pub(super) over: bool,
}

impl Progress {
    /// The line, `columns` wide.
    pub(super) fn line(&self, banner: &str, columns: usize) -> String {
        let mut line = String::new();
        if !banner.is_empty() {
            line = format!("{banner} ");
        }
        match (self.size, self.part()) {
            (Some(_), Some(part)) => line += &format!("{:3}% ", (part * 100.0) as u32),
            (Some(_), None) => line += "  -% ",
            (None, _) => {}
        }
        // One character less than the width, so that the cursor stays in the line.
        let taken = 1 + line.chars().count() + FIXED_WIDTH - if self.fixed { POSITION_WIDTH } else { 0 };
        let length = columns.saturating_sub(taken).min(MAX_BAR_WIDTH);
        if length > 0 {
            line += &format!("|{}|", self.bar(length));
        }
        match self.position {
            _ if self.fixed => line.push(' '),
            Some(position) => line += &format!(" {} ", amount(position)),
            None => line += " -----   ",
        }
        line + &self.time()
    }

    /// The completed fraction from 0 to 1, truncated to a whole percentage.
    fn part(&self) -> Option<f64> {
        let (position, size) = (self.position?, self.size?);
        let part = if size > 0.0 { position / size } else { 1.0 };
        Some(f64::from(((part * 100.0).clamp(0.0, 100.0)) as u32) / 100.0)
    }

    fn bar(&self, length: usize) -> String {
        let at = |column: usize, mark: &str| format!("{}{mark}", " ".repeat(column));
        let bar = match (self.part(), self.position) {
            (Some(part), _) => "*".repeat((length as f64 * part) as usize),
            (None, Some(position)) if !self.over && self.size.is_none() => {
                // Without a size, a mark moves back and forth, once per ten million in each direction.
                let way = ((position / 100_000.0).max(0.0) as u64 % 200) as usize;
                let way = if way > 100 { 200 - way } else { way };
                let mark = if length > 3 { "***" } else { "*" };
                at((length - mark.len()) * way / 100, mark)
            }
            _ => "-".repeat(length),
        };
        format!("{bar:length$}")
    }

    fn time(&self) -> String {
        let unknown = match (self.position, self.size) {
            (Some(position), Some(size)) => self.elapsed <= 0.0 || position > size,
            _ => true,
        };
        if !self.over && unknown {
            return "   --:-- ETA".into();
        }
        if self.stalled {
            return " - stalled -".into();
        }
        let (seconds, tail) = match (self.position, self.size) {
            (Some(position), Some(size)) if !self.over && position >= 1e-6 => {
                (size * self.elapsed / position - self.elapsed, " ETA")
            }
            _ => (self.elapsed, "    "),
        };
        let seconds = seconds as u64;
        let hours = match seconds / 3600 {
            0 => "   ".into(),
            hours => format!("{hours:2}:"),
        };
        format!("{hours}{:02}:{:02}{tail}", seconds % 3600 / 60, seconds % 60)
    }
}

/// A number of at most five digits and its unit, in eight characters.
fn amount(mut number: f64) -> String {
    let mut units = " KMGTP".chars();
    let mut unit = units.next().unwrap_or(' ');
    while number >= 100_000.0
        && let Some(next) = units.next()
    {
        (number, unit) = (number / 1024.0, next);
    }
    format!("{:5}{unit}{}", number as u64, if unit == ' ' { ' ' } else { 'B' })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let half = Progress { position: Some(5e4), size: Some(1e5), elapsed: 10.0, ..Progress::default() };
        for (progress, expected) in [
            (half, " 50% |*****     | 50000      00:10 ETA"),
            (Progress { fixed: true, ..half }, " 50% |*********         |    00:10 ETA"),
            (Progress { over: true, ..half }, " 50% |*****     | 50000      00:10    "),
            (Progress { stalled: true, ..half }, " 50% |*****     | 50000    - stalled -"),
            (Progress { position: Some(2e5), ..half }, "100% |**********|   195KB    --:-- ETA"),
            (Progress { position: None, ..half }, "  -% |----------| -----      --:-- ETA"),
            (Progress { size: None, ..half }, "|***            | 50000      --:-- ETA"),
            (Progress { size: None, position: Some(1e7), ..half }, "|            ***|  9765KB    --:-- ETA"),
            (Progress { size: None, over: true, ..half }, "|---------------| 50000      00:10    "),
            (Progress { size: Some(0.0), ..half }, "100% |**********| 50000      --:-- ETA"),
            (
                Progress { elapsed: 4000.0, position: Some(1e4), ..half },
                " 10% |*         | 10000   10:00:00 ETA",
            ),
        ] {
            let line = progress.line("", 41);
            assert_eq!(line, expected);
            assert!(line.len() < 41, "{line}");
        }
        assert_eq!(half.line("file", 10), "file  50%  50000      00:10 ETA");
    }
}
