//! The ingress ports by which flows match frames.
//!
//! A frame that an instance of a service sent, and that is looked up, arrives at the port that stands for the service. So
//! flows concern the frames of all instances, also of those that come later.

use super::chains::Role;
use super::flow::PortKey;
use flow_table::{Ingress, Output, port_number};

/// The ingress port in the key of a frame from a port without key. No flow has it.
const NO_PORT_KEY: u32 = u32::MAX;

/// The service that the number of an ingress port stands for.
pub(super) fn service_of(port: Option<u32>) -> Option<u16> {
    match Output::from_port_number(port?, 0) {
        Some(Output::Service(service)) => u16::try_from(service).ok(),
        _ => None,
    }
}

/// The ingress of frames from a port.
pub(super) fn ingress_of(port: Option<u32>) -> Ingress {
    Ingress { port: port.unwrap_or(NO_PORT_KEY), ..Ingress::default() }
}

/// The number of the ingress port of frames from a port, and from the instance behind it.
#[inline(always)]
pub(super) fn number(key: Option<PortKey>, role: Option<Role>) -> Option<u32> {
    match role {
        Some(role) => Some(port_number::SERVICES.start + u32::from(role.service)),
        None => key.map(|key| key.0.into()),
    }
}
