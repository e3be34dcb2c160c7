//! Packet pools: one per owner, for the boxes and functions that share packets.

use model::{Attachment, CreateBox, Owner};
use sandbox::{CreateError, PacketPool};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The pools in use. A pool is freed when its last member ends; the next one gets another pool.
#[derive(Debug, Default)]
pub(super) struct Pools(Mutex<BTreeMap<Owner, Weak<PacketPool>>>);

impl Pools {
    /// The pool for a box: its owner's, if the box shares packets. Boxes at a pipe always do.
    pub(super) fn of(&self, definition: &CreateBox) -> Result<Option<Arc<PacketPool>>, CreateError> {
        shares_packets(definition).then(|| self.of_owner(&definition.owner)).transpose()
    }

    /// The pool of an owner.
    pub(super) fn of_owner(&self, owner: &Owner) -> Result<Arc<PacketPool>, CreateError> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, pool| pool.strong_count() > 0);
        let entry = pools.entry(owner.clone()).or_default();
        if let Some(pool) = entry.upgrade() {
            return Ok(pool);
        }
        let pool = PacketPool::new()?;
        *entry = Arc::downgrade(&pool);
        Ok(pool)
    }
}

/// Whether a box's packets are in a shared pool.
pub(super) fn shares_packets(definition: &CreateBox) -> bool {
    definition.share_packets || is_piped(definition)
}

/// Whether one of the box's ports is at a pipe.
pub(super) fn is_piped(definition: &CreateBox) -> bool {
    definition.ports.iter().any(|port| matches!(port.attach, Attachment::Pipe(_)))
}
