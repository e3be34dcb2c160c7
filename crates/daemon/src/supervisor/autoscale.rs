//! Scales services by their load.

use super::load_watch::Scaling;
use super::state::Supervisor;
use crate::store::StoredSwitch;
use api::{BoxName, EventKind, ScaleService, with_causes};
use protocol::fabric::Asked;
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds in which instances that are too many are drained.
const DRAIN_SECONDS: u32 = 30;

impl Supervisor {
    /// The processor time of boxes, if there is a service that is scaled by its load.
    pub(super) fn times_for_scaling(&self, switches: &[StoredSwitch]) -> Option<BTreeMap<BoxName, Duration>> {
        let mut services = switches.iter().flat_map(|stored| &stored.steering.services);
        if services.all(|service| service.definition.auto.is_none()) {
            return None;
        }
        // A fabric that has ended is restarted meanwhile.
        let runtimes = self.0.fabrics.runtimes(Asked::None).ok()?;
        Some(runtimes.into_iter().map(|runtime| (runtime.name, runtime.usage.time)).collect())
    }

    /// Carries out what was decided.
    pub(super) fn scale_by_load(&self, Scaling { service, range, replicas, why }: Scaling) {
        let request =
            ScaleService { replicas: Some(replicas), auto: Some(range), drain_seconds: DRAIN_SECONDS };
        if let Err(failure) = self.scale_if_auto(&service, request, &why) {
            self.0.load_watch().failed(&service);
            let message =
                format!("service {service} could not be scaled although {why}: {}", with_causes(&failure));
            self.0.journal.note(EventKind::ScalingFailed, &service, message);
        }
    }
}
