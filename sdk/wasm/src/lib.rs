//! Network functions in WebAssembly for clickbox: the interface of the element `Wasm`, for modules in Rust.
//!
//! ```ignore
//! use clickbox_function::{Answer, Counter, Function, Packet};
//!
//! struct Forward {
//!     seen: Counter,
//! }
//!
//! impl Function for Forward {
//!     fn start() -> Forward {
//!         Forward { seen: Counter::new("seen") }
//!     }
//!
//!     fn process(&mut self, packet: &mut Packet) -> Answer {
//!         self.seen.add(1);
//!         Answer::NEXT
//!     }
//! }
//!
//! clickbox_function::function!(Forward);
//! ```
//!
//! A module has one thread and no operating system. It is built for `wasm32-unknown-unknown`.
#![no_std]

use core::cell::{Cell, UnsafeCell};
use core::fmt::{self, Write};

/// Bytes of a packet.
pub const PACKET_SIZE: usize = 2048;

mod host {
    #[link(wasm_import_module = "clickbox")]
    unsafe extern "C" {
        pub(crate) fn counter(address: *const u8, length: usize) -> i32;
        pub(crate) fn count(counter: i32, amount: u64);
        pub(crate) fn reason(address: *const u8, length: usize) -> i32;
        pub(crate) fn log(address: *const u8, length: usize);
        pub(crate) fn resize(length: u32) -> i32;
        pub(crate) fn now() -> i64;
        pub(crate) fn random() -> u32;
    }
}

/// A network function.
pub trait Function: Sized {
    /// Makes it, before the first packet. Counters and reasons are made here.
    fn start() -> Self;

    /// Decides what becomes of a packet.
    fn process(&mut self, packet: &mut Packet) -> Answer;

