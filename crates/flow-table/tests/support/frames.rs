//! Random frames from a small world.

use flow_table::Ingress;
use random::Random;

/// A random frame and its ingress.
pub(crate) fn frame(random: &mut Random) -> (Vec<u8>, Ingress) {
    let pick = |random: &mut Random, from: &[u8]| from[random.below(from.len() as u32) as usize];
    let ingress = Ingress { port: 1 + random.below(2), metadata: 0, tunnel: u64::from(random.below(4) / 3) };
    let mut frame = vec![2, 0, 0, 0, 0, pick(random, &[1, 2]), 2, 0, 0, 0, 0, pick(random, &[1, 2])];
    for _ in 0..random.below(8).saturating_sub(5) {
        frame.extend([0x81, 0, pick(random, &[0, 0x20]), pick(random, &[1, 2])]);
    }
    let protocol = pick(random, &[6, 17, 1]);
    let transport =
        |random: &mut Random| [0, pick(random, &[1, 2, 3]), 0, pick(random, &[1, 2, 3]), 0, 0, 0, 0];
    match random.below(9) {
        0..=3 => {
            frame.extend([8, 0, 0x45, pick(random, &[0, 4]), 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([10, 0, 0, pick(random, &[1, 2, 3]), 10, 0, 1, pick(random, &[1, 2, 3])]);
            frame.extend(transport(random));
        }
        4..=5 => {
            let protocol = if protocol == 1 { 58 } else { protocol };
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, protocol, 64]);
            for _ in 0..2 {
                frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, pick(random, &[1, 2, 3])]);
            }
            frame.extend(transport(random));
        }
        6 => {
            frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, pick(random, &[1, 2]), 2, 0, 0, 0, 0, 1]);
            frame.extend([
                10,
                0,
                0,
                pick(random, &[1, 2]),
                0,
                0,
                0,
                0,
                0,
                0,
                10,
                0,
                0,
                pick(random, &[1, 2]),
            ]);
        }
        7 => {
            frame.extend([0x88, 0xe7, 0x20, 0, 0, pick(random, &[1, 2])]);
            frame.extend([2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4, 8, 0]);
            frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            frame.extend(transport(random));
        }
        _ => {
            frame.extend([0x88, 0x47, 0, 0, pick(random, &[0x11, 0x21]), 64]);
            frame.extend([0; 20]);
        }
    }
    (frame, ingress)
}
