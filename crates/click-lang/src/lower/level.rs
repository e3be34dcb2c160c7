//! The compounds being lowered, from the top level inwards, and their parts.

use crate::Diagnostic;
use crate::class::{Compound, ConfigText, Part, PartKind, SourceSpan};
use crate::compilation::Compilation;
use crate::steps::free_map;
use crate::tree::{Span, SyntaxError};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

/// Names that are freed in a step.
const NAMES_A_STEP: usize = 16;

/// A compound being lowered.
pub(super) struct Level {
    /// The part of it that is known so far.
    pub(super) compound: Compound,
    /// Its parts by name; inside a group `input` and `output` are the group's.
    pub(super) names: BTreeMap<Rc<str>, usize>,
    /// Its parameters and defined variables.
    pub(super) variables: BTreeSet<Rc<str>>,
}

impl Level {
    /// An empty level.
    pub(super) fn new(name: Rc<str>, span: SourceSpan, depth: usize) -> Self {
        let compound = Compound {
            name,
            span,
            depth,
            parameters: Vec::new(),
            definitions: Vec::new(),
            parts: Vec::new(),
            links: Vec::new(),
            ports: [0, 0],
            next: Cell::new(None),
        };
        Self { compound, names: BTreeMap::new(), variables: BTreeSet::new() }
    }
}

/// The state of the lowering.
pub(super) struct Lowering<'c, 'o> {
    /// The state shared by all steps.
    pub(super) compilation: &'c mut Compilation<'o>,
    /// The compounds being lowered, innermost last; never empty.
    pub(super) levels: Vec<Level>,
    /// The current source.
    pub(super) source: u32,
    /// Its syntax errors that are not yet reported.
    pub(super) errors: alloc::vec::IntoIter<SyntaxError>,
    /// The number of reported ones.
    pub(super) reported: usize,
    /// The libraries read so far.
    pub(super) libraries: Vec<String>,
    /// The depth of nested requirements: libraries being read, each required by the previous one.
    pub(super) requiring: usize,
}

/// The symbol that a stray character is probably a part of.
fn hint_on(stray: &str) -> Option<&'static str> {
    match stray {
        ":" => Some("::"),
        "-" | ">" => Some("->"),
        "=" => Some("=>"),
        _ => None,
    }
}

impl Lowering<'_, '_> {
    /// Reports syntax errors up to number `count`, so that all errors appear in the order in which a single-pass reader
    /// meets them.
    pub(super) fn syntax_errors(&mut self, count: usize) {
        while self.reported < count
            && let Some(error) = self.errors.next()
        {
            self.reported += 1;
            let location = |span| self.compilation.location(self.source_span(span));
            let hint = hint_on(self.compilation.slice(self.source_span(error.span)));
            let mut diagnostic = Diagnostic::error(location(error.span), error.message);
            diagnostic.printed = error.printed.map(location);
            diagnostic.hint = hint.map(|meant| format!("did you mean ‘{meant}’?"));
            self.compilation.diagnostics.push(diagnostic);
            self.compilation.diagnostics.set_partial();
        }
    }

    /// The location of a span of the current source.
    pub(super) fn source_span(&self, span: Span) -> SourceSpan {
        SourceSpan { source: self.source, span }
    }

    /// The text of a span of the current source.
    pub(super) fn slice(&self, span: Span) -> Rc<str> {
        self.compilation.slice(self.source_span(span)).into()
    }

    /// The innermost compound.
    pub(super) fn level(&mut self) -> &mut Level {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Leaves the innermost compound, and returns it.
    pub(super) async fn leave_level(&mut self) -> Compound {
        let empty = || Level::new(Rc::from(""), SourceSpan::default(), 0);
        let Level { compound, names, .. } = self.levels.pop().unwrap_or_else(empty);
        free_map(names, NAMES_A_STEP).await;
        compound
    }

    /// A part of the innermost compound.
    pub(super) fn part(&mut self, index: usize) -> &mut Part {
        &mut self.level().compound.parts[index]
    }

    /// The provisional name of an anonymous element, until its number is assigned.
    pub(super) fn anonymous_name(&mut self, class: &str) -> String {
        let compound = &self.level().compound;
        let pseudo = if compound.depth > 0 { 2 } else { 0 };
        format!(";{class}@{}", compound.parts.len() - pseudo + 1)
    }

    /// Adds a part to the innermost compound.
    pub(super) fn add_part(
        &mut self,
        name: String,
        kind: PartKind,
        config: ConfigText,
        span: SourceSpan,
    ) -> usize {
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if name.split('/').any(all_digits) {
            self.compilation.error(span, format!("element name ‘{name}’ has all-digit component"));
        }
        let level = self.level();
        let index = level.compound.parts.len();
        level.names.insert(name.as_str().into(), index);
        level.compound.parts.push(Part { name, kind, config, span, ports: [0, 0] });
        index
    }
}
