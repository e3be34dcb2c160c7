//! A hostile peer: every load returns a value chosen by a seeded generator.

use super::access::SharedMemory;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::sync::atomic::Ordering;
use random::Random;

/// A value that is often close to the edges of what a check accepts.
pub(crate) fn edge(random: &mut Random) -> u64 {
    let value = random.next();
    match value >> 61 {
        0 => value & 0x7,
        1 => value & 0xfff,
        2 => !(value & 0xff),
        3 => 1 << (value & 63),
        4 => (1u64 << (value & 63)) - 1,
        _ => value,
    }
}

/// Memory in which every load is random. It records the ranges that were loaded.
pub(crate) struct Hostile {
    size: usize,
    random: RefCell<Random>,
    loads: RefCell<Vec<(usize, usize)>>,
}

impl Hostile {
    pub(crate) fn new(size: usize, seed: u64) -> Self {
        Self { size, random: RefCell::new(Random::new(seed)), loads: RefCell::default() }
    }

    /// Clears the recorded loads at the start of an operation.
    pub(crate) fn begin(&self) {
        self.loads.borrow_mut().clear();
    }

    /// Whether a byte was loaded twice since the operation started.
    pub(crate) fn loaded_twice(&self) -> bool {
        let mut loads = self.loads.borrow().clone();
        loads.sort_unstable();
        loads.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
    }

    fn load(&self, offset: usize, size: usize) -> u64 {
        assert!(offset.is_multiple_of(size) && offset + size <= self.size, "load outside: {offset}");
        self.loads.borrow_mut().push((offset, size));
        edge(&mut self.random.borrow_mut())
    }

    fn store(&self, offset: usize, size: usize) {
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.size), "store outside: {offset}");
    }
}

// SAFETY: there is no memory behind it.
unsafe impl SharedMemory for &Hostile {
    fn size(&self) -> usize {
        self.size
    }

    fn load_u32(&self, offset: usize, _: Ordering) -> u32 {
        self.load(offset, 4) as u32
    }

    fn store_u32(&self, offset: usize, _: u32, _: Ordering) {
        self.store(offset, 4);
    }

    fn load_u64(&self, offset: usize, _: Ordering) -> u64 {
        self.load(offset, 8)
    }

    fn store_u64(&self, offset: usize, _: u64, _: Ordering) {
        self.store(offset, 8);
    }

    fn fence(&self) {}

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.store(offset, into.len());
        if into.is_empty() {
            return;
        }
        self.loads.borrow_mut().push((offset, into.len()));
        for chunk in into.chunks_mut(8) {
            let value = edge(&mut self.random.borrow_mut()).to_le_bytes();
            chunk.copy_from_slice(&value[..chunk.len()]);
        }
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.store(offset, from.len());
    }
}
