//! Ports of instances at a steering switch.

use super::records::SwitchRecord;
use model::{BoxName, Faces, PortName, ServiceName};
use protocol::fabric::{InstanceDefinition, ServiceDefinition};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use switch::{ForwardingMode, PortId, Shards};

impl SwitchRecord {
    /// The names of ports through which instances get the packets of chains.
    pub(super) fn faces(&self) -> BTreeSet<PortName> {
        sorting::collect(self.instances().flat_map(|(service, instance)| faces_of(service, instance)))
    }

    /// The instances of all services.
    fn instances(&self) -> impl Iterator<Item = (&ServiceDefinition, &InstanceDefinition)> {
        let services = self.services.definition.services.iter();
        services.flat_map(|service| service.instances.iter().map(move |instance| (service, instance)))
    }

    /// The service and the instance behind a port.
    pub(super) fn instance_at(&self, port: &PortName) -> Option<(&ServiceDefinition, &InstanceDefinition)> {
        let (name, number) = port.as_str().rsplit_once('.')?;
        let number: u8 = number.parse().ok()?;
        let is_it = |(service, instance): &(&ServiceDefinition, &InstanceDefinition)| {
            instance.name.as_str() == name && service.faces.ports().any(|face| face == number)
        };
        self.instances().find(is_it)
    }

    /// The ports of the instances of a service, and of those that it had and that are still there.
    pub(super) fn ports_of_service(&self, name: &ServiceName) -> Vec<PortId> {
        let own = self.instances().filter(|(service, _)| service.name == *name);
        let faces = own.flat_map(|(service, instance)| faces_of(service, instance));
        let leaving = self.services.leaving.iter().filter(|(_, (service, _))| service == name);
        let left = leaving.flat_map(|(name, (_, faces))| ports_of(name, *faces));
        faces.chain(left).filter_map(|face| Some(self.ports.get(&face)?.id)).collect()
    }

    /// The service through whose instance a port passes packets of chains, or did.
    pub(super) fn service_at(&self, port: &PortName) -> Option<&ServiceName> {
        let of_instance = self.instance_at(port).map(|(service, _)| &service.name);
        of_instance.or_else(|| {
            let (name, _) = port.as_str().rsplit_once('.')?;
            let (service, faces) = self.services.leaving.get(&name.parse::<BoxName>().ok()?)?;
            ports_of(&name.parse().ok()?, *faces).any(|face| face == *port).then_some(service)
        })
    }

    /// The packets that wait for each instance.
    pub(super) fn waiting(&self, runner: &mut Shards<ForwardingMode>) -> BTreeMap<BoxName, u64> {
        let mut all = BTreeMap::new();
        for (service, instance) in self.instances() {
            let ids = faces_of(service, instance).filter_map(|face| Some(self.ports.get(&face)?.id));
            let waiting = ids.filter_map(|id| runner.progress(id)).map(|progress| progress.waiting);
            all.insert(instance.name.clone(), waiting.sum());
        }
        all
    }
}

/// The names of the ports of an instance through which it gets the packets of chains.
fn faces_of(service: &ServiceDefinition, instance: &InstanceDefinition) -> impl Iterator<Item = PortName> {
    ports_of(&instance.name, service.faces)
}

fn ports_of(instance: &BoxName, faces: Faces) -> impl Iterator<Item = PortName> {
    faces.ports().filter_map(move |port| format!("{instance}.{port}").parse().ok())
}

/// Prepares the ports of instances: frames that are sent to all ports do not reach functions, which would send them on as
/// packets of chains; and functions that must not stand still are watched.
pub(super) fn prepare_faces(record: &SwitchRecord, runner: &mut Shards<ForwardingMode>) {
    let mut faces: BTreeMap<PortName, Option<Duration>> = BTreeMap::new();
    for (service, instance) in record.instances() {
        faces.extend(faces_of(service, instance).map(|face| (face, dead_after(service))));
    }
    for (name, port) in &record.ports {
        prepare(runner, port.id, faces.get(name).copied());
    }
}

/// Prepares a new port, as above.
pub(super) fn prepare_port(record: &SwitchRecord, runner: &mut Shards<ForwardingMode>, name: &PortName) {
    let face = record.instance_at(name).map(|(service, _)| dead_after(service));
    if let Some(port) = record.ports.get(name) {
        prepare(runner, port.id, face);
    }
}

/// Prepares a port. If it is that of an instance, `face` says how long it may stand still.
fn prepare(runner: &mut Shards<ForwardingMode>, port: PortId, face: Option<Option<Duration>>) {
    runner.set_flooded(port, face.is_none());
    runner.set_dead_after(port, face.flatten());
}

fn dead_after(service: &ServiceDefinition) -> Option<Duration> {
    service.dead_after_ms.map(|limit| Duration::from_millis(limit.into()))
}
