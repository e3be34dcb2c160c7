//! The settings of memif interfaces.

use crate::text::as_text;
use std::fmt;
use std::str::FromStr;

/// The secret of a memif interface: 1 to 23 visible ASCII characters.
#[derive(Clone, PartialEq, Eq)]
pub struct MemifSecret(String);

/// Text that is not a valid secret of a memif interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemifSecretError;

impl fmt::Display for MemifSecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the secret of a memif interface has 1 to 23 visible ASCII characters, without spaces")
    }
}

impl std::error::Error for MemifSecretError {}

impl MemifSecret {
    /// The secret as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for MemifSecret {
    type Err = MemifSecretError;

    fn from_str(text: &str) -> Result<Self, MemifSecretError> {
        let good = (1..=23).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if good { Ok(Self(text.to_string())) } else { Err(MemifSecretError) }
    }
}

impl fmt::Display for MemifSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Not in logs.
impl fmt::Debug for MemifSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemifSecret(..)")
    }
}

as_text!(MemifSecret, "MemifSecret", "^[!-~]{1,23}$", "The secret of a memif interface.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_short_and_not_shown() {
        let long = "x".repeat(24);
        for (text, good) in [
            ("secret!", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("a b", false),
            ("\u{e9}", false),
        ] {
            let secret = text.parse::<MemifSecret>();
            assert_eq!(secret.is_ok(), good, "{text}");
            assert!(secret.is_err() || secret.clone().is_ok_and(|secret| secret.as_str() == text));
            assert!(secret.is_err() || !format!("{secret:?}").contains(text));
        }
    }
}
