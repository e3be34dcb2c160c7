//! The crash page: what a box leaves behind if it cannot continue.
//!
//! The fault entries of an image are assembly that must work with a broken stack and heap, so registers have fixed
//! offsets ([`fault`]). The rest is added by code afterwards. A second fault meanwhile finds the state set, and exits.

use crate::limits::{MAX_CRASH_BATCH, MAX_CRASH_MESSAGE, MAX_CRASH_NAME, MAX_CRASH_PACKET, MAX_CRASH_START};
use crate::memory::SharedMemory;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Offsets in the crash page, for the fault entries.
pub mod fault {
    /// 64-bit word: 0, or a cause (see the constants below). Written first.
    pub const STATE: usize = 0;
    /// 64-bit word: the exception vector; for a version mismatch, the version found.
    pub const VECTOR: usize = 8;
    /// 64-bit word: the exception's error code.
    pub const ERROR_CODE: usize = 16;
    /// 64-bit word: the faulting address, if the box can know it.
    pub const ADDRESS: usize = 24;
    /// 64-bit words: instruction pointer, stack pointer, flags, then rax, rbx, rcx, rdx, rsi, rdi, rbp,
    /// r8 to r15.
    pub const REGISTERS: usize = 32;
    /// The number of these words.
    pub const REGISTER_COUNT: usize = 18;

    /// State: a processor exception.
    pub const EXCEPTION: u64 = 1;
    /// State: the program panicked.
    pub const PANIC: u64 = 2;
    /// State: the heap is exhausted.
    pub const OUT_OF_MEMORY: u64 = 3;
    /// State: image and host use different protocol versions.
    pub const VERSION: u64 = 4;
}

const NAME: usize = 0x100;
const MESSAGE: usize = 0x180;
const PACKET: usize = 0x400;
/// Two words, the number of packets in the batch and of those recorded, followed by the recorded packets.
const BATCH: usize = 0x520;
const SHOWN: usize = BATCH + 16;
/// Size of a recorded packet: its length and its first bytes.
const SHOWN_SIZE: usize = 8 + MAX_CRASH_START;
const PAGE: usize = crate::layout::control::PAGE_SIZE;
const _: () = assert!(PACKET + 8 + MAX_CRASH_PACKET <= BATCH && SHOWN + MAX_CRASH_BATCH * SHOWN_SIZE <= PAGE);

/// Why a box stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashCause {
    /// A processor exception with its vector and error code.
    Exception {
        /// 0 divide, 6 invalid instruction, 13 general protection, 14 page fault, ...
        vector: u64,
        /// The error code that the processor pushed, or 0.
        error_code: u64,
    },
    /// A panic.
    Panic,
    /// The heap is exhausted.
    OutOfMemory,
    /// The image does not support the host's protocol version.
    Version {
        /// The version in the boot info.
        found: u64,
    },
    /// The box reported an invalid state.
    Unknown(u64),
}

impl fmt::Display for CrashCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exception { vector: 0, .. } => write!(f, "division by zero"),
            Self::Exception { vector: 6, .. } => write!(f, "invalid instruction"),
            Self::Exception { vector: 13, error_code } => {
                write!(f, "general protection (error {error_code:#x})")
            }
            Self::Exception { vector: 14, error_code } => write!(f, "page fault (error {error_code:#x})"),
            Self::Exception { vector, error_code } => write!(f, "exception {vector} (error {error_code:#x})"),
            Self::Panic => write!(f, "panic"),
            Self::OutOfMemory => write!(f, "out of memory"),
            Self::Version { found } => write!(f, "the image does not know version {found} of the protocol"),
            Self::Unknown(state) => write!(f, "unknown cause {state}"),
        }
    }
}

/// The registers at an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer.
    pub rip: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// Flags.
    pub rflags: u64,
    /// rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 to r15.
    pub general: [u64; 15],
}

