//! Tokens to statements. Never gives up: after an error it goes on where the next statement may begin.

use crate::Limits;
use crate::lexer::{Lexer, Token, TokenKind, directive};
use crate::tree::{
    Body, ClassUse, Compound, Connector, Formal, Item, Ports, Span, Statement, StatementKind, Step, Subject,
    SyntaxError,
};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What a text was found to be.
pub(crate) struct Parsed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) errors: Vec<SyntaxError>,
}

/// Parses `text` within `limits`.
pub(crate) fn parse(text: &str, limits: &Limits) -> Parsed {
    let mut parser = Parser {
        text,
        lexer: Lexer::new(text),
        tokens: Vec::new(),
        ahead: VecDeque::new(),
        last: Span::default(),
        errors: Vec::new(),
        limits,
        ports_left: limits.connections,
        depth: 0,
    };
    let statements = parser.statements(Context::File);
    let mut errors = parser.errors;
    errors.sort_by_key(|error| error.span.start);
    Parsed { tokens: parser.tokens, statements, errors }
}

/// What surrounds a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    File,
    Compound,
    Group,
}

#[derive(Clone, Copy)]
struct Lexeme {
    kind: TokenKind,
    span: Span,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    tokens: Vec<Token>,
    ahead: VecDeque<Lexeme>,
    last: Span,
    errors: Vec<SyntaxError>,
    limits: &'t Limits,
    /// How many port numbers may still be listed: none can be connected beyond the limit of connections.
    ports_left: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    // Tokens

    /// Reads one more token that is not trivia into `ahead`.
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

    fn peek_at(&mut self, index: usize) -> Lexeme {
        while self.ahead.len() <= index {
            self.read();
        }
        self.ahead[index]
    }

    fn peek(&mut self) -> Lexeme {
        self.peek_at(0)
    }

    fn next(&mut self) -> Lexeme {
        let lexeme = self.peek();
        self.ahead.pop_front();
        self.last = lexeme.span;
        lexeme
    }

    fn is(&mut self, kind: TokenKind) -> bool {
        self.peek().kind == kind
    }

    fn is_character(&mut self, character: &str) -> bool {
        let lexeme = self.peek();
        lexeme.kind == TokenKind::Character && self.slice(lexeme.span) == character
    }

    fn take(&mut self, kind: TokenKind) -> Option<Span> {
        self.is(kind).then(|| self.next().span)
    }

    fn take_character(&mut self, character: &str) -> bool {
        let found = self.is_character(character);
        if found {
            self.next();
        }
        found
    }

