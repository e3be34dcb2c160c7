//! The services and chains of stacks.

use super::chains::check_chain;
use super::claims::Claim;
use super::destinations::{check_chains_of, find_ports};
use super::diff::diff_box;
use super::operation::Operation;
use super::services::{chains_of_service, completed, without_texts};
use super::stacks::{StackPlan, StackStep};
use super::state::Supervisor;
use super::steering_step::{SteeringPlan, SteeringStep};
use crate::error::OperationError;
use crate::service_error::ServiceError;
use crate::store::{StoreChange, StoredChain, StoredService, StoredSwitch};
use api::{
    AddressRange, Attachment, ChainName, ChangeAction, CreateChain, CreateService, EventKind, FlowOutput,
    Install, Owner, PortName, ReplicaRange, ScaleService, ServiceName, Stack, StackName, Subject, SwitchMode,
    SwitchName, Time,
};
use protocol::fabric::FabricError;
use std::collections::BTreeSet;

/// Seconds for which a stack drains the instances that are too many.
const DRAIN_SECONDS: u32 = 30;

/// A switch of a service in a stack: its owner and its mode.
fn switch_of(
    stack: &Stack,
    switches: &[StoredSwitch],
    name: &SwitchName,
) -> Result<(Owner, SwitchMode), OperationError> {
    let new = stack.switches.iter().find(|wanted| wanted.name == *name);
    let there = || switches.iter().map(|stored| &stored.definition).find(|there| there.name == *name);
    match new.or_else(there) {
        Some(found) => Ok((found.owner.clone(), found.mode)),
        None => Err(OperationError::NoSwitch(name.clone())),
    }
}

/// A service of a stack with everything that follows from its switch.
fn complete_service(
    stack: &Stack,
    switches: &[StoredSwitch],
    wanted: &CreateService,
) -> Result<CreateService, OperationError> {
    let (owner, mode) = switch_of(stack, switches, &wanted.switch)?;
    if mode != SwitchMode::Steering {
        return Err(FabricError::NotSteering(wanted.switch.clone()).into());
    }
    Ok(completed(wanted.clone(), &owner)?)
}

/// The services of a stack with everything that follows from their switches.
fn complete_services(stack: &Stack, switches: &[StoredSwitch]) -> Result<Vec<CreateService>, OperationError> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for wanted in &stack.services {
        if !names.insert(&wanted.name) {
            return Err(ServiceError::DuplicateService(wanted.name.clone()).into());
        }
        let wanted = complete_service(stack, switches, wanted)
            .map_err(|error| error.of(&Subject::from(&wanted.name)))?;
        for number in 1..=wanted.replicas {
            let name = CreateService::instance_name(&wanted.name, number);
            if let Some(found) = stack.boxes.iter().find(|there| name.as_ref() == Ok(&there.name)) {
                return Err(ServiceError::InstanceInStack(found.name.clone()).into());
            }
        }
        all.push(wanted);
    }
    Ok(all)
}

impl Supervisor {
    /// The claims of an operation on the services and chains of a stack.
    pub(super) fn claims_of_services(&self, name: &StackName, stack: &Stack) -> Vec<Claim> {
        let mut claims = Vec::new();
        for wanted in &stack.services {
            // A name that is too long is refused with the plan.
            claims.extend(self.claims_to_make(wanted).unwrap_or_default());
            claims.extend(self.claims_of_service(&wanted.name));
        }
        for wanted in &stack.chains {
            claims.extend([Claim::change(&wanted.switch), Claim::change((&wanted.switch, &wanted.name))]);
        }
        let switches: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        for stored in &switches {
            let switch = &stored.definition.name;
            for service in stored.steering.services.iter().filter(|service| ours(&service.stack)) {
                claims.extend(self.claims_of_service(&service.definition.name));
            }
            for chain in stored.steering.chains.iter().filter(|chain| ours(&chain.stack)) {
                claims.extend([Claim::change(switch), Claim::change((switch, &chain.definition.name))]);
            }
        }
        claims
    }

