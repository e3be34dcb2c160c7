//! Configurations, what is wrong with them, and their handlers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::ConfigurationName;
use crate::time::Time;
use crate::value::Value;

/// A file that is shipped with a configuration: what `FromDump(NAME)` in it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name as the configuration has it. It is a name in the box, never a path of the host.
    pub name: String,
    /// Its contents.
    pub contents: Value,
}

/// Runs a configuration in a box: installs it, or swaps it for the one that has its name, whose state is carried over.
///
/// It is checked first; if it is refused nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The text in Click's language.
    pub configuration: String,
    /// What the text is called in diagnostics, such as the name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for it. Those of an earlier configuration of the box stay, unless they have the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
}

/// Checks a configuration without running it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The text in Click's language.
    pub configuration: String,
    /// What the text is called in diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Ports that the box would have; without it any that the configuration names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u8>,
}

/// What a check found. The configuration would be accepted if none of it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReply {
    /// All that was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The configuration can't run.
    Error,
    /// It runs, but probably not as it is meant.
    Warning,
    /// Something to know.
    Note,
}

/// Something about a configuration that its author should know. The same as an entry of `clickbox check --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What the text is called that it is about, where that is known.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(default)]
    pub column: Option<u32>,
    /// What it is; escaped, since texts of a configuration are in it.
    pub message: String,
    /// What could be done.
    #[serde(default)]
    pub hint: Option<String>,
    /// Other places that have to do with it.
    #[serde(default)]
    pub related: Vec<Related>,
}

/// Another place that has to do with a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    /// What the text is called.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What it has to do with it.
    pub message: String,
}

/// A configuration that runs in a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationStatus {
    /// Its name.
    pub name: ConfigurationName,
    /// When it was installed or last swapped.
    pub installed: Time,
    /// How often it was swapped.
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
    /// What it is called in diagnostics.
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
    /// What stands behind the box's name in the handler's path.
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

/// What a read handler returned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerValue {
    /// The value as the box gave it: nothing in it is escaped.
    pub value: Value,
}

/// What a write handler is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerWrite {
    /// The value.
    #[serde(default)]
    pub value: Value,
}

/// What a read handler is asked, for handlers that take an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerArgument {
    /// The argument.
    #[serde(default)]
    pub argument: Value,
}
