//! What a running box holds besides its sandbox.

use crate::processors::AffinityGuard;
use sandbox::{SystemError, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A worker that several boxes use, and the number of these boxes.
#[derive(Debug)]
pub(super) struct SharedWorker {
    pub(super) worker: Worker,
    boxes: AtomicUsize,
}

impl SharedWorker {
    /// Starts a worker without boxes. `is_considerate`: it sleeps at once when it has no work.
    pub(super) fn start(is_considerate: bool) -> Result<Arc<Self>, SystemError> {
        let worker = if is_considerate { Worker::start_considerate()? } else { Worker::start()? };
        Ok(Arc::new(Self { worker, boxes: AtomicUsize::new(0) }))
    }

    /// The number of boxes that use it.
    pub(super) fn boxes(&self) -> usize {
        self.boxes.load(Ordering::Relaxed)
    }

    /// Counts one more box, until the slot is dropped.
    pub(super) fn take_slot(self: &Arc<Self>) -> WorkerSlot {
        self.boxes.fetch_add(1, Ordering::Relaxed);
        WorkerSlot(self.clone())
    }
}

/// A box's slot on a shared worker. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct WorkerSlot(Arc<SharedWorker>);

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.0.boxes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a running box holds: nothing, a slot on a shared worker, its own worker, or its affinity to the unreserved
/// processors.
#[derive(Debug)]
pub(super) enum RunResources {
    Nothing,
    WorkerSlot { _slot: WorkerSlot },
    Worker { _worker: Worker },
    Affinity(AffinityGuard),
}
