//! Creates and removes boxes.

use super::claims::Claim;
use super::lifecycle::{Boot, StartResult, configuration_of, in_source};
use super::managed_box::{InstanceOf, Known, ManagedBox, load_box};
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::limits::{MAX_BOXES, MAX_CONFIGURATION_BYTES, MAX_FILE_BYTES, MAX_LABEL_BYTES, MAX_LABELS};
use crate::store::{Action, StoreChange, StoredBox, StoredConfiguration, StoredSwitch};
use api::Subject;
use api::{
    AddPort, Attachment, BoxDetail, BoxName, ConfigurationName, CreateBox, EventKind, File, ImageSource,
    MacAddr, PortDriver, PortRequest, RecordedWrite, StackName, SwitchName, Time, with_causes,
};
use protocol::fabric::{Asked, BoxRuntime, Configuration, FabricError, Phase, TrafficSnapshot, orders};
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

/// What a box is made for.
#[derive(Debug, Default)]
pub(super) struct Making {
    /// The stack that it belongs to.
    pub(super) stack: Option<StackName>,
    /// Writes to its handlers that are executed before its first packet.
    pub(super) writes: Vec<RecordedWrite>,
    /// The service that it is an instance of. Its configuration was checked.
    pub(super) service: Option<Arc<InstanceOf>>,
}

/// Returns an error if a box is an instance of a service, which alone removes and changes it.
pub(super) fn refuse_instance(managed: &ManagedBox) -> Result<(), OperationError> {
    match &managed.inner().service {
        Some(of) => Err(OperationError::Instance(managed.name.clone(), of.service.clone())),
        None => Ok(()),
    }
}

/// Bytes of files of a new box that are stored while the fabric creates it: other changes wait meanwhile.
const STORED_MEANWHILE: usize = 64 << 10;

impl Supervisor {
    /// Creates a box, and starts it. On failure the box does not exist.
    pub fn create_box(&self, mut request: CreateBox) -> Result<BoxDetail, OperationError> {
        self.adopt_box(&mut request)?;
        self.refuse_while_draining()?;
        if self.0.boxes().contains_key(&request.name) {
            return Err(OperationError::Exists(Subject::from(&request.name)));
        }
        let name = request.name.clone();
        let claims: Vec<Claim> = std::iter::once(Claim::change(&name)).chain(relied_on(&request)).collect();
        let (managed, runtime) = self.operate(Action::Create, &name, &|| claims.clone(), |operation| {
            self.make_box(operation, request, Making::default())
        })?;
        match runtime {
            // It had exchanged no packets and got no writes to its handlers then.
            Some(runtime) => {
                Ok(self.detail_of(&managed, &runtime, &TrafficSnapshot::default(), Default::default()))
            }
            None => self.detail(&managed),
        }
    }

