//! `ProtocolTranslator46`: translates IPv4 packets into IPv6 packets.

use element::prelude::*;
use packet::Ip6Prefix;

use super::translation::{Embedding, translate_to6};

/// Translates IPv4 packets into IPv6 packets, as a stateless translator does (SIIT, RFC 7915).
///
/// Packets begin with their IPv4 header. Its addresses become IPv6 addresses behind PREFIX (RFC 6052), and the destination
/// annotation is set to the new destination. ICMP messages become those of ICMPv6, with the packet that an error quotes.
/// Checksums are adapted, so a wrong one stays wrong; a UDP checksum that is left out is computed. The hop limit is the time
/// to live: use DecIPTTL before the element, or DecIP6HLIM behind it.
///
/// Dropped are ICMP messages, options and protocol numbers that have no equivalent in IPv6 as `not_rewritable`, fragments of
/// ICMP messages and of UDP datagrams without a checksum as `is_fragment`, and malformed packets as `no_ip_header` and
/// `bad_length`. Packets that could be too long for an IPv6 network are for IPFragmenter, before this element: an MTU of
/// 1252 leaves room for a fragment header.
/// ```click
/// InfiniteSource(DATA \<4500002000000000401166cb0a0000010a00000203e807d0000c3f2d61626364>, LIMIT 2, STOP true)
///     -> CheckIPHeader -> ProtocolTranslator46(PREFIX 64:ff9b::/96) -> CheckIP6Header
///     -> c :: Classifier(0/60000000000c1140 8/0064ff9b00000000000000000a000001, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 104
/// wrong.count = 0
/// ```
/// ## Differences
/// - PREFIX does not exist in Click. Without it, an address is ::192.0.2.1, as the example configurations of Click expect;
///   Click's present version makes IPv4-mapped addresses, ::ffff:192.0.2.1.
/// - Click follows the older RFC 2765. It subtracts 191 from the time to live, leaves the type of service out, does not
///   translate what an error quotes, and takes fragments for whole packets. It computes each checksum, whether the old one
///   was right or not, and makes new packets without annotations.
/// - Click passes on packets of protocols other than TCP, UDP and ICMP without their protocol.
/// - Extensions of errors (RFC 4884) pass as bytes of the quoted packet.
#[derive(Args)]
#[element(
    name = "ProtocolTranslator46",
    group = "ip",
    order_insensitive,
    shards = "independent",
    see = "ProtocolTranslator64, AddressTranslator",
    drops = "no_ip_header, bad_length, not_rewritable, is_fragment",
    fates = "changed"
)]
pub struct ProtocolTranslator46Args {
    /// Prefix of the IPv6 addresses; its length is 32, 40, 48, 56, 64 or 96. Default: ::/96.
    prefix: Option<Ip6Prefix>,
}

pub struct ProtocolTranslator46(Embedding);

impl Filter for ProtocolTranslator46 {
    type Args = ProtocolTranslator46Args;

    fn new(args: ProtocolTranslator46Args, _: &mut Setup) -> Result<ProtocolTranslator46, SetupError> {
        Embedding::new(args.prefix).map(ProtocolTranslator46)
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        match translate_to6(&mut packet, &self.0) {
            Ok(()) => Verdict::Pass(packet),
            Err(reason) => Verdict::Drop(packet, reason),
        }
    }
}
