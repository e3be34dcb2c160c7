//! Devices and files behind ports: opened with the launcher's privileges, and kept.

use crate::privileges::number;
use protocol::launcher::{PortDevice, Refusal, Shortfall, Step};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use switch::driver::{AfPacket, PcapError, PcapPort, Tap};

/// Maximum number of devices that are kept. A client could otherwise use up the launcher's descriptors.
const MAX_DEVICES: usize = 2048;

/// The devices that are kept.
#[derive(Debug, Default)]
pub(crate) struct Devices(BTreeMap<PortDevice, OwnedFd>);

impl Devices {
    /// Opens a device, or duplicates the descriptor that is kept, where the device is one for all its users.
    pub(crate) fn open(&mut self, device: PortDevice) -> Result<OwnedFd, Refusal> {
        let duplicate = |kept: &OwnedFd, step| kept.try_clone().map_err(|error| failed(step, &error));
        let (opened, step) = match (&device, self.0.get(&device)) {
            // A device that somebody removed is made again.
            (PortDevice::Tap(_), Some(kept))
                if Tap::from_descriptor(duplicate(kept, Step::OpenTap)?).is_ok() =>
            {
                return duplicate(kept, Step::OpenTap);
            }
            (PortDevice::Tap(name), _) => (Tap::open_descriptor(name), Step::OpenTap),
            (PortDevice::Interface(name), _) => (AfPacket::open_descriptor(name), Step::OpenInterface),
            (PortDevice::Recording(_), Some(kept)) => return duplicate(kept, Step::CreateRecording),
            (PortDevice::Recording(path), None) => {
                (file(path, PcapPort::create_recording)?, Step::CreateRecording)
            }
            // A capture that is only read need not be kept: it can be opened again.
            (PortDevice::Replay(path), _) => {
                return file(path, PcapPort::open_replay)?.map_err(|error| failed(Step::OpenReplay, &error));
            }
        };
        let opened = opened.map_err(|error| failed(step, &error))?;
        if self.0.len() >= MAX_DEVICES && !self.0.contains_key(&device) {
            return Err(Refusal::TooMany);
        }
        self.0.insert(device, duplicate(&opened, step)?);
        Ok(opened)
    }

    /// Forgets a device.
    pub(crate) fn close(&mut self, device: &PortDevice) {
        self.0.remove(device);
    }

    /// Forgets all devices.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

fn failed(step: Step, error: &io::Error) -> Refusal {
    Refusal::Failed(Shortfall { step, errno: number(error) })
}

/// Opens a file at an absolute path. The outer error is not the system's.
fn file(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<std::fs::File, PcapError>,
) -> Result<io::Result<OwnedFd>, Refusal> {
    if !path.is_absolute() {
        return Err(Refusal::RelativePath);
    }
    match open(path) {
        Ok(file) => Ok(Ok(file.into())),
        Err(PcapError::System(error)) => Ok(Err(error)),
        Err(_) => Err(Refusal::NotAFile),
    }
}
