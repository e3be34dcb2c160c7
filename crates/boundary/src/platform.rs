//! What a box stands on, as the program inside sees it.

/// What the doorbell said before the box looked for work the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellCount(pub u32);

/// How much of a box's heap is used, in bytes; all zero where nobody counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUse {
    /// In use now, rounded up to whole blocks.
    pub used: usize,
    /// Most ever in use.
    pub peak: usize,
    /// The whole heap.
    pub size: usize,
}

/// What a box stands on: the few things that its program asks of whatever carries it. The image has one for
/// machine and process, a box in a thread gets one from its host.
pub trait Platform {
    /// The time stamp counter.
    fn cycles(&self) -> u64;

    /// The first step of a rest: take this, set the sleep flags, look for work once more, then
    /// [`idle`](Self::idle).
    fn prepare_idle(&self) -> DoorbellCount;

    /// Leaves until the host has work, or the time stamp counter reaches `alarm`. Returns at once when the
    /// doorbell rang since `rest`; may return early.
    fn idle(&self, rest: DoorbellCount, alarm: Option<u64>);

    /// Gives the turn back with work left.
    fn end_turn(&self);

    /// Lets others of the processor run, before a rest that comes after much work, where that costs less than a rest: more
    /// work may have come by then. Whether it did.
    fn yield_before_idle(&self) -> bool {
        false
    }

    /// Rings for the host, which sleeps beside what the box has published.
    fn ring_host(&self);

    /// How much of the heap is used.
    fn heap_use(&self) -> HeapUse {
        HeapUse::default()
    }

    /// Called once a round: where a box is carried by nothing that could hold it, it stands still here.
    fn pause_point(&self) {}
}
