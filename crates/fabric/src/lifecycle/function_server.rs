//! The sockets at which functions in other processes attach themselves.

use crate::functions::{Listener, StateCalls};
use crate::network::ServiceKey;
use model::{BoxName, SwitchName};
use sandbox::{EventFd, SystemError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sockets of services, and what wakes the thread.
#[derive(Debug)]
pub(super) struct FunctionServer {
    sockets: Mutex<Sockets>,
    /// How the state of flows is asked for, by switch and instance.
    states: Mutex<BTreeMap<(SwitchName, BoxName), Arc<StateCalls>>>,
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
        Ok(Self { sockets: Mutex::default(), states: Mutex::default(), wake: Arc::new(EventFd::new()?) })
    }

    pub(super) fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<(SwitchName, BoxName), Arc<StateCalls>>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the state of an instance's flows is asked for, if it is a function that hands that over.
    pub(super) fn state_calls(&self, switch: &SwitchName, instance: &BoxName) -> Option<Arc<StateCalls>> {
        self.states().get(&(switch.clone(), instance.clone())).cloned()
    }

    /// Lets the state of an instance's flows be asked for.
    pub(super) fn add_states(&self, switch: &SwitchName, instance: &BoxName, calls: Arc<StateCalls>) {
        self.states().insert((switch.clone(), instance.clone()), calls);
    }

    /// Ends that.
    pub(super) fn end_states(&self, switch: &SwitchName, instance: &BoxName, calls: &Arc<StateCalls>) {
        calls.end();
        let key = (switch.clone(), instance.clone());
        let mut states = self.states();
        if states.get(&key).is_some_and(|there| Arc::ptr_eq(there, calls)) {
            states.remove(&key);
        }
    }

    /// Wakes the thread: services have changed, or the fabric ends.
    pub(super) fn wake(&self) {
        self.wake.ring();
    }
}
