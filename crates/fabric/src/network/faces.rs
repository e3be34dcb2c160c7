//! Ports of instances at a steering switch.

use super::records::SwitchRecord;
use model::PortName;
use protocol::fabric::{InstanceDefinition, ServiceDefinition};
use std::collections::BTreeSet;
use switch::{ForwardingMode, SwitchRunner};

impl SwitchRecord {
    /// The names of ports through which instances get the packets of chains.
    pub(super) fn faces(&self) -> BTreeSet<PortName> {
        let of_service = |service: &ServiceDefinition| {
            let ports: Vec<u8> = service.faces.ports().collect();
            let of_instance = move |instance: &InstanceDefinition| {
                let name = |port: &u8| format!("{}.{port}", instance.name).parse().ok();
                ports.iter().filter_map(name).collect::<Vec<_>>()
            };
            service.instances.iter().flat_map(of_instance).collect::<Vec<_>>()
        };
        self.services.definition.services.iter().flat_map(of_service).collect()
    }
}

/// Keeps frames that are sent to all ports from functions, which would send them on as packets of chains.
pub(super) fn spare_faces(record: &SwitchRecord, runner: &mut SwitchRunner<ForwardingMode>) {
    let faces = record.faces();
    record.ports.iter().for_each(|(name, port)| runner.set_flooded(port.id, !faces.contains(name)));
}
