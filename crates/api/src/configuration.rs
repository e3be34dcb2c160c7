//! Configurations, what is wrong with them, and their handlers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::ConfigurationName;
use crate::time::Time;
use crate::value::Value;

/// A file that is sent with a configuration, for example for `FromDump(NAME)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name in the configuration. It is a name inside the box, never a path of the host.
    pub name: String,
    /// Its contents.
    pub contents: Value,
}

/// A configuration to install. It replaces the one of the same name, whose state it takes over.
///
/// It is checked first. If it is rejected, nothing changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The text in Click's language.
    pub configuration: String,
    /// The name of the text in diagnostics, such as its file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for it. Files of the box's earlier configurations stay, unless one of these has the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
}

/// A configuration to check without running it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The text in Click's language.
    pub configuration: String,
    /// The name of the text in diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// The number of ports that the box would have; absent: as many as a box may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u8>,
}

/// The result of a check. The configuration would be accepted if no diagnostic is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReply {
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// Its severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The configuration can't run.
    Error,
    /// The configuration runs, but probably not as intended.
    Warning,
    /// Information.
    Note,
}

/// A diagnostic of a configuration, the same as an entry of `clickbox check --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The name of the text, where it is known.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default)]
    pub column: Option<u32>,
    /// The message. It may quote the configuration, so it is escaped.
    pub message: String,
    /// How to correct it.
    #[serde(default)]
    pub hint: Option<String>,
    /// Related locations.
    #[serde(default)]
    pub related: Vec<Related>,
}

/// A location that is related to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    /// The name of the text.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// How it is related.
    pub message: String,
}

/// A configuration that runs in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationStatus {
    /// Its name.
    pub name: ConfigurationName,
    /// When it was installed or last replaced.
    pub installed: Time,
    /// How often it was replaced.
    pub swaps: u32,
    /// Warnings of its check.
    #[serde(default)]
    pub diagnostics: Vec<Diagnostic>,
}

/// The text of a configuration as it was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationText {
    /// The text.
    pub configuration: String,
    /// Its name in diagnostics.
    #[serde(default)]
    pub source: Option<String>,
    /// Names of the files that came with it.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A handler that a box has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerInfo {
    /// The configuration.
    pub configuration: ConfigurationName,
    /// The element; empty for a handler of the router itself.
    pub element: String,
    /// The handler's name.
    pub handler: String,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
}

impl HandlerInfo {
    /// The part of the handler's path after the box's name.
    pub fn path(&self) -> String {
        let handler = match self.element.as_str() {
            "" => self.handler.clone(),
            element => format!("{element}.{}", self.handler),
        };
        if self.configuration == ConfigurationName::main() {
            handler
        } else {
            format!("{}:{handler}", self.configuration)
        }
    }
}

/// The reply of a read handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerValue {
    /// The value as the box returned it, not escaped.
    pub value: Value,
}

/// The value for a write handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerWrite {
    /// The value.
    #[serde(default)]
    pub value: Value,
}

/// The argument of a read handler that takes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerArgument {
    /// The argument.
    #[serde(default)]
    pub argument: Value,
}
