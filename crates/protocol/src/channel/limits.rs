//! Limits of a channel.

/// Maximum number of descriptors of a message. A peer could otherwise use up the receiver's descriptors. An interface with XDP
/// sockets has the most: 16 queues, and three more.
pub const MAX_DESCRIPTORS: usize = 19;

/// Maximum number of bytes of a message on the socket, without its form. Longer messages use a memory file, because a
/// socket's buffer is limited.
pub(super) const MAX_INLINE: usize = 128 * 1024;
