//! Services: boxes of one definition that the packets of chains pass.
//!
//! The instances with the numbers 1 to N are those that a service of N replicas has. Others are drained: they get no new
//! flows, and are removed when they have none left, or when their time is over.

use super::boxes::{Making, check_box, check_sizes, relied_on};
use super::claims::Claim;
use super::destinations::{check_chains_of, find_ports, senders};
use super::managed_box::{Known, ManagedBox};
use super::operation::Operation;
use super::state::Supervisor;
use super::steering::{instance_of, range_of};
use crate::error::{OperationError, RequestError};
use crate::service_error::ServiceError;
use crate::store::{Action, StoredChain, StoredInstance, StoredService, StoredSwitch};
use api::{
    AddressRange, Attachment, BoxName, ChainName, ConfigurationName, CreateBox, CreateService, Destination,
    EventKind, Install, MAX_DESTINATIONS, MAX_REPLICAS, Owner, PortName, PortRequest, ScaleService,
    ServiceName, ServiceStatus, StackName, Subject, SwitchName, Time, with_causes,
};
use protocol::fabric::orders;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The times after which a silent instance may count as dead: a function that waits for the processor is not dead.
const DEAD_AFTER_MS: std::ops::RangeInclusive<u32> = 10..=3_600_000;

/// The definition of a service with everything that follows from its switch, whose owner is given.
pub(super) fn completed(mut request: CreateService, owner: &Owner) -> Result<CreateService, ServiceError> {
    let CreateService {
        name,
        switch,
        instance,
        faces,
        replicas,
        auto,
        dead_after_ms,
        container,
        places,
        trust_pool,
        translation,
        ..
    } = &mut request;
    if *trust_pool && !*container {
        return Err(ServiceError::TrustPool);
    }
    if let Some(count) = places
        && (!*container || *count == 0 || *count > MAX_REPLICAS)
    {
        return Err(ServiceError::Places(*count));
    }
    if let Some(range) = auto {
        *replicas = range.clamp(*replicas);
    }
    if *container {
        let alone = CreateBox {
            name: instance.name.clone(),
            owner: instance.owner.clone(),
            ..CreateBox::new(instance.name.clone(), "")
        };
        let is_scaled = *replicas > 1 || auto.is_some();
        if *instance != alone || is_scaled || translation.is_some() || dead_after_ms.is_some() {
            return Err(ServiceError::BoxSettings);
        }
        *replicas = 0;
    } else if *replicas == 0 || *replicas > MAX_REPLICAS {
        return Err(ServiceError::Replicas(*replicas));
    }
    if dead_after_ms.is_some_and(|limit| !DEAD_AFTER_MS.contains(&limit)) {
        return Err(ServiceError::DeadAfter);
    }
    let long = |_| ServiceError::LongName(name.clone());
    // The ports of instances at the switch have their names and numbers.
    let last_port = format!("{name}-{MAX_REPLICAS}.{}", boundary::limits::MAX_PORTS);
    last_port.parse::<PortName>().map_err(long)?;
    instance.name = name.as_str().parse().map_err(long)?;
    if instance.owner == Owner::default() {
        instance.owner = owner.clone();
    } else if instance.owner != *owner {
        let (switch, of, wanted) = (switch.clone(), owner.clone(), instance.owner.clone());
        return Err(ServiceError::Owner { switch, of, wanted });
    }
    if *container {
        return checked_destinations(request);
    }
    let count = usize::from(faces.port_count()).max(instance.ports.len());
    instance.ports.resize(count, PortRequest::default());
    for (number, port) in (0u8..).zip(&mut instance.ports) {
        if port.mac.is_some() {
            return Err(ServiceError::Address(number));
        }
        let is_face = faces.ports().any(|face| face == number);
        let at_switch = Attachment::Switch(switch.clone());
        match &port.attach {
            Attachment::Nothing if is_face => {}
            other if is_face && *other == at_switch => {}
            _ if is_face => return Err(ServiceError::Face(number)),
            Attachment::Pipe(_) => return Err(ServiceError::Pipe(number)),
            Attachment::Nothing | Attachment::Switch(_) => {}
        }
        if is_face {
            port.attach = at_switch;
            // Packets of others pass it.
            port.limits.transparent = true;
        }
    }
    if let Some(translation) = translation {
        if faces.outer.is_none() {
            return Err(ServiceError::OneFace);
        }
        translation.check(auto.map_or(*replicas, |range| range.max)).map_err(ServiceError::Translation)?;
    }
    checked_destinations(request)
}

