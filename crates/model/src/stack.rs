//! Stacks: sets of boxes and switches that are created, changed and removed together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::CreateBox;
use crate::handler_write::RecordedWrite;
use crate::name::{BoxName, Owner, StackName, SwitchName};
use crate::services::{CreateChain, CreateService};
use crate::switches::{AddPort, CreateSwitch};
use crate::time::Time;

/// The definition of a stack. It includes all configurations and files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// The owner of the stack. Boxes and switches state their own owners; a stack file lets them inherit this one.
    #[serde(default)]
    pub owner: Owner,
    /// The switches. They are created before the boxes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<CreateSwitch>,
    /// The boxes. Their ports define how they are connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<CreateBox>,
    /// Switches that must exist, and that the stack uses but neither creates nor removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalSwitch>,
    /// The services at its switches and at those that it uses. They are created after the boxes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<CreateService>,
    /// The chains of these services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<CreateChain>,
}

/// A switch that a stack uses, but that does not belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalSwitch {
    /// The name of the switch.
    pub name: SwitchName,
    /// The ports that the stack adds to it, and removes with itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<AddPort>,
}

/// How a stack is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyQuery {
    /// Seconds after which the stack is rolled back unless it is confirmed. Absent: no confirmation is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u32>,
    /// Whether to remove switches that others use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// How something is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveQuery {
    /// Whether to remove it even if it is in use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

impl RemoveQuery {
    /// Removes it even if it is in use.
    pub const FORCE: Self = Self { force: true };
}

/// The changes that were made, or would be made, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The changes; empty if everything matches the definition.
    pub changes: Vec<Change>,
    /// Ports at the stack's switches that are not part of the stack, as `switch/NAME/PORT`. They stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<String>,
    /// Boxes of the stack that do something else than their definition says, because of writes to their handlers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// Writes to handlers that boxes no longer have because they were replaced: the new definition does not keep writes, or
    /// the new box refused these, because it has no such element or handler, for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Drift>,
}

/// The difference between what a box does and its definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// The box.
    pub name: BoxName,
    /// Writes to its handlers that changed the configuration, in order.
    pub writes: Vec<RecordedWrite>,
}

/// A change of a box, a switch or a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The action.
    pub action: ChangeAction,
    /// What is changed: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`, `service/NAME` or `chain/SWITCH/NAME`.
    pub subject: String,
    /// The differences, such as `memory 8M -> 16M`, separated by semicolons.
    #[serde(default)]
    pub detail: String,
}

/// What is done to a box, a switch or a port when a stack is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// Create it.
    Create,
    /// Replace its configuration. The new one takes over the state; no packets are lost.
    Reload,
    /// Change it while it runs, for example its weight.
    Change,
    /// Remove it and create it again, for example with more memory. Its state is lost.
    Replace,
    /// Remove it.
    Remove,
}

/// The status of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackStatus {
    /// The name of the stack.
    pub name: StackName,
    /// The owner of the stack.
    #[serde(default)]
    pub owner: Owner,
    /// When the stack was last applied.
    pub applied: Time,
    /// When the stack is rolled back unless it is confirmed. Absent: it needs no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_until: Option<Time>,
    /// The boxes of the stack.
    pub boxes: Vec<BoxName>,
    /// The switches of the stack.
    pub switches: Vec<SwitchName>,
}
