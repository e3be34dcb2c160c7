//! `ICMPIPEncap`: encapsulates packets in ICMP messages.

use core::net::Ipv4Addr;

use element::arguments::{IcmpType, Word};
use element::prelude::*;

use super::encapsulation::{Encapsulation, EncapsulationArguments, MessageTemplate};

/// Adds IPv4 and ICMP headers with a fixed type and code.
///
/// The IP identification counts from 1 and skips 0; it is also the sequence number of echo, timestamp and information
/// messages. The destination annotation is set to DST.
/// ```click
/// InfiniteSource(LENGTH 28, LIMIT 2, STOP true)
///     -> e :: ICMPIPEncap(10.0.0.1, 10.0.0.2, unreachable, host)
///     -> CheckIPHeader -> i :: CheckICMPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// e.dst = 10.0.0.2
/// i.drops = 0
/// c.byte_count = 112
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "ICMPIPEncap",
    group = "icmp",
    shards = "independent",
    flows = "changes",
    see = "ICMPPingEncap, ICMPError",
    drops = "too_long",
    fates = "changed"
)]
pub struct ICMPIPEncapArgs {
    /// Source address.
    #[arg(position)]
    src: Ipv4Addr,
    /// Destination address.
    #[arg(position)]
    dst: Ipv4Addr,
    /// ICMP type, by number or name.
    #[arg(position, keyword = "TYPE")]
    kind: IcmpType,
    /// ICMP code, by number or by a name valid for the type.
    #[arg(position, default = "0")]
    code: Word,
    /// Identifier, for messages that have one.
    #[arg(default = "0")]
    identifier: u16,
}

pub type ICMPIPEncap = Encapsulation<ICMPIPEncapArgs>;

impl EncapsulationArguments for ICMPIPEncapArgs {
    fn template(self) -> Result<MessageTemplate, SetupError> {
        let code = self.kind.code(&self.code.0).ok_or_else(|| SetupError::new("invalid CODE"))?;
        let (source, destination) = (self.src, self.dst);
        Ok(MessageTemplate { source, destination, kind: self.kind.0, code, identifier: self.identifier })
    }
}
