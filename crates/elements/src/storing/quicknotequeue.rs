//! `QuickNoteQueue`: a queue that says at once when it is empty.

use element::prelude::*;

use super::fifo::{Fifo, Kind};

/// Stores up to CAPACITY packets, first in, first out; more are dropped, or sent to output 1.
///
/// As `Queue`, but it tells those who pull with the last packet that it is empty.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: QuickNoteQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// ```
#[derive(Args)]
#[element(
    name = "QuickNoteQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "both",
    see = "Queue",
    drops = "overflow, reset"
)]
pub struct QuickNoteQueueArgs {
    /// The most packets that it stores.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// The kind.
pub struct QuickNote;

impl Kind for QuickNote {
    type Args = QuickNoteQueueArgs;
    const QUICK: bool = true;

    fn capacity(args: QuickNoteQueueArgs) -> usize {
        args.capacity as usize
    }
}

/// The element.
pub type QuickNoteQueue = Fifo<QuickNote>;
