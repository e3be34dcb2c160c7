//! `SetCRC32`: appends a checksum to packets.

use element::prelude::*;
use packet::checksum::crc32;

/// Appends a CRC-32 to each packet: four bytes in little-endian order.
///
/// It uses Ethernet's polynomial, but processes bits from the highest and does not invert the result, so it is not an
/// Ethernet frame check sequence. `CheckCRC32` verifies it. A packet that cannot grow is dropped as `too_long`.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> SetCRC32 -> a :: Counter -> CheckCRC32
///     -> b :: Counter -> Discard;
/// ```
/// ```expect
/// a.byte_count = 128
/// b.byte_count = 120
/// a.count = 2
/// b.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "SetCRC32",
    group = "changing",
    order_insensitive,
    shards = "independent",
    see = "CheckCRC32",
    drops = "too_long",
    fates = "changed"
)]
pub struct SetCRC32Args {}

pub struct SetCRC32;

impl Filter for SetCRC32 {
    type Args = SetCRC32Args;

    fn new(_: SetCRC32Args, _: &mut Setup) -> Result<SetCRC32, SetupError> {
        Ok(SetCRC32)
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let sum = crc32(u32::MAX, packet.data()).to_le_bytes();
        match packet.append(sum.len()) {
            Some(target) => target.copy_from_slice(&sum),
            None => return Verdict::Drop(packet, Reason::TOO_LONG),
        }
        Verdict::Pass(packet)
    }
}
