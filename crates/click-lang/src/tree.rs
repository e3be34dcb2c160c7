//! The lossless tree: a configuration as written.
//!
//! The tokens cover any text without gaps or overlap; the statements give its structure.

use crate::Limits;
use crate::lexer;
pub use crate::lexer::{Token, TokenKind};
use crate::parser;
use crate::steps::{complete, pause_every};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// A half-open range of bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// Items of chains that are freed in a step of a compilation.
const ITEMS_FREED_A_STEP: usize = 16;

/// A configuration as written: its tokens and its statements.
#[derive(Clone, Debug)]
pub struct Tree<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    statements: Vec<Statement>,
    errors: Vec<SyntaxError>,
}

/// A syntax error.
#[derive(Clone, Debug)]
pub struct SyntaxError {
    /// Its location.
    pub span: Span,
    /// The location in Click's message format, if it differs.
    pub printed: Option<Span>,
    /// The text of the diagnostic.
    pub message: String,
}

/// The error at a configuration without its closing parenthesis.
pub(crate) const UNCLOSED_CONFIG: &str = "expected ')'";

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// From its first to its last token.
    pub span: Span,
    /// Its kind and contents.
    pub kind: StatementKind,
    /// The token that ended a chain: its semicolon, or a token that can't continue it.
    pub end: Span,
    /// The range of the tree's errors that were found in it.
    pub errors: Range<usize>,
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// Declarations and connections.
    Chain(Vec<Step>),
    /// `elementclass NAME ...`
    ElementClass {
        /// The new class; absent if the name is missing.
        name: Option<Span>,
        /// Its definition; absent if it is missing.
        class: Option<ClassUse>,
    },
    /// `require(...)`, with the text in parentheses.
    Require(Span),
    /// `provide(...)`, with the text in parentheses.
    Provide(Span),
    /// `define(...)`, with the text in parentheses.
    Define(Span),
}

/// One step of a chain: the items between two connectors.
#[derive(Clone, Debug)]
pub struct Step {
    /// The connector before it; absent for the first.
    pub connector: Option<Connector>,
    /// The elements, separated by commas.
    pub items: Vec<Item>,
    /// The number of the tree's errors found up to its end.
    pub errors: usize,
}

/// `->` or `=>`.
#[derive(Clone, Copy, Debug)]
pub struct Connector {
    /// Whether it is `=>`.
    pub double: bool,
    /// Its location.
    pub span: Span,
}

/// One element of a chain: used, declared, or both.
#[derive(Clone, Debug)]
pub struct Item {
    /// The element or class.
    pub subject: Subject,
    /// The location of its name, of a group's opening parenthesis, or of a compound's closing brace.
    pub span: Span,
    /// The ports before it.
    pub inputs: Option<Ports>,
    /// The class after `::`.
    pub class: Option<ClassUse>,
    /// The configuration text in parentheses.
    pub config: Option<Span>,
    /// The ports after it.
    pub outputs: Option<Ports>,
}

/// The kind of an item.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The name of an element, or of a class for an anonymous element. Its text is the item's span.
    Name,
    /// Nothing but connectors: the `input` or `output` of the surrounding compound or group.
    Implicit,
    /// `{ ... }`
    Compound(Compound),
    /// `( ... )`
    Group(Vec<Statement>),
}

/// A class in a declaration.
#[derive(Clone, Debug)]
pub enum ClassUse {
    /// By name.
    Named(Span),
    /// By a definition in place.
    Compound(Compound),
    /// Missing after `::`.
    Missing {
        /// The token found instead.
        at: Span,
        /// The number of the tree's errors found up to this one.
        errors: usize,
    },
}

/// `[0, 2-4]`
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// The port numbers, in order.
    pub numbers: Vec<u32>,
    /// Whether more ports follow as needed: `[0,]` or `[]`.
    pub open: bool,
}

/// `{ ... || ... || ... }`
#[derive(Clone, Debug)]
pub struct Compound {
    /// The alternatives.
    pub bodies: Vec<Body>,
    /// The location of `...`, which makes the existing class of that name the last alternative.
    pub extends: Option<Span>,
}

/// One alternative of a compound.
#[derive(Clone, Debug)]
pub struct Body {
    /// Its start: the opening brace or `||`.
    pub open: Span,
    /// The parameters.
    pub formals: Vec<Formal>,
    /// The statements.
    pub statements: Vec<Statement>,
    /// The number of the tree's errors found up to its end.
    pub errors: usize,
}

/// A parameter of a compound: `$name` or `KEYWORD $name`.
#[derive(Clone, Debug)]
pub struct Formal {
    /// The keyword; absent for a positional parameter.
    pub keyword: Option<Span>,
    /// The variable, with its `$`.
    pub variable: Span,
}

