//! The destination of encapsulated packets.

use core::net::Ipv4Addr;

use element::arguments::ArgumentError;
use element::prelude::*;

/// An address, or `DST_ANNO` for each packet's destination annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Address(Ipv4Addr),
    Annotation,
}

impl Destination {
    /// The destination of a packet. Sets it in the annotation.
    #[inline]
    pub(crate) fn of(self, packet: &mut Packet) -> Ipv4Addr {
        match self {
            Destination::Address(address) => {
                packet.set_destination_ip(address);
                address
            }
            Destination::Annotation => packet.destination_ip(),
        }
    }
}

impl FromArgument for Destination {
    const KIND: &'static str = "IPv4 address or `DST_ANNO`";

    fn from_argument(text: &str, setup: &Setup) -> Result<Destination, ArgumentError> {
        if text == "DST_ANNO" {
            return Ok(Destination::Annotation);
        }
        let address = Ipv4Addr::from_argument(text, setup);
        address.map(Destination::Address).map_err(|_| {
            ArgumentError::SemanticWithKeyword("argument should be IP address or 'DST_ANNO'".into())
        })
    }
}
