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
    /// Reserves the port, so that the host's own stack does not answer on it.
    _port: Option<OwnedFd>,
}

impl RawSocket {
    /// Opens a raw socket for `protocol`. If `port` is not 0, that TCP or UDP port of the host is reserved.
    pub fn open(protocol: u8, port: u16) -> io::Result<RawSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: each new descriptor is owned by the value alone; the kernel reads one integer per option.
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
        let local = (Ipv4Addr::UNSPECIFIED, port);
        let port = match (i32::from(protocol), port) {
            (libc::IPPROTO_TCP, 1..) => Some(TcpListener::bind(local)?.into()),
            (libc::IPPROTO_UDP, 1..) => Some(UdpSocket::bind(local)?.into()),
            _ => None,
        };
        Ok(RawSocket { socket, _port: port })
    }

    /// Receives a packet into `buffer` and returns its length, which is greater than the buffer if the packet was
    /// truncated. Returns `None` if no packet is available.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let pointer = buffer.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most the buffer's length.
        let read = unsafe { libc::recv(self.socket.as_raw_fd(), pointer, buffer.len(), libc::MSG_TRUNC) };
        match check(read) {
            Ok(length) => Ok(Some(length)),
            Err(error) if not_now(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a packet to an address. Returns false if the socket has no room now.
    pub fn send(&self, packet: &[u8], to: Ipv4Addr) -> io::Result<bool> {
        // SAFETY: an all-zero address is valid; the kernel reads it and the packet's bytes.
        let sent = unsafe {
            let mut address: libc::sockaddr_in = zeroed();
            address.sin_family = libc::AF_INET as u16;
            address.sin_addr.s_addr = u32::from(to).to_be();
            let size = size_of_val(&address) as libc::socklen_t;
            let pointer = (&raw const address).cast();
            libc::sendto(self.socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, pointer, size)
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
