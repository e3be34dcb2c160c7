//! What a script complains of: in the middle of what, and to whom.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::Context;

/// The errors that a script meets.
#[derive(Default)]
pub(super) struct Complaints {
    /// Those for the caller of a handler; without one they go to the log at once.
    held: Option<Vec<String>>,
    count: u64,
    /// In the middle of what, from the outermost, and whether that has been told.
    occasions: Vec<(String, bool)>,
}

impl Complaints {
    /// Keeps what comes for the caller of a handler.
    pub(super) fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// What was kept; what comes goes to the log again.
    pub(super) fn release(&mut self) -> String {
        self.held.take().unwrap_or_default().join("\n")
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// What follows stands under `occasion`, until [`leave`](Self::leave).
    pub(super) fn enter(&mut self, occasion: String) {
        self.occasions.push((occasion, false));
    }

    /// Ends the innermost occasion.
    pub(super) fn leave(&mut self) {
        self.occasions.pop();
    }

    /// Adds one.
    pub(super) fn push(&mut self, cx: &Context, problem: &str) {
        self.count += 1;
        let place = place_of_line(problem).0;
        let mut lines = Vec::new();
        for (level, (occasion, told)) in self.occasions.iter_mut().enumerate() {
            if !core::mem::replace(told, true) {
                let own = if place_of_line(occasion).0.is_empty() { place } else { "" };
                let occasion = format!("{own}{}", occasion.replace('\n', &format!("\n{own}")));
                lines.push(indented(&occasion, level));
            }
        }
        lines.push(indented(problem, self.occasions.len()));
        match &mut self.held {
            Some(held) => held.append(&mut lines),
            None => lines.iter().for_each(|line| cx.say(line)),
        }
    }
}

/// Text that stands under something else; the places of lines stay at their beginning.
fn indented(text: &str, level: usize) -> String {
    let line = |line: &str| {
        let (place, rest) = place_of_line(line);
        format!("{place}{}{rest}", "  ".repeat(level))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The place in a new configuration that a message begins with, and the rest.
fn place_of_line(line: &str) -> (&str, &str) {
    let place = line.strip_prefix("config:").and_then(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && rest.get(digits..digits + 2) == Some(": ")).then_some("config:".len() + digits + 2)
    });
    line.split_at(place.unwrap_or(0))
}
