//! What can be wrong with a rule.

use alloc::boxed::Box;
use core::fmt;

/// What is wrong with one rule; `Display` prints it with the rule's number, in the words that Click uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Index of the rule among the arguments.
    pub rule: usize,
    /// What it is.
    pub kind: ProblemKind,
}

impl Problem {
    /// Whether the rule is usable all the same.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        matches!(self.kind, ProblemKind::ConstantRelation { .. } | ProblemKind::DirectionIgnored(_))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ProblemKind::EmptyRule => write!(f, "empty pattern {}", self.rule),
            _ => write!(f, "pattern {}: {}", self.rule, self.kind),
        }
    }
}

/// The kinds of problem. The strings are words of the rule, or names of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The argument holds no word.
    EmptyRule,
    /// `allow` where there is no output.
    NoOutput,
    /// The output number is not one of the element's.
    OutputOutOfRange(i64),
    /// The action is neither `allow`, `deny`, `drop` nor a number.
    UnknownAction(Box<str>),
    /// Words are left over after the expression.
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
    /// What stands in the brackets is not a field.
    BracketSyntax,
    /// The field is shorter than 1 or longer than 4 bytes.
    FieldLength,
    /// The field crosses a 32-bit boundary; position and length in bytes.
    FieldAcrossWords(i64, i64),
    /// The field starts before the header or further away than any header reaches.
    FieldPosition(i64),
    /// Parentheses are nested deeper than the limit.
    TooDeep,
    /// Two kinds of primitive in one.
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
    /// A number alone.
    NeedsField,
    /// Qualifiers alone.
    Partial,
    /// A name that means several things, or nothing of what is asked for here.
    Ambiguous {
        /// What was asked for, with the word.
        word: Box<str>,
        /// Several meanings remain; else none does.
        ambiguous: bool,
        /// The meanings that the word has.
        meanings: Box<str>,
    },
    /// The named primitive can't be used like this.
    Primitive(Box<str>, &'static str),
    /// The value of the named primitive is above its bound.
    ValueOutOfRange(Box<str>, u32),
    /// The mask of the named primitive has bits beyond its bound.
    MaskOutOfRange(Box<str>, u32),
    /// `port` or `tcp opt` with a protocol that has none.
    BadProtocol(&'static str, u32),
    /// A TCP flag byte above 255.
    FlagOutOfRange(i32),
    /// A warning: the relation holds always or never.
    ConstantRelation {
        /// Operator as written.
        operator: &'static str,
        /// Value as written.
        value: u32,
        /// It holds always.
        always: bool,
        /// Greatest value that the field can have.
        bound: u32,
    },
    /// A warning: the named primitive has no source and destination.
    DirectionIgnored(Box<str>),
}

impl fmt::Display for ProblemKind {
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

impl core::error::Error for Problem {}
