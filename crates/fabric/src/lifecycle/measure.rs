//! Measures the resource usage of all boxes.

use super::state::Fabric;
use crate::limits::HUGE_PAGE_BUDGET;
use std::time::{Duration, Instant};

impl Fabric {
    /// Measures the processor time of all boxes, and gives huge pages to those that turn out to be busy.
    pub(super) fn measure(&self) {
        let mut collapsing = Duration::ZERO;
        for managed in self.0.all() {
            let Some(instance) = managed.instance() else { continue };
            let usage = instance.usage();
            if collapsing < HUGE_PAGE_BUDGET {
                let start = Instant::now();
                instance.collapse_pages(usage.time);
                collapsing += start.elapsed();
            }
            managed.inner().update_usage(usage);
        }
    }
}