    /// Plans the services and chains of a stack.
    pub(super) fn plan_steering(
        &self,
        plan: &mut StackPlan,
        name: &StackName,
        stack: &Stack,
        switches: &[StoredSwitch],
    ) -> Result<SteeringPlan, OperationError> {
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let mut steering = SteeringPlan::default();
        let mut services = complete_services(stack, switches)?;
        for wanted in &mut services {
            let switch = wanted.switch.clone();
            let ports = self.ports_with_stack(stack, &switch);
            let at = switches.iter().find(|stored| stored.definition.name == switch);
            let is_service = |name: &ServiceName| {
                let mut new = stack.services.iter().filter(|other| other.switch == switch);
                new.any(|other| other.name == *name)
                    || at.is_some_and(|at| at.steering.service(name).is_some())
            };
            find_ports(wanted, is_service, |name| ports.contains(name));
            let others = switches.iter().filter(|stored| stored.definition.name == wanted.switch);
            let others =
                others.flat_map(|stored| &stored.steering.chains).filter(|chain| !ours(&chain.stack));
            let chains = stack.chains.iter().filter(|chain| chain.switch == wanted.switch);
            let chains: BTreeSet<&ChainName> = sorting::collect(
                chains.chain(others.map(|chain| &chain.definition)).map(|chain| &chain.name),
            );
            check_chains_of(wanted, |name| chains.contains(name))
                .map_err(|error| OperationError::from(error).of(&Subject::from(&wanted.name)))?;
        }
        let services = services;
        let there: Vec<&StoredService> =
            switches.iter().flat_map(|stored| &stored.steering.services).collect();
        let is_wanted = |found: &StoredService| {
            let definition = &found.definition;
            let mut all = services.iter();
            all.any(|wanted| (&wanted.name, &wanted.switch) == (&definition.name, &definition.switch))
        };
        let is_gone = |found: &&&StoredService| ours(&found.stack) && !is_wanted(found);
        let gone: Vec<ServiceName> =
            there.iter().filter(is_gone).map(|found| found.definition.name.clone()).collect();
        for chain in &stack.chains {
            if let Some(missing) = chain.services.iter().find(|name| gone.contains(name)) {
                let subject = Subject::from((&chain.switch, &chain.name));
                return Err(OperationError::NoService(missing.clone()).of(&subject));
            }
        }
        let mut new = Vec::new();
        for wanted in services {
            match there.iter().find(|found| found.definition.name == wanted.name) {
                Some(found) if !ours(&found.stack) => {
                    return Err(OperationError::Foreign(Subject::from(&wanted.name)));
                }
                Some(found) if found.definition.switch != wanted.switch => {
                    return Err(
                        ServiceError::OtherSwitch(wanted.name, found.definition.switch.clone()).into()
                    );
                }
                Some(found) => self.plan_service(plan, &mut steering, found, wanted)?,
                None => {
                    plan.record(ChangeAction::Create, &wanted.name, &[]);
                    new.push(wanted);
                }
            }
        }
        if !new.is_empty() {
            let made = new.clone().into_iter().map(|wanted| SteeringStep::Remake(Box::new(wanted)));
            let changed = std::mem::take(&mut steering.first);
            steering.first.push(SteeringStep::Declare(new));
            steering.first.extend(changed);
            steering.first.extend(made);
        }
        self.plan_chains(plan, &mut steering, (name, stack), switches)?;
        if !gone.is_empty() {
            for service in &gone {
                plan.record(ChangeAction::Remove, service, &[]);
            }
            steering.last.push(SteeringStep::RemoveServices(gone));
        }
        Ok(steering)
    }

    /// The names of the ports of a switch, and of those that a stack gives it.
    fn ports_with_stack(&self, stack: &Stack, switch: &SwitchName) -> BTreeSet<PortName> {
        // A switch that is not there has none.
        let mut ports = self.port_names(switch).unwrap_or_default();
        let own = stack.switches.iter().filter(|own| own.name == *switch).flat_map(|own| &own.ports);
        let external = stack.external.iter().filter(|used| used.name == *switch).flat_map(|used| &used.ports);
        ports.extend(own.chain(external).map(|port| port.name.clone()));
        for wanted in &stack.boxes {
            let numbers = (0..).zip(&wanted.ports);
            let here = numbers.filter(|(_, port)| port.attach == Attachment::Switch(switch.clone()));
            ports.extend(
                here.filter_map(|(number, _): (u8, _)| format!("{}.{number}", wanted.name).parse().ok()),
            );
        }
        ports
    }

