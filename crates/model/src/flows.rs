//! Flows of steering switches.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{ChainName, NameError, PortName};
use crate::text::as_text;

/// The name of the condition of a flow in diagnostics, as if it were a file.
pub const CONDITION: &str = "condition";

/// The priority of a flow with a condition, unless it states another. The middle of the range, as in OpenFlow.
const DEFAULT_PRIORITY: u16 = 0x8000;

/// Where a flow sends its packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FlowOutput {
    /// To a port of the switch.
    Port(PortName),
    /// Through a chain of services of the switch.
    Chain(ChainName),
    /// As a learning switch forwards them.
    Normal,
    /// To all ports except the one that the packet came from.
    Flood,
    /// To no port.
    Drop,
}

/// Text that is not the output of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowOutputError {
    /// It names a service.
    Service,
    /// It has another form, or a part of it is not a name.
    Form(NameError),
}

impl fmt::Display for FlowOutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forms = "the output of a flow is a port's name, chain:NAME, normal, flood or drop";
        match self {
            Self::Service => {
                write!(f, "{forms}, and no service: create a chain of the service, and name that")
            }
            Self::Form(error) => write!(f, "{forms}: {error}"),
        }
    }
}

impl std::error::Error for FlowOutputError {}

impl From<NameError> for FlowOutputError {
    fn from(error: NameError) -> Self {
        Self::Form(error)
    }
}

impl FromStr for FlowOutput {
    type Err = FlowOutputError;

    fn from_str(text: &str) -> Result<Self, FlowOutputError> {
        Ok(match text {
            "normal" => Self::Normal,
            "flood" => Self::Flood,
            "drop" => Self::Drop,
            name => match name.split_once(':') {
                Some(("chain", chain)) => Self::Chain(chain.parse()?),
                Some(("port", port)) => Self::Port(port.parse()?),
                Some(("service", _)) => return Err(FlowOutputError::Service),
                _ => Self::Port(name.parse()?),
            },
        })
    }
}

impl fmt::Display for FlowOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(name) if matches!(name.as_str(), "normal" | "flood" | "drop") => {
                write!(f, "port:{name}")
            }
            Self::Port(name) => name.fmt(f),
            Self::Chain(name) => write!(f, "chain:{name}"),
            Self::Normal => f.pad("normal"),
            Self::Flood => f.pad("flood"),
            Self::Drop => f.pad("drop"),
        }
    }
}

as_text!(
    FlowOutput,
    "FlowOutput",
    "^((port|chain):)?[a-z0-9][a-z0-9._-]{0,62}$",
    "Where a flow sends its packets: the name of a port, `chain:NAME` (through a chain of services), `normal` (as a learning switch forwards them), `flood` (to all other ports), or `drop`. A port with one of these names is written `port:NAME`."
);

/// A flow to add to a steering switch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddFlow {
    /// The condition on its packets: an expression of `IPClassifier`, such as `tcp dst port 80 or 443`. Absent: all
    /// packets.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The port that its packets come from. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<PortName>,
    /// Where its packets go.
    pub output: FlowOutput,
    /// A packet belongs to the flow with the highest priority that it matches; of equal ones, to the one that was added first.
    /// Absent: 32768, or 0 for a flow without `match` and `in_port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Seconds without packets after which the flow ends. A flow with a timeout is not stored: it ends with the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u32>,
    /// Seconds after which the flow ends. A flow with a timeout is not stored: it ends with the fabric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
}

impl AddFlow {
    /// The priority that the flow has.
    pub fn effective_priority(&self) -> u16 {
        let default = match (&self.condition, &self.in_port) {
            (None, None) => 0,
            _ => DEFAULT_PRIORITY,
        };
        self.priority.unwrap_or(default)
    }

    /// The flow with the priority that it has.
    pub fn with_priority(&self) -> Self {
        Self { priority: Some(self.effective_priority()), ..self.clone() }
    }

    /// Whether the flow has a timeout, so that it is not stored.
    pub fn is_temporary(&self) -> bool {
        self.idle_seconds.is_some() || self.timeout_seconds.is_some()
    }
}

impl fmt::Display for AddFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.condition {
            Some(text) => write!(f, "{text:?}")?,
            None => f.write_str("all packets")?,
        }
        if let Some(port) = &self.in_port {
            write!(f, " from {port}")?;
        }
        write!(f, " to {}, priority {}", self.output, self.effective_priority())
    }
}

/// A flow of a steering switch, with its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowStatus {
    /// Its number in the switch.
    pub id: u64,
    /// Its definition, with its priority.
    #[serde(flatten)]
    pub flow: AddFlow,
    /// Packets that it matched, since it was added to the present fabric.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Seconds since it was added to the present fabric.
    pub age_seconds: u64,
    /// Seconds since its last packet, or since it was added.
    pub unused_seconds: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_ports_or_words() {
        for (text, expected) in [
            ("normal", FlowOutput::Normal),
            ("drop", FlowOutput::Drop),
            ("flood", FlowOutput::Flood),
            ("wan0", FlowOutput::Port("wan0".parse().unwrap())),
            ("port:drop", FlowOutput::Port("drop".parse().unwrap())),
            ("chain:web", FlowOutput::Chain("web".parse().unwrap())),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        }
        let refused = |text: &str| text.parse::<FlowOutput>().unwrap_err().to_string();
        let forms = "the output of a flow is a port's name, chain:NAME, normal, flood or drop";
        assert!(refused("Wan 0").starts_with(&format!("{forms}: \"Wan 0\" is not a valid name")));
        assert_eq!(
            refused("service:ids"),
            format!("{forms}, and no service: create a chain of the service, and name that")
        );
    }

    #[test]
    fn a_flow_for_all_packets_has_the_lowest_priority() {
        let flow = |text: &str| serde_json::from_str::<AddFlow>(text).unwrap().effective_priority();
        assert_eq!(flow(r#"{"output": "normal"}"#), 0);
        assert_eq!(flow(r#"{"output": "normal", "match": "tcp"}"#), 0x8000);
        assert_eq!(flow(r#"{"output": "normal", "in_port": "a"}"#), 0x8000);
        assert_eq!(flow(r#"{"output": "normal", "priority": 7}"#), 7);
    }
}
