//! The wording of diagnostics about a graph.

use alloc::format;
use alloc::string::{String, ToString};

use click_lang::{Diagnostic, Graph, Location};
use element::text::split_arguments;
use element::{ClassInfo, Message};

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

/// A hint on an argument without a keyword that follows one with a keyword, which Click refuses.
pub(crate) fn misplaced(class: &ClassInfo, config: &str, message: &Message) -> Option<String> {
    let has_keyword = |argument: &str| {
        let keyword = argument.split_once(char::is_whitespace).map(|(keyword, _)| keyword);
        class.arguments().any(|argument| Some(argument.keyword) == keyword)
    };
    let is_misplaced = match message {
        // A required argument takes the next text, whatever it looks like.
        Message::Argument { value: Some(value), .. } => has_keyword(value),
        Message::TooMany(Some(surplus)) => split_arguments(config)
            .iter()
            .take_while(|argument| *argument != surplus)
            .any(|argument| has_keyword(argument)),
        _ => false,
    };
    is_misplaced.then(|| "arguments without a keyword come before those with one".to_string())
}
