//! Packets that the switch keeps while a controller decides about them.

use std::time::Duration;

use crate::ErrorCode;

/// Packets kept at once. With frames of 64 KB they take 16 MB.
pub(crate) const CAPACITY: usize = 256;

/// A packet that is kept.
pub(crate) struct Buffered {
    pub(crate) in_port: u32,
    pub(crate) frame: Vec<u8>,
    expires: Duration,
}

#[derive(Default)]
struct Slot {
    /// Number of packets that the slot had.
    generation: u32,
    packet: Option<Buffered>,
}

/// All packets that are kept. The lower eight bits of a number are the slot, the others its generation.
pub(crate) struct Buffers {
    slots: Vec<Slot>,
    next: usize,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { slots: (0..CAPACITY).map(|_| Slot::default()).collect(), next: 0 }
    }

    /// Keeps a packet until a time. Returns `None` if the place that is due holds a packet that has not expired.
    pub(crate) fn keep(&mut self, in_port: u32, frame: &[u8], now: Duration, age: Duration) -> Option<u32> {
        let at = self.next;
        let slot = self.slots.get_mut(at)?;
        if slot.packet.as_ref().is_some_and(|packet| packet.expires > now) {
            return None;
        }
        slot.generation = (slot.generation + 1) & 0x7f_ffff;
        slot.packet = Some(Buffered { in_port, frame: frame.to_vec(), expires: now.saturating_add(age) });
        self.next = (at + 1) % CAPACITY;
        Some(slot.generation << 8 | at as u32)
    }

    /// Takes a packet out.
    pub(crate) fn take(&mut self, number: u32, now: Duration) -> Result<Buffered, ErrorCode> {
        let slot =
            self.slots.get_mut(number as usize % CAPACITY).filter(|slot| slot.generation == number >> 8);
        let slot = slot.filter(|slot| slot.generation != 0).ok_or(ErrorCode::BRC_BUFFER_UNKNOWN)?;
        let packet = slot.packet.take().ok_or(ErrorCode::BRC_BUFFER_EMPTY)?;
        if packet.expires > now { Ok(packet) } else { Err(ErrorCode::BRC_BUFFER_UNKNOWN) }
    }

    /// Forgets packets that have expired.
    pub(crate) fn expire(&mut self, now: Duration) {
        for slot in &mut self.slots {
            if slot.packet.as_ref().is_some_and(|packet| packet.expires <= now) {
                slot.packet = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_secs(5);

    #[test]
    fn a_packet_is_taken_once_and_expires() {
        let mut buffers = Buffers::new();
        let start = Duration::from_secs(1);
        let first = buffers.keep(3, b"one", start, AGE).unwrap();
        let second = buffers.keep(4, b"two", start, AGE).unwrap();
        let packet = buffers.take(first, start).unwrap();
        assert_eq!((packet.in_port, packet.frame.as_slice()), (3, &b"one"[..]));
        assert_eq!(buffers.take(first, start).err(), Some(ErrorCode::BRC_BUFFER_EMPTY));
        assert_eq!(buffers.take(second, start + AGE).err(), Some(ErrorCode::BRC_BUFFER_UNKNOWN));
        for unknown in [0, 5, second + 256, u32::MAX - 1] {
            assert_eq!(buffers.take(unknown, start).err(), Some(ErrorCode::BRC_BUFFER_UNKNOWN), "{unknown}");
        }
    }

    #[test]
    fn the_number_of_packets_is_bounded() {
        let mut buffers = Buffers::new();
        let kept = (0..1000).filter_map(|_| buffers.keep(1, b"x", Duration::ZERO, AGE)).count();
        assert_eq!(kept, CAPACITY);
        buffers.expire(AGE);
        assert!(buffers.slots.iter().all(|slot| slot.packet.is_none()));
        assert!(buffers.keep(1, b"x", AGE, AGE).is_some());
    }
}
