//! Why a message could not be encoded or decoded.

use serde::de;
use std::fmt;

/// A value that cannot be encoded.
pub use rmp_serde::encode::Error as EncodeError;

/// Bytes that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside of a value.
    Short,
    /// A value of a kind that messages do not use.
    Kind(u8),
    /// A text is not UTF-8.
    Text,
    /// Lists and maps inside of each other exceed the limit.
    Depth,
    /// A list or a map has more items than its type.
    Excess(u32),
    /// A variant is neither a name nor a map with one item.
    Variant,
    /// A variant with a value has only its name.
    NoValue,
    /// The type refused the value.
    Value(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "the message ends too early"),
            Self::Kind(kind) => write!(f, "a value of the unknown kind {kind:#x}"),
            Self::Text => write!(f, "a text is not UTF-8"),
            Self::Depth => write!(f, "the message is nested too deeply"),
            Self::Excess(1) => write!(f, "1 item more than expected"),
            Self::Excess(items) => write!(f, "{items} items more than expected"),
            Self::Variant => write!(f, "a variant needs a name or a map with one item"),
            Self::NoValue => write!(f, "the variant lacks its value"),
            Self::Value(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::Value(reason.to_string())
    }
}
