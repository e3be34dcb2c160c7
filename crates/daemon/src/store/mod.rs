//! The store: definitions on disk, from which a daemon restores its state after a restart.

mod audit;
mod boxes;
mod change;
mod damage;
mod entries;
mod error;
mod events;
mod images;
mod log;
mod maintenance;
mod operation;
mod port_numbers;
mod reserve;
mod schema;
mod set_aside;
#[cfg(test)]
mod simulation;
mod switches;
mod writes;

pub(crate) use change::{Action, Interrupted, OperationId, StoreChange};
pub(crate) use damage::{Damage, EntryKind};
pub(crate) use entries::{
    StoredBox, StoredChain, StoredConfiguration, StoredFlow, StoredFlows, StoredInstance, StoredService,
    StoredStack, StoredSteering, StoredSwitch, StoredUnconfirmed,
};
pub use error::StoreError;
pub(crate) use schema::{DRAINING, SCHEMA_VERSION, Store};
