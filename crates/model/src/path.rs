//! Paths: a handler in a box, a capture point, the attachment of a port.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{BoxName, ConfigurationName, NameError, PipeName, PortName, SwitchName};
use crate::text::as_text;

/// Text that is not a valid path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// One of its names is invalid.
    Name(NameError),
    /// It does not have the expected form.
    Form {
        /// The expected form, with an example.
        wanted: &'static str,
    },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Form { wanted } => write!(f, "expected {wanted}"),
        }
    }
}

impl std::error::Error for PathError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The message of this error is the name error's.
            Self::Name(error) => std::error::Error::source(error),
            Self::Form { .. } => None,
        }
    }
}

impl From<NameError> for PathError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// A handler of a box: `box/element.handler`, or `box/configuration:element.handler` for a configuration other than
/// `main`. `box/handler` is a handler of the router itself, such as `box/list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerPath {
    /// The box.
    pub name: BoxName,
    /// The configuration.
    pub configuration: ConfigurationName,
    /// `element.handler`. Names of elements in compound elements contain slashes.
    pub handler: String,
}

impl HandlerPath {
    /// The handler of a box from the path after the box's name: `element.handler` or `configuration:element.handler`.
    ///
    /// # Errors
    ///
    /// The configuration's name is invalid, or the handler is empty.
    pub fn of(name: BoxName, rest: &str) -> Result<Self, PathError> {
        // Element names contain no colons.
        let (configuration, handler) = match rest.split_once(':') {
            Some((configuration, handler)) => (configuration.parse()?, handler),
            None => (ConfigurationName::main(), rest),
        };
        if handler.is_empty() || handler.chars().any(char::is_control) {
            return Err(PathError::Form {
                wanted: "a handler as in fw/counter.count, or fw/config:counter.count,",
            });
        }
        Ok(Self { name, configuration, handler: handler.to_string() })
    }

    /// The path after the box's name, as in the handler's URL: see [`of`](Self::of).
    pub fn rest(&self) -> String {
        if self.configuration == ConfigurationName::main() {
            self.handler.clone()
        } else {
            format!("{}:{}", self.configuration, self.handler)
        }
    }
}

impl FromStr for HandlerPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let (name, rest) = text.split_once('/').unwrap_or((text, ""));
        Self::of(name.parse()?, rest)
    }
}

impl fmt::Display for HandlerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.rest())
    }
}

/// What a port of a box is attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Attachment {
    /// Nothing, written `-`. Packets sent there are dropped and counted. The port can be attached to a switch later.
    #[default]
    Nothing,
    /// A switch, written as its name. The switch gets a port `BOX.N`, where N is the number of the box's port.
    Switch(SwitchName),
    /// A pipe, written `pipe:NAME`. It connects two ports: what one box sends, the other receives. The first box that
    /// names the pipe creates it, the second one takes the other end, and a third is refused. Both must have the same
    /// owner.
    Pipe(PipeName),
}

impl FromStr for Attachment {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Ok(match text.strip_prefix("pipe:") {
            Some(pipe) => Self::Pipe(pipe.parse()?),
            None if text == "-" => Self::Nothing,
            None => Self::Switch(text.parse()?),
        })
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::Switch(name) => name.fmt(f),
            Self::Pipe(name) => write!(f, "pipe:{name}"),
        }
    }
}

as_text!(
    Attachment,
    "Attachment",
    "^(-|(pipe:)?[a-z0-9][a-z0-9._-]{0,62})$",
    "What a port of a box is attached to: the name of a switch, pipe:NAME, or - for nothing."
);

/// A port to capture packets at: `box:N` for port N of a box, or `switch/port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// A port of a box.
    Box(BoxName, u8),
    /// A port of a switch.
    Switch(SwitchName, PortName),
}

impl FromStr for CapturePoint {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if let Some((name, port)) = text.split_once('/') {
            return Ok(Self::Switch(name.parse()?, port.parse()?));
        }
        let wanted = PathError::Form { wanted: "a port as in fw:0 or lan/tap0" };
        let (name, port) = text.split_once(':').ok_or(wanted.clone())?;
        Ok(Self::Box(name.parse()?, port.parse().map_err(|_| wanted)?))
    }
}

impl fmt::Display for CapturePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Box(name, port) => write!(f, "{name}:{port}"),
            Self::Switch(name, port) => write!(f, "{name}/{port}"),
        }
    }
}

as_text!(
    CapturePoint,
    "CapturePoint",
    "^[a-z0-9][a-z0-9._-]{0,62}(:[0-9]+|/[a-z0-9][a-z0-9._-]{0,62})$",
    "Where packets are captured: BOX:N, the N-th port of a box, or SWITCH/PORT."
);

/// Where to capture packets, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureQuery {
    /// The port.
    pub port: CapturePoint,
    /// The maximum number of bytes to keep of each packet. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snap: Option<u32>,
    /// The number of packets after which the capture ends. Absent: it ends when the client disconnects or the port is
    /// removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text and asserts that it prints the same again.
    fn same<T: FromStr<Err = PathError> + fmt::Display>(text: &str) -> T {
        let path: T = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(path.to_string(), text);
        path
    }

    #[test]
    fn handler_paths_are_parsed() {
        let path: HandlerPath = same("fw/inner/c.count");
        assert_eq!((path.configuration, path.handler.as_str()), (ConfigurationName::main(), "inner/c.count"));
        let path: HandlerPath = same("fw/second:c.count");
        assert_eq!((path.configuration.as_str(), path.handler.as_str()), ("second", "c.count"));
        same::<HandlerPath>("fw/list");
        for bad in ["", "fw", "fw/", "/c.count", "FW/c.count", "fw/:c", "fw/second:", "fw/a\nb"] {
            assert!(bad.parse::<HandlerPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn capture_points_and_attachments_are_parsed() {
        assert!(matches!(same("fw:3"), CapturePoint::Box(_, 3)));
        assert!(matches!(same("lan/tap0"), CapturePoint::Switch(..)));
        for bad in ["", "fw", "fw:", "fw:x", "fw:256", "lan/", "/tap0", "a/b/c"] {
            assert!(bad.parse::<CapturePoint>().is_err(), "{bad}");
        }
        assert_eq!(same::<Attachment>("-"), Attachment::Nothing);
        assert!(matches!(same("lan"), Attachment::Switch(_)));
        assert!(matches!(same("pipe:a"), Attachment::Pipe(_)));
        for bad in ["", "pipe:", "tap:x", "--"] {
            assert!(bad.parse::<Attachment>().is_err(), "{bad}");
        }
    }
}
