//! Programs of classic BPF, with which Linux selects packets for a socket: their instructions, and an assembler.

use alloc::vec::Vec;

/// An instruction of classic BPF: `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInstruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip if a condition holds.
    pub jt: u8,
    /// Instructions to skip if it does not hold.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// Operations: those that end in `_X` have the index register as operand, the others the constant.
#[expect(missing_docs, reason = "the names of the operations say it")]
pub mod operation {
    pub const LOAD: u16 = 0x00;
    pub const LOAD_X_MEMORY: u16 = 0x61;
    pub const LOAD_MEMORY: u16 = 0x60;
    pub const LOAD_LENGTH: u16 = 0x80;
    pub const STORE: u16 = 0x02;
    pub const TO_X: u16 = 0x07;
    pub const ADD: u16 = 0x04;
    pub const ADD_X: u16 = 0x0c;
    pub const MULTIPLY: u16 = 0x24;
    pub const AND: u16 = 0x54;
    pub const SHIFT_LEFT: u16 = 0x64;
    pub const SHIFT_RIGHT: u16 = 0x74;
    pub const XOR: u16 = 0xa4;
    pub const XOR_X: u16 = 0xac;
    pub const JUMP: u16 = 0x05;
    pub const IF_EQUAL: u16 = 0x15;
    pub const IF_GREATER: u16 = 0x25;
    pub const IF_NOT_LESS: u16 = 0x35;
    pub const IF_NOT_LESS_THAN_X: u16 = 0x3d;
    pub const RETURN: u16 = 0x06;
    pub const RETURN_VALUE: u16 = 0x16;
    // Loads from the packet, at the constant.
    pub const WORD_AT: u16 = 0x20;
    pub const HALF_AT: u16 = 0x28;
    // The same, at the sum of the index register and the constant.
    pub const WORD: u16 = 0x40;
    pub const HALF: u16 = 0x48;
    pub const BYTE: u16 = 0x50;
}

/// Where [`operation::HALF_AT`] finds the EtherType of a packet instead of its bytes (`SKF_AD_OFF + SKF_AD_PROTOCOL`).
pub const ETHERTYPE: u32 = 0xffff_f000;
/// Where loads find the Ethernet header, for programs that see a packet without it (`SKF_LL_OFF`).
pub const ETHERNET: u32 = 0xffe0_0000;

use operation::{
    ADD, ADD_X, AND, BYTE, HALF, HALF_AT, IF_EQUAL, IF_GREATER, IF_NOT_LESS, IF_NOT_LESS_THAN_X, JUMP, LOAD,
    LOAD_LENGTH, LOAD_MEMORY, LOAD_X_MEMORY, MULTIPLY, RETURN, RETURN_VALUE, SHIFT_LEFT, SHIFT_RIGHT, STORE,
    TO_X, WORD, WORD_AT, XOR, XOR_X,
};

/// A mixing step of a hash that programs can compute: a factor, a shift to the right whose result is added without carry, and
/// another factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix(pub u32, pub u32, pub u32);

impl Mix {
    /// Mixes a word.
    #[inline]
    #[must_use]
    pub const fn apply(self, word: u32) -> u32 {
        let Self(before, shift, after) = self;
        let mixed = word.wrapping_mul(before);
        (mixed ^ mixed >> shift).wrapping_mul(after)
    }
}

/// A place in a program that jumps lead to.
pub type Label = usize;

/// A program in the making. The last word of the scratch memory belongs to [`mix`](Self::mix).
#[derive(Debug, Default)]
pub struct Program {
    code: Vec<FilterInstruction>,
    /// Where each label is.
    labels: Vec<usize>,
    /// Jumps, and the labels that they lead to.
    jumps: Vec<(usize, Label)>,
}

/// The place of the scratch memory that [`Program::mix`] uses.
const MIXED: u32 = 15;

impl Program {
    /// A new label, which must be placed.
    pub fn label(&mut self) -> Label {
        self.labels.push(0);
        self.labels.len() - 1
    }

    /// Puts a label at the end of the program.
    pub fn place(&mut self, label: Label) {
        if let Some(place) = self.labels.get_mut(label) {
            *place = self.code.len();
        }
    }

    /// Adds an instruction.
    pub fn add(&mut self, code: u16, k: u32) {
        self.code.push(FilterInstruction { code, jt: 0, jf: 0, k });
    }

