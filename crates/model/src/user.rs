//! Users of the API: what they may do, and how much.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::size::{Cores, Size};

/// What a user of the API may do. Each operation needs one of these. The rights of a user other than an administrator
/// apply to the objects of the user's owner only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See objects: their status, configurations, handlers, logs, files and events.
    Read,
    /// Start and stop boxes, write handlers, and capture packets.
    Operate,
    /// Create, change and remove objects, within a quota.
    Create,
    /// Everything: the store, devices and files of the host, and the objects of all owners. No token in a file of
    /// tokens gives this right.
    Administer,
}

impl Right {
    /// The rights that a token can give.
    pub const OF_TOKENS: [Self; 3] = [Self::Read, Self::Operate, Self::Create];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Create => "create",
            Self::Administer => "administer",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Text that is not the name of a right that a token can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RightError;

impl fmt::Display for RightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a right is read, operate or create")
    }
}

impl std::error::Error for RightError {}

impl FromStr for Right {
    type Err = RightError;

    fn from_str(text: &str) -> Result<Self, RightError> {
        Self::OF_TOKENS.into_iter().find(|right| right.name() == text).ok_or(RightError)
    }
}

/// How much an owner may have, as far as its user creates it. What is absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Number of boxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<u32>,
    /// Private memory of all boxes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// CPU time of all boxes together. A box without a limit of CPU time counts as one CPU, because it runs on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cores>,
    /// Number of switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u32>,
    /// Bytes of all uploaded files together that no configuration has yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<Size>,
}
