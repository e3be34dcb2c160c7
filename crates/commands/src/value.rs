//! Values of options that have no type of their own, and the error that their parsers share.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use api::{IpPrefixError, MacAddrError, NameError, PathError};

/// Why the value of an option is rejected. Its message follows the option's name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValueError {
    /// The value does not have this form.
    Form(&'static str),
    /// The value is not a number of seconds in this range.
    Seconds(RangeInclusive<f64>),
    /// A part of the value is not a name.
    Name(NameError),
    /// A part of the value is not a path of the API.
    Path(PathError),
    /// A part of the value is not an Ethernet address.
    Address(MacAddrError),
    /// A part of the value is not an IP address or prefix.
    Prefix(IpPrefixError),
    /// Something other than a setting follows an attachment.
    PortSetting(String),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(form) => write!(f, "expected {form}"),
            Self::Seconds(range) => {
                write!(f, "expected a number of seconds from {} to {}", range.start(), range.end())
            }
            Self::Name(error) => error.fmt(f),
            Self::Path(error) => error.fmt(f),
            Self::Address(error) => error.fmt(f),
            Self::Prefix(error) => error.fmt(f),
            Self::PortSetting(text) => {
                write!(
                    f,
                    "unexpected {text:?}: expected mac=, bind-ip=, transparent, max-frames=, max-bits=, max-broadcasts= or max-new-addresses="
                )
            }
        }
    }
}

impl Error for ValueError {
    /// The cause's own cause: the message is the cause's.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Name(error) => error.source(),
            Self::Path(error) => error.source(),
            Self::Address(error) => error.source(),
            Self::Prefix(error) => error.source(),
            Self::Form(_) | Self::Seconds(_) | Self::PortSetting(_) => None,
        }
    }
}

impl From<NameError> for ValueError {
    fn from(error: NameError) -> ValueError {
        ValueError::Name(error)
    }
}

impl From<PathError> for ValueError {
    fn from(error: PathError) -> ValueError {
        ValueError::Path(error)
    }
}

impl From<IpPrefixError> for ValueError {
    fn from(error: IpPrefixError) -> ValueError {
        ValueError::Prefix(error)
    }
}

impl From<MacAddrError> for ValueError {
    fn from(error: MacAddrError) -> ValueError {
        ValueError::Address(error)
    }
}

/// A parser for a number of seconds.
pub(crate) fn seconds(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, ValueError> + Clone + Send + Sync {
    move |text| match text.parse() {
        Ok(seconds) if range.contains(&seconds) => Ok(seconds),
        _ => Err(ValueError::Seconds(range.clone())),
    }
}

/// Parses `KEY=VALUE`; `form` describes it in the error.
pub(crate) fn pair(text: &str, form: &'static str) -> Result<(String, String), ValueError> {
    let (key, value) = text.split_once('=').ok_or(ValueError::Form(form))?;
    Ok((key.to_string(), value.to_string()))
}
