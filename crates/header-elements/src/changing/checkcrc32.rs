//! `CheckCRC32`: verifies and removes a checksum at the end of packets.

use element::prelude::*;
use packet::checksum::crc32;

/// Verifies and removes the CRC-32 that `SetCRC32` appended. Packets with a wrong one are dropped as `bad_crc`.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> t :: Tee -> SetCRC32 -> check :: CheckCRC32
///     -> c :: Counter -> Discard;
/// t[1] -> Truncate(3) -> check;
/// ```
/// ```expect
/// c.count = 2
/// c.byte_count = 120
/// check.losses = bad_crc 2
/// ```
#[derive(Args)]
#[element(
    name = "CheckCRC32",
    group = "changing",
    logs,
    see = "SetCRC32",
    drops = "bad_crc",
    fates = "changed",
    shards = "independent"
)]
pub struct CheckCRC32Args {}

pub struct CheckCRC32;

impl Filter for CheckCRC32 {
    type Args = CheckCRC32Args;

    fn new(_: CheckCRC32Args, _: &mut Setup) -> Result<CheckCRC32, SetupError> {
        Ok(CheckCRC32)
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        if !has_valid_crc(packet.data()) {
            cx.log(&format!("CRC32 failed, len {}", packet.len()));
            return Verdict::Drop(packet, Reason::BAD_CRC);
        }
        packet.truncate_by(4);
        Verdict::Pass(packet)
    }
}

/// Whether the last four bytes are the checksum of those before.
fn has_valid_crc(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<4>().is_some_and(|(data, sum)| crc32(u32::MAX, data).to_le_bytes() == *sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_packets_and_wrong_checksums_are_rejected() {
        for bytes in [&b""[..], b"abc", b"abcd", b"abcdefgh"] {
            assert!(!has_valid_crc(bytes), "{bytes:?}");
        }
        let empty = crc32(u32::MAX, &[]).to_le_bytes();
        assert!(has_valid_crc(&empty));
    }
}
