//! Statements.

use super::cursor::{Context, Lexeme, Parser};
use crate::Limits;
use crate::lexer::{Lexer, Token, TokenKind};
use crate::steps::pause;
use crate::tree::{ClassUse, Span, Statement, StatementKind, SyntaxError};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The result of parsing a text.
pub(crate) struct Parsed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) errors: Vec<SyntaxError>,
}

/// Parses `text` within `limits`, in steps.
pub(crate) async fn parse(text: &str, limits: &Limits) -> Parsed {
    let mut parser = Parser {
        text,
        lexer: Lexer::new(text),
        tokens: Vec::new(),
        ahead: VecDeque::new(),
        last: Span::default(),
        end: Span::default(),
        errors: Vec::new(),
        limits,
        ports_left: limits.connections,
        depth: 0,
    };
    let mut statements = Vec::new();
    while parser.statement(Context::File, &mut statements).await {
        pause().await;
    }
    Parsed { tokens: parser.tokens, statements, errors: parser.errors }
}

impl Parser<'_> {
    /// Parses statements up to the end of the context, which the caller consumes.
    pub(super) async fn statements(&mut self, context: Context) -> Vec<Statement> {
        let mut statements = Vec::new();
        while self.statement(context, &mut statements).await {
            pause().await;
        }
        statements
    }

    /// Parses a statement, or something else between statements. Returns whether there may be more.
    async fn statement(&mut self, context: Context, statements: &mut Vec<Statement>) -> bool {
        let lexeme = self.peek();
        let found = self.errors.len();
        let kind = match lexeme.kind {
            TokenKind::End => return false,
            TokenKind::Identifier | TokenKind::Arrow | TokenKind::DoubleArrow => self.chain(context).await,
            TokenKind::ElementClass => Some(self.element_class().await),
            TokenKind::Require => self.information().await.map(StatementKind::Require),
            TokenKind::Provide => self.information().await.map(StatementKind::Provide),
            TokenKind::Define => self.information().await.map(StatementKind::Define),
            TokenKind::DoubleBar if context == Context::Compound => return false,
            TokenKind::DoubleBar => {
                self.syntax_error(lexeme);
                if context == Context::Group {
                    return false;
                }
                self.next();
                None
            }
            TokenKind::Character => match (self.slice(lexeme.span), context) {
                ("[" | "{" | "(", _) => self.chain(context).await,
                ("}", Context::Compound) | (")", Context::Group) => return false,
                ("}", Context::Group) => {
                    self.syntax_error(lexeme);
                    return false;
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
            statements.push(Statement { span, kind, end: self.end, errors: found..self.errors.len() });
        }
        true
    }

    fn stray(&mut self, lexeme: Lexeme) -> Option<StatementKind> {
        self.syntax_error(lexeme);
        self.next();
        None
    }

    /// Parses `require`, `provide` or `define`; returns the text in parentheses.
    async fn information(&mut self) -> Option<Span> {
        self.next();
        if self.is_character("(") {
            return Some(self.config().await);
        }
        self.error(self.last, "expected '('");
        None
    }

    async fn element_class(&mut self) -> StatementKind {
        self.next();
        let name = self.take(TokenKind::Identifier);
        if name.is_none() {
            let span = self.peek().span;
            self.error(span, "expected element type name");
        }
        let lexeme = self.peek();
        let class = if lexeme.kind == TokenKind::Identifier {
            Some(ClassUse::Named(self.next().span))
        } else if self.is_character("{") {
            Some(ClassUse::Compound(self.compound().await))
        } else {
            self.syntax_error(lexeme);
            self.next();
            None
        };
        StatementKind::ElementClass { name, class }
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::Tree;
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

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
        let check = |opening: &str, kind: &str, closing: &[&str]| {
            let first = format!("maximum {kind} nesting depth exceeded");
            let missing = closing.iter().cycle().take(49).map(|brace| format!("expected ‘{brace}’"));
            let expected: Vec<String> = [first].into_iter().chain(missing).collect();
            assert_eq!(errors(&opening.repeat(100_000)), expected, "{opening}");
        };
        check("{", "compound element", &["}"]);
        check("(", "element group", &[")"]);
        check("a :: {", "compound element", &["}"]);
        check("( {", "compound element", &[")", "}"]);
    }
}
