//! Forbidden operations, to test that the sandbox stops them.

use crate::command::Fault;
use alloc::vec::Vec;
use boundary::{Mapped, SharedMemory};
use core::arch::asm;
use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;
use random::Random;

/// Faults.
pub(crate) fn fault(kind: Fault) {
    // SAFETY: there is none: each of these breaks a rule on purpose, and none comes back.
    unsafe {
        match kind {
            Fault::Null => asm!("mov byte ptr [8], 1"),
            Fault::Stack => drop(black_box(recurse(&[0; 4096]))),
            Fault::WriteText => asm!("mov byte ptr [{}], 1", in(reg) fault as *const ()),
            Fault::ExecuteData => {
                let data = Vec::from([0xc3u8; 64]);
                asm!("call {}", in(reg) data.as_ptr());
            }
            Fault::Invalid => asm!("ud2"),
            Fault::Divide => {
                asm!("xor ecx, ecx", "div ecx", out("rcx") _, inout("rax") 1 => _, inout("rdx") 0 => _)
            }
            Fault::Privileged => asm!("mov rax, cr3", out("rax") _),
            Fault::NonCanonical => asm!("mov rax, 0x8000000000000000", "mov byte ptr [rax], 1", out("rax") _),
            Fault::SystemCall => asm!("syscall", inout("rax") 39u64 => _, out("rcx") _, out("r11") _),
            // To own a word that others wait for, by its address on the stack.
            Fault::OtherFutex => {
                let word = 0u32;
                asm!("syscall", inout("rax") 202u64 => _, in("rdi") &raw const word, in("rsi") 6u64, in("rdx") 0u64,
                    in("r10") 0u64, out("rcx") _, out("r11") _)
            }
            Fault::OtherPort => asm!("out 0x60, al"),
        }
    }
}

/// Makes a system call: its number and up to six arguments, which are decimal numbers, or pointers to bytes in
/// hexadecimal after a `%`. Its result; nothing if the text is something else.
pub(crate) fn system_call(text: &[u8]) -> Option<isize> {
    let text = core::str::from_utf8(text).ok()?;
    let (mut words, mut count, mut pointees) = ([0isize; 7], 0, Vec::new());
    for word in text.split_ascii_whitespace() {
        *words.get_mut(count)? = match word.strip_prefix('%') {
            Some(digits) => {
                let pairs = (0..digits.len() / 2).map(|at| digits.get(2 * at..2 * at + 2));
                let byte = |pair: Option<&str>| u8::from_str_radix(pair?, 16).ok();
                pointees.push(pairs.map(byte).collect::<Option<Vec<u8>>>()?);
                pointees.last_mut()?.as_mut_ptr() as isize
            }
            None => word.parse().ok()?,
        };
        count += 1;
    }
    let [number, first, second, third, fourth, fifth, sixth] = words;
    let result;
    // SAFETY: there is none beyond the pointees, which live until the call is over: the test that orders the call answers
    // for what it does to this box.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second, in("rdx") third,
            in("r10") fourth, in("r8") fifth, in("r9") sixth, out("rcx") _, out("r11") _);
    }
    Some(result)
}

#[expect(unconditional_recursion, reason = "the stack is to overflow")]
fn recurse(above: &[u8; 4096]) -> u8 {
    let here = black_box([above[7].wrapping_add(1); 4096]);
    recurse(&here).wrapping_add(here[9])
}

/// Takes memory until there is none.
pub(crate) fn take_all_memory() {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(Vec::<u8>::with_capacity(60_000)));
    }
}

/// Writes random words over the shared region.
pub(crate) struct Scribbler {
    random: Random,
}

impl Scribbler {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    pub(crate) fn scribble(&mut self, region: &Mapped) -> ! {
        loop {
            let value = self.random.next();
            // Half of the words go where indices, frames and pages are, half anywhere.
            let span = if value & 1 == 0 { 0x1_4000 } else { region.size() };
            let offset = self.random.next() as usize % span;
            let word = if value & 2 == 0 { value >> 32 } else { value & 0xff };
            region.store_u32(offset & !3, word as u32, Relaxed);
        }
    }
}
