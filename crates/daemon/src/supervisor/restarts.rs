//! Starts the boxes of a fabric that is brought to the stored state.
//!
//! A few boxes are ordered together, and several such orders at the same time. Configurations that boxes of an order have in
//! common are sent once.

use super::lifecycle::version;
use super::managed_box::ManagedBox;
use super::parallel::{THREADS, in_parallel};
use super::state::Supervisor;
use crate::error::OperationError;
use crate::fabric::FabricLink;
use crate::store::StoreError;
use api::{CreateBox, RecordedWrite};
use parking_lot::MutexGuard;
use protocol::fabric::{
    BoxInventory, BoxStart, Configuration, ConfigurationVersion, FabricError, Phase, orders,
};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A box that may have to be started, with what the fabric had of it.
pub(super) type ToStart = (Arc<ManagedBox>, Option<BoxInventory>);

/// Most boxes of an order. They are started one after the other, and wait for each other's changes.
const MAX_BOXES_OF_ORDER: usize = 8;

/// A box that is ordered to start. It cannot be changed meanwhile.
struct Restart<'a> {
    managed: &'a Arc<ManagedBox>,
    _change: MutexGuard<'a, ()>,
    configurations: Vec<Configuration>,
    writes: Vec<RecordedWrite>,
    has_equals: bool,
}

impl Supervisor {
    /// Starts the boxes that are to run, and stops those that are not.
    pub(super) fn start_all(&self, link: &FabricLink, boxes: Vec<ToStart>) {
        let is_new = |found: &Option<BoxInventory>| {
            found.as_ref().is_none_or(|found| found.phase == Phase::Created && found.last_write == 0)
        };
        let (new, others): (Vec<ToStart>, Vec<ToStart>) =
            boxes.into_iter().partition(|(managed, found)| managed.inner().running && is_new(found));
        let new: Vec<Arc<ManagedBox>> = new.into_iter().map(|(managed, _)| managed).collect();
        let kinds = self.kinds(&new);
        let size = new.len().div_ceil(THREADS * 4).clamp(1, MAX_BOXES_OF_ORDER);
        in_parallel(new.chunks(size), |boxes| self.start_together(link, boxes, &kinds));
        in_parallel(others, |(managed, found)| {
            if found.as_ref().is_some_and(|found| found.last_write > 0) {
                self.store_writes(&managed.name);
            }
            self.start_wanted(&managed, found.map(|found| found.phase), false);
        });
    }

    /// How many boxes are probably equal, by their kind.
    fn kinds(&self, boxes: &[Arc<ManagedBox>]) -> HashMap<u64, usize> {
        let mut kinds = HashMap::new();
        if boxes.len() > 1 {
            let store = self.0.store();
            for managed in boxes {
                let Ok(configurations) = store.configurations(&managed.name) else { continue };
                let texts = configurations.iter().map(|stored| stored.text.as_str());
                *kinds.entry(kind(&managed.inner().definition, texts)).or_default() += 1;
            }
        }
        kinds
    }

    /// Orders the start of boxes. Those that another thread changes are ordered one by one, when it has ended.
    fn start_together(&self, link: &FabricLink, boxes: &[Arc<ManagedBox>], kinds: &HashMap<u64, usize>) {
        let (mut restarts, mut left) = (Vec::new(), Vec::new());
        for managed in boxes {
            match managed.change.try_lock().map(|change| self.restart(managed, change, kinds)) {
                Some(Ok(restart)) => restarts.extend(restart),
                // What cannot be read is reported by the attempt to start it alone.
                Some(Err(_)) | None => left.push(managed),
            }
        }
        if !restarts.is_empty() {
            let failures = link.ask(order(&mut restarts));
            for (place, restart) in restarts.iter().enumerate() {
                let failure = failures.as_ref().map(|failures| failures.get(place).cloned());
                match failure {
                    Ok(Some(None)) if !restart.writes.is_empty() => self.store_writes(&restart.managed.name),
                    Err(OperationError::Fabric(FabricError::Unsupported)) => left.push(restart.managed),
                    // The fabric records a failure. If it has ended, the next one gets the box.
                    _ => {}
                }
                // A request to stop it may have come to the fabric before the order to start it.
                if !restart.managed.inner().running {
                    self.bring_down(&restart.managed.name, true);
                }
            }
        }
        drop(restarts);
        left.into_iter().for_each(|managed| self.start_wanted(managed, None, false));
    }

    /// What the order needs, if the box is still to run.
    fn restart<'a>(
        &self,
        managed: &'a Arc<ManagedBox>,
        change: MutexGuard<'a, ()>,
        kinds: &HashMap<u64, usize>,
    ) -> Result<Option<Restart<'a>>, StoreError> {
        let definition = {
            let inner = managed.inner();
            if !inner.running || inner.removed {
                return Ok(None);
            }
            inner.definition.clone()
        };
        let name = &managed.name;
        let store = self.0.store();
        let writes = store.writes(name)?;
        let mut configurations = Vec::new();
        for stored in store.configurations(name)? {
            let files = store.files(name, stored.id)?;
            let version = version(&stored);
            configurations.push(Configuration { version, name: stored.name, text: stored.text, files });
        }
        let kind = kind(&definition, configurations.iter().map(|found| found.text.as_str()));
        let has_equals = kinds.get(&kind).is_some_and(|count| *count > 1);
        Ok(Some(Restart { managed, _change: change, configurations, writes, has_equals }))
    }
}

/// What boxes that are equal have in common. Others may have it too.
fn kind<'a>(definition: &CreateBox, texts: impl Iterator<Item = &'a str>) -> u64 {
    let CreateBox { memory, ring, sandbox, ports, .. } = definition;
    let mut hasher = DefaultHasher::new();
    (memory.0, u32::from(*ring), format!("{sandbox:?}"), ports.len()).hash(&mut hasher);
    texts.for_each(|text| text.hash(&mut hasher));
    hasher.finish()
}

fn order(restarts: &mut [Restart]) -> orders::StartBoxes {
    let mut configurations: Vec<Configuration> = Vec::new();
    let boxes = restarts.iter_mut().map(|restart| {
        let mut own: Vec<(u32, ConfigurationVersion)> = Vec::new();
        for configuration in std::mem::take(&mut restart.configurations) {
            let version = configuration.version;
            let is_equal = |other: &Configuration| {
                (&other.name, &other.text, &other.files)
                    == (&configuration.name, &configuration.text, &configuration.files)
            };
            let place = configurations.iter().position(is_equal).unwrap_or_else(|| {
                configurations.push(configuration);
                configurations.len() - 1
            });
            // There are a few of them.
            own.push((u32::try_from(place).unwrap_or(u32::MAX), version));
        }
        BoxStart {
            name: restart.managed.name.clone(),
            configurations: own,
            writes: restart.writes.clone(),
            has_equals: restart.has_equals,
        }
    });
    let boxes = boxes.collect();
    orders::StartBoxes { configurations, boxes }
}
