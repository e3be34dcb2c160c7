//! Who calls an operation: an administrator, or a user whose token gives rights to the objects of one owner.

use api::{Owner, Quota, Right, UserName};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Who calls an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// The user of the Unix socket, a client with the administrator's token, or the daemon itself.
    #[default]
    Administrator,
    /// A user of a file of tokens.
    User(Arc<User>),
}

/// A user of a file of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: UserName,
    /// The owner to whose objects the rights apply.
    pub owner: Owner,
    /// What the user may do with them.
    pub rights: BTreeSet<Right>,
    /// How much the owner may have.
    pub quota: Quota,
}

impl Caller {
    /// Whether the caller has a right.
    pub fn has(&self, right: Right) -> bool {
        match self {
            Self::Administrator => true,
            Self::User(user) => user.rights.contains(&right),
        }
    }

    /// Whether the caller may see an owner's objects.
    pub fn sees(&self, owner: &Owner) -> bool {
        match self {
            Self::Administrator => true,
            Self::User(user) => user.owner == *owner,
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrator => f.write_str("administrator"),
            Self::User(user) => user.name.fmt(f),
        }
    }
}
