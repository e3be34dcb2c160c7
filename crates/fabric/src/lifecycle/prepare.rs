//! Creates boxes before they are started: while the daemon has their configurations checked, and stores them.

use super::state::Fabric;
use crate::boxes::{CreatedBox, ManagedBox, Phase};
use model::BoxName;
use std::sync::Arc;

impl Fabric {
    /// Creates the sandbox of a box that was just defined, in a thread of its own. The start of the box waits for it.
    pub(crate) fn start_preparing(&self, name: &BoxName) {
        let Ok(managed) = self.0.managed_box(name) else { return };
        let fabric = self.clone();
        // Without a thread, the sandbox is created when the box starts.
        let _ = std::thread::Builder::new().name("prepare".into()).spawn(move || fabric.prepare(&managed));
    }

    /// Creates and starts the sandbox of a box, without connecting its ports. If that fails, so does the start, which
    /// reports it.
    fn prepare(&self, managed: &Arc<ManagedBox>) {
        let _change = managed.change.lock();
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
