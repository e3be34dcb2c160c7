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
        for service in wanted {
            if sockets.served().contains_key(service) {
                continue;
            }
            let (socket, token) = sockets.open(service)?;
            let (switch, service) = (switch.clone(), service.clone());
            let order = orders::ServeFunctions {
                switch: switch.clone(),
                service: service.clone(),
                token: ByteBuf::from(token.to_vec()),
            };
            self.0.fabrics.ask_with(order, &[socket.as_fd()])?;
            sockets.served().insert(service, switch);
        }
        Ok(())
    }

    /// Lets the sockets of the services of a switch be opened again: the fabric is another one, or does not know them.
    pub(super) fn forget_function_sockets(&self, switch: &SwitchName) {
        self.0.function_sockets.served().retain(|_, at| at != switch);
    }
}
