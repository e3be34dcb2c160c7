//! The audit log: who changed what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::Owner;
use crate::time::Time;

/// An entry of the audit log: a request that changes something, or that only an administrator may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// The number of the entry. Numbers increase by one.
    pub sequence: u64,
    /// When the request was answered.
    pub time: Time,
    /// The name of the user, or `administrator`.
    pub user: String,
    /// The owner for whose objects the user has rights. Absent for an administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Where the request came from: `uid 1000` at the Unix socket, or an address.
    pub peer: String,
    /// The name of the operation.
    pub operation: String,
    /// What it was about, such as `box/fw`; empty if it was about the daemon.
    pub object: String,
    /// Further parts of the request, such as the handler and the beginning of the value that was written. Escaped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// `done`, the code of the error, or `unanswered` if the daemon ended first. Then the operation may have been carried
    /// out.
    pub result: String,
}

/// Which entries of the audit log to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Whether to wait for new entries.
    #[serde(default)]
    pub follow: bool,
    /// The number of the last entry that the client already has. Absent: return all entries that are in memory, or with
    /// `follow` only new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}
