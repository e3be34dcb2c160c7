//! `GetIPAddress`: copies an address from the packet to the destination annotation.

use element::arguments::{Annotation, Word};
use element::prelude::*;
use packet::Ip4View;

/// Copies an IPv4 address from each packet to the destination annotation, or to another annotation.
///
/// The address is the four bytes at OFFSET, or, with `IP src` or `IP dst`, a field of the marked header. Give exactly
/// one of the two.
///
/// ## Differences
///
/// If the packet is too short, the address is 0.0.0.0.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> GetIPAddress(12) -> StoreIPAddress(16) -> SetIPChecksum
///     -> CheckIPHeader(BADSRC 10.0.0.1, GOODDST 10.0.0.1)
///     -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "GetIPAddress",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "ARPQuerier, StaticIPLookup, SetIPAddress, StoreIPAddress"
)]
pub struct GetIPAddressArgs {
    /// Offset of the address from the start of the packet, in bytes.
    #[arg(position)]
    offset: Option<u32>,
    /// Annotation to set.
    #[arg(position, default = "0")]
    anno: Annotation<4>,
    /// Address of the marked header to copy: `src` or `dst`.
    ip: Option<Word>,
}

pub struct GetIPAddress {
    from: AddressField,
    annotation: usize,
}

enum AddressField {
    Offset(usize),
    Source,
    Destination,
}

impl Filter for GetIPAddress {
    type Args = GetIPAddressArgs;

    fn new(args: GetIPAddressArgs, _: &mut Setup) -> Result<GetIPAddress, SetupError> {
        let from = match (args.offset, args.ip.as_ref().map(|Word(word)| word.as_str())) {
            (Some(offset), None) => AddressField::Offset(offset as usize),
            (None, Some("src")) => AddressField::Source,
            (None, Some("dst")) => AddressField::Destination,
            (None, Some(_)) => return Err(SetupError::new("bad IP")),
            _ => return Err(SetupError::new("set one of OFFSET, IP")),
        };
        Ok(GetIPAddress { from, annotation: args.anno.0 })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        let octets = match self.from {
            AddressField::Offset(offset) => {
                packet.data().get(offset..).and_then(|rest| rest.first_chunk()).copied()
            }
            AddressField::Source => Ip4View::new(packet.network()).map(|header| header.source().octets()),
            AddressField::Destination => {
                Ip4View::new(packet.network()).map(|header| header.destination().octets())
            }
        };
        packet.set_annotation_u32(self.annotation, u32::from_ne_bytes(octets.unwrap_or([0; 4])));
        true
    }
}
