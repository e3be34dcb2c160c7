//! What an event, a change or an error is about.

use crate::{BoxName, ChainName, PortName, ServiceName, StackName, SwitchName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An object of the daemon. As text it is its kind and its name: `box/fw`, `switch/lan/tap0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// The daemon itself.
    Daemon,
    /// A box.
    Box(BoxName),
    /// A switch.
    Switch(SwitchName),
    /// A port of a switch.
    Port(SwitchName, PortName),
    /// A stack.
    Stack(StackName),
    /// A service.
    Service(ServiceName),
    /// A chain of services of a switch.
    Chain(SwitchName, ChainName),
}

impl Subject {
    /// Its kind in a sentence.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Box(_) => "box",
            Self::Switch(_) => "switch",
            Self::Port(..) => "port",
            Self::Stack(_) => "stack",
            Self::Service(_) => "service",
            Self::Chain(..) => "chain",
        }
    }

    /// Its name in a sentence. The daemon has none.
    pub fn name(&self) -> String {
        match self {
            Self::Daemon => String::new(),
            Self::Box(name) => name.to_string(),
            Self::Switch(name) => name.to_string(),
            Self::Port(switch, port) => format!("{switch}/{port}"),
            Self::Stack(name) => name.to_string(),
            Self::Service(name) => name.to_string(),
            Self::Chain(switch, chain) => format!("{switch}/{chain}"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon => f.write_str("daemon"),
            Self::Box(name) => write!(f, "box/{name}"),
            Self::Switch(name) => write!(f, "switch/{name}"),
            Self::Port(switch, port) => write!(f, "switch/{switch}/{port}"),
            Self::Stack(name) => write!(f, "stack/{name}"),
            Self::Service(name) => write!(f, "service/{name}"),
            Self::Chain(switch, chain) => write!(f, "chain/{switch}/{chain}"),
        }
    }
}

/// Text that is not the name of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectError;

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object is `daemon`, or its kind and its name: `box/fw`, `switch/lan/tap0`")
    }
}

impl std::error::Error for SubjectError {}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts.as_slice() {
            ["daemon"] => Some(Self::Daemon),
            ["box", name] => name.parse().ok().map(Self::Box),
            ["switch", name] => name.parse().ok().map(Self::Switch),
            ["switch", switch, port] => {
                switch.parse().ok().zip(port.parse().ok()).map(|(switch, port)| Self::Port(switch, port))
            }
            ["stack", name] => name.parse().ok().map(Self::Stack),
            ["service", name] => name.parse().ok().map(Self::Service),
            ["chain", switch, chain] => {
                switch.parse().ok().zip(chain.parse().ok()).map(|(switch, chain)| Self::Chain(switch, chain))
            }
            _ => None,
        }
        .ok_or(SubjectError)
    }
}

impl From<&BoxName> for Subject {
    fn from(name: &BoxName) -> Self {
        Self::Box(name.clone())
    }
}

impl From<&SwitchName> for Subject {
    fn from(name: &SwitchName) -> Self {
        Self::Switch(name.clone())
    }
}

impl From<(&SwitchName, &PortName)> for Subject {
    fn from((switch, port): (&SwitchName, &PortName)) -> Self {
        Self::Port(switch.clone(), port.clone())
    }
}

impl From<&StackName> for Subject {
    fn from(name: &StackName) -> Self {
        Self::Stack(name.clone())
    }
}

impl From<&ServiceName> for Subject {
    fn from(name: &ServiceName) -> Self {
        Self::Service(name.clone())
    }
}

impl From<(&SwitchName, &ChainName)> for Subject {
    fn from((switch, chain): (&SwitchName, &ChainName)) -> Self {
        Self::Chain(switch.clone(), chain.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_parsed_as_they_are_printed() {
        let all = [
            "daemon",
            "box/fw",
            "switch/lan",
            "switch/lan/tap0",
            "stack/edge",
            "service/ids",
            "chain/lan/web",
        ];
        for text in all {
            assert_eq!(text.parse::<Subject>().unwrap().to_string(), text);
        }
        for text in ["", "box", "box/", "box/a/b", "pipe/a", "switch/lan/tap0/1"] {
            assert!(text.parse::<Subject>().is_err(), "{text}");
        }
    }
}
