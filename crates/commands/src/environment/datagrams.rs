//! Datagrams over UDP and Unix sockets.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use element::{Datagrams, Descriptor, Io, IoError};
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, recvfrom, sendto};

use super::descriptors::Descriptors;
use super::sockets::{SocketFile, io_result};

/// A socket that is bound or has a peer.
pub(super) struct DatagramSocket {
    socket: Rc<OwnedFd>,
    descriptor: Descriptor,
    /// The address that all datagrams are sent to.
    remote: Option<SocketAddrAny>,
    /// The sender of the last datagram.
    last_sender: Option<SocketAddrAny>,
    _file: Option<SocketFile>,
}

impl DatagramSocket {
    pub(super) fn new(
        socket: OwnedFd,
        remote: Option<SocketAddrAny>,
        file: Option<SocketFile>,
        descriptors: &Descriptors,
    ) -> DatagramSocket {
        let socket = Rc::new(socket);
        let descriptor = descriptors.register(&socket);
        DatagramSocket { socket, descriptor, remote, last_sender: None, _file: file }
    }
}

impl Datagrams for DatagramSocket {
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        let result = recvfrom(&self.socket, into, RecvFlags::TRUNC | RecvFlags::DONTWAIT);
        let result = result.map(|(_, length, from)| {
            self.last_sender = from;
            length
        });
        io_result(result.map_err(Into::into), false)
    }

    fn sender(&self) -> Option<(Ipv4Addr, u16)> {
        let address = SocketAddrV4::try_from(self.last_sender.clone()?).ok()?;
        Some((*address.ip(), address.port()))
    }

    fn connect_to_sender(&mut self) {
        // A sender without a name can't be answered; the previous peer is kept.
        self.remote = self.last_sender.take().or(self.remote.take());
    }

    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        // Without a peer, the datagram is lost, as any datagram may be.
        let Some(remote) = &self.remote else { return Ok(Io::Done(bytes.len())) };
        let port = SocketAddrV4::try_from(remote.clone()).map_or(0, |address| address.port());
        let other = to.map(|address| SocketAddrAny::from(SocketAddrV4::new(address, port)));
        let result = sendto(&self.socket, bytes, SendFlags::DONTWAIT, other.as_ref().unwrap_or(remote));
        io_result(result.map_err(Into::into), false)
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }
}
