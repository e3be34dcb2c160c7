//! `IPsecAuthHMACSHA1`: authenticates ESP packets.

use element::prelude::*;

use super::association::Databases;
use super::header::{HEADER, Header};
use super::transforms::{BLOCK, DIGEST};

/// Adds or verifies the digest of ESP packets: the first 96 bits of HMAC-SHA-1 (RFC 2404).
///
/// The packet begins with its ESP header, whose SPI gives the key. The digest, of the whole packet, is at its end. To verify it
/// removes it, and packets with a wrong digest go to output 1, or are dropped as `bad_digest`. The comparison takes the same
/// time for all packets.
///
/// Packets are dropped as `too_short` without a block behind the header or, to verify, without a digest, and as `unknown_spi`
/// if no association has the SPI.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.1.0.5, 1000, 10.2.0.6, 2000)
///     -> rt :: RadixIPsecLookup(0/0 0,
///         10.2/16 192.0.2.2 1 1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64);
/// rt[0] -> Discard;
/// rt[1] -> IPsecESPEncap -> IPsecAES(1) -> IPsecAuthHMACSHA1(0)
///     -> t :: Tee(2);
/// t[0] -> IPsecAuthHMACSHA1(1) -> right :: Counter -> Discard;
/// t[1] -> StoreData(30, \<0000>) -> tampered :: IPsecAuthHMACSHA1(1) -> Discard;
/// ```
/// ```expect
/// right.count = 3
/// right.byte_count = 216
/// tampered.drops = 3
/// tampered.losses = bad_digest 3
/// ```
#[derive(Args)]
#[element(
    name = "IPsecAuthHMACSHA1",
    group = "ipsec",
    ports = "1/1-2",
    processing = "a/ah",
    see = "IPsecESPEncap, IPsecESPUnencap, IPsecAES, RadixIPsecLookup",
    drops = "too_short, too_long, unknown_spi, bad_digest",
    fates = "changed"
)]
pub struct IPsecAuthHMACSHA1Args {
    /// 0 to add the digest, 1 to verify it.
    #[arg(position)]
    verify: bool,
}

pub struct IPsecAuthHMACSHA1 {
    verify: bool,
    databases: Databases,
    /// Packets with a wrong digest.
    wrong: u64,
}

impl IPsecAuthHMACSHA1 {
    fn add(&self, spi: u32, mut packet: Packet) -> Verdict {
        let Some(digest) = self.databases.with(spi, |one| one.transforms.digest(packet.data())) else {
            return Verdict::Drop(packet, Reason::UNKNOWN_SPI);
        };
        match packet.append(DIGEST) {
            Some(end) => end.copy_from_slice(&digest),
            None => return Verdict::Drop(packet, Reason::TOO_LONG),
        }
        Verdict::Pass(packet)
    }

    fn verify(&mut self, spi: u32, mut packet: Packet) -> Verdict {
        let Some((data, digest)) = packet.data().split_last_chunk() else {
            return Verdict::Drop(packet, Reason::TOO_SHORT);
        };
        match self.databases.with(spi, |one| one.transforms.verifies(data, digest)) {
            None => return Verdict::Drop(packet, Reason::UNKNOWN_SPI),
            Some(false) => {
                self.wrong += 1;
                return Verdict::Divert(packet, Reason::BAD_DIGEST);
            }
            Some(true) => {}
        }
        packet.truncate_by(DIGEST);
        Verdict::Pass(packet)
    }
}

impl Filter for IPsecAuthHMACSHA1 {
    type Args = IPsecAuthHMACSHA1Args;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Number of packets with a wrong digest.", |element| {
            element.wrong.to_string()
        })];

    fn new(args: IPsecAuthHMACSHA1Args, _: &mut Setup) -> Result<IPsecAuthHMACSHA1, SetupError> {
        Ok(IPsecAuthHMACSHA1 { verify: args.verify, databases: Databases::default(), wrong: 0 })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.databases = Databases::require(cx)?;
        Ok(())
    }

    fn filter(&mut self, _: &mut Context, packet: Packet) -> Verdict {
        let digest = if self.verify { DIGEST } else { 0 };
        match Header::read(&packet).filter(|_| packet.len() >= HEADER + BLOCK + digest) {
            None => Verdict::Drop(packet, Reason::TOO_SHORT),
            Some(header) if self.verify => self.verify(header.spi, packet),
            Some(header) => self.add(header.spi, packet),
        }
    }
}
