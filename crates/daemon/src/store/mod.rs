//! The store: definitions on disk, from which a daemon restores its state after a restart.

mod boxes;
mod damage;
mod error;
mod events;
mod log;
mod operation;
mod schema;
mod set_aside;
#[cfg(test)]
mod simulation;
mod switches;

pub(crate) use boxes::{StoredBox, StoredConfiguration};
pub(crate) use damage::{Damage, EntryKind};
pub use error::StoreError;
pub(crate) use operation::{Action, OperationId, StoreChange};
pub(crate) use schema::Store;
pub(crate) use switches::{StoredStack, StoredSwitch, StoredUnconfirmed};
