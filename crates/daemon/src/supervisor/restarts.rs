//! Starts the boxes of a fabric that is brought to the stored state.

use super::lifecycle::Boot;
use super::managed_box::ManagedBox;
use super::parallel::in_parallel;
use super::state::Supervisor;
use api::CreateBox;
use protocol::fabric::BoxInventory;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A box that may have to be started, with what the fabric had of it.
pub(super) type ToStart = (Arc<ManagedBox>, Option<BoxInventory>);

impl Supervisor {
    /// Starts the boxes that are to run, and stops those that are not.
    pub(super) fn start_all(&self, boxes: Vec<ToStart>) {
        let kinds: Vec<Option<u64>> = match boxes.len() {
            0 | 1 => vec![None; boxes.len()],
            _ => boxes.iter().map(|(managed, _)| self.kind(managed)).collect(),
        };
        let mut counts = HashMap::<u64, usize>::new();
        for kind in kinds.iter().flatten() {
            *counts.entry(*kind).or_default() += 1;
        }
        let has_equals = |kind: &Option<u64>| kind.is_some_and(|kind| counts.get(&kind) > Some(&1));
        let boxes: Vec<_> = boxes.into_iter().zip(kinds.iter().map(has_equals)).collect();
        in_parallel(boxes, |((managed, found), has_equals)| {
            if found.as_ref().is_some_and(|found| found.last_write > 0) {
                self.store_writes(&managed.name);
            }
            let how = Boot { restore: true, replay: false, has_equals };
            self.start_wanted(&managed, found.map(|found| found.phase), how);
        });
    }

    /// A number that boxes with equal sizes, images and texts have in common. Only a hint: others may have it too. `None` if the box is
    /// not to run.
    fn kind(&self, managed: &ManagedBox) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        {
            let inner = managed.inner();
            let CreateBox { memory, ring, ports, .. } = &inner.definition;
            let image = inner.definition.image_digest().map(|image| image.0);
            inner.running.then(|| (memory.0, u32::from(*ring), ports.len(), image).hash(&mut hasher))?;
        }
        for stored in self.0.store().configurations(&managed.name).ok()? {
            stored.text.hash(&mut hasher);
        }
        Some(hasher.finish())
    }
}
