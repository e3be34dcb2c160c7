//! Errors and warnings in rules.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A problem with one rule. `Display` prints it with the rule's number, in Click's wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleDiagnostic {
    /// Index of the rule among the arguments.
    pub rule: usize,
    /// The problem.
    pub kind: RuleDiagnosticKind,
}

impl RuleDiagnostic {
    /// Whether the rule is usable despite the problem.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(
            self.kind,
            RuleDiagnosticKind::ConstantRelation { .. } | RuleDiagnosticKind::DirectionIgnored(_)
        )
    }
}

impl fmt::Display for RuleDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RuleDiagnosticKind::EmptyRule => write!(f, "empty pattern {}", self.rule),
            _ => write!(f, "pattern {}: {}", self.rule, self.kind),
        }
    }
}

/// The kinds of problem. Strings are words of the rule, or names of the requested quantities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleDiagnosticKind {
    /// The argument is empty.
    EmptyRule,
    /// `allow` without an output port.
    NoOutput,
    /// The output number exceeds the element's outputs.
    OutputOutOfRange(i64),
    /// The action is neither `allow`, `deny`, `drop` nor a number.
    UnknownAction(Box<str>),
    /// Unexpected words after the expression.
    Garbage(Box<str>),
    /// `?` without its `:`.
    MissingColon,
    /// Nothing follows a connective.
    MissingExpression,
    /// Nothing follows this word.
    MissingExpressionAfter(Box<str>),
    /// `(` without its `)`.
    MissingParenthesis,
    /// `[` without its `]`.
    MissingBracket,
    /// The text in the brackets is not a field.
    BracketSyntax,
    /// The field is shorter than 1 or longer than 4 bytes.
    FieldLength,
    /// The field crosses a 32-bit boundary; position and length in bytes.
    FieldAcrossWords(i64, i64),
    /// The field starts before the header or beyond the maximum header length.
    FieldPosition(i64),
    /// Parentheses are nested deeper than the limit.
    TooDeep,
    /// Two kinds in one primitive.
    TypeTwice,
    /// Two directions in one primitive.
    DirectionTwice,
    /// Two transport protocols in one primitive.
    ProtocolTwice,
    /// A zero bit mask.
    ZeroMask,
    /// An operator with nothing to compare with.
    DanglingOperator(Box<str>),
    /// A word that starts no primitive.
    EmptyTerm(Box<str>),
    /// A number without a field to compare.
    NeedsField,
    /// Qualifiers without a value.
    Partial,
    /// A name with several meanings, or with none that fits.
    Ambiguous {
        /// The requested kind, with the word.
        word: Box<str>,
        /// Several meanings fit; otherwise none does.
        ambiguous: bool,
        /// The possible meanings of the word.
        meanings: Box<str>,
    },
    /// The named primitive can't be used in this way.
    Primitive(Box<str>, &'static str),
    /// The value of the named primitive is above its bound.
    ValueOutOfRange(Box<str>, u32),
    /// The mask of the named primitive has bits beyond its bound.
    MaskOutOfRange(Box<str>, u32),
    /// `port` or `tcp opt` with a protocol that does not have them.
    BadProtocol(&'static str, u32),
    /// A TCP flag byte above 255.
    FlagOutOfRange(i32),
    /// Warning: the comparison always or never holds.
    ConstantRelation {
        /// The operator as written.
        operator: &'static str,
        /// The value as written.
        value: u32,
        /// Whether it always holds.
        always: bool,
        /// The field's maximum value.
        bound: u32,
    },
    /// Warning: the named primitive has no source and destination.
    DirectionIgnored(Box<str>),
}

impl RuleDiagnosticKind {
    /// Whether the rule would be right if the element had more outputs.
    #[must_use]
    pub fn depends_on_ports(&self) -> bool {
        matches!(self, Self::NoOutput | Self::OutputOutOfRange(_))
    }

    /// The words of the rule that are wrong, if the problem names them.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::UnknownAction(word)
            | Self::Garbage(word)
            | Self::MissingExpressionAfter(word)
            | Self::DanglingOperator(word)
            | Self::EmptyTerm(word)
            | Self::Primitive(word, _)
            | Self::ValueOutOfRange(word, _)
            | Self::MaskOutOfRange(word, _)
            | Self::DirectionIgnored(word) => Some(word),
            Self::BadProtocol(name, _) => Some(name),
            // The kind that was asked for comes before the word.
            Self::Ambiguous { word, .. } => word.split(' ').next_back(),
            _ => None,
        }
    }

    /// The problem for an output that shows the rule.
    #[must_use]
    pub fn explanation(&self) -> String {
        match self {
            Self::EmptyRule => "empty rule".into(),
            Self::NoOutput => "‘allow’ needs an output, and the element has none".into(),
            Self::OutputOutOfRange(output) => format!("there is no output {output}"),
            Self::UnknownAction(word) => {
                format!("unknown action ‘{word}’: ‘allow’, ‘deny’, ‘drop’ or an output is expected")
            }
            Self::EmptyTerm(word) => format!("‘{word}’ begins no condition"),
            Self::Garbage(word) => format!("‘{word}’ is not expected here"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for RuleDiagnosticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyRule => write!(f, "empty pattern"),
            Self::NoOutput => write!(f, "‘allow’ is meaningless, element has zero outputs"),
            Self::OutputOutOfRange(output) => write!(f, "slot ‘{output}’ out of range"),
            Self::UnknownAction(word) => write!(f, "unknown slot ID ‘{word}’"),
            Self::Garbage(word) => write!(f, "garbage after expression at ‘{word}’"),
            Self::MissingColon => write!(f, "missing ‘:’ in ternary expression"),
            Self::MissingExpression => write!(f, "missing expression"),
            Self::MissingExpressionAfter(word) => write!(f, "missing expression after ‘{word}’"),
            Self::MissingParenthesis => write!(f, "missing ‘)’"),
            Self::MissingBracket => write!(f, "missing ‘]’"),
            Self::BracketSyntax => {
                write!(f, "syntax error after ‘[’, expected ‘[POS]’ or ‘[POS:LEN]’")
            }
            Self::FieldLength => {
                write!(f, "LEN in ‘[POS:LEN]’ out of range, should be between 1 and 4")
            }
            Self::FieldAcrossWords(position, length) => {
                write!(f, "field [{position}:{length}] does not fit in a single word")
            }
            Self::FieldPosition(position) => write!(f, "POS {position} in ‘[POS:LEN]’ out of range"),
            Self::TooDeep => write!(f, "expression nested too deeply"),
            Self::TypeTwice => write!(f, "type specified twice"),
            Self::DirectionTwice => write!(f, "‘src’ or ‘dst’ specified twice"),
            Self::ProtocolTwice => write!(f, "transport protocol specified twice"),
            Self::ZeroMask => write!(f, "zero mask ignored"),
            Self::DanglingOperator(word) => write!(f, "dangling operator near ‘{word}’"),
            Self::EmptyTerm(word) => write!(f, "empty term near ‘{word}’"),
            Self::NeedsField => write!(f, "specify header field or ‘port’"),
            Self::Partial => write!(f, "partial directive"),
            Self::Ambiguous { word, ambiguous, meanings } => {
                let what = if *ambiguous { "ambiguous" } else { "meaningless" };
                write!(f, "‘{word}’ is {what}; try {meanings}")
            }
            Self::Primitive(name, what) => write!(f, "‘{name}’: {what}"),
            Self::ValueOutOfRange(name, bound) => write!(f, "‘{name}’: out of range, bound {bound}"),
            Self::MaskOutOfRange(name, bound) => {
                write!(f, "‘{name}’: mask out of range, bound 0x{bound:X}")
            }
            Self::BadProtocol(name, protocol) => write!(f, "‘{name}’: bad protocol {protocol}"),
            Self::FlagOutOfRange(value) => write!(f, "‘tcp opt’: value {value} out of range"),
            Self::ConstantRelation { operator, value, always, bound } => {
                write!(f, "relation ‘{operator} {value}’ is always {always} (range 0-{bound})")
            }
            Self::DirectionIgnored(name) => write!(f, "‘{name}’: ‘src’ or ‘dst’ ignored"),
        }
    }
}

impl core::error::Error for RuleDiagnostic {}