    fn slice(&self, span: Span) -> &'t str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        // One more than is shown, so that the collection knows that there were more.
        if self.errors.len() <= self.limits.diagnostics {
            self.errors.push(SyntaxError { span, message: message.into() });
        }
    }

    fn syntax_error(&mut self, lexeme: Lexeme) {
        let text = self.slice(lexeme.span);
        let text = if lexeme.kind == TokenKind::End { "" } else { text.strip_prefix('$').unwrap_or(text) };
        let shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
        let shown = if text.chars().all(|c| matches!(c, ' '..='~')) { text.into() } else { shown };
        self.error(lexeme.span, format!("syntax error near ‘{shown}’"));
    }

    // Statements

    /// Parses statements up to what ends the context, which is left to the caller.
    fn statements(&mut self, context: Context) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            let lexeme = self.peek();
            let kind = match lexeme.kind {
                TokenKind::End => return statements,
                TokenKind::Identifier | TokenKind::Arrow | TokenKind::DoubleArrow => self.chain(context),
                TokenKind::ElementClass => Some(self.element_class()),
                TokenKind::Require => self.information().map(StatementKind::Require),
                TokenKind::Provide => self.information().map(StatementKind::Provide),
                TokenKind::Define => self.information().map(StatementKind::Define),
                TokenKind::DoubleBar if context == Context::Compound => return statements,
                TokenKind::DoubleBar => {
                    self.syntax_error(lexeme);
                    if context == Context::Group {
                        return statements;
                    }
                    self.next();
                    None
                }
                TokenKind::Character => match (self.slice(lexeme.span), context) {
                    ("[" | "{" | "(", _) => self.chain(context),
                    ("}", Context::Compound) | (")", Context::Group) => return statements,
                    ("}", Context::Group) => {
                        self.syntax_error(lexeme);
                        return statements;
                    }
                    (";", _) => {
                        self.next();
                        None
                    }
                    _ => self.stray(lexeme),
                },
                _ => self.stray(lexeme),
            };
            if let Some(kind) = kind {
                let span = Span { start: lexeme.span.start, end: self.last.end };
                statements.push(Statement { span, kind });
            }
        }
    }

    fn stray(&mut self, lexeme: Lexeme) -> Option<StatementKind> {
        self.syntax_error(lexeme);
        self.next();
        None
    }

    /// `require`, `provide` or `define`, whose text in parentheses is returned.
    fn information(&mut self) -> Option<Span> {
        self.next();
        if self.is_character("(") {
            return Some(self.config());
        }
        let place = self.peek().span;
        self.error(place, "expected '('");
        None
    }

    /// A parenthesized configuration; the next token is its `(`.
    fn config(&mut self) -> Span {
        self.next();
        debug_assert!(
            self.ahead.is_empty(),
            "a configuration is read before anything behind its parenthesis"
        );
        let token = self.lexer.config();
        let span = Span { start: token.start, end: self.lexer.position() as u32 };
        if span.start < span.end {
            self.tokens.push(token);
        }
        crate::lexer::config_directives(self.text, span.start as usize, span.end as usize, |at| {
            if let (end, None) = directive(self.text.as_bytes(), at)
                && self.errors.len() <= self.limits.diagnostics
            {
                let span = Span { start: at as u32, end: end as u32 };
                self.errors.push(SyntaxError { span, message: "unknown preprocessor directive".into() });
            }
        });
        if !self.take_character(")") {
            let place = self.peek().span;
            self.error(place, "expected ')'");
        }
        span
    }

    fn element_class(&mut self) -> StatementKind {
        self.next();
        let name = self.take(TokenKind::Identifier);
        if name.is_none() {
            let place = self.peek().span;
            self.error(place, "expected element type name");
        }
        let lexeme = self.peek();
        let class = if lexeme.kind == TokenKind::Identifier {
            Some(ClassUse::Named(self.next().span))
        } else if self.is_character("{") {
            Some(ClassUse::Compound(self.compound()))
        } else {
            self.syntax_error(lexeme);
            self.next();
            None
        };
        StatementKind::ElementClass { name, class }
    }

    // Chains

    fn chain(&mut self, context: Context) -> Option<StatementKind> {
        let mut steps = Vec::new();
        let mut connector = None;
        loop {
            let items = self.step(context, steps.is_empty());
            if items.is_empty() {
                break;
            }
            let implicit = items.iter().any(|item| matches!(item.subject, Subject::Implicit));
            let place = items[0].span;
            let first = steps.is_empty();
            steps.push(Step { connector, items });
            connector = self.connector();
            if connector.is_none() {
                break;
            }
            if implicit && !first {
                self.error(place, "implicit ports used in the middle of a chain");
            }
        }
        (!steps.is_empty()).then_some(StatementKind::Chain(steps))
    }

    /// What follows a step: a connector, or the end of the chain.
    fn connector(&mut self) -> Option<Connector> {
        loop {
            let lexeme = self.peek();
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
                TokenKind::Variable | TokenKind::Dots => {
                    self.syntax_error(lexeme);
                    self.next();
                    return None;
                }
                _ => return None,
            }
        }
    }

    /// The elements between two connectors; none when there is an error (or nothing) instead.
    fn step(&mut self, context: Context, first: bool) -> Vec<Item> {
        // Nearly always there is one.
        let mut items = Vec::with_capacity(1);
        while let Some(item) = self.item(context, first, items.is_empty()) {
            items.push(item);
            if !self.take_character(",") {
                break;
            }
        }
        items
    }

    fn item(&mut self, context: Context, first: bool, alone: bool) -> Option<Item> {
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
            item.subject = Subject::Compound(self.compound());
        } else if self.is_character("(") {
            item.subject = Subject::Group(self.group());
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
            if alone && !(context != Context::File && first) {
                self.syntax_error(lexeme);
                let ends =
                    lexeme.kind == TokenKind::DoubleBar || matches!(self.slice(lexeme.span), "}" | ")" | ";");
                if !ends {
                    self.next();
                }
            }
            return None;
        }
        if self.take(TokenKind::DoubleColon).is_some() {
            item.class = Some(self.class_use());
        }
        if self.is_character("(") {
            item.config = Some(self.config());
        }
        item.outputs = self.ports();
        Some(item)
    }

    /// Whether an item without a name means the `input` or `output` of what surrounds it.
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

    fn class_use(&mut self) -> ClassUse {
        if let Some(name) = self.take(TokenKind::Identifier) {
            return ClassUse::Named(name);
        }
        if self.is_character("{") {
            return ClassUse::Compound(self.compound());
        }
        let place = self.peek().span;
        self.error(place, "missing element type in declaration");
        ClassUse::Missing(place)
    }

    fn ports(&mut self) -> Option<Ports> {
        if !self.take_character("[") {
            return None;
        }
        let mut ports = Ports::default();
        let mut range_from = None;
        loop {
            let lexeme = self.peek();
            if lexeme.kind == TokenKind::Identifier {
                self.next();
                let number = self.port_number(lexeme.span);
                let from = range_from.take().map_or(number, |from: u32| from + 1);
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
            } else if self.take_character("-") {
                range_from = ports.numbers.last().copied();
            } else if !self.take_character(",") {
                let place = self.peek().span;
                self.error(place, "syntax error: expected ‘,’");
            }
        }
        if ports.numbers.is_empty() {
            ports.numbers.push(0);
        }
        Some(ports)
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

    // Nesting

    fn group(&mut self) -> Vec<Statement> {
        let open = self.next().span;
        if !self.deeper(open, "maximum element group nesting depth exceeded") {
            return Vec::new();
        }
        let statements = self.statements(Context::Group);
        self.depth -= 1;
        if self.is(TokenKind::End) {
            let place = self.peek().span;
            self.error(place, "expected ‘)’");
        }
        self.take_character(")");
        statements
    }

    fn compound(&mut self) -> Compound {
        let mut open = self.next().span;
        let mut compound = Compound { bodies: Vec::new(), extends: None };
        if !self.deeper(open, "maximum compound element nesting depth exceeded") {
            compound.bodies.push(Body { open, formals: Vec::new(), statements: Vec::new() });
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
            let statements = self.statements(Context::Compound);
            compound.bodies.push(Body { open, formals, statements });
            if let Some(bar) = self.take(TokenKind::DoubleBar) {
                open = bar;
                continue;
            }
            if !self.take_character("}") {
                let place = self.peek().span;
                self.error(place, "expected ‘}’");
            }
            break;
        }
        self.depth -= 1;
        compound
    }

    /// Goes one level deeper, or passes over the whole of what `open` begins when that is too deep.
    fn deeper(&mut self, open: Span, message: &str) -> bool {
        if self.depth + 1 < self.limits.nesting {
            self.depth += 1;
            return true;
        }
        self.error(open, message);
        let mut unclosed = 1_usize;
        while unclosed > 0 && !self.is(TokenKind::End) {
            let lexeme = self.next();
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
                let place = self.peek().span;
                self.error(place, "expected ‘,’ or ‘|’");
                return formals;
            }
        }
    }
}

