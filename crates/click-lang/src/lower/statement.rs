//! Statements: classes, variables, requirements.

use super::level::{Level, Lowering};
use crate::class::{Class, ClassId, Compound, SourceSpan};
use crate::compilation::Compilation;
use crate::steps::pause;
use crate::tree::{
    ClassUse, Span, Statement, StatementKind, Subject, SyntaxError, TokenKind, Tree, UNCLOSED_CONFIG,
};
use crate::{Requirement, config, lexer, suggest};
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Lowers a configuration in steps: returns its top level, with all classes resolved.
pub(crate) async fn lower(compilation: &mut Compilation<'_>, text: &str) -> Compound {
    let mut lowering = Lowering {
        compilation,
        levels: Vec::new(),
        source: 0,
        errors: Vec::new().into_iter(),
        reported: 0,
        libraries: Vec::new(),
        requiring: 0,
    };
    lowering.levels.push(Level::new(Rc::from(""), SourceSpan::default(), 0));
    let name = lowering.compilation.options.file;
    lowering.text(name, text).await;
    lowering.leave_level().await
}

/// The parts of a text between semicolons and braces that have a syntax error, in order: byte range, and the start of
/// the first syntax error. After that error the parser can misread the rest of the part.
fn segments(tree: &Tree<'_>) -> Vec<(Range<usize>, usize)> {
    let mut errors: Vec<usize> = tree.errors().iter().map(|error| error.span.start as usize).collect();
    sorting::sort(&mut errors);
    let mut errors = errors.into_iter().peekable();
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    let ends =
        tree.tokens().map(|(kind, text)| (kind == TokenKind::Character && "{};".contains(text), text.len()));
    for (is_end, length) in ends.chain([(true, 1)]) {
        at += length;
        if is_end {
            if let Some(error) = errors.next_if(|error| *error < at) {
                found.push((start..at, error));
                while errors.next_if(|error| *error < at).is_some() {}
            }
            start = at;
        }
        if errors.peek().is_none() {
            break;
        }
    }
    found
}

/// The keyword before the name of a class.
const CLASS_KEYWORD: &str = "elementclass";

/// The keywords before parentheses.
const CONFIG_KEYWORDS: [&str; 3] = ["define", "require", "provide"];

/// The name, if a statement is nothing else.
fn only_name(statement: &Statement) -> Option<Span> {
    let StatementKind::Chain(steps) = &statement.kind else { return None };
    match steps.first()?.items.as_slice() {
        [item] if matches!(item.subject, Subject::Name) => Some(item.span),
        _ => None,
    }
}

/// The brace or parenthesis that is not closed. A configuration without its parenthesis takes the rest of the text, so
/// that no brace before it is closed either; of braces, the first is taken.
fn unclosed(errors: &[SyntaxError]) -> Option<Span> {
    let unclosed = || errors.iter().filter(|error| error.printed.is_some());
    let of_config = unclosed().find(|error| error.message == UNCLOSED_CONFIG);
    of_config.or_else(|| unclosed().min_by_key(|error| error.span.start)).map(|error| error.span)
}

/// What a statement leaves to the next one.
struct Place {
    /// Whether the last chain ends with an output.
    ends_output: bool,
    /// The next statements that the parser found in a class whose keyword is misspelt.
    of_class: usize,
}

impl Lowering<'_, '_> {
    async fn text(&mut self, name: &str, text: &str) {
        let tree = Tree::parse_in_steps(text, &self.compilation.options.limits).await;
        pause().await;
        let source = self.compilation.add_source(name, &tree).await;
        pause().await;
        let outer_source = core::mem::replace(&mut self.source, source);
        let outer_errors = core::mem::replace(&mut self.errors, tree.errors().to_vec().into_iter());
        let outer_reported = core::mem::replace(&mut self.reported, 0);
        let start = self.compilation.diagnostics.len();
        let file = self.compilation.sources[source as usize].name.clone();
        let mut place = Place { ends_output: true, of_class: 0 };
        for index in 0..tree.statements().len() {
            self.statement(tree.statements(), index, &mut place).await;
            pause().await;
        }
        self.syntax_errors(usize::MAX);
        self.compilation.diagnostics.mark_segments(start, (&file, text), &segments(&tree));
        if let Some(open) = unclosed(tree.errors()) {
            let rest = Span { start: open.start, end: text.len() as u32 };
            let misread = self.compilation.location(SourceSpan { source, span: rest });
            self.compilation.diagnostics.mark_misread(start, &misread);
            self.compilation.misread.push(misread);
        }
        self.source = outer_source;
        self.errors = outer_errors;
        self.reported = outer_reported;
        tree.free().await;
    }

    pub(super) async fn statements(&mut self, statements: &[Statement]) {
        let mut place = Place { ends_output: true, of_class: 0 };
        for index in 0..statements.len() {
            self.statement(statements, index, &mut place).await;
            pause().await;
        }
    }

