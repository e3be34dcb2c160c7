//! `FrontDropQueue`: a queue that drops the oldest packet when it is full.

use alloc::collections::VecDeque;

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded FIFO queue that drops its oldest packet when a new one arrives at a full queue.
///
/// Dropped packets go to output 1 if it exists. The queue notifies downstream tasks when it becomes empty and when it
/// no longer is.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: FrontDropQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// c.count = 4
/// ```
#[derive(Args)]
#[element(
    name = "FrontDropQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "empty",
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "Queue, MixedQueue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct FrontDropQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of FrontDropQueue.
pub struct FrontDrop;

impl QueuePolicy for FrontDrop {
    type Args = FrontDropQueueArgs;
    const KEEPS_NEWEST: bool = true;

    fn capacity(args: FrontDropQueueArgs) -> usize {
        args.capacity as usize
    }

    fn store(packets: &mut VecDeque<Packet>, capacity: usize, _: usize, packet: Packet) -> Option<Packet> {
        let victim = if packets.len() >= capacity { packets.pop_front() } else { None };
        if packets.len() >= capacity {
            return Some(packet);
        }
        packets.push_back(packet);
        victim
    }
}

pub type FrontDropQueue = Fifo<FrontDrop>;
