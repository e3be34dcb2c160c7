//! A packet as a crash report shows it.

use crate::pool::Slot;
use core::ptr::null;

/// Which packet was in somebody's hand: noted for every batch that is delivered, so it costs one store, holds nothing
/// and promises nothing. The packet may be gone, and its slot have another.
#[derive(Clone, Copy, Debug)]
pub struct Glimpse(*const Slot);

impl Glimpse {
    /// No packet.
    pub const NOTHING: Glimpse = Glimpse(null());

    #[inline]
    pub(crate) fn of(slot: *const Slot) -> Glimpse {
        Glimpse(slot)
    }

    /// The bytes of the packet that the slot has now, if they make sense.
    ///
    /// # Safety
    /// Nothing else runs in this address space any more, memory that was taken from the allocator is still mapped, and
    /// no one minds whether the bytes are a packet's.
    pub unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the pointer was a slot's, and slots stay mapped by the contract above; what is read of it is checked
        // before it is used, and leads into a buffer that stays mapped likewise.
        unsafe {
            let slot = core::ptr::read_unaligned(self.0);
            let inside = slot.start <= slot.end && slot.end <= slot.capacity && !slot.base.is_null();
            inside.then(|| {
                core::slice::from_raw_parts(
                    slot.base.add(slot.start as usize),
                    (slot.end - slot.start) as usize,
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Pool};

    #[test]
    fn it_shows_the_first_packet_and_outlives_it() {
        let pool = Pool::new(4);
        let batch: Batch = [b"first", b"other"].iter().filter_map(|bytes| pool.packet(*bytes)).collect();
        let glimpse = batch.glimpse();
        // SAFETY: one thread, and the pool lives.
        assert_eq!(unsafe { glimpse.bytes() }, Some(&b"first"[..]));
        drop(batch);
        // SAFETY: as above.
        assert!(unsafe { glimpse.bytes() }.is_some());
        // SAFETY: as above.
        let nothing = unsafe { Batch::new().glimpse().bytes() };
        assert!(nothing.is_none());
    }
}