fn checked_destinations(request: CreateService) -> Result<CreateService, ServiceError> {
    match request.may_send_to.len() {
        count if count > MAX_DESTINATIONS => Err(ServiceError::Destinations(count)),
        _ => Ok(request),
    }
}

/// A definition as it is stored: its instances have the text and the files.
pub(super) fn without_texts(mut definition: CreateService) -> CreateService {
    definition.instance.configuration = String::new();
    definition.instance.files = Vec::new();
    definition
}

/// Returns an error if the definition of an instance has another name than its service.
pub(crate) fn check_instance_names(services: &[CreateService]) -> Result<(), ServiceError> {
    let other = services.iter().find(|service| service.name.as_str() != service.instance.name.as_str());
    other.map_or(Ok(()), |service| {
        Err(ServiceError::InstanceName(service.name.clone(), service.instance.name.clone()))
    })
}

impl Supervisor {
    /// Creates a service with its instances. On failure none of them exists.
    pub fn create_service(&self, mut request: CreateService) -> Result<ServiceStatus, OperationError> {
        self.adopt_service(&mut request)?;
        self.refuse_while_draining()?;
        let owner = self.steering_switch(&request.switch)?.definition.owner;
        let mut request = completed(request, &owner)?;
        let (at, ports) = (self.steering_switch(&request.switch)?, self.port_names(&request.switch)?);
        find_ports(&mut request, |name| at.steering.service(name).is_some(), |name| ports.contains(name));
        let name = request.name.clone();
        let claims = self.claims_to_make(&request)?;
        self.check_range(&request.instance, request.replicas, request.auto)?;
        self.require_places(&request)?;
        self.operate(Action::Create, &name, &|| claims.clone(), |operation| {
            self.make_service(operation, request, None)
        })?;
        self.show_service(&name)
    }

    /// The claims of an operation that creates a service.
    pub(super) fn claims_to_make(&self, request: &CreateService) -> Result<Vec<Claim>, OperationError> {
        let mut claims = vec![Claim::change(&request.name), Claim::change(&request.switch)];
        claims.extend(relied_on(&request.instance));
        for number in 1..=request.replicas {
            let name = CreateService::instance_name(&request.name, number);
            let name = name.map_err(|_| ServiceError::LongName(request.name.clone()))?;
            claims.push(Claim::change(&name));
        }
        Ok(claims)
    }

    /// Creates a service as a step of an operation, possibly of a stack. Its definition is complete.
    pub(super) fn make_service(
        &self,
        operation: &mut Operation,
        request: CreateService,
        stack: Option<&StackName>,
    ) -> Result<(), OperationError> {
        let (name, switch) = (request.name.clone(), request.switch.clone());
        if self.find_service(&name).is_some() {
            return Err(OperationError::Exists(Subject::from(&name)));
        }
        let at = self.steering_switch(&switch)?;
        self.check_destinations(&at, &request, &[])?;
        check_chains_of(&request, |name| at.steering.chain(name).is_some())?;
        self.check_instance(&request)?;
        let mut stored = StoredService {
            definition: without_texts(request.clone()),
            instances: Vec::new(),
            stack: stack.cloned(),
            created: Time::now(),
        };
        self.0.journal.owners.set(&name, request.instance.owner.clone());
        for number in 1..=request.replicas {
            let made = self.make_instance(operation, &stored, &request.instance, number)?;
            stored.instances.push(made);
        }
        self.change_steering(operation, &switch, |steering| steering.services.push(stored))?;
        // The plan of a stack was checked as a whole.
        if stack.is_none() && request.container {
            self.check_places(&request)?;
        }
        let count = match request.container {
            true => "for functions that join it".into(),
            false => format!("with {}", instances(request.replicas)),
        };
        let message = format!("service {name} was created at switch {switch} {count}");
        operation.note(EventKind::ServiceCreated, &name, message);
        Ok(())
    }

    /// Checks the configuration of a service once for all instances.
    pub(super) fn check_instance(&self, request: &CreateService) -> Result<(), OperationError> {
        if request.container {
            return Ok(());
        }
        let instance = &request.instance;
        check_sizes(&instance.configuration, &instance.files)?;
        check_box(instance)?;
        if !instance.cores.is_one() {
            return Err(RequestError::CoresOfService(request.name.clone()).into());
        }
        self.fabric_of(&instance.owner)?;
        let destinations: Vec<Destination> = request.may_send_to.iter().cloned().collect();
        // The others differ only in the values.
        let parameters = range_of(request, 1).map(AddressRange::parameters).unwrap_or_default();
        let faces: Vec<u8> = request.faces.ports().collect();
        let known = Known { destinations: &destinations, parameters: &parameters, faces: &faces };
        self.check_for(instance, known, &instance.configuration, &instance.files)
    }

