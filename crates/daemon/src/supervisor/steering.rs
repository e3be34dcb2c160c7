//! The services and chains of steering switches: they are stored with their switch, and each change gives the fabric the
//! whole state of the switch.

use super::managed_box::InstanceOf;
use super::operation::Operation;
use super::shared_addresses;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::store::{StoreChange, StoredService, StoredSteering, StoredSwitch};
use api::{
    AddressRange, CreateService, Destination, EventKind, ServiceName, SwitchMode, SwitchName, with_causes,
};
use protocol::fabric::{
    FabricError, InstanceDefinition, ServiceDefinition, SteeringDefinition, SteeringReply,
    TranslationDefinition,
};
use std::sync::Arc;

/// What an instance of a service knows of it. Numbers begin with one.
pub(super) fn instance_of(stored: &StoredService, number: u16) -> Arc<InstanceOf> {
    let definition = &stored.definition;
    Arc::new(InstanceOf {
        service: definition.name.clone(),
        destinations: definition.may_send_to.iter().cloned().collect(),
        parameters: range_of(definition, number).map(AddressRange::parameters).unwrap_or_default(),
    })
}

/// What an instance translates addresses to, if its service is a translator. Numbers begin with one.
pub(super) fn range_of(definition: &CreateService, number: u16) -> Option<AddressRange> {
    definition.translation.as_ref()?.slice(number)
}

impl Supervisor {
    /// A steering switch.
    pub(super) fn steering_switch(&self, name: &SwitchName) -> Result<StoredSwitch, OperationError> {
        let stored = self.stored_switch(name)?;
        match stored.definition.mode {
            SwitchMode::Steering => Ok(stored),
            _ => Err(FabricError::NotSteering(name.clone()).into()),
        }
    }

    /// The service of this name, with its switch.
    pub(super) fn find_service(&self, name: &ServiceName) -> Option<(SwitchName, StoredService)> {
        self.0.switches().iter().find_map(|(switch, stored)| {
            stored.steering.service(name).map(|found| (switch.clone(), found.clone()))
        })
    }

    /// The service of this name, with its switch, or the error that there is none.
    pub(super) fn stored_service(
        &self,
        name: &ServiceName,
    ) -> Result<(SwitchName, StoredService), OperationError> {
        self.find_service(name).ok_or_else(|| OperationError::NoService(name.clone()))
    }

    /// Returns an error if a switch has services.
    pub(super) fn refuse_services(&self, name: &SwitchName) -> Result<(), OperationError> {
        let services: Vec<ServiceName> = match self.0.switches().get(name) {
            Some(stored) => {
                stored.steering.services.iter().map(|found| found.definition.name.clone()).collect()
            }
            None => Vec::new(),
        };
        match services.is_empty() {
            true => Ok(()),
            false => Err(OperationError::HasServices(name.clone(), services)),
        }
    }

    /// Changes the services and chains of a switch as a step of an operation.
    pub(super) fn change_steering(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        change: impl FnOnce(&mut StoredSteering),
    ) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.steering_switch(switch)?;
        let before = stored.steering.clone();
        change(&mut stored.steering);
        if stored.steering == before {
            return Ok(());
        }
        shared_addresses::check(&before, &stored.steering)?;
        operation.note_ports([switch]);
        let at = switch.clone();
        operation.undo_by(move |supervisor| {
            let _change = supervisor.0.change();
            let Ok(mut stored) = supervisor.stored_switch(&at) else { return };
            stored.steering = before;
            // If the fabric has ended, the next one gets them as they were.
            let _ = supervisor.order_steering(&stored);
            supervisor.0.switches().insert(at, stored);
        });
        self.order_steering(&stored)?;
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        Ok(())
    }

    /// Gives the fabric the services and chains of a switch.
    fn order_steering(&self, stored: &StoredSwitch) -> Result<(), OperationError> {
        let (switch, steering) = (stored.definition.name.clone(), self.steering_definition(stored));
        self.0.fabrics.set_steering(switch, steering)?;
        self.serve_functions(stored)
    }

    fn steering_definition(&self, stored: &StoredSwitch) -> SteeringDefinition {
        let boxes = self.0.boxes();
        let service = |stored: &StoredService| ServiceDefinition {
            name: stored.definition.name.clone(),
            faces: stored.definition.faces,
            dead_after_ms: stored.definition.dead_after_ms,
            places: stored.definition.places,
            pool: stored.definition.trust_pool.then(|| stored.definition.instance.owner.clone()),
            destinations: stored.definition.may_send_to.iter().cloned().collect::<Vec<Destination>>(),
            // The store may have set a box aside.
            instances: stored
                .instances
                .iter()
                .filter(|instance| boxes.contains_key(&instance.name))
                .map(|instance| InstanceDefinition {
                    name: instance.name.clone(),
                    draining: instance.drain_until.is_some(),
                    range: range_of(&stored.definition, instance.number),
                })
                .collect(),
            translation: stored
                .definition
                .translation
                .as_ref()
                .map(|translation| TranslationDefinition { mappings: translation.mappings.clone() }),
        };
        SteeringDefinition {
            services: stored.steering.services.iter().map(service).collect(),
            chains: stored.steering.chains.iter().map(|chain| chain.definition.clone()).collect(),
        }
    }

    /// Gives a switch in the fabric the services and chains that are stored. `is_adopted`: an earlier daemon may have given it
    /// others.
    pub(super) fn restore_steering(&self, stored: &StoredSwitch, is_adopted: bool) {
        let is_empty = stored.steering.is_empty();
        if stored.definition.mode != SwitchMode::Steering || (is_empty && !is_adopted) {
            return;
        }
        self.forget_function_sockets(&stored.definition.name);
        if let Err(failure) = self.order_steering(stored)
            && !is_empty
        {
            let switch = &stored.definition.name;
            let message = format!(
                "the services and chains of switch {switch} could not be restored: {}",
                with_causes(&failure)
            );
            self.0.journal.note(EventKind::SteeringLost, switch, message);
        }
    }

    /// Records which boxes are instances of the services of a switch, and who owns these.
    pub(super) fn mark_instances(&self, stored: &StoredSwitch) {
        for service in &stored.steering.services {
            self.0.journal.owners.set(&service.definition.name, service.definition.instance.owner.clone());
            for instance in &service.instances {
                // The store may have set it aside.
                if let Ok(managed) = self.0.managed_box(&instance.name) {
                    managed.inner().service = Some(instance_of(service, instance.number));
                }
            }
        }
    }

    /// The steering switches with services or chains that the caller may see.
    pub(super) fn switches_with_steering(&self) -> Vec<StoredSwitch> {
        let switches = self.0.switches();
        let all = switches.values().filter(|stored| !stored.steering.is_empty());
        all.filter(|stored| self.sees(&stored.definition.owner)).cloned().collect()
    }

    /// The state of the services and chains of a switch in the fabric.
    pub(super) fn steering_reply(&self, switch: &SwitchName) -> Result<SteeringReply, OperationError> {
        self.until_rebuilt(|| self.0.fabrics.steering(switch.clone()))
    }
}
