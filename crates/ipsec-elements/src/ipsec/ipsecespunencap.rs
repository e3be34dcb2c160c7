//! `IPsecESPUnencap`: ends an ESP packet.

use element::prelude::*;
use packet::{Ip4View, protocol};

use super::association::{Association, Databases};
use super::header::{HEADER, Header};

/// Removes the ESP header and trailer of IPv4 packets that come from an IPsec tunnel (RFC 4303).
///
/// The packet must be authenticated and decrypted before. Its network header is then that of the inner packet, and the
/// destination annotation is the inner destination.
///
/// Each packet is checked, in this order, and dropped
///
/// - as `too_short` without a header and a trailer;
/// - as `unknown_spi` if no association has the SPI;
/// - as `replayed` if the sequence number was taken before, is behind the window of the association, or is below its first;
/// - as `bad_padding` if the padding is longer than the packet, or not 1, 2, 3 and so on;
/// - as `no_ip_header` if the trailer does not say that it carries IPv4, or if there is no IPv4 header;
/// - as `outside_tunnel` if the inner source address is not one that is routed to the tunnel (RFC 4301, section 5.2). This also
///   stops packets of our own that are sent back to us.
///
/// A packet whose trailer says that it carries nothing is a dummy, and ends here.
///
/// ## Differences
///
/// In Click, the inner source address is not checked, windows of more than 32 packets take some packets twice, and the window starts
/// over when the first sequence number comes again.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.1.0.5, 1000, 10.2.0.6, 2000)
///     -> rt :: RadixIPsecLookup(0/0 0,
///         10.2/16 192.0.2.2 1 1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64,
///         10.1/16 192.0.2.1 1 1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64);
/// rt[0] -> Discard;
/// rt[1] -> IPsecESPEncap -> IPsecAES(1) -> IPsecAuthHMACSHA1(0)
///     -> t :: Tee(2);
/// t[0] -> IPsecAuthHMACSHA1(1) -> IPsecAES(0) -> IPsecESPUnencap -> CheckIPHeader -> c :: Counter -> Discard;
/// t[1] -> IPsecAuthHMACSHA1(1) -> IPsecAES(0) -> again :: IPsecESPUnencap -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// c.byte_count = 120
/// again.losses = replayed 3
/// rt.associations = 1000 4 3
/// ```
#[derive(Args)]
#[element(
    name = "IPsecESPUnencap",
    group = "ipsec",
    reads = "IPsecESPUnencap",
    see = "IPsecESPEncap, IPsecAES, IPsecAuthHMACSHA1, RadixIPsecLookup",
    drops = "too_short, unknown_spi, replayed, bad_padding, no_ip_header, outside_tunnel",
    fates = "consumed, changed"
)]
pub struct IPsecESPUnencapArgs;

pub struct IPsecESPUnencap {
    databases: Databases,
}

/// What to do with a packet.
enum Content {
    /// It carries an IPv4 packet of this length, with a header of this length.
    Ip4(usize, usize),
    /// It carries nothing.
    Dummy,
}

/// Checks a packet of an association.
fn check(association: &mut Association, header: &Header, payload: &[u8]) -> Result<Content, Reason> {
    if !association.window.take(header.sequence) {
        return Err(Reason::REPLAYED);
    }
    let (rest, [padding, next]) = payload.split_last_chunk().ok_or(Reason::TOO_SHORT)?;
    let (inner, padding) =
        rest.split_at_checked(rest.len().wrapping_sub((*padding).into())).ok_or(Reason::BAD_PADDING)?;
    if !padding.iter().copied().eq(1..=padding.len() as u8) {
        return Err(Reason::BAD_PADDING);
    }
    if *next == protocol::NO_NEXT {
        return Ok(Content::Dummy);
    }
    let ip4 = Ip4View::new(inner).filter(|ip4| *next == protocol::IPIP && ip4.version() == 4);
    let ip4 = ip4.ok_or(Reason::NO_IP_HEADER)?;
    if !association.takes(ip4.source()) {
        return Err(Reason::OUTSIDE_TUNNEL);
    }
    Ok(Content::Ip4(inner.len(), ip4.header_length()))
}

impl Filter for IPsecESPUnencap {
    type Args = IPsecESPUnencapArgs;

    fn new(_: IPsecESPUnencapArgs, _: &mut Setup) -> Result<IPsecESPUnencap, SetupError> {
        Ok(IPsecESPUnencap { databases: Databases::default() })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.databases = Databases::require(cx)?;
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Header::read(&packet).filter(|_| packet.len() >= HEADER + 2) else {
            return Verdict::Drop(packet, Reason::TOO_SHORT);
        };
        let payload = packet.data().get(HEADER..).unwrap_or_default();
        match self.databases.with(header.spi, |association| check(association, &header, payload)) {
            None => Verdict::Drop(packet, Reason::UNKNOWN_SPI),
            Some(Err(reason)) => Verdict::Drop(packet, reason),
            Some(Ok(Content::Dummy)) => {
                cx.end(packet, Fate::Consumed);
                Verdict::Taken
            }
            Some(Ok(Content::Ip4(length, header))) => {
                packet.strip(HEADER);
                packet.truncate(length);
                packet.set_network(0, header);
                if let Some(destination) = Ip4View::new(packet.data()).map(|ip4| ip4.destination()) {
                    packet.set_destination_ip(destination);
                }
                Verdict::Pass(packet)
            }
        }
    }
}
