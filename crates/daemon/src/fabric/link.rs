//! The connection to a fabric, which is made again when the fabric has ended.

use super::connector::Connector;
use super::fault::with_fault;
use crate::error::OperationError;
use api::Owner;
use protocol::StoreIdentity;
use protocol::fabric::{Ask, Client, FabricError, Pending, PendingAlone, Reader};
use protocol::launcher::Ending;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

/// How long an order waits for a fabric that is being restarted.
const RESTART_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the first object of an owner may take to be created.
const SETTLE_TIME: Duration = Duration::from_secs(60);

/// The connection to a fabric.
#[derive(Debug)]
pub(crate) struct FabricLink {
    connector: Arc<dyn Connector>,
    store: StoreIdentity,
    owner: Owner,
    /// Its number at the launcher.
    number: u32,
    /// Each owner has a fabric.
    is_one_of_many: bool,
    /// The number of the last event that was fetched.
    pub(crate) fetched: AtomicU64,
    state: Mutex<LinkState>,
    changed: Condvar,
    /// Held while the fabric is brought to the stored state.
    rebuilding: Mutex<()>,
    made: Instant,
}

#[derive(Debug, Default)]
struct LinkState {
    client: Option<Arc<Client>>,
    /// The daemon is ending: no other fabric will come.
    closed: bool,
}

/// An order that was sent.
#[derive(Debug)]
pub(crate) struct PendingOrder<A> {
    client: Arc<Client>,
    pending: Pending<A>,
}

/// The answer to an order, for a task that awaits it.
#[derive(Debug)]
pub(crate) enum AwaitedAnswer<A: Ask> {
    /// It came at once.
    Here(Result<A::Answer, FabricError>),
    /// It comes on a channel of its own.
    Alone(Arc<Client>, PendingAlone<A>),
    /// The thread that receives it passes it on.
    Passed(oneshot::Receiver<Result<A::Answer, FabricError>>),
}

/// A channel that the runtime watches. It is in blocking mode again when this is dropped.
struct Watched(UnixStream);

impl Drop for Watched {
    fn drop(&mut self) {
        // This cannot fail for a socket.
        let _ = self.0.set_nonblocking(false);
    }
}

/// Waits until a channel has a message, or has ended. No thread does.
async fn readable(channel: BorrowedFd<'_>) -> io::Result<()> {
    let socket = UnixStream::from(channel.try_clone_to_owned()?);
    // Both descriptors have the channel's mode.
    let watched = Watched(socket.try_clone()?);
    socket.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(socket)?.readable().await?;
    drop(watched);
    Ok(())
}

impl<A: Ask> AwaitedAnswer<A> {
    /// Waits for the answer. No thread does.
    pub(crate) async fn get(self) -> Result<A::Answer, OperationError> {
        let answer = match self {
            Self::Here(answer) => answer,
            Self::Alone(client, pending) => {
                let failed = |error| OperationError::system("wait for the fabric", error);
                readable(pending.as_fd()).await.map_err(failed)?;
                client.wait_alone(pending)
            }
            // An error means that the fabric has gone.
            Self::Passed(answer) => answer.await.unwrap_or(Err(FabricError::Disconnected)),
        };
        Ok(answer?)
    }
}

impl<A: Ask> PendingOrder<A> {
    /// Waits for the answer.
    pub(crate) fn wait(self) -> Result<A::Answer, OperationError> {
        with_fault(|| Ok(self.client.wait(self.pending).map(|(answer, _)| answer)?))
    }
}

impl FabricLink {
    pub(crate) fn new(
        connector: Arc<dyn Connector>,
        store: StoreIdentity,
        owner: Owner,
        number: u32,
        is_one_of_many: bool,
    ) -> Self {
        Self {
            connector,
            store,
            owner,
            number,
            is_one_of_many,
            fetched: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            rebuilding: Mutex::default(),
            made: Instant::now(),
        }
    }

    /// The version of the protocol that the fabric speaks, if one is connected.
    pub(crate) fn peer_version(&self) -> Option<u16> {
        self.state().client.as_ref().map(|client| client.peer_version())
    }

    /// The owner whose objects it has.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Its number at the launcher.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether it is so old that whatever it was made for exists.
    pub(crate) fn is_settled(&self) -> bool {
        self.made.elapsed() > SETTLE_TIME
    }

