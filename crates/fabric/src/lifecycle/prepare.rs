//! Creates boxes before they are started: while the daemon has their configurations checked, and stores them.

use super::state::Fabric;
use crate::boxes::{CreatedBox, ManagedBox, Phase};
use model::BoxName;
use std::time::Duration;

impl Fabric {
    /// Creates and starts the sandbox of a box that was just defined, without connecting its ports. The start of the box waits
    /// for it. If it fails, so does the start, which reports it.
    pub(crate) fn prepare(&self, name: &BoxName) {
        let Ok(managed) = self.0.managed_box(name) else { return };
        // The thread that has it may be starting the box already.
        let Ok(_change) = managed.change.lock_within(Duration::ZERO) else { return };
        let definition = {
            let inner = managed.inner();
            if inner.removed || inner.unwanted || inner.phase != Phase::Created || self.0.is_ending() {
                return;
            }
            inner.definition.clone()
        };
        let Ok(kind) = self.0.factory.resolve(definition.sandbox) else { return };
        // A copy is created from its template, and a reserved processor is for a box that runs.
        if definition.dedicated || self.0.templates.may_have(kind, &definition) {
            return;
        }
        let Ok(made) = self.0.factory.make(&definition, self.0.switches.wake_event(), None) else { return };
        if made.instance.start().is_ok() {
            managed.inner().prepared = Some(made);
        }
    }

    /// The sandbox that was prepared for a box, if it still runs.
    pub(super) fn take_prepared(&self, managed: &ManagedBox) -> Option<CreatedBox> {
        let prepared = managed.inner().prepared.take();
        prepared.filter(|made| !made.instance.has_ended())
    }
}