    /// Creates a box, possibly as part of a stack or of a service. Returns its state when it was started, if the fabric says it.
    pub(super) fn make_box(
        &self,
        operation: &mut Operation,
        mut request: CreateBox,
        Making { stack, writes, service }: Making,
    ) -> Result<(Arc<ManagedBox>, Option<Box<BoxRuntime>>), OperationError> {
        check_sizes(&request.configuration, &request.files)?;
        check_box(&request)?;
        let text = std::mem::take(&mut request.configuration);
        let files = std::mem::take(&mut request.files);
        for port in &mut request.ports {
            port.mac.get_or_insert_with(new_mac);
        }
        let managed = Arc::new(ManagedBox::new(request.clone(), stack.clone(), Time::now(), request.start));
        // The configuration of a service was checked once for all instances.
        let is_checked = service.is_some();
        managed.inner().service = service;
        // A new fabric gets the boxes that there are.
        self.fabric_of(&request.owner)?;
        let _change = managed.change.lock();
        // From here on the name is reserved.
        self.reserve(&managed)?;
        operation.note_ports(attached_switches(&request));
        let made = managed.clone();
        operation.undo_by(move |supervisor| supervisor.unmake_box(&made));
        // A box that starts at once finds the same errors itself, when its configuration is installed.
        let is_unchecked_start = !is_checked && request.start && self.is_start_limited(&request);
        let checked = match is_checked || is_unchecked_start {
            true => None,
            false => Some(self.begin_check_for(&request, Known::default(), &text, &files)?),
        };
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
        let is_large = files.iter().map(|file| file.contents.0.len()).sum::<usize>() > STORED_MEANWHILE;
        // One order is enough, unless something is waited for before the start.
        let is_launched = request.start && checked.is_none() && !is_large;
        let launched = is_launched.then(|| configuration_of(&managed, &configuration, &files));
        let stage = || operation.stage_box(stored, configuration, files);
        let attachable = self.check_attachments(&request);
        let mut runtime = None;
        if let Some(launched) = launched {
            attachable?;
            let (staged, started) = self.launch_box_while(&managed, launched, writes.clone(), stage)?;
            staged?;
            operation.note_started(&managed);
            let started = match started {
                // An earlier version, which has done nothing.
                Err(OperationError::Fabric(FabricError::Unsupported)) => self
                    .attach_box_while(&managed, true, || ())
                    .and_then(|()| self.boot_with(&managed, Boot::default(), writes)),
                started => started,
            };
            runtime = self.checked_start(&managed, is_unchecked_start, started)?;
        } else {
            // Its sandbox is created meanwhile. It is started when a check, if there is one, has accepted the configuration.
            let staged = match is_large {
                true => attachable
                    .and_then(|()| stage())
                    .and_then(|()| self.attach_box_while(&managed, request.start, || ())),
                false => {
                    attachable.and_then(|()| self.attach_box_while(&managed, request.start, stage)).flatten()
                }
            };
            checked.map_or(Ok(()), |checked| self.finish_check(checked))?;
            staged?;
            if request.start {
                operation.note_started(&managed);
                let started = self.boot_with(&managed, Boot::default(), writes);
                runtime = self.checked_start(&managed, is_unchecked_start, started)?;
            }
        }
        let message = format!("box {} was created", managed.name);
        operation.note(EventKind::BoxCreated, &managed.name, message);
        Ok((managed.clone(), runtime))
    }

    /// The result of the first start of a box. If it has failed, and its configuration was not checked, the errors in that are
    /// the reason.
    fn checked_start<T>(
        &self,
        managed: &ManagedBox,
        is_unchecked: bool,
        started: Result<T, OperationError>,
    ) -> Result<T, OperationError> {
        match &started {
            Err(failure) if is_unchecked => self.check_failed_start(managed, failure)?,
            _ => {}
        }
        started
    }

    /// Undoes the creation of a box.
    fn unmake_box(&self, managed: &Arc<ManagedBox>) {
        managed.inner().removed = true;
        self.forget(managed);
        self.0.journal.owners.remove(&Subject::from(&managed.name));
    }

    /// Reserves the name of a box.
    pub(super) fn reserve(&self, managed: &Arc<ManagedBox>) -> Result<(), OperationError> {
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
        let definition = managed.inner().definition.clone();
        self.check_box_quota(boxes.values(), &definition)?;
        self.0.journal.owners.set(&managed.name, definition.owner);
        boxes.insert(managed.name.clone(), managed.clone());
        Ok(())
    }

    /// Returns an error if a box is to be attached to a switch that its owner can't use.
    fn check_attachments(&self, definition: &CreateBox) -> Result<(), OperationError> {
        definition.ports.iter().try_for_each(|port| match &port.attach {
            Attachment::Switch(switch) => self.check_owner(switch, &definition.owner),
            Attachment::Pipe(_) | Attachment::Nothing => Ok(()),
        })
    }

    /// Defines a box in the fabric, which attaches its ports.
    #[cfg(test)]
    pub(super) fn attach_box(&self, managed: &ManagedBox) -> Result<(), OperationError> {
        self.attach_box_while(managed, false, || ())
    }

