//! Shared memory whose hostile peer writes bytes of a fuzz input.

#![allow(unsafe_code, reason = "it shares memory as box and host do")]

use boundary::{Mapped, SharedMemory};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// Choices taken from an input. When it is used up, every choice is zero.
pub struct Input<'a>(Cell<&'a [u8]>);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Cell::new(bytes))
    }

    pub fn is_empty(&self) -> bool {
        self.0.get().is_empty()
    }

    /// The next bytes, at most `most`.
    pub fn bytes(&self, most: usize) -> &'a [u8] {
        let bytes = self.0.get();
        let (taken, rest) = bytes.split_at(most.min(bytes.len()));
        self.0.set(rest);
        taken
    }

    pub fn byte(&self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// A word: its first byte gives the number of bytes that follow, so that short inputs reach far.
    pub fn word(&self) -> u64 {
        let mut word = [0; 8];
        let bytes = self.bytes(usize::from(self.byte() % 9));
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }
}

/// Memory in which every load returns bytes of the input. It records loads, to show that no word is loaded twice.
pub struct InputMemory<'a> {
    size: usize,
    input: &'a Input<'a>,
    loads: RefCell<Vec<(usize, usize)>>,
}

impl<'a> InputMemory<'a> {
    pub fn new(size: usize, input: &'a Input<'a>) -> Self {
        Self { size, input, loads: RefCell::default() }
    }

    /// Runs one operation, and fails if it loads a byte twice.
    pub fn once<T>(&self, operation: impl FnOnce() -> T) -> T {
        self.loads.borrow_mut().clear();
        let result = operation();
        let mut loads = self.loads.borrow_mut();
        loads.sort_unstable();
        assert!(!loads.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0), "a byte is loaded twice");
        result
    }

    fn check(&self, offset: usize, size: usize) {
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.size), "{size} bytes at {offset}");
    }

    fn load(&self, offset: usize, size: usize) -> u64 {
        self.check(offset, size);
        assert!(offset.is_multiple_of(size), "a word at {offset}");
        self.loads.borrow_mut().push((offset, size));
        self.input.word()
    }
}

// SAFETY: there is no memory behind it.
unsafe impl SharedMemory for &InputMemory<'_> {
    fn size(&self) -> usize {
        self.size
    }

    fn load_u32(&self, offset: usize, _: Ordering) -> u32 {
        self.load(offset, 4) as u32
    }

    fn store_u32(&self, offset: usize, _: u32, _: Ordering) {
        self.check(offset, 4);
    }

    fn load_u64(&self, offset: usize, _: Ordering) -> u64 {
        self.load(offset, 8)
    }

    fn store_u64(&self, offset: usize, _: u64, _: Ordering) {
        self.check(offset, 8);
    }

    fn fence(&self) {}

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        if !into.is_empty() {
            self.loads.borrow_mut().push((offset, into.len()));
        }
        let bytes = self.input.bytes(into.len());
        into.fill(0);
        into[..bytes.len()].copy_from_slice(bytes);
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
    }
}

/// Runs `body` with `size` bytes of zeroed memory.
pub fn with_mapped(size: usize, body: impl FnOnce(Mapped)) {
    let mut words = vec![0u64; size.div_ceil(8)];
    // SAFETY: the vector outlives `body` and is not touched meanwhile; the handles that `body` gets don't leave it.
    body(unsafe { Mapped::new(NonNull::from(&mut words[..]).cast(), size) });
}