    /// The names of the ports of a switch.
    pub(super) fn port_names(&self, switch: &SwitchName) -> Result<BTreeSet<PortName>, OperationError> {
        let described = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
        Ok(described.into_iter().map(|found| found.port.name).collect())
    }

    /// A service whose instances are boxes.
    fn refuse_container(&self, name: &ServiceName) -> Result<StoredService, OperationError> {
        let (_, stored) = self.stored_service(name)?;
        match stored.definition.container {
            true => Err(ServiceError::Container(name.clone()).into()),
            false => Ok(stored),
        }
    }

    /// Creates an instance as a step of an operation.
    pub(super) fn make_instance(
        &self,
        operation: &mut Operation,
        stored: &StoredService,
        instance: &CreateBox,
        number: u16,
    ) -> Result<StoredInstance, OperationError> {
        let service = &stored.definition.name;
        let name = CreateService::instance_name(service, number)
            .map_err(|_| ServiceError::LongName(service.clone()))?;
        let wanted = CreateBox { name: name.clone(), ..instance.clone() };
        let making = Making {
            stack: stored.stack.clone(),
            writes: Vec::new(),
            service: Some(instance_of(stored, number)),
        };
        self.make_box(operation, wanted, making)?;
        Ok(StoredInstance { number, name, drain_until: None })
    }

    /// The definition of an instance with the text and the files that the instances have.
    pub(super) fn instance_with_texts(&self, stored: &StoredService) -> Result<CreateBox, OperationError> {
        let mut instance = stored.definition.instance.clone();
        // The store may have set some aside.
        if let Some(there) = self.boxes_of_service(stored).first() {
            (instance.configuration, instance.files) = self.main_of(&there.name)?;
            return Ok(instance);
        }
        match stored.instances.first() {
            Some(first) => Err(OperationError::NoBox(first.name.clone())),
            None => Ok(instance),
        }
    }

    /// The claims of an operation that changes a service and its instances.
    pub(super) fn claims_of_service(&self, name: &ServiceName) -> Vec<Claim> {
        let mut claims = vec![Claim::change(name)];
        if let Some((switch, stored)) = self.find_service(name) {
            claims.push(Claim::change(&switch));
            claims.extend(stored.instances.iter().flat_map(|there| self.claims_to_remove_box(&there.name)));
        }
        claims
    }

    /// Changes the number of instances of a service. Those that are too many are drained.
    pub fn scale_service(
        &self,
        name: &ServiceName,
        request: ScaleService,
    ) -> Result<ServiceStatus, OperationError> {
        self.refuse_container(name)?;
        let (_, stored) = self.stored_service(name)?;
        self.check_range(&stored.definition.instance, stored.definition.replicas, request.auto)?;
        if let (Some(translation), Some(range)) = (&stored.definition.translation, request.auto) {
            translation.check(range.max).map_err(ServiceError::Translation)?;
        }
        let claims = || self.claims_to_scale(name, request);
        let drained = self
            .operate(Action::Change, name, &claims, |operation| self.scale(operation, name, request, None))?;
        self.after_handover(name, drained)
    }

    /// Changes the number of instances of a service because of its load, unless somebody else scaled it meanwhile.
    pub(super) fn scale_if_auto(
        &self,
        name: &ServiceName,
        request: ScaleService,
        why: &str,
    ) -> Result<(), OperationError> {
        self.operate(Action::Change, name, &|| self.claims_to_scale(name, request), |operation| {
            match self.find_service(name) {
                Some((_, stored)) if stored.definition.auto == request.auto => {
                    self.scale(operation, name, request, Some(why)).map(drop)
                }
                _ => Ok(()),
            }
        })
    }

    /// The claims of an operation that gives a service this number of instances.
    pub(super) fn claims_to_scale(&self, name: &ServiceName, request: ScaleService) -> Vec<Claim> {
        let mut claims = self.claims_of_service(name);
        let mut replicas = request.replicas.unwrap_or(0);
        if let Some((_, stored)) = self.find_service(name) {
            claims.extend(relied_on(&stored.definition.instance));
            replicas = wanted_replicas(request, stored.definition.replicas).unwrap_or(0);
        }
        let new = (1..=replicas.min(MAX_REPLICAS)).map(|number| CreateService::instance_name(name, number));
        claims.extend(new.flatten().map(|name| Claim::change(&name)));
        claims
    }

