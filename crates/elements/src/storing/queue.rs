//! `Queue`: stores packets, and tells both sides whether it is worth trying.

use element::prelude::*;

use super::fifo::{Fifo, Kind};

/// Stores up to CAPACITY packets, first in, first out; more are dropped, or sent to output 1.
///
/// It tells those who pull when it becomes empty, some vain pulls later, and when it no longer is; and those who push
/// when it becomes full and when it no longer is. The first packet dropped is reported in the log.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: Queue(4) -> u :: Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.capacity = 4
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
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
    see = "SimpleQueue, NotifierQueue, QuickNoteQueue, MixedQueue, FrontDropQueue, Unqueue",
    drops = "overflow, reset"
)]
pub struct QueueArgs {
    /// The most packets that it stores.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// The kind.
pub struct Standard;

impl Kind for Standard {
    type Args = QueueArgs;

    fn capacity(args: QueueArgs) -> usize {
        args.capacity as usize
    }
}

/// The element.
pub type Queue = Fifo<Standard>;
