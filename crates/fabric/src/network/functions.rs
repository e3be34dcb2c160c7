//! Functions that attached themselves to services: their ports at the switch, and their instances.
//!
//! An instance that went keeps its number, its ports and their counters, as a box does; the next function takes the lowest
//! number that is free.

use super::attach::Network;
use super::device::placeholder;
use super::flows::all_steering;
use super::pairs::captured;
use super::records::{AttachedInstance, AttachedInstances, NewPort, SwitchRecord};
use crate::error::{OperationError, PortError};
use crate::limits::MAX_FUNCTION_SILENCE;
use model::{
    AddPort, BoxName, Destination, Faces, HandoverPhase, Limits, MAX_REPLICAS, Owner, PortDriver, PortName,
    ServiceName, SwitchName,
};
use protocol::fabric::{InstanceDefinition, ServiceDefinition, SteeringDefinition};
use std::collections::BTreeMap;
use std::time::Instant;
use switch::driver::FunctionPort;
use switch::{Driver, PortKey};

/// A service that functions attach themselves to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceKey {
    pub(crate) switch: SwitchName,
    pub(crate) service: ServiceName,
}

/// What a function that attaches itself has to know.
#[derive(Clone, Debug)]
pub(crate) struct AttachedService {
    pub(crate) faces: Faces,
    pub(crate) destinations: Vec<Destination>,
    /// The owner whose packet pool it joins.
    pub(crate) pool: Option<Owner>,
}

/// Why a function cannot stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FunctionFault {
    /// Packets wait for it, and it took none for a time.
    Silent,
    /// It violated the ring protocol.
    Violation(String),
    /// It closed its end of the doorbell.
    Doorbell,
}

fn port_name(instance: &BoxName, face: u8) -> Result<PortName, OperationError> {
    format!("{instance}.{face}").parse().map_err(|_| PortError::LongBoxName(instance.clone()).into())
}

/// Whether a name is that of an instance of a service that attached itself.
fn is_attached(record: &SwitchRecord, service: &ServiceName, name: &BoxName) -> bool {
    let instances = record.services.attached.get(service);
    instances.is_some_and(|all| all.values().any(|there| there.name == *name))
}

/// Gives each service that functions attached themselves to these instances in place of those of the definition, and takes away
/// the instances of services that are gone or have changed. Returns these.
pub(super) fn fill_in(record: &mut SwitchRecord, definition: &mut SteeringDefinition) -> AttachedInstances {
    let attached = std::mem::take(&mut record.services.attached);
    let before = &record.services.definition;
    let (mut gone, mut kept) = (BTreeMap::new(), BTreeMap::new());
    for (name, instances) in attached {
        let is_own = |name: &BoxName| instances.values().any(|there| there.name == *name);
        let find = |all: &SteeringDefinition| all.services.iter().find(|of| of.name == name).cloned();
        let (old, new) = (find(before), find(definition));
        let is_same = |old: &ServiceDefinition, new: &ServiceDefinition| {
            (old.faces, &old.destinations, old.places, &old.pool)
                == (new.faces, &new.destinations, new.places, &new.pool)
                && new.instances.iter().all(|instance| is_own(&instance.name))
        };
        let is_kept = old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| is_same(old, new));
        (if is_kept { &mut kept } else { &mut gone }).insert(name, instances);
    }
    record.services.attached = kept;
    for service in &mut definition.services {
        if let Some(instances) = record.services.attached.get(&service.name) {
            let instance = |there: &AttachedInstance| InstanceDefinition {
                name: there.name.clone(),
                draining: there.is_draining,
                range: None,
            };
            service.instances = instances.values().map(instance).collect();
        }
    }
    gone
}

/// The ports of instances that attached themselves to services of this definition.
pub(super) fn ports_of(attached: &AttachedInstances, definition: &SteeringDefinition) -> Vec<PortName> {
    let mut ports = Vec::new();
    for (name, instances) in attached {
        let service = definition.services.iter().find(|of| of.name == *name);
        let faces = service.map(|of| of.faces).unwrap_or_default();
        let of_instance = |there: &AttachedInstance| {
            faces.ports().filter_map(|face| port_name(&there.name, face).ok()).collect::<Vec<_>>()
        };
        ports.extend(instances.values().flat_map(of_instance));
    }
    ports
}

/// The counters that an instance publishes, if it attached itself.
pub(super) fn counters(
    instances: &BTreeMap<u16, AttachedInstance>,
    name: &BoxName,
) -> Option<BTreeMap<String, u64>> {
    instances.values().find(|there| there.name == *name).map(|there| there.counters.clone())
}

impl Network {
    fn attached_definition(&mut self, key: &ServiceKey) -> Result<ServiceDefinition, OperationError> {
        let (record, _) = self.record_and_runner(&key.switch)?;
        let found = record.services.definition.services.iter().find(|found| found.name == key.service);
        found.cloned().ok_or_else(|| PortError::Malformed("the service does not exist").into())
    }

