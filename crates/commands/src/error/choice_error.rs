//! Why a command can't choose a switch or a chain by itself.

use std::error::Error;
use std::fmt;

use api::{ChainName, SwitchName};

/// Why a command can't choose a switch or a chain by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceError {
    /// There is no steering switch.
    NoSteeringSwitch,
    /// There are several steering switches; how the command is told one of them.
    SeveralSwitches(Vec<SwitchName>, &'static str),
    /// No switch has a chain of this name.
    NoChain {
        /// The name.
        name: ChainName,
        /// A chain with a similar name.
        similar: Option<String>,
    },
    /// Several switches have a chain of this name; how the command is told one of them.
    SeveralChains(ChainName, Vec<SwitchName>, &'static str),
    /// Ports of different switches are named for one chain.
    DifferentSwitches(SwitchName, SwitchName),
}

fn listed(names: &[SwitchName]) -> String {
    names.iter().map(SwitchName::as_str).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSteeringSwitch => f.write_str("there is no steering switch"),
            Self::SeveralSwitches(names, _) => {
                write!(f, "there are several steering switches: {}", listed(names))
            }
            Self::NoChain { name, .. } => write!(f, "there is no chain {name}"),
            Self::SeveralChains(name, switches, _) => {
                write!(f, "several switches have a chain {name}: {}", listed(switches))
            }
            Self::DifferentSwitches(one, other) => {
                write!(f, "a chain belongs to one switch, not to {one} and {other}")
            }
        }
    }
}

impl Error for ChoiceError {}
