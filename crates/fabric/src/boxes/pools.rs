//! Packet pools: one per owner and kind of sandbox, for the boxes that share packets.

use model::{Attachment, CreateBox, Owner};
use sandbox::{CreateError, PacketPool, SandboxKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The pools in use. A pool is freed when its last box ends.
#[derive(Debug, Default)]
pub(super) struct Pools(Mutex<BTreeMap<(Owner, SandboxKind), Weak<PacketPool>>>);

impl Pools {
    /// The pool for a box: its owner's, if the box shares packets. Boxes at a pipe always do.
    pub(super) fn of(
        &self,
        definition: &CreateBox,
        kind: SandboxKind,
    ) -> Result<Option<Arc<PacketPool>>, CreateError> {
        if !shares_packets(definition) {
            return Ok(None);
        }
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, pool| pool.strong_count() > 0);
        let entry = pools.entry((definition.owner.clone(), kind)).or_default();
        if let Some(pool) = entry.upgrade() {
            return Ok(Some(pool));
        }
        let pool = PacketPool::new(kind)?;
        *entry = Arc::downgrade(&pool);
        Ok(Some(pool))
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
