//! `MixedQueue`: a queue that is FIFO for one input and LIFO for the other.

use alloc::collections::VecDeque;

use element::prelude::*;

use super::fifo::{Fifo, QueuePolicy};

/// Bounded queue that is FIFO for input 0 and LIFO for input 1: packets of input 1 are stored in front.
///
/// When the queue is full, a packet from input 0 is dropped; a packet from input 1 replaces the last packet. Dropped
/// packets go to output 1 if it exists. The queue notifies downstream tasks when it becomes empty and when it no longer
/// is.
/// ```click
/// InfiniteSource(LIMIT 3, BURST 3) -> [0]q :: MixedQueue(2);
/// Idle -> [1]q;
/// q -> Unqueue -> c :: Counter(COUNT_CALL 2 stop) -> Discard;
/// ```
/// ```expect
/// q.drops = 1
/// q.losses = overflow 1
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "MixedQueue",
    group = "storing",
    ports = "2/1-2",
    processing = "h/lh",
    storage,
    notifies = "empty",
    shards = "divide",
    sums = "length, highwater_length, capacity, drops",
    logs,
    see = "Queue, FrontDropQueue",
    drops = "overflow, reset",
    fates = "waiting"
)]
pub struct MixedQueueArgs {
    /// Maximum number of packets.
    #[arg(position, default = "1000")]
    capacity: u32,
}

/// Queue policy of MixedQueue.
pub struct Mixed;

impl QueuePolicy for Mixed {
    type Args = MixedQueueArgs;

    fn capacity(args: MixedQueueArgs) -> usize {
        args.capacity as usize
    }

    fn is_stacked(port: usize) -> bool {
        port != 0
    }

    fn store(packets: &mut VecDeque<Packet>, capacity: usize, port: usize, packet: Packet) -> Option<Packet> {
        let full = packets.len() >= capacity;
        if port == 0 {
            if full {
                return Some(packet);
            }
            packets.push_back(packet);
            return None;
        }
        let victim = if full { packets.pop_back() } else { None };
        if full && victim.is_none() {
            return Some(packet);
        }
        packets.push_front(packet);
        victim
    }
}

pub type MixedQueue = Fifo<Mixed>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_input_overtakes_and_displaces_the_last() {
        let pool = packet::Pool::new(8);
        let mut packets = VecDeque::new();
        let mut store = |port, letter: u8| {
            let packet = pool.packet(&[letter]).expect("the pool has room");
            Mixed::store(&mut packets, 3, port, packet).map(|victim| victim.data()[0])
        };
        assert_eq!([store(0, b'a'), store(0, b'b'), store(1, b'c')], [None; 3]);
        assert_eq!((store(0, b'd'), store(1, b'e')), (Some(b'd'), Some(b'b')));
        let left: Vec<u8> = packets.iter().map(|packet| packet.data()[0]).collect();
        assert_eq!(left, b"eca");
    }
}
