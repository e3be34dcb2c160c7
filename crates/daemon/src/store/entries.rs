//! Entries of the store.

use api::{
    AddFlow, AddPort, BoxName, ChainName, ConfigurationName, CreateBox, CreateChain, CreateService,
    CreateSwitch, MacAddr, PortName, ServiceName, Stack, StackName, Time,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A box as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredBox {
    /// Its definition, with every MAC address filled in, but without texts and files.
    pub(crate) definition: CreateBox,
    /// The stack that it belongs to.
    pub(crate) stack: Option<StackName>,
    /// When it was created.
    pub(crate) created: Time,
    /// Whether it should run.
    pub(crate) running: bool,
}

/// A configuration as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredConfiguration {
    /// The id of its row.
    pub(crate) id: i64,
    /// Its name.
    pub(crate) name: ConfigurationName,
    /// Its source name in diagnostics.
    pub(crate) source: Option<String>,
    /// When it was installed or last swapped.
    pub(crate) installed: Time,
    /// How often it was swapped.
    pub(crate) swaps: u32,
    /// Its text.
    pub(crate) text: String,
}

/// A flow as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFlow {
    /// Its number.
    pub(crate) id: u64,
    /// Its definition, with its priority.
    pub(crate) flow: AddFlow,
    /// The stack that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<StackName>,
}

/// The flows of a switch as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredFlows {
    /// Those without timeouts.
    pub(crate) list: Vec<StoredFlow>,
    /// The last number that a flow got, with or without timeouts. No other flow gets it.
    pub(crate) last: u64,
}

/// An instance of a service as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredInstance {
    /// Its number, from one. The box has the name of the service and this number.
    pub(crate) number: u16,
    /// The box.
    pub(crate) name: BoxName,
    /// When it is removed even if it has flows. Present: it is drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drain_until: Option<Time>,
}

/// A service as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredService {
    /// Its definition, without texts and files, which its instances have.
    pub(crate) definition: CreateService,
    /// Its instances by number. Those beyond the number of replicas are drained.
    pub(crate) instances: Vec<StoredInstance>,
    /// The stack that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<StackName>,
    /// When it was created.
    pub(crate) created: Time,
}

/// A chain as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredChain {
    /// Its definition.
    pub(crate) definition: CreateChain,
    /// The stack that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<StackName>,
}

/// The services and chains of a steering switch as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSteering {
    /// The services.
    #[serde(default)]
    pub(crate) services: Vec<StoredService>,
    /// The chains.
    #[serde(default)]
    pub(crate) chains: Vec<StoredChain>,
}

impl StoredSteering {
    /// Whether there are no services and no chains.
    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty() && self.chains.is_empty()
    }

    /// A service.
    pub(crate) fn service(&self, name: &ServiceName) -> Option<&StoredService> {
        self.services.iter().find(|stored| stored.definition.name == *name)
    }

    /// A service, to change it.
    pub(crate) fn service_mut(&mut self, name: &ServiceName) -> Option<&mut StoredService> {
        self.services.iter_mut().find(|stored| stored.definition.name == *name)
    }

    /// A chain.
    pub(crate) fn chain(&self, name: &ChainName) -> Option<&StoredChain> {
        self.chains.iter().find(|stored| stored.definition.name == *name)
    }
}

/// A switch as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredSwitch {
    /// Its definition, with its current ports. Its flows are in `flows`.
    pub(crate) definition: CreateSwitch,
    /// Addresses that were set at run time, in addition to those in the ports' definitions.
    pub(crate) addresses: Vec<(MacAddr, PortName)>,
    /// The flows of a steering switch.
    pub(crate) flows: StoredFlows,
    /// The services and chains of a steering switch.
    pub(crate) steering: StoredSteering,
    /// The ports that a stack made. The others were added by clients.
    pub(crate) makers: BTreeMap<PortName, StackName>,
    /// The stack that it belongs to.
    pub(crate) stack: Option<StackName>,
    /// When it was created.
    pub(crate) created: Time,
}

impl StoredSwitch {
    /// Removes ports from the definition, with what is known about them. Returns whether there were any.
    pub(crate) fn remove_ports(&mut self, is_removed: impl Fn(&AddPort) -> bool) -> bool {
        let removed: Vec<AddPort> = self.definition.ports.extract_if(.., |port| is_removed(port)).collect();
        for port in &removed {
            self.addresses.retain(|(_, at)| *at != port.name);
            self.makers.remove(&port.name);
        }
        !removed.is_empty()
    }

    /// Adds a port to the definition. It takes its addresses, and being the default port, from other ports.
    pub(crate) fn add_port(&mut self, port: AddPort) {
        port.addresses.iter().for_each(|mac| self.forget_address(*mac));
        if port.default {
            self.definition.ports.iter_mut().for_each(|other| other.default = false);
        }
        self.definition.ports.push(port);
    }

    /// Assigns an address to a port, which takes it from another one.
    pub(crate) fn set_address(&mut self, mac: MacAddr, port: &PortName) {
        self.addresses.retain(|(there, _)| *there != mac);
        let others = self.definition.ports.iter_mut().filter(|other| other.name != *port);
        others.for_each(|other| other.addresses.retain(|there| *there != mac));
        self.addresses.push((mac, port.clone()));
    }

    /// Removes an address from the port that it is assigned to.
    pub(crate) fn forget_address(&mut self, mac: MacAddr) {
        self.addresses.retain(|(there, _)| *there != mac);
        let ports = self.definition.ports.iter_mut();
        ports.for_each(|port| port.addresses.retain(|there| *there != mac));
    }
}

/// A stack as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredStack {
    /// Its name.
    pub(crate) name: StackName,
    /// Its definition, without texts and files.
    pub(crate) definition: Stack,
    /// When it was applied.
    pub(crate) applied: Time,
}

/// A stack that awaits confirmation, as stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredUnconfirmed {
    /// Its name.
    pub(crate) name: StackName,
    /// Its previous definition, with texts and files. `None` if it did not exist.
    pub(crate) before: Option<Stack>,
}
