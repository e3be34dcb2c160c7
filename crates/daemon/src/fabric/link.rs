//! The connection to the fabric, which is made anew when the fabric has ended.

use super::connector::Connector;
use crate::error::OperationError;
use protocol::StoreIdentity;
use protocol::fabric::{Ask, Client, FabricError, Reader};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an order waits for a fabric that is being restarted.
const RESTART_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection to the fabric.
#[derive(Debug)]
pub(crate) struct FabricLink {
    connector: Arc<dyn Connector>,
    store: StoreIdentity,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    client: Option<Arc<Client>>,
    /// The daemon is ending: no other fabric will come.
    closed: bool,
}

impl FabricLink {
    pub(crate) fn new(connector: Arc<dyn Connector>, store: StoreIdentity) -> Self {
        Self { connector, store, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The version of the protocol that the fabric speaks, if one is connected.
    pub(crate) fn peer_version(&self) -> Option<u16> {
        self.state().client.as_ref().map(|client| client.peer_version())
    }

    /// Opens devices.
    pub(crate) fn connector(&self) -> &dyn Connector {
        &*self.connector
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the fabric. The caller runs the reader in a thread, and then calls [`lost`](Self::lost).
    pub(crate) fn connect(&self) -> Result<(Arc<Client>, Reader), OperationError> {
        let channel = self.connector.connect(self.store).map_err(OperationError::Launcher)?;
        Ok(Client::connect(channel, self.store)?)
    }

    /// Lets orders through to a connected fabric.
    pub(crate) fn set(&self, client: Arc<Client>) {
        self.state().client = Some(client);
        self.changed.notify_all();
    }

    /// Takes no more orders for this fabric, which has ended. Returns whether it was the present one.
    pub(crate) fn lost(&self, client: &Arc<Client>) -> bool {
        client.close();
        self.state().client.take_if(|present| Arc::ptr_eq(present, client)).is_some()
    }

    /// Closes the connection to a fabric that is to be replaced. Its reader then does not connect again. Orders wait for
    /// the next fabric.
    pub(crate) fn disconnect(&self) {
        if let Some(client) = self.state().client.take() {
            client.close();
        }
    }

    /// Closes the connection. The fabric goes on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        if let Some(client) = state.client.take() {
            client.close();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn client(&self) -> Result<Arc<Client>, OperationError> {
        let waiting = |state: &mut State| state.client.is_none() && !state.closed;
        let (state, _) = self
            .changed
            .wait_timeout_while(self.state(), RESTART_TIMEOUT, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        match &state.client {
            Some(client) => Ok(client.clone()),
            None if state.closed => Err(OperationError::Ending),
            None => Err(FabricError::Disconnected.into()),
        }
    }

    /// Sends an order and waits for its answer.
    pub(crate) fn ask<A: Ask>(&self, order: A) -> Result<A::Answer, OperationError> {
        Ok(self.client()?.ask(order)?)
    }

    /// Sends an order with descriptors, and waits for its answer and the descriptors that come with it.
    pub(crate) fn ask_with<A: Ask>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), OperationError> {
        Ok(self.client()?.ask_with(order, descriptors)?)
    }
}
