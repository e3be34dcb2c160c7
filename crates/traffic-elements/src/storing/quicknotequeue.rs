//! `QuickNoteQueue`: a queue that announces at once that it is empty.

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue that announces at once, with its last packet, that it is empty.
///
/// It drops packets that arrive when it is full, or sends them to output 1. Otherwise it works like `Queue`.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: QuickNoteQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "QuickNoteQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "both",
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "Queue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct QuickNoteQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of QuickNoteQueue.
pub struct QuickNote;

impl QueuePolicy for QuickNote {
    type Args = QuickNoteQueueArgs;
    const NOTIFIES_QUICKLY: bool = true;

    fn capacity(args: QuickNoteQueueArgs) -> usize {
        args.capacity as usize
    }
}

pub type QuickNoteQueue = Fifo<QuickNote>;
