//! What an event, a change or an error is about.

use api::{BoxName, PortName, StackName, SwitchName};
use std::fmt;

/// An object of the daemon. As text it is its kind and its name: `box/fw`, `switch/lan/tap0`.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

impl Subject {
    /// Its kind in a sentence.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Box(_) => "box",
            Self::Switch(_) => "switch",
            Self::Port(..) => "port",
            Self::Stack(_) => "stack",
        }
    }

    /// Its name in a sentence. The daemon has none.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Daemon => String::new(),
            Self::Box(name) => name.to_string(),
            Self::Switch(name) => name.to_string(),
            Self::Port(switch, port) => format!("{switch}/{port}"),
            Self::Stack(name) => name.to_string(),
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
        }
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
