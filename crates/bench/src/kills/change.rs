//! Random operations.

use super::definitions::{BoxEntry, Definitions, SwitchEntry, WRITTEN};
use api::client::{Client, ClientError};
use api::{
    AddPort, ApplyQuery, CreateBox, CreateSwitch, HandlerWrite, Install, Limits, NameError, PortDriver,
    PortRequest, RemoveQuery, Sandbox, Stack, operation,
};
use random::Random;
use std::collections::BTreeMap;

/// Names of each kind that a client uses.
const NAMES: u32 = 4;

/// Configurations, which differ in their text only.
const TEXTS: [&str; 2] = [
    "Idle -> f :: IPFilter(allow all) -> Discard; // one\n",
    "Idle -> f :: IPFilter(allow all) -> Discard; // two\n",
];

/// Rules of a filter: first those that a configuration has.
pub(super) const RULES: [&str; 4] = ["allow all", "allow udp", "allow tcp", "deny all"];

/// An operation of a client.
#[derive(Clone, Debug)]
pub(super) enum Change {
    CreateBox { name: String, text: &'static str, is_running: bool, switch: Option<String> },
    RemoveBox(String),
    Install { name: String, text: &'static str },
    SetRunning { name: String, is_running: bool },
    WriteRules { name: String, rules: &'static str },
    CreateSwitch(String),
    RemoveSwitch(String),
    AddPort { switch: String, port: String },
    RemovePort { switch: String, port: String },
    Apply { name: String, boxes: Vec<(String, &'static str, u32)>, age: u32, ports: u32 },
    RemoveStack(String),
}

/// Why an operation was not acknowledged.
#[derive(Debug)]
pub(super) enum ChangeError {
    Client(ClientError),
    Name(NameError),
}

impl From<ClientError> for ChangeError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<NameError> for ChangeError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

fn null_port(name: &str) -> Result<AddPort, NameError> {
    Ok(AddPort {
        name: name.parse()?,
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    })
}

/// A box in a process with one port: at this switch, or unattached.
fn process(name: &str, text: &str, switch: Option<&str>) -> Result<CreateBox, NameError> {
    let attach = match switch {
        Some(switch) => api::Attachment::Switch(switch.parse()?),
        None => api::Attachment::Nothing,
    };
    Ok(CreateBox {
        sandbox: Sandbox::Process,
        keep_writes: true,
        ports: vec![PortRequest { attach, ..PortRequest::default() }],
        ..CreateBox::new(name.parse()?, text)
    })
}

impl Change {
    /// A random operation.
    pub(super) fn new(random: &mut Random, prefix: &str) -> Self {
        let mut name = |kind: &str| format!("{prefix}{kind}{}", random.below(NAMES));
        let (box_name, switch, port, stack) = (name("box"), name("lan"), name("port"), name("stack"));
        let [one, two] = TEXTS;
        let mut text = || if random.below(2) == 0 { one } else { two };
        let (text, other) = (text(), text());
        match random.below(16) {
            0..3 => Self::CreateBox {
                name: box_name,
                text,
                is_running: random.below(2) == 0,
                switch: (random.below(2) == 0).then_some(switch),
            },
            3 => Self::RemoveBox(box_name),
            4..6 => Self::Install { name: box_name, text },
            6 => Self::SetRunning { name: box_name, is_running: random.below(2) == 0 },
            7 => {
                let [_, others @ ..] = RULES;
                let rules = others[random.below(others.len() as u32) as usize];
                Self::WriteRules { name: box_name, rules }
            }
            8 => Self::CreateSwitch(switch),
            9 => Self::RemoveSwitch(switch),
            10 => Self::AddPort { switch, port },
            11 => Self::RemovePort { switch, port },
            12..15 => {
                let count = random.below(4);
                let member = |number: u32| {
                    let text = if number.is_multiple_of(2) { text } else { other };
                    (format!("{stack}member{number}"), text, 100 + 10 * (number % 2))
                };
                Self::Apply {
                    name: stack.clone(),
                    boxes: (0..count).map(member).collect(),
                    age: 5 + random.below(2),
                    ports: random.below(3),
                }
            }
            _ => Self::RemoveStack(stack),
        }
    }

    /// Sends the operation.
    pub(super) fn send(&self, client: &Client) -> Result<(), ChangeError> {
        let force = &RemoveQuery::FORCE;
        match self {
            Self::CreateBox { name, text, is_running, switch } => {
                let request = process(name, text, switch.as_deref())?;
                client.send(&operation::CREATE_BOX, &[], &CreateBox { start: *is_running, ..request })?;
            }
            Self::RemoveBox(name) => {
                client.call(&operation::REMOVE_BOX, &[name], force, &())?;
            }
            Self::Install { name, text } => {
                let request = Install {
                    configuration: (*text).to_string(),
                    source: None,
                    files: Vec::new(),
                    uploads: Vec::new(),
                };
                client.send(&operation::INSTALL, &[name, "main"], &request)?;
            }
            Self::SetRunning { name, is_running: true } => {
                client.ask(&operation::START_BOX, &[name])?;
            }
            Self::SetRunning { name, is_running: false } => {
                client.ask(&operation::STOP_BOX, &[name])?;
            }
            Self::WriteRules { name, rules } => {
                let write = HandlerWrite { value: (*rules).into() };
                client.send(&operation::WRITE, &[name, WRITTEN], &write)?;
            }
            Self::CreateSwitch(name) => {
                client.send(&operation::CREATE_SWITCH, &[], &CreateSwitch::new(name.parse()?))?;
            }
            Self::RemoveSwitch(name) => {
                client.call(&operation::REMOVE_SWITCH, &[name], force, &())?;
            }
            Self::AddPort { switch, port } => {
                client.send(&operation::ADD_PORT, &[switch], &null_port(port)?)?;
            }
            Self::RemovePort { switch, port } => {
                client.call(&operation::REMOVE_PORT, &[switch, port], force, &())?;
            }
            Self::Apply { name, boxes, age, ports } => {
                let switch = format!("{name}lan");
                let mut lan = CreateSwitch::new(switch.parse()?);
                lan.age_seconds = *age;
                let ports = (0..*ports).map(|number| null_port(&format!("p{number}")));
                lan.ports = ports.collect::<Result<_, _>>()?;
                let member = |(member, text, weight): &(String, &str, u32)| {
                    let mut request = process(member, text, Some(&switch))?;
                    // The weights above are in range.
                    request.cpu_weight = (*weight).try_into().unwrap_or(request.cpu_weight);
                    Ok::<_, NameError>(request)
                };
                let boxes = boxes.iter().map(member).collect::<Result<_, _>>()?;
                let stack = Stack { switches: vec![lan], boxes, ..Stack::default() };
                client.call(&operation::APPLY_STACK, &[name], &ApplyQuery::default(), &stack)?;
            }
            Self::RemoveStack(name) => {
                client.call(&operation::REMOVE_STACK, &[name], force, &())?;
            }
        }
        Ok(())
    }

    /// Books what the operation changes if it succeeds.
    pub(super) fn book(&self, books: &mut Definitions) {
        match self.clone() {
            Self::CreateBox { name, text, is_running, .. } => {
                let entry = BoxEntry {
                    stack: None,
                    text: text.into(),
                    weight: 100,
                    is_running,
                    rules: Some(RULES[0].to_string()),
                    has_rules: true,
                    is_attached: true,
                };
                books.boxes.insert(name, entry);
            }
            Self::RemoveBox(name) => {
                books.boxes.remove(&name);
            }
            Self::Install { name, text } => {
                if let Some(entry) = books.boxes.get_mut(&name) {
                    entry.text = text.into();
                }
            }
            Self::SetRunning { name, is_running } => {
                if let Some(entry) = books.boxes.get_mut(&name) {
                    entry.is_running = is_running;
                }
            }
            Self::WriteRules { name, rules } => {
                if let Some(entry) = books.boxes.get_mut(&name) {
                    entry.rules = Some(rules.to_string());
                }
            }
            Self::CreateSwitch(name) => {
                let entry = SwitchEntry { stack: None, age: 300, ports: BTreeMap::new() };
                books.switches.insert(name, entry);
            }
            Self::RemoveSwitch(name) => {
                books.switches.remove(&name);
            }
            Self::AddPort { switch, port } => {
                if let Some(entry) = books.switches.get_mut(&switch) {
                    entry.ports.insert(port, None);
                }
            }
            Self::RemovePort { switch, port } => {
                if let Some(entry) = books.switches.get_mut(&switch) {
                    entry.ports.remove(&port);
                }
            }
            Self::Apply { name, boxes, age, ports } => {
                let before = books.clone();
                Self::RemoveStack(name.clone()).book(books);
                let stack = Some(name.clone());
                for (member, text, weight) in boxes {
                    // A box that was stopped by hand is not started.
                    let there = before.boxes.get(&member);
                    let is_running = there.is_none_or(|entry| entry.is_running);
                    let rules = there.map_or(Some(RULES[0].to_string()), |entry| entry.rules.clone());
                    let (stack, text) = (stack.clone(), text.to_string());
                    let entry = BoxEntry {
                        stack,
                        text,
                        weight,
                        is_running,
                        rules,
                        has_rules: true,
                        is_attached: true,
                    };
                    books.boxes.insert(member, entry);
                }
                let ports = (0..ports).map(|number| (format!("p{number}"), stack.clone())).collect();
                books.switches.insert(format!("{name}lan"), SwitchEntry { stack, age, ports });
                books.stacks.push(name);
                books.stacks.sort();
            }
            Self::RemoveStack(name) => {
                books.boxes.retain(|_, entry| entry.stack.as_ref() != Some(&name));
                books.switches.retain(|_, entry| entry.stack.as_ref() != Some(&name));
                books.stacks.retain(|stack| *stack != name);
            }
        }
    }
}
