//! `IPsecESPEncap`: begins an ESP packet.

use element::prelude::*;
use packet::{annotation, protocol};

use super::association::Databases;
use super::header::HEADER;
use super::transforms::BLOCK;

/// Adds an ESP header and trailer to IPv4 packets that enter an IPsec tunnel (RFC 4303).
///
/// The number of the tunnel's security association, the SPI, is in an annotation that `RadixIPsecLookup` sets. The header has
/// the SPI, the association's next sequence number, and an unpredictable initialisation vector of 16 bytes. The trailer pads
/// the packet to whole blocks of AES, and says that it carries IPv4.
///
/// `IPsecAES(1)` then encrypts the packet, `IPsecAuthHMACSHA1(0)` authenticates it, and `IPsecEncap(50)` adds the outer header.
///
/// Packets are dropped as `unknown_spi` if there is no such association, and as `sequence_ended` when its sequence numbers are
/// used up: numbers are never repeated, so the tunnel then needs new keys.
///
/// ## Differences
///
/// Click pads to blocks of 8 bytes, and writes an initialisation vector of 8 bytes and the protocol of the inner packet into the
/// trailer, which no other implementation takes. It begins again with the first sequence number after the last one.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.1.0.5, 1000, 10.2.0.6, 2000)
///     -> rt :: RadixIPsecLookup(0/0 0,
///         10.2/16 192.0.2.2 1 1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64);
/// rt[0] -> Discard;
/// rt[1] -> IPsecESPEncap -> esp :: Classifier(0/000003e800000001, 0/000003e8, -);
/// esp[0] -> first :: Counter -> Discard;
/// esp[1] -> others :: Counter -> Discard;
/// esp[2] -> Discard;
/// ```
/// ```expect
/// first.count = 1
/// first.byte_count = 72
/// others.count = 2
/// rt.associations = 1000 4 0
/// ```
#[derive(Args)]
#[element(
    name = "IPsecESPEncap",
    group = "ipsec",
    reads = "IPsecESPEncap",
    see = "IPsecESPUnencap, IPsecAES, IPsecAuthHMACSHA1, IPsecEncap, RadixIPsecLookup",
    drops = "no_ip_header, unknown_spi, sequence_ended, too_long",
    fates = "changed"
)]
pub struct IPsecESPEncapArgs;

pub struct IPsecESPEncap {
    databases: Databases,
}

impl Filter for IPsecESPEncap {
    type Args = IPsecESPEncapArgs;

    fn new(_: IPsecESPEncapArgs, _: &mut Setup) -> Result<IPsecESPEncap, SetupError> {
        Ok(IPsecESPEncap { databases: Databases::default() })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.databases = Databases::require(cx)?;
        Ok(())
    }

    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if packet.data().first().is_none_or(|first| first >> 4 != 4) {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        }
        let padding = (packet.len() + 2).wrapping_neg() % BLOCK;
        if packet.prepend(HEADER).is_none() || packet.append(padding + 2).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        let spi = packet.annotation_u32(annotation::IPSEC_SPI.offset.into());
        let header = match self.databases.with(spi, |one| one.next_header(spi, || cx.hash_seed())) {
            None => return Verdict::Drop(packet, Reason::UNKNOWN_SPI),
            Some(None) => return Verdict::Drop(packet, Reason::SEQUENCE_ENDED),
            Some(Some(header)) => header.bytes(),
        };
        let bytes = packet.data_mut();
        if let Some(start) = bytes.first_chunk_mut() {
            *start = header;
        }
        let end = bytes.len() - padding - 2;
        let trailer = (1..=padding as u8).chain([padding as u8, protocol::IPIP]);
        bytes.iter_mut().skip(end).zip(trailer).for_each(|(byte, value)| *byte = value);
        packet.clear_network();
        Verdict::Pass(packet)
    }
}
