//! `SimpleQueue`: a bounded FIFO queue without notification.

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue without notification: downstream tasks keep polling while it is empty.
///
/// It drops packets that arrive when it is full, or sends them to output 1.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: SimpleQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "SimpleQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "Queue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct SimpleQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of SimpleQueue.
pub struct Simple;

impl QueuePolicy for Simple {
    type Args = SimpleQueueArgs;

    fn capacity(args: SimpleQueueArgs) -> usize {
        args.capacity as usize
    }
}

pub type SimpleQueue = Fifo<Simple>;
