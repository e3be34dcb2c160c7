//! `Align`: aligns packet data in memory.

use element::prelude::*;

/// Moves packet data so that it starts OFFSET bytes after a multiple of MODULUS in memory.
///
/// No element of Clickbox needs aligned data. This element exists for configurations written for other processors.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 2, STOP true) -> Align(4, 2) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.byte_count = 120
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "Align",
    group = "changing",
    order_insensitive,
    see = "AlignmentInfo",
    drops = "too_long",
    shards = "independent"
)]
pub struct AlignArgs {
    /// 2, 4 or 8.
    #[arg(position)]
    modulus: u32,
    /// Offset; less than MODULUS.
    #[arg(position)]
    offset: i32,
}

pub struct Align {
    modulus: usize,
    offset: usize,
}

impl Filter for Align {
    type Args = AlignArgs;

    fn new(args: AlignArgs, _: &mut Setup) -> Result<Align, SetupError> {
        if !matches!(args.modulus, 2 | 4 | 8) {
            return Err(SetupError::new("MODULUS must be 2, 4, or 8"));
        }
        let modulus = args.modulus as usize;
        let offset = usize::try_from(args.offset).ok().filter(|offset| *offset < modulus);
        let offset = offset.ok_or_else(|| SetupError::new("OFFSET must be smaller than MODULUS"))?;
        Ok(Align { modulus, offset })
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let headroom = packet.headroom();
        let excess = distance(packet.data().as_ptr().addr(), self.modulus, self.offset);
        let front = match excess {
            0 => return Verdict::Pass(packet),
            excess if excess <= headroom => headroom - excess,
            excess => headroom + self.modulus - excess,
        };
        if packet.set_headroom(front).is_none() {
            return Verdict::Drop(packet, Reason::TOO_LONG);
        }
        Verdict::Pass(packet)
    }
}

/// Distance of `address` from the nearest aligned address at or below it: one that is `offset` above a multiple of
/// `modulus`, a power of two.
fn distance(address: usize, modulus: usize, offset: usize) -> usize {
    address.wrapping_sub(offset) & (modulus - 1)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_to_the_alignment() {
        for (address, modulus, offset, expected) in
            [(16, 4, 0, 0), (18, 4, 2, 0), (17, 4, 2, 3), (16, 4, 2, 2), (1, 8, 3, 6)]
        {
            assert_eq!(distance(address, modulus, offset), expected, "{address} {modulus} {offset}");
        }
    }
}
