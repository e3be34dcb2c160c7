//! What services may send packets to, beside the next service of a chain.

use super::state::Supervisor;
use crate::error::OperationError;
use crate::service_error::ServiceError;
use crate::store::StoredSwitch;
use api::{ChainName, CreateService, Destination, PortName, ServiceName};

/// Takes a plain name that is no service but a port for the port.
pub(super) fn find_ports(
    request: &mut CreateService,
    is_service: impl Fn(&ServiceName) -> bool,
    is_port: impl Fn(&PortName) -> bool,
) {
    let named = std::mem::take(&mut request.may_send_to);
    let port = |name: &ServiceName| name.as_str().parse().ok().filter(&is_port).map(Destination::Port);
    let found = named.into_iter().map(|destination| match &destination {
        Destination::Service(name) if *name != request.name && !is_service(name) => {
            port(name).unwrap_or(destination)
        }
        _ => destination,
    });
    request.may_send_to = found.collect();
}

/// Returns an error if instances may send to a chain that is not there.
pub(super) fn check_chains_of(
    request: &CreateService,
    is_there: impl Fn(&ChainName) -> bool,
) -> Result<(), ServiceError> {
    let missing = |destination: &&Destination| match destination {
        Destination::Chain(name) => !is_there(name),
        Destination::Service(_) | Destination::Port(_) => false,
    };
    match request.may_send_to.iter().find(missing) {
        Some(missing) => Err(ServiceError::NoDestination(request.switch.clone(), missing.clone())),
        None => Ok(()),
    }
}

/// The services that may send to a destination.
pub(super) fn senders(at: &StoredSwitch, to: Destination) -> impl Iterator<Item = ServiceName> {
    let services = at.steering.services.iter().map(|there| &there.definition);
    services.filter(move |there| there.may_send_to.contains(&to)).map(|there| there.name.clone())
}

impl Supervisor {
    /// Returns an error if instances may send to a service or a port that their switch does not have. `new`: services that it is
    /// about to get.
    pub(super) fn check_destinations(
        &self,
        at: &StoredSwitch,
        request: &CreateService,
        new: &[ServiceName],
    ) -> Result<(), OperationError> {
        let switch = &at.definition.name;
        let ports = self.port_names(switch)?;
        let is_there = |destination: &&Destination| match destination {
            Destination::Service(name) => {
                *name == request.name || new.contains(name) || at.steering.service(name).is_some()
            }
            Destination::Port(name) => ports.contains(name),
            Destination::Chain(_) => true,
        };
        match request.may_send_to.iter().find(|destination| !is_there(destination)) {
            Some(missing) => Err(ServiceError::NoDestination(switch.clone(), missing.clone()).into()),
            None => Ok(()),
        }
    }
}
