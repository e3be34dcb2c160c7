//! `HashSwitch`: selects the output by a hash of bytes.

use element::prelude::*;

/// Distributes packets over its outputs by a hash of LENGTH bytes at OFFSET: equal bytes take the same output.
///
/// The hash is the sum of the bytes. With 2, 4 or 8 outputs, its low bits select the output, after an exclusive or with
/// the sum shifted right by four bits. With other numbers of outputs, the sum modulo their number selects. Packets that
/// are too short go to output 0.
/// ```click
/// InfiniteSource(DATA \<0102>, LIMIT 3, STOP true) -> s :: HashSwitch(0, 2);
/// s[0] -> a :: Counter -> Discard;
/// s[1] -> b :: Counter -> Discard;
/// s[2] -> c :: Counter -> Discard;
/// s[3] -> d :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 0
/// d.count = 3
/// b.count = 0
/// c.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "HashSwitch",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    order_insensitive,
    shards = "independent",
    see = "Switch, RoundRobinSwitch, StrideSwitch, RandomSwitch"
)]
pub struct HashSwitchArgs {
    /// Offset of the first byte.
    #[arg(position)]
    offset: i32,
    /// Number of bytes; at least 1.
    #[arg(position)]
    length: i32,
}

pub struct HashSwitch {
    offset: usize,
    length: usize,
    /// Outputs chosen for the packets of a batch.
    chosen: Vec<u32>,
}

impl Element for HashSwitch {
    type Args = HashSwitchArgs;

    fn new(args: HashSwitchArgs, _: &mut Setup) -> Result<HashSwitch, SetupError> {
        if args.length == 0 {
            return Err(SetupError::new("length must be > 0"));
        }
        // Bytes that no packet has: all go to output 0.
        let unsigned = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(HashSwitch { offset: unsigned(args.offset), length: unsigned(args.length), chosen: Vec::new() })
    }

    fn push(&mut self, cx: &mut Context, _: usize, batch: Batch) {
        let outputs = cx.outputs();
        self.chosen.clear();
        self.chosen.extend(batch.iter().map(|packet| {
            let bytes = packet.data().get(self.offset..).and_then(|rest| rest.get(..self.length));
            bytes.map_or(0, |bytes| choose(bytes, outputs) as u32)
        }));
        cx.send_to_ports(batch, &self.chosen, Reason::NO_OUTPUT);
    }
}

/// The output, of `outputs`, for these bytes.
#[inline]
fn choose(bytes: &[u8], outputs: usize) -> usize {
    // Eight bytes at a time: four sums of pairs, added up by a multiplication into the highest 16 bits.
    let (words, rest) = bytes.as_chunks::<8>();
    let (pairs, ones) = (0x00ff_00ff_00ff_00ff, 0x0001_0001_0001_0001);
    let add = |sum: usize, word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word);
        sum + (((word & pairs) + (word >> 8 & pairs)).wrapping_mul(ones) >> 48) as usize
    };
    let sum = words.iter().fold(0, add) + rest.iter().map(|byte| usize::from(*byte)).sum::<usize>();
    match outputs {
        2 | 4 | 8 => (sum ^ (sum >> 4)) & (outputs - 1),
        _ => sum.checked_rem(outputs).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn chooses() {
        for (bytes, outputs, expected) in [
            (&[0x12, 0x34][..], 4, 2),
            (&[0x12, 0x34], 3, 1),
            (&[255, 255], 8, 1),
            (&[255; 19], 100, 45),
            (&[7], 1, 0),
            (&[7], 0, 0),
        ] {
            assert_eq!(choose(bytes, outputs), expected, "{bytes:?} {outputs}");
        }
    }
}
