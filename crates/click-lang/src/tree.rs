//! The lossless tree: a configuration as written.
//!
//! The tokens cover the text without gap or overlap, whatever the text is; the statements say what they mean.

use crate::Limits;
use crate::lexer;
pub use crate::lexer::{Token, TokenKind};
use crate::parser;
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

/// A configuration as written: its tokens and its statements.
#[derive(Clone, Debug)]
pub struct Tree<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    statements: Vec<Statement>,
    errors: Vec<SyntaxError>,
}

/// Something that is not the language.
#[derive(Clone, Debug)]
pub struct SyntaxError {
    /// Where.
    pub span: Span,
    /// What, in the words of a diagnostic.
    pub message: String,
}

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement {
    /// From its first to its last token.
    pub span: Span,
    /// What it says.
    pub kind: StatementKind,
    /// The token by which a chain turned out to have ended: its semicolon, or what can't go on with it.
    pub end: Span,
    /// Which of the tree's errors were found while it was read.
    pub errors: Range<usize>,
}

/// What a statement says.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// Declarations and connections.
    Chain(Vec<Step>),
    /// `elementclass NAME ...`
    ElementClass {
        /// The new class; absent when the text has none.
        name: Option<Span>,
        /// What it is; absent when the text has neither class nor compound.
        class: Option<ClassUse>,
    },
    /// `require(...)`, with the text in parentheses.
    Require(Span),
    /// `provide(...)`, with the text in parentheses.
    Provide(Span),
    /// `define(...)`, with the text in parentheses.
    Define(Span),
}

/// One place of a chain: what stands between two connectors.
#[derive(Clone, Debug)]
pub struct Step {
    /// The connector before it; absent for the first.
    pub connector: Option<Connector>,
    /// The elements, separated by commas.
    pub items: Vec<Item>,
    /// How many of the tree's errors were found up to its end.
    pub errors: usize,
}

/// `->` or `=>`.
#[derive(Clone, Copy, Debug)]
pub struct Connector {
    /// Whether it is `=>`.
    pub double: bool,
    /// Where.
    pub span: Span,
}

/// One element of a chain: used, declared, or both.
#[derive(Clone, Debug)]
pub struct Item {
    /// What is meant.
    pub subject: Subject,
    /// Where its name stands, or the parenthesis that opens a group, or the brace that closes a compound.
    pub span: Span,
    /// The ports in front.
    pub inputs: Option<Ports>,
    /// What follows `::`.
    pub class: Option<ClassUse>,
    /// The text in parentheses.
    pub config: Option<Span>,
    /// The ports behind.
    pub outputs: Option<Ports>,
}

/// What an item of a chain is.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A name: of an element, or of a class for an anonymous one. Its text is the item's span.
    Name,
    /// Nothing but a connector: the surrounding compound's or group's `input` or `output`.
    Implicit,
    /// `{ ... }`
    Compound(Compound),
    /// `( ... )`
    Group(Vec<Statement>),
}

/// Where a class is named.
#[derive(Clone, Debug)]
pub enum ClassUse {
    /// By name.
    Named(Span),
    /// By its definition.
    Compound(Compound),
    /// Not at all, although `::` stands there.
    Missing {
        /// What stands there instead.
        at: Span,
        /// How many of the tree's errors were found up to this one.
        errors: usize,
    },
}

/// `[0, 2-4]`
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// The port numbers, in order.
    pub numbers: Vec<u32>,
    /// Whether more follow as needed: `[0,]` or `[]`.
    pub open: bool,
}

/// `{ ... || ... || ... }`
#[derive(Clone, Debug)]
pub struct Compound {
    /// The alternatives.
    pub bodies: Vec<Body>,
    /// Where `...` stands, by which the older class of that name is tried last.
    pub extends: Option<Span>,
}

/// One alternative of a compound.
#[derive(Clone, Debug)]
pub struct Body {
    /// Where it begins: its opening brace or `||`.
    pub open: Span,
    /// The parameters.
    pub formals: Vec<Formal>,
    /// The statements.
    pub statements: Vec<Statement>,
    /// How many of the tree's errors were found up to its end.
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
    /// Reads a text. Whatever it is, there is a tree; what is wrong is in [`Tree::errors`].
    pub fn parse(text: &'t str) -> Self {
        Self::parse_within(text, &Limits::default())
    }

    /// Reads a text within bounds of the caller's; what is beyond them is one token, [`TokenKind::Rest`].
    pub fn parse_within(text: &'t str, limits: &Limits) -> Self {
        let parsed = parser::parse(text, limits);
        Self { text, tokens: parsed.tokens, statements: parsed.statements, errors: parsed.errors }
    }

    /// The text that was read.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The tokens with their texts; put together they are the text.
    pub fn tokens(&self) -> impl Iterator<Item = (TokenKind, &'t str)> + '_ {
        let ends = self.tokens.iter().skip(1).map(|token| token.start as usize).chain([self.text.len()]);
        self.tokens.iter().zip(ends).map(|(token, end)| (token.kind, &self.text[token.start as usize..end]))
    }

    /// The statements outside all braces and parentheses.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// What is not the language, in the order in which it was found.
    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The line directives that count, in order.
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

impl fmt::Display for Tree<'_> {
    /// Writes the text as it was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens().try_for_each(|(_, text)| f.write_str(text))
    }
}