/// What the host knows of a crash. The box wrote it: texts must be escaped before display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashReport {
    /// Why it stopped.
    pub cause: CrashCause,
    /// The faulting address; 0 if unknown. A host that can read it from the processor sets it.
    pub address: u64,
    /// The registers; all zero unless it was an exception.
    pub registers: Registers,
    /// The configuration and element that ran; empty if none did.
    pub element: Vec<u8>,
    /// The program's message.
    pub message: Vec<u8>,
    /// The first bytes of the first packet of the current batch; empty if there was none.
    pub packet: Vec<u8>,
    /// The batch that the element was processing.
    pub batch: CrashBatch,
}

/// The current batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashBatch {
    /// The number of packets in it.
    pub count: u64,
    /// The first of its packets.
    pub packets: Vec<CrashPacket>,
}

/// A packet of the current batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashPacket {
    /// The packet's length in bytes.
    pub length: u64,
    /// The first bytes of the packet.
    pub start: Vec<u8>,
}

/// The crash page, at the start of its memory.
#[derive(Clone, Copy, Debug)]
pub struct CrashPage<M>(pub M);

impl<M: SharedMemory> CrashPage<M> {
    /// Records a cause that is not an exception. Returns false if a cause is already recorded, which then stays.
    pub fn begin(&self, cause: CrashCause) -> bool {
        let (state, detail) = match cause {
            CrashCause::Exception { vector, .. } => (fault::EXCEPTION, vector),
            CrashCause::Panic => (fault::PANIC, 0),
            CrashCause::OutOfMemory => (fault::OUT_OF_MEMORY, 0),
            CrashCause::Version { found } => (fault::VERSION, found),
            CrashCause::Unknown(state) => (state, 0),
        };
        let first = self.0.load_u64(fault::STATE, Relaxed) == 0;
        if first {
            self.0.store_u64(fault::VECTOR, detail, Relaxed);
            self.0.store_u64(fault::STATE, state, Release);
        }
        first
    }

    /// Adds the name of the configuration and element that ran, cut to the limit.
    pub fn set_element(&self, name: &[u8]) {
        self.set(NAME, name, MAX_CRASH_NAME);
    }

    /// Adds the program's message, cut to the limit.
    pub fn set_message(&self, message: &[u8]) {
        self.set(MESSAGE, message, MAX_CRASH_MESSAGE);
    }

    /// Adds the first bytes of the first packet of the batch.
    pub fn set_packet(&self, packet: &[u8]) {
        self.set(PACKET, packet, MAX_CRASH_PACKET);
    }

    /// Adds the number of packets in the batch.
    pub fn set_batch(&self, count: usize) {
        self.0.store_u64(BATCH, count as u64, Relaxed);
    }

    /// Adds the first bytes of the batch's next packet. Returns true if there is no room for more packets.
    pub fn add_packet(&self, packet: &[u8]) -> bool {
        let index = self.0.load_u64(BATCH + 8, Relaxed) as usize;
        if index >= MAX_CRASH_BATCH {
            return true;
        }
        let offset = SHOWN + index * SHOWN_SIZE;
        self.0.store_u64(offset, packet.len() as u64, Relaxed);
        self.0.write(offset + 8, packet.get(..MAX_CRASH_START).unwrap_or(packet));
        self.0.store_u64(BATCH + 8, index as u64 + 1, Relaxed);
        false
    }

    fn set(&self, offset: usize, bytes: &[u8], limit: usize) {
        let bytes = bytes.get(..limit).unwrap_or(bytes);
        self.0.store_u64(offset, bytes.len() as u64, Relaxed);
        self.0.write(offset + 8, bytes);
    }

