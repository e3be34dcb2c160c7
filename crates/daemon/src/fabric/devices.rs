//! Opens the devices and files of ports.

use super::connector::Connector;
use crate::error::{OperationError, PortError, RequestError};
use api::{AddPort, Device, DeviceError, PortDriver, SocketRole, Tunnel};
use protocol::launcher::{PortDevice, SocketProtocol, TunnelDevice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The open devices and files of a port, in the order that the fabric expects.
#[derive(Debug, Default)]
pub(crate) struct Devices(Vec<OwnedFd>);

impl Devices {
    /// Opens what a port needs.
    pub(crate) fn open(connector: &dyn Connector, port: &AddPort) -> Result<Self, OperationError> {
        let mut opened = Vec::new();
        for device in devices(port)? {
            let descriptor = connector.open(device.clone()).map_err(|error| match device {
                PortDevice::Tap(name) => PortError::Tap(name, error),
                PortDevice::Interface(name) => PortError::Interface(name, error),
                PortDevice::Replay(path) | PortDevice::Recording(path) => PortError::Capture(path, error),
                PortDevice::Tunnel(tunnel) => PortError::Tunnel(tunnel.remote, error),
                PortDevice::Listener(_, path) | PortDevice::Connection(_, path) => {
                    PortError::Socket(path, error)
                }
            })?;
            opened.push(descriptor);
        }
        Ok(Self(opened))
    }

    /// Whether two ports name a device or file that only one of them can have.
    pub(crate) fn conflict(one: &AddPort, other: &AddPort) -> bool {
        let exclusive = |port: &AddPort| -> Vec<PortDevice> {
            let all = devices(port).into_iter().flatten();
            let is_one_ports = |device: &PortDevice| match device {
                // Several interfaces may be at one socket of a memif server.
                PortDevice::Interface(_)
                | PortDevice::Replay(_)
                | PortDevice::Connection(SocketProtocol::Memif, _) => false,
                PortDevice::Tap(_)
                | PortDevice::Recording(_)
                | PortDevice::Tunnel(_)
                | PortDevice::Listener(..)
                | PortDevice::Connection(SocketProtocol::VhostUser, _) => true,
            };
            all.filter(is_one_ports).collect()
        };
        let tunnels = one.driver.tunnel().zip(other.driver.tunnel());
        tunnels.is_some_and(|(one, other)| one.conflicts(&other))
            || exclusive(one).iter().any(|device| exclusive(other).contains(device))
    }

    /// Has another launcher keep what a port has: `duplicate` gets the descriptor from the fabric.
    pub(crate) fn keep(
        connector: &dyn Connector,
        port: &AddPort,
        duplicate: impl FnOnce() -> Option<OwnedFd>,
    ) {
        let kept =
            |device: &PortDevice| !matches!(device, PortDevice::Replay(_) | PortDevice::Connection(..));
        // A port has one such device.
        match devices(port).into_iter().flatten().find(kept) {
            // It can be opened again.
            Some(device @ (PortDevice::Interface(_) | PortDevice::Tunnel(_))) => drop(connector.open(device)),
            Some(device) => {
                if let Some(descriptor) = duplicate() {
                    connector.keep(device, descriptor);
                }
            }
            None => {}
        }
    }

    /// Closes what a removed port had.
    pub(crate) fn close(connector: &dyn Connector, port: &AddPort) {
        devices(port).into_iter().flatten().for_each(|device| connector.close(device));
    }

    /// The descriptors.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd).collect()
    }
}

/// The devices and files of a port.
fn devices(port: &AddPort) -> Result<Vec<PortDevice>, OperationError> {
    let device = |device: &Option<Device>| match device {
        Some(device) => Ok(device.as_str().to_string()),
        None => match port.name.as_str().parse::<Device>() {
            Ok(device) => Ok(device.as_str().to_string()),
            Err(DeviceError) => Err(PortError::Name(port.name.clone())),
        },
    };
    if let Some(tunnel) = port.driver.tunnel() {
        tunnel.check().map_err(RequestError::Tunnel)?;
        let Tunnel { kind, local, remote, udp_port, vni, .. } = tunnel;
        let vni = vni.into();
        return Ok(vec![PortDevice::Tunnel(TunnelDevice { kind, local, remote, udp_port, vni })]);
    }
    Ok(match &port.driver {
        PortDriver::Tap { device: name } => vec![PortDevice::Tap(device(name)?)],
        PortDriver::AfPacket { device: name } => vec![PortDevice::Interface(device(name)?)],
        PortDriver::VhostUser { path, role } => socket(SocketProtocol::VhostUser, *role, path)?,
        PortDriver::Memif { path, role, .. } => socket(SocketProtocol::Memif, *role, path)?,
        PortDriver::Pcap { read, write, .. } => {
            let read = absolute(read.as_deref())?.map(PortDevice::Replay);
            let write = absolute(write.as_deref())?.map(PortDevice::Recording);
            let files: Vec<PortDevice> = read.into_iter().chain(write).collect();
            if files.is_empty() {
                return Err(RequestError::NoCaptureFile.into());
            }
            files
        }
        // The tunnels are above.
        PortDriver::Vxlan { .. }
        | PortDriver::Geneve { .. }
        | PortDriver::Null {}
        | PortDriver::Pipe { .. }
        | PortDriver::Box { .. } => Vec::new(),
    })
}

/// The socket of a port, whose path must be absolute.
fn socket(protocol: SocketProtocol, role: SocketRole, path: &str) -> Result<Vec<PortDevice>, OperationError> {
    let device = match role {
        SocketRole::Server => PortDevice::Listener,
        SocketRole::Client => PortDevice::Connection,
    };
    Ok(absolute(Some(path))?.map(|path| device(protocol, path)).into_iter().collect())
}

/// The path of a capture file or a socket, which must be absolute.
fn absolute(path: Option<&str>) -> Result<Option<PathBuf>, RequestError> {
    match path.map(Path::new) {
        Some(path) if path.is_relative() => Err(RequestError::RelativePath(path.into())),
        path => Ok(path.map(Path::to_path_buf)),
    }
}
