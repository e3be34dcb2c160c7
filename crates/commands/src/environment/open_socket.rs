//! Opens the sockets that elements request: addresses and options.

use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

use element::{Socket, SocketAddress, SocketError, SocketRequest};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname,
    listen, socket_with, sockopt,
};

use super::datagrams::DatagramSocket;
use super::descriptors::Descriptors;
use super::files::io_error;
use super::multicast::MulticastSocket;
use super::sockets::{Connection, ListeningSocket, SocketFile};

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 16;

/// Opens a socket.
pub(super) fn open(request: &SocketRequest, descriptors: &Descriptors) -> Result<Socket, SocketError> {
    let failed = |step| move |error: Errno| SocketError { step, error: io_error(&error.into()) };
    if let SocketAddress::Multicast(group, port) = request.address {
        let group = MulticastSocket::open(SocketAddrV4::new(group, port), request, descriptors)?;
        return Ok(Socket::Datagrams(Box::new(group)));
    }
    let (family, kind) = match request.address {
        SocketAddress::Tcp(..) => (AddressFamily::INET, SocketType::STREAM),
        SocketAddress::Udp(..) | SocketAddress::Multicast(..) => (AddressFamily::INET, SocketType::DGRAM),
        SocketAddress::Unix(_) => (AddressFamily::UNIX, SocketType::STREAM),
        SocketAddress::UnixDatagram(_) => (AddressFamily::UNIX, SocketType::DGRAM),
    };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed("socket"))?;
    set(&socket, request).map_err(failed("setsockopt"))?;
    let own = if request.client { request.local.as_ref() } else { Some(&request.address) };
    let mut name = None;
    if let Some(own) = own {
        bind(&socket, &address(own).map_err(failed("bind"))?).map_err(failed("bind"))?;
        if let SocketAddress::Unix(path) | SocketAddress::UnixDatagram(path) = own {
            name = Some(SocketFile(path.clone()));
        }
    }
    let target = address(&request.address).map_err(failed("connect"))?;
    match (kind, request.client) {
        (SocketType::STREAM, true) => connect(&socket, &target).map_err(failed("connect"))?,
        (SocketType::STREAM, false) => listen(&socket, BACKLOG).map_err(failed("listen"))?,
        _ => {}
    }
    rustix::io::ioctl_fionbio(&socket, true).map_err(failed("socket"))?;
    Ok(match (&request.address, request.client) {
        (SocketAddress::Tcp(address, port), true) => {
            let mut connection = Connection::new(TcpStream::from(socket), descriptors);
            connection.peer = Some(format!("{address}:{port}"));
            Socket::Stream(Box::new(connection))
        }
        (SocketAddress::Tcp(..), false) => {
            let local = getsockname(&socket).ok().and_then(|own| SocketAddrV4::try_from(own).ok());
            let local = local.map_or_else(String::new, |own| own.port().to_string());
            let mut listening = ListeningSocket::new(TcpListener::from(socket), descriptors, local);
            listening.no_delay = request.no_delay;
            Socket::Listener(Box::new(listening))
        }
        (SocketAddress::Unix(_), true) => {
            let mut connection = Connection::new(UnixStream::from(socket), descriptors);
            connection.name = name;
            Socket::Stream(Box::new(connection))
        }
        (SocketAddress::Unix(path), false) => {
            let mut listening = ListeningSocket::new(UnixListener::from(socket), descriptors, path.clone());
            listening.name = name;
            Socket::Listener(Box::new(listening))
        }
        (SocketAddress::Udp(..) | SocketAddress::Multicast(..) | SocketAddress::UnixDatagram(_), client) => {
            let remote = client.then_some(target);
            Socket::Datagrams(Box::new(DatagramSocket::new(socket, remote, name, descriptors)))
        }
    })
}

/// Sets the options that must precede `bind`.
fn set(socket: &OwnedFd, request: &SocketRequest) -> Result<(), Errno> {
    if let SocketAddress::Tcp(..) = request.address {
        sockopt::set_tcp_nodelay(socket, request.no_delay)?;
        // Lets a server restart without waiting for its old connections to time out.
        sockopt::set_socket_reuseaddr(socket, !request.client)?;
    }
    if let Some(size) = request.send_buffer {
        sockopt::set_socket_send_buffer_size(socket, size as usize)?;
    }
    if let Some(size) = request.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, size as usize)?;
    }
    Ok(())
}

fn address(target: &SocketAddress) -> Result<SocketAddrAny, Errno> {
    Ok(match target {
        SocketAddress::Tcp(address, port)
        | SocketAddress::Udp(address, port)
        | SocketAddress::Multicast(address, port) => SocketAddrV4::new(*address, *port).into(),
        SocketAddress::Unix(path) | SocketAddress::UnixDatagram(path) => {
            SocketAddrUnix::new(path.as_str())?.into()
        }
    })
}
