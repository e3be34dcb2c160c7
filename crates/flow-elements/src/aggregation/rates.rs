//! Rates by address, in a tree over the address bytes that is deeper where rates are high.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::number_format;

/// Epochs per second; an epoch is 8 ms.
pub(super) const EPOCHS: i64 = 125;
/// EWMA with weight 2^-STABILITY: each epoch moves an average by 1/32 of the difference.
const STABILITY: u32 = 5;
/// Fraction bits of an average.
const SCALE: u32 = 10;
/// Idle epochs after which an average is zero.
const DECAY_EPOCHS: i64 = 100;
/// Memory that Click uses for a counter and for 256 of them, in bytes.
pub(super) const COUNTER_BYTES: usize = 40;
pub(super) const LEVEL_BYTES: usize = 2_080;

/// Two moving averages, forward and reverse.
#[derive(Clone, Copy, Default)]
pub(super) struct Rates {
    averages: [i64; 2],
    current: [i64; 2],
    epoch: i64,
}

impl Rates {
    /// Zero rates, starting at an epoch.
    pub(super) fn starting_at(epoch: i64) -> Rates {
        Rates { epoch, ..Rates::default() }
    }

    /// Completes an epoch.
    fn observe(&mut self) {
        for (average, current) in self.averages.iter_mut().zip(&mut self.current) {
            let scaled = (*current << SCALE) + (1 << (STABILITY - 1));
            *average += (scaled - *average) >> STABILITY;
            *current = 0;
        }
    }

    /// Adds an amount in an epoch.
    pub(super) fn add(&mut self, epoch: i64, direction: usize, amount: i64) {
        if epoch != self.epoch {
            self.observe();
            let empty = epoch.saturating_sub(self.epoch).saturating_sub(1);
            match empty {
                DECAY_EPOCHS.. => self.averages = [0; 2],
                _ => (0..empty).for_each(|_| self.observe()),
            }
            self.epoch = epoch;
        }
        if let Some(current) = self.current.get_mut(direction) {
            *current += amount;
        }
    }

    /// The rates per second.
    pub(super) fn rates(&self) -> [i64; 2] {
        self.averages.map(|average| (average * EPOCHS) >> SCALE)
    }
}

/// The counters for one value of an address byte.
pub(super) struct Part {
    pub(super) rates: Rates,
    pub(super) finer: Option<Box<Level>>,
    /// It is not divided before this epoch.
    pub(super) whole_until: i64,
}

impl Part {
    /// Creates an undivided part with these rates.
    pub(super) fn new(rates: Rates) -> Part {
        Part { rates, finer: None, whole_until: 0 }
    }
}

/// The parts for all values of one address byte.
pub(super) struct Level {
    pub(super) parts: Vec<Option<Part>>,
}

impl Level {
    /// Creates an empty level.
    pub(super) fn new() -> Level {
        Level { parts: (0..256).map(|_| None).collect() }
    }

    /// Memory that Click uses for this level and the finer ones, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let parts = self.parts.iter().flatten();
        LEVEL_BYTES
            + parts
                .map(|part| COUNTER_BYTES + part.finer.as_ref().map_or(0, |level| level.bytes()))
                .sum::<usize>()
    }

    /// Removes finer levels with rates below the limit until `excess` bytes are free. Returns the number of bytes still
    /// to free.
    pub(super) fn fold(&mut self, epoch: i64, limit: i64, mut excess: usize) -> usize {
        for part in self.parts.iter_mut().flatten() {
            let Some(level) = &mut part.finer else { continue };
            excess = level.fold(epoch, limit, excess);
            if excess == 0 {
                return 0;
            }
            part.rates.add(epoch, 0, 0);
            if part.rates.averages.iter().all(|average| *average < limit) {
                excess = excess.saturating_sub(level.bytes());
                part.finer = None;
            }
        }
        excess
    }

    /// Appends a line to `text` for each part with a rate: its address prefixed by `before`, and its rates.
    pub(super) fn print(&mut self, epoch: i64, before: &str, text: &mut String) {
        for (byte, part) in self.parts.iter_mut().enumerate() {
            let Some(part) = part else { continue };
            if part.rates.averages.iter().all(|average| *average <= 0) {
                continue;
            }
            let name = if before.is_empty() { byte.to_string() } else { format!("{before}.{byte}") };
            part.rates.add(epoch, 0, 0);
            let [forward, reverse] =
                part.rates.averages.map(|average| number_format::signed_fixed(average * EPOCHS, SCALE));
            text.push_str(&format!("{name}\t{forward}\t{reverse}\n"));
            if let Some(level) = &mut part.finer {
                level.print(epoch, &format!("\t{name}"), text);
            }
        }
    }
}
