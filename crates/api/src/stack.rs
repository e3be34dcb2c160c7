//! Stacks: sets of boxes and switches that are created, changed and removed together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::CreateBox;
use crate::name::{BoxName, StackName, SwitchName};
use crate::switches::CreateSwitch;
use crate::time::Time;

/// The definition of a stack. It contains files with their contents; chains and pipes are attachments of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Its switches, which are created before its boxes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<CreateSwitch>,
    /// Its boxes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<CreateBox>,
}

/// How a stack is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyQuery {
    /// Seconds after which the stack is rolled back unless it is confirmed; absent: it needs no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u32>,
}

/// The changes that were made, or would be, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The changes; empty when everything matches the definition.
    pub changes: Vec<Change>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The action.
    pub action: ChangeAction,
    /// Its subject: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`.
    pub subject: String,
    /// What differs, in words, such as `memory 8M -> 16M`; several are separated by semicolons.
    #[serde(default)]
    pub detail: String,
}

/// The action on a box, switch or port when a stack is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// It is created.
    Create,
    /// Its configuration is replaced, with its state and without packet loss.
    Reload,
    /// It is changed while it runs, for example its weight.
    Change,
    /// It is removed and created again, for example for other memory or ports. Its state is lost.
    Replace,
    /// It is removed.
    Remove,
}

/// A stack that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackStatus {
    /// Its name.
    pub name: StackName,
    /// When it was last applied.
    pub applied: Time,
    /// When it is rolled back unless it is confirmed; absent: it needs no confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_until: Option<Time>,
    /// Its boxes.
    pub boxes: Vec<BoxName>,
    /// Its switches.
    pub switches: Vec<SwitchName>,
}
