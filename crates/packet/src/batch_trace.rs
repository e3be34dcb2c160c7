//! Packets as a crash report shows them.

use crate::Packet;
use crate::slot::Slot;
use core::ptr::null;

/// The batch that an element was processing, for a crash report.
///
/// It is recorded at every delivery, so it costs two stores, owns nothing and guarantees nothing: the packets may be
/// freed and their slots reused.
#[derive(Clone, Copy, Debug)]
pub struct BatchTrace {
    packets: *const Packet,
    count: usize,
}

impl BatchTrace {
    /// No packet.
    pub const EMPTY: BatchTrace = BatchTrace { packets: null(), count: 0 };

    #[inline]
    pub(crate) fn of(packets: &[Packet]) -> BatchTrace {
        BatchTrace { packets: packets.as_ptr(), count: packets.len() }
    }

    /// Number of packets in the batch at delivery.
    pub fn count(self) -> usize {
        self.count
    }

    /// The current bytes of the packet at index `index` of the batch, if they look valid. `is_mapped(address, length)`
    /// says whether that memory range can be read.
    ///
    /// # Safety
    /// Nothing else runs in this address space any more, every range that `is_mapped` accepts is mapped, and the caller
    /// accepts bytes that may not be a packet's.
    pub unsafe fn packet<'a>(
        self,
        index: usize,
        is_mapped: impl Fn(usize, usize) -> bool,
    ) -> Option<&'a [u8]> {
        let handle = self.packets.wrapping_add(index);
        if index >= self.count || !is_mapped(handle as usize, size_of::<Packet>()) {
            return None;
        }
        // SAFETY: each piece is mapped, by the contract above, before it is read, and any bytes are read as numbers.
        unsafe {
            let slot = handle.cast::<*const Slot>().read_unaligned();
            if !is_mapped(slot as usize, size_of::<Slot>()) {
                return None;
            }
            let base = (&raw const (*slot).base).read_unaligned() as usize;
            let [start, end, capacity] =
                [&raw const (*slot).start, &raw const (*slot).end, &raw const (*slot).capacity]
                    .map(|word| word.read_unaligned() as usize);
            let first = base.checked_add(start)? as *const u8;
            if start > end || end > capacity || !is_mapped(first as usize, end - start) {
                return None;
            }
            Some(core::slice::from_raw_parts(first, end - start))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Pool};

    #[test]
    fn it_shows_the_packets_and_outlives_them() {
        let pool = Pool::new(4);
        let mut batch: Batch = [b"first", b"other"].iter().filter_map(|bytes| pool.packet(*bytes)).collect();
        let trace = batch.trace();
        let show = |index| {
            // SAFETY: one thread; batch and pool live.
            unsafe { trace.packet(index, |_, _| true) }
        };
        assert_eq!(trace.count(), 2);
        assert_eq!([0, 1, 2].map(show), [Some(&b"first"[..]), Some(&b"other"[..]), None]);
        batch.clear();
        assert_eq!([0, 1, 2].map(show), [Some(&b"first"[..]), Some(&b"other"[..]), None]);
        // SAFETY: as above; nothing is read.
        let nothing = unsafe { Batch::new().trace().packet(0, |_, _| true) };
        assert!(nothing.is_none());
    }

    #[test]
    fn what_is_not_mapped_is_not_read() {
        let pool = Pool::new(1);
        let batch = Batch::single(pool.packet(b"bytes").unwrap());
        for reads in 0..3u32 {
            let left = core::cell::Cell::new(reads);
            let is_mapped = |_, _| left.replace(left.get().saturating_sub(1)) > 0;
            // SAFETY: one thread; batch and pool live, more than is agreed to.
            assert!(unsafe { batch.trace().packet(0, is_mapped) }.is_none());
        }
    }
}