    /// Takes a message from outside: a write to the element's handler `message`. False refuses it.
    fn message(&mut self, _text: &[u8]) -> bool {
        false
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer(i32);

impl Answer {
    /// It leaves by output 0 of the element.
    pub const NEXT: Answer = Answer(0);
    /// It is dropped, and counted as `function_drop`.
    pub const DROP: Answer = Answer(-1);

    /// It leaves by this output of the element. If nothing is connected there, it is dropped as `no_output`.
    pub const fn output(output: u16) -> Answer {
        Answer(output as i32)
    }

    /// The number that clickbox gets.
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// A reason to drop packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(Answer);

impl Reason {
    /// Declares a reason, in [`Function::start`]: `user:FUNCTION/REASON` in lower-case letters, digits and underscores.
    pub fn new(name: &str) -> Reason {
        // SAFETY: the host reads the text and keeps no reference.
        Reason(Answer(unsafe { host::reason(name.as_ptr(), name.len()) }))
    }

    /// The packet is dropped and counted under the reason.
    pub const fn drop(self) -> Answer {
        self.0
    }
}

/// A counter that the element's handler `counters` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(i32);

impl Counter {
    /// Makes a counter, in [`Function::start`]: up to 64, with names of letters, digits and underscores.
    pub fn new(name: &str) -> Counter {
        // SAFETY: the host reads the text and keeps no reference.
        Counter(unsafe { host::counter(name.as_ptr(), name.len()) })
    }

    /// Adds to it.
    pub fn add(self, amount: u64) {
        // SAFETY: the host takes any numbers.
        unsafe { host::count(self.0, amount) }
    }
}

/// Writes a line of up to 256 bytes to the log of the box, at most 16 for a packet.
pub fn log(line: &str) {
    // SAFETY: the host reads the text and keeps no reference.
    unsafe { host::log(line.as_ptr(), line.len()) }
}

/// Nanoseconds of a clock that only goes forward. It stands still while a packet is processed.
pub fn now() -> u64 {
    // SAFETY: it has no arguments.
    unsafe { host::now() }.cast_unsigned()
}

/// A random number.
pub fn random() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { host::random() }
}

/// The packet that is processed.
pub struct Packet<'p> {
    buffer: &'p mut [u8; PACKET_SIZE],
    length: usize,
}

impl Packet<'_> {
    /// Its bytes, from the Ethernet header on.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// The same, to change them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.length).unwrap_or_default()
    }

    /// Gives it another length. Bytes that are added have any values. False if it would be too long.
    pub fn resize(&mut self, length: usize) -> bool {
        let is_good = length <= PACKET_SIZE;
        if is_good {
            self.length = length;
            // SAFETY: the host takes any number.
            unsafe { host::resize(length as u32) };
        }
        is_good
    }

    /// The IP header with what follows, and its version, if the packet is IP. VLAN tags are skipped.
    pub fn ip(&self) -> Option<(u8, &[u8])> {
        let (bytes, mut at) = (self.bytes(), 12);
        let kind = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        while at < 28 && matches!(kind(at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
        let (version, least) = match kind(at)? {
            0x0800 => (4, 20),
            0x86dd => (6, 40),
            _ => return None,
        };
        let header = bytes.get(at + 2..)?;
        (header.len() >= least && header.first()? >> 4 == version).then_some((version, header))
    }
}

/// The state of a module: its buffer for packets, and the function. [`function!`] makes one.
#[doc(hidden)]
pub struct Module<F> {
    buffer: UnsafeCell<[u8; PACKET_SIZE]>,
    function: UnsafeCell<Option<F>>,
    is_called: Cell<bool>,
}

// SAFETY: a module has one thread.
unsafe impl<F> Sync for Module<F> {}

impl<F: Function> Module<F> {
    /// An empty module.
    #[allow(clippy::new_without_default, reason = "it is made by the macro only, in a constant")]
    pub const fn new() -> Module<F> {
        Module {
            buffer: UnsafeCell::new([0; PACKET_SIZE]),
            function: UnsafeCell::new(None),
            is_called: Cell::new(false),
        }
    }

    /// The place of the buffer.
    pub fn buffer(&self) -> *mut u8 {
        self.buffer.get().cast()
    }

    /// Starts the function.
    pub fn start(&self) {
        let function = F::start();
        self.enter(|place, _| *place = Some(function));
    }

    /// Has a packet processed.
    pub fn process(&self, length: usize) -> i32 {
        self.enter(|function, buffer| {
            let Some(function) = function else { return Answer::DROP.0 };
            function.process(&mut Packet { buffer, length }).0
        })
    }

    /// Delivers a message. 0 means that it was taken.
    pub fn message(&self, length: usize) -> i32 {
        self.enter(|function, buffer| {
            let Some(function) = function else { return 1 };
            i32::from(!function.message(buffer.get(..length).unwrap_or_default()))
        })
    }

    fn enter<T>(&self, run: impl FnOnce(&mut Option<F>, &mut [u8; PACKET_SIZE]) -> T) -> T {
        assert!(!self.is_called.replace(true), "the module calls itself");
        // SAFETY: there is one thread, and `is_called` keeps a second call out, so that these are the only references. The host
        // writes to the buffer only between calls.
        let result = unsafe { run(&mut *self.function.get(), &mut *self.buffer.get()) };
        self.is_called.set(false);
        result
    }
}

/// Makes a type that implements [`Function`] the function of the module.
#[macro_export]
macro_rules! function {
    ($function:ty) => {
        static CLICKBOX_MODULE: $crate::Module<$function> = $crate::Module::new();

        #[unsafe(no_mangle)]
        extern "C" fn buffer(size: usize) -> *mut u8 {
            if size > $crate::PACKET_SIZE { core::ptr::null_mut() } else { CLICKBOX_MODULE.buffer() }
        }

        #[unsafe(no_mangle)]
        extern "C" fn start() {
            CLICKBOX_MODULE.start();
        }

        #[unsafe(no_mangle)]
        extern "C" fn process(length: usize) -> i32 {
            CLICKBOX_MODULE.process(length)
        }

        #[unsafe(no_mangle)]
        extern "C" fn message(length: usize) -> i32 {
            CLICKBOX_MODULE.message(length)
        }

        #[cfg(target_arch = "wasm32")]
        #[panic_handler]
        fn panic(panic: &core::panic::PanicInfo) -> ! {
            $crate::fail(panic)
        }
    };
}

/// Writes a panic to the log, and ends the call. clickbox counts the packet as `wasm_trap`, and starts the module again.
#[doc(hidden)]
pub fn fail(panic: &core::panic::PanicInfo) -> ! {
    let mut line = Line { bytes: [0; 200], length: 0 };
    // What has no room is left out.
    let _ = write!(line, "{panic}");
    // SAFETY: the host reads the text and keeps no reference.
    unsafe { host::log(line.bytes.as_ptr(), line.length) };
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    loop {}
}

/// Text of a bounded length.
struct Line {
    bytes: [u8; 200],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(text.as_bytes()) {
            *to = *from;
        }
        self.length += room.len().min(text.len());
        Ok(())
    }
}
