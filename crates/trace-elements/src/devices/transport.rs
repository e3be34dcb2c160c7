//! The transport of a socket element.

use core::net::Ipv4Addr;

use alloc::boxed::Box;

use element::{Datagrams, Descriptor, Io, IoError, Stream};
use packet::Packet;
pub(super) enum SocketTransport {
    Stream(Box<dyn Stream>),
    Datagrams(Box<dyn Datagrams>),
}

impl SocketTransport {
    pub(super) fn descriptor(&self) -> Descriptor {
        match self {
            SocketTransport::Stream(stream) => stream.descriptor(),
            SocketTransport::Datagrams(datagrams) => datagrams.descriptor(),
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        match self {
            SocketTransport::Stream(stream) => stream.read(into),
            SocketTransport::Datagrams(datagrams) => datagrams.receive(into),
        }
    }

    /// Sends a packet; datagrams may have their own destination. Returns how many bytes were sent.
    pub(super) fn write(&mut self, packet: &Packet, to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        match self {
            SocketTransport::Stream(stream) => stream.write(packet.data()),
            SocketTransport::Datagrams(datagrams) => {
                let sent = datagrams.send(packet.data(), to)?;
                Ok(if let Io::Done(_) = sent { Io::Done(packet.len()) } else { sent })
            }
        }
    }
}
