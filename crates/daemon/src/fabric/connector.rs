//! How a daemon gets a fabric, and the devices of its ports.

use protocol::launcher::{self, Client, LauncherError, PortDevice, Starter};
use protocol::{Channel, StoreIdentity};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of the fabric. One is the default; further ones are for owners that get fabrics of their own.
const FABRIC: u32 = 0;

/// How long the launcher may take for a request. Starting a fabric verifies the image.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Variables by which a service manager talks to the process that it started.
const SERVICE_VARIABLES: [&str; 5] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"];

/// Gets a daemon its fabric and the devices of its ports.
pub trait Connector: fmt::Debug + Send + Sync {
    /// A connection to the fabric of a store, which is started if it does not run.
    fn connect(&self, store: StoreIdentity) -> Result<Channel, LauncherError>;

    /// Opens the device or file of a port.
    fn open(&self, device: PortDevice) -> Result<OwnedFd, LauncherError>;

    /// Opens the folder for the files that boxes write. The path is absolute.
    fn open_folder(&self, path: &Path) -> Result<OwnedFd, LauncherError>;

    /// The port of a device was removed.
    fn close(&self, device: PortDevice);

    /// The version of the protocol that the launcher speaks, if one is connected.
    fn launcher_version(&self) -> Option<u16> {
        None
    }

    /// Ends the fabric and its boxes, and waits until it has ended. The launcher goes on.
    fn end_fabric(&self);

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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
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
        Ok(Self { path, starter: command.map(start).transpose()?, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
    fn connect(&self, store: StoreIdentity) -> Result<Channel, LauncherError> {
        self.state().store = store;
        self.request(|client| client.connect_fabric(FABRIC)).map(|connected| connected.channel)
    }

    fn open(&self, device: PortDevice) -> Result<OwnedFd, LauncherError> {
        self.request(|client| client.open(device.clone()))
    }

    fn open_folder(&self, path: &Path) -> Result<OwnedFd, LauncherError> {
        self.request(|client| client.open_folder(path.into()))
    }

    fn close(&self, device: PortDevice) {
        // A launcher that has gone has no device.
        let _ = self.request(|client| client.close(device.clone()));
    }

    fn launcher_version(&self) -> Option<u16> {
        self.state().client.as_ref().map(Client::peer_version)
    }

    fn end_fabric(&self) {
        // A launcher that has gone has no fabric.
        let _ = self.request(|client| client.stop(FABRIC));
    }

    fn end(&self) {
        // A launcher that has gone has no fabric.
        let _ = self.request(Client::end);
    }
}