    fn plan_chains(
        &self,
        plan: &mut StackPlan,
        steering: &mut SteeringPlan,
        (name, stack): (&StackName, &Stack),
        switches: &[StoredSwitch],
    ) -> Result<(), OperationError> {
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let chains: Vec<&StoredChain> = switches.iter().flat_map(|stored| &stored.steering.chains).collect();
        let is_same =
            |one: &CreateChain, other: &CreateChain| (&one.switch, &one.name) == (&other.switch, &other.name);
        let mut made = Vec::new();
        for (number, wanted) in stack.chains.iter().enumerate() {
            let subject = Subject::from((&wanted.switch, &wanted.name));
            check_chain(wanted)
                .map_err(OperationError::from)
                .and_then(|()| switch_of(stack, switches, &wanted.switch))
                .map_err(|error| error.of(&subject))?;
            if stack.chains.iter().take(number).any(|other| is_same(other, wanted)) {
                return Err(ServiceError::DuplicateChain(wanted.name.clone()).into());
            }
            match chains.iter().find(|found| is_same(&found.definition, wanted)) {
                Some(found) if !ours(&found.stack) => return Err(OperationError::Foreign(subject)),
                Some(found) if found.definition == *wanted => {}
                Some(found) => {
                    plan.record(ChangeAction::Change, subject, &diff_chain(&found.definition, wanted));
                    made.push(SteeringStep::SetChain(wanted.clone()));
                }
                None => {
                    plan.record(ChangeAction::Create, subject, &[]);
                    made.push(SteeringStep::MakeChain(wanted.clone()));
                }
            }
        }
        for found in chains.iter().filter(|found| ours(&found.stack)) {
            let CreateChain { switch, name, .. } = &found.definition;
            if !stack.chains.iter().any(|wanted| is_same(wanted, &found.definition)) {
                let own = stack.switches.iter().filter(|own| own.name == *switch).flat_map(|own| &own.flows);
                if own.into_iter().any(|flow| flow.output == FlowOutput::Chain(name.clone())) {
                    return Err(OperationError::NoChain(switch.clone(), name.clone()));
                }
                plan.record(ChangeAction::Remove, (switch, name), &[]);
                steering.first.push(SteeringStep::RemoveChain(switch.clone(), name.clone()));
            }
        }
        steering.first.extend(made);
        Ok(())
    }

    fn plan_service(
        &self,
        plan: &mut StackPlan,
        steering: &mut SteeringPlan,
        there: &StoredService,
        mut wanted: CreateService,
    ) -> Result<(), OperationError> {
        // The load decides within the range.
        if let Some(range) = wanted.auto {
            wanted.replicas = range.clamp(there.definition.replicas);
        }
        let name = &wanted.name;
        let instance = self.instance_with_texts(there)?;
        let (text, files) = (instance.configuration.as_str(), instance.files.as_slice());
        let mut found = diff_box((&there.definition.instance, text, files), &wanted.instance);
        for (what, differs) in [
            ("kind", there.definition.container != wanted.container),
            ("packet pool", there.definition.trust_pool != wanted.trust_pool),
            ("places", there.definition.places != wanted.places),
            ("faces", there.definition.faces != wanted.faces),
            ("destinations", there.definition.may_send_to != wanted.may_send_to),
            ("addresses", ranges(&there.definition) != ranges(&wanted)),
        ] {
            if differs {
                found.replace = true;
                found.differences.push(what.into());
            }
        }
        if !found.replace && there.definition.translation != wanted.translation {
            found.change = true;
            found.differences.push("static mappings".into());
        }
        let (before, after) = (there.definition.replicas, wanted.replicas);
        if before != after {
            found.differences.push(format!("replicas {before} -> {after}"));
        }
        let is_scaled = before != after || there.definition.auto != wanted.auto;
        if there.definition.auto != wanted.auto {
            let shown =
                |auto: Option<ReplicaRange>| auto.map_or_else(|| "none".into(), |range| range.to_string());
            let change =
                format!("range of replicas {} -> {}", shown(there.definition.auto), shown(wanted.auto));
            found.differences.push(change);
        }
        if there.definition.dead_after_ms != wanted.dead_after_ms {
            found.change = true;
            found.differences.push("dead_after".into());
        }
        if found.replace {
            plan.record(ChangeAction::Replace, name, &found.differences);
            steering.first.push(SteeringStep::Remake(Box::new(wanted)));
            return Ok(());
        }
        if found.differences.is_empty() {
            return Ok(());
        }
        let action = if found.reload { ChangeAction::Reload } else { ChangeAction::Change };
        plan.record(action, name, &found.differences);
        if found.reload {
            let install = Install {
                configuration: wanted.instance.configuration.clone(),
                source: wanted.instance.source.clone(),
                files: wanted.instance.files.clone(),
                uploads: Vec::new(),
            };
            steering.first.push(SteeringStep::Reload(name.clone(), Box::new(install)));
        }
        let (name, auto) = (wanted.name.clone(), wanted.auto);
        if found.change {
            steering.first.push(SteeringStep::Alter(Box::new(wanted)));
        }
        if is_scaled {
            let request = ScaleService { replicas: Some(after), auto, drain_seconds: DRAIN_SECONDS };
            steering.first.push(SteeringStep::Scale(name, request));
        }
        Ok(())
    }

