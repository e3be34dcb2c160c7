//! Stacks: sets of boxes and switches that are made, changed and removed together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boxes::CreateBox;
use crate::name::{BoxName, StackName, SwitchName};
use crate::switches::CreateSwitch;
use crate::time::Time;

/// What a stack is to be. Files of the caller are in it by their contents, chains and pipes as attachments of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// Its switches, made before its boxes.
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
    /// Seconds after which everything is made again as it was, unless the stack is confirmed; without it the stack
    /// stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_within: Option<u32>,
}

/// What was changed, or would be, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The changes; none: everything is as it is to be.
    pub changes: Vec<Change>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What is done.
    pub action: ChangeAction,
    /// What it is done to: `box/NAME`, `switch/NAME`, `switch/NAME/PORT`.
    pub subject: String,
    /// What differs, in words, such as `memory 8M -> 16M`; several are separated by semicolons.
    #[serde(default)]
    pub detail: String,
}

/// What is done to a thing when a stack is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    /// It is made.
    Create,
    /// Its configuration is swapped, its state carried over: no packet is lost.
    Reload,
    /// It is changed while it goes on, as its weight.
    Change,
    /// It is removed and made anew: its state is lost, as when its memory or ports change.
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
    /// When it is taken back unless it is confirmed; none: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_until: Option<Time>,
    /// Its boxes.
    pub boxes: Vec<BoxName>,
    /// Its switches.
    pub switches: Vec<SwitchName>,
}
