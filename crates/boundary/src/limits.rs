//! Every bound on what one side accepts from the other, and why it is there.

/// Ports of one box (DESIGN: "up to 16 ports").
pub const MAX_PORTS: usize = 16;

/// Fewest slots of a ring: below it, publication is no longer worth batching.
pub const MIN_SLOTS: u32 = 64;

/// Most slots of a ring, as in ClickOS' Table 3.
pub const MAX_SLOTS: u32 = 2048;

/// Bytes of one packet buffer. A frame of 1,518 bytes with room for encapsulation fits; with two rings a
/// slot costs 4 KB.
pub const BUFFER_SIZE: usize = 2048;

/// Buffers that one pool can have: a descriptor names a buffer by 16 bits.
pub const MAX_BUFFERS: u32 = 1 << 16;

const _: () = assert!(2 * MAX_SLOTS * MAX_PORTS as u32 <= MAX_BUFFERS);

/// Bytes of a mailbox channel. Long messages travel in chunks, so this bounds memory, not values.
pub const CHANNEL_SIZE: u32 = 16 * 1024;

/// Most payload bytes of one frame: four fit into a channel, so that sender and receiver overlap.
pub const MAX_CHUNK: usize = 4 * 1024 - 16;

/// Longest request: a configuration of a million routes. Stops a caller from filling a box's memory with
/// one message.
pub const MAX_REQUEST: usize = 64 << 20;

/// Longest reply that a host assembles: a box that never ends its reply must not fill the host's memory.
pub const MAX_REPLY: usize = 16 << 20;

/// Longest event (a console line, a piece of a file).
pub const MAX_EVENT: usize = 64 << 10;

/// Regions in a boot info's memory map.
pub const MAX_REGIONS: usize = 16;

/// Bytes of the name of configuration and element in a crash report; longer ones are cut.
pub const MAX_CRASH_NAME: usize = 120;

/// Bytes of the message in a crash report; longer ones are cut.
pub const MAX_CRASH_MESSAGE: usize = 512;

/// Bytes of the packet in hand that a crash report shows.
pub const MAX_CRASH_PACKET: usize = 256;

/// Packets of the batch in hand that a crash report shows: what a page has room for.
pub const MAX_CRASH_BATCH: usize = 56;

/// Bytes that it shows of each of them: addresses and ports.
pub const MAX_CRASH_START: usize = 40;

/// Names in one statistics reply: a hostile box must not make the host store a table of its choosing.
pub const MAX_DROP_REASONS: usize = 4096;

/// Bytes of such a name; longer ones are cut.
pub const MAX_DROP_REASON: usize = 64;

/// Findings in one reply: more than a reader reads, and a bound on what a box can make its host hold.
pub const MAX_DIAGNOSTICS: usize = 1000;
