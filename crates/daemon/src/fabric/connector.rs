//! How a daemon gets its fabrics, and the devices of its ports.

use api::Owner;
use protocol::launcher::{self, Client, Ending, LauncherError, PortDevice, Share, Starter};
use protocol::{Channel, StoreIdentity};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the launcher may take for a request. Starting a fabric verifies the image.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request waits for a launcher that somebody else starts again, and the pause between two attempts.
const RESTART_TIMEOUT: Duration = Duration::from_secs(3);
const RESTART_PAUSE: Duration = Duration::from_millis(10);

/// Gets a daemon its fabrics and the devices of its ports.
pub trait Connector: fmt::Debug + Send + Sync {
    /// A connection to the fabric of a store with this number, which is started if it does not run. The default owner's
    /// has the number 0. The owner is given where each owner has a fabric.
    fn connect(
        &self,
        store: StoreIdentity,
        number: u32,
        owner: Option<&Owner>,
    ) -> Result<Channel, LauncherError>;

    /// How the fabric ended that had this number before the one that was connected last, if that was not on request. It is told
    /// once.
    fn take_ending(&self, _: u32) -> Option<Ending> {
        None
    }

    /// Has the agent of the fabric with this number started, which holds the sessions with OpenFlow controllers.
    fn start_agent(&self, _: u32) -> Result<(), LauncherError> {
        Ok(())
    }

    /// Opens the device or file of a port.
    fn open(&self, device: PortDevice) -> Result<Vec<OwnedFd>, LauncherError>;

    /// Opens the folder for the files that boxes write. The path is absolute.
    fn open_folder(&self, path: &Path, fabric: u32) -> Result<OwnedFd, LauncherError>;

    /// The port of a device was removed.
    fn close(&self, device: PortDevice);

    /// The connection to the launcher of a store, which is made if there is none. `None`: there is no launcher.
    fn launcher(&self, _: StoreIdentity) -> Result<Option<LauncherConnection>, LauncherError> {
        Ok(None)
    }

    /// The numbers of the fabrics that the launcher has.
    fn numbers(&self) -> Result<BTreeSet<u32>, LauncherError> {
        Ok(BTreeSet::new())
    }

    /// Gives the launcher the descriptor of a device that an earlier one opened, to keep it.
    fn keep(&self, _: PortDevice, _: OwnedFd) {}

    /// The version of the protocol that the launcher speaks, if one is connected.
    fn launcher_version(&self) -> Option<u16> {
        None
    }

    /// Ends the fabric with this number and its boxes, and waits until it has ended. The launcher goes on.
    fn end_fabric(&self, number: u32);

    /// Ends all fabrics of a store but those with these numbers, and their boxes.
    fn retain(&self, store: StoreIdentity, numbers: &BTreeSet<u32>);

    /// Ends all fabrics with their boxes, and the launcher, unless it stays without them.
    fn end(&self);
}

/// A connection to a launcher.
#[derive(Debug)]
pub struct LauncherConnection {
    process: Option<i32>,
    /// It hangs up when the connection ends.
    socket: OwnedFd,
}

impl LauncherConnection {
    /// The launcher's process.
    pub fn process(&self) -> Option<i32> {
        self.process
    }

    /// Waits until the connection ends.
    pub fn wait(&self) {
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&self.socket, PollFlags::empty())], None) {}
    }
}

/// A launcher, which is started if none listens.
#[derive(Debug)]
pub struct LauncherConnector {
    /// The launcher's socket.
    path: PathBuf,
    /// Starts a launcher. `None`: somebody else does.
    starter: Option<Starter>,
    /// What owners' fabrics get of the processors. The others get the default.
    shares: BTreeMap<Owner, Share>,
    state: Mutex<LauncherState>,
}

#[derive(Debug, Default)]
struct LauncherState {
    store: StoreIdentity,
    client: Option<Client>,
    /// When the last connection ended.
    lost: Option<Instant>,
    /// How fabrics ended that were replaced, by number.
    endings: BTreeMap<u32, Ending>,
}

impl LauncherConnector {
    /// The launcher at `path`. If none listens there, the starter starts one.
    pub fn new(path: PathBuf, starter: Option<Starter>) -> Self {
        Self { path, starter, shares: BTreeMap::new(), state: Mutex::default() }
    }

    /// The same, with shares of the processors for the fabrics of these owners.
    pub fn with_shares(mut self, shares: BTreeMap<Owner, Share>) -> Self {
        self.shares = shares;
        self
    }

