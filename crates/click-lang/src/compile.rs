//! Compilation from text to graph, and the state shared by its steps.

use crate::class::{ClassId, Classes, SourceSpan};
use crate::diagnostics::Diagnostics;
use crate::source::Source;
use crate::tree::{Span, Tree};
use crate::variables::Budget;
use crate::{Diagnostic, Graph, Limits, Location, Severity, expand, lower, suggest};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The inputs of a compilation besides the text.
#[derive(Clone)]
pub struct Options<'a> {
    /// The file name for messages; `config` if empty.
    pub file: &'a str,
    /// Variables from outside, such as `NAME=VALUE` on a command line. They override the text's own at file scope.
    pub parameters: &'a [(String, String)],
    /// Whether a name is an element class.
    pub is_class: &'a dyn Fn(&str) -> bool,
    /// Element class names, for hints on misspelt names; may be empty.
    pub class_names: &'a [&'a str],
    /// Finds libraries. Without it `require(library ...)` fails.
    pub reader: Option<&'a Reader<'a>>,
    /// Limits on the cost of the configuration.
    pub limits: Limits,
}

/// Finds a library by the name in a requirement. The second argument is the folder of the requiring file, such as `.`.
pub type Reader<'a> = dyn Fn(&str, &str) -> Option<Library> + 'a;

/// A library file.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file name, for messages and to recognise a library that was already read.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl<'a> Options<'a> {
    /// Options for a text called `file`, with the classes that `is_class` accepts and defaults for the rest.
    pub fn new(file: &'a str, is_class: &'a dyn Fn(&str) -> bool) -> Self {
        Self { file, parameters: &[], is_class, class_names: &[], reader: None, limits: Limits::default() }
    }
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The flat graph; if there are errors, as much of it as could be built.
    pub graph: Graph,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Whether there are errors, so that the configuration can't run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Compiles a configuration. Reports all errors, not only the first.
pub fn compile(text: &str, options: &Options<'_>) -> Compiled {
    let mut compilation = Compilation {
        options,
        sources: Vec::new(),
        classes: Classes::default(),
        diagnostics: Diagnostics::new(options.limits.diagnostics),
        budget: Budget::new(options.limits.expanded_bytes),
        graph: Graph::default(),
        unknown_names: 0,
    };
    let outermost = lower::lower(&mut compilation, text);
    expand::expand(&mut compilation, outermost);
    Compiled { graph: compilation.graph, diagnostics: compilation.diagnostics.finish() }
}

/// The state shared by the steps.
pub(crate) struct Compilation<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) sources: Vec<Source>,
    pub(crate) classes: Classes,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) budget: Budget,
    pub(crate) graph: Graph,
    unknown_names: usize,
}

/// The maximum number of searches for hints, for a configuration in which every name is unknown.
const MAX_HINTS: usize = 100;

impl Compilation<'_> {
    /// Adds a source and returns its index.
    pub(crate) fn add_source(&mut self, name: &str, tree: &Tree<'_>) -> u32 {
        self.sources.push(Source::new(name, tree));
        self.sources.len() as u32 - 1
    }

    /// The location of a span.
    pub(crate) fn location(&self, span: SourceSpan) -> Location {
        self.sources[span.source as usize].location(span.span)
    }

    /// The text of a span.
    pub(crate) fn slice(&self, span: SourceSpan) -> &str {
        self.sources[span.source as usize].slice(span.span)
    }

    /// Reports an error.
    pub(crate) fn error(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.diagnostics.error(self.location(span), message);
    }

    /// Reports an error with a related location.
    pub(crate) fn error_and(
        &mut self,
        span: SourceSpan,
        message: String,
        other: SourceSpan,
        related: String,
    ) {
        let diagnostic = Diagnostic::error(self.location(span), message);
        self.diagnostics.push(diagnostic.with_related(self.location(other), related));
    }

    /// Reports an unknown name, with the nearest name among `others` or else the class names as a hint.
    pub(crate) fn unknown<'n>(
        &mut self,
        span: SourceSpan,
        message: String,
        name: &str,
        others: impl Iterator<Item = &'n str>,
    ) {
        self.unknown_names += 1;
        let hint = if self.unknown_names <= MAX_HINTS {
            let classes = self.options.class_names.iter().copied().chain(self.classes.names());
            let nearest = suggest::nearest(name, others).or_else(|| suggest::nearest(name, classes));
            nearest.map(|nearest| format!("did you mean ‘{nearest}’?"))
        } else {
            None
        };
        let diagnostic = Diagnostic::error(self.location(span), message).with_hint(hint);
        self.diagnostics.push(diagnostic);
    }

    /// The class that a name means, if there is one.
    pub(crate) fn find_class(&mut self, name: &str) -> Option<ClassId> {
        self.classes.find(name).or_else(|| {
            let known = (self.options.is_class)(name);
            known.then(|| self.classes.primitive(name))
        })
    }

    /// The folder of a source: its name up to the last `/`.
    pub(crate) fn folder(&self, source: u32, span: Span) -> String {
        let file = self.sources[source as usize].location(span).file;
        match file.rfind('/') {
            Some(end) if end > 0 => file[..end].to_owned(),
            _ => ".".to_owned(),
        }
    }
}
