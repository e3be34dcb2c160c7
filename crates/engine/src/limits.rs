//! Limits of the engine, each with its reason.

use packet::Timestamp;

/// Lines that a box may log per second, and in one burst. Stops a `Print` on a busy path from filling the host's log.
pub const CONSOLE_LINES: u64 = 2_000;

/// Bytes of a line; the rest is cut. Stops packets from being printed as lines of many times their length.
pub const MAX_LINE: usize = 4_096;

/// Bytes that elements may write to files per second, and in one burst. Stops a `ToDump` on a busy path from filling
/// the host's disk.
pub const OUTPUT_BYTES: u64 = 32 << 20;

/// The shortest time between two reports of own writes. Stops an element that writes a handler for each packet from filling
/// the event channel.
pub(crate) const OWN_WRITES_INTERVAL: Timestamp = Timestamp::from_millis(100);

/// Bytes of events that wait for room in their channel, and the maximum share of the heap that they may use. Stops a
/// host that reads no events from router_number a box fill its heap.
pub(crate) const MAX_EVENT_BACKLOG: usize = 1 << 20;
pub(crate) const EVENT_BACKLOG_HEAP_SHARE: usize = 16;

/// Bytes that the lookup structures of a rule set may take, and their maximum share of the heap. Compiling them takes as
/// much again. Stops one rule set from filling the heap that the others and the packets need.
pub(crate) const MAX_RULE_MEMORY: usize = 4 << 20;
pub(crate) const RULE_MEMORY_HEAP_SHARE: usize = 8;

/// Bytes that are written to a file in one event.
pub(crate) const MAX_OUTPUT_CHUNK: usize = 3_584;

/// Maximum packets of a pool if the size of the heap is unknown.
pub(crate) const DEFAULT_POOL_PACKETS: usize = 1 << 16;

/// Minimum packets of a pool, however small the heap.
pub(crate) const MIN_POOL_PACKETS: usize = 64;

/// Approximate bytes per packet in a pool.
pub(crate) const POOL_BYTES_PER_PACKET: usize = 2_304;
