//! The wording of diagnostics about a graph.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use click_lang::{Diagnostic, Graph, Location, Severity};

/// An error, with a location if there is one.
pub(crate) fn error(location: Option<Location>, message: String) -> Diagnostic {
    let severity = Severity::Error;
    Diagnostic {
        severity,
        location,
        message,
        related: Vec::new(),
        hint: None,
        bare: false,
        printed: None,
        data_location: None,
    }
}

/// An element's name in messages.
pub(crate) fn named(graph: &Graph, element: usize) -> String {
    graph
        .elements
        .get(element)
        .map_or_else(String::new, |element| format!("{} :: {}", element.name, element.class))
}

/// A text below a line that names its subject.
pub(crate) fn introduced(what: &str, subject: &str, text: &str) -> String {
    format!("{what} ‘{subject}’:\n  {}", text.replace('\n', "\n  "))
}
