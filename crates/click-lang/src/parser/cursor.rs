//! The parser's token stream: lookahead, consumption, errors.

use crate::Limits;
use crate::lexer::{self, Lexer, Token, TokenKind, directive};
use crate::tree::{Span, SyntaxError, UNCLOSED_CONFIG};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The surroundings of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Nothing.
    File,
    /// `{ ... }`
    Compound,
    /// `( ... )`
    Group,
}

/// A token that is not trivia.
#[derive(Clone, Copy)]
pub(super) struct Lexeme {
    /// Its kind; [`TokenKind::End`] also where the text is cut off.
    pub(super) kind: TokenKind,
    /// Its location.
    pub(super) span: Span,
}

/// A parser for one text.
pub(super) struct Parser<'t> {
    /// The text.
    pub(super) text: &'t str,
    /// The source of tokens.
    pub(super) lexer: Lexer<'t>,
    /// All tokens read so far.
    pub(super) tokens: Vec<Token>,
    /// Tokens read ahead but not consumed.
    pub(super) ahead: VecDeque<Lexeme>,
    /// The last consumed token.
    pub(super) last: Span,
    /// The token that ended the last chain.
    pub(super) end: Span,
    /// The errors found.
    pub(super) errors: Vec<SyntaxError>,
    /// Limits on the work.
    pub(super) limits: &'t Limits,
    /// The number of port numbers that may still be listed. More than the connection limit could not be connected.
    pub(super) ports_left: usize,
    /// The number of open braces and parentheses.
    pub(super) depth: usize,
}

impl<'t> Parser<'t> {
    /// Reads one more non-trivia token into `ahead`.
    fn read(&mut self) {
        loop {
            let start = self.lexer.position();
            let too_long = self.text.len() > self.limits.source_bytes.min(u32::MAX as usize)
                || self.tokens.len() >= self.limits.tokens;
            let token = if too_long { self.lexer.rest() } else { self.lexer.next() };
            let span = Span { start: token.start, end: self.lexer.position() as u32 };
            if self.lexer.position() > start {
                self.tokens.push(token);
                if token.kind == TokenKind::Rest {
                    self.error(span, "configuration too long: the rest is not read");
                }
            }
            if token.kind == TokenKind::Directive {
                self.check_directive(span.start as usize);
            }
            if !token.kind.is_trivia() {
                let kind = if token.kind == TokenKind::Rest { TokenKind::End } else { token.kind };
                self.ahead.push_back(Lexeme { kind, span });
                return;
            }
        }
    }

    fn check_directive(&mut self, at: usize) {
        if let (end, None) = directive(self.text.as_bytes(), at) {
            self.error(Span { start: at as u32, end: end as u32 }, "unknown preprocessor directive");
        }
    }

    /// The token `index` positions ahead.
    pub(super) fn peek_at(&mut self, index: usize) -> Lexeme {
        while self.ahead.len() <= index {
            self.read();
        }
        self.ahead[index]
    }

    /// The next token.
    pub(super) fn peek(&mut self) -> Lexeme {
        self.peek_at(0)
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Lexeme {
        let lexeme = self.peek();
        self.ahead.pop_front();
        self.last = lexeme.span;
        lexeme
    }

    /// Whether the next token has this kind.
    pub(super) fn is(&mut self, kind: TokenKind) -> bool {
        self.peek().kind == kind
    }

    /// Whether the next token is this character.
    pub(super) fn is_character(&mut self, character: &str) -> bool {
        let lexeme = self.peek();
        lexeme.kind == TokenKind::Character && self.slice(lexeme.span) == character
    }

    /// Consumes the next token if it has this kind.
    pub(super) fn take(&mut self, kind: TokenKind) -> Option<Span> {
        self.is(kind).then(|| self.next().span)
    }

    /// Consumes the next token if it is this character; returns whether it was.
    pub(super) fn take_character(&mut self, character: &str) -> bool {
        let found = self.is_character(character);
        if found {
            self.next();
        }
        found
    }

    /// The text of a span.
    pub(super) fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// Records an error.
    pub(super) fn error(&mut self, span: Span, message: impl Into<String>) {
        // One more than is shown, so that the collection reports that there are more.
        if self.errors.len() <= self.limits.diagnostics {
            self.errors.push(SyntaxError { span, printed: None, message: message.into() });
        }
    }

    /// Records that a brace or parenthesis is not closed. Click reports the end of the text; the opening one says more.
    pub(super) fn unclosed(&mut self, open: Span, message: &str) {
        let end = self.peek().span;
        if self.errors.len() <= self.limits.diagnostics {
            self.errors.push(SyntaxError { span: open, printed: Some(end), message: message.into() });
        }
    }

    /// Records an unexpected token.
    pub(super) fn syntax_error(&mut self, lexeme: Lexeme) {
        let text = self.slice(lexeme.span);
        let text = if lexeme.kind == TokenKind::End { "" } else { text.strip_prefix('$').unwrap_or(text) };
        let shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
        let shown = if text.chars().all(|c| matches!(c, ' '..='~')) { text.into() } else { shown };
        self.error(lexeme.span, format!("syntax error near ‘{shown}’"));
    }

    /// Parses a configuration in parentheses; the next token is its `(`.
    pub(super) async fn config(&mut self) -> Span {
        let open = self.next().span;
        debug_assert!(
            self.ahead.is_empty(),
            "a configuration is read before anything behind its parenthesis"
        );
        let token = self.lexer.config().await;
        let span = Span { start: token.start, end: self.lexer.position() as u32 };
        if span.start < span.end {
            self.tokens.push(token);
        }
        lexer::config_directives(self.text, span.start as usize, span.end as usize, |at| {
            if let (end, None) = directive(self.text.as_bytes(), at)
                && self.errors.len() <= self.limits.diagnostics
            {
                let span = Span { start: at as u32, end: end as u32 };
                self.errors.push(SyntaxError {
                    span,
                    printed: None,
                    message: "unknown preprocessor directive".into(),
                });
            }
        });
        if !self.take_character(")") {
            self.unclosed(open, UNCLOSED_CONFIG);
        }
        span
    }
}
