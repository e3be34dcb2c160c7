//! The wording of diagnostics about a graph.

use alloc::format;
use alloc::string::String;

use click_lang::{Diagnostic, Graph, Location};

/// An error, with a location if there is one.
pub(crate) fn error(location: Option<Location>, message: String) -> Diagnostic {
    Diagnostic { location, ..Diagnostic::without_location(message) }
}

/// An element's name in messages.
pub(crate) fn named(graph: &Graph, element: usize) -> String {
    graph
        .elements
        .get(element)
        .map_or_else(String::new, |element| format!("{} :: {}", element.name, element.class))
}

/// The hint on a misspelt name.
pub(crate) fn did_you_mean(name: &str) -> String {
    format!("did you mean ‘{name}’?")
}

/// A text below a line that names its subject.
pub(crate) fn introduced(what: &str, subject: &str, text: &str) -> String {
    format!("{what} ‘{subject}’:\n  {}", text.replace('\n', "\n  "))
}
