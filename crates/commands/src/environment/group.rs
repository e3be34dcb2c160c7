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
use super::files::problem;
use super::sockets::outcome;

/// Two sockets: several processes on a host may listen at the group's address, but each sends from an address of its
/// own.
pub(super) struct Group {
    receiver: Rc<OwnedFd>,
    descriptor: Descriptor,
    sender: OwnedFd,
    place: SocketAddrV4,
    /// The local address, if requested: datagrams from it are the group member's own and are ignored.
    own: Option<SocketAddrV4>,
    /// The sender of the last datagram.
    last: Option<SocketAddrV4>,
}

impl Group {
    /// Joins the group at `place`.
    pub(super) fn open(
        place: SocketAddrV4,
        request: &SocketRequest,
        descriptors: &Descriptors,
    ) -> Result<Group, SocketError> {
        let failed = |step| move |error: Errno| SocketError { step, error: problem(&error.into()) };
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
        bind(&receiver, &place).map_err(failed("bind"))?;
        let mut own = None;
        if let Some(SocketAddress::Udp(address, port)) = request.local {
            bind(&sender, &SocketAddrV4::new(address, port)).map_err(failed("bind"))?;
            let name =
                getsockname(&sender).and_then(SocketAddrV4::try_from).map_err(failed("getsockname"))?;
            sockopt::set_ip_multicast_if(&sender, &address).map_err(failed("setsockopt(IP_MULTICAST_IF)"))?;
            own = Some(name);
        }
        let interface = own.map_or(Ipv4Addr::UNSPECIFIED, |own| *own.ip());
        sockopt::set_ip_add_membership(&receiver, place.ip(), &interface)
            .map_err(failed("setsockopt(IP_ADD_MEMBERSHIP)"))?;
        sockopt::set_ip_multicast_loop(&sender, request.multicast_loop)
            .map_err(failed("setsockopt(IP_MULTICAST_LOOP)"))?;
        let receiver = Rc::new(receiver);
        let descriptor = descriptors.register(&receiver);
        Ok(Group { receiver, descriptor, sender, place, own, last: None })
    }
}

impl Datagrams for Group {
    fn receive(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        loop {
            let result = recvfrom(&self.receiver, &mut *into, RecvFlags::TRUNC | RecvFlags::DONTWAIT);
            let (length, from) = match result {
                Ok((_, length, from)) => (length, from),
                Err(error) => return outcome(Err(error.into()), false),
            };
            self.last = from.and_then(|from| SocketAddrV4::try_from(from).ok());
            if self.own.is_none() || self.own != self.last {
                return Ok(Io::Done(length));
            }
        }
    }

    fn sender(&self) -> Option<(Ipv4Addr, u16)> {
        self.last.map(|from| (*from.ip(), from.port()))
    }

    fn connect_to_sender(&mut self) {
        // Everything is sent to the group, regardless of who sent the last datagram.
    }

    fn send(&mut self, bytes: &[u8], to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        let place = to.map_or(self.place, |address| SocketAddrV4::new(address, self.place.port()));
        let result = sendto(&self.sender, bytes, SendFlags::DONTWAIT, &SocketAddrAny::from(place));
        outcome(result.map_err(Into::into), false)
    }

    fn descriptor(&self) -> Descriptor {
        self.descriptor
    }
}
