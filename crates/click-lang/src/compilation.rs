//! The state shared by the steps of a compilation.

use crate::class::{ClassId, Classes, SourceSpan};
use crate::diagnostics::Diagnostics;
use crate::options::Options;
use crate::source::Source;
use crate::tree::{Span, Tree};
use crate::variables::Budget;
use crate::{Diagnostic, Graph, Location, suggest};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The state shared by the steps.
pub(crate) struct Compilation<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) sources: Vec<Source>,
    pub(crate) classes: Classes,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) budget: Budget,
    pub(crate) graph: Graph,
    /// Declarations of elements whose names are near to an undeclared one, which probably means them.
    pub(crate) probably_meant: Vec<SourceSpan>,
    /// What follows a brace or parenthesis that is not closed, up to the end of its text.
    pub(crate) misread: Vec<Location>,
    /// Names of classes whose definition is not recognised because its keyword is misspelt.
    pub(crate) undefined_classes: BTreeSet<String>,
    unknown_names: usize,
}

/// The maximum number of searches for hints, for a configuration in which every name is unknown.
const MAX_HINTS: usize = 100;

impl<'a> Compilation<'a> {
    /// A compilation before its first step.
    pub(crate) fn new(options: &'a Options<'a>) -> Self {
        Self {
            options,
            sources: Vec::new(),
            classes: Classes::default(),
            diagnostics: Diagnostics::new(options.limits.diagnostics),
            budget: Budget::new(options.limits.expanded_bytes),
            graph: Graph::default(),
            probably_meant: Vec::new(),
            misread: Vec::new(),
            undefined_classes: BTreeSet::new(),
            unknown_names: 0,
        }
    }

    /// Adds a source in steps, and returns its index.
    pub(crate) async fn add_source(&mut self, name: &str, tree: &Tree<'_>) -> u32 {
        self.sources.push(Source::new(name, tree).await);
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

    /// Reports an unknown name, with the nearest name among `others` or else the class names as a hint. Returns the
    /// nearest one among `others`.
    pub(crate) fn unknown<'n>(
        &mut self,
        span: SourceSpan,
        message: String,
        name: &str,
        others: impl Iterator<Item = &'n str>,
    ) -> Option<&'n str> {
        self.unknown_names += 1;
        let is_searched = self.unknown_names <= MAX_HINTS;
        let other = if is_searched { suggest::nearest(name, others) } else { None };
        let classes = self.options.class_names.iter().copied().chain(self.classes.names());
        let class = if is_searched { suggest::nearest(name, classes) } else { None };
        let hint = other.or(class).map(|nearest| format!("did you mean ‘{nearest}’?"));
        let diagnostic = Diagnostic::error(self.location(span), message).with_hint(hint);
        let follows = self.undefined_classes.contains(name);
        self.diagnostics.push(diagnostic.following(follows));
        other
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
