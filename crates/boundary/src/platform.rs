//! The services that the program of a box needs from its sandbox.

/// The doorbell's count before the last check for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellCount(pub u32);

/// Use of a box's heap, in bytes; all zero if it is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUse {
    /// Bytes in use, rounded up to whole blocks.
    pub used: usize,
    /// Maximum bytes that were in use.
    pub peak: usize,
    /// Size of the heap.
    pub size: usize,
}

/// The services that the program of a box needs from its sandbox. The image implements it for virtual machines and
/// processes; a box in a thread gets an implementation from its host.
pub trait Platform {
    /// The time stamp counter.
    fn cycles(&self) -> u64;

    /// The first step of going to sleep: call this, set the sleep flags, check for work once more, then call
    /// [`idle`](Self::idle).
    fn prepare_idle(&self) -> DoorbellCount;

    /// Sleeps until the host rings the doorbell or the time stamp counter reaches `alarm`. Returns at once if the
    /// doorbell rang since [`prepare_idle`](Self::prepare_idle); may return early.
    fn idle(&self, seen: DoorbellCount, alarm: Option<u64>);

    /// Ends the turn with work left.
    fn end_turn(&self);

    /// Yields the processor before a sleep that follows a busy period, if a yield costs less than a sleep: more work
    /// may have arrived when it returns. Returns whether it yielded.
    fn yield_before_idle(&self) -> bool {
        false
    }

    /// Wakes the host of the ports, which sleeps although the box has published packets or room.
    fn ring_host(&self);

    /// Wakes the caller at the mailbox, which sleeps although there is a reply, or room for its request.
    fn ring_mailbox(&self);

    /// The heap's usage.
    fn heap_use(&self) -> HeapUse {
        HeapUse::default()
    }

    /// Called once per round: a box in a thread, which cannot be suspended otherwise, pauses here.
    fn pause_point(&self) {}
}
