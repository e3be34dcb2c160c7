//! Every bound of the engine, and why it is there.

/// Lines that a box may say in a second, and at once after a silence. Stops: a `Print` on a busy path that fills
/// the host's log.
pub const CONSOLE_LINES: u64 = 2_000;

/// Bytes of a line; the rest is cut. Stops: a packet printed as a line of its own length many times over.
pub const MAX_LINE: usize = 4_096;

/// Bytes that elements may write to files in a second, and at once after a silence. Stops: a `ToDump` on a busy path
/// that fills the host's disk.
pub const OUTPUT_BYTES: u64 = 32 << 20;

/// Bytes of events that wait for room in their channel, and no more than this share of the heap. Stops: a host that
/// does not listen, and a box whose heap fills with what it has to say.
pub(crate) const MAX_WAITING: usize = 1 << 20;
pub(crate) const WAITING_SHARE: usize = 16;

/// Bytes of a file's piece that are gathered before they are sent.
pub(crate) const PIECE: usize = 3_584;

/// Packets alive at a time where nothing tells how large the heap is.
pub(crate) const USUAL_PACKETS: usize = 1 << 16;

/// Fewest packets of a pool, however small the heap.
pub(crate) const LEAST_PACKETS: usize = 64;

/// Bytes that a packet takes in its pool, roughly.
pub(crate) const PACKET_BYTES: usize = 2_304;