    /// Changes the number of instances as a step of an operation. Returns those that are drained from now on.
    pub(super) fn scale(
        &self,
        operation: &mut Operation,
        name: &ServiceName,
        request: ScaleService,
        why: Option<&str>,
    ) -> Result<Vec<BoxName>, OperationError> {
        let (switch, stored) = self.stored_service(name)?;
        let before = stored.definition.replicas;
        let ScaleService { auto, drain_seconds, .. } = request;
        let replicas = wanted_replicas(request, before)?;
        if replicas == 0 || replicas > MAX_REPLICAS {
            return Err(ServiceError::Replicas(replicas).into());
        }
        if let Some(translation) = &stored.definition.translation {
            translation.check(replicas).map_err(ServiceError::Translation)?;
        }
        let is_missing = |number: &u16| !stored.instances.iter().any(|there| there.number == *number);
        let missing: Vec<u16> = (1..=replicas).filter(is_missing).collect();
        let mut made = Vec::new();
        if !missing.is_empty() {
            self.refuse_while_draining()?;
            let instance = self.instance_with_texts(&stored)?;
            for number in missing {
                made.push(self.make_instance(operation, &stored, &instance, number)?);
            }
        }
        let until = Time::from(Time::now().system() + Duration::from_secs(drain_seconds.into()));
        self.change_steering(operation, &switch, |steering| {
            let Some(stored) = steering.service_mut(name) else { return };
            (stored.definition.replicas, stored.definition.auto) = (replicas, auto);
            stored.instances.extend(made);
            sorting::sort_by_key(&mut stored.instances, |instance| instance.number);
            for instance in &mut stored.instances {
                match instance.number > replicas {
                    // One that is drained already keeps its time.
                    true => drop(instance.drain_until.get_or_insert(until)),
                    false => instance.drain_until = None,
                }
            }
        })?;
        if before != replicas {
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let message = format!(
                "service {name} was scaled from {} to {}{why}",
                instances(before),
                instances(replicas)
            );
            operation.note(EventKind::ServiceScaled, name, message);
        }
        if stored.definition.auto != auto {
            let message = match auto {
                Some(range) => format!("service {name} is scaled by its load from now on: {range} instances"),
                None => format!("service {name} is no longer scaled by its load"),
            };
            operation.note(EventKind::ServiceScaled, name, message);
        }
        let is_new = |there: &&StoredInstance| there.number > replicas && there.drain_until.is_none();
        Ok(stored.instances.iter().filter(is_new).map(|there| there.name.clone()).collect())
    }

    /// Replaces the configuration of all instances of a service.
    pub fn reload_service(
        &self,
        name: &ServiceName,
        request: &Install,
    ) -> Result<ServiceStatus, OperationError> {
        let stored = self.refuse_container(name)?;
        let result = self.check_reload(&stored, request).and_then(|()| {
            self.operate(Action::Change, name, &|| self.claims_of_service(name), |operation| {
                self.reload(operation, name, request)
            })
        });
        if let Err(failure @ OperationError::Refused(_)) = &result {
            let message = format!("the configuration of service {name}: {}", with_causes(failure));
            self.0.journal.note(EventKind::ConfigurationRefused, name, message);
        }
        result?;
        self.show_service(name)
    }

    /// Checks another configuration of a service once for all instances.
    pub(super) fn check_reload(
        &self,
        stored: &StoredService,
        request: &Install,
    ) -> Result<(), OperationError> {
        let mut wanted = stored.definition.clone();
        wanted.instance.configuration = request.configuration.clone();
        wanted.instance.source = request.source.clone();
        wanted.instance.files = request.files.clone();
        self.check_instance(&wanted)
    }

    /// Replaces the configuration of all instances as a step of an operation. It was checked.
    pub(super) fn reload(
        &self,
        operation: &mut Operation,
        name: &ServiceName,
        request: &Install,
    ) -> Result<(), OperationError> {
        let (switch, stored) = self.stored_service(name)?;
        for managed in self.boxes_of_service(&stored) {
            self.swap(operation, &managed, &ConfigurationName::main(), request)?;
        }
        self.put_service(operation, &switch, name, |stored| {
            stored.definition.instance.source = request.source.clone();
        })?;
        let message = format!("the configuration of service {name} was replaced");
        operation.note(EventKind::ServiceReloaded, name, message);
        Ok(())
    }

