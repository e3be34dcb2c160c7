//! The status page: a few words that either side reads without a request.

use crate::mailbox::PacketFates;
use crate::memory::SharedMemory;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const STATE: usize = 0;
const QUANTUM: usize = 64;
const STOP: usize = 128;
const WAKE: usize = 192;
const GENERATION: usize = 256;
const IDLE: usize = 320;
const ALARM: usize = 384;
const CLONE_SAFE: usize = 448;
const UNCONTENDED: usize = 512;
const POLLS: usize = 576;
const HELD: usize = 640;
const IDLE_WATCHED: usize = 704;
const ACCOUNT: usize = 768;
const ACCOUNT_SLOTS: [usize; 2] = [1024, 2560];

/// Drop reasons that a [`PublishedAccount`] has room for, by their place in the list.
pub const MAX_PUBLISHED_REASONS: usize = 180;

/// Numbers of a [`PublishedAccount`] that are not drops.
const PUBLISHED_COUNTS: usize = 10;

/// What became of a box's packets: what it publishes after each turn, for the time when it can't be asked any more. A box
/// may publish anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedAccount {
    /// Packets by fate, in all configurations since the box started.
    pub fates: PacketFates,
    /// Packets that the box took out of its receive rings.
    pub received: u64,
    /// Packets that the box put into its transmit rings.
    pub sent: u64,
    /// Lost packets by the reason's place in the list. Those with a place beyond [`MAX_PUBLISHED_REASONS`] are unlisted.
    pub lost: Vec<(u16, u64)>,
    /// Packets that were lost for reasons that are not in the list.
    pub unlisted: u64,
}

/// A box's lifecycle state, as it reports it: a hint for the host that must not be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum BoxState {
    /// It has not run yet.
    Created = 0,
    /// It has read its boot info and serves its mailbox.
    Ready = 1,
    /// It has stopped on request.
    Stopped = 2,
}

impl PublishedAccount {
    /// Whether no more packets ended than came into being. A box whose memory was damaged breaks this.
    pub fn is_plausible(&self) -> bool {
        let PacketFates { received, made, copied, delivered, discarded, consumed, merged } = self.fates;
        let sum = |counts: &[u64]| counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let lost = self.lost.iter().fold(self.unlisted, |sum, (_, packets)| sum.saturating_add(*packets));
        let begun = sum(&[received, made, copied]);
        begun < u64::MAX && sum(&[delivered, discarded, consumed, merged, lost]) <= begun
    }
}

/// The status page, at the start of its memory.
#[derive(Clone, Copy, Debug)]
pub struct StatusPage<M>(pub M);

impl<M: SharedMemory> StatusPage<M> {
    /// The state that the box reports, or `None` if it is invalid.
    pub fn state(&self) -> Option<BoxState> {
        match self.0.load_u32(STATE, Acquire) {
            0 => Some(BoxState::Created),
            1 => Some(BoxState::Ready),
            2 => Some(BoxState::Stopped),
            _ => None,
        }
    }

    /// Reports the box's state.
    pub fn set_state(&self, state: BoxState) {
        self.0.store_u32(STATE, state as u32, Release);
    }

    /// Packets after which the box must end its turn; 0: never.
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

    /// Sets until when the box may exceed its quantum; 0: not at all.
    pub fn set_uncontended_until(&self, tsc: u64) {
        self.0.store_u64(UNCONTENDED, tsc, Relaxed);
    }

    /// Whether the box must poll for work without sleeping, because it has a processor for itself.
    pub fn is_polling(&self) -> bool {
        self.0.load_u32(POLLS, Relaxed) != 0
    }

    /// Sets whether the box polls without sleeping.
    pub fn set_polling(&self, polls: bool) {
        self.0.store_u32(POLLS, u32::from(polls), Relaxed);
    }

    /// Packets that the box reports as held: taken out of its rings or created, and neither sent nor dropped. It is
    /// updated whenever the box receives or sends packets, and after each round. A box may report anything.
    pub fn packets_held(&self) -> u64 {
        self.0.load_u64(HELD, Relaxed)
    }

    /// Reports the number of packets that the box holds.
    pub fn set_packets_held(&self, packets: u64) {
        self.0.store_u64(HELD, packets, Relaxed);
    }

    /// Publishes an account. The box may be ended at any moment, so that of the turn before stays until this one is complete. A
    /// reason that was published once must be in all later accounts.
    pub fn publish_account(&self, account: &PublishedAccount) {
        let next = match self.0.load_u32(ACCOUNT, Relaxed) {
            1 => 2,
            _ => 1,
        };
        let [first, second] = ACCOUNT_SLOTS;
        let slot = if next == 1 { first } else { second };
        let PacketFates { received, made, copied, delivered, discarded, consumed, merged } = account.fates;
        let counts: [u64; PUBLISHED_COUNTS] = [
            received,
            made,
            copied,
            delivered,
            discarded,
            consumed,
            merged,
            account.received,
            account.sent,
            account.unlisted,
        ];
        for (index, count) in counts.into_iter().enumerate() {
            self.0.store_u64(slot + 8 * index, count, Relaxed);
        }
        for (reason, packets) in &account.lost {
            let index = usize::from(*reason);
            if index < MAX_PUBLISHED_REASONS {
                self.0.store_u64(slot + 8 * (PUBLISHED_COUNTS + index), *packets, Relaxed);
            }
        }
        self.0.store_u32(ACCOUNT, next, Release);
    }

