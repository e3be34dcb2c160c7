//! One step of a listing: a test of four bytes and where to go by its outcome.

use alloc::format;
use alloc::string::String;

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// Another step.
    Step(usize),
    /// An output.
    Output(u32),
    /// The packet is dropped.
    Drop,
    /// The rule does not match: on to what follows it.
    Next,
}

/// A test: the four bytes at `offset` under `mask` equal `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Offset in the numbering of listings: link header from 0 (two bytes before it), network header from 256,
    /// transport header from 512; or just the packet's bytes.
    pub(super) offset: u32,
    pub(super) mask: u32,
    pub(super) value: u32,
    /// Where to go when they differ, and when they are equal.
    pub(super) targets: [Target; 2],
    /// The outcome when the packet is too short.
    pub(super) short: bool,
}

impl Step {
    /// A step that always has the outcome "equal".
    pub(super) fn always(yes: Target) -> Self {
        Self { offset: 0, mask: 0, value: 0, targets: [yes, yes], short: false }
    }

    pub(super) fn yes(&self) -> Target {
        self.targets[1]
    }

    pub(super) fn no(&self) -> Target {
        self.targets[0]
    }

    /// The test alone, for comparing steps.
    pub(super) fn test(&self) -> (u32, u32, u32, bool) {
        (self.offset, self.mask, self.value, self.short)
    }

    /// Length of packet (in the numbering of offsets) that the test needs.
    pub(super) fn reach(&self) -> u32 {
        if self.mask == 0 { 0 } else { self.offset + 4 - self.mask.trailing_zeros() / 8 }
    }

    /// Whether the test looks at one bit, so that it can be turned round.
    fn is_bit(&self) -> bool {
        self.mask.is_power_of_two()
    }

    /// Turns a test of one bit round, when it is one.
    pub(super) fn turn_round(&mut self) -> bool {
        if self.is_bit() {
            self.value ^= self.mask;
            self.targets.swap(0, 1);
            self.short = !self.short;
        }
        self.is_bit()
    }

    /// The outcome of `later` that is certain once this test had `outcome` on a packet of at least `known` bytes.
    pub(super) fn decides(&self, outcome: bool, later: &Step, known: u32) -> Option<bool> {
        if later.mask == 0 {
            return Some(true);
        }
        if self.offset != later.offset {
            return None;
        }
        let common = self.mask & later.mask;
        let certain = match outcome {
            true if common == later.mask => self.value & common == later.value,
            // All that is known is that one bit, or all bits together, are otherwise.
            false if self.is_bit() && self.mask == later.mask && self.value != later.value => true,
            false if common == self.mask && later.value & common == self.value => false,
            _ => return None,
        };
        // A packet that was too short for this test may not be for the later one.
        let sound = self.short != outcome
            || self.reach() <= known
            || (self.reach() <= later.reach() && certain == later.short);
        sound.then_some(certain)
    }

    /// Whether some bytes could pass both tests, so that one test could stand for both.
    ///
    /// With `strict` a packet too short for either must fare the same.
    pub(super) fn is_compatible(&self, other: &Step, strict: bool) -> bool {
        if self.mask == 0 || other.mask == 0 {
            return true;
        }
        let common = self.mask & other.mask;
        self.offset == other.offset
            && !(strict && other.short != self.short && self.reach() < other.reach())
            && self.value & common == other.value & common
    }

    /// The test that holds when this one or `other`, next on the way of "no", does: both but for the bit in which
    /// their values differ.
    pub(super) fn either(&self, other: &Step) -> Option<Step> {
        let differing = self.value ^ other.value;
        let alike = self.offset != 0
            && self.offset == other.offset
            && self.mask != 0
            && self.mask == other.mask
            && (self.short || !other.short)
            && self.yes() == other.yes()
            && differing & differing.wrapping_sub(1) == 0;
        let joined = Step { value: self.value & !differing, mask: self.mask & !differing, ..*self };
        (alike && joined.reach() == self.reach())
            .then_some(Step { targets: [other.no(), self.yes()], ..joined })
    }

    /// The line of step `number`.
    pub(super) fn line(&self, number: usize) -> String {
        let Self { offset, value, mask, .. } = self;
        let (yes, no) = (name(self.yes()), name(self.no()));
        let short = if self.short { "  short->yes" } else { "" };
        format!("{number:2} {offset:3}/{value:08x}%{mask:08x}  yes->{yes}  no->{no}{short}\n")
    }
}

fn name(target: Target) -> String {
    match target {
        Target::Step(number) => format!("step {number}"),
        Target::Output(output) => format!("[{output}]"),
        Target::Drop => String::from("[X]"),
        Target::Next => String::from("[-]"),
    }
}
