//! What packets of a socket go over.

use core::net::Ipv4Addr;

use alloc::boxed::Box;

use element::{Datagrams, Descriptor, Io, IoError, Stream};
use packet::Packet;

/// What packets go over.
pub(super) enum Carrier {
    Stream(Box<dyn Stream>),
    Datagrams(Box<dyn Datagrams>),
}

impl Carrier {
    pub(super) fn descriptor(&self) -> Descriptor {
        match self {
            Carrier::Stream(stream) => stream.descriptor(),
            Carrier::Datagrams(datagrams) => datagrams.descriptor(),
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<Io, IoError> {
        match self {
            Carrier::Stream(stream) => stream.read(into),
            Carrier::Datagrams(datagrams) => datagrams.receive(into),
        }
    }

    /// Sends a packet, where datagrams may go to a place of their own; how many bytes are gone.
    pub(super) fn write(&mut self, packet: &Packet, to: Option<Ipv4Addr>) -> Result<Io, IoError> {
        match self {
            Carrier::Stream(stream) => stream.write(packet.data()),
            Carrier::Datagrams(datagrams) => {
                let sent = datagrams.send(packet.data(), to)?;
                Ok(if let Io::Done(_) = sent { Io::Done(packet.len()) } else { sent })
            }
        }
    }
}
