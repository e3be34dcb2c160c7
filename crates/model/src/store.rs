//! The daemon's store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreStatus {
    /// The findings of a full check of the file; empty if it is sound.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Entries that could not be read or restored and were set aside.
    #[serde(default)]
    pub set_aside: Vec<SetAsideEntry>,
}

/// An entry of the store that was set aside. Each start of the daemon tries it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAsideEntry {
    /// The number of the entry.
    pub id: i64,
    /// What it is: `box`, `switch`, `stack`, or `unconfirmed` for the previous definition of a stack.
    pub kind: String,
    /// Its name, which may be invalid. Control characters are escaped.
    pub name: String,
    /// Why it was set aside. Control characters are escaped.
    pub reason: String,
    /// When it was set aside.
    pub time: String,
}