    /// The boxes of a service, by number. The store may have set some aside.
    pub(super) fn boxes_of_service(&self, stored: &StoredService) -> Vec<Arc<ManagedBox>> {
        stored.instances.iter().filter_map(|instance| self.0.managed_box(&instance.name).ok()).collect()
    }

    /// Removes a service with its instances, if no chain leads through it, and no other service may send to it.
    pub fn remove_unused_service(&self, name: &ServiceName) -> Result<(), OperationError> {
        self.remove_service_if(name, |users| users.is_empty())
    }

    /// Removes a service with its instances, and the chains that lead through it.
    pub fn remove_service(&self, name: &ServiceName) -> Result<(), OperationError> {
        self.remove_service_if(name, |_| true)
    }

    fn remove_service_if(
        &self,
        name: &ServiceName,
        accept: impl FnOnce(&[Subject]) -> bool,
    ) -> Result<(), OperationError> {
        let (_, stored) = self.stored_service(name)?;
        for managed in self.boxes_of_service(&stored) {
            self.interrupt_operation_on(&managed);
        }
        self.operate(Action::Remove, name, &|| self.claims_of_service(name), |operation| {
            let (switch, _) = self.stored_service(name)?;
            let at = self.stored_switch(&switch)?;
            refuse_senders(&at, std::slice::from_ref(name))?;
            let users = chains_of_service(&at, name);
            if !accept(&users) {
                return Err(OperationError::InUse(name.into(), users));
            }
            self.unmake_services(operation, std::slice::from_ref(name))
        })
    }

    /// Removes services, and the chains that lead through them, as a step of an operation. Their boxes go with the commit.
    ///
    /// # Errors
    ///
    /// Other services may send to them, and know them by their place in a list.
    pub(super) fn unmake_services(
        &self,
        operation: &mut Operation,
        names: &[ServiceName],
    ) -> Result<(), OperationError> {
        let all: Vec<(SwitchName, StoredService)> =
            names.iter().map(|name| self.stored_service(name)).collect::<Result<_, _>>()?;
        let switches: BTreeSet<&SwitchName> = sorting::collect(all.iter().map(|(switch, _)| switch));
        for switch in switches {
            refuse_senders(&self.stored_switch(switch)?, names)?;
            let mut gone = Vec::new();
            self.change_steering(operation, switch, |steering| {
                steering.services.retain(|there| !names.contains(&there.definition.name));
                let leads_there = |chain: &mut StoredChain| {
                    chain.definition.services.iter().any(|name| names.contains(name))
                };
                let chains = steering.chains.extract_if(.., leads_there);
                gone.extend(chains.map(|chain| chain.definition.name));
            })?;
            for chain in gone {
                note_chain_removed(operation, switch, &chain);
            }
        }
        for (_, stored) in &all {
            for managed in self.boxes_of_service(stored) {
                self.plan_removal(operation, &managed);
                operation.after_commit(move |supervisor| supervisor.take_down_box(&managed));
            }
            let name = &stored.definition.name;
            operation.note(EventKind::ServiceRemoved, name, format!("service {name} was removed"));
        }
        Ok(())
    }

    /// Removes an instance that is drained. Nothing happens if it is not any more.
    pub(super) fn remove_instance(
        &self,
        service: &ServiceName,
        name: &BoxName,
        (kind, message): (EventKind, String),
    ) -> Result<(), OperationError> {
        self.operate(Action::Change, service, &|| self.claims_of_service(service), |operation| {
            let Some((switch, stored)) = self.find_service(service) else { return Ok(()) };
            let is_it = |there: &&StoredInstance| there.name == *name && there.drain_until.is_some();
            if stored.instances.iter().find(is_it).is_none() {
                return Ok(());
            }
            self.change_steering(operation, &switch, |steering| {
                if let Some(stored) = steering.service_mut(service) {
                    stored.instances.retain(|there| there.name != *name);
                }
            })?;
            if let Ok(managed) = self.0.managed_box(name) {
                self.plan_removal(operation, &managed);
                operation.after_commit(move |supervisor| supervisor.take_down_box(&managed));
            }
            operation.note(kind, service, message);
            Ok(())
        })
    }
}

