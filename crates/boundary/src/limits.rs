//! Limits on what one side accepts from the other, each with its reason.

/// Ports of one box.
pub const MAX_PORTS: usize = 16;

/// Ring pairs of one port: one for each thread that switches (docs/architecture/steering.md, "Switch threads").
pub const MAX_PAIRS: usize = 8;

/// Ring pairs of all ports of a box: as many as a boot page describes.
pub const MAX_BOX_PAIRS: usize = 64;

/// Boxes that run one configuration together. A host sends each packet that all of them need once for each, so more would
/// multiply the work that one packet causes.
pub const MAX_CORES: usize = 16;

/// Ranges of translators in one reply: each is compared with every packet to the box.
pub const MAX_SPREAD_RANGES: usize = 64;

/// Minimum slots of a ring: with fewer, batching the publication is not worthwhile.
pub const MIN_SLOTS: u32 = 64;

/// Maximum slots of a ring, as in Table 3 of the ClickOS paper.
pub const MAX_SLOTS: u32 = 2048;

/// Size of a packet buffer in bytes. A frame of 1,518 bytes fits, with room for encapsulation. With two rings a slot
/// costs 4 KB.
pub const BUFFER_SIZE: usize = 2048;

/// Maximum buffers of a pool: 128 boxes with 512 slots in each of two rings. A box cannot make its host reserve more
/// memory than that. A descriptor could name eight times as many.
pub const MAX_BUFFERS: u32 = 1 << 17;

const _: () = assert!(2 * MAX_SLOTS * MAX_PORTS as u32 <= MAX_BUFFERS);

/// Size of a mailbox channel in bytes. Long messages are sent in frames, so this limits memory, not message length.
pub const CHANNEL_SIZE: u32 = 16 * 1024;

/// Maximum payload bytes of a frame: four frames fit into a channel, so that sender and receiver overlap.
pub const MAX_CHUNK: usize = 4 * 1024 - 16;

/// Maximum bytes of a request: a configuration with a million routes. Stops a caller from filling a box's memory with
/// one message.
pub const MAX_REQUEST: usize = 64 << 20;

/// Maximum bytes of a reply. Stops a box from filling the host's memory with a reply that never ends.
pub const MAX_REPLY: usize = 16 << 20;

/// Bytes of the reason that a box gives for an error; longer ones are cut. Stops a box from making its host keep and
/// print as much text as a reply can have.
pub const MAX_BOX_MESSAGE: usize = 64 << 10;

/// Maximum bytes of an event (a log line, a piece of a file).
pub const MAX_EVENT: usize = 64 << 10;

/// Regions in a boot info's memory map.
pub const MAX_REGIONS: usize = 16;

/// Bytes of the name of configuration and element in a crash report; longer names are cut.
pub const MAX_CRASH_NAME: usize = 120;

/// Bytes of the message in a crash report; longer messages are cut.
pub const MAX_CRASH_MESSAGE: usize = 512;

/// Bytes of the first packet of the current batch in a crash report.
pub const MAX_CRASH_PACKET: usize = 256;

/// Packets of the current batch in a crash report: as many as fit into the page.
pub const MAX_CRASH_BATCH: usize = 56;

/// Bytes of each of these packets: enough for addresses and ports.
pub const MAX_CRASH_START: usize = 40;

/// Drop reasons in one statistics reply: a hostile box must not make the host store an arbitrary table.
pub const MAX_DROP_REASONS: usize = 4096;

/// Bytes of a drop reason; longer ones are cut.
pub const MAX_DROP_REASON: usize = 64;

/// Elements with lost packets, connections with discarded packets, and elements with waiting packets, in one statistics reply: more than anyone reads,
/// and a limit on what a box can make its host store.
pub const MAX_ACCOUNT_PLACES: usize = 256;

/// Bytes of the name of such a place; longer ones are cut.
pub const MAX_PLACE: usize = 160;

/// Writes that wait for the next installation of a configuration, and refused ones in one reply: as many as a host records
/// for a box, and a limit on what a box can make its host store.
pub const MAX_PREPARED_WRITES: usize = 4096;

/// Diagnostics in one reply: more than anyone reads, and a limit on what a box can make its host store.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// Bytes of the state of one flow in one element.
pub const MAX_FLOW_STATE: usize = 4096;

/// Groups of flows in one message: bounds how long a box lists or exports them, without a look at its packets.
pub const MAX_FLOW_GROUPS: usize = 512;

/// Tuples of one group: a flow has two in each element that translates it.
pub const MAX_GROUP_TUPLES: usize = 64;

/// States of flows in one message.
pub const MAX_FLOW_STATES: usize = 4096;

/// Bytes of states after which a box begins another reply. One reply has one more state at most.
pub const FLOW_EXPORT_BYTES: usize = 64 << 10;

/// Elements in one list of those that cannot hand over their states.
pub const MAX_STATEFUL_ELEMENTS: usize = 64;
