//! Watches services and chains: measures the rates of hops, scales services by their load, and removes instances that are
//! drained.

use super::state::Supervisor;
use crate::store::{StoredInstance, StoredSwitch};
use api::{BoxName, ChainStatus, EventKind, HandoverPhase, ServiceName, Time};
use protocol::fabric::SteeringReply;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The interval between two looks at instances that are drained: their flows are handed over in milliseconds.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);

/// Looks at drained instances for each look at all services, which is once a second.
const LOOKS_PER_WATCH: u32 = 10;

/// A drained instance to remove.
#[derive(Debug, PartialEq, Eq)]
struct Drained {
    service: ServiceName,
    name: BoxName,
    kind: EventKind,
    message: String,
}

/// The drained instances of a switch that have no flows left or whose time is over. `reply`: the state in the fabric, if it
/// answers.
fn drained(stored: &StoredSwitch, reply: Option<&SteeringReply>, now: Time) -> Vec<Drained> {
    let mut found = Vec::new();
    for service in &stored.steering.services {
        let name = &service.definition.name;
        let states = reply.and_then(|reply| reply.services.iter().find(|(of, _)| of == name));
        let is_drained = |instance: &&StoredInstance| instance.drain_until.is_some();
        for instance in service.instances.iter().filter(is_drained) {
            let state = states.and_then(|(_, all)| all.iter().find(|there| there.name == instance.name));
            // The fabric counts flows as if there were none until it knows that the instance is drained.
            let flows = state.filter(|state| state.draining).map(|state| state.flows);
            let phase = state.and_then(|state| state.handover.as_ref()).map(|handover| handover.phase);
            let is_busy = matches!(phase, Some(HandoverPhase::Waiting | HandoverPhase::Running));
            let is_late = instance.drain_until.is_some_and(|until| until <= now);
            let box_name = &instance.name;
            let (kind, message) = match flows {
                Some(0) if !is_busy || is_late => (
                    EventKind::ServiceDrained,
                    format!("instance {box_name} of service {name} had no flows left and was removed"),
                ),
                Some(flows) if is_late => (
                    EventKind::DrainTimeout,
                    format!(
                        "instance {box_name} of service {name} was removed with {flows} flows left: its time to drain is \
                         over"
                    ),
                ),
                None if is_late => (
                    EventKind::DrainTimeout,
                    format!(
                        "instance {box_name} of service {name} was removed: its time to drain is over, and its flows are \
                         unknown"
                    ),
                ),
                _ => continue,
            };
            found.push(Drained { service: name.clone(), name: box_name.clone(), kind, message });
        }
    }
    found
}

impl Supervisor {
    /// Starts the thread that watches services. It ends with the last supervisor.
    pub(super) fn watch_services(&self) -> io::Result<()> {
        let state = Arc::downgrade(&self.0);
        let run = move || {
            for look in 1u32.. {
                std::thread::sleep(DRAIN_INTERVAL);
                let Some(state) = Weak::upgrade(&state) else { return };
                let supervisor = Self::of(state);
                if supervisor.0.is_ending() {
                    return;
                }
                if look.is_multiple_of(LOOKS_PER_WATCH) {
                    supervisor.look_at_services(Time::now());
                } else {
                    supervisor.remove_drained(Time::now());
                }
            }
        };
        std::thread::Builder::new().name("services".into()).spawn(run).map(drop)
    }

    /// Removes instances that are drained.
    fn remove_drained(&self, now: Time) {
        let drains = |stored: &StoredSwitch| {
            let mut instances = stored.steering.services.iter().flat_map(|service| &service.instances);
            instances.any(|instance| instance.drain_until.is_some())
        };
        let switches: Vec<StoredSwitch> =
            self.0.switches().values().filter(|stored| drains(stored)).cloned().collect();
        for stored in switches {
            let reply = self.0.fabrics.steering(stored.definition.name.clone()).ok();
            self.remove(drained(&stored, reply.as_ref(), now));
        }
    }

    fn remove(&self, removed: Vec<Drained>) {
        for Drained { service, name, kind, message } in removed {
            // If another operation is in the way, or the fabric has ended, the next look tries again.
            let _ = self.remove_instance(&service, &name, (kind, message));
        }
    }

    /// Measures the hops of chains and the load of services, scales these, and removes instances that are drained.
    pub(super) fn look_at_services(&self, now: Time) {
        let mut chains: Vec<ChainStatus> = Vec::new();
        let (mut removed, mut scaled) = (Vec::new(), Vec::new());
        let switches = self.switches_with_steering();
        let times = self.times_for_scaling(&switches);
        for stored in switches {
            let switch = stored.definition.name.clone();
            let is_drained = |instance: &StoredInstance| instance.drain_until.is_some();
            let mut services = stored.steering.services.iter();
            let drains = services.any(|service| service.instances.iter().any(is_drained));
            if !drains && times.is_none() && stored.steering.chains.is_empty() {
                continue;
            }
            // A fabric that has ended is restarted meanwhile.
            let reply = self.0.fabrics.steering(switch).ok();
            removed.extend(drained(&stored, reply.as_ref(), now));
            if let (Some(times), Some(reply)) = (&times, &reply) {
                scaled.extend(self.0.load_watch().look(&stored, reply, times, now));
            }
            chains.extend(reply.into_iter().flat_map(|reply| reply.chains));
        }
        self.serve_missing_functions();
        self.0.hops().advance(Instant::now(), chains.iter());
        self.0.load_watch().retain(|name| self.find_service(name).is_some());
        scaled.into_iter().for_each(|scaling| self.scale_by_load(scaling));
        self.remove(removed);
    }
}