    /// Jumps.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.add(JUMP, 0);
    }

    /// Jumps if a condition holds.
    pub fn when(&mut self, code: u16, k: u32, label: Label) {
        self.code.push(FilterInstruction { code, jt: 0, jf: 1, k });
        self.jump(label);
    }

    /// Jumps if it does not hold.
    pub fn unless(&mut self, code: u16, k: u32, label: Label) {
        self.code.push(FilterInstruction { code, jt: 1, jf: 0, k });
        self.jump(label);
    }

    /// Loads from the packet: `at` bytes behind an offset in memory.
    pub fn load(&mut self, size: u16, base: u32, at: u32) {
        self.add(LOAD_X_MEMORY, base);
        self.add(size, at);
    }

    /// Jumps if the packet ends less than `length` bytes behind an offset in memory.
    pub fn need(&mut self, base: u32, length: u32, label: Label) {
        self.add(LOAD_MEMORY, base);
        self.add(ADD, length);
        self.add(TO_X, 0);
        self.add(LOAD_LENGTH, 0);
        self.unless(IF_NOT_LESS_THAN_X, 0, label);
    }

    /// Mixes the accumulator.
    pub fn mix(&mut self, Mix(before, shift, after): Mix) {
        self.add(MULTIPLY, before);
        self.add(STORE, MIXED);
        self.add(SHIFT_RIGHT, shift);
        self.add(LOAD_X_MEMORY, MIXED);
        self.add(XOR_X, 0);
        self.add(MULTIPLY, after);
    }

    /// Stores a constant in the scratch memory.
    pub fn store(&mut self, place: u32, value: u32) {
        self.add(LOAD, value);
        self.add(STORE, place);
    }

    /// The finished program.
    pub fn finish(mut self) -> Vec<FilterInstruction> {
        for (at, label) in self.jumps {
            let target = self.labels.get(label).copied().unwrap_or_default();
            if let Some(jump) = self.code.get_mut(at) {
                // Jumps lead forward only.
                jump.k = target.saturating_sub(at + 1) as u32;
            }
        }
        self.code
    }
}

/// Runs a program as Linux does, for tests: on the part of a frame that starts at byte `start`. A load beyond the frame ends it
/// with 0, and so does an operation that [`operation`] lacks.
#[must_use]
pub fn run(program: &[FilterInstruction], frame: &[u8], start: usize, ethertype: u16) -> u32 {
    let packet = frame.get(start..).unwrap_or_default();
    let (mut a, mut x, mut memory, mut next) = (0u32, 0u32, [0u32; 16], 0usize);
    while let Some(FilterInstruction { code, jt, jf, k }) = program.get(next).copied() {
        next += 1;
        let load = |at: u32, size: usize| {
            let bytes = match at.checked_sub(ETHERNET) {
                Some(at) => frame.get(at as usize..),
                None => packet.get(at as usize..),
            };
            Some(bytes?.get(..size)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let mut branch = |holds: bool| next += usize::from(if holds { jt } else { jf });
        let place = k as usize % memory.len();
        let loaded = match code {
            HALF_AT if k == ETHERTYPE => Some(u32::from(ethertype)),
            WORD_AT => load(k, 4),
            HALF_AT => load(k, 2),
            WORD => load(x.wrapping_add(k), 4),
            HALF => load(x.wrapping_add(k), 2),
            BYTE => load(x.wrapping_add(k), 1),
            LOAD => Some(k),
            LOAD_LENGTH => Some(packet.len() as u32),
            LOAD_MEMORY => Some(memory[place]),
            _ => Some(a),
        };
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
        match code {
            WORD_AT | HALF_AT | WORD | HALF | BYTE | LOAD | LOAD_LENGTH | LOAD_MEMORY => {}
            LOAD_X_MEMORY => x = memory[place],
            STORE => memory[place] = a,
            ADD => a = a.wrapping_add(k),
            ADD_X => a = a.wrapping_add(x),
            MULTIPLY => a = a.wrapping_mul(k),
            AND => a &= k,
            SHIFT_LEFT => a <<= k & 31,
            SHIFT_RIGHT => a >>= k & 31,
            XOR => a ^= k,
            XOR_X => a ^= x,
            TO_X => x = a,
            JUMP => next += k as usize,
            IF_EQUAL => branch(a == k),
            IF_GREATER => branch(a > k),
            IF_NOT_LESS => branch(a >= k),
            IF_NOT_LESS_THAN_X => branch(a >= x),
            RETURN => return k,
            RETURN_VALUE => return a,
            _ => return 0,
        }
    }
    0
}
