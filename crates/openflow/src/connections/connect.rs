//! Sockets that connect and listen without blocking.

use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with, sockopt,
};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

fn socket(address: SocketAddr) -> Result<rustix::fd::OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// A socket that begins to connect. It is writable when it is connected or has failed.
pub(super) fn begin(address: SocketAddr) -> Result<TcpStream, Errno> {
    let socket = socket(address)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    // Answers are short and should not wait for each other.
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(TcpStream::from(socket))
}

/// A socket that listens. It is readable when a connection waits.
pub(super) fn begin_listening(address: SocketAddr) -> Result<TcpListener, Errno> {
    let socket = socket(address)?;
    // Connections of an earlier agent may linger.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// The next connection; `None` if none waits.
pub(super) fn accept(listener: &TcpListener) -> Option<TcpStream> {
    let socket = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).ok()?;
    sockopt::set_tcp_nodelay(&socket, true).ok()?;
    Some(TcpStream::from(socket))
}

/// The number of the error of a socket, if it has one.
pub(super) fn fault(socket: &TcpStream) -> Option<i32> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(error.raw_os_error()),
    }
}
