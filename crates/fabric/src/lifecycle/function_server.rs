//! The sockets at which functions in other processes attach themselves.

use crate::functions::Listener;
use crate::network::ServiceKey;
use sandbox::{EventFd, SystemError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sockets of services, and what wakes the thread.
#[derive(Debug)]
pub(super) struct FunctionServer {
    sockets: Mutex<Sockets>,
    pub(super) wake: Arc<EventFd>,
}

#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// The thread was started.
    pub(super) is_served: bool,
    pub(super) listeners: BTreeMap<ServiceKey, Arc<Listener>>,
}

impl FunctionServer {
    pub(super) fn new() -> Result<Self, SystemError> {
        Ok(Self { sockets: Mutex::default(), wake: Arc::new(EventFd::new()?) })
    }

    pub(super) fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread: services have changed, or the fabric ends.
    pub(super) fn wake(&self) {
        self.wake.ring();
    }
}