    fn state(&self) -> MutexGuard<'_, LauncherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out a request. If the launcher has gone, tries again with another one.
    fn request<T>(
        &self,
        mut request: impl FnMut(&mut Client) -> Result<T, LauncherError>,
    ) -> Result<T, LauncherError> {
        let mut state = self.state();
        if let Some(client) = &mut state.client {
            match request(client) {
                Err(LauncherError::Channel(_) | LauncherError::NotAReply) => {
                    (state.client, state.lost) = (None, Some(Instant::now()));
                }
                result => return result,
            }
        }
        let mut client = self.reach(&state)?;
        let result = request(&mut client);
        state.client = Some(client);
        result
    }

    fn reach(&self, state: &LauncherState) -> Result<Client, LauncherError> {
        if let Some(starter) = &self.starter {
            return launcher::start(starter, &self.path, state.store, TIMEOUT);
        }
        loop {
            match Client::connect(&self.path, state.store, TIMEOUT) {
                // Somebody else is starting another one.
                Err(error)
                    if error.is_absent() && state.lost.is_some_and(|at| at.elapsed() < RESTART_TIMEOUT) =>
                {
                    thread::sleep(RESTART_PAUSE);
                }
                result => return result,
            }
        }
    }
}

impl Drop for LauncherConnector {
    fn drop(&mut self) {
        // A thread that waits for the end of the connection would keep it open.
        if let Some(client) = &self.state().client {
            client.shut_down();
        }
    }
}

impl Connector for LauncherConnector {
    fn connect(
        &self,
        store: StoreIdentity,
        number: u32,
        owner: Option<&Owner>,
    ) -> Result<Channel, LauncherError> {
        self.state().store = store;
        let connect = |client: &mut Client| match owner {
            Some(owner) => {
                let share = self.shares.get(owner).cloned().unwrap_or_default();
                client.connect_fabric_with(number, share)
            }
            None => client.connect_fabric(number),
        };
        let connected = self.request(connect)?;
        if let Some(before) = connected.before {
            self.state().endings.insert(number, before);
        }
        Ok(connected.channel)
    }

    fn take_ending(&self, number: u32) -> Option<Ending> {
        self.state().endings.remove(&number)
    }

    fn start_agent(&self, number: u32) -> Result<(), LauncherError> {
        self.request(|client| client.start_agent(number))
    }

    fn open(&self, device: PortDevice) -> Result<Vec<OwnedFd>, LauncherError> {
        self.request(|client| client.open_all(device.clone()))
    }

    fn open_folder(&self, path: &Path, fabric: u32) -> Result<OwnedFd, LauncherError> {
        self.request(|client| client.open_folder(path.into(), fabric))
    }

    fn close(&self, device: PortDevice) {
        // A launcher that has gone has no device.
        let _ = self.request(|client| client.close(device.clone()));
    }

    fn launcher(&self, store: StoreIdentity) -> Result<Option<LauncherConnection>, LauncherError> {
        let mut state = self.state();
        state.store = store;
        if state.client.take_if(|client| client.has_ended()).is_some() {
            state.lost = Some(Instant::now());
        }
        let client = match state.client.take() {
            Some(client) => client,
            None => self.reach(&state)?,
        };
        let socket = client.duplicate().map_err(|error| LauncherError::Channel(error.into()));
        let process = client.peer_process();
        state.client = Some(client);
        Ok(Some(LauncherConnection { process, socket: socket? }))
    }

    fn numbers(&self) -> Result<BTreeSet<u32>, LauncherError> {
        let fabrics = self.request(Client::fabrics)?;
        Ok(fabrics.into_iter().map(|fabric| fabric.number).collect())
    }

    fn keep(&self, device: PortDevice, descriptor: OwnedFd) {
        // Without it, the device ends with its fabric.
        let _ = self.request(|client| client.keep(device.clone(), descriptor.as_fd()));
    }

    fn launcher_version(&self) -> Option<u16> {
        self.state().client.as_ref().map(Client::peer_version)
    }

    fn end_fabric(&self, number: u32) {
        // A launcher that has gone has no fabric.
        let _ = self.request(|client| client.stop(number));
    }

    fn retain(&self, store: StoreIdentity, numbers: &BTreeSet<u32>) {
        // The launcher serves the store of its first client, and this may be the first request.
        self.state().store = store;
        // A launcher that has gone has no fabric.
        let Ok(fabrics) = self.request(Client::fabrics) else { return };
        for fabric in fabrics.into_iter().filter(|fabric| !numbers.contains(&fabric.number)) {
            self.end_fabric(fabric.number);
        }
    }

    fn end(&self) {
        // A launcher that has gone has no fabric.
        let _ = self.request(Client::end);
    }
}
