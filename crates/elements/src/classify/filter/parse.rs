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
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::expression::Expression;
use super::super::names::{self, NameKind, Names, TCP_OR_UDP};
use super::primitive::Primitive;
use super::problem::ProblemKind;
use super::vocabulary::{
    Direction, Field, ICMP, ICMP_TYPE, Kind, Layer, Mask, Operator, TCP, UDP, kind_named, kind_text,
    protocol_text,
};
use super::words;

/// Deepest nesting of parentheses and conditionals: a configuration must not be able to overflow the stack.
const MAX_NESTING: usize = 100;

/// A reader of one expression.
pub(super) struct Parser<'a> {
    words: &'a [&'a str],
    position: usize,
    depth: usize,
    names: &'a dyn Names,
    previous: Primitive,
    problems: Vec<ProblemKind>,
}

/// What a word means where a qualifier or a value is wanted.
enum Meaning {
    Unknown,
    Wrong(ProblemKind),
    Kind(Kind),
    Value(Kind, u32),
}

impl<'a> Parser<'a> {
    pub(super) fn new(words: &'a [&'a str], names: &'a dyn Names) -> Self {
        let previous = Primitive::default();
        Self { words, position: 0, depth: 0, names, previous, problems: Vec::new() }
    }

    /// The words that are left, and the problems found.
    pub(super) fn finish(self) -> (&'a [&'a str], Vec<ProblemKind>) {
        (self.words.get(self.position..).unwrap_or_default(), self.problems)
    }

    /// Reads an expression as far as it goes.
    pub(super) fn expression(&mut self) -> Expression {
        let depth = self.depth;
        if !self.descend() {
            return Expression::Constant(false);
        }
        // `a ? b : c ? d : e` is read flat and nested from the right afterwards.
        let mut choices = Vec::new();
        let mut last = self.alternatives();
        while self.take(&["?"]) && self.descend() {
            let start = self.position;
            let yes = self.expression();
            if self.position == start || !self.take(&[":"]) {
                self.problems.push(ProblemKind::MissingColon);
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

    /// Goes one level deeper; false, with all words consumed, when that is too deep.
    fn descend(&mut self) -> bool {
        if self.depth == MAX_NESTING {
            self.problems.push(ProblemKind::TooDeep);
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
                    self.problems.push(ProblemKind::MissingExpression);
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
                self.problems.push(ProblemKind::MissingExpressionAfter("(".into()));
            }
            if !self.take(&[")"]) && self.position != inside {
                self.problems.push(ProblemKind::MissingParenthesis);
            }
            Some(if negated { inner.negate() } else { inner })
        } else {
            self.primitive(negated)
        };
        if self.position == start && count > 0 {
            let word = self.words[start - 1];
            self.problems.push(ProblemKind::MissingExpressionAfter(word.into()));
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
            self.problems.push(ProblemKind::EmptyTerm(word.into()));
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
                        self.problems.push(ProblemKind::TypeTwice);
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

    /// `src`, `src and dst` or `src or dst`; leaves the last of its words current.
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
            self.problems.push(ProblemKind::DirectionTwice);
        }
    }

    fn set_protocol(&mut self, primitive: &mut Primitive, protocol: u32) {
        if primitive.protocol.replace(protocol).is_some_and(|other| other != protocol) {
            self.problems.push(ProblemKind::ProtocolTwice);
        }
    }

    /// `[POS]`, `[POS:LEN]` or `[POS,LAST]`, counted in bytes.
    fn brackets(&mut self, primitive: &mut Primitive) {
        self.position += 1;
        let rest = &self.words[self.position..];
        let Some(end) = rest.iter().position(|word| *word == "]") else {
            self.problems.push(ProblemKind::MissingBracket);
            return;
        };
        let text: String = rest[..end].concat();
        self.position += end + 1;
        let number = |text: &str| words::signed(text).map(|number| i64::from(number as i32));
        let field = match (text.split_once(':'), text.split_once(',')) {
            (Some((position, length)), _) if !length.is_empty() => number(position).zip(number(length)),
            (_, Some((position, last))) if !last.is_empty() => {
                number(position).zip(number(last)).map(|(position, last)| (position, last - position + 1))
            }
            _ => number(&text).map(|position| (position, 1)),
        };
        let problem = match field {
            None => ProblemKind::BracketSyntax,
            Some((_, length)) if !(1..=4).contains(&length) => ProblemKind::FieldLength,
            Some((position, length)) if position.div_euclid(4) != (position + length - 1).div_euclid(4) => {
                ProblemKind::FieldAcrossWords(position, length)
            }
            Some((position @ 0..=8191, length)) => {
                let (offset, length) = (position as u32 * 8, length as u32 * 8);
                let field = Field { protocol: primitive.protocol, offset, length };
                primitive.kind = Some(Kind::Field(field));
                return;
            }
            Some((position, _)) => ProblemKind::FieldPosition(position),
        };
        self.problems.push(problem);
    }

    /// The mask after `&`; when what follows is none, nothing is consumed.
    fn mask(&mut self, layer: Option<Layer>) -> Option<Mask> {
        let word = self.words.get(self.position + 1)?;
        let mask = words::unsigned(word)
            .map(Mask::Number)
            .or_else(|| {
                (layer != Some(Layer::Ether)).then(|| words::address(word, self.names).map(Mask::Address))?
            })
            .or_else(|| {
                (layer != Some(Layer::Ip)).then(|| words::ethernet(word, self.names).map(Mask::Ether))?
            })?;
        self.position += 2;
        if matches!(mask, Mask::Number(0) | Mask::Address(0)) {
            self.problems.push(ProblemKind::ZeroMask);
            return None;
        }
        Some(mask)
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

    /// Reads the value, when the current word is one; false when the word makes the primitive unusable.
    fn value(&mut self, primitive: &mut Primitive, layer: Option<Layer>) -> bool {
        let word = self.words[self.position];
        match self.meaning(word, primitive.kind, primitive.protocol) {
            Meaning::Wrong(problem) => {
                self.problems.push(problem);
                self.position += 1;
                return false;
            }
            Meaning::Value(kind, value) => (primitive.data, primitive.value) = (Some(kind), value),
            _ => {
                let Some(data) = self.literal(word, primitive, layer) else {
                    if primitive.operator != Operator::Equal || primitive.negated {
                        self.problems.push(ProblemKind::DanglingOperator(word.into()));
                    }
                    return true;
                };
                primitive.data = Some(data);
            }
        }
        self.position += 1;
        true
    }

    /// Reads a number or an address; consumes the words after the first, if it has more.
    fn literal(&mut self, word: &str, primitive: &mut Primitive, layer: Option<Layer>) -> Option<Kind> {
        if let Some(number) = words::signed(word) {
            primitive.value = number;
            return Some(Kind::Integer);
        }
        if layer != Some(Layer::Ether) {
            if let Some(address) = words::address(word, self.names) {
                primitive.value = address;
                if let Some(["mask", mask]) = self.words.get(self.position + 1..self.position + 3)
                    && let Some(mask) = words::address(mask, self.names)
                {
                    primitive.mask = mask;
                    self.position += 2;
                    return Some(Kind::Net);
                }
                if primitive.kind != Some(Kind::Net) {
                    return Some(Kind::Host);
                }
            }
            if let Some((address, mask)) = words::prefix(word, self.names) {
                (primitive.value, primitive.mask) = (address, mask);
                return Some(Kind::Net);
            }
            if words::address(word, self.names).is_some() {
                return Some(Kind::Host);
            }
        }
        if layer != Some(Layer::Ip) {
            primitive.ether = words::ethernet(word, self.names)?;
            return Some(Kind::Ether);
        }
        None
    }

    /// What `word` means where `kind` (none: anything) of `protocol` (none: any) is wanted.
    fn meaning(&self, word: &str, kind: Option<Kind>, protocol: Option<u32>) -> Meaning {
        if kind.is_none() {
            if let Some(kind) = kind_named(word) {
                return Meaning::Kind(kind);
            }
            if matches!(word, "dest" | "dst" | "ether" | "ip" | "not" | "src") {
                return Meaning::Unknown;
            }
        }
        let of = |name, kind| names::number(self.names, name, word).map(|number| (kind, number));
        let known = [
            of(NameKind::Protocol, Kind::Protocol),
            of(NameKind::TcpPort, Kind::Port),
            of(NameKind::UdpPort, Kind::Port),
            of(NameKind::TcpFlag, Kind::TcpFlag),
            of(NameKind::IcmpType, ICMP_TYPE),
        ];
        if known.iter().all(Option::is_none) {
            return Meaning::Unknown;
        }
        let fits = |index: usize| {
            let carriers: &[u32] = match index {
                1 | 3 => &[TCP, TCP_OR_UDP],
                2 => &[UDP, TCP_OR_UDP],
                4 => &[ICMP],
                _ => return true,
            };
            protocol.is_none_or(|protocol| carriers.contains(&protocol))
        };
        let mut wanted: Vec<(Kind, u32)> = Vec::new();
        for (index, meaning) in known.iter().enumerate() {
            if let Some(meaning) = meaning
                && kind.is_none_or(|kind| kind == meaning.0)
                && fits(index)
                && !(index == 2 && wanted.contains(meaning))
            {
                wanted.push(*meaning);
            }
        }
        if let [(kind, number)] = wanted[..] {
            return Meaning::Value(kind, number);
        }
        let mut meanings = String::new();
        for (kind, _) in known.iter().flatten() {
            let separator = if meanings.is_empty() { "" } else { ", " };
            meanings += &format!("{separator}‘{}’", in_words(Some(*kind), protocol, word));
        }
        Meaning::Wrong(ProblemKind::Ambiguous {
            word: in_words(kind, protocol, word).into(),
            ambiguous: wanted.len() > 1,
            meanings: meanings.into(),
        })
    }

    fn word(&self) -> Option<&'a str> {
        self.words.get(self.position).copied()
    }

    /// The current word when another one follows: an operator can't be the last word.
    fn operator_word(&self) -> &'a str {
        if self.position + 1 < self.words.len() { self.words[self.position] } else { "" }
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let found = self.word().is_some_and(|word| words.contains(&word));
        self.position += usize::from(found);
        found
    }
}

/// Kind, protocol and word as messages print them, with Click's spacing.
fn in_words(kind: Option<Kind>, protocol: Option<u32>, word: &str) -> String {
    format!("{} {} {word}", kind_text(kind), protocol_text(protocol))
}
