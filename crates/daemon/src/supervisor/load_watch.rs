//! Measures the load of services that are scaled by it, from what the fabrics report at each look.

use super::load::{Load, Scaler};
use crate::store::{StoredService, StoredSwitch};
use api::{BoxName, InstanceStatus, ReplicaRange, ServiceName, Time};
use protocol::fabric::SteeringReply;
use std::collections::BTreeMap;
use std::time::Duration;

/// What each instance had used and lost at the last look: processor time, and packets.
type Used = BTreeMap<BoxName, (Duration, u64)>;

/// What was seen of the services that are scaled by their load.
#[derive(Debug, Default)]
pub(super) struct LoadWatch(BTreeMap<ServiceName, ServiceWatch>);

#[derive(Debug)]
struct ServiceWatch {
    scaler: Scaler,
    at: Time,
    used: Used,
}

/// A service that is to be scaled.
#[derive(Debug)]
pub(super) struct Scaling {
    pub(super) service: ServiceName,
    pub(super) range: ReplicaRange,
    pub(super) replicas: u16,
    pub(super) why: String,
}

impl LoadWatch {
    /// Looks at the services of a switch. `times`: the processor time of boxes.
    pub(super) fn look(
        &mut self,
        stored: &StoredSwitch,
        reply: &SteeringReply,
        times: &BTreeMap<BoxName, Duration>,
        now: Time,
    ) -> Vec<Scaling> {
        let mut found = Vec::new();
        for service in &stored.steering.services {
            let name = &service.definition.name;
            let Some(range) = service.definition.auto else {
                self.0.remove(name);
                continue;
            };
            let all = reply.services.iter().find(|(of, _)| of == name).map(|(_, all)| all.as_slice());
            let sharing: Vec<&InstanceStatus> =
                all.unwrap_or_default().iter().filter(|instance| instance.up && !instance.draining).collect();
            let used = |instance: &&InstanceStatus| {
                let time = times.get(&instance.name).copied().unwrap_or_default();
                (instance.name.clone(), (time, instance.lost))
            };
            let used: Used = sharing.iter().map(used).collect();
            let watch = self.0.entry(name.clone()).or_insert_with(|| ServiceWatch {
                scaler: Scaler::default(),
                at: now,
                used: Used::new(),
            });
            // The clock may have been set back.
            let passed = now.system().duration_since(watch.at.system()).unwrap_or_default();
            if passed.is_zero() && !watch.used.is_empty() {
                continue;
            }
            let before = std::mem::replace(&mut watch.used, used);
            watch.at = now;
            if passed.is_zero() || sharing.is_empty() {
                continue;
            }
            let load = load(service, &sharing, (&before, &watch.used), passed);
            if let Some(decision) = watch.scaler.look(range, service.definition.replicas, load) {
                let (replicas, why) = (decision.replicas, decision.why);
                found.push(Scaling { service: name.clone(), range, replicas, why });
            }
        }
        found
    }

    /// Forgets services that are gone.
    pub(super) fn retain(&mut self, is_there: impl Fn(&ServiceName) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// Notes that a service could not be scaled.
    pub(super) fn failed(&mut self, service: &ServiceName) {
        if let Some(watch) = self.0.get_mut(service) {
            watch.scaler.failed();
        }
    }
}

/// The load of the instances that share the flows of a service.
fn load(
    service: &StoredService,
    sharing: &[&InstanceStatus],
    (before, after): (&Used, &Used),
    passed: Duration,
) -> Load {
    let instance = &service.definition.instance;
    let room = u64::from(u32::from(instance.ring)) * service.definition.faces.ports().count() as u64;
    let waiting = sharing.iter().map(|found| found.waiting * 1000 / room.max(1)).max().unwrap_or(0);
    let (mut busy, mut lost) = (Duration::ZERO, 0);
    for (name, (time, losses)) in after {
        // One that is new, or began again, counts from zero.
        let (time_before, losses_before) = before.get(name).copied().unwrap_or_default();
        busy += time.checked_sub(time_before).unwrap_or(*time);
        lost += losses.checked_sub(losses_before).unwrap_or(*losses);
    }
    let share = busy.as_nanos() * 1000 / passed.as_nanos().max(1) / sharing.len().max(1) as u128;
    Load {
        busy: (!instance.dedicated).then(|| share.min(1000) as u32),
        waiting: waiting.min(1000) as u32,
        lost,
    }
}
