//! The formatter. It changes only the spaces between tokens, so the meaning is preserved.
//!
//! One statement per line. Single-line blocks stay on one line; other blocks are indented by four. A chain keeps its
//! line breaks. Comments keep their positions. Consecutive empty lines become one. Configuration text in parentheses is
//! not changed.

use crate::source::Source;
use crate::steps::complete;
use crate::tree::{Body, ClassUse, Compound, Span, Statement, StatementKind, Subject, TokenKind, Tree};
use crate::{Diagnostic, binary, config};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

const INDENT: usize = 4;

/// Formats a configuration; `file` is its name for messages.
///
/// The result is stable under a second formatting.
///
/// # Errors
/// The syntax errors, if there are any, or the error that the text is a binary file. Text with errors is not formatted.
pub fn format(text: &str, file: &str) -> Result<String, Vec<Diagnostic>> {
    if let Some(refusal) = binary::refusal(text, file) {
        return Err(alloc::vec![refusal]);
    }
    let tree = Tree::parse(text);
    if !tree.errors().is_empty() {
        let source = complete(Source::new(file, &tree));
        let diagnostic = |error: &crate::tree::SyntaxError| {
            Diagnostic::error(source.location(error.span), &*error.message)
        };
        return Err(tree.errors().iter().map(diagnostic).collect());
    }
    let mut marks = Marks::default();
    marks.statements(tree.statements());
    let mut printer = Printer { marks, text, ..Printer::default() };
    let mut at = 0;
    for (kind, token) in tree.tokens() {
        printer.token(kind, token, at);
        at += token.len() as u32;
    }
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    Ok(printer.out)
}

/// The offsets where statements begin and where configurations open.
#[derive(Default)]
struct Marks {
    statements: BTreeSet<u32>,
    configs: BTreeSet<u32>,
}

impl Marks {
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statements.insert(statement.span.start);
            match &statement.kind {
                StatementKind::Chain(steps) => {
                    for item in steps.iter().flat_map(|step| &step.items) {
                        match &item.subject {
                            Subject::Compound(compound) => self.compound(compound),
                            Subject::Group(statements) => self.statements(statements),
                            Subject::Name | Subject::Implicit => (),
                        }
                        self.class(item.class.as_ref());
                        self.config(item.config);
                    }
                }
                StatementKind::ElementClass { class, .. } => self.class(class.as_ref()),
                StatementKind::Require(text) | StatementKind::Provide(text) | StatementKind::Define(text) => {
                    self.config(Some(*text));
                }
            }
        }
    }

    fn class(&mut self, class: Option<&ClassUse>) {
        if let Some(ClassUse::Compound(compound)) = class {
            self.compound(compound);
        }
    }

    fn compound(&mut self, compound: &Compound) {
        compound.bodies.iter().for_each(|Body { statements, .. }| self.statements(statements));
    }

    fn config(&mut self, text: Option<Span>) {
        self.configs.extend(text.map(|text| text.start.saturating_sub(1)));
    }
}

/// An open brace, parenthesis or bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `{` or the `(` of a group, over several lines; with the indentation of its line.
    Block(usize),
    /// The same on a single line.
    Inline,
    /// `[`
    Ports,
    /// The `(` of a configuration.
    Config,
}

/// The separator between two tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Nothing,
    Space,
    Line,
}

