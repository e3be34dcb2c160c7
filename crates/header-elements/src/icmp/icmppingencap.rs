//! `ICMPPingEncap`: encapsulates packets in echo requests.

use core::net::Ipv4Addr;

use element::prelude::*;
use packet::view::icmp4::kind::ECHO;

use super::encapsulation::{Encapsulation, EncapsulationArguments, MessageTemplate};

/// Adds IPv4 and ICMP echo request headers to each packet.
///
/// The sequence number counts from 1 and skips 0; it is also the IP identification. The destination annotation is set
/// to DST.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> e :: ICMPPingEncap(10.0.0.1, 10.0.0.2, IDENTIFIER 7)
///     -> CheckIPHeader -> i :: CheckICMPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// e.src = 10.0.0.1
/// i.drops = 0
/// c.byte_count = 72
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "ICMPPingEncap",
    group = "icmp",
    see = "ICMPPingSource, ICMPPingResponder, ICMPPingRewriter",
    drops = "too_long",
    fates = "changed"
)]
pub struct ICMPPingEncapArgs {
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// Identifier of the requests.
    #[arg(default = "0")]
    identifier: u16,
}

pub type ICMPPingEncap = Encapsulation<ICMPPingEncapArgs>;

impl EncapsulationArguments for ICMPPingEncapArgs {
    fn template(self) -> Result<MessageTemplate, SetupError> {
        let (source, destination) = (self.src, self.dst);
        Ok(MessageTemplate { source, destination, kind: ECHO, code: 0, identifier: self.identifier })
    }
}
