//! How a daemon gets its fabrics, and the devices of its ports.

use api::Owner;
use protocol::launcher::{self, Client, LauncherError, PortDevice, Share, Starter};
use protocol::{Channel, StoreIdentity};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the launcher may take for a request. Starting a fabric verifies the image.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Variables by which a service manager talks to the process that it started.
const SERVICE_VARIABLES: [&str; 5] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"];

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

    /// Opens the device or file of a port.
    fn open(&self, device: PortDevice) -> Result<OwnedFd, LauncherError>;

    /// Opens the folder for the files that boxes write. The path is absolute.
    fn open_folder(&self, path: &Path, fabric: u32) -> Result<OwnedFd, LauncherError>;

    /// The port of a device was removed.
    fn close(&self, device: PortDevice);

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
}

impl LauncherConnector {
    /// The launcher at `path`. If none listens there, one is started by a process that is started now with `command`, which
    /// calls [`serve_starts`](launcher::serve_starts).
    pub fn new(path: PathBuf, command: Option<Command>) -> Result<Self, LauncherError> {
        let start = |mut command: Command| {
            // They are for this process only.
            for name in SERVICE_VARIABLES {
                command.env_remove(name);
            }
            Starter::spawn(command)
        };
        let starter = command.map(start).transpose()?;
        Ok(Self { path, starter, shares: BTreeMap::new(), state: Mutex::default() })
    }

    /// The same, with shares of the processors for the fabrics of these owners.
    pub fn with_shares(self, shares: BTreeMap<Owner, Share>) -> Self {
        Self { shares, ..self }
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
                Err(LauncherError::Channel(_) | LauncherError::NotAReply) => state.client = None,
                result => return result,
            }
        }
        let mut client = self.reach(state.store)?;
        let result = request(&mut client);
        state.client = Some(client);
        result
    }

    fn reach(&self, store: StoreIdentity) -> Result<Client, LauncherError> {
        match &self.starter {
            Some(starter) => launcher::start(starter, &self.path, store, TIMEOUT),
            None => Client::connect(&self.path, store, TIMEOUT),
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
        self.request(connect).map(|connected| connected.channel)
    }

    fn open(&self, device: PortDevice) -> Result<OwnedFd, LauncherError> {
        self.request(|client| client.open(device.clone()))
    }

    fn open_folder(&self, path: &Path, fabric: u32) -> Result<OwnedFd, LauncherError> {
        self.request(|client| client.open_folder(path.into(), fabric))
    }

    fn close(&self, device: PortDevice) {
        // A launcher that has gone has no device.
        let _ = self.request(|client| client.close(device.clone()));
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