#[derive(Default)]
struct Printer<'t> {
    marks: Marks,
    text: &'t str,
    out: String,
    open: Vec<Open>,
    /// Indentation of the current output line.
    indentation: usize,
    /// Line ends in the input since the last token or comment.
    lines: usize,
    /// The last token that is not trivia.
    last: Option<(TokenKind, &'t str)>,
    /// Comments and directives before the next token: their text, and the number of line ends before them.
    comments: Vec<(TokenKind, &'t str, usize)>,
}

impl<'t> Printer<'t> {
    fn token(&mut self, kind: TokenKind, token: &'t str, at: u32) {
        match kind {
            TokenKind::Space => self.lines += line_ends(token),
            TokenKind::LineComment | TokenKind::BlockComment | TokenKind::Directive => {
                self.comments.push((kind, token.trim_end(), self.lines));
                self.lines = usize::from(kind == TokenKind::LineComment);
            }
            _ => self.significant(kind, token, at),
        }
        // Comments after the last statement.
        if at as usize + token.len() == self.text.len() {
            self.flush(true);
        }
    }

    /// The indentation of statements in the innermost block.
    fn base(&self) -> usize {
        let block =
            self.open.iter().rev().find_map(|open| if let Open::Block(at) = open { Some(*at) } else { None });
        block.map_or(0, |at| at + INDENT)
    }

    /// Writes the comments before the next token, which is at a `boundary` of statements or within one. Returns whether
    /// a new line must follow, and whether a comment started the current one.
    fn flush(&mut self, boundary: bool) -> (bool, bool) {
        let (mut must_break, mut leading) = (false, false);
        for (kind, comment, lines) in core::mem::take(&mut self.comments) {
            let indentation = match kind {
                TokenKind::Directive => 0,
                _ if boundary => self.base(),
                _ => self.base() + INDENT,
            };
            if lines > 0 || must_break || kind == TokenKind::Directive || self.out.is_empty() {
                self.new_line(indentation, boundary && lines > 1);
                leading = true;
            } else {
                self.out.push(' ');
            }
            self.out.push_str(comment);
            must_break = kind != TokenKind::BlockComment;
        }
        (must_break, leading)
    }

    fn new_line(&mut self, indentation: usize, blank: bool) {
        if !self.out.is_empty() {
            let after_open = matches!(self.last, Some((_, "{" | "(")));
            self.out.push_str(if blank && !after_open { "\n\n" } else { "\n" });
        }
        self.out.extend(core::iter::repeat_n(' ', indentation));
        self.indentation = indentation;
    }

    fn significant(&mut self, kind: TokenKind, token: &'t str, at: u32) {
        let closes = kind == TokenKind::Character && matches!(token, "}" | ")" | "]");
        let closed = if closes { self.open.pop() } else { None };
        let in_block = matches!(self.open.last(), None | Some(Open::Block(_)));
        let starts = self.marks.statements.contains(&at) && in_block;
        let bar = kind == TokenKind::DoubleBar && in_block;
        let ends_block = matches!(closed, Some(Open::Block(_)));
        let boundary = starts || bar || ends_block;
        // Comments before a closing brace are indented like the statements before it.
        if let Some(open) = closed.filter(|_| ends_block) {
            self.open.push(open);
        }
        let had_comments = !self.comments.is_empty();
        let (must_break, leading) = self.flush(boundary);
        if ends_block {
            self.open.pop();
        }
        let indentation = match closed {
            Some(Open::Block(outer)) => outer,
            _ if bar => self.base().saturating_sub(INDENT),
            _ if starts => self.base(),
            _ => self.base() + INDENT,
        };
        let gap = if must_break || (boundary && !(had_comments && leading && self.lines == 0)) {
            Gap::Line
        } else if had_comments {
            Gap::Space
        } else {
            self.gap(kind, token, at, closed)
        };
        match gap {
            Gap::Line => self.new_line(indentation, self.lines > 1 && starts),
            Gap::Space if !self.out.is_empty() => self.out.push(' '),
            Gap::Space | Gap::Nothing => (),
        }
        self.out.push_str(token);
        self.lines = 0;
        self.last = Some((kind, token));
        if kind == TokenKind::Character && matches!(token, "{" | "(" | "[") {
            let open = self.opened(token, at);
            self.open.push(open);
        }
    }

    /// The separator before a token within a statement.
    fn gap(&self, kind: TokenKind, token: &str, at: u32, closed: Option<Open>) -> Gap {
        let Some((last_kind, last)) = self.last else { return Gap::Nothing };
        let connector = |kind| matches!(kind, TokenKind::Arrow | TokenKind::DoubleArrow);
        let in_ports = self.open.last() == Some(&Open::Ports) || closed == Some(Open::Ports);
        let after_comma = last_kind == TokenKind::Character && last == ",";
        let in_config =
            kind == TokenKind::Config || last_kind == TokenKind::Config || closed == Some(Open::Config);
        let separator = kind == TokenKind::Character && matches!(token, "," | ";");
        if in_config || in_ports || separator || self.marks.configs.contains(&at) {
            Gap::Nothing
        } else if self.lines > 0 && (connector(kind) || connector(last_kind) || after_comma) {
            Gap::Line
        } else {
            Gap::Space
        }
    }

    fn opened(&self, token: &str, at: u32) -> Open {
        if token == "[" {
            return Open::Ports;
        }
        if self.marks.configs.contains(&at) {
            return Open::Config;
        }
        let rest = &self.text.as_bytes()[at as usize..];
        if line_ends_before_close(rest) { Open::Block(self.indentation) } else { Open::Inline }
    }
}

/// Counts line ends; `\r\n` counts once.
fn line_ends(space: &str) -> usize {
    space.matches('\n').count() + space.matches('\r').count() - space.matches("\r\n").count()
}

/// Whether there is a line end between the brace or parenthesis at the start of `bytes` and its closing one.
fn line_ends_before_close(bytes: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' | b'\r' => return true,
            b'{' | b'(' => depth += 1,
            b'}' | b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return false;
                }
            }
            b'/' if config::starts_comment(bytes, at) => {
                let end = config::skip_comment(bytes, at);
                if bytes[at..end].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                    return true;
                }
                at = end;
                continue;
            }
            b'"' | b'\'' | b'\\' => {
                let end = config::skip_unit(bytes, at);
                if bytes[at..end].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                    return true;
                }
                at = end;
                continue;
            }
            _ => (),
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(format(text, "f").as_deref(), Ok(expected), "{text:?}");
        assert_eq!(format(expected, "f").as_deref(), Ok(expected), "again: {text:?}");
    }

    #[test]
    fn statements_are_laid_out() {
        check("", "");
        check("  \n", "");
        check("a::Idle;b::Idle;a[0 , 1]=>[ 0-1 ]b", "a :: Idle;\nb :: Idle;\na [0,1] => [0-1] b\n");
        check("a   ->b\n->c->\nd ,\ne ; f", "a -> b\n    -> c ->\n    d,\n    e;\nf\n");
        check("a ::\n Queue  ( 1,\n 2 )\n\n\n;b", "a :: Queue( 1,\n 2 );\nb\n");
        check("require (x);define($a 1)b", "require(x);\ndefine($a 1)\nb\n");
        check("a;\n\n\n\nb", "a;\n\nb\n");
    }

    #[test]
    fn blocks_are_laid_out() {
        check("a::{input->output};", "a :: { input -> output };\n");
        check(
            "elementclass A{$a,K $b|\ninput->{ ->x\n-> }->output;y||\n$c|z;||...}",
            "elementclass A { $a, K $b |\n    input -> {\n        -> x\n            ->\n    } -> output;\n    y\n\
             || $c |\n    z;\n|| ...\n}\n",
        );
        check("a=>(->b),(\n->c\n)", "a => ( -> b ), (\n    -> c\n)\n");
        check("{}\n{\n\n\n}", "{ }\n{\n}\n");
        check("a->{b}(c)[1]->d", "a -> { b }(c) [1] -> d\n");
    }

    #[test]
    fn comments_stay() {
        check(
            "// x  \n\n\n// y\na // z\n;b /* c */ ; /* d */ e",
            "// x\n\n// y\na // z\n    ;\nb /* c */ ; /* d */\ne\n",
        );
        check("a;// x\n  /* y */ b", "a; // x\n/* y */ b\n");
        check(
            "X::{ // x\n  // y\na // z\n  // last\n}// end",
            "X :: { // x\n    // y\n    a // z\n    // last\n} // end\n",
        );
        check("a\n# 3 \"x\"\n  ;b", "a\n# 3 \"x\"\n    ;\nb\n");
        check("a ->\n // why\n b", "a ->\n    // why\n    b\n");
    }

    #[test]
    fn errors_are_returned() {
        let errors = format("a;\n= b", "f").expect_err("is no configuration");
        assert_eq!(alloc::string::ToString::to_string(&errors[0]), "f:2: syntax error near ‘=’");
    }
}