    /// Returns an error if a plan removes services that chains of others lead through, or switches with services of others.
    pub(super) fn refuse_steering_of_others(
        &self,
        name: &StackName,
        plan: &StackPlan,
        is_forced: bool,
    ) -> Result<(), OperationError> {
        let makes = |made: &SwitchName| {
            plan.steps.iter().any(|step| matches!(step, StackStep::MakeSwitch(new) if new.name == *made))
        };
        for step in &plan.steps {
            match step {
                StackStep::RemoveSwitch(stored) if !makes(&stored.definition.name) => {
                    let services = stored.steering.services.iter();
                    let others = services.filter(|service| service.stack.as_ref() != Some(name));
                    let others: Vec<_> = others.map(|service| service.definition.name.clone()).collect();
                    if !others.is_empty() {
                        return Err(OperationError::HasServices(stored.definition.name.clone(), others));
                    }
                }
                StackStep::Steering(SteeringStep::RemoveServices(services)) if !is_forced => {
                    for service in services {
                        let (switch, _) = self.stored_service(service)?;
                        let at = self.stored_switch(&switch)?;
                        // Services that may send to it are refused, or removed too.
                        let mut users = chains_of_service(&at, service);
                        users.retain(|user| match user {
                            Subject::Chain(_, chain) => {
                                let found = at.steering.chain(chain);
                                found.is_some_and(|chain| chain.stack.as_ref() != Some(name))
                            }
                            _ => false,
                        });
                        if !users.is_empty() {
                            return Err(OperationError::InUse(service.into(), users));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the configurations of the services in a step before anything changes.
    pub(super) fn check_steering_step(&self, step: &SteeringStep) -> Result<(), OperationError> {
        match step {
            SteeringStep::Remake(wanted) => self.check_instance(wanted),
            SteeringStep::Reload(name, install) => {
                let (_, stored) = self.stored_service(name)?;
                self.check_reload(&stored, install)
            }
            _ => Ok(()),
        }
    }

    /// Performs one step.
    pub(super) fn steering_step(
        &self,
        operation: &mut Operation,
        stack: &StackName,
        step: SteeringStep,
    ) -> Result<(), OperationError> {
        match step {
            SteeringStep::Declare(new) => self.declare_services(operation, stack, new),
            SteeringStep::Remake(wanted) => self.remake_service(operation, *wanted),
            SteeringStep::Alter(wanted) => {
                let (switch, stored) = self.stored_service(&wanted.name)?;
                for managed in self.boxes_of_service(&stored) {
                    self.alter(operation, &managed, &wanted.instance)?;
                }
                let (replicas, auto) = (stored.definition.replicas, stored.definition.auto);
                // The fabric gets what it has to know.
                self.change_steering(operation, &switch, |steering| {
                    if let Some(stored) = steering.service_mut(&wanted.name.clone()) {
                        stored.definition = without_texts(CreateService { replicas, auto, ..*wanted });
                    }
                })
            }
            SteeringStep::Reload(name, install) => self.reload(operation, &name, &install),
            SteeringStep::Scale(name, request) => self.scale(operation, &name, request, None).map(drop),
            SteeringStep::RemoveServices(names) => self.unmake_services(operation, &names),
            SteeringStep::MakeChain(wanted) => self.make_chain(operation, wanted, Some(stack)),
            SteeringStep::SetChain(wanted) => self.change_chain(operation, wanted),
            SteeringStep::RemoveChain(switch, chain) => self.unmake_chain(operation, &switch, &chain),
            SteeringStep::Keep(switch, kept) => {
                self.change_steering(operation, &switch, |steering| *steering = kept)
            }
        }
    }

    fn declare_services(
        &self,
        operation: &mut Operation,
        stack: &StackName,
        new: Vec<CreateService>,
    ) -> Result<(), OperationError> {
        let switches: BTreeSet<SwitchName> = sorting::collect(new.iter().map(|wanted| wanted.switch.clone()));
        for switch in switches {
            let here: Vec<&CreateService> = new.iter().filter(|wanted| wanted.switch == switch).collect();
            let names: Vec<ServiceName> = here.iter().map(|wanted| wanted.name.clone()).collect();
            let at = self.steering_switch(&switch)?;
            for wanted in &here {
                if self.find_service(&wanted.name).is_some() {
                    return Err(OperationError::Exists(Subject::from(&wanted.name)));
                }
                self.check_destinations(&at, wanted, &names)
                    .map_err(|error| error.of(&Subject::from(&wanted.name)))?;
                self.0.journal.owners.set(&wanted.name, wanted.instance.owner.clone());
            }
            let stored = |wanted: &&CreateService| StoredService {
                definition: without_texts((*wanted).clone()),
                instances: Vec::new(),
                stack: Some(stack.clone()),
                created: Time::now(),
            };
            self.change_steering(operation, &switch, |steering| {
                steering.services.extend(here.iter().map(stored));
            })?;
            for name in names {
                let message = format!("service {name} was created at switch {switch}");
                operation.note(EventKind::ServiceCreated, &name, message);
            }
        }
        Ok(())
    }

    fn remake_service(&self, operation: &mut Operation, wanted: CreateService) -> Result<(), OperationError> {
        let (name, switch) = (wanted.name.clone(), wanted.switch.clone());
        let (_, before) = self.stored_service(&name)?;
        let at = self.steering_switch(&switch)?;
        self.check_destinations(&at, &wanted, &[])?;
        self.change_steering(operation, &switch, |steering| {
            if let Some(stored) = steering.service_mut(&name) {
                stored.instances.clear();
            }
        })?;
        for managed in self.boxes_of_service(&before) {
            self.remove_box_now(operation, &managed);
        }
        let mut stored = StoredService {
            definition: without_texts(wanted.clone()),
            instances: Vec::new(),
            ..before.clone()
        };
        for number in 1..=wanted.replicas {
            let made = self.make_instance(operation, &stored, &wanted.instance, number)?;
            stored.instances.push(made);
        }
        self.change_steering(operation, &switch, |steering| {
            if let Some(there) = steering.service_mut(&name) {
                *there = stored;
            }
        })?;
        if !before.instances.is_empty() {
            let message = format!("the instances of service {name} were replaced");
            operation.note(EventKind::ServiceReloaded, &name, message);
        }
        Ok(())
    }

    /// Changes what is stored of a service, but not what the fabric knows of it, as a step of an operation.
    pub(super) fn put_service(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        name: &ServiceName,
        change: impl FnOnce(&mut StoredService),
    ) -> Result<(), OperationError> {
        let mut stored = self.stored_switch(switch)?;
        let Some(service) = stored.steering.service_mut(name) else { return Ok(()) };
        let before = service.clone();
        change(service);
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        let (switch, name) = (switch.clone(), name.clone());
        operation.undo_by(move |supervisor| {
            let mut switches = supervisor.0.switches();
            let stored = switches.get_mut(&switch);
            if let Some(service) = stored.and_then(|stored| stored.steering.service_mut(&name)) {
                *service = before;
            }
        });
        Ok(())
    }

    /// The services of a stack as they are, with all texts and files, and its chains.
    pub(super) fn steering_of_stack(
        &self,
        name: &StackName,
    ) -> Result<(Vec<CreateService>, Vec<CreateChain>), OperationError> {
        let switches: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let (mut services, mut chains) = (Vec::new(), Vec::new());
        for stored in switches {
            for service in stored.steering.services.iter().filter(|service| ours(&service.stack)) {
                let instance = self.instance_with_texts(service)?;
                services.push(CreateService { instance, ..service.definition.clone() });
            }
            let own = stored.steering.chains.into_iter().filter(|chain| ours(&chain.stack));
            chains.extend(own.map(|chain| chain.definition));
        }
        Ok((services, chains))
    }
}

/// The addresses of a translator, and the slices that they are divided into.
fn ranges(service: &CreateService) -> Option<(&[AddressRange], u16)> {
    service.translation.as_ref().map(|translation| (translation.ranges.as_slice(), translation.slices))
}

/// The differences between a chain and its definition in a stack.
fn diff_chain(there: &CreateChain, wanted: &CreateChain) -> Vec<String> {
    let listed = |chain: &CreateChain| {
        let names: Vec<&str> = chain.services.iter().map(ServiceName::as_str).collect();
        names.join(" ")
    };
    let from = |chain: &CreateChain| chain.from.as_ref().map_or("-".into(), ToString::to_string);
    let ways = |chain: &CreateChain| if chain.both_ways { "both" } else { "one" }.to_string();
    let pairs = [
        ("services", listed(there), listed(wanted)),
        ("from", from(there), from(wanted)),
        ("to", there.to.to_string(), wanted.to.to_string()),
        ("ways", ways(there), ways(wanted)),
    ];
    let changed = pairs.into_iter().filter(|(_, before, after)| before != after);
    changed.map(|(what, before, after)| format!("{what} {before} -> {after}")).collect()
}
