//! Frames of any bytes as the kernel could pass them by a device: what no frame may do to the code that reads them. The fuzz target
//! calls it too.

use crate::batch::MAX_FRAME;
use crate::device::{MAX_MESSAGE, OFFLOAD_HEADER, RxFrame, Segmenter, SlotBytes};
use crate::driver::complete_checksum;

/// The bytes of a frame: as a message of a TAP device, with an offload header and without; as the contents of a slot of a packet
/// socket, header and all; and as a frame that an XDP socket received. Every frame that comes of it fits, and everything ends.
#[cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "the fuzz target calls it"))]
pub fn device_frame(data: &[u8]) {
    for has_header in [false, true] {
        if let Some(frame) = RxFrame::from_tap(data, has_header) {
            let mut message = vec![0; OFFLOAD_HEADER];
            message.extend_from_slice(
                data.get(if has_header { OFFLOAD_HEADER } else { 0 }..).unwrap_or_default(),
            );
            pass(frame, &mut message);
        }
    }
    for snap in [MAX_FRAME, 60, 0] {
        let slot = SlotBytes::new(data);
        let mut buffer = vec![0; MAX_MESSAGE];
        let frame = slot.frame(snap);
        assert!(frame.length() <= snap + 4, "a frame and its tag");
        if frame.is_gso() {
            let frame = frame.moved(&mut buffer).large();
            cut(|segmenter| segmenter.load_message(&mut buffer, frame, MAX_FRAME));
        }
        pass(frame, &mut Vec::new());
    }
    let mut frame = data.to_vec();
    complete_checksum(&mut frame);
    let changed = frame.iter().zip(data).filter(|(after, before)| after != before).count();
    assert!(frame.len() == data.len() && changed <= 2, "only a checksum changes");
    let completed = frame.clone();
    complete_checksum(&mut frame);
    assert_eq!(frame, completed);
}

/// Brings a frame into batches, as the drivers do. `message`: where it lies behind an offload header, if it does.
fn pass(frame: RxFrame<'_>, message: &mut Vec<u8>) {
    if frame.is_gso() {
        cut(|segmenter| segmenter.load(&frame, MAX_FRAME));
        if !message.is_empty() {
            cut(|segmenter| segmenter.load_message(message, frame.large(), MAX_FRAME));
        }
    }
    let mut space = [0; MAX_FRAME];
    assert_eq!(frame.copy_to(&mut space), frame.length() <= MAX_FRAME);
}

/// Cuts the frame that `load` gives to a segmenter.
fn cut(load: impl FnOnce(&mut Segmenter) -> bool) {
    let mut segmenter = Segmenter::default();
    if !load(&mut segmenter) {
        assert!(segmenter.take(&mut [0; MAX_FRAME]).is_none(), "what was refused brings no frame");
        return;
    }
    let (expected, mut count) = (segmenter.left(), 0);
    while let Some(length) = segmenter.take(&mut [0; MAX_FRAME]) {
        assert!((14..=MAX_FRAME).contains(&length));
        count += 1;
    }
    assert!(segmenter.is_empty() && count == expected);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{TUNNELS, in_tunnel};
    use random::Random;

    /// Random bytes; and large frames, alone and in tunnels, with random offload headers and random changes.
    #[test]
    fn frames_of_any_bytes_are_cut_or_refused() {
        let mut random = Random::new(1);
        let mut large = vec![2; 12];
        large.extend([8, 0, 0x45, 0, 7, 0xe0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        large.extend([0, 7, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        large.resize(2030, 7);
        let in_tunnels = TUNNELS.into_iter().map(|tunnel| in_tunnel(tunnel, true, &large));
        for (frame, network) in in_tunnels.chain([(large.clone(), 14)]) {
            let transport = (network + 20) as u8;
            let message = [&[1, 1, transport + 20, 0, 0, 1, transport, 0, 16, 0], &frame[..]].concat();
            device_frame(&message);
            for length in 0..200 {
                let bytes: Vec<u8> = (0..length % 300).map(|_| random.below(256) as u8).collect();
                device_frame(&bytes);
                let mut changed = message.clone();
                for _ in 0..random.below(4) {
                    let at = random.below(u32::from(transport) + 40) as usize;
                    changed[at] = random.below(256) as u8;
                }
                changed.truncate(message.len() - random.below(3) as usize * 900);
                device_frame(&changed);
            }
        }
    }
}