/// Reads a number as in C: decimal, `0x` hexadecimal or `0` octal.
fn parse_integer(text: &str) -> Option<u32> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    let radix = if text.len() > 1 && text.starts_with('0') { 8 } else { 10 };
    u32::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use alloc::string::ToString;

    fn errors(text: &str) -> Vec<String> {
        let tree = Tree::parse(text);
        assert_eq!(tree.to_string(), text, "lossless");
        tree.errors().iter().map(|error| error.message.clone()).collect()
    }

    #[test]
    fn errors_are_found_and_all_of_them() {
        let check = |text: &str, expected: &[&str]| assert_eq!(errors(text), expected, "{text:?}");
        check("a :: Idle; a [1,2-4] -> [0] b(x) -> c, { input -> output } => ( -> x -> )", &[]);
        check("-> Null;", &["syntax error near ‘->’"]);
        check("\"x\"", &["syntax error near ‘\"’", "syntax error near ‘\"’"]);
        check("a = b", &["syntax error near ‘=’"]);
        check("$x :: a", &["syntax error near ‘x’", "syntax error near ‘::’"]);
        check("elementclass X {", &["expected ‘}’"]);
        check("Idle(", &["expected ')'"]);
        check("{ ... }", &["‘...’ should occur last, after one or more compounds"]);
        check("require x", &["expected '('"]);
        check("a :: ;", &["missing element type in declaration"]);
        check("a [x]", &["syntax error: port number should be integer"]);
        check("a [1 2] -> b", &["syntax error: expected ‘,’"]);
        check("a [99999999]", &["port number too large, the most is 65535"]);
        check("X :: { $a $b | }", &["expected ‘,’ or ‘|’", "syntax error near ‘b’", "syntax error near ‘|’"]);
        check("# nothing\n", &["unknown preprocessor directive"]);
        check("( a )) b", &["syntax error near ‘)’"]);
        check("é", &["syntax error near ‘é’"]);
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        for brace in ["{", "(", "a :: {", "( {"] {
            let text = brace.repeat(100_000);
            assert!(errors(&text).iter().any(|message| message.contains("nesting depth exceeded")));
        }
    }
}
