//! The ground of a box that runs an image: machine or process.

use crate::{heap, leave};
use boundary::{Ground, HeapUse, Rest};

/// What a box that runs an image stands on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Floor;

impl Ground for Floor {
    fn cycles(&self) -> u64 {
        leave::cycles()
    }

    fn rest(&self) -> Rest {
        leave::rest()
    }

    fn idle(&self, rest: Rest, alarm: Option<u64>) {
        leave::idle(rest, alarm);
    }

    fn end_turn(&self) {
        leave::end_turn();
    }

    fn linger(&self) -> bool {
        leave::linger()
    }

    fn ring_host(&self) {
        leave::ring_host();
    }

    fn heap_use(&self) -> HeapUse {
        heap::heap_use()
    }
}
