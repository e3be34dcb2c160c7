//! The grammar of rule expressions.
//!
//! ```text
//! expression  = alternatives [ "?" expression ":" alternatives ]...
//! alternatives = term { ("or" | "||") term }
//! term        = factor { ["and" | "&&"] factor }
//! factor      = ("not" | "!") factor | "(" expression ")" | primitive
//! primitive   = "true" | "false" | qualifier... [ "[" field "]" ] [ "&" mask ] [ operator ] value
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::diagnostic::RuleDiagnosticKind;
use super::primitive::Primitive;
use super::vocabulary::{Direction, Field, Kind, Layer, Meaning, Operator};
use crate::expression::Expression;
use crate::names::Names;

/// Maximum nesting of parentheses and conditionals, so that a configuration can't overflow the stack.
const MAX_NESTING: usize = 100;

/// Parser of one expression.
pub(super) struct Parser<'a> {
    pub(super) words: &'a [&'a str],
    pub(super) position: usize,
    depth: usize,
    pub(super) names: &'a dyn Names,
    previous: Primitive,
    pub(super) problems: Vec<RuleDiagnosticKind>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(words: &'a [&'a str], names: &'a dyn Names) -> Self {
        let previous = Primitive::default();
        Self { words, position: 0, depth: 0, names, previous, problems: Vec::new() }
    }

    /// The remaining words and the problems found.
    pub(super) fn finish(self) -> (&'a [&'a str], Vec<RuleDiagnosticKind>) {
        (self.words.get(self.position..).unwrap_or_default(), self.problems)
    }

    /// Reads the longest expression.
    pub(super) fn expression(&mut self) -> Expression {
        let depth = self.depth;
        if !self.descend() {
            return Expression::Constant(false);
        }
        // `a ? b : c ? d : e` is read as a flat list, then nested from the right.
        let mut choices = Vec::new();
        let mut last = self.alternatives();
        while self.take(&["?"]) && self.descend() {
            let start = self.position;
            let yes = self.expression();
            if self.position == start || !self.take(&[":"]) {
                self.problems.push(RuleDiagnosticKind::MissingColon);
                break;
            }
            choices.push((last, yes));
            last = self.alternatives();
        }
        self.depth = depth;
        choices
            .into_iter()
            .rev()
            .fold(last, |no, (condition, yes)| Expression::Choose(Box::new([condition, yes, no])))
    }

    /// Enters a nesting level. If that is too deep, returns false and consumes all words.
    fn descend(&mut self) -> bool {
        if self.depth == MAX_NESTING {
            self.problems.push(RuleDiagnosticKind::TooDeep);
            self.position = self.words.len();
            return false;
        }
        self.depth += 1;
        true
    }

    fn alternatives(&mut self) -> Expression {
        let mut parts = Vec::from([self.term()]);
        while self.take(&["or", "||"]) {
            parts.push(self.term());
        }
        if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) }
    }

    fn term(&mut self) -> Expression {
        let mut parts = Vec::new();
        let mut wanted = true;
        loop {
            let start = self.position;
            parts.extend(self.factor());
            if self.position == start {
                if wanted {
                    self.problems.push(RuleDiagnosticKind::MissingExpression);
                }
                break;
            }
            wanted = self.take(&["and", "&&"]);
        }
        if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) }
    }

    fn factor(&mut self) -> Option<Expression> {
        let first_not = self.position;
        while self.take(&["not", "!"]) {}
        let count = self.position - first_not;
        let negated = count % 2 == 1;
        let start = self.position;
        let result = if self.take(&["("]) {
            let inside = self.position;
            let inner = self.expression();
            if self.position == inside {
                self.problems.push(RuleDiagnosticKind::MissingExpressionAfter("(".into()));
            }
            if !self.take(&[")"]) && self.position != inside {
                self.problems.push(RuleDiagnosticKind::MissingParenthesis);
            }
            Some(if negated { inner.negate() } else { inner })
        } else {
            self.primitive(negated)
        };
        if self.position == start && count > 0 {
            let word = self.words[start - 1];
            self.problems.push(RuleDiagnosticKind::MissingExpressionAfter(word.into()));
        }
        result
    }

    fn primitive(&mut self, mut negated: bool) -> Option<Expression> {
        let first = self.word()?;
        match first {
            ")" | "||" | "or" | "?" | ":" => return None,
            "true" | "false" => {
                self.position += 1;
                return Some(Expression::Constant((first == "true") != negated));
            }
            _ => {}
        }
        let start = self.position;
        let mut primitive = Primitive::default();
        let mut layer = None;
        self.qualifiers(&mut primitive, &mut layer, &mut negated);
        if self.position != start {
            self.previous = Primitive::default();
        }
        if self.previous.data == Some(Kind::Ether) {
            layer = Some(Layer::Ether);
        }
        if self.operator_word() == "[" && self.position > start && primitive.kind.is_none() {
            self.brackets(&mut primitive);
        }
        let mask = if self.operator_word() == "&" { self.mask(layer) } else { None };
        self.operator(&mut primitive);
        let mut usable = true;
        if self.position < self.words.len() {
            usable = self.value(&mut primitive, layer);
        }
        if self.position == start {
            let word = self.word().unwrap_or_default();
            self.problems.push(RuleDiagnosticKind::EmptyTerm(word.into()));
            return None;
        }
        if !usable {
            return None;
        }
        let mut warnings = Vec::new();
        let checked = primitive.complete(&self.previous, layer, mask, &mut warnings);
        self.problems.append(&mut warnings);
        if let Err(problem) = checked {
            self.problems.push(problem);
            return None;
        }
        self.previous = primitive;
        let expression = primitive.expression();
        Some(if negated { expression.negate() } else { expression })
    }

    fn qualifiers(&mut self, primitive: &mut Primitive, layer: &mut Option<Layer>, negated: &mut bool) {
        while let Some(word) = self.word() {
            match self.meaning(word, None, None) {
                Meaning::Kind(kind) => {
                    if primitive.kind.replace(kind).is_some() {
                        self.problems.push(RuleDiagnosticKind::TypeTwice);
                    }
                    if let Kind::Field(Field { protocol: Some(protocol), .. }) = kind {
                        self.set_protocol(primitive, protocol);
                    }
                }
                Meaning::Value(Kind::Protocol, protocol) => self.set_protocol(primitive, protocol),
                Meaning::Value(..) | Meaning::Wrong(_) => return,
                Meaning::Unknown => match word {
                    "src" => self.source(primitive),
                    "dst" | "dest" => self.set_direction(primitive, Direction::Destination),
                    "ip" | "ether" if layer.is_none() => {
                        *layer = Some(if word == "ip" { Layer::Ip } else { Layer::Ether });
                    }
                    "not" | "!" => *negated = !*negated,
                    _ => return,
                },
            }
            self.position += 1;
        }
    }

    /// Reads `src`, `src and dst` or `src or dst`. The last of these words stays current.
    fn source(&mut self, primitive: &mut Primitive) {
        let direction = match self.words.get(self.position + 1..self.position + 3) {
            Some(["and" | "&&", "dst" | "dest"]) => Direction::Both,
            Some(["or" | "||", "dst" | "dest"]) => Direction::Either,
            _ => Direction::Source,
        };
        if direction != Direction::Source {
            self.position += 2;
        }
        self.set_direction(primitive, direction);
    }

    fn set_direction(&mut self, primitive: &mut Primitive, direction: Direction) {
        if primitive.direction.replace(direction).is_some() {
            self.problems.push(RuleDiagnosticKind::DirectionTwice);
        }
    }

    fn set_protocol(&mut self, primitive: &mut Primitive, protocol: u32) {
        if primitive.protocol.replace(protocol).is_some_and(|other| other != protocol) {
            self.problems.push(RuleDiagnosticKind::ProtocolTwice);
        }
    }

    fn operator(&mut self, primitive: &mut Primitive) {
        (primitive.operator, primitive.negated) = match self.operator_word() {
            "=" | "==" => (Operator::Equal, false),
            "!=" => (Operator::Equal, true),
            ">" => (Operator::Greater, false),
            "<" => (Operator::Less, false),
            ">=" => (Operator::Less, true),
            "<=" => (Operator::Greater, true),
            _ => return,
        };
        self.position += 1;
    }

    fn word(&self) -> Option<&'a str> {
        self.words.get(self.position).copied()
    }

    /// The current word if another follows: an operator can't be the last word.
    fn operator_word(&self) -> &'a str {
        if self.position + 1 < self.words.len() { self.words[self.position] } else { "" }
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let found = self.word().is_some_and(|word| words.contains(&word));
        self.position += usize::from(found);
        found
    }
}
