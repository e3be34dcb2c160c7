//! `SimpleQueue`: stores packets and tells nobody.

use element::prelude::*;

use super::fifo::{Fifo, Kind};

/// Stores up to CAPACITY packets, first in, first out; more are dropped, or sent to output 1.
///
/// It gives no signals: those who pull from it never sleep.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: SimpleQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// ```
#[derive(Args)]
#[element(
    name = "SimpleQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    see = "Queue",
    drops = "overflow, reset"
)]
pub struct SimpleQueueArgs {
    /// The most packets that it stores.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// The kind.
pub struct Simple;

impl Kind for Simple {
    type Args = SimpleQueueArgs;

    fn capacity(args: SimpleQueueArgs) -> usize {
        args.capacity as usize
    }
}

/// The element.
pub type SimpleQueue = Fifo<Simple>;
