//! Groups and compounds, which contain statements.

use super::cursor::{Context, Parser};
use crate::lexer::TokenKind;
use crate::steps::{Computation, pause_every};
use crate::tree::{Body, Compound, Formal, Span, Statement};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Tokens that are skipped in a step.
const TOKENS_A_STEP: usize = 256;

impl Parser<'_> {
    pub(super) fn group(&mut self) -> Computation<'_, Vec<Statement>> {
        Box::pin(self.group_in_steps())
    }

    async fn group_in_steps(&mut self) -> Vec<Statement> {
        let open = self.next().span;
        if !self.deeper(open, "maximum element group nesting depth exceeded").await {
            return Vec::new();
        }
        let statements = self.statements(Context::Group).await;
        self.depth -= 1;
        if self.is(TokenKind::End) {
            self.unclosed(open, "expected ‘)’");
        }
        self.take_character(")");
        statements
    }

    pub(super) fn compound(&mut self) -> Computation<'_, Compound> {
        Box::pin(self.compound_in_steps())
    }

    async fn compound_in_steps(&mut self) -> Compound {
        let mut open = self.next().span;
        let mut compound = Compound { bodies: Vec::new(), extends: None };
        if !self.deeper(open, "maximum compound element nesting depth exceeded").await {
            let errors = self.errors.len();
            compound.bodies.push(Body { open, formals: Vec::new(), statements: Vec::new(), errors });
            return compound;
        }
        loop {
            if let Some(dots) = self.take(TokenKind::Dots) {
                compound.extends = Some(dots);
                if compound.bodies.is_empty() || !self.is_character("}") {
                    self.error(dots, "‘...’ should occur last, after one or more compounds");
                } else {
                    self.next();
                    break;
                }
            }
            let formals = self.formals();
            let statements = self.statements(Context::Compound).await;
            let bar = self.take(TokenKind::DoubleBar);
            if bar.is_none() && !self.take_character("}") {
                self.unclosed(open, "expected ‘}’");
            }
            compound.bodies.push(Body { open, formals, statements, errors: self.errors.len() });
            match bar {
                Some(bar) => open = bar,
                None => break,
            }
        }
        self.depth -= 1;
        compound
    }

    /// Enters a nested level. If that is too deep, skips the whole of what `open` begins.
    async fn deeper(&mut self, open: Span, message: &str) -> bool {
        if self.depth + 1 < self.limits.nesting {
            self.depth += 1;
            return true;
        }
        self.error(open, message);
        let mut unclosed = 1_usize;
        while unclosed > 0 && !self.is(TokenKind::End) {
            let lexeme = self.next();
            pause_every(TOKENS_A_STEP, self.tokens.len()).await;
            match self.slice(lexeme.span) {
                "{" | "(" => unclosed += 1,
                "}" | ")" => unclosed -= 1,
                _ => (),
            }
        }
        false
    }

    fn formals(&mut self) -> Vec<Formal> {
        let mut formals = Vec::new();
        loop {
            let lexeme = self.peek();
            let keyword = (lexeme.kind == TokenKind::Identifier).then_some(lexeme.span);
            let variable = if keyword.is_some() { self.peek_at(1) } else { lexeme };
            if variable.kind != TokenKind::Variable {
                let ended = keyword.is_none() && self.take_character("|");
                if !ended && !formals.is_empty() {
                    self.error(lexeme.span, "expected variable");
                }
                return formals;
            }
            if keyword.is_some() {
                self.next();
            }
            self.next();
            formals.push(Formal { keyword, variable: variable.span });
            if self.take_character("|") {
                return formals;
            }
            if !self.take_character(",") {
                let span = self.peek().span;
                self.error(span, "expected ‘,’ or ‘|’");
                return formals;
            }
        }
    }
}
