//! The platform of a box that runs an image: machine or process.

use crate::{exit, heap};
use boundary::{DoorbellCount, HeapUse, Platform};

/// What a box that runs an image stands on.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuestPlatform;

impl Platform for GuestPlatform {
    fn cycles(&self) -> u64 {
        exit::cycles()
    }

    fn prepare_idle(&self) -> DoorbellCount {
        exit::prepare_idle()
    }

    fn idle(&self, rest: DoorbellCount, alarm: Option<u64>) {
        exit::idle(rest, alarm);
    }

    fn end_turn(&self) {
        exit::end_turn();
    }

    fn yield_before_idle(&self) -> bool {
        exit::yield_before_idle()
    }

    fn ring_host(&self) {
        exit::ring_host();
    }

    fn heap_use(&self) -> HeapUse {
        heap::heap_use()
    }
}
