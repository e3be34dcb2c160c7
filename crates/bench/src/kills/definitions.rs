//! What a daemon has.

use api::client::{Client, ClientError};
use api::{BoxState, PortDriver, operation};
use std::collections::BTreeMap;

/// What a daemon has, of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    pub(super) boxes: BTreeMap<String, BoxEntry>,
    pub(super) switches: BTreeMap<String, SwitchEntry>,
    pub(super) stacks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxEntry {
    pub(super) stack: Option<String>,
    pub(super) text: String,
    pub(super) weight: u32,
    pub(super) is_running: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SwitchEntry {
    pub(super) stack: Option<String>,
    pub(super) age: u32,
    /// The ports that connect no box, each with the stack that made it.
    pub(super) ports: BTreeMap<String, Option<String>>,
}

impl Definitions {
    /// What a daemon has of the client with this prefix.
    pub(super) fn read(client: &Client, prefix: &str) -> Result<Self, ClientError> {
        let mut found = Self::default();
        for status in client.ask(&operation::LIST_BOXES, &[])? {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let text = client.ask(&operation::SHOW_CONFIGURATION, &[&name, "main"])?.configuration;
                let stack = status.stack.map(|stack| stack.to_string());
                let is_running = status.state == BoxState::Running;
                let weight = status.cpu_weight.into();
                found.boxes.insert(name, BoxEntry { stack, text, weight, is_running });
            }
        }
        for status in client.ask(&operation::LIST_SWITCHES, &[])? {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let detail = client.ask(&operation::SHOW_SWITCH, &[&name])?;
                let ports = detail.port_list.into_iter();
                let ports = ports.filter(|port| !matches!(port.driver, PortDriver::Box { .. }));
                let ports =
                    ports.map(|port| (port.name.to_string(), port.stack.map(|stack| stack.to_string())));
                let stack = status.stack.map(|stack| stack.to_string());
                let entry = SwitchEntry { stack, age: status.age_seconds, ports: ports.collect() };
                found.switches.insert(name, entry);
            }
        }
        let stacks = client.ask(&operation::LIST_STACKS, &[])?;
        let stacks = stacks.into_iter().map(|status| status.name.to_string());
        found.stacks = stacks.filter(|name| name.starts_with(prefix)).collect();
        Ok(found)
    }
}
