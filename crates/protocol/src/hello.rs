//! The first message of every conversation.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;

/// The random number that a store gets when it is created. A daemon adopts only fabrics that bear its store's number.
pub type StoreIdentity = [u8; 16];

/// The first message in each direction of every conversation.
///
/// Its encoding is the same in all versions, so that two programs of any versions can tell that they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the conversation that the sender speaks.
    pub version: u16,
    /// The identity of the store that the sender serves.
    pub store: StoreIdentity,
}

impl Hello {
    /// Checks the other side's message against ours. Versions that are one apart work together: returns the lower one,
    /// which both sides then speak.
    pub fn agree(&self, theirs: &Hello) -> Result<u16, HelloError> {
        if self.version.abs_diff(theirs.version) > 1 {
            return Err(HelloError::Version { ours: self.version, theirs: theirs.version });
        }
        if self.store != theirs.store {
            return Err(HelloError::Store);
        }
        Ok(self.version.min(theirs.version))
    }
}

/// Why two processes cannot work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloError {
    /// Their versions are more than one apart.
    Version {
        /// The version of this process.
        ours: u16,
        /// The version of the other process.
        theirs: u16,
    },
    /// They serve different stores.
    Store,
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { ours, theirs } => {
                write!(
                    f,
                    "this process speaks version {ours} of the protocol, the other speaks version {theirs}"
                )
            }
            Self::Store => f.write_str("the other process serves another store"),
        }
    }
}

impl Error for HelloError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_one_apart_work_together() {
        let hello = |version, store| Hello { version, store: [store; 16] };
        let agree = |ours: u16, theirs: u16| hello(ours, 1).agree(&hello(theirs, 1));
        assert_eq!((agree(3, 3), agree(3, 2), agree(3, 4)), (Ok(3), Ok(2), Ok(3)));
        assert_eq!(agree(3, 1), Err(HelloError::Version { ours: 3, theirs: 1 }));
        assert_eq!(agree(0, u16::MAX), Err(HelloError::Version { ours: 0, theirs: u16::MAX }));
        assert_eq!(hello(3, 1).agree(&hello(3, 2)), Err(HelloError::Store));
    }
}
