//! The platform of an image: virtual machine or process.

use crate::{exit, heap};
use boundary::{DoorbellCount, HeapUse, Platform};

/// The platform of an image, whatever runs it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuestPlatform;

impl Platform for GuestPlatform {
    fn cycles(&self) -> u64 {
        exit::cycles()
    }

    fn prepare_idle(&self) -> DoorbellCount {
        exit::prepare_idle()
    }

    fn idle(&self, seen: DoorbellCount, alarm: Option<u64>) {
        exit::idle(seen, alarm);
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

    fn ring_mailbox(&self) {
        exit::ring_mailbox();
    }

    fn heap_use(&self) -> HeapUse {
        heap::heap_use()
    }
}
