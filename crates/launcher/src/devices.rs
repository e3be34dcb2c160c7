//! Devices and files behind ports: opened with the launcher's privileges, and kept.

use crate::{child, peer_socket};
use protocol::launcher::{PortDevice, Refusal, SocketProtocol, Step, TunnelDevice, TunnelKind};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use switch::driver::{
    AfPacket, AfXdp, Encapsulation, OverlayEnds, OverlayTunnel, PcapError, PcapPort, Tap, XdpError,
};

/// Maximum number of devices that are kept. A client could otherwise use up the launcher's descriptors.
const MAX_DEVICES: usize = 2048;

/// The devices that are kept.
#[derive(Debug)]
pub(crate) struct Devices {
    kept: BTreeMap<PortDevice, OwnedFd>,
    /// The number of queues to send through with which devices are opened that can have several.
    queues: usize,
}

impl Devices {
    /// Without devices yet, for fabrics with this number of switch threads.
    pub(crate) fn new(switch_threads: usize) -> Self {
        Self { kept: BTreeMap::new(), queues: switch_threads.max(1) }
    }

    /// Opens a device, or duplicates the descriptor that is kept, where the device is one for all its users.
    pub(crate) fn open(&mut self, device: PortDevice) -> Result<Vec<OwnedFd>, Refusal> {
        match device {
            // They are not kept: with the last descriptor, the program leaves the interface.
            PortDevice::Xdp(name, queues) => {
                AfXdp::open_descriptors(&name, queues, self.queues).map_err(xdp_failed)
            }
            PortDevice::Interface(name) => self.open_interface(name),
            PortDevice::Tap(ref name) => {
                let kept = self.open_one(device.clone())?;
                Tap::add_queues(kept, name, self.queues).map_err(|error| failed(Step::OpenTap, &error))
            }
            device => self.open_one(device).map(|descriptor| vec![descriptor]),
        }
    }

    /// Opens packet sockets on an interface, and keeps one.
    fn open_interface(&mut self, name: String) -> Result<Vec<OwnedFd>, Refusal> {
        let failed = |error: io::Error| failed(Step::OpenInterface, &error);
        let open = |_| AfPacket::open_descriptor(&name).map_err(failed);
        let sockets = (0..self.queues).map(open).collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = sockets.first() {
            let kept = first.try_clone().map_err(failed)?;
            self.insert(PortDevice::Interface(name), kept)?;
        }
        Ok(sockets)
    }

    fn open_one(&mut self, device: PortDevice) -> Result<OwnedFd, Refusal> {
        let duplicate = |kept: &OwnedFd, step| kept.try_clone().map_err(|error| failed(step, &error));
        let (opened, step) = match (&device, self.kept.get(&device)) {
            // A device that somebody removed is made again.
            (PortDevice::Tap(_), Some(kept))
                if Tap::from_descriptor(duplicate(kept, Step::OpenTap)?).is_ok() =>
            {
                return duplicate(kept, Step::OpenTap);
            }
            (PortDevice::Tap(name), _) if self.queues > 1 => (Tap::open_first_queue(name), Step::OpenTap),
            (PortDevice::Tap(name), _) => (Tap::open_descriptor(name), Step::OpenTap),
            (PortDevice::Recording(_), Some(kept)) => return duplicate(kept, Step::CreateRecording),
            (PortDevice::Tunnel(tunnel), kept) => {
                let kept = kept.map(|kept| duplicate(kept, Step::ReservePort)).transpose()?;
                return self.open_tunnel(&device, tunnel, kept);
            }
            (PortDevice::Recording(path), None) => {
                (file(path, PcapPort::create_recording)?, Step::CreateRecording)
            }
            // A socket whose file somebody removed is made again.
            (PortDevice::Listener(protocol, path), Some(kept))
                if peer_socket::listens_at(*protocol, kept, path) =>
            {
                return duplicate(kept, Step::ListenSocket);
            }
            (PortDevice::Listener(protocol, path), _) => {
                (peer_socket::listen_at(*protocol, absolute(path)?), Step::ListenSocket)
            }
            (PortDevice::Connection(protocol, path), _) => {
                return self.connect(device.clone(), *protocol, absolute(path)?);
            }
            (PortDevice::Interface(_) | PortDevice::Xdp(..), _) => return Err(Refusal::OtherDevice),
            // A capture that is only read need not be kept: it can be opened again.
            (PortDevice::Replay(path), _) => {
                return file(path, PcapPort::open_replay)?.map_err(|error| failed(Step::OpenReplay, &error));
            }
        };
        let opened = opened.map_err(|error| failed(step, &error))?;
        let kept = duplicate(&opened, step)?;
        self.insert(device, kept)?;
        Ok(opened)
    }

    /// Keeps the descriptor of a device instead of any other one of this device.
    fn insert(&mut self, device: PortDevice, descriptor: OwnedFd) -> Result<(), Refusal> {
        if self.kept.len() >= MAX_DEVICES && !self.kept.contains_key(&device) {
            return Err(Refusal::TooMany);
        }
        self.kept.insert(device, descriptor);
        Ok(())
    }

