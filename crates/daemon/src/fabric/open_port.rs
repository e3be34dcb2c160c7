//! Opens a port's device or file, before the fabric's thread gets it: opening may block.

use crate::error::{OperationError, PortError, RequestError};
use api::{AddPort, Device, PortDriver};
use std::path::Path;
use switch::Driver;
use switch::driver::{AfPacket, Null, PcapPort, PortSlot, Tap};

/// An opened port.
pub(crate) struct OpenedPort {
    /// The driver.
    pub(crate) driver: Box<dyn Driver>,
    /// Whether packets become due by time alone.
    pub(crate) is_paced: bool,
}

impl std::fmt::Debug for OpenedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenedPort").field("is_paced", &self.is_paced).finish_non_exhaustive()
    }
}

/// Opens a port's device or file. Returns `None` for a pipe or a box, which the network connects itself.
pub(crate) fn open(port: &AddPort) -> Result<Option<OpenedPort>, OperationError> {
    let device = |device: &Option<Device>| match device {
        Some(device) => device.as_str().to_string(),
        None => port.name.to_string(),
    };
    let refused = |device: String, capability, cause: Box<dyn std::error::Error + Send + Sync>| {
        PortError::Open { device, cause, capability }
    };
    let opened = |driver: Box<dyn Driver>| Ok(Some(OpenedPort { driver, is_paced: false }));
    match &port.driver {
        PortDriver::Tap { device: name } => {
            let name = device(name);
            let tap = Tap::open(&name).map_err(|error| {
                refused(format!("the tap device {name}"), lacking(&error, "CAP_NET_ADMIN"), error.into())
            })?;
            opened(Box::new(tap))
        }
        PortDriver::AfPacket { device: name } => {
            let name = device(name);
            let socket = AfPacket::open(&name).map_err(|error| {
                refused(format!("the interface {name}"), lacking(&error, "CAP_NET_RAW"), error.into())
            })?;
            opened(Box::new(socket))
        }
        PortDriver::Null {} => opened(Box::new(Null)),
        PortDriver::Pcap { read, write, repeat, rate } => {
            let path = |path: &Option<String>| -> Result<Option<std::path::PathBuf>, OperationError> {
                let Some(text) = path else { return Ok(None) };
                match Path::new(text) {
                    path if path.is_absolute() => Ok(Some(path.to_path_buf())),
                    _ => Err(RequestError::RelativePath(text.clone()).into()),
                }
            };
            let (read, write) = (path(read)?, path(write)?);
            let Some(shown) = read.as_ref().or(write.as_ref()).map(|path| path.display().to_string()) else {
                return Err(RequestError::NoCaptureFile.into());
            };
            let replay = PcapPort::open(read.as_deref(), write.as_deref(), *repeat, *rate)
                .map_err(|error| refused(shown, None, error.into()))?;
            let is_paced = replay.is_paced();
            Ok(Some(OpenedPort { driver: Box::new(replay), is_paced }))
        }
        PortDriver::Pipe { .. } | PortDriver::Box { .. } => Ok(None),
    }
}

/// A placeholder for a device that cannot be opened now: receives nothing, and drops what is sent.
pub(crate) fn placeholder() -> OpenedPort {
    OpenedPort { driver: Box::new(PortSlot::<()>::default()), is_paced: false }
}

/// The capability, if the error means that it is missing.
fn lacking(error: &std::io::Error, capability: &'static str) -> Option<&'static str> {
    (error.kind() == std::io::ErrorKind::PermissionDenied).then_some(capability)
}
