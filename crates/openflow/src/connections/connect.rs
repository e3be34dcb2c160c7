//! Sockets that connect without blocking.

use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

/// A socket that begins to connect. It is writable when it is connected or has failed.
pub(super) fn begin(address: SocketAddr) -> Result<TcpStream, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    // Answers are short and should not wait for each other.
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(TcpStream::from(socket))
}

/// The number of the error of a socket, if it has one.
pub(super) fn fault(socket: &TcpStream) -> Option<i32> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(error.raw_os_error()),
    }
}
