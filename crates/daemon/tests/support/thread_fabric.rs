//! A fabric for tests, which needs no launcher.

use api::Owner;
use daemon::Connector;
use fabric::Fabric;
use protocol::launcher::{LauncherError, PortDevice, Refusal, Shortfall, SocketProtocol, Step};
use protocol::{Channel, StoreIdentity};
use sandbox::HostSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use switch::driver::{AfPacket, Tap};

/// A fabric in threads of the test, and devices that the test opens itself.
#[derive(Debug)]
pub(crate) struct ThreadFabric {
    settings: fabric::Settings,
    fabrics: Mutex<BTreeMap<u32, Fabric>>,
    /// The fabrics' ends of the connections.
    connections: Mutex<Vec<(u32, Weak<Channel>)>>,
    /// What was to be closed.
    closed: Mutex<Vec<PortDevice>>,
}

impl ThreadFabric {
    pub(crate) fn new(image: &'static [u8], workers: usize) -> Arc<Self> {
        Arc::new(Self {
            settings: fabric::Settings { image, workers, shares_processors: false, switch_threads: 1 },
            fabrics: Mutex::default(),
            connections: Mutex::default(),
            closed: Mutex::default(),
        })
    }
}

#[allow(dead_code, reason = "each test program uses its part")]
impl ThreadFabric {
    /// The numbers of the fabrics that run.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.fabrics.lock().unwrap().keys().copied().collect()
    }

    /// The devices that were closed since this was last asked.
    pub(crate) fn closed(&self) -> Vec<PortDevice> {
        std::mem::take(&mut self.closed.lock().unwrap())
    }

    /// Ends a fabric as if it had crashed.
    pub(crate) fn kill(&self, number: u32) {
        let fabric = self.fabrics.lock().unwrap().remove(&number);
        fabric.unwrap().end();
        let is_its = |connection: &mut (u32, Weak<Channel>)| connection.0 == number;
        for (_, end) in self.connections.lock().unwrap().extract_if(.., is_its) {
            if let Some(end) = end.upgrade() {
                end.shut_down();
            }
        }
    }
}

impl Connector for ThreadFabric {
    fn connect(
        &self,
        store: StoreIdentity,
        number: u32,
        _: Option<&Owner>,
    ) -> Result<Channel, LauncherError> {
        let start = || Fabric::start(&self.settings, HostSettings::default(), store).unwrap();
        let fabric = self.fabrics.lock().unwrap().entry(number).or_insert_with(start).clone();
        // A test may use up all descriptors for a while.
        let failed = |error: std::io::Error| {
            let errno = error.raw_os_error().unwrap_or(0);
            LauncherError::Refused(Refusal::Failed(Shortfall { step: Step::MakeChannel, errno }))
        };
        let (near, far) = Channel::pair().map_err(failed)?;
        let far = Arc::new(far);
        self.connections.lock().unwrap().push((number, Arc::downgrade(&far)));
        std::thread::spawn(move || {
            if let Some(why) = fabric::serve(&fabric, &far) {
                println!("the fabric closed a connection: {why}");
            }
        });
        Ok(near)
    }

    fn open(&self, device: PortDevice) -> Result<Vec<OwnedFd>, LauncherError> {
        let (step, opened) = match &device {
            PortDevice::Tap(name) => (Step::OpenTap, Tap::open_descriptor(name)),
            PortDevice::Interface(name) => (Step::OpenInterface, AfPacket::open_descriptor(name)),
            // As on a host without XDP.
            PortDevice::Xdp(..) => (Step::AttachXdpProgram, Err(std::io::Error::from_raw_os_error(95))),
            PortDevice::Replay(path) => (Step::OpenReplay, File::open(path).map(OwnedFd::from)),
            PortDevice::Recording(path) => {
                let created = File::options().read(true).write(true).create_new(true).open(path);
                (Step::CreateRecording, created.map(OwnedFd::from))
            }
            // No test of the daemon has a route for one.
            PortDevice::Tunnel(_) => (Step::OpenTunnel, Err(std::io::ErrorKind::Unsupported.into())),
            PortDevice::Listener(SocketProtocol::VhostUser, path) => {
                (Step::ListenSocket, UnixListener::bind(path).map(OwnedFd::from))
            }
            PortDevice::Connection(SocketProtocol::VhostUser, path) => {
                (Step::ConnectSocket, UnixStream::connect(path).map(OwnedFd::from))
            }
            // No test of the daemon has one.
            PortDevice::Listener(SocketProtocol::Memif, _)
            | PortDevice::Connection(SocketProtocol::Memif, _) => {
                (Step::ListenSocket, Err(std::io::ErrorKind::Unsupported.into()))
            }
        };
        opened.map(|descriptor| vec![descriptor]).map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            LauncherError::Refused(Refusal::Failed(Shortfall { step, errno }))
        })
    }

    fn open_folder(&self, path: &Path, _: u32) -> Result<OwnedFd, LauncherError> {
        // A test may remove its folder early.
        let _ = std::fs::create_dir(path);
        File::open(path).map(OwnedFd::from).map_err(|error| LauncherError::Connect(path.into(), error))
    }

    fn close(&self, device: PortDevice) {
        self.closed.lock().unwrap().push(device);
    }

    fn end_fabric(&self, number: u32) {
        self.fabrics.lock().unwrap().remove(&number);
    }

    fn retain(&self, _: StoreIdentity, numbers: &BTreeSet<u32>) {
        self.numbers()
            .into_iter()
            .filter(|number| !numbers.contains(number))
            .for_each(|number| self.kill(number));
    }

    fn end(&self) {
        self.fabrics.lock().unwrap().clear();
    }
}
