//! Services whose instances are functions in containers and other processes: their sockets are opened when a fabric has them.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::store::StoredSwitch;
use api::{ServiceName, SwitchName};
use protocol::fabric::orders;
use serde_bytes::ByteBuf;
use std::os::fd::AsFd;

impl Supervisor {
    /// Opens the sockets of the services of a switch that have none yet, and removes those of services that are gone. The fabric
    /// has the services.
    pub(super) fn serve_functions(&self, stored: &StoredSwitch) -> Result<(), OperationError> {
        let switch = &stored.definition.name;
        let services = stored.steering.services.iter().map(|service| &service.definition);
        let wanted: Vec<&ServiceName> =
            services.filter(|service| service.container).map(|service| &service.name).collect();
        let sockets = &self.0.function_sockets;
        let gone: Vec<ServiceName> = {
            let mut served = sockets.served();
            let is_gone = |name: &ServiceName, at: &mut SwitchName| at == switch && !wanted.contains(&name);
            served.extract_if(.., is_gone).map(|(name, _)| name).collect()
        };
        gone.iter().for_each(|name| sockets.remove(name));
        let mut result = Ok(());
        for service in wanted {
            let is_served = sockets.served().contains_key(service);
            // One that can't be served keeps no other one from it.
            if !is_served && let Err(failure) = self.serve_function(switch, service) {
                result = result.and(Err(failure));
            }
        }
        result
    }

    fn serve_function(&self, switch: &SwitchName, service: &ServiceName) -> Result<(), OperationError> {
        let (socket, token) = self.0.function_sockets.open(service)?;
        let order = orders::ServeFunctions {
            switch: switch.clone(),
            service: service.clone(),
            token: ByteBuf::from(token.to_vec()),
        };
        self.0.fabrics.ask_with(order, &[socket.as_fd()])?;
        self.0.function_sockets.served().insert(service.clone(), switch.clone());
        Ok(())
    }

    /// Opens the sockets of services that could not be opened, perhaps because a disk was full.
    pub(super) fn serve_missing_functions(&self) {
        let is_missing = |stored: &StoredSwitch| {
            let served = self.0.function_sockets.served();
            let mut services = stored.steering.services.iter().map(|service| &service.definition);
            services.any(|service| service.container && !served.contains_key(&service.name))
        };
        let switches: Vec<SwitchName> = {
            let switches = self.0.switches();
            let missing = switches.values().filter(|stored| is_missing(stored));
            missing.map(|stored| stored.definition.name.clone()).collect()
        };
        for switch in switches {
            // A change of the switch's services opens sockets too, and is done then.
            let _change = self.0.change();
            if let Ok(stored) = self.stored_switch(&switch) {
                // The next look tries again.
                let _ = self.serve_functions(&stored);
            }
        }
    }

    /// Removes the sockets of services that are not stored.
    pub(super) fn remove_strange_sockets(&self, switches: &[StoredSwitch]) {
        let services = switches.iter().flat_map(|stored| &stored.steering.services);
        let wanted = services.filter(|service| service.definition.container);
        self.0.function_sockets.retain(&wanted.map(|service| service.definition.name.clone()).collect());
    }

    /// Lets the sockets of the services of a switch be opened again: the fabric is another one, or does not know them.
    pub(super) fn forget_function_sockets(&self, switch: &SwitchName) {
        self.0.function_sockets.served().retain(|_, at| at != switch);
    }
}
