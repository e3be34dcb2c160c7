//! The ingress ports by which flows match frames.
//!
//! A frame that an instance of a service sent, and that is looked up, arrives at the port that stands for the service. So
//! flows concern the frames of all instances, also of those that come later.

use super::chains::Role;
use super::flow::PortKey;
use flow_table::{Ingress, Output, port_number};
use std::collections::BTreeMap;

/// The ingress port in the key of a frame from a port without key. No flow has it.
const NO_PORT_KEY: u32 = u32::MAX;

/// The service that the number of an ingress port stands for.
pub(super) fn service_of(port: Option<u32>) -> Option<u16> {
    match Output::from_port_number(port?, 0) {
        Some(Output::Service(service)) => u16::try_from(service).ok(),
        _ => None,
    }
}

/// The numbers of tunnels (OXM_OF_TUNNEL_ID of OpenFlow 1.3.5, 7.2.3.7), by those of the ports that are tunnels.
#[derive(Debug, Default)]
pub(super) struct Tunnels(BTreeMap<u32, u64>);

impl Tunnels {
    /// Sets or removes the tunnel of a port.
    pub(super) fn set(&mut self, port: PortKey, tunnel: Option<u64>) {
        match tunnel {
            Some(tunnel) => self.0.insert(port.0.into(), tunnel),
            None => self.0.remove(&port.0.into()),
        };
    }

    /// The tunnel of a port; 0 if it has none.
    pub(super) fn of(&self, port: Option<u32>) -> u64 {
        port.and_then(|port| self.0.get(&port)).copied().unwrap_or_default()
    }

    /// The ingress of frames from a port.
    pub(super) fn ingress(&self, port: Option<u32>) -> Ingress {
        Ingress { port: port.unwrap_or(NO_PORT_KEY), tunnel: self.of(port), ..Ingress::default() }
    }
}

/// The number of the ingress port of frames from a port, and from the instance behind it.
#[inline(always)]
pub(super) fn number(key: Option<PortKey>, role: Option<Role>) -> Option<u32> {
    match role {
        Some(role) => Some(port_number::SERVICES.start + u32::from(role.service)),
        None => key.map(|key| key.0.into()),
    }
}
