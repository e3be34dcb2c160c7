//! The state of services.

use super::state::Supervisor;
use super::steering::range_of;
use crate::error::OperationError;
use crate::store::{StoredInstance, StoredService};
use api::{
    BoxName, DrainedInstance, HandoverPhase, HandoverStatus, InstanceStatus, Owner, ServiceName,
    ServiceStatus, TranslationStatus,
};
use protocol::fabric::{Asked, Phase, SteeringReply, orders};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a scaling waits for the flows of drained instances, and for the end of those without flows. Both go on without it.
const HANDOVER_WAIT: Duration = Duration::from_secs(2);

/// The interval between two looks at them.
const HANDOVER_LOOK: Duration = Duration::from_millis(5);

impl Supervisor {
    /// Lists the services, by name.
    pub fn services(&self) -> Result<Vec<ServiceStatus>, OperationError> {
        let switches = self.switches_with_steering();
        let suspended = self.suspended(switches.iter().flat_map(|stored| &stored.steering.services));
        let mut found = Vec::new();
        for stored in switches.iter().filter(|stored| !stored.steering.services.is_empty()) {
            let reply = self.steering_reply(&stored.definition.name)?;
            let services = stored.steering.services.iter();
            found.extend(services.map(|service| self.service_status(service, &reply, &suspended)));
        }
        sorting::sort_by(&mut found, |one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// The state of a service.
    pub fn show_service(&self, name: &ServiceName) -> Result<ServiceStatus, OperationError> {
        let (switch, stored) = self.stored_service(name)?;
        let suspended = self.suspended([&stored]);
        Ok(self.service_status(&stored, &self.steering_reply(&switch)?, &suspended))
    }

    fn service_status(
        &self,
        stored: &StoredService,
        reply: &SteeringReply,
        suspended: &BTreeSet<BoxName>,
    ) -> ServiceStatus {
        let mut status = service_status(stored, reply);
        if stored.definition.container {
            let socket = self.0.function_sockets.path(&stored.definition.name);
            status.socket = socket.map(|path| path.display().to_string());
        } else {
            for instance in &mut status.instances {
                instance.suspended = suspended.contains(&instance.name);
            }
        }
        status
    }

    /// The instances of services that are suspended boxes. The switch does not know it: their rings take packets. Each fabric is
    /// asked once.
    fn suspended<'a>(&self, services: impl IntoIterator<Item = &'a StoredService>) -> BTreeSet<BoxName> {
        let mut names: BTreeMap<Owner, Vec<BoxName>> = BTreeMap::new();
        for stored in services.into_iter().filter(|stored| !stored.instances.is_empty()) {
            let of_fabric =
                names.entry(self.0.fabrics.keeper(&stored.definition.instance.owner)).or_default();
            of_fabric.extend(stored.instances.iter().map(|there| there.name.clone()));
        }
        let ask = |(owner, names): (Owner, Vec<BoxName>)| {
            // A fabric that has ended has none.
            self.0.fabrics.of(&owner)?.ask(orders::BoxRuntimes { names, ask: Asked::None }).ok()
        };
        let runtimes = names.into_iter().filter_map(ask).flatten();
        let suspended = runtimes.filter(|runtime| runtime.phase == Phase::Suspended);
        sorting::collect(suspended.map(|runtime| runtime.name))
    }

    /// The state of a service as soon as its drained instances have handed their flows over, or after a while. `drained`: those
    /// that a change of their number takes out.
    pub(super) fn after_handover(
        &self,
        name: &ServiceName,
        drained: Vec<BoxName>,
    ) -> Result<ServiceStatus, OperationError> {
        let end = Instant::now() + HANDOVER_WAIT;
        let mut drained: Vec<DrainedInstance> =
            drained.into_iter().map(|name| DrainedInstance { name, handover: None }).collect();
        loop {
            let status = self.show_service(name)?;
            for drained in &mut drained {
                // One that is gone keeps what was last seen of it.
                let there = status.instances.iter().find(|there| there.name == drained.name);
                drained.handover = there.and_then(|there| there.handover.clone()).or(drained.handover.take());
            }
            let phases = status.instances.iter().filter_map(|there| there.handover.as_ref());
            let is_busy = |handover: &HandoverStatus| {
                matches!(handover.phase, HandoverPhase::Waiting | HandoverPhase::Running)
            };
            // One without flows is about to be removed.
            let is_ending = |there: &InstanceStatus| {
                there.flows == 0 && drained.iter().any(|drained| drained.name == there.name)
            };
            let is_over = !phases.into_iter().any(is_busy) && !status.instances.iter().any(is_ending);
            if is_over || Instant::now() >= end {
                return Ok(ServiceStatus { drained, ..status });
            }
            std::thread::sleep(HANDOVER_LOOK);
        }
    }
}

fn service_status(stored: &StoredService, reply: &SteeringReply) -> ServiceStatus {
    let definition = &stored.definition;
    let found = reply.services.iter().find(|(name, _)| *name == definition.name);
    let found = found.map_or(&[][..], |(_, instances)| instances);
    let no_instance = reply.no_instance.iter().find(|(name, _)| *name == definition.name);
    let removed = reply.removed.iter().find(|(name, _)| *name == definition.name);
    let overruled = reply.overruled.iter().find(|(name, _)| *name == definition.name);
    let instance = |there: &StoredInstance| {
        let range = range_of(definition, there.number);
        let unused = range.map(|range| TranslationStatus { range, learnt: 0, refused: Default::default() });
        let known = found.iter().find(|status| status.name == there.name).cloned();
        let status = known.unwrap_or_else(|| InstanceStatus {
            name: there.name.clone(),
            up: false,
            suspended: false,
            draining: false,
            flows: 0,
            packets: 0,
            overruled: 0,
            waiting: 0,
            lost: 0,
            translation: None,
            counters: BTreeMap::new(),
            handover: None,
            taken_over: 0,
        });
        InstanceStatus {
            draining: there.drain_until.is_some(),
            translation: status.translation.or(unused),
            ..status
        }
    };
    ServiceStatus {
        name: definition.name.clone(),
        switch: definition.switch.clone(),
        owner: definition.instance.owner.clone(),
        stack: stored.stack.clone(),
        created: stored.created,
        faces: definition.faces,
        replicas: definition.replicas,
        auto: definition.auto,
        dead_after_ms: definition.dead_after_ms,
        may_send_to: definition.may_send_to.clone(),
        translation: definition.translation.clone(),
        socket: None,
        places: definition.places,
        trust_pool: definition.trust_pool,
        instances: match definition.container {
            true => found.to_vec(),
            false => stored.instances.iter().map(instance).collect(),
        },
        removed: removed.map(|(_, removed)| *removed).unwrap_or_default(),
        no_instance: no_instance.map_or(0, |(_, packets)| *packets),
        overruled: overruled.map_or_else(Vec::new, |(_, answers)| answers.clone()),
        drained: Vec::new(),
    }
}
