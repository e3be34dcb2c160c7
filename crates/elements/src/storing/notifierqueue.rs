//! `NotifierQueue`: stores packets and tells those who pull when it is empty.

use element::prelude::*;

use super::fifo::{Fifo, Kind};

/// Stores up to CAPACITY packets, first in, first out; more are dropped, or sent to output 1.
///
/// It tells those who pull when it becomes empty, some vain pulls later, and when it no longer is.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: NotifierQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// ```
#[derive(Args)]
#[element(
    name = "NotifierQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "empty",
    see = "Queue, SimpleQueue",
    drops = "overflow, reset"
)]
pub struct NotifierQueueArgs {
    /// The most packets that it stores.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// The kind.
pub struct Notifier;

impl Kind for Notifier {
    type Args = NotifierQueueArgs;

    fn capacity(args: NotifierQueueArgs) -> usize {
        args.capacity as usize
    }
}

/// The element.
pub type NotifierQueue = Fifo<Notifier>;
