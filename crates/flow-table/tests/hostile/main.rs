//! Hostile frames: the function here must survive every input. The fuzz target `flow_key` calls it too; inputs that once
//! failed are named tests below.

#![allow(unreachable_pub, reason = "the fuzz target uses this module too")]

mod key;

use random::Random;

#[test]
fn keys_of_any_bytes_agree_with_the_header_views() {
    let starts: [&[u8]; 12] = [
        &[],
        &[8, 0, 0x45],
        &[8, 0, 0x46, 0, 0, 60, 0, 1, 0x20, 0, 64, 17],
        &[0x81, 0, 0, 1, 8, 0, 0x45, 0, 0, 60, 0, 1, 0, 0, 64, 6],
        &[0x88, 0xa8, 0, 1, 0x81, 0, 0x20, 2, 0x86, 0xdd, 0x60],
        &[8, 6, 0, 1, 8, 0, 6, 4],
        &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 60, 6],
        &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 60, 0],
        &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 60, 44],
        &[0x88, 0x47],
        &[0, 40, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45],
        &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 0x81, 0, 0, 4, 0x81, 0, 0, 5, 8, 0, 0x45],
    ];
    for seed in 1..=6_000 {
        let mut random = Random::new(seed);
        // Small bytes are more often lengths and protocols.
        let limit = [256, 64, 8][seed as usize % 3];
        let input: Vec<u8> = (0..seed % 150).map(|_| random.below(limit) as u8).collect();
        for start in starts {
            key::frame(&[&[2; 12], start, &input].concat());
        }
        key::frame(&input);
    }
}

/// A neighbour solicitation behind extension headers, cut at every length.
#[test]
fn a_frame_can_end_anywhere() {
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 64, 0, 255]);
    frame.extend([0xfd; 32]);
    frame.extend([43, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 58, 1, 0, 0, 0, 0, 0, 0]);
    frame.extend([0; 8]);
    frame.extend([135, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend([0xfe; 16]);
    frame.extend([1, 1, 2, 2, 2, 2, 2, 2]);
    for end in 0..=frame.len() {
        key::frame(&frame[..end]);
    }
}
