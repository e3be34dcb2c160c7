//! Makes and removes boxes.

use super::state::Supervisor;
use crate::boxes::Member;
use crate::error::{OperationError, RequestError};
use crate::fabric::AttachRequest;
use crate::limits::{MAX_BOXES, MAX_CONFIGURATION_BYTES, MAX_FILE_BYTES, MAX_LABEL_BYTES, MAX_LABELS};
use crate::store::{StoredBox, StoredConfiguration};
use api::{
    BoxDetail, BoxName, ConfigurationName, CreateBox, EventKind, File, MacAddr, PortRequest, StackName, Time,
};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Checks that texts and files are of a size that a box takes.
pub(super) fn check_sizes(configuration: &str, files: &[File]) -> Result<(), OperationError> {
    if configuration.len() > MAX_CONFIGURATION_BYTES {
        return Err(OperationError::TooLarge(
            "the configuration",
            configuration.len(),
            MAX_CONFIGURATION_BYTES,
        ));
    }
    let largest = files.iter().map(|file| file.contents.0.len() + file.name.len()).max().unwrap_or(0);
    if largest > MAX_CONFIGURATION_BYTES {
        return Err(OperationError::TooLarge("a file", largest, MAX_CONFIGURATION_BYTES));
    }
    let sum = files.iter().map(|file| file.contents.0.len()).sum();
    if sum > MAX_FILE_BYTES {
        return Err(OperationError::TooLarge("all files together", sum, MAX_FILE_BYTES));
    }
    Ok(())
}

/// An address that nobody has: locally administered, of one station.
fn new_mac() -> MacAddr {
    let [a, b, c, d, e, ..] = RandomState::new().hash_one(0u8).to_le_bytes();
    MacAddr([2, a, b, c, d, e])
}

/// A port of a box as it is to be attached.
pub(super) fn attach(port: &PortRequest) -> AttachRequest {
    AttachRequest { to: port.attach.clone(), mac: port.mac.unwrap_or(MacAddr([0; 6])), limits: port.limits }
}

impl Supervisor {
    /// Makes a box, and starts it. If anything is refused there is no box.
    pub fn create_box(&self, request: CreateBox) -> Result<BoxDetail, OperationError> {
        self.create_box_of(request, None)
    }

    /// Makes a box of a stack.
    pub(super) fn create_box_of(
        &self,
        mut request: CreateBox,
        stack: Option<StackName>,
    ) -> Result<BoxDetail, OperationError> {
        check_sizes(&request.configuration, &request.files)?;
        check_box(&request)?;
        self.0.forge.resolve(request.sandbox)?;
        let text = std::mem::take(&mut request.configuration);
        let files = std::mem::take(&mut request.files);
        for port in &mut request.ports {
            port.mac.get_or_insert_with(new_mac);
        }
        let name = request.name.clone();
        let member = Arc::new(Member::new(request.clone(), stack.clone(), Time::now()));
        // The name is taken from here on.
        let busy = member.busy();
        self.reserve(&member)?;
        let made = self.check_for(&request, &text, &files).and_then(|()| {
            let stored = StoredBox {
                definition: request.clone(),
                stack,
                created: member.inner().created,
                running: request.start,
            };
            let configuration = StoredConfiguration {
                id: 0,
                name: ConfigurationName::main(),
                source: request.source.clone(),
                installed: Time::now(),
                swaps: 0,
                text,
            };
            self.attach_box(&request)?;
            self.0.store().add_box(&stored, &configuration, &files)?;
            if request.start { self.boot(&member) } else { Ok(()) }
        });
        drop(busy);
        if let Err(failure) = made {
            // Unless somebody removes it already: then he takes back all that it has.
            if !std::mem::replace(&mut member.inner().removed, true) {
                self.forget(&member);
            }
            return Err(failure);
        }
        self.0.journal.note(EventKind::BoxCreated, format!("box/{name}"), format!("box {name} was created"));
        Ok(self.detail(&member))
    }

    /// Takes a name.
    fn reserve(&self, member: &Arc<Member>) -> Result<(), OperationError> {
        let mut members = self.0.members();
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        if members.contains_key(&member.name) {
            return Err(OperationError::Exists("box", member.name.to_string()));
        }
        if members.len() >= MAX_BOXES {
            return Err(OperationError::Limit("boxes", MAX_BOXES));
        }
        members.insert(member.name.clone(), member.clone());
        Ok(())
    }

    /// Attaches a box's ports.
    pub(super) fn attach_box(&self, definition: &CreateBox) -> Result<(), OperationError> {
        let _change = self.0.change();
        let (name, owner) = (definition.name.clone(), definition.owner.clone());
        let ports: Vec<AttachRequest> = definition.ports.iter().map(attach).collect();
        self.0.fabric.ask(move |network| network.attach(&name, &owner, &ports))?
    }

    /// Takes back all that a box has or had. Only who has set `removed` does that: the name may be another box's afterwards.
    fn forget(&self, member: &Arc<Member>) {
        {
            let _change = self.0.change();
            let name = member.name.clone();
            // With the fabric gone there is nothing to be detached from.
            let _ = self.0.fabric.ask(move |network| network.detach(&name));
        }
        // A row that can't be removed now was not stored either, or belongs to a box that is made anew by its name.
        let _ = self.0.store().remove_box(&member.name);
        self.0.members().remove(&member.name);
    }

    /// Ends a box if it runs, and removes it with all that is kept about it.
    pub fn remove_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let member = self.0.member(name)?;
        if std::mem::replace(&mut member.inner().removed, true) {
            // Somebody else is about to remove it.
            return Err(OperationError::NoBox(name.clone()));
        }
        // First what may fail: with a full disk the box goes on.
        if let Err(error) = self.0.store().remove_box(name) {
            member.inner().removed = false;
            return Err(error.into());
        }
        self.bring_down(&member, false);
        self.forget(&member);
        self.drop_box_ports(name);
        self.0.journal.note(EventKind::BoxRemoved, format!("box/{name}"), format!("box {name} was removed"));
        Ok(())
    }
}

fn check_box(request: &CreateBox) -> Result<(), OperationError> {
    if request.ports.len() > boundary::limits::MAX_PORTS {
        return Err(RequestError::TooManyPorts(request.ports.len()).into());
    }
    let long =
        |(key, value): (&String, &String)| key.len() > MAX_LABEL_BYTES || value.len() > MAX_LABEL_BYTES;
    if request.labels.len() > MAX_LABELS || request.labels.iter().any(long) {
        return Err(RequestError::Labels.into());
    }
    Ok(())
}
