//! A fabric for tests, which needs no launcher.

use daemon::Connector;
use fabric::Fabric;
use protocol::launcher::{LauncherError, PortDevice, Refusal, Shortfall, Step};
use protocol::{Channel, StoreIdentity};
use sandbox::HostSettings;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use switch::driver::{AfPacket, Tap};

/// A fabric in threads of the test, and devices that the test opens itself.
#[derive(Debug)]
pub(crate) struct ThreadFabric {
    settings: fabric::Settings,
    fabric: Mutex<Option<Fabric>>,
}

impl ThreadFabric {
    pub(crate) fn new(image: &'static [u8], workers: usize) -> Arc<Self> {
        Arc::new(Self { settings: fabric::Settings { image, workers }, fabric: Mutex::default() })
    }
}

impl Connector for ThreadFabric {
    fn connect(&self, store: StoreIdentity) -> Result<Channel, LauncherError> {
        let mut fabric = self.fabric.lock().unwrap();
        let start = || Fabric::start(&self.settings, HostSettings::default(), store).unwrap();
        let fabric = fabric.get_or_insert_with(start).clone();
        // A test may use up all descriptors for a while.
        let failed = |error: std::io::Error| {
            let errno = error.raw_os_error().unwrap_or(0);
            LauncherError::Refused(Refusal::Failed(Shortfall { step: Step::MakeChannel, errno }))
        };
        let (near, far) = Channel::pair().map_err(failed)?;
        std::thread::spawn(move || {
            if let Some(why) = fabric::serve(&fabric, &Arc::new(far)) {
                println!("the fabric closed a connection: {why}");
            }
        });
        Ok(near)
    }

    fn open(&self, device: PortDevice) -> Result<OwnedFd, LauncherError> {
        let (step, opened) = match &device {
            PortDevice::Tap(name) => (Step::OpenTap, Tap::open_descriptor(name)),
            PortDevice::Interface(name) => (Step::OpenInterface, AfPacket::open_descriptor(name)),
            PortDevice::Replay(path) => (Step::OpenReplay, File::open(path).map(OwnedFd::from)),
            PortDevice::Recording(path) => {
                let created = File::options().read(true).write(true).create_new(true).open(path);
                (Step::CreateRecording, created.map(OwnedFd::from))
            }
        };
        opened.map_err(|error| {
            let errno = error.raw_os_error().unwrap_or(0);
            LauncherError::Refused(Refusal::Failed(Shortfall { step, errno }))
        })
    }

    fn open_folder(&self, path: &Path) -> Result<OwnedFd, LauncherError> {
        // A test may remove its folder early.
        let _ = std::fs::create_dir(path);
        File::open(path).map(OwnedFd::from).map_err(|error| LauncherError::Connect(path.into(), error))
    }

    fn close(&self, _: PortDevice) {}

    fn end_fabric(&self) {
        self.end();
    }

    fn end(&self) {
        *self.fabric.lock().unwrap() = None;
    }
}
