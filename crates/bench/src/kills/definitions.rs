//! What a daemon has.

use super::change::RULES;
use api::client::{Client, ClientError};
use api::{Attachment, BoxState, PortDriver, operation};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Each of its ports is at its switch, if there is one.
    pub(super) is_attached: bool,
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
        // Switch, box, and number of the port.
        let mut attached = BTreeSet::new();
        for status in client.ask(&operation::LIST_SWITCHES, &[])? {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let detail = client.ask(&operation::SHOW_SWITCH, &[&name])?;
                let mut ports = BTreeMap::new();
                for port in detail.port_list {
                    match port.driver {
                        PortDriver::Box { name: of, port } => {
                            attached.insert((status.name.clone(), of, port));
                        }
                        _ => {
                            ports.insert(port.name.to_string(), port.stack.map(|stack| stack.to_string()));
                        }
                    }
                }
                let stack = status.stack.map(|stack| stack.to_string());
                let entry = SwitchEntry { stack, age: status.age_seconds, ports };
                found.switches.insert(name, entry);
            }
        }
        for status in client.ask(&operation::LIST_BOXES, &[])? {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let text = client.ask(&operation::SHOW_CONFIGURATION, &[&name, "main"])?.configuration;
                let detail = client.ask(&operation::SHOW_BOX, &[&name])?;
                let is_attached = (0u8..).zip(&detail.ports).all(|(number, port)| match &port.attach {
                    Attachment::Switch(switch) if found.switches.contains_key(switch.as_str()) => {
                        attached.contains(&(switch.clone(), status.name.clone(), number))
                    }
                    _ => true,
                });
                let written = detail.writes.iter().rfind(|write| write.handler == WRITTEN);
                let rules = written.map_or(RULES[0].to_string(), |write| write.value.text().into_owned());
                let is_running = status.state == BoxState::Running;
                let has_rules =
                    !is_running || client.ask(&operation::READ, &[&name, READ])?.value.text().trim() == rules;
                let stack = status.stack.map(|stack| stack.to_string());
                let weight = status.cpu_weight.into();
                let rules = Some(rules);
                let entry = BoxEntry { stack, text, weight, is_running, rules, has_rules, is_attached };
                found.boxes.insert(name, entry);
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
