//! `IPsecAES`: encrypts or decrypts ESP packets.

use element::prelude::*;

use super::association::Databases;
use super::header::{HEADER, Header};
use super::transforms::{BLOCK, DIGEST};

/// Encrypts or decrypts ESP packets with AES in CBC mode and keys of 128 bits (RFC 3602).
///
/// The packet begins with its ESP header, whose SPI gives the key, and whose last 16 bytes are the initialisation vector. What
/// follows is encrypted in place. A digest of 12 bytes behind the last whole block is left as it is.
///
/// The order of the elements decides what is authenticated. RFC 4303 encrypts first: `IPsecAES(1) -> IPsecAuthHMACSHA1(0)`, and
/// at the other end `IPsecAuthHMACSHA1(1) -> IPsecAES(0)`. Use this order, which other implementations understand, and in
/// which forged packets are not even decrypted. Click's example authenticates first; this works too, if both ends do so.
///
/// Packets are dropped as `too_short` without a block behind the header, as `bad_length` if they end within a block, and as
/// `unknown_spi` if no association has the SPI.
///
/// ## Differences
///
/// Click chains only the first half of each block, and encrypts a part of the digest if the packet is not padded to blocks of AES.
/// It describes an argument IGNORE, which it does not take.
/// ```click
/// InfiniteSource(LENGTH 12, LIMIT 3, STOP true)
///     -> UDPIPEncap(10.1.0.5, 1000, 10.2.0.6, 2000)
///     -> rt :: RadixIPsecLookup(0/0 0,
///         10.2/16 192.0.2.2 1 1000 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64);
/// rt[0] -> Discard;
/// rt[1] -> IPsecESPEncap -> clear :: Classifier(24/45, -);
/// clear[1] -> Discard;
/// clear[0] -> IPsecAES(1) -> encrypted :: Classifier(24/45000028, -);
/// encrypted[0] -> Discard;
/// encrypted[1] -> IPsecAES(0) -> again :: Classifier(24/45000028, -);
/// again[0] -> c :: Counter -> Discard;
/// again[1] -> Discard;
/// ```
/// ```expect
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "IPsecAES",
    group = "ipsec",
    order_insensitive,
    see = "IPsecESPEncap, IPsecESPUnencap, IPsecAuthHMACSHA1, RadixIPsecLookup",
    drops = "too_short, bad_length, unknown_spi",
    fates = "changed"
)]
pub struct IPsecAESArgs {
    /// 1 to encrypt, 0 to decrypt.
    #[arg(position)]
    encrypt: bool,
}

pub struct IPsecAES {
    encrypt: bool,
    databases: Databases,
}

impl Filter for IPsecAES {
    type Args = IPsecAESArgs;

    fn new(args: IPsecAESArgs, _: &mut Setup) -> Result<IPsecAES, SetupError> {
        Ok(IPsecAES { encrypt: args.encrypt, databases: Databases::default() })
    }

    fn resolve(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.databases = Databases::require(cx)?;
        Ok(())
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Header::read(&packet).filter(|_| packet.len() >= HEADER + BLOCK) else {
            return Verdict::Drop(packet, Reason::TOO_SHORT);
        };
        if ![0, DIGEST].contains(&((packet.len() - HEADER) % BLOCK)) {
            return Verdict::Drop(packet, Reason::BAD_LENGTH);
        }
        let Some(payload) = packet.data_mut().get_mut(HEADER..) else {
            return Verdict::Drop(packet, Reason::TOO_SHORT);
        };
        let done = self.databases.with(header.spi, |association| {
            if self.encrypt {
                association.transforms.encrypt(header.vector, payload);
            } else {
                association.transforms.decrypt(header.vector, payload);
            }
        });
        match done {
            Some(()) => Verdict::Pass(packet),
            None => Verdict::Drop(packet, Reason::UNKNOWN_SPI),
        }
    }
}
