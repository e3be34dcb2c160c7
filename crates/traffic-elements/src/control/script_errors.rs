//! Errors of a script: their context and their destination.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::{Context, HandlerTarget};

/// The errors that a script encounters.
#[derive(Default)]
pub(super) struct ScriptErrors {
    /// Errors held for the caller of a handler; `None` sends them to the log at once.
    held: Option<Vec<String>>,
    count: u64,
    /// The current contexts from the outermost on, and whether each has been reported.
    headings: Vec<(Heading, bool)>,
}

/// The context of errors. Its text is made when the first error comes, because most packets cause none.
pub(super) enum Heading {
    /// The element is being initialised.
    Initializing,
    /// The script is being executed.
    Executing,
    /// A handler is being called.
    Calling { target: HandlerTarget, value: String },
}

impl Heading {
    fn text(&self, cx: &Context) -> String {
        match self {
            Heading::Initializing => cx.message_heading("While initializing"),
            Heading::Executing => format!("While executing ‘{} :: {}’:", cx.name(), cx.class_name()),
            Heading::Calling { target, value } => {
                let space = if value.is_empty() { "" } else { " " };
                format!("While calling ‘{}{space}{value}’:", full_path(cx, target))
            }
        }
    }
}

impl ScriptErrors {
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
    pub(super) fn enter(&mut self, heading: Heading) {
        self.headings.push((heading, false));
    }

    /// Removes the innermost context.
    pub(super) fn leave(&mut self) {
        self.headings.pop();
    }

    /// Adds an error.
    pub(super) fn push(&mut self, cx: &Context, problem: &str) {
        self.count += 1;
        let prefix = split_line_prefix(problem).0;
        let mut lines = Vec::new();
        for (level, (heading, reported)) in self.headings.iter_mut().enumerate() {
            if !core::mem::replace(reported, true) {
                let heading = heading.text(cx);
                let own = if split_line_prefix(&heading).0.is_empty() { prefix } else { "" };
                let heading = format!("{own}{}", heading.replace('\n', &format!("\n{own}")));
                lines.push(indented(&heading, level));
            }
        }
        lines.push(indented(problem, self.headings.len()));
        match &mut self.held {
            Some(held) => held.append(&mut lines),
            None => lines.iter().for_each(|line| cx.log_between_packets(line)),
        }
    }
}

/// The handler's path from the outermost scope.
pub(super) fn full_path(cx: &Context, target: &HandlerTarget) -> String {
    match target.element {
        Some(element) => format!("{}.{}", cx.runtime().element_name(element), target.handler),
        None => target.handler.clone(),
    }
}

/// Indents text below its context; line prefixes stay at the start of the lines.
fn indented(text: &str, level: usize) -> String {
    let line = |line: &str| {
        let (prefix, rest) = split_line_prefix(line);
        format!("{prefix}{}{rest}", "  ".repeat(level))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Splits off the configuration line with which a message may start.
fn split_line_prefix(line: &str) -> (&str, &str) {
    let prefix = line.strip_prefix("config:").and_then(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && rest.get(digits..digits + 2) == Some(": ")).then_some("config:".len() + digits + 2)
    });
    line.split_at(prefix.unwrap_or(0))
}
