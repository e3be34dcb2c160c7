//! Writes to handlers that changed a configuration: what a box does beyond its definition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::name::{BoxName, ConfigurationName, StackName};
use crate::time::Time;
use crate::value::Value;

/// What a write to a handler changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteEffect {
    /// Counters or the state, or it acts once: nothing that the configuration says.
    #[default]
    Action,
    /// A value of the configuration. A later write to the same handler replaces it.
    Setting,
    /// An entry of the configuration, such as one route. Writes add up, so their order counts.
    Edit,
}

/// Who wrote a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteOrigin {
    /// A client of the API.
    #[default]
    Client,
    /// An element of the box, such as a `Script`, after the start. This is the box's own word. Nothing executes such a write again: the
    /// configuration itself repeats it.
    Box,
}

/// A write that changed the configuration of a running box, and that its definition does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedWrite {
    /// The number of the write: later writes to a box have higher numbers.
    pub number: u64,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "is_client")]
    pub origin: WriteOrigin,
    /// The configuration that the handler belongs to.
    pub configuration: ConfigurationName,
    /// The handler: `ELEMENT.HANDLER`.
    pub handler: String,
    /// The written value. Of the box's own writes the start of the last value.
    pub value: Value,
    /// How often a box wrote the handler itself, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What it changed.
    pub effect: WriteEffect,
    /// Whether the element's handler `config` shows it, so that it can be saved as text.
    #[serde(default)]
    pub in_config: bool,
    /// When it was written.
    pub time: Time,
}

/// How writes to handlers are made the definition of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Save {
    /// Whether only to tell what would change.
    #[serde(default)]
    pub preview: bool,
}

/// The text of a configuration with the writes to its handlers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    /// The text without the writes.
    pub before: String,
    /// The text with the writes.
    pub configuration: String,
    /// The name of the configuration in diagnostics.
    #[serde(default)]
    pub source: Option<String>,
    /// The handlers whose writes the new text has, in the order of the writes.
    pub saved: Vec<String>,
    /// The writes that the text can't express. They remain.
    pub left: Vec<UnsavedWrite>,
    /// The stack that the box belongs to. Its file should be changed instead.
    #[serde(default)]
    pub stack: Option<StackName>,
    /// Whether the new text is the definition of the box now.
    pub stored: bool,
}

/// A write that the text of a configuration can't express.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsavedWrite {
    /// The handler.
    pub handler: String,
    /// Why it can't be expressed.
    pub reason: String,
}

fn is_client(origin: &WriteOrigin) -> bool {
    *origin == WriteOrigin::Client
}

impl RecordedWrite {
    /// Whether an element of the box wrote it.
    pub fn is_own(&self) -> bool {
        self.origin == WriteOrigin::Box
    }

    /// The part of the handler's path after the box's name.
    pub fn path(&self) -> String {
        if self.configuration == ConfigurationName::main() {
            self.handler.clone()
        } else {
            format!("{}:{}", self.configuration, self.handler)
        }
    }

    /// The handlers that were written, each once, as the end of a sentence.
    pub fn summary(writes: &[Self]) -> String {
        /// Handlers that are named: a sentence with more is not read.
        const MAX_NAMED: usize = 8;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        writes.iter().for_each(|write| *counts.entry(write.path()).or_default() += 1);
        let others = counts.len().saturating_sub(MAX_NAMED);
        let named = counts.iter().take(MAX_NAMED).map(|(path, count)| {
            let path = crate::escape::line(path.as_bytes());
            if *count > 1 { format!("{path} ({count} times)") } else { path }
        });
        let mut text = named.collect::<Vec<_>>().join(", ");
        if others > 0 {
            text += &format!(" and {others} others");
        }
        text
    }

    /// Sentences for writes that a box no longer has because it was `how`, such as `started`. `omitted` is the number of others,
    /// which are no longer known.
    pub fn losses(name: &BoxName, how: &str, lost: &[Self], omitted: u64) -> Vec<String> {
        let (own, clients): (Vec<Self>, Vec<Self>) = lost.iter().cloned().partition(Self::is_own);
        let mut sentences = Vec::new();
        let count = clients.len() as u64 + omitted;
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            let summary = match clients.as_slice() {
                [] => "they are no longer known".into(),
                known => Self::summary(known),
            };
            sentences.push(format!(
                "box {name} was {how} without {count} earlier write{plural} to its handlers: {summary}"
            ));
        }
        if !own.is_empty() {
            let summary = Self::summary(&own);
            sentences.push(format!(
                "box {name} was {how} without what it had written to its own handlers: {summary}"
            ));
        }
        sentences
    }
}
