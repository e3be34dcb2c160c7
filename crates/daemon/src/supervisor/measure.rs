//! Measures the traffic and the resource usage of all boxes and switches.

use super::state::Supervisor;
use crate::limits::HUGE_PAGE_BUDGET;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl Supervisor {
    /// Measures traffic and CPU time of everything.
    pub(super) fn measure(&self) {
        let Ok(snapshot) = self.0.fabric.ask(|network| network.traffic_snapshot()) else { return };
        let mut used = BTreeMap::new();
        let mut collapsing = Duration::ZERO;
        for managed in self.0.all() {
            let instance = managed.instance();
            let present = instance.as_ref().map(|instance| instance.usage());
            if let (Some(instance), Some(present)) = (instance, present)
                && collapsing < HUGE_PAGE_BUDGET
            {
                let start = Instant::now();
                instance.collapse_pages(present.time);
                collapsing += start.elapsed();
            }
            let mut inner = managed.inner();
            if let Some(present) = present {
                inner.update_usage(present);
            }
            used.insert(managed.name.clone(), inner.usage().time);
        }
        self.recover_ports(&snapshot);
        self.0.meter().advance(Instant::now(), snapshot, used);
    }
}
