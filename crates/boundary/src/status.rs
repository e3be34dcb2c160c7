//! The status page: a few words that either side looks at without asking.

use crate::memory::SharedMemory;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const STATE: usize = 0;
const QUANTUM: usize = 64;
const STOP: usize = 128;
const WAKE: usize = 192;
const GENERATION: usize = 256;
const RESTING: usize = 320;
const ALARM: usize = 384;
const CLONE_SAFE: usize = 448;
const UNCONTENDED: usize = 512;
const POLLS: usize = 576;
const HELD: usize = 640;

/// How far a box has come. It says so itself: a hint for the host, nothing to rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BoxState {
    /// It has not run yet.
    Created = 0,
    /// It has read its boot info and serves its mailbox.
    Ready = 1,
    /// It has obeyed the wish to stop.
    Stopped = 2,
}

/// The status page, at the start of its memory.
#[derive(Clone, Copy, Debug)]
pub struct StatusPage<M>(pub M);

impl<M: SharedMemory> StatusPage<M> {
    /// How far the box says it has come; nothing when it says nonsense.
    pub fn state(&self) -> Option<BoxState> {
        match self.0.load_u32(STATE, Acquire) {
            0 => Some(BoxState::Created),
            1 => Some(BoxState::Ready),
            2 => Some(BoxState::Stopped),
            _ => None,
        }
    }

    /// Says how far the box has come.
    pub fn set_state(&self, state: BoxState) {
        self.0.store_u32(STATE, state as u32, Release);
    }

    /// Packets after which the box is to give its turn back; 0: never.
    pub fn quantum(&self) -> u32 {
        self.0.load_u32(QUANTUM, Relaxed)
    }

    /// Sets the quantum, in packets.
    pub fn set_quantum(&self, packets: u32) {
        self.0.store_u32(QUANTUM, packets, Relaxed);
    }

    /// The value of the time stamp counter until which a box may keep its turn after its quantum, because no other box
    /// waits. The host withdraws this when one does.
    pub fn uncontended_until(&self) -> u64 {
        self.0.load_u64(UNCONTENDED, Relaxed)
    }

    /// Sets until when the box may keep its turn; 0: for its quantum only.
    pub fn set_uncontended_until(&self, tsc: u64) {
        self.0.store_u64(UNCONTENDED, tsc, Relaxed);
    }

    /// Whether the box is to look for work without ever resting: it has a processor for itself.
    pub fn is_polling(&self) -> bool {
        self.0.load_u32(POLLS, Relaxed) != 0
    }

    /// Sets whether the box never rests.
    pub fn set_polling(&self, polls: bool) {
        self.0.store_u32(POLLS, u32::from(polls), Relaxed);
    }

    /// Packets that the box says it has: taken out of its rings or made, and neither sent nor dropped. As of the last time
    /// that it took or sent some, or ended a round. A box may say anything.
    pub fn packets_held(&self) -> u64 {
        self.0.load_u64(HELD, Relaxed)
    }

    /// Says how many packets the box has.
    pub fn set_packets_held(&self, packets: u64) {
        self.0.store_u64(HELD, packets, Relaxed);
    }

    /// Whether the host wishes the box to stop.
    pub fn stop_requested(&self) -> bool {
        self.0.load_u32(STOP, Acquire) != 0
    }

    /// Wishes the box to stop, or takes that back.
    pub fn set_stop(&self, stop: bool) {
        self.0.store_u32(STOP, u32::from(stop), Release);
    }

    /// How many times the box was restored from a snapshot. When it changes, the boot page has changed with it: new seeds,
    /// clock and port addresses.
    pub fn generation(&self) -> u32 {
        self.0.load_u32(GENERATION, Acquire)
    }

    /// Sets the generation.
    pub fn set_generation(&self, generation: u32) {
        self.0.store_u32(GENERATION, generation, Release);
    }

    /// Whether a box in a process says that it rests where a copy of it can go on.
    pub fn is_resting(&self) -> bool {
        self.0.load_u32(RESTING, Acquire) != 0
    }

    /// Whether the box says, as it rests, that a copy of it is as good as a box that is installed anew: it has made nothing of
    /// its ports' addresses, which copies have of their own, has no seed of its own choice, and waits for no moment. `None`
    /// while it does not rest.
    pub fn is_clone_safe(&self) -> Option<bool> {
        match self.0.load_u32(CLONE_SAFE, Acquire) {
            0 => None,
            word => Some(word == 1),
        }
    }

    /// Says whether a copy is as good as a box that is installed anew, before a rest, and nothing after it.
    pub fn set_clone_safe(&self, clone_safe: Option<bool>) {
        let word = match clone_safe {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        };
        self.0.store_u32(CLONE_SAFE, word, Release);
    }

    /// Where in the page a box in a process says that it rests.
    pub const fn resting_offset() -> usize {
        RESTING
    }

    /// Where in the page the doorbell word of a box in a process lies: the box sleeps in a futex on it.
    pub const fn doorbell_offset() -> usize {
        WAKE
    }

    /// The doorbell's count.
    pub fn doorbell(&self) -> u32 {
        self.0.load_u32(WAKE, Acquire)
    }

    /// When the box that sleeps wants to be woken though nothing comes: the value of the time stamp counter,
    /// or 0 for never. A box may write anything here: it gets its turn, in its share of the time.
    pub fn alarm(&self) -> u64 {
        self.0.load_u64(ALARM, Acquire)
    }

    /// Sets when the box wants to be woken; 0: never.
    pub fn set_alarm(&self, tsc: u64) {
        self.0.store_u64(ALARM, tsc, Release);
    }

    /// Counts a ring of the doorbell. The caller then wakes the box that sleeps on it.
    pub fn ring(&self) {
        self.0.store_u32(WAKE, self.doorbell().wrapping_add(1), Release);
        self.0.fence();
    }
}