    /// Defines a box in the fabric, which attaches its ports, and does something meanwhile. `prepare`: it is about to be started.
    fn attach_box_while<T>(
        &self,
        managed: &ManagedBox,
        prepare: bool,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<T, OperationError> {
        let definition = managed.inner().definition.clone();
        self.load_image(&*self.fabric_of(&definition.owner)?, definition.image_digest())?;
        let _change = self.0.change();
        managed.inner().ordered = true;
        self.add_proxies(&definition)?;
        let defined = self.0.fabrics.begin(orders::DefineBox { definition, stopped: false, prepare })?;
        let done = meanwhile();
        defined.wait().map(|()| done)
    }

    /// Defines a box in the fabric, which attaches its ports, starts it, and does something meanwhile. Returns what that gave, and
    /// the state of the box if it was started.
    fn launch_box_while<T>(
        &self,
        managed: &ManagedBox,
        configuration: Configuration,
        writes: Vec<RecordedWrite>,
        meanwhile: impl FnOnce() -> T,
    ) -> Result<(T, StartResult), OperationError> {
        let definition = managed.inner().definition.clone();
        self.load_image(&*self.fabric_of(&definition.owner)?, definition.image_digest())?;
        let source = definition.source.clone();
        let launched = {
            // Other changes do not wait for the start.
            let _change = self.0.change();
            managed.inner().ordered = true;
            self.add_proxies(&definition)?;
            let configurations = vec![configuration];
            self.0.fabrics.begin(orders::LaunchBox { definition, configurations, writes })?
        };
        let done = meanwhile();
        let started = launched.wait().map(|started| started.runtime);
        Ok((done, started.map_err(|failure| in_source(failure, source.as_deref()))))
    }

    /// Removes all traces of a box but those in the store.
    fn forget(&self, managed: &Arc<ManagedBox>) {
        {
            let _change = self.0.change();
            // If the fabric has ended, it has no box.
            let _ = self.0.fabrics.ask(orders::ForgetBox { name: managed.name.clone() });
            // Before the next fabric can get it.
            self.0.boxes().remove(&managed.name);
        }
        self.remove_unused_proxies();
    }

    /// Removes a box that is stopped, with everything that is stored about it.
    pub fn remove_stopped_box(&self, name: &BoxName) -> Result<(), OperationError> {
        refuse_instance(&*self.0.managed_box(name)?)?;
        self.operate(Action::Remove, name, &|| self.claims_to_remove_box(name), |operation| {
            let managed = self.0.managed_box(name)?;
            refuse_instance(&managed)?;
            let phase = self.runtime(name, Asked::None)?.phase;
            if !matches!(phase, Phase::Created | Phase::Stopped | Phase::Crashed) {
                return Err(OperationError::InUse(name.into(), Vec::new()));
            }
            self.plan_removal(operation, &managed);
            operation.after_commit(move |supervisor| supervisor.take_down_box(&managed));
            Ok(())
        })
    }

    /// Kills a box if it runs, and removes it with everything that is stored about it.
    pub fn remove_box(&self, name: &BoxName) -> Result<(), OperationError> {
        let managed = self.0.managed_box(name)?;
        refuse_instance(&managed)?;
        self.interrupt_operation_on(&managed);
        let claims = || self.claims_to_remove_box(name);
        self.operate(Action::Remove, name, &claims, |operation| {
            let managed = self.0.managed_box(name)?;
            refuse_instance(&managed)?;
            self.plan_removal(operation, &managed);
            // If it cannot be stored, for example because the disk is full, the box keeps running.
            operation.after_commit(move |supervisor| supervisor.take_down_box(&managed));
            Ok(())
        })
    }

    /// Ends a box that is to be removed if an operation on it alone is in progress: that operation need not be waited
    /// for, for example in an endless loop.
    pub(super) fn interrupt_operation_on(&self, managed: &ManagedBox) {
        let subject = Subject::from(&managed.name);
        if self.0.claims.changed_by(&subject) == Some(subject) {
            managed.inner().running = false;
            self.bring_down(&managed.name, false);
        }
    }

    /// The claims of an operation that removes a box.
    pub(super) fn claims_to_remove_box(&self, name: &BoxName) -> Vec<Claim> {
        let mut claims = vec![Claim::change(name)];
        if let Ok(managed) = self.0.managed_box(name) {
            claims.extend(relied_on(&managed.inner().definition));
        }
        let joined = self.switches_with_port_of(name);
        claims.extend(joined.iter().map(|stored| Claim::change(&stored.definition.name)));
        claims
    }

    /// Adds the removal of a box to an operation. [`take_down_box`](Self::take_down_box) realises it.
    pub(super) fn plan_removal(&self, operation: &mut Operation, managed: &ManagedBox) {
        operation.add(StoreChange::RemoveBox(managed.name.clone()));
        for mut stored in self.switches_with_port_of(&managed.name) {
            stored.remove_ports(|port| is_port_of(port, &managed.name));
            operation.add(StoreChange::PutSwitch(stored));
        }
        let message = format!("box {} was removed", managed.name);
        operation.note(EventKind::BoxRemoved, &managed.name, message);
    }

    /// Ends a box, and removes it from the switches and from the list of boxes.
    pub(super) fn take_down_box(&self, managed: &Arc<ManagedBox>) {
        managed.inner().removed = true;
        self.forget(managed);
        let _change = self.0.change();
        for stored in self.0.switches().values_mut() {
            stored.remove_ports(|port| is_port_of(port, &managed.name));
        }
    }

    /// Undoes the removal of a box. The state inside it is lost, but not what was written to change its configurations.
    pub(super) fn put_box_back(
        &self,
        name: &BoxName,
        service: Option<Arc<InstanceOf>>,
        joined: Vec<StoredSwitch>,
    ) {
        let stored = self.0.store().read_box(name.as_str());
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => {
                let message = format!("box {name} could not be restored: {}", with_causes(&error));
                return self.0.journal.note(EventKind::BoxCrashed, name, message);
            }
        };
        let managed = load_box(stored);
        managed.inner().service = service;
        {
            // Otherwise a rebuild in between could find the box without its ports.
            let _change = self.0.change();
            self.0.boxes().insert(managed.name.clone(), managed.clone());
            self.define_restored(&managed);
            self.restore_ports(&joined, |port| is_port_of(port, name));
            self.0
                .switches()
                .extend(joined.into_iter().map(|stored| (stored.definition.name.clone(), stored)));
        }
        self.start_wanted(&managed, None, Boot { restore: true, replay: true, has_equals: false });
    }

