//! What a device may have to be used through XDP sockets.

/// Bytes of a buffer.
pub(super) const BUFFER: usize = 2048;

/// Bytes that the kernel keeps free before each received frame, for XDP programs.
const HEADROOM: usize = 256;

/// The greatest MTU whose frames fit into a buffer, with an Ethernet header and a VLAN tag.
pub(super) const MAX_MTU: u32 = (BUFFER - HEADROOM - 18) as u32;

/// Maximum number of receive queues of a port: each takes 4 MB of memory, or 8 if it also sends, and a descriptor of a message
/// between processes.
pub(super) const MAX_QUEUES: u32 = 16;
