//! What a program says about itself before it replaces a daemon.

use crate::store::SCHEMA_VERSION;
use serde::{Deserialize, Serialize};

/// What a program says about itself before it replaces a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramDescription {
    /// Its version.
    pub version: String,
    /// The version of the protocol that it speaks with fabrics. It also speaks the one before.
    pub fabric_protocol: u16,
    /// The version of the protocol that it speaks with launchers. It also speaks the one before.
    pub launcher_protocol: u16,
    /// The format of its store. It also reads all earlier ones.
    pub store_format: i64,
}

impl ProgramDescription {
    /// The description of this program.
    pub fn own() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            fabric_protocol: protocol::fabric::VERSION,
            launcher_protocol: protocol::launcher::VERSION,
            store_format: SCHEMA_VERSION,
        }
    }
}