    /// The report, if the box has recorded a cause.
    pub fn report(&self) -> Option<CrashReport> {
        if self.0.load_u64(fault::STATE, Acquire) == 0 {
            return None;
        }
        let mut page = [0; PAGE];
        self.0.read(0, &mut page);
        let word = |offset: usize| match page.get(offset..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => 0,
        };
        let bytes = |offset: usize, limit: usize| {
            let length = usize::try_from(word(offset)).unwrap_or(limit).min(limit);
            page.get(offset + 8..offset + 8 + length).unwrap_or_default().to_vec()
        };
        let shown = |index: usize| {
            let offset = SHOWN + index * SHOWN_SIZE;
            CrashPacket { length: word(offset), start: bytes(offset, MAX_CRASH_START) }
        };
        let shown_count = usize::try_from(word(BATCH + 8)).unwrap_or(MAX_CRASH_BATCH).min(MAX_CRASH_BATCH);
        let register = |index: usize| word(fault::REGISTERS + 8 * index);
        let cause = match word(fault::STATE) {
            fault::EXCEPTION => {
                CrashCause::Exception { vector: word(fault::VECTOR), error_code: word(fault::ERROR_CODE) }
            }
            fault::PANIC => CrashCause::Panic,
            fault::OUT_OF_MEMORY => CrashCause::OutOfMemory,
            fault::VERSION => CrashCause::Version { found: word(fault::VECTOR) },
            other => CrashCause::Unknown(other),
        };
        Some(CrashReport {
            cause,
            address: word(fault::ADDRESS),
            registers: Registers {
                rip: register(0),
                rsp: register(1),
                rflags: register(2),
                general: core::array::from_fn(|index| register(3 + index)),
            },
            element: bytes(NAME, MAX_CRASH_NAME),
            message: bytes(MESSAGE, MAX_CRASH_MESSAGE),
            packet: bytes(PACKET, MAX_CRASH_PACKET),
            batch: CrashBatch { count: word(BATCH), packets: (0..shown_count).map(shown).collect() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapped;
    use crate::memory::hostile::Hostile;
    use alloc::vec;
    use core::ptr::NonNull;

    #[test]
    fn the_first_cause_stays_and_texts_are_cut() {
        let mut words = vec![0u64; PAGE / 8];
        // SAFETY: the vector outlives the memory and is not touched while it is used.
        let memory = unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), PAGE) };
        let page = CrashPage(memory);
        assert_eq!(page.report(), None);
        assert!(page.begin(CrashCause::Panic) && !page.begin(CrashCause::OutOfMemory));
        page.set_element(b"fw/c :: Counter");
        page.set_message(&[b'x'; 1000]);
        page.set_packet(&[7; 60]);
        page.set_batch(200);
        for index in 0..200 {
            assert_eq!(page.add_packet(&vec![8; index]), index >= MAX_CRASH_BATCH);
        }
        let report = page.report().unwrap();
        assert_eq!((report.cause, report.registers), (CrashCause::Panic, Registers::default()));
        assert_eq!(report.element, b"fw/c :: Counter");
        assert_eq!((report.message.len(), report.packet.len()), (MAX_CRASH_MESSAGE, 60));
        let batch = report.batch;
        assert_eq!((batch.count, batch.packets.len()), (200, MAX_CRASH_BATCH));
        for (index, packet) in batch.packets.into_iter().enumerate() {
            assert_eq!(
                packet,
                CrashPacket { length: index as u64, start: vec![8; index.min(MAX_CRASH_START)] }
            );
        }
    }

    #[test]
    fn a_random_page_makes_a_bounded_report() {
        for seed in 0..2_000 {
            let memory = Hostile::new(PAGE, seed);
            if let Some(report) = CrashPage(&memory).report() {
                assert!(report.element.len() <= MAX_CRASH_NAME && report.message.len() <= MAX_CRASH_MESSAGE);
                assert!(report.packet.len() <= MAX_CRASH_PACKET);
                assert!(report.batch.packets.len() <= MAX_CRASH_BATCH);
                assert!(report.batch.packets.iter().all(|packet| packet.start.len() <= MAX_CRASH_START));
            }
        }
    }
}
