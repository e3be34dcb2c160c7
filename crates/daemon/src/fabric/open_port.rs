//! Opens a port's device or file, before the fabric's thread gets it: opening may block.

use crate::error::{OperationError, PortError, RequestError};
use api::{AddPort, Device, DeviceError, PortDriver};
use std::path::Path;
use switch::Driver;
use switch::driver::{AfPacket, Null, PcapPort, PortSlot, Tap};

/// Opens a port's device or file. Returns `None` for a pipe or a box, which the network connects itself.
pub(crate) fn open(port: &AddPort) -> Result<Option<Box<dyn Driver>>, OperationError> {
    let device = |device: &Option<Device>| match device {
        Some(device) => Ok(device.clone()),
        None => port.name.as_str().parse().map_err(|DeviceError| PortError::Name(port.name.clone())),
    };
    Ok(Some(match &port.driver {
        PortDriver::Tap { device: name } => {
            let name = device(name)?;
            let tap = Tap::open(name.as_str()).map_err(|error| PortError::Tap(name, error))?;
            Box::new(tap)
        }
        PortDriver::AfPacket { device: name } => {
            let name = device(name)?;
            let socket = AfPacket::open(name.as_str()).map_err(|error| PortError::Interface(name, error))?;
            Box::new(socket)
        }
        PortDriver::Null {} => Box::new(Null),
        PortDriver::Pcap { read, write, repeat, rate } => {
            let (read, write) = (absolute(read.as_deref())?, absolute(write.as_deref())?);
            let Some(first) = read.or(write) else { return Err(RequestError::NoCaptureFile.into()) };
            let port = PcapPort::open(read, write, *repeat, *rate)
                .map_err(|error| PortError::Capture(first.into(), error))?;
            Box::new(port)
        }
        PortDriver::Pipe { .. } | PortDriver::Box { .. } => return Ok(None),
    }))
}

/// A placeholder for a device that cannot be opened now: receives nothing, and drops what is sent.
pub(crate) fn placeholder() -> Box<dyn Driver> {
    Box::new(PortSlot::<()>::default())
}

/// The path of a capture file, which must be absolute.
fn absolute(path: Option<&str>) -> Result<Option<&Path>, RequestError> {
    match path.map(Path::new) {
        Some(path) if path.is_relative() => Err(RequestError::RelativePath(path.into())),
        path => Ok(path),
    }
}