    /// The account that the box published last.
    pub fn published_account(&self) -> Option<PublishedAccount> {
        let [first, second] = ACCOUNT_SLOTS;
        let slot = match self.0.load_u32(ACCOUNT, Acquire) {
            1 => first,
            2 => second,
            _ => return None,
        };
        let count = |index: usize| self.0.load_u64(slot + 8 * index, Relaxed);
        let [received, made, copied, delivered, discarded, consumed, merged] = core::array::from_fn(count);
        let lost = (0..MAX_PUBLISHED_REASONS).map(|index| (index as u16, count(PUBLISHED_COUNTS + index)));
        Some(PublishedAccount {
            fates: PacketFates { received, made, copied, delivered, discarded, consumed, merged },
            received: count(7),
            sent: count(8),
            lost: lost.filter(|(_, packets)| *packets > 0).collect(),
            unlisted: count(9),
        })
    }

    /// Whether the host asks the box to stop.
    pub fn stop_requested(&self) -> bool {
        self.0.load_u32(STOP, Acquire) != 0
    }

    /// Asks the box to stop, or withdraws this.
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

    /// Whether a box in a process reports that it is idle at a point where a copy of it can continue.
    pub fn is_idle(&self) -> bool {
        self.0.load_u32(IDLE, Acquire) != 0
    }

    /// Whether the box reports, while idle, that a copy of it is equivalent to a fresh installation: it has derived
    /// nothing from its ports' addresses, which differ in copies, has no fixed seed, and waits for no point in time.
    /// `None` while it is not idle.
    pub fn is_clone_safe(&self) -> Option<bool> {
        match self.0.load_u32(CLONE_SAFE, Acquire) {
            0 => None,
            word => Some(word == 1),
        }
    }

    /// Reports before going idle whether a copy is equivalent to a fresh installation, and `None` afterwards.
    pub fn set_clone_safe(&self, clone_safe: Option<bool>) {
        let word = match clone_safe {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        };
        self.0.store_u32(CLONE_SAFE, word, Release);
    }

    /// Offset of the word in which a box in a process reports that it is idle.
    pub const fn idle_offset() -> usize {
        IDLE
    }

    /// Sets whether a box in a process rings for its mailbox whenever it becomes idle: a thread of its host waits for
    /// that. No ring is lost: the host sets this word, executes a fence and reads the idle word; the box sets the idle
    /// word, executes a fence and reads this one.
    pub fn set_idle_watched(&self, watched: bool) {
        self.0.store_u32(IDLE_WATCHED, u32::from(watched), Release);
        self.0.fence();
    }

    /// Offset of the word in which the host asks a box in a process to ring when it becomes idle.
    pub const fn idle_watched_offset() -> usize {
        IDLE_WATCHED
    }

    /// Offset of the doorbell word of a box in a process, which sleeps on it with a futex.
    pub const fn doorbell_offset() -> usize {
        WAKE
    }

    /// The doorbell's count.
    pub fn doorbell(&self) -> u32 {
        self.0.load_u32(WAKE, Acquire)
    }

    /// The value of the time stamp counter at which the sleeping box must be woken even without events; 0 for never. A
    /// box may write anything here: it only gets its turn early, within its share of the time.
    pub fn alarm(&self) -> u64 {
        self.0.load_u64(ALARM, Acquire)
    }

    /// Sets when the box must be woken; 0: never.
    pub fn set_alarm(&self, tsc: u64) {
        self.0.store_u64(ALARM, tsc, Release);
    }

    /// Counts a ring of the doorbell. The caller must then wake the box that sleeps on it.
    pub fn ring(&self) {
        self.0.store_u32(WAKE, self.doorbell().wrapping_add(1), Release);
        self.0.fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapped;
    use alloc::vec;
    use core::ptr::NonNull;

    #[test]
    fn the_account_before_stays_until_the_next_one_is_complete() {
        let mut memory = vec![0u64; 512];
        let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
        // SAFETY: the memory lives until the end of the test and is used through this only.
        let page = StatusPage(unsafe { Mapped::new(start, 4096) });
        assert_eq!(page.published_account(), None);
        for turn in 1..5u64 {
            let account = PublishedAccount {
                fates: PacketFates { received: 10 * turn, discarded: turn, ..PacketFates::default() },
                received: 10 * turn,
                sent: turn,
                lost: vec![(0, turn), (MAX_PUBLISHED_REASONS as u16 - 1, 2 * turn)],
                unlisted: 3 * turn,
            };
            page.publish_account(&account);
            assert_eq!(page.published_account().as_ref(), Some(&account));
            assert!(account.is_plausible());
            let mut damaged = account.clone();
            damaged.fates.merged = 10 * turn;
            assert!(!damaged.is_plausible());
            // One that is broken off.
            let other = ACCOUNT_SLOTS[usize::from(page.0.load_u32(ACCOUNT, Relaxed) == 1)];
            page.0.store_u64(other, u64::MAX, Relaxed);
            assert_eq!(page.published_account(), Some(account));
        }
        // A reason without a place is left out.
        page.publish_account(&PublishedAccount { lost: vec![(u16::MAX, 7)], ..PublishedAccount::default() });
        assert!(page.published_account().is_some());
    }
}