/// The chains that lead through a service.
pub(super) fn chains_of_service(at: &StoredSwitch, name: &ServiceName) -> Vec<Subject> {
    let chains = at.steering.chains.iter().filter(|chain| chain.definition.services.contains(name));
    chains.map(|chain| Subject::from((&at.definition.name, &chain.definition.name))).collect()
}

/// Returns an error if services other than these may send to one of these.
fn refuse_senders(at: &StoredSwitch, names: &[ServiceName]) -> Result<(), OperationError> {
    for name in names {
        let mut senders = senders_to(at, name);
        senders.retain(|sender| !names.contains(sender));
        if !senders.is_empty() {
            return Err(OperationError::DestinationOf(name.clone(), senders));
        }
    }
    Ok(())
}

/// The other services that may send to a service.
fn senders_to(at: &StoredSwitch, name: &ServiceName) -> Vec<ServiceName> {
    let others = senders(at, Destination::Service(name.clone()));
    others.filter(|there| there != name).collect()
}

/// Records the event of a removed chain.
pub(super) fn note_chain_removed(operation: &mut Operation, switch: &SwitchName, chain: &ChainName) {
    let message = format!("chain {chain} of switch {switch} was removed");
    operation.note(EventKind::ChainRemoved, (switch, chain), message);
}

/// The number of instances that a request asks for of a service that has `before`.
fn wanted_replicas(request: ScaleService, before: u16) -> Result<u16, OperationError> {
    match (request.replicas, request.auto) {
        (replicas, Some(range)) => Ok(range.clamp(replicas.unwrap_or(before))),
        (Some(replicas), None) => Ok(replicas),
        (None, None) => Err(ServiceError::NoReplicas.into()),
    }
}

fn instances(count: u16) -> String {
    match count {
        1 => "1 instance".into(),
        count => format!("{count} instances"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> CreateService {
        CreateService {
            name: "ids".parse().unwrap(),
            switch: "lan".parse().unwrap(),
            instance: CreateBox::new("x".parse().unwrap(), "drop"),
            faces: "in=2,out=0".parse().unwrap(),
            replicas: 2,
            container: false,
            auto: None,
            dead_after_ms: None,
            places: None,
            trust_pool: false,
            may_send_to: BTreeSet::new(),
            translation: None,
        }
    }

    #[test]
    fn a_definition_is_completed() {
        let owner: Owner = "alice".parse().unwrap();
        let made = completed(service(), &owner).unwrap();
        assert_eq!((made.instance.name.as_str(), &made.instance.owner), ("ids", &owner));
        let ports: Vec<_> = made
            .instance
            .ports
            .iter()
            .map(|port| (port.attach.to_string(), port.limits.transparent))
            .collect();
        assert_eq!(ports, [("lan".into(), true), ("-".into(), false), ("lan".to_string(), true)]);
        // As it is exported.
        assert_eq!(completed(made.clone(), &owner), Ok(made));
    }

    #[test]
    fn impossible_definitions_are_refused() {
        let owner: Owner = "alice".parse().unwrap();
        let refused = |change: &dyn Fn(&mut CreateService)| {
            let mut request = service();
            request.instance.ports = vec![PortRequest::default(); 3];
            change(&mut request);
            completed(request, &owner).unwrap_err().to_string()
        };
        let attach = |port: usize, to: &'static str| {
            move |request: &mut CreateService| request.instance.ports[port].attach = to.parse().unwrap()
        };
        for (message, expected) in [
            (refused(&|request| request.replicas = 0), "1 to 128"),
            (refused(&|request| request.replicas = 129), "not 129"),
            (refused(&|request| request.dead_after_ms = Some(9)), "10 ms to 1 h"),
            (refused(&|request| request.dead_after_ms = Some(3_600_001)), "10 ms to 1 h"),
            (refused(&|request| request.name = "i".repeat(60).parse().unwrap()), "too long"),
            (refused(&|request| request.instance.owner = "bob".parse().unwrap()), "belongs to alice"),
            (refused(&attach(2, "wan")), "port 2 of the instances is a face"),
            (refused(&attach(0, "pipe:a")), "port 0 of the instances is a face"),
            (refused(&attach(1, "pipe:a")), "which connects two boxes"),
            (refused(&|request| request.instance.ports[1].mac = Some(Default::default())), "same Ethernet"),
            (
                refused(&|request| {
                    let ports = (0..65).map(|number| format!("port:p{number}").parse().unwrap());
                    request.may_send_to = ports.collect();
                }),
                "at most 64",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }
}