    /// Opens the socket of a tunnel, and keeps the one that reserves its UDP port, which it may have in common with other
    /// tunnels.
    fn open_tunnel(
        &mut self,
        device: &PortDevice,
        tunnel: &TunnelDevice,
        kept: Option<OwnedFd>,
    ) -> Result<OwnedFd, Refusal> {
        let local = match tunnel.local {
            Some(local) => local.ip(),
            None => OverlayTunnel::local_address(tunnel.remote.ip())
                .map_err(|error| failed(Step::FindRoute, &error))?,
        };
        let reserved = |socket: &OwnedFd| OverlayTunnel::reserves(socket, local, tunnel.udp_port);
        let of_others = self.kept.iter().find_map(|(other, socket)| {
            let is_alike = matches!(other, PortDevice::Tunnel(other) if other.kind == tunnel.kind);
            (is_alike && reserved(socket)).then(|| socket.try_clone())
        });
        let port = match (kept.filter(reserved), of_others) {
            (Some(kept), _) => Ok(kept),
            (None, Some(shared)) => shared,
            (None, None) => OverlayTunnel::reserve_port(local, tunnel.udp_port),
        };
        let port = port.map_err(|error| failed(Step::ReservePort, &error))?;
        let TunnelDevice { kind, remote, udp_port, vni, .. } = *tunnel;
        let encapsulation = match kind {
            TunnelKind::Vxlan => Encapsulation::Vxlan,
            TunnelKind::Geneve => Encapsulation::Geneve,
        };
        let opened =
            OverlayTunnel { encapsulation, ends: OverlayEnds { local, remote: remote.ip() }, udp_port, vni };
        let opened = opened.open_descriptor().map_err(|error| failed(Step::OpenTunnel, &error))?;
        self.insert(device.clone(), port)?;
        Ok(opened)
    }

    /// Keeps the descriptor of a device that an earlier launcher opened, unless one is kept. Of a packet socket none is
    /// taken: it can be opened again.
    pub(crate) fn keep(&mut self, device: PortDevice, descriptor: Option<OwnedFd>) -> Result<(), Refusal> {
        let descriptor = descriptor.ok_or(Refusal::OtherDevice)?;
        let is_it = match &device {
            PortDevice::Tap(name) => Tap::is_descriptor_of(&descriptor, name),
            PortDevice::Recording(path) => path.is_absolute() && is_writable_file(&descriptor),
            PortDevice::Listener(protocol, path) => peer_socket::listens_at(*protocol, &descriptor, path),
            PortDevice::Interface(_)
            | PortDevice::Xdp(..)
            | PortDevice::Replay(_)
            | PortDevice::Tunnel(_)
            | PortDevice::Connection(..) => false,
        };
        if !is_it {
            return Err(Refusal::OtherDevice);
        }
        if self.kept.len() >= MAX_DEVICES && !self.kept.contains_key(&device) {
            return Err(Refusal::TooMany);
        }
        self.kept.entry(device).or_insert(descriptor);
        Ok(())
    }

    /// Forgets a device, and removes the socket of a server that has ended.
    pub(crate) fn close(&mut self, device: &PortDevice) {
        drop(self.kept.remove(device));
        if let PortDevice::Listener(protocol, path) = device {
            // It stays if a fabric or another process listens, and is replaced when it is listened at again.
            let _ = peer_socket::remove_stale(*protocol, path);
        }
    }

    /// Connects to a peer. A connection on which it has not spoken yet is kept for the next try.
    fn connect(
        &mut self,
        device: PortDevice,
        protocol: SocketProtocol,
        path: &Path,
    ) -> Result<OwnedFd, Refusal> {
        let failed = |error: io::Error| failed(Step::ConnectSocket, &error);
        let kept = self.kept.remove(&device);
        let connection = kept.map_or_else(|| peer_socket::connect_to(protocol, path), Ok).map_err(failed)?;
        match peer_socket::check_first_message(protocol, &connection) {
            Ok(()) => Ok(connection),
            Err(error) => {
                if error.kind() == io::ErrorKind::WouldBlock && self.kept.len() < MAX_DEVICES {
                    self.kept.insert(device, connection);
                }
                Err(failed(error))
            }
        }
    }

    /// Forgets all devices.
    pub(crate) fn clear(&mut self) {
        for device in self.kept.keys().cloned().collect::<Vec<_>>() {
            self.close(&device);
        }
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        self.clear();
    }
}

fn failed(step: Step, error: &io::Error) -> Refusal {
    Refusal::Failed(child::failed(step, error))
}

/// Why an interface cannot be used through XDP sockets.
fn xdp_failed(error: XdpError) -> Refusal {
    match error {
        XdpError::Device(error) => failed(Step::OpenInterface, &error),
        XdpError::Mtu(_) => failed(Step::FitXdpBuffers, &Errno::MSGSIZE.into()),
        XdpError::Queues(_) => failed(Step::UseQueues, &Errno::RANGE.into()),
        XdpError::Memory(error) | XdpError::Socket(error) => failed(Step::OpenXdpSocket, &error),
        XdpError::Program(error) => failed(Step::AttachXdpProgram, &error),
        XdpError::Descriptors | XdpError::Index => failed(Step::OpenXdpSocket, &Errno::INVAL.into()),
    }
}

/// Whether a descriptor is that of an ordinary file that can be written to.
fn is_writable_file(descriptor: &OwnedFd) -> bool {
    let is_file = fstat(descriptor).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file());
    let mode = fcntl_getfl(descriptor).map(|flags| flags & OFlags::ACCMODE);
    is_file && mode.is_ok_and(|mode| mode == OFlags::RDWR || mode == OFlags::WRONLY)
}

fn absolute(path: &Path) -> Result<&Path, Refusal> {
    if path.is_absolute() { Ok(path) } else { Err(Refusal::RelativePath) }
}

/// Opens a file at an absolute path. The outer error is not the system's.
fn file(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<std::fs::File, PcapError>,
) -> Result<io::Result<OwnedFd>, Refusal> {
    match open(absolute(path)?) {
        Ok(file) => Ok(Ok(file.into())),
        Err(PcapError::System(error)) => Ok(Err(error)),
        Err(_) => Err(Refusal::NotAFile),
    }
}