    /// The service that a function attaches itself to.
    pub(crate) fn attached_service(&mut self, key: &ServiceKey) -> Result<AttachedService, OperationError> {
        let ServiceDefinition { faces, destinations, pool, .. } = self.attached_definition(key)?;
        Ok(AttachedService { faces, destinations, pool })
    }

    /// Makes a function an instance of its service, with a port for each face. Returns the name of the instance; `None` if the
    /// service has as many as it may have.
    pub(crate) fn attach_function(
        &mut self,
        key: &ServiceKey,
        connection: u64,
        ports: Vec<FunctionPort>,
    ) -> Result<Option<BoxName>, OperationError> {
        let service = self.attached_definition(key)?;
        if ports.len() != service.faces.ports().count() {
            return Err(PortError::Malformed("the faces of the service have changed").into());
        }
        let (record, _) = self.record_and_runner(&key.switch)?;
        let is_own = |instance: &InstanceDefinition| is_attached(record, &key.service, &instance.name);
        if !service.instances.iter().all(is_own) {
            return Err(PortError::Malformed("the instances of the service are boxes").into());
        }
        let taken = |number: &u16| {
            let there = record.services.attached.get(&key.service).and_then(|all| all.get(number));
            let name = format!("{}-{number}", key.service);
            match there {
                Some(there) => there.connection.is_some(),
                // A box has the name.
                None => service.faces.ports().any(|face| {
                    let port = format!("{name}.{face}").parse::<PortName>();
                    port.is_ok_and(|port| record.ports.contains_key(&port))
                }),
            }
        };
        let places = service.places.unwrap_or(MAX_REPLICAS).min(MAX_REPLICAS);
        let Some(number) = (1..=places).find(|number| !taken(number)) else { return Ok(None) };
        let long = |_| PortError::Malformed("the name of the service is too long");
        let name: BoxName = format!("{}-{number}", key.service).parse().map_err(long)?;
        for (face, port) in service.faces.ports().zip(&ports) {
            self.plug(&key.switch, &name, face, Box::new(port.clone()))?;
        }
        let (record, _) = self.record_and_runner(&key.switch)?;
        let instances = record.services.attached.entry(key.service.clone()).or_default();
        let progress = (0, Instant::now());
        let instance = AttachedInstance {
            name: name.clone(),
            connection: Some(connection),
            ports,
            progress,
            counters: BTreeMap::new(),
            is_draining: false,
        };
        instances.insert(number, instance);
        let definition = record.services.definition.clone();
        self.set_steering(&key.switch, definition)?;
        Ok(Some(name))
    }

    /// Gives a port of an instance this driver. The port is made if it is not there.
    fn plug(
        &mut self,
        switch: &SwitchName,
        instance: &BoxName,
        face: u8,
        driver: Box<dyn Driver>,
    ) -> Result<(), OperationError> {
        let name = port_name(instance, face)?;
        if !self.record_and_runner(switch)?.0.ports.contains_key(&name) {
            let definition = AddPort {
                name: name.clone(),
                driver: PortDriver::Box { name: instance.clone(), port: face },
                addresses: Vec::new(),
                default: false,
                // Packets of others pass it.
                limits: Limits { transparent: true, ..Limits::default() },
            };
            self.insert(
                switch,
                NewPort { definition, implied: true, drivers: vec![placeholder()], mac: None },
            )?;
        }
        // A new driver starts the port, also for the chains.
        let (record, runner) = self.record_and_runner(switch)?;
        if let Some(entry) = record.ports.get(&name) {
            runner.set_drivers(entry.id, captured(vec![driver], &entry.captures));
        }
        Ok(())
    }

    /// Lets a function hand over the state of its flows before it leaves: it gets no new flows.
    pub(crate) fn drain_function(&mut self, key: &ServiceKey, connection: u64) -> Result<(), OperationError> {
        self.set_draining(key, connection, true)
    }

