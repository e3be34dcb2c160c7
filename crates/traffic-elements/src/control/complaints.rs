//! Errors of a script: their context and their destination.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::Context;

/// The errors that a script encounters.
#[derive(Default)]
pub(super) struct Complaints {
    /// Errors held for the caller of a handler; `None` sends them to the log at once.
    held: Option<Vec<String>>,
    count: u64,
    /// The current contexts from the outermost on, and whether each has been reported.
    occasions: Vec<(String, bool)>,
}

impl Complaints {
    /// Holds further errors for the caller of a handler.
    pub(super) fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Returns the held errors; further errors go to the log.
    pub(super) fn release(&mut self) -> String {
        self.held.take().unwrap_or_default().join("\n")
    }

    /// Number of errors so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a context for the following errors, until [`leave`](Self::leave).
    pub(super) fn enter(&mut self, occasion: String) {
        self.occasions.push((occasion, false));
    }

    /// Removes the innermost context.
    pub(super) fn leave(&mut self) {
        self.occasions.pop();
    }

    /// Adds an error.
    pub(super) fn push(&mut self, cx: &Context, problem: &str) {
        self.count += 1;
        let place = place_of_line(problem).0;
        let mut lines = Vec::new();
        for (level, (occasion, reported)) in self.occasions.iter_mut().enumerate() {
            if !core::mem::replace(reported, true) {
                let own = if place_of_line(occasion).0.is_empty() { place } else { "" };
                let occasion = format!("{own}{}", occasion.replace('\n', &format!("\n{own}")));
                lines.push(indented(&occasion, level));
            }
        }
        lines.push(indented(problem, self.occasions.len()));
        match &mut self.held {
            Some(held) => held.append(&mut lines),
            None => lines.iter().for_each(|line| cx.log(line)),
        }
    }
}

/// Indents text below its context; line prefixes stay at the start of the lines.
fn indented(text: &str, level: usize) -> String {
    let line = |line: &str| {
        let (place, rest) = place_of_line(line);
        format!("{place}{}{rest}", "  ".repeat(level))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Splits off the configuration line with which a message may start.
fn place_of_line(line: &str) -> (&str, &str) {
    let place = line.strip_prefix("config:").and_then(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && rest.get(digits..digits + 2) == Some(": ")).then_some("config:".len() + digits + 2)
    });
    line.split_at(place.unwrap_or(0))
}
