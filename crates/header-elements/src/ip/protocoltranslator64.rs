//! `ProtocolTranslator64`: translates IPv6 packets into IPv4 packets.

use element::prelude::*;
use packet::Ip6Prefix;

use super::translation::{Embedding, translate_to4};

/// Translates IPv6 packets into IPv4 packets, as a stateless translator does (SIIT, RFC 7915).
///
/// Packets begin with their IPv6 header. Its addresses must be IPv4 addresses behind PREFIX (RFC 6052), else the packet is
/// dropped as `unmapped_address`. The destination annotation is set to the new destination. ICMPv6 messages become those of
/// ICMP, with the packet that an error quotes. Extension headers are left out. Checksums are adapted, so a wrong one stays
/// wrong. The time to live is the hop limit: use DecIP6HLIM before the element, or DecIPTTL behind it.
///
/// Packets longer than 1,260 bytes must not be fragmented on their way; shorter ones may.
///
/// Dropped are ICMPv6 messages that ICMP does not have, such as neighbour discovery, and packets with an authentication
/// header or a route to follow as `not_rewritable`, fragments of ICMPv6 messages as `is_fragment`, and malformed packets as
/// `no_ip_header` and `bad_length`.
/// ```click
/// InfiniteSource(DATA \<60000000000c11400064ff9b00000000000000000a0000010064ff9b00000000000000000a00000203e807d0000c7e9361626364>, LIMIT 2, STOP true)
///     -> CheckIP6Header -> ProtocolTranslator64(PREFIX 64:ff9b::/96) -> CheckIPHeader
///     -> c :: Classifier(0/45000020 8/4011 12/0a0000010a000002, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 64
/// wrong.count = 0
/// ```
/// ## Differences
/// - PREFIX does not exist in Click. Without it, IPv4-compatible addresses (::192.0.2.1) and IPv4-mapped ones
///   (::ffff:192.0.2.1) are translated. Click's present version translates the latter only, so its example configurations
///   lose packets.
/// - Click follows the older RFC 2765. It leaves the traffic class out, sets the flag "don't fragment" in each packet, does
///   not translate what an error quotes, and takes fragments and extension headers for data. It computes each checksum,
///   whether the old one was right or not, and makes new packets without annotations.
/// - Click passes on packets of protocols other than TCP, UDP and ICMPv6 without their protocol.
/// - Extensions of errors (RFC 4884) pass as bytes of the quoted packet.
#[derive(Args)]
#[element(
    name = "ProtocolTranslator64",
    group = "ip",
    shards = "independent",
    see = "ProtocolTranslator46, AddressTranslator",
    drops = "no_ip_header, bad_length, unmapped_address, not_rewritable, is_fragment",
    fates = "changed"
)]
pub struct ProtocolTranslator64Args {
    /// Prefix of the IPv6 addresses; its length is 32, 40, 48, 56, 64 or 96. Default: ::/96 and ::ffff:0:0/96.
    prefix: Option<Ip6Prefix>,
}

pub struct ProtocolTranslator64 {
    embedding: Embedding,
    /// The identification of the last packet that was no fragment.
    identification: u16,
}

impl Filter for ProtocolTranslator64 {
    type Args = ProtocolTranslator64Args;

    fn new(args: ProtocolTranslator64Args, _: &mut Setup) -> Result<ProtocolTranslator64, SetupError> {
        Ok(ProtocolTranslator64 { embedding: Embedding::new(args.prefix)?, identification: 0 })
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        self.identification = self.identification.wrapping_add(1);
        match translate_to4(&mut packet, &self.embedding, self.identification) {
            Ok(()) => Verdict::Pass(packet),
            Err(reason) => Verdict::Drop(packet, reason),
        }
    }

    fn inherit(&mut self, old: &mut ProtocolTranslator64, _: &mut Context) {
        self.identification = old.identification;
    }
}
