//! A raw IPv4 socket for one protocol.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::driver::kernel::{check, not_now};

/// A raw socket. Packets begin with their IP header.
#[derive(Debug)]
pub struct RawSocket {
    socket: OwnedFd,
    /// Holds the port, so that the host answers nobody there.
    _port: Option<OwnedFd>,
}

impl RawSocket {
    /// Opens one for `protocol`; a TCP or UDP `port` that is not 0 is taken from the host.
    pub fn open(protocol: u8, port: u16) -> io::Result<RawSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor becomes the value's own; the kernel reads one integer for each option.
        let socket = unsafe {
            let descriptor = check(libc::socket(libc::AF_INET, kind, protocol.into()) as isize)? as i32;
            let socket = OwnedFd::from_raw_fd(descriptor);
            let one = 1i32;
            let options = [(libc::IPPROTO_IP, libc::IP_HDRINCL), (libc::SOL_SOCKET, libc::SO_BROADCAST)];
            for (level, option) in options {
                let size = size_of_val(&one) as libc::socklen_t;
                check(libc::setsockopt(descriptor, level, option, (&raw const one).cast(), size) as isize)?;
            }
            socket
        };
        let place = (Ipv4Addr::UNSPECIFIED, port);
        let port = match (i32::from(protocol), port) {
            (libc::IPPROTO_TCP, 1..) => Some(TcpListener::bind(place)?.into()),
            (libc::IPPROTO_UDP, 1..) => Some(UdpSocket::bind(place)?.into()),
            _ => None,
        };
        Ok(RawSocket { socket, _port: port })
    }

    /// Receives a packet into `buffer`: how long it is, which may be more than there was room for. `None` if there is
    /// none now.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let place = buffer.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most the buffer's length.
        let read = unsafe { libc::recv(self.socket.as_raw_fd(), place, buffer.len(), libc::MSG_TRUNC) };
        match check(read) {
            Ok(length) => Ok(Some(length)),
            Err(error) if not_now(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a packet to the address; false if there is no room now.
    pub fn send(&self, packet: &[u8], to: Ipv4Addr) -> io::Result<bool> {
        // SAFETY: an all-zero address is valid; the kernel reads it and the packet's bytes.
        let sent = unsafe {
            let mut address: libc::sockaddr_in = zeroed();
            address.sin_family = libc::AF_INET as u16;
            address.sin_addr.s_addr = u32::from(to).to_be();
            let size = size_of_val(&address) as libc::socklen_t;
            let place = (&raw const address).cast();
            libc::sendto(self.socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, place, size)
        };
        match check(sent) {
            Ok(_) => Ok(true),
            Err(error) if not_now(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