    fn set_draining(
        &mut self,
        key: &ServiceKey,
        connection: u64,
        is_draining: bool,
    ) -> Result<(), OperationError> {
        let (record, _) = self.record_and_runner(&key.switch)?;
        let instances = record.services.attached.get_mut(&key.service);
        let mut instances = instances.into_iter().flat_map(BTreeMap::values_mut);
        match instances.find(|there| there.connection == Some(connection)) {
            Some(instance) if instance.is_draining != is_draining => {
                instance.is_draining = is_draining;
                let definition = record.services.definition.clone();
                self.set_steering(&key.switch, definition).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Whether the state of a function's flows is being handed over, or waits for that.
    pub(crate) fn hands_over(&mut self, key: &ServiceKey, connection: u64) -> bool {
        let Ok((record, _)) = self.record_and_runner(&key.switch) else { return false };
        let instances = record.services.attached.get(&key.service).into_iter().flat_map(BTreeMap::values);
        let mut instances = instances.filter(|there| there.connection == Some(connection));
        let status = instances.next().and_then(|there| record.services.handover.drained.get(&there.name));
        status.is_some_and(|status| !matches!(status.phase, HandoverPhase::Done | HandoverPhase::Failed))
    }

    /// Lets a function leave: its rings get no more packets, its flows continue at the other instances, and it answers what it has. Or
    /// ends that.
    pub(crate) fn let_leave(&mut self, key: &ServiceKey, connection: u64, is_leaving: bool) {
        let Ok(AttachedService { faces, .. }) = self.attached_service(key) else { return };
        let Ok((record, runner)) = self.record_and_runner(&key.switch) else { return };
        let instances = record.services.attached.get(&key.service).into_iter().flat_map(BTreeMap::values);
        let Some(instance) = instances.into_iter().find(|there| there.connection == Some(connection)) else {
            return;
        };
        let ports = faces.ports().filter_map(|face| port_name(&instance.name, face).ok());
        let keys: Vec<PortKey> =
            ports.filter_map(|port| record.port_numbers.get(&port).map(PortKey)).collect();
        for steering in all_steering(&key.switch, runner).into_iter().flatten() {
            keys.iter().for_each(|key| steering.chains_mut().set_leaving(*key, is_leaving));
        }
    }

    /// Takes a function out of its service: its flows continue at the other instances. Returns the number of packets that were
    /// in its rings, which are lost as `down`; `None` if the service no longer has it.
    pub(crate) fn detach_function(&mut self, key: &ServiceKey, connection: u64) -> Option<u64> {
        // The next one at its ports has nothing to do with that.
        self.let_leave(key, connection, false);
        let _ = self.set_draining(key, connection, false);
        let (record, _) = self.record_and_runner(&key.switch).ok()?;
        let instances = record.services.attached.get_mut(&key.service);
        let mut instances = instances.into_iter().flat_map(BTreeMap::values_mut);
        let instance = instances.find(|there| there.connection == Some(connection))?;
        instance.connection = None;
        let (name, ports) = (instance.name.clone(), std::mem::take(&mut instance.ports));
        let waiting = |port: &FunctionPort| port.rings().map_or(0, |rings| rings.waiting());
        let lost = ports.iter().map(waiting).sum();
        let faces = self.attached_service(key).map(|service| service.faces).unwrap_or_default();
        for face in faces.ports() {
            let _ = self.plug(&key.switch, &name, face, placeholder());
            if let Ok(port) = port_name(&name, face) {
                self.flush_port(&key.switch, &port);
            }
        }
        Some(lost)
    }

    /// Stores the counters that a function publishes.
    pub(crate) fn set_function_counters(
        &mut self,
        key: &ServiceKey,
        connection: u64,
        counters: Vec<(String, u64)>,
    ) {
        let Ok((record, _)) = self.record_and_runner(&key.switch) else { return };
        let instances = record.services.attached.get_mut(&key.service);
        let mut instances = instances.into_iter().flat_map(BTreeMap::values_mut);
        if let Some(instance) = instances.find(|there| there.connection == Some(connection)) {
            instance.counters = counters.into_iter().collect();
        }
    }

    /// Removes ports of instances whose service is gone.
    pub(super) fn drop_function_ports(&mut self, switch: &SwitchName, ports: &[PortName]) {
        ports.iter().for_each(|port| self.drop_port(switch, port));
    }

    /// The connections of functions that are instances, each with its fault if it cannot stay.
    pub(crate) fn look_at_functions(&mut self, now: Instant) -> BTreeMap<u64, Option<FunctionFault>> {
        let mut found = BTreeMap::new();
        let late = self.looks.delay(now);
        for (record, runner) in self.switches.iter_mut().zip(self.runners.iter().skip(1)) {
            for instance in record.services.attached.values_mut().flat_map(BTreeMap::values_mut) {
                let Some(connection) = instance.connection else { continue };
                let prefix = format!("{}.", instance.name);
                let of_instance = record.ports.iter().filter(|(name, _)| name.as_str().starts_with(&prefix));
                let violation = of_instance.filter_map(|(_, entry)| runner.down(entry.id)).next();
                let rings: Vec<_> = instance.ports.iter().filter_map(FunctionPort::rings).collect();
                let waiting: u64 = rings.iter().map(|rings| rings.waiting_to_box).sum();
                let taken = rings.iter().map(|rings| rings.put).sum::<u64>().saturating_sub(waiting);
                instance.progress = match instance.progress {
                    (before, since) if waiting > 0 && taken == before => (taken, since + late),
                    _ => (taken, now),
                };
                let is_silent = now.saturating_duration_since(instance.progress.1) >= MAX_FUNCTION_SILENCE;
                let fault = match violation {
                    Some(error) => Some(FunctionFault::Violation(model::with_causes(error))),
                    None if instance.ports.iter().any(FunctionPort::is_closed) => {
                        Some(FunctionFault::Doorbell)
                    }
                    None => is_silent.then_some(FunctionFault::Silent),
                };
                found.insert(connection, fault);
            }
        }
        found
    }
}
