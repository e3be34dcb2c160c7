//! `NotifierQueue`: a queue that notifies downstream tasks.

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue that notifies downstream tasks, but not upstream ones.
///
/// It drops packets that arrive when it is full, or sends them to output 1. It announces that it is empty after several
/// unsuccessful pulls, and at once when it has packets again.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: NotifierQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "NotifierQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "empty",
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "Queue, SimpleQueue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct NotifierQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of NotifierQueue.
pub struct Notifier;

impl QueuePolicy for Notifier {
    type Args = NotifierQueueArgs;

    fn capacity(args: NotifierQueueArgs) -> usize {
        args.capacity as usize
    }
}

pub type NotifierQueue = Fifo<Notifier>;
