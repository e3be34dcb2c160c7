//! The supervisor's record of a box.

use crate::store::StoredBox;
use api::{BoxName, CreateBox, Destination, ServiceName, StackName, Time};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use tokio::sync::watch;

/// A box as its users defined it. Its state is in the fabric.
#[derive(Debug)]
pub(crate) struct ManagedBox {
    /// Its name.
    pub(crate) name: BoxName,
    /// Held while the box is started, stopped or changed. Its holders wait in order of arrival.
    pub(crate) change: Mutex<()>,
    /// Changes when the box's log has grown.
    pub(crate) log: watch::Sender<()>,
    inner: Mutex<Inner>,
}

/// The service of a box that is an instance of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstanceOf {
    /// Its name.
    pub(crate) service: ServiceName,
    /// What its instances may send packets to, in the order in which their configurations know it.
    pub(crate) destinations: Vec<Destination>,
    /// The variables that are defined for it.
    pub(crate) parameters: Vec<(String, String)>,
}

/// What a configuration knows as that of an instance of a service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known<'a> {
    /// What it may send packets to.
    pub(super) destinations: &'a [Destination],
    /// The variables that are defined for it.
    pub(super) parameters: &'a [(String, String)],
    /// The ports that it must use.
    pub(super) faces: &'a [u8],
}

/// The mutable part.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Its definition, without texts and files.
    pub(crate) definition: CreateBox,
    /// The stack that it belongs to.
    pub(crate) stack: Option<StackName>,
    /// The service that it is an instance of.
    pub(crate) service: Option<Arc<InstanceOf>>,
    /// When it was created.
    pub(crate) created: Time,
    /// Whether it is to run.
    pub(crate) running: bool,
    /// It is being removed.
    pub(crate) removed: bool,
    /// The fabric was ordered to define it. A box that is being created is not ordered before its name is reserved.
    pub(crate) ordered: bool,
}

impl ManagedBox {
    pub(crate) fn new(definition: CreateBox, stack: Option<StackName>, created: Time, running: bool) -> Self {
        Self {
            name: definition.name.clone(),
            change: Mutex::default(),
            log: watch::Sender::new(()),
            inner: Mutex::new(Inner {
                definition,
                stack,
                service: None,
                created,
                running,
                removed: false,
                ordered: false,
            }),
        }
    }

    /// What its configurations may send packets to. Empty unless it is an instance of a service.
    pub(crate) fn destinations(&self) -> Vec<Destination> {
        self.inner().service.as_ref().map_or(Vec::new(), |of| of.destinations.clone())
    }

    /// The variables that are defined for its configurations. None unless it is an instance of a translator.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        self.inner().service.as_ref().map_or(Vec::new(), |of| of.parameters.clone())
    }

    /// The mutable part. The lock is held briefly, and no other lock is taken while it is held.
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

/// The record of a stored box.
pub(super) fn load_box(stored: StoredBox) -> Arc<ManagedBox> {
    let StoredBox { definition, stack, created, running } = stored;
    let managed = ManagedBox::new(definition, stack, created, running);
    managed.inner().ordered = true;
    Arc::new(managed)
}
