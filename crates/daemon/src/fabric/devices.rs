//! Opens the devices and files of ports.

use super::connector::Connector;
use crate::error::{OperationError, PortError, RequestError};
use api::{AddPort, Device, DeviceError, PortDriver, SocketRole, Tunnel};
use protocol::launcher::{LauncherError, PortDevice, Refusal, SocketProtocol, Step, TunnelDevice};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How often an interface is tried that is busy, and the pause between. The kernel frees the queues of a socket a moment after
/// it was closed, for example with the fabric before.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The open devices and files of a port, in the order that the fabric expects.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    descriptors: Vec<OwnedFd>,
    instead: Option<String>,
}

impl Devices {
    /// Opens what a port needs.
    pub(crate) fn open(connector: &dyn Connector, port: &AddPort) -> Result<Self, OperationError> {
        let mut opened = Self::default();
        for device in devices(port)? {
            let descriptors = opened.open_one(connector, device.clone()).map_err(|error| match device {
                PortDevice::Tap(name) => PortError::Tap(name, error),
                PortDevice::Interface(name) | PortDevice::Xdp(name, _) => PortError::Interface(name, error),
                PortDevice::Replay(path) | PortDevice::Recording(path) => PortError::Capture(path, error),
                PortDevice::Tunnel(tunnel) => PortError::Tunnel(tunnel.remote, error),
                PortDevice::Listener(_, path) | PortDevice::Connection(_, path) => {
                    PortError::Socket(path, error)
                }
            })?;
            opened.descriptors.extend(descriptors);
        }
        Ok(opened)
    }

    /// Opens a device. An interface that cannot be used through XDP sockets is opened for a packet socket.
    fn open_one(
        &mut self,
        connector: &dyn Connector,
        device: PortDevice,
    ) -> Result<Vec<OwnedFd>, LauncherError> {
        let PortDevice::Xdp(name, _) = &device else { return connector.open(device) };
        let mut tries = 0;
        let refusal = loop {
            match connector.open(device.clone()) {
                Err(LauncherError::Refused(refusal)) if is_about_xdp(&refusal) => {
                    if tries == BUSY_TRIES || !is_busy(&refusal) {
                        break refusal;
                    }
                    tries += 1;
                    thread::sleep(BUSY_PAUSE);
                }
                result => return result,
            }
        };
        let descriptors = connector.open(PortDevice::Interface(name.clone()))?;
        self.instead = Some(format!("af_packet is used, because the launcher {refusal}"));
        Ok(descriptors)
    }

    /// Why the descriptors are those of another driver than the port's, if they are.
    pub(crate) fn instead(&self) -> Option<String> {
        self.instead.clone()
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
                | PortDevice::Xdp(..)
                | PortDevice::Recording(_)
                | PortDevice::Tunnel(_)
                | PortDevice::Listener(..)
                | PortDevice::Connection(SocketProtocol::VhostUser, _) => true,
            };
            let without_queues = |device| match device {
                PortDevice::Xdp(name, _) => PortDevice::Xdp(name, None),
                device => device,
            };
            all.filter(is_one_ports).map(without_queues).collect()
        };
        let tunnels = one.driver.tunnel().zip(other.driver.tunnel());
        tunnels.is_some_and(|(one, other)| one.conflicts(&other))
            || exclusive(one).iter().any(|device| exclusive(other).contains(device))
    }

    /// Whether two ports have the same network interface.
    pub(crate) fn same_interface(one: &AddPort, other: &AddPort) -> bool {
        let interface = |port| interface(port).filter(|(_, is_tap)| !is_tap);
        interface(one).is_some_and(|found| interface(other) == Some(found))
    }

    /// Whether what goes out through one of two ports comes in through the other, so that a learning switch would send broadcasts
    /// round and round: they have the same network interface, or one has the tap device whose other end the other has.
    pub(crate) fn are_joined(one: &AddPort, other: &AddPort) -> bool {
        let name = |port| interface(port).map(|(name, _)| name);
        name(one).is_some_and(|found| name(other) == Some(found))
    }

    /// Has another launcher keep what a port has: `duplicate` gets the descriptor from the fabric.
    pub(crate) fn keep(
        connector: &dyn Connector,
        port: &AddPort,
        duplicate: impl FnOnce() -> Option<OwnedFd>,
    ) {
        let kept = |device: &PortDevice| {
            !matches!(device, PortDevice::Replay(_) | PortDevice::Connection(..) | PortDevice::Xdp(..))
        };
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
        self.descriptors.iter().map(AsFd::as_fd).collect()
    }
}

/// Whether an interface was refused for XDP, and may still be used in another way. An earlier launcher does not know XDP.
fn is_about_xdp(refusal: &Refusal) -> bool {
    let steps = [Step::FitXdpBuffers, Step::UseQueues, Step::OpenXdpSocket, Step::AttachXdpProgram];
    match refusal {
        Refusal::Failed(shortfall) => steps.contains(&shortfall.step),
        refusal => *refusal == Refusal::NotARequest,
    }
}

fn is_busy(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Failed(shortfall) if shortfall.errno == Errno::BUSY.raw_os_error())
}

/// The network interface of a port, and whether the port is the other end of that, a tap device.
fn interface(port: &AddPort) -> Option<(String, bool)> {
    devices(port).into_iter().flatten().find_map(|device| match device {
        PortDevice::Interface(name) | PortDevice::Xdp(name, _) => Some((name, false)),
        PortDevice::Tap(name) => Some((name, true)),
        _ => None,
    })
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
        PortDriver::Tap { device: name, .. } => vec![PortDevice::Tap(device(name)?)],
        PortDriver::AfPacket { device: name } => vec![PortDevice::Interface(device(name)?)],
        PortDriver::AfXdp { device: name, queues } => vec![PortDevice::Xdp(device(name)?, *queues)],
        PortDriver::VhostUser { path, role, .. } => socket(SocketProtocol::VhostUser, *role, path)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use api::Limits;

    #[test]
    fn ports_with_one_interface_are_joined() {
        let device = |name: &str| Some(name.parse().expect("a name"));
        let packet = |name: &str| PortDriver::AfPacket { device: device(name) };
        let tap = |name: &str| PortDriver::Tap { device: device(name), queues: None };
        let xdp = |name: &str| PortDriver::AfXdp { device: device(name), queues: None };
        let port = |driver| AddPort {
            name: "p".parse().expect("a name"),
            driver,
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        for (one, other, same, joined) in [
            (packet("eth0"), packet("eth0"), true, true),
            (packet("eth0"), xdp("eth0"), true, true),
            (packet("eth0"), packet("eth1"), false, false),
            (packet("tap0"), tap("tap0"), false, true),
            (tap("tap0"), xdp("tap0"), false, true),
            (tap("tap0"), packet("tap1"), false, false),
            (tap("tap0"), PortDriver::Null {}, false, false),
            (PortDriver::Null {}, PortDriver::Null {}, false, false),
        ] {
            let found = [Devices::same_interface, Devices::are_joined]
                .map(|of| of(&port(one.clone()), &port(other.clone())));
            assert_eq!(found, [same, joined], "{one:?} {other:?}");
        }
    }
}