    /// Whether a fabric is connected now.
    pub(crate) fn is_connected(&self) -> bool {
        self.state().client.is_some()
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread brings the fabric to the stored state.
    pub(crate) fn rebuilding(&self) -> MutexGuard<'_, ()> {
        self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the fabric. The caller runs the reader in a thread, and then calls [`lost`](Self::lost).
    pub(crate) fn connect(&self) -> Result<(Arc<Client>, Reader), OperationError> {
        let channel = self
            .connector
            .connect(self.store, self.number, self.is_one_of_many.then_some(&self.owner))
            .map_err(OperationError::Launcher)?;
        Ok(Client::connect(channel, self.store)?)
    }

    /// How the fabric ended that was connected before, if that is known. It is told once.
    pub(crate) fn take_ending(&self) -> Option<Ending> {
        self.connector.take_ending(self.number)
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
        let waiting = |state: &mut LinkState| state.client.is_none() && !state.closed;
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

    /// Whether the daemon has closed the connection.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Sends an order, if a fabric is connected, and waits for its answer.
    pub(crate) fn ask_now<A: Ask>(&self, order: A) -> Result<A::Answer, OperationError> {
        let client = self.state().client.clone();
        Ok(client.ok_or(FabricError::Disconnected)?.ask(order)?)
    }

    /// Like [`ask_now`](Self::ask_now), with descriptors in both directions.
    pub(crate) fn ask_with_now<A: Ask>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), OperationError> {
        let client = self.state().client.clone();
        Ok(client.ok_or(FabricError::Disconnected)?.ask_with(order, descriptors)?)
    }

    /// Sends an order and waits for its answer.
    pub(crate) fn ask<A: Ask>(&self, order: A) -> Result<A::Answer, OperationError> {
        let client = self.client()?;
        with_fault(|| Ok(client.ask(order)?))
    }

    /// As [`ask`](Self::ask), for a thread of the runtime, which passes on its other tasks if the answer does not come soon.
    pub(crate) fn ask_promptly<A: Ask>(&self, order: A) -> Result<A::Answer, OperationError> {
        let Some(client) = self.state().client.clone() else { return block_in_place(|| self.ask(order)) };
        with_fault(|| {
            let answer = match client.begin_alone(order)? {
                Ok(pending) => match client.wait_briefly(pending) {
                    Ok(answer) => answer,
                    Err(pending) => block_in_place(|| client.wait_alone(pending)),
                },
                Err(order) => block_in_place(|| client.ask(order)),
            };
            Ok(answer?)
        })
    }

    /// Sends an order, and does not wait.
    pub(crate) fn begin<A: Ask>(&self, order: A) -> Result<PendingOrder<A>, OperationError> {
        let client = self.client()?;
        let pending = client.begin(order, &[])?;
        Ok(PendingOrder { client, pending })
    }

    /// Sends an order, if a fabric is connected, and does not wait for its answer.
    pub(crate) fn begin_now<A: Ask>(&self, order: A) -> Result<PendingOrder<A>, OperationError> {
        let client = self.state().client.clone().ok_or(FabricError::Disconnected)?;
        let pending = client.begin(order, &[])?;
        Ok(PendingOrder { client, pending })
    }

    /// Sends an order if that is possible without waiting. An answer that comes at once is waited for.
    pub(crate) fn try_begin<A>(&self, order: A) -> Result<Option<AwaitedAnswer<A>>, OperationError>
    where
        A: Ask,
        A::Answer: Send + 'static,
    {
        let Some(client) = self.state().client.clone() else { return Ok(None) };
        let order = match client.begin_alone(order)? {
            Ok(pending) => {
                return Ok(Some(match client.wait_briefly(pending) {
                    Ok(answer) => AwaitedAnswer::Here(answer),
                    Err(pending) => AwaitedAnswer::Alone(client, pending),
                }));
            }
            Err(order) => order,
        };
        let (sender, answer) = oneshot::channel();
        if !client.try_begin(order, move |answer| drop(sender.send(answer)))? {
            return Ok(None);
        }
        client.poll(|| (!answer.is_empty()).then_some(()));
        Ok(Some(AwaitedAnswer::Passed(answer)))
    }

    /// Sends an order with descriptors, and waits for its answer and the descriptors that come with it.
    pub(crate) fn ask_with<A: Ask>(
        &self,
        order: A,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(A::Answer, Vec<OwnedFd>), OperationError> {
        let client = self.client()?;
        with_fault(|| Ok(client.ask_with(order, descriptors)?))
    }
}
