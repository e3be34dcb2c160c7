//! Datagrams to and from a multicast group.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use element::{Datagrams, Descriptor, Io, IoError, SocketAddress, SocketError, SocketRequest};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind, getsockname, recvfrom,
    sendto, socket_with, sockopt,
};

use super::descriptors::Descriptors;
use super::files::io_error;
use super::sockets::io_result;

/// Two sockets: several processes on a host may listen at the group's address, but each sends from an address of its
/// own.
pub(super) struct MulticastSocket {
    receiver: Rc<OwnedFd>,
    descriptor: Descriptor,
    sender: OwnedFd,
    address: SocketAddrV4,
    /// The local address, if requested: datagrams from it are the group member's own and are ignored.
    own_address: Option<SocketAddrV4>,
    /// The sender of the last datagram.
    last_sender: Option<SocketAddrV4>,
}

impl MulticastSocket {
    /// Joins the group at `address`.
    pub(super) fn open(
        address: SocketAddrV4,
        request: &SocketRequest,
        descriptors: &Descriptors,
    ) -> Result<MulticastSocket, SocketError> {
        let failed = |step| move |error: Errno| SocketError { step, error: io_error(&error.into()) };
        let datagrams = || socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let receiver = datagrams().map_err(failed("socket"))?;
        let sender = datagrams().map_err(failed("socket"))?;
        if let Some(size) = request.send_buffer {
            sockopt::set_socket_send_buffer_size(&sender, size as usize)
                .map_err(failed("setsockopt(SO_SNDBUF)"))?;
        }
        if let Some(size) = request.receive_buffer {
            sockopt::set_socket_recv_buffer_size(&receiver, size as usize)
                .map_err(failed("setsockopt(SO_RCVBUF)"))?;
        }
        sockopt::set_socket_reuseaddr(&receiver, true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        bind(&receiver, &address).map_err(failed("bind"))?;
        let mut own_address = None;
        if let Some(SocketAddress::Udp(address, port)) = request.local {
            bind(&sender, &SocketAddrV4::new(address, port)).map_err(failed("bind"))?;
            let name =
                getsockname(&sender).and_then(SocketAddrV4::try_from).map_err(failed("getsockname"))?;
            sockopt::set_ip_multicast_if(&sender, &address).map_err(failed("setsockopt(IP_MULTICAST_IF)"))?;
            own_address = Some(name);
        }
        let interface = own_address.map_or(Ipv4Addr::UNSPECIFIED, |own_address| *own_address.ip());
        sockopt::set_ip_add_membership(&receiver, address.ip(), &interface)
            .map_err(failed("setsockopt(IP_ADD_MEMBERSHIP)"))?;
        sockopt::set_ip_multicast_loop(&sender, request.multicast_loop)
            .map_err(failed("setsockopt(IP_MULTICAST_LOOP)"))?;
        let receiver = Rc::new(receiver);
        let descriptor = descriptors.register(&receiver);
        Ok(MulticastSocket { receiver, descriptor, sender, address, own_address, last_sender: None })
    }
}

impl Datagrams for MulticastSocket {
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        loop {
            let result = recvfrom(&self.receiver, &mut *into, RecvFlags::TRUNC | RecvFlags::DONTWAIT);
            let (length, from) = match result {
                Ok((_, length, from)) => (length, from),
                Err(error) => return io_result(Err(error.into()), false),
            };
            self.last_sender = from.and_then(|from| SocketAddrV4::try_from(from).ok());
            if self.own_address.is_none() || self.own_address != self.last_sender {
                return Ok(Io::Done(length));
            }
        }
    }

    fn sender(&self) -> Option<(Ipv4Addr, u16)> {
        self.last_sender.map(|from| (*from.ip(), from.port()))
    }

    fn connect_to_sender(&mut self) {
        // Everything is sent to the group, regardless of who sent the last datagram.
    }

    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        let address = to.map_or(self.address, |address| SocketAddrV4::new(address, self.address.port()));
        let result = sendto(&self.sender, bytes, SendFlags::DONTWAIT, &SocketAddrAny::from(address));
        io_result(result.map_err(Into::into), false)
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }
}
