//! Limits of the engine, each with its reason.

/// Lines that a box may log per second, and in one burst. Stops a `Print` on a busy path from filling the host's log.
pub const CONSOLE_LINES: u64 = 2_000;

/// Bytes of a line; the rest is cut. Stops packets from being printed as lines of many times their length.
pub const MAX_LINE: usize = 4_096;

/// Bytes that elements may write to files per second, and in one burst. Stops a `ToDump` on a busy path from filling
/// the host's disk.
pub const OUTPUT_BYTES: u64 = 32 << 20;

/// Bytes of events that wait for room in their channel, and the maximum share of the heap that they may use. Stops a
/// host that reads no events from making a box fill its heap.
pub(crate) const MAX_WAITING: usize = 1 << 20;
pub(crate) const WAITING_SHARE: usize = 16;

/// Bytes of a file's piece that are collected before they are sent.
pub(crate) const PIECE: usize = 3_584;

/// Maximum packets of a pool if the size of the heap is unknown.
pub(crate) const USUAL_PACKETS: usize = 1 << 16;

/// Minimum packets of a pool, however small the heap.
pub(crate) const LEAST_PACKETS: usize = 64;

/// Approximate bytes per packet in a pool.
pub(crate) const PACKET_BYTES: usize = 2_304;
