//! Bulk allocation and release of packets: the cost per batch of a source and a sink.

use alloc::vec::Vec;
use core::ops::Range;
use core::ptr::NonNull;

use crate::cache_line::{CACHE_LINE, CacheLine};
use crate::packet::Packet;
use crate::slot::{BufferHome, CAPACITY, HEADER, NONE, PoolState, Slot};

impl PoolState {
    /// Adds `count` packets like the one of `template` to `into`, with bytes of their own or sharing its bytes; returns
    /// how many the limit allowed.
    ///
    /// # Safety
    /// `template` is a live slot of this pool that a packet holds and that is not borrowed. Its bytes fit into a pool
    /// slot unless shared.
    pub(crate) unsafe fn replicate(
        &self,
        template: *const Slot,
        share: bool,
        count: usize,
        into: &mut Vec<Packet>,
    ) -> usize {
        self.provide(count);
        into.reserve(count);
        // SAFETY: the list is used by this thread only, and only through this borrow while it lasts. Slots on it have no
        // user, hold `CAPACITY` bytes behind their header, and are not `template`, which has one. There is room in
        // `into` for all that are taken off the list.
        unsafe {
            let free = &mut *self.free.get();
            let left = free.len().saturating_sub(count);
            let slots = &free[left..];
            let made = slots.len();
            let handles = into.as_mut_ptr().add(into.len()).cast::<NonNull<Slot>>();
            if share {
                share_with(template, slots, handles);
                (*owner_of(template)).users += made as u32;
            } else {
                copy_to(template, slots, handles);
            }
            free.set_len(left);
            into.set_len(into.len() + made);
            self.live.set(self.live.get() + made);
            made
        }
    }

    /// Ensures that `count` slots are free, as far as the limit allows.
    #[inline]
    pub(crate) fn provide(&self, count: usize) {
        // SAFETY: the list is used by this thread only, one borrow at a time.
        while unsafe { (*self.free.get()).len() } < count {
            let Some(slot) = self.grow() else { return };
            // SAFETY: as above.
            unsafe { (*self.free.get()).push(slot) };
        }
    }

    /// Drops all `packets`. Unshared ones are released in bulk, without the checks that a single drop makes.
    pub(crate) fn release_all(packets: &mut Vec<Packet>) {
        let Some(pool) = packets.first().map(Packet::pool) else { return };
        // A duplicate with one user gives up its use of the owner's bytes, too. That is not the last one, so the owner stays as it
        // is. The packets that are not released here are put to the front, each once, and dropped when the list is no longer borrowed.
        // SAFETY: the first packet keeps the pool alive, and the count that is added here until the end. A slot with one user, which
        // holds its bytes or shares those of an owner that has others, has only the handle, which is given up without being
        // dropped; it is one of the pool's, for all of which the list has room.
        unsafe {
            let shared = &*pool;
            let count = packets.len();
            let handles = packets.as_mut_ptr().cast::<*mut Slot>();
            packets.set_len(0);
            let free = &mut *shared.free.get();
            let start = free.as_mut_ptr().add(free.len());
            let (mut end, mut others) = (start, 0);
            for index in 0..count {
                let slot = *handles.add(index);
                let is_last = (*slot).users == 1 && (*slot).pool == pool;
                // The bytes of a duplicate have further users.
                let is_one_of_several =
                    is_last && (*slot).home == BufferHome::Other && (*(*slot).owner).users > 1;
                if is_one_of_several || is_last && matches!((*slot).home, BufferHome::Pool | BufferHome::Lent)
                {
                    if (*slot).home == BufferHome::Lent {
                        shared.take_back(slot);
                    } else if is_one_of_several {
                        (*(*slot).owner).users -= 1;
                    }
                    end.write(NonNull::new_unchecked(slot));
                    end = end.add(1);
                } else {
                    *handles.add(others) = slot;
                    others += 1;
                }
            }
            let returned = end.offset_from_unsigned(start);
            free.set_len(free.len() + returned);
            shared.live.set(shared.live.get() + 1 - returned);
            packets.set_len(others);
            packets.clear();
            let live = shared.live.get() - 1;
            shared.live.set(live);
            if live == 0 && shared.handles.get() == 0 {
                PoolState::destroy(pool.cast_mut());
            }
        }
    }
}

