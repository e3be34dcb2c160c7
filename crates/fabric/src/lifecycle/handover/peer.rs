//! Whom the state of flows is asked for, and given to: a box by its mailbox, a function by its connection.

use super::{BATCH, Handover, HandoverError};
use crate::boxes::Instance;
use crate::functions::{StateCallError, StateCalls};
use boundary::{DecodeError, FlowList, Request, StateTuple};
use model::BoxName;
use sandbox::CallError;
use std::sync::Arc;
use std::time::Duration;

/// An instance that is asked for the state of flows.
pub(super) trait Peer {
    /// Asks it for something. The error begins with its name.
    fn call(
        &self,
        name: &BoxName,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<Vec<u8>, HandoverError>;

    /// The error for a reply that cannot be decoded.
    fn malformed(&self, name: &BoxName, error: DecodeError) -> HandoverError;

    /// Checks a list of flows beyond its encoding.
    fn check(&self, name: &BoxName, list: &FlowList) -> Result<(), HandoverError>;
}

impl Peer for Instance {
    fn call(
        &self,
        name: &BoxName,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<Vec<u8>, HandoverError> {
        Self::call(self, request, timeout).map_err(|error| HandoverError::Call(name.clone(), error))
    }

    fn malformed(&self, name: &BoxName, error: DecodeError) -> HandoverError {
        HandoverError::Call(name.clone(), CallError::Reply(error))
    }

    /// A box knows a flow by several tuples if it translates addresses.
    fn check(&self, name: &BoxName, list: &FlowList) -> Result<(), HandoverError> {
        if list.groups.len() <= BATCH as usize {
            return Ok(());
        }
        Err(self.malformed(name, DecodeError::Count(list.groups.len())))
    }
}

impl Peer for StateCalls {
    fn call(
        &self,
        name: &BoxName,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<Vec<u8>, HandoverError> {
        Self::call(self, request, timeout).map_err(|error| HandoverError::StateCall(name.clone(), error))
    }

    fn malformed(&self, name: &BoxName, error: DecodeError) -> HandoverError {
        HandoverError::StateCall(name.clone(), StateCallError::Reply(error))
    }

    /// A function knows each flow by one tuple, and has no states that flows share: those would stop all flows of its instance.
    fn check(&self, name: &BoxName, list: &FlowList) -> Result<(), HandoverError> {
        let is_flow = |group: &Vec<StateTuple>| match &group[..] {
            [tuple] => !tuple.is_of_addresses(),
            _ => false,
        };
        if list.groups.len() <= BATCH as usize && list.groups.iter().all(is_flow) {
            return Ok(());
        }
        Err(HandoverError::StateCall(name.clone(), StateCallError::Flow))
    }
}

impl Handover<'_> {
    /// The instance with this name.
    pub(super) fn peer(&self, name: &BoxName) -> Result<Arc<dyn Peer>, HandoverError> {
        let Some(own) = &self.function else {
            let managed = self.fabric.0.managed_box(name).ok();
            let instance = managed.and_then(|managed| managed.instance());
            let instance = instance.map(|instance| instance as Arc<dyn Peer>);
            return instance.ok_or_else(|| HandoverError::NotRunning(name.clone()));
        };
        if *name == self.work.from {
            return Ok(own.clone());
        }
        let calls = self.fabric.0.functions.state_calls(&self.work.switch, name);
        let unable = || HandoverError::StateCall(name.clone(), StateCallError::Unable);
        calls.map(|calls| calls as Arc<dyn Peer>).ok_or_else(unable)
    }
}
