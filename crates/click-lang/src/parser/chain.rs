//! Chains: elements, their ports, and the connectors between them.

use super::cursor::{Context, Parser};
use crate::lexer::TokenKind;
use crate::steps::pause;
use crate::tree::{ClassUse, Connector, Item, Ports, Span, StatementKind, Step, Subject};
use alloc::format;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) async fn chain(&mut self, context: Context) -> Option<StatementKind> {
        let mut steps = Vec::new();
        let mut connector = None;
        loop {
            let items = self.step(context, steps.is_empty()).await;
            if items.is_empty() {
                break;
            }
            let implicit = items.iter().any(|item| matches!(item.subject, Subject::Implicit));
            let span = items[0].span;
            let first = steps.is_empty();
            steps.push(Step { connector, items, errors: self.errors.len() });
            connector = self.connector();
            if connector.is_none() {
                break;
            }
            if implicit && !first {
                self.error(span, "implicit ports used in the middle of a chain");
            }
        }
        (!steps.is_empty()).then_some(StatementKind::Chain(steps))
    }

    /// The connector after a step; `None` at the end of the chain.
    fn connector(&mut self) -> Option<Connector> {
        loop {
            let lexeme = self.peek();
            self.end = lexeme.span;
            match lexeme.kind {
                TokenKind::Arrow | TokenKind::DoubleArrow => {
                    self.next();
                    return Some(Connector {
                        double: lexeme.kind == TokenKind::DoubleArrow,
                        span: lexeme.span,
                    });
                }
                TokenKind::DoubleColon => {
                    self.syntax_error(lexeme);
                    self.next();
                }
                TokenKind::Character => match self.slice(lexeme.span) {
                    "," => {
                        self.syntax_error(lexeme);
                        self.next();
                    }
                    ";" => {
                        self.next();
                        return None;
                    }
                    "{" | "}" | "[" | ")" => return None,
                    _ => {
                        self.syntax_error(lexeme);
                        self.next();
                        return None;
                    }
                },
                // The next statement starts with this token and reports it again.
                TokenKind::Variable | TokenKind::Dots => {
                    self.syntax_error(lexeme);
                    return None;
                }
                _ => return None,
            }
        }
    }

    /// The elements between two connectors; empty if there is an error or nothing.
    async fn step(&mut self, context: Context, first: bool) -> Vec<Item> {
        // There is nearly always one.
        let mut items = Vec::with_capacity(1);
        while let Some(item) = self.item(context, first, items.is_empty()).await {
            items.push(item);
            pause().await;
            if !self.take_character(",") {
                break;
            }
        }
        items
    }

    async fn item(&mut self, context: Context, first: bool, alone: bool) -> Option<Item> {
        let inputs = self.ports();
        let lexeme = self.peek();
        let mut item = Item {
            subject: Subject::Name,
            span: lexeme.span,
            inputs,
            class: None,
            config: None,
            outputs: None,
        };
        if lexeme.kind == TokenKind::Identifier {
            self.next();
        } else if self.is_character("{") {
            item.subject = Subject::Compound(self.compound().await);
            item.span = self.last;
        } else if self.is_character("(") {
            item.subject = Subject::Group(self.group().await);
        } else if self.is_implicit(context, first, item.inputs.is_some(), alone) {
            item.subject = Subject::Implicit;
            if first {
                item.outputs = item.inputs.take();
            }
            return Some(item);
        } else {
            if item.inputs.is_some() {
                self.error(lexeme.span, "stranded port ignored");
            }
            self.end = lexeme.span;
            // The unexpected token is skipped, even if it ends the statement or its surroundings.
            if !(alone && first && context != Context::File) {
                if alone {
                    self.syntax_error(lexeme);
                }
                self.next();
            }
            return None;
        }
        if self.take(TokenKind::DoubleColon).is_some() {
            item.class = Some(self.class_use().await);
        }
        if self.is_character("(") {
            item.config = Some(self.config().await);
        }
        item.outputs = self.ports();
        Some(item)
    }

    /// Whether an item without a name means the `input` or `output` of its surroundings.
    fn is_implicit(&mut self, context: Context, first: bool, ports: bool, alone: bool) -> bool {
        if context == Context::File {
            return false;
        }
        if self.is(TokenKind::Arrow) || self.is(TokenKind::DoubleArrow) {
            first && (ports || alone)
        } else if self.is_character(",") {
            ports
        } else {
            !self.is(TokenKind::DoubleColon) && !first && (ports || alone)
        }
    }

    async fn class_use(&mut self) -> ClassUse {
        if let Some(name) = self.take(TokenKind::Identifier) {
            return ClassUse::Named(name);
        }
        if self.is_character("{") {
            return ClassUse::Compound(self.compound().await);
        }
        let span = self.peek().span;
        self.error(span, "missing element type in declaration");
        ClassUse::Missing { at: span, errors: self.errors.len() }
    }

    fn ports(&mut self) -> Option<Ports> {
        if !self.take_character("[") {
            return None;
        }
        let mut ports = Ports::default();
        let mut range = false;
        loop {
            let lexeme = self.peek();
            if lexeme.kind == TokenKind::Identifier {
                self.next();
                let number = self.port_number(lexeme.span);
                let before = ports.numbers.last().filter(|_| range);
                let from = before.map_or(number, |before| before + 1);
                let count = (u64::from(number) + 1).saturating_sub(u64::from(from)) as usize;
                if count > self.ports_left {
                    self.error(lexeme.span, "too many ports");
                } else {
                    self.ports_left -= count;
                    ports.numbers.extend(from..=number);
                }
            } else if self.take_character("]") {
                if ports.numbers.is_empty() {
                    ports.numbers.push(0);
                }
                ports.open = true;
                break;
            } else {
                self.error(lexeme.span, "syntax error: expected port number");
                break;
            }
            if self.take_character("]") {
                break;
            } else if !range && self.take_character("-") {
                range = true;
            } else if self.take_character(",") {
                range = false;
            } else {
                let span = self.peek().span;
                self.error(span, "syntax error: expected ‘,’");
            }
        }
        (!ports.numbers.is_empty()).then_some(ports)
    }

    fn port_number(&mut self, span: Span) -> u32 {
        match parse_integer(self.slice(span)) {
            Some(number) if number as usize <= self.limits.port => number,
            Some(_) => {
                self.error(span, format!("port number too large, the most is {}", self.limits.port));
                0
            }
            None => {
                self.error(span, "syntax error: port number should be integer");
                0
            }
        }
    }
}

/// Parses a number as in C: decimal, `0x` hexadecimal or `0` octal.
fn parse_integer(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    let radix = if text.len() > 1 && text.starts_with('0') { 8 } else { 10 };
    u32::from_str_radix(text, radix).ok()
}