/// A lent buffer and the range of its packet's data.
pub(crate) type LentBuffer = (&'static mut [u8], Range<usize>);

impl PoolState {
    /// Drops the first packets, at most `most`, as long as a buffer was lent to each that no other packet shares. Passes the
    /// buffers to `each`, in order. Returns their number.
    #[inline(always)]
    pub(crate) fn take_lent(
        packets: &mut Vec<Packet>,
        most: usize,
        mut each: impl FnMut(LentBuffer),
    ) -> usize {
        let Some(pool) = packets.first().map(Packet::pool) else { return 0 };
        let most = most.min(packets.len());
        let mut taken = 0;
        // SAFETY: a slot with a lent buffer and one user has only the handle, which is given up here, and is in no list of
        // packets while `each` runs. It is one of the pool's, for all of which the free list has room. `lend` took base and capacity
        // from a slice borrowed for ever and uniquely; this is their last use. The pool lives, because all packets count as live
        // until the end. The free list is used by this thread only, and not borrowed while `each` runs.
        unsafe {
            let shared = &*pool;
            let count = packets.len();
            let handles = packets.as_mut_ptr().cast::<*mut Slot>();
            packets.set_len(0);
            while taken < most {
                let slot = *handles.add(taken);
                let is_last = (*slot).users == 1 && (*slot).pool == pool;
                if !is_last || (*slot).home != BufferHome::Lent {
                    break;
                }
                taken += 1;
                let range = (*slot).start as usize..(*slot).end as usize;
                let buffer = core::slice::from_raw_parts_mut((*slot).base, (*slot).capacity as usize);
                (*slot).home = BufferHome::Pool;
                let free = &mut *shared.free.get();
                free.as_mut_ptr().add(free.len()).write(NonNull::new_unchecked(slot));
                free.set_len(free.len() + 1);
                each((buffer, range));
            }
            core::ptr::copy(handles.add(taken), handles, count - taken);
            packets.set_len(count - taken);
            let live = shared.live.get() - taken;
            shared.live.set(live);
            if live == 0 && shared.handles.get() == 0 {
                PoolState::destroy(pool.cast_mut());
            }
        }
        taken
    }
}

/// The slot that holds the bytes of `template`.
///
/// # Safety
/// `template` is a slot.
unsafe fn owner_of(template: *const Slot) -> *mut Slot {
    // SAFETY: by the contract above.
    unsafe { if (*template).home == BufferHome::Other { (*template).owner } else { template.cast_mut() } }
}

/// The header of `template` as it is in all of its copies, apart from the fields that differ per slot. Their bytes are at `home`.
///
/// # Safety
/// `template` is a slot.
#[inline(always)]
unsafe fn header_of(template: *const Slot, home: BufferHome, capacity: u32) -> [CacheLine; 2] {
    const { assert!(HEADER == 2 * CACHE_LINE) };
    // SAFETY: a slot's header may be read as the bytes that it is; it owns nothing.
    unsafe {
        let mut header = core::ptr::read(template);
        header.users = 1;
        header.home = home;
        header.owner = owner_of(template);
        header.capacity = capacity;
        header.own_capacity = CAPACITY as u32;
        let bytes = (&raw const header).cast::<u8>();
        [CacheLine::read(bytes), CacheLine::read(bytes.add(CACHE_LINE))]
    }
}

/// Makes the free `slots` packets that share the bytes of `template`, and writes them to `handles`. Its owner's users
/// are counted by the caller.
///
/// # Safety
/// The slots are not in use, they are not `template`, and `handles` has room for them.
unsafe fn share_with(template: *const Slot, slots: &[NonNull<Slot>], handles: *mut NonNull<Slot>) {
    // SAFETY: by the contract above; a slot has as many bytes as two lines in front of its buffer.
    unsafe {
        let header = header_of(template, BufferHome::Other, (*template).capacity);
        for (index, slot) in slots.iter().enumerate() {
            let to = slot.as_ptr().cast::<u8>();
            header[0].write(to);
            header[1].write(to.add(CACHE_LINE));
            handles.add(index).write(*slot);
        }
    }
}

/// Makes the free `slots` packets like `template` with bytes of their own, and writes them to `handles`.
///
/// # Safety
/// The slots are not in use, they are not `template`, its bytes fit into a slot, and `handles` has room for them.
unsafe fn copy_to(template: *const Slot, slots: &[NonNull<Slot>], handles: *mut NonNull<Slot>) {
    // SAFETY: by the contract above; `first..first + length` lies within the buffer of the template and of every slot,
    // and so do whole lines where that was found.
    unsafe {
        let Slot { base, start, end, capacity, mac, network, .. } = *template;
        let kept = [mac, network].into_iter().filter(|offset| *offset != NONE);
        let first = kept.fold(start, u32::min) as usize;
        let length = end as usize - first;
        // Copying whole cache lines is cheaper than copying the exact length; the slot has room for them.
        let lines = length.div_ceil(CACHE_LINE);
        let whole = lines > 0 && first + lines * CACHE_LINE <= CAPACITY.min(capacity as usize);
        let header = header_of(template, BufferHome::Pool, CAPACITY as u32);
        let from = base.add(first);
        let line = whole.then(|| CacheLine::read(from));
        for (index, slot) in slots.iter().enumerate() {
            let slot = slot.as_ptr();
            let base = slot.cast::<u8>().add(HEADER);
            header[0].write(slot.cast());
            header[1].write(slot.cast::<u8>().add(CACHE_LINE));
            (*slot).base = base;
            let to = base.add(first);
            match &line {
                Some(line) => {
                    line.write(to);
                    for at in 1..lines {
                        CacheLine::read(from.add(at * CACHE_LINE)).write(to.add(at * CACHE_LINE));
                    }
                }
                None => core::ptr::copy_nonoverlapping(from, to, length),
            }
            handles.add(index).write(NonNull::new_unchecked(slot));
        }
    }
}
