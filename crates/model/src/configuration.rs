//! Configurations, what is wrong with them, and their handlers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handler_write::WriteEffect;
use crate::name::{ConfigurationName, UploadName};
use crate::time::Time;
use crate::value::Value;

/// A file for a configuration, for example for `FromDump(NAME)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The name of the file in the configuration. It is not a path on the host.
    pub name: String,
    /// The contents of the file.
    pub contents: Value,
}

impl File {
    /// Maximum bytes of a file with its name, and of the text of a configuration: what a request to a box can hold.
    pub const MAX_BYTES: usize = (64 << 20) - (64 << 10);
}

/// A file for a configuration that was uploaded before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadedFile {
    /// The name of the file in the configuration. It is not a path on the host.
    pub name: String,
    /// The upload that has the contents. It stays until a request that installs it succeeds, or until it expires.
    pub upload: UploadName,
}

/// A configuration to install. It replaces the configuration of the same name and takes over its state.
///
/// The daemon checks it first. If it is rejected, nothing changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// The text of the configuration, in Click's language.
    pub configuration: String,
    /// The name of the configuration in diagnostics, such as a file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files that the configuration reads. Files of the box's earlier configurations stay, unless one of these has the
    /// same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// The same for files that were uploaded before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadedFile>,
}

/// A configuration to check without running it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The text of the configuration, in Click's language.
    pub configuration: String,
    /// The name of the configuration in diagnostics, such as a file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Files that the configuration reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Files that the configuration reads and that were uploaded before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadedFile>,
    /// The number of ports of the box. Absent: the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u8>,
}

/// The result of a check. The configuration would be accepted if no diagnostic is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReply {
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The configuration cannot run.
    Error,
    /// The configuration runs, but probably not as intended.
    Warning,
    /// Information.
    Note,
}

/// A diagnostic of a configuration. `clickbox check --json` prints the same objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The name of the configuration or file, if it is known.
    #[serde(default)]
    pub file: Option<String>,
    /// The line, counted from 1.
    #[serde(default)]
    pub line: Option<u32>,
    /// The column, counted from 1.
    #[serde(default)]
    pub column: Option<u32>,
    /// The message. Quoted parts of the configuration are escaped.
    pub message: String,
    /// How to correct the configuration.
    #[serde(default)]
    pub hint: Option<String>,
    /// Related locations.
    #[serde(default)]
    pub related: Vec<Related>,
}

/// A location that is related to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    /// The name of the configuration or file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// How the location is related.
    pub message: String,
}

/// The status of an installed configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationStatus {
    /// The name of the configuration.
    pub name: ConfigurationName,
    /// When the configuration was installed or last replaced.
    pub installed: Time,
    /// Number of times that the configuration was replaced.
    pub swaps: u32,
    /// Warnings of the check.
    #[serde(default)]
    pub diagnostics: Vec<Diagnostic>,
}

/// The text of an installed configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationText {
    /// The text.
    pub configuration: String,
    /// The name of the configuration in diagnostics.
    #[serde(default)]
    pub source: Option<String>,
    /// Names of the files that were sent with it.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A handler of a box.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerInfo {
    /// The configuration that the handler belongs to.
    pub configuration: ConfigurationName,
    /// The element that the handler belongs to; empty for a handler of the router itself.
    pub element: String,
    /// The name of the handler.
    pub handler: String,
    /// Whether the handler can be read.
    pub read: bool,
    /// Whether the handler can be written.
    pub write: bool,
    /// What a write changes. Absent for a handler that can't be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<WriteEffect>,
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

/// The value of a read handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerValue {
    /// The value as the box returned it, not escaped.
    pub value: Value,
}

/// A value to write to a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerWrite {
    /// The value.
    #[serde(default)]
    pub value: Value,
}

/// The argument for a read handler that takes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandlerArgument {
    /// The argument.
    #[serde(default)]
    pub argument: Value,
}
