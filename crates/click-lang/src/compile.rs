//! The way from text to graph, and what its steps share.

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

/// What a configuration is compiled with.
#[derive(Clone)]
pub struct Options<'a> {
    /// The file's name for messages; `config` when it is empty.
    pub file: &'a str,
    /// Variables from outside, e.g. `NAME=VALUE` of a command line; they win over the text's own at file scope.
    pub parameters: &'a [(String, String)],
    /// Says which names are element classes.
    pub is_class: &'a dyn Fn(&str) -> bool,
    /// Names of element classes, for hints on misspelt ones; may be empty.
    pub class_names: &'a [&'a str],
    /// Finds libraries; without it none can be required.
    pub reader: Option<&'a Reader<'a>>,
    /// Bounds on what the configuration may cost.
    pub limits: Limits,
}

/// Finds the library of a name that is required by a file in a folder (the second argument, e.g. `.`).
pub type Reader<'a> = dyn Fn(&str, &str) -> Option<Library> + 'a;

/// A library that was found.
#[derive(Clone, Debug)]
pub struct Library {
    /// The file's name: for messages, and to know a library that was read before.
    pub path: String,
    /// Its text.
    pub text: String,
}

impl<'a> Options<'a> {
    /// Options for a text that is called `file`, with the classes that `is_class` knows, and nothing else.
    pub fn new(file: &'a str, is_class: &'a dyn Fn(&str) -> bool) -> Self {
        Self { file, parameters: &[], is_class, class_names: &[], reader: None, limits: Limits::default() }
    }
}

/// What a configuration was compiled to.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The flat graph; when there are errors, as much of it as could be made out.
    pub graph: Graph,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Whether anything keeps the configuration from running.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Compiles a configuration. Never stops at the first error.
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

/// What the steps share.
pub(crate) struct Compilation<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) sources: Vec<Source>,
    pub(crate) classes: Classes,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) budget: Budget,
    pub(crate) graph: Graph,
    unknown_names: usize,
}

/// Hints are looked for this many times: a configuration in which every name is unknown needs another kind of help.
const MAX_HINTS: usize = 100;

impl Compilation<'_> {
    /// Adds a source and returns its index.
    pub(crate) fn add_source(&mut self, name: &str, tree: &Tree<'_>) -> u32 {
        self.sources.push(Source::new(name, tree));
        self.sources.len() as u32 - 1
    }

    /// Says where a place is.
    pub(crate) fn location(&self, place: SourceSpan) -> Location {
        self.sources[place.source as usize].location(place.span)
    }

    /// The text of a place.
    pub(crate) fn slice(&self, place: SourceSpan) -> &str {
        self.sources[place.source as usize].slice(place.span)
    }

    /// Reports an error.
    pub(crate) fn error(&mut self, place: SourceSpan, message: impl Into<String>) {
        self.diagnostics.error(self.location(place), message);
    }

    /// Reports an error that has to do with another place, too.
    pub(crate) fn error_and(
        &mut self,
        place: SourceSpan,
        message: String,
        other: SourceSpan,
        related: String,
    ) {
        let diagnostic = Diagnostic::error(self.location(place), message);
        self.diagnostics.push(diagnostic.with_related(self.location(other), related));
    }

    /// Reports an unknown name, with the nearest known one: of `others` or else of the class names.
    pub(crate) fn unknown<'n>(
        &mut self,
        place: SourceSpan,
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
        let diagnostic = Diagnostic::error(self.location(place), message).with_hint(hint);
        self.diagnostics.push(diagnostic);
    }

    /// Returns what a name means as a class, if anything.
    pub(crate) fn find_class(&mut self, name: &str) -> Option<ClassId> {
        self.classes.find(name).or_else(|| {
            let known = (self.options.is_class)(name);
            known.then(|| self.classes.primitive(name))
        })
    }

    /// The folder of a source: what stands before the last `/` of its name.
    pub(crate) fn folder(&self, source: u32, span: Span) -> String {
        let file = self.sources[source as usize].location(span).file;
        match file.rfind('/') {
            Some(end) if end > 0 => file[..end].to_owned(),
            _ => ".".to_owned(),
        }
    }
}