    /// Lowers one of the statements, in their order.
    async fn statement(&mut self, statements: &[Statement], index: usize, place: &mut Place) {
        let Some(statement) = statements.get(index) else { return };
        self.syntax_errors(statement.errors.start);
        let misspelt = self.misspelt_keyword(statement);
        let start = self.compilation.diagnostics.len();
        if let Some(keyword) = misspelt
            && keyword == CLASS_KEYWORD
            && let Some(name) = statements.get(index + 1).and_then(only_name)
        {
            place.of_class = 3;
            let name = self.slice(name);
            self.compilation.undefined_classes.insert((*name).into());
        }
        match &statement.kind {
            StatementKind::Chain(steps) => {
                let (end, errors) = (statement.end, statement.errors.end);
                place.ends_output = self.chain(steps, place.ends_output, end, errors).await;
            }
            StatementKind::ElementClass { name, class } => self.element_class(*name, class.as_ref()).await,
            StatementKind::Define(text) => self.define(*text),
            StatementKind::Require(text) => self.require(*text).await,
            StatementKind::Provide(text) => {
                let text = self.slice(*text);
                let text = lexer::config_text(&text);
                let provisions = config::arguments(&text).into_iter().map(|argument| argument.into_owned());
                self.compilation.graph.provisions.extend(provisions);
            }
        }
        if let Some(keyword) = misspelt {
            self.compilation.diagnostics.explain_misspelt(start, keyword);
        } else if place.of_class > 0 {
            self.compilation.diagnostics.mark_consequences(start);
        }
        place.of_class = place.of_class.saturating_sub(1);
    }

    /// The keyword that a statement of one undeclared name probably means.
    fn misspelt_keyword(&mut self, statement: &Statement) -> Option<&'static str> {
        let StatementKind::Chain(steps) = &statement.kind else { return None };
        let [step] = steps.as_slice() else { return None };
        let [item] = step.items.as_slice() else { return None };
        if !matches!(item.subject, Subject::Name) || item.class.is_some() || item.outputs.is_some() {
            return None;
        }
        let name = self.slice(item.span);
        if self.level().names.contains_key(&name) || self.compilation.find_class(&name).is_some() {
            return None;
        }
        // Of the keywords, only that of a class is followed by a name; the others have a configuration.
        let keywords: &[_] = if item.config.is_some() { &CONFIG_KEYWORDS } else { &[CLASS_KEYWORD] };
        suggest::nearest(&name, keywords.iter().copied())
    }

    async fn element_class(&mut self, name: Option<Span>, class: Option<&ClassUse>) {
        let name = name.map_or_else(|| Rc::from(""), |span| self.slice(span));
        let id = match class {
            Some(ClassUse::Compound(compound)) => {
                self.compound(compound, &name).await;
                return;
            }
            Some(ClassUse::Named(span)) => self.class_named(*span),
            Some(ClassUse::Missing { .. }) | None => {
                self.compilation.classes.add(Class::Primitive(name.clone()))
            }
        };
        self.compilation.classes.name(name, id);
    }

    /// Looks up a class. An unknown one is reported once, then treated as known.
    pub(super) fn class_named(&mut self, span: Span) -> ClassId {
        let name = self.slice(span);
        if let Some(id) = self.compilation.find_class(&name) {
            return id;
        }
        let message = format!("unknown element class ‘{name}’");
        self.compilation.unknown(self.source_span(span), message, &name, core::iter::empty());
        self.unknown_class(name)
    }

    pub(super) fn unknown_class(&mut self, name: Rc<str>) -> ClassId {
        let id = self.compilation.classes.add(Class::Primitive(name.clone()));
        self.compilation.classes.name(name, id);
        id
    }

    fn define(&mut self, span: Span) {
        let text = self.slice(span);
        let text = lexer::config_text(&text);
        for argument in config::arguments(&text) {
            if argument.is_empty() {
                continue;
            }
            let (variable, value) = config::first_word(&argument);
            let name = variable.strip_prefix('$').unwrap_or_default();
            if name.is_empty() || !name.bytes().all(config::is_variable_byte) {
                self.compilation.error(self.source_span(span), "bad ‘define’ declaration: not a variable");
                continue;
            }
            if self.level().variables.insert(name.into()) {
                self.level().compound.definitions.push((name.into(), value.into()));
            } else {
                let message = format!("parameter ‘${name}’ multiply defined");
                self.compilation.error(self.source_span(span), message);
            }
        }
    }

    async fn require(&mut self, span: Span) {
        let text = self.slice(span);
        let text = lexer::config_text(&text);
        let span = self.source_span(span);
        for argument in config::arguments(&text) {
            let words = config::words(&argument);
            let unquoted = |word: &str| String::from_utf8_lossy(&config::unquote(word)).into_owned();
            let first = words.first().map(|word| unquoted(word)).unwrap_or_default();
            let (kind, value) = match (first.as_str(), words.get(1), words.len()) {
                (_, _, 0) => continue,
                ("compact_config", None, _) => ("compact_config", String::new()),
                (name, None, _) if !matches!(name, "" | "package" | "library") => ("package", first.clone()),
                ("package", Some(name), 2) => ("package", unquoted(name)),
                ("library", Some(name), 2) => {
                    self.library(span, &unquoted(name)).await;
                    continue;
                }
                _ => {
                    self.compilation.error(span, "syntax error at requirement");
                    continue;
                }
            };
            let location = self.compilation.location(span);
            self.compilation.graph.requirements.push(Requirement { kind: kind.into(), value, location });
        }
    }

    async fn library(&mut self, span: SourceSpan, name: &str) {
        let limits = &self.compilation.options.limits;
        if self.levels.len() > 1 {
            self.compilation.error(span, "‘require library’ must be used at file scope");
            return;
        }
        let folder = self.compilation.folder(self.source, span.span);
        let found = self.compilation.options.reader.and_then(|reader| reader(name, &folder));
        let Some(library) = found else {
            let message = format!("library ‘{name}’ not found in CLICKPATH/conf");
            self.compilation.error(span, message);
            return;
        };
        if self.libraries.contains(&library.path) {
            return;
        }
        if self.libraries.len() >= limits.libraries || self.requiring >= limits.nesting {
            self.compilation.error(span, "too many libraries");
            return;
        }
        self.libraries.push(library.path.clone());
        self.requiring += 1;
        Box::pin(self.text(&library.path, &library.text)).await;
        self.requiring -= 1;
    }
}
