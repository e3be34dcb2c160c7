//! Translators that translate to the same addresses.
//!
//! A packet from outside is for the translator that has its destination. If the chains of two end at one port, it could be for either.
//! With a port for each uplink, it is clear.

use crate::service_error::ServiceError;
use crate::store::StoredSteering;
use api::{PortName, ServiceName, Translation};

/// Returns an error if a change makes the chains of translators with addresses in common end at one port. What was so before may
/// stay.
pub(super) fn check(before: &StoredSteering, after: &StoredSteering) -> Result<(), ServiceError> {
    match (find(before), find(after)) {
        (None, Some(error)) => Err(error),
        _ => Ok(()),
    }
}

fn find(steering: &StoredSteering) -> Option<ServiceError> {
    let translation = |name: &ServiceName| steering.service(name)?.definition.translation.as_ref();
    let mut seen: Vec<(&PortName, &ServiceName, &Translation)> = Vec::new();
    for chain in &steering.chains {
        for name in &chain.definition.services {
            let Some(own) = translation(name) else { continue };
            let port = &chain.definition.to;
            let at_port = seen.iter().filter(|(at, ..)| *at == port);
            let mut others = at_port.filter(|(_, other, _)| *other != name);
            let shared = others.find_map(|(_, other, theirs)| Some((*other, own.shared_with(theirs)?)));
            if let Some((other, range)) = shared {
                let services = [other.clone(), name.clone()];
                return Some(ServiceError::SharedAddresses { services, port: port.clone(), range });
            }
            seen.push((port, name, own));
        }
    }
    None
}
