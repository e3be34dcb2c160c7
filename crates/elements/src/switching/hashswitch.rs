//! `HashSwitch`: chooses the output by some bytes.

use element::prelude::*;

/// Chooses the output of a packet by the LENGTH bytes from OFFSET on, so that equal bytes go the same way.
///
/// The bytes are added up. With 2, 4 or 8 outputs, the sum's lowest bits choose, after those four places higher have
/// been added without carry; otherwise the rest of the division by the number of outputs. Shorter packets go to
/// output 0.
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
/// ```
#[derive(Args)]
#[element(
    name = "HashSwitch",
    group = "switching",
    ports = "1/1-",
    processing = "h/h",
    commutes,
    see = "Switch, RoundRobinSwitch, StrideSwitch, RandomSwitch"
)]
pub struct HashSwitchArgs {
    /// The first byte.
    #[arg(position)]
    offset: u32,
    /// How many bytes, at least 1.
    #[arg(position)]
    length: u32,
}

/// The element.
pub struct HashSwitch {
    offset: usize,
    length: usize,
}

impl Filter for HashSwitch {
    type Args = HashSwitchArgs;

    fn new(args: HashSwitchArgs, _: &mut Setup) -> Result<HashSwitch, SetupError> {
        if args.length == 0 {
            return Err(SetupError::new("length must be > 0"));
        }
        Ok(HashSwitch { offset: args.offset as usize, length: args.length as usize })
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let bytes = packet.data().get(self.offset..).and_then(|rest| rest.get(..self.length));
        let output = bytes.map_or(0, |bytes| choose(bytes, cx.outputs()));
        Verdict::To(output, packet)
    }
}

/// The output of `outputs` for some bytes.
#[inline]
fn choose(bytes: &[u8], outputs: usize) -> usize {
    let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
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
            (&[7], 1, 0),
            (&[7], 0, 0),
        ] {
            assert_eq!(choose(bytes, outputs), expected, "{bytes:?} {outputs}");
        }
    }
}
