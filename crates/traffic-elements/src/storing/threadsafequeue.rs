//! `ThreadSafeQueue`: the same as `Queue`.

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue, the same as `Queue`.
///
/// Click provides it for several threads that push or pull at once. Here one thread runs all elements of a
/// configuration.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: ThreadSafeQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "ThreadSafeQueue",
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
pub struct ThreadSafeQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of ThreadSafeQueue.
pub struct ThreadSafe;

impl QueuePolicy for ThreadSafe {
    type Args = ThreadSafeQueueArgs;

    fn capacity(args: ThreadSafeQueueArgs) -> usize {
        args.capacity as usize
    }
}

pub type ThreadSafeQueue = Fifo<ThreadSafe>;