    /// The switches whose definition has a port of a box.
    pub(super) fn switches_with_port_of(&self, name: &BoxName) -> Vec<StoredSwitch> {
        self.0.switches().values().filter(|stored| has_port_of(stored, name)).cloned().collect()
    }
}

/// The switches that a box is attached to.
fn attached_switches(definition: &CreateBox) -> impl Iterator<Item = &SwitchName> {
    definition.ports.iter().filter_map(|port| match &port.attach {
        Attachment::Switch(switch) => Some(switch),
        Attachment::Pipe(_) | Attachment::Nothing => None,
    })
}

/// The claims of the switches that a box is attached to.
pub(super) fn relied_on(definition: &CreateBox) -> impl Iterator<Item = Claim> {
    attached_switches(definition).map(Claim::rely)
}

fn is_port_of(port: &AddPort, name: &BoxName) -> bool {
    matches!(&port.driver, PortDriver::Box { name: of, .. } if of == name)
}

fn has_port_of(stored: &StoredSwitch, name: &BoxName) -> bool {
    stored.definition.ports.iter().any(|port| is_port_of(port, name))
}

pub(super) fn check_box(request: &CreateBox) -> Result<(), OperationError> {
    if request.ports.len() > boundary::limits::MAX_PORTS {
        return Err(RequestError::TooManyPorts(request.ports.len()).into());
    }
    if matches!(request.image, Some(ImageSource::Upload(_))) {
        return Err(RequestError::ImageUpload.into());
    }
    let at_pipe = |port: &PortRequest| matches!(port.attach, Attachment::Pipe(_));
    if !request.cores.is_one() && request.ports.iter().any(at_pipe) {
        return Err(RequestError::CoresAtPipe.into());
    }
    let long =
        |(key, value): (&String, &String)| key.len() > MAX_LABEL_BYTES || value.len() > MAX_LABEL_BYTES;
    if request.labels.len() > MAX_LABELS || request.labels.iter().any(long) {
        return Err(RequestError::Labels.into());
    }
    Ok(())
}