impl<'t> Tree<'t> {
    /// Parses a text. Any text gives a tree; errors are in [`Tree::errors`].
    pub fn parse(text: &'t str) -> Self {
        Self::parse_within(text, &Limits::default())
    }

    /// Parses a text within the given limits; the text beyond them is one token, [`TokenKind::Rest`].
    pub fn parse_within(text: &'t str, limits: &Limits) -> Self {
        complete(Self::parse_in_steps(text, limits))
    }

    /// Parses a text within the given limits, in steps.
    pub(crate) async fn parse_in_steps(text: &'t str, limits: &Limits) -> Self {
        let parsed = parser::parse(text, limits).await;
        Self { text, tokens: parsed.tokens, statements: parsed.statements, errors: parsed.errors }
    }

    /// The source text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The tokens with their texts; concatenated they are the source text.
    pub fn tokens(&self) -> impl Iterator<Item = (TokenKind, &'t str)> + '_ {
        let ends = self.tokens.iter().skip(1).map(|token| token.start as usize).chain([self.text.len()]);
        self.tokens.iter().zip(ends).map(|(token, end)| (token.kind, &self.text[token.start as usize..end]))
    }

    /// Frees the statements in steps.
    pub(crate) async fn free(self) {
        free_statements(self.statements).await;
    }

    /// The statements outside all braces and parentheses.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The syntax errors, in the order in which they were found.
    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The effective line directives, in order.
    pub(crate) fn directives(&self) -> Vec<lexer::Directive> {
        let mut found = Vec::new();
        let bytes = self.text.as_bytes();
        for (index, token) in self.tokens.iter().enumerate() {
            let start = token.start as usize;
            match token.kind {
                TokenKind::Directive => found.extend(lexer::directive(bytes, start).1),
                TokenKind::Config => {
                    let end = self.tokens.get(index + 1).map_or(self.text.len(), |next| next.start as usize);
                    lexer::config_directives(self.text, start, end, |at| {
                        found.extend(lexer::directive(bytes, at).1);
                    });
                }
                _ => (),
            }
        }
        found
    }
}

/// Frees statements in steps, with those inside them.
async fn free_statements(statements: Vec<Statement>) {
    let mut lists = Vec::from([statements]);
    let mut done = 0;
    while let Some(statements) = lists.pop() {
        for statement in statements {
            let (steps, class) = match statement.kind {
                StatementKind::Chain(steps) => (steps, None),
                StatementKind::ElementClass { class, .. } => (Vec::new(), class),
                StatementKind::Require(_) | StatementKind::Provide(_) | StatementKind::Define(_) => continue,
            };
            lists.extend(class.into_iter().flat_map(ClassUse::into_statements));
            for item in steps.into_iter().flat_map(|step| step.items) {
                pause_every(ITEMS_FREED_A_STEP, done).await;
                done += 1;
                match item.subject {
                    Subject::Compound(compound) => lists.extend(compound.into_statements()),
                    Subject::Group(statements) => lists.push(statements),
                    Subject::Name | Subject::Implicit => {}
                }
                lists.extend(item.class.into_iter().flat_map(ClassUse::into_statements));
            }
        }
    }
}

impl ClassUse {
    fn into_statements(self) -> impl Iterator<Item = Vec<Statement>> {
        let compound = if let Self::Compound(compound) = self { Some(compound) } else { None };
        compound.into_iter().flat_map(Compound::into_statements)
    }
}

impl Compound {
    fn into_statements(self) -> impl Iterator<Item = Vec<Statement>> {
        self.bodies.into_iter().map(|body| body.statements)
    }
}

impl fmt::Display for Tree<'_> {
    /// Writes the source text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens().try_for_each(|(_, text)| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use core::task::{Context, Waker};

    #[test]
    fn statements_inside_others_are_freed_in_steps() {
        let (chain, list) = ("-> Counter ".repeat(400), "Idle, ".repeat(400));
        for text in [
            format!("Idle {chain} -> Discard;"),
            format!("{list} Idle;"),
            format!("elementclass X {{ input {chain} -> output }}"),
            format!("Idle -> {{ input {chain} -> output }} -> Discard;"),
            format!("Idle -> ( {chain} -> ) -> Discard;"),
            format!("x :: {{ || input -> ( -> {{ {list} Idle }} -> ) -> output }};"),
        ] {
            let mut freeing = core::pin::pin!(Tree::parse(&text).free());
            let mut step = || freeing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let steps = 1 + (0..).take_while(|_| step().is_pending()).count();
            assert!((26..=27).contains(&steps), "{steps} steps: {text}");
        }
    }
}
