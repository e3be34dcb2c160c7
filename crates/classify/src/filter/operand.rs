//! The operands of a primitive: fields in brackets, masks, numbers, addresses and names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::diagnostic::RuleDiagnosticKind;
use super::parse::Parser;
use super::primitive::Primitive;
use super::vocabulary::{
    Field, ICMP, ICMP_TYPE, Kind, Layer, Mask, Meaning, Operator, TCP, UDP, kind_named, kind_text,
    protocol_text,
};
use super::words;
use crate::names::{self, NameKind, TCP_OR_UDP};

/// The kinds of named values: the kind that each belongs to and the protocols that have it (empty: any).
const NAMES: [(NameKind, Kind, &[u32]); 5] = [
    (NameKind::Protocol, Kind::Protocol, &[]),
    (NameKind::TcpPort, Kind::Port, &[TCP, TCP_OR_UDP]),
    (NameKind::UdpPort, Kind::Port, &[UDP, TCP_OR_UDP]),
    (NameKind::TcpFlag, Kind::TcpFlag, &[TCP, TCP_OR_UDP]),
    (NameKind::IcmpType, ICMP_TYPE, &[ICMP]),
];

impl Parser<'_> {
    /// `[POS]`, `[POS:LEN]` or `[POS,LAST]`, counted in bytes.
    pub(super) fn brackets(&mut self, primitive: &mut Primitive) {
        self.position += 1;
        let rest = &self.words[self.position..];
        let Some(end) = rest.iter().position(|word| *word == "]") else {
            self.problems.push(RuleDiagnosticKind::MissingBracket);
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
            None => RuleDiagnosticKind::BracketSyntax,
            Some((_, length)) if !(1..=4).contains(&length) => RuleDiagnosticKind::FieldLength,
            Some((position, length)) if position.div_euclid(4) != (position + length - 1).div_euclid(4) => {
                RuleDiagnosticKind::FieldAcrossWords(position, length)
            }
            Some((position @ 0..=8191, length)) => {
                let (offset, length) = (position as u32 * 8, length as u32 * 8);
                let field = Field { protocol: primitive.protocol, offset, length };
                primitive.kind = Some(Kind::Field(field));
                return;
            }
            Some((position, _)) => RuleDiagnosticKind::FieldPosition(position),
        };
        self.problems.push(problem);
    }

    /// Reads the mask after `&`. Consumes nothing if no mask follows.
    pub(super) fn mask(&mut self, layer: Option<Layer>) -> Option<Mask> {
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
            self.problems.push(RuleDiagnosticKind::ZeroMask);
            return None;
        }
        Some(mask)
    }

    /// Reads the value, if the current word is one. Returns false if the word makes the primitive unusable.
    pub(super) fn value(&mut self, primitive: &mut Primitive, layer: Option<Layer>) -> bool {
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
                        self.problems.push(RuleDiagnosticKind::DanglingOperator(word.into()));
                    }
                    return true;
                };
                primitive.data = Some(data);
            }
        }
        self.position += 1;
        true
    }

    /// Reads a number or an address, and consumes its remaining words.
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

    /// The meaning of `word` where `kind` (`None`: any) of `protocol` (`None`: any) is expected.
    pub(super) fn meaning(&self, word: &str, kind: Option<Kind>, protocol: Option<u32>) -> Meaning {
        if kind.is_none() {
            if let Some(kind) = kind_named(word) {
                return Meaning::Kind(kind);
            }
            if matches!(word, "dest" | "dst" | "ether" | "ip" | "not" | "src") {
                return Meaning::Unknown;
            }
        }
        let known = NAMES.iter().filter_map(|(name, kind, carriers)| {
            names::number(self.names, *name, word).map(|number| ((*kind, number), carriers))
        });
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return Meaning::Unknown;
        }
        let mut wanted: Vec<(Kind, u32)> = Vec::new();
        for (meaning, carriers) in &known {
            let fits = carriers.is_empty() || protocol.is_none_or(|protocol| carriers.contains(&protocol));
            if fits && kind.is_none_or(|kind| kind == meaning.0) && !wanted.contains(meaning) {
                wanted.push(*meaning);
            }
        }
        if let [(kind, number)] = wanted[..] {
            return Meaning::Value(kind, number);
        }
        let meanings: Vec<String> = known
            .iter()
            .map(|((kind, _), _)| format!("‘{}’", in_words(Some(*kind), protocol, word)))
            .collect();
        Meaning::Wrong(RuleDiagnosticKind::Ambiguous {
            word: in_words(kind, protocol, word).into(),
            ambiguous: wanted.len() > 1,
            meanings: meanings.join(", ").into(),
        })
    }
}

/// Kind, protocol and word as printed in messages, with Click's spacing.
fn in_words(kind: Option<Kind>, protocol: Option<u32>, word: &str) -> String {
    format!("{} {} {word}", kind_text(kind), protocol_text(protocol))
}
