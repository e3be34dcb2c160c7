//! `FrontDropQueue`: a queue that drops the oldest packet when it is full.

use alloc::collections::VecDeque;

use element::prelude::*;

use super::fifo::{Fifo, Kind};

/// Stores up to CAPACITY packets, first in, first out; when it is full, the oldest one makes room for a new one.
///
/// What is dropped goes to output 1 if that exists. It tells those who pull when it is empty.
/// ```click
/// InfiniteSource(LIMIT 10, BURST 10) -> q :: FrontDropQueue(4) -> Unqueue -> c :: Counter(COUNT_CALL 4 stop) -> Discard;
/// ```
/// ```expect
/// q.highwater_length = 4
/// q.drops = 6
/// q.losses = overflow 6
/// ```
#[derive(Args)]
#[element(
    name = "FrontDropQueue",
    group = "storing",
    ports = "1/1-2",
    processing = "h/lh",
    storage,
    notifies = "empty",
    see = "Queue, MixedQueue",
    drops = "overflow, reset"
)]
pub struct FrontDropQueueArgs {
    /// The most packets that it stores.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// The kind.
pub struct FrontDrop;

impl Kind for FrontDrop {
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

/// The element.
pub type FrontDropQueue = Fifo<FrontDrop>;
