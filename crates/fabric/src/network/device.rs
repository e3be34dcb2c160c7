//! Makes a port's driver from the descriptors of its device.

use crate::error::{OperationError, PortError};
use model::{MemifRole, PortDriver};
use std::fs::File;
use std::os::fd::OwnedFd;
use switch::Driver;
use switch::driver::{AfPacket, MemifPort, MemifSettings, Null, PcapPort, PortSlot, Tap};

/// The driver of a port. `descriptors` are those of its device or of its files, in the order of its definition; a port
/// that needs some and gets none is down. Returns `None` for a pipe or a box, which the network connects itself.
pub(crate) fn adopt(
    driver: &PortDriver,
    descriptors: Vec<OwnedFd>,
) -> Result<Option<Box<dyn Driver>>, OperationError> {
    let has_none = descriptors.is_empty();
    let mut descriptors = descriptors.into_iter();
    Ok(Some(match driver {
        PortDriver::Null {} => Box::new(Null),
        PortDriver::Pipe { .. } | PortDriver::Box { .. } => return Ok(None),
        PortDriver::Memif { role, id, secret, .. } => {
            let secret = secret.iter().flat_map(|secret| secret.as_str().bytes()).collect();
            let settings = MemifSettings { id: *id, secret, ..MemifSettings::default() };
            let port = match (role, descriptors.next()) {
                (_, None) => MemifPort::unconnected(settings),
                (MemifRole::Server, Some(listener)) => MemifPort::server(listener, settings),
                (MemifRole::Client, Some(socket)) => MemifPort::client(socket, settings),
            };
            Box::new(port.map_err(|error| PortError::Device(error.into()))?)
        }
        _ if has_none => placeholder(),
        PortDriver::Tap { .. } => Box::new(
            Tap::from_descriptor(next(&mut descriptors)?).map_err(|error| PortError::Device(error.into()))?,
        ),
        PortDriver::AfPacket { .. } => Box::new(
            AfPacket::from_descriptor(next(&mut descriptors)?)
                .map_err(|error| PortError::Device(error.into()))?,
        ),
        PortDriver::Pcap { read, write, repeat, rate } => {
            let read = read.as_ref().map(|_| next(&mut descriptors)).transpose()?.map(File::from);
            let write = write.as_ref().map(|_| next(&mut descriptors)).transpose()?.map(File::from);
            let port = PcapPort::from_files(read, write, *repeat, *rate);
            Box::new(port.map_err(|error| PortError::Device(error.into()))?)
        }
    }))
}

fn next(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<OwnedFd, PortError> {
    descriptors.next().ok_or(PortError::NoDevice)
}

/// A placeholder for a device that cannot be opened now: receives nothing, and drops what is sent.
pub(crate) fn placeholder() -> Box<dyn Driver> {
    Box::new(PortSlot::<()>::default())
}
