//! `Queue`: a queue that notifies downstream and upstream tasks.

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue: stores pushed packets until they are pulled.
///
/// It drops packets that arrive when it is full, or sends them to output 1. The first drop is logged. It notifies
/// downstream tasks when it becomes empty (after several unsuccessful pulls) and when it no longer is, and upstream
/// tasks when it becomes full and when it no longer is.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: Queue(4) -> u :: Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.capacity = 4
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "Queue",
    aliases = "FullNoteQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "both",
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "SimpleQueue, NotifierQueue, QuickNoteQueue, MixedQueue, FrontDropQueue, Unqueue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct QueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of Queue.
pub struct Standard;

impl QueuePolicy for Standard {
    type Args = QueueArgs;

    fn capacity(args: QueueArgs) -> usize {
        args.capacity as usize
    }
}

pub type Queue = Fifo<Standard>;
