//! Names of boxes, switches and the objects that belong to them.

use std::fmt;
use std::str::FromStr;

use crate::text::as_text;

/// Maximum length of a name in bytes: that of a DNS label, so that a name can be used as one.
const MAX_LENGTH: usize = 63;

/// The pattern of all names. A name needs no quoting in a URL, in a path and on a command line.
const PATTERN: &str = "^[a-z0-9][a-z0-9._-]{0,62}$";

/// Text that is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a valid name: it must have 1 to {MAX_LENGTH} of the characters a-z 0-9 . _ - and begin with a letter or a \
             digit",
            self.0
        )
    }
}

impl std::error::Error for NameError {}

fn check(text: &str) -> Result<(), NameError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let good = bytes.len() <= MAX_LENGTH
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.iter().all(|byte| plain(*byte) || b"._-".contains(byte));
    // The message quotes the rejected text, up to a maximum length.
    if good { Ok(()) } else { Err(NameError(text.chars().take(2 * MAX_LENGTH).collect())) }
}

macro_rules! names {
    ($($type:ident $name:literal $description:literal)*) => {$(
        #[doc = concat!($description, " `[a-z0-9][a-z0-9._-]{0,62}`.")]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                check(text).map(|()| Self(text.to_string()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        as_text!($type, $name, PATTERN, $description);
    )*};
}

names! {
    BoxName "BoxName" "The name of a box, unique in its daemon."
    ChainName "ChainName" "The name of a chain of services, unique in its switch."
    ConfigurationName "ConfigurationName" "The name of a configuration, unique in its box; the first one is `main`."
    Owner "Owner" "The owner of a box, a switch or a stack. Only boxes of one owner can share a pipe or a packet pool."
    PipeName "PipeName" "The name of a pipe, unique among those of its owner."
    PortName "PortName" "The name of a port, unique in its switch."
    ServiceName "ServiceName" "The name of a service, unique in its daemon."
    StackName "StackName" "The name of a stack, unique in its daemon."
    SwitchName "SwitchName" "The name of a switch, unique in its daemon."
    UploadName "UploadName" "The name of an uploaded file that no configuration has yet, unique among those of its owner."
    UserName "UserName" "The name of a user of the API, unique in its file of tokens."
}

impl UploadName {
    /// A name for a number, which the caller draws at random.
    pub fn of_number(number: u64) -> Self {
        Self(format!("upload-{number:016x}"))
    }
}

impl ConfigurationName {
    /// The name of the configuration that a box is created with.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl Default for Owner {
    /// The owner of what names none.
    fn default() -> Self {
        Self("default".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "0", "fw", "customer-7.nat_2", &"x".repeat(MAX_LENGTH)] {
            assert_eq!(good.parse::<BoxName>().map(|name| name.to_string()), Ok(good.to_string()));
        }
        for bad in ["", "A", "-a", ".", "..", "a/b", "a b", "a:b", "ä", "a\n", &"x".repeat(MAX_LENGTH + 1)] {
            assert!(bad.parse::<BoxName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn rejected_names_are_shown_escaped_and_truncated() {
        let error =
            format!("\x1b[2J{}", "x".repeat(100_000)).parse::<BoxName>().map_err(|error| error.to_string());
        let text = error.expect_err("no name");
        assert!(!text.contains('\x1b') && text.len() < 400, "{text}");
    }
}
