//! Creates and removes boxes.

use super::state::Supervisor;
use crate::boxes::ManagedBox;
use crate::error::{OperationError, RequestError};
use crate::fabric::AttachRequest;
use crate::limits::{MAX_BOXES, MAX_CONFIGURATION_BYTES, MAX_FILE_BYTES, MAX_LABEL_BYTES, MAX_LABELS};
use crate::store::{StoredBox, StoredConfiguration};
use crate::subject::Subject;
use api::{
    BoxDetail, BoxName, ConfigurationName, CreateBox, EventKind, File, MacAddr, PortRequest, StackName, Time,
};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Checks the sizes of texts and files.
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

/// A random MAC address: locally administered, unicast.
fn new_mac() -> MacAddr {
    let [a, b, c, d, e, ..] = RandomState::new().hash_one(0u8).to_le_bytes();
    MacAddr::new([2, a, b, c, d, e])
}

/// The request to attach a port.
pub(super) fn attach(port: &PortRequest) -> AttachRequest {
    AttachRequest { to: port.attach.clone(), mac: port.mac.unwrap_or_default(), limits: port.limits }
}

impl Supervisor {
    /// Creates a box, and starts it. On failure the box does not exist.
    pub fn create_box(&self, request: CreateBox) -> Result<BoxDetail, OperationError> {
        self.create_box_of(request, None)
    }

    /// Creates a box, possibly as part of a stack.
    pub(super) fn create_box_of(
        &self,
        mut request: CreateBox,
        stack: Option<StackName>,
    ) -> Result<BoxDetail, OperationError> {
        check_sizes(&request.configuration, &request.files)?;
        check_box(&request)?;
        self.0.factory.resolve(request.sandbox)?;
        let text = std::mem::take(&mut request.configuration);
        let files = std::mem::take(&mut request.files);
        for port in &mut request.ports {
            port.mac.get_or_insert_with(new_mac);
        }
        let name = request.name.clone();
        let managed = Arc::new(ManagedBox::new(request.clone(), stack.clone(), Time::now()));
        // From here on the name is reserved.
        let change = managed.change.lock();
        self.reserve(&managed)?;
        let made = self.check_for(&request, &text, &files).and_then(|()| {
            let stored = StoredBox {
                definition: request.clone(),
                stack,
                created: managed.inner().created,
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
            if request.start { self.boot(&managed) } else { Ok(()) }
        });
        drop(change);
        if let Err(failure) = made {
            // If the box is already being removed, that operation cleans up.
            if !std::mem::replace(&mut managed.inner().removed, true) {
                self.forget(&managed);
            }
            return Err(failure);
        }
        self.0.journal.note(EventKind::BoxCreated, &name, format!("box {name} was created"));
        Ok(self.detail(&managed))
    }

    /// Reserves the name of a box.
    fn reserve(&self, managed: &Arc<ManagedBox>) -> Result<(), OperationError> {
        let mut boxes = self.0.boxes();
        if self.0.is_ending() {
            return Err(OperationError::Ending);
        }
        if boxes.contains_key(&managed.name) {
            return Err(OperationError::Exists(Subject::from(&managed.name)));
        }
        if boxes.len() >= MAX_BOXES {
            return Err(OperationError::Limit("boxes", MAX_BOXES));
        }
        boxes.insert(managed.name.clone(), managed.clone());
        Ok(())
    }

    /// Attaches a box's ports.
    pub(super) fn attach_box(&self, definition: &CreateBox) -> Result<(), OperationError> {
        let _change = self.0.change();
        let (name, owner) = (definition.name.clone(), definition.owner.clone());
        let ports: Vec<AttachRequest> = definition.ports.iter().map(attach).collect();
        self.0.fabric.ask(move |network| network.attach(&name, &owner, &ports))?
    }

    /// Removes all traces of a box. Only the thread that set `removed` calls it, because afterwards the name may belong
    /// to another box.
    fn forget(&self, managed: &Arc<ManagedBox>) {
        {
            let _change = self.0.change();
            let name = managed.name.clone();
            // If the fabric has ended, nothing is attached.
            let _ = self.0.fabric.ask(move |network| network.detach(&name));
        }
        // A row that cannot be removed now was never stored, or belongs to a new box of the same name.
        let _ = self.0.store().remove_box(&managed.name);
        self.0.boxes().remove(&managed.name);
    }

    /// Kills a box if it runs, and removes it with everything that is stored about it.
    pub fn remove_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        if std::mem::replace(&mut managed.inner().removed, true) {
            // Another thread is removing it.
            return Err(OperationError::NoBox(name.clone()));
        }
        // The step that may fail comes first: if the disk is full, the box keeps running.
        if let Err(error) = self.0.store().remove_box(name) {
            managed.inner().removed = false;
            return Err(error.into());
        }
        self.bring_down(&managed, false);
        self.forget(&managed);
        self.drop_box_ports(name);
        self.0.journal.note(EventKind::BoxRemoved, name, format!("box {name} was removed"));
        Ok(())
    }
}

pub(super) fn check_box(request: &CreateBox) -> Result<(), OperationError> {
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
