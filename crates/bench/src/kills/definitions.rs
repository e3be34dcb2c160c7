//! What a daemon has.

use super::change::RULES;
use api::client::{Client, ClientError};
use api::{BoxState, PortDriver, operation};
use std::collections::BTreeMap;

/// The handler that is written, and the one that shows what was written.
pub(super) const WRITTEN: &str = "f.rules";
const READ: &str = "f.config";

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
    /// The rules that were written to its handler, and are kept. Unknown after a migration from a version that does not
    /// store writes.
    pub(super) rules: Option<String>,
    /// If it runs, it filters by these rules.
    pub(super) has_rules: bool,
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
                let writes = client.ask(&operation::SHOW_BOX, &[&name])?.writes;
                let written = writes.iter().rfind(|write| write.handler == WRITTEN);
                let rules = written.map_or(RULES[0].to_string(), |write| write.value.text().into_owned());
                let is_running = status.state == BoxState::Running;
                let has_rules =
                    !is_running || client.ask(&operation::READ, &[&name, READ])?.value.text().trim() == rules;
                let stack = status.stack.map(|stack| stack.to_string());
                let weight = status.cpu_weight.into();
                let entry = BoxEntry { stack, text, weight, is_running, rules: Some(rules), has_rules };
                found.boxes.insert(name, entry);
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

    /// Takes unknown rules of boxes from what was found.
    pub(super) fn learn_rules(&mut self, found: &Self) {
        for (name, entry) in self.boxes.iter_mut().filter(|(_, entry)| entry.rules.is_none()) {
            entry.rules = found.boxes.get(name).and_then(|found| found.rules.clone());
        }
    }

    /// Makes the rules of all boxes unknown.
    pub(super) fn forget_rules(&mut self) {
        self.boxes.values_mut().for_each(|entry| entry.rules = None);
    }
}
