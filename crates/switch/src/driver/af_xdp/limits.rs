//! What a device may have to be used through XDP sockets.

/// Bytes of a buffer.
pub(super) const BUFFER: usize = 2048;

/// Bytes that the kernel keeps free before each received frame, for XDP programs.
const HEADROOM: usize = 256;

/// Bytes of an Ethernet header, and of a VLAN tag.
const HEADER: usize = 14;
const TAG: usize = 4;

/// Each device takes frames of this length: no MTU is below 68.
const SHORT: usize = 68 + HEADER;

/// The greatest MTU whose frames fit into a buffer, with an Ethernet header and a VLAN tag.
pub(super) const MAX_MTU: u32 = (BUFFER - HEADROOM - HEADER - TAG) as u32;

/// The longest frame without a tag of a device with this MTU.
pub(super) const MAX_UNTAGGED: usize = MAX_MTU as usize + HEADER;

/// Maximum number of receive queues of a port: each takes 4 MB of memory, or 8 if it also sends, and a descriptor of a message
/// between processes.
pub(super) const MAX_QUEUES: u32 = 16;

/// Whether each device takes a frame of this length.
pub(super) fn is_short(frame: &[u8]) -> bool {
    frame.len() <= SHORT
}

/// Whether a device with this MTU takes a frame, and a buffer has room for it.
#[inline]
pub(super) fn fits(frame: &[u8], mtu: usize) -> bool {
    let is_tagged = matches!(frame.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
    is_short(frame) || frame.len() <= BUFFER.min(mtu + HEADER + if is_tagged { TAG } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_longer_than_the_mtu_do_not_fit() {
        let untagged = |length| fits(&vec![0; length], 1500);
        assert!(untagged(1514) && !untagged(1515));
        let mut tagged = vec![0; 1518];
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        assert!(fits(&tagged, 1500) && !fits(&tagged, 1499));
        assert!(fits(&[0; BUFFER], 9000) && !fits(&[0; BUFFER + 1], 9000));
        assert!(fits(&[0; SHORT], 0) && !fits(&[0; SHORT + 1], 0), "the device is gone");
    }
}
