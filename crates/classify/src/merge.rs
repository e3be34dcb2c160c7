//! Compiles a rule set into tables of classes.
//!
//! The classes of two fields are merged into classes of pairs: two pairs are one class if the same terms accept them.
//! The pair of columns with the fewest combinations is merged first, until two columns are left, whose combinations have
//! outputs. Every merge is a table with one cell for each combination.
//!
//! Which terms accept a pair is the intersection of two rows of bits. Most bits of a row belong to terms that test only
//! one of the two columns, so rows are divided: the bits of terms that test only the left column, only the right one, or
//! both. The first two get a number once for each class; only the third, which are few, are intersected for each pair.

use alloc::vec;
use alloc::vec::Vec;

use crate::flat::Flat;
use crate::index::Index;
use crate::pace::Pace;
use crate::row_store::RowStore;
use crate::rows::scatter;
use crate::slots::{NONE, Slots};
use crate::tables::{Lookup, Merge, Tables, Verdicts};

/// Maximum classes of a field or a merged column: what fits the entries of the tables.
const MAX_CLASSES: usize = 1 << 15;

/// In tables of numbers: a pair that has no number yet.
const NEW: u16 = u16::MAX;

/// The classes of a column, with the terms that each accepts.
struct Column {
    /// Its number among the columns of a batch.
    number: usize,
    /// The slots whose terms test the column.
    tests: Vec<u64>,
    /// For each class the slots of terms that accept it.
    rows: RowStore,
    /// Number of classes.
    count: usize,
}

/// What a merge needs to know of the classes of one of its columns.
struct Side {
    /// For each class the number of the set of accepted terms that test only this column.
    alone: Vec<u32>,
    /// How many such sets there are.
    sets: usize,
    /// For each class where the accepted terms begin that test both columns.
    starts: Vec<usize>,
    both: Vec<(u32, u64)>,
}

impl Side {
    /// The accepted terms that test both columns.
    #[inline]
    fn both(&self, class: usize) -> &[(u32, u64)] {
        let end = self.starts.get(class + 1).copied().unwrap_or(self.both.len());
        self.starts.get(class).and_then(|start| self.both.get(*start..end)).unwrap_or_default()
    }
}

/// The rule set to compile.
pub(crate) struct RuleTerms<'a> {
    pub(crate) indexes: &'a [Index],
    pub(crate) slots: &'a Slots,
    /// The rule of each slot.
    pub(crate) slot_rules: &'a [u32],
    /// The first rule that matches every packet.
    pub(crate) fallback: u32,
    /// The output of each rule, and of no rule.
    pub(crate) output: &'a dyn Fn(u32) -> u32,
}

impl Tables {
    /// Compiles a rule set into tables of at most `budget` bytes. Returns `None` if they would be larger.
    pub(crate) async fn new(terms: &RuleTerms<'_>, budget: usize, pace: &Pace) -> Option<Self> {
        // The rows of bits are needed only here. They may take as much again.
        let (mut left, mut left_for_rows) = (budget, budget);
        let mut lookups = Vec::with_capacity(terms.indexes.len());
        let mut columns = Vec::with_capacity(terms.indexes.len());
        for (number, index) in terms.indexes.iter().enumerate() {
            let (column, parts) = Column::of_field(number, index, terms.slots, left_for_rows, pace).await?;
            left_for_rows = left_for_rows.checked_sub(column.row_bytes())?;
            let flat = Flat::new(&parts, index.field.width, left, pace).await?;
            left = left.checked_sub(flat.bytes())?;
            lookups.push(Lookup::new(index, flat));
            columns.push(column);
        }
        let mut merges = Vec::new();
        let nothing = vec![0; terms.slots.len().div_ceil(64).max(1)];
        while columns.len() > 3 {
            let number = lookups.len() + merges.len();
            let (high, low) = fewest_combinations(&columns)?;
            let (one, other) = (columns.swap_remove(high), columns.swap_remove(low));
            let (merge, column) = merge(&one, &other, number, &nothing, (left, left_for_rows), pace).await?;
            left = left.checked_sub(size_of_val(&merge.cells[..]))?;
            left_for_rows = left_for_rows.checked_sub(column.row_bytes())?;
            merges.push(merge);
            columns.push(column);
        }
        // Of three columns, one is merged into both others: that without which the fewest terms are left that test both. Each
        // of the two takes on the terms that do not need the other, so that the last table tells apart only what depends on
        // both.
        if let [a, b, c] = &columns[..] {
            let others = [common(b, c), common(a, c), common(a, b)];
            if let Some(shared) = (0..3).min_by_key(|column| others[*column]) {
                columns.swap(shared, 2);
            }
        }
        if let [one, other, shared] = &columns[..] {
            let of_other =
                one.tests.iter().zip(&other.tests).map(|(one, other)| other & !one).collect::<Vec<u64>>();
            let not_of_other = other.tests.iter().map(|tests| !tests).collect::<Vec<u64>>();
            let mut merged = Vec::with_capacity(2);
            for (column, except) in [(one, of_other), (other, not_of_other)] {
                let number = lookups.len() + merges.len();
                let (merge, column) =
                    merge(column, shared, number, &except, (left, left_for_rows), pace).await?;
                left = left.checked_sub(size_of_val(&merge.cells[..]))?;
                left_for_rows = left_for_rows.checked_sub(column.row_bytes())?;
                merges.push(merge);
                merged.push(column);
            }
            columns = merged;
        }
        let verdicts = match &columns[..] {
            [column] => Verdicts::of_column(column, terms, left, pace).await?,
            [one, other] => Verdicts::of_pair(one, other, terms, left, pace).await?,
            _ => return None,
        };
        Some(Self { lookups, merges, verdicts })
    }
}

/// The indexes of the two columns, the higher one first, that have the fewest combinations of classes.
fn fewest_combinations(columns: &[Column]) -> Option<(usize, usize)> {
    let pairs = (1..columns.len()).flat_map(|high| (0..high).map(move |low| (high, low)));
    pairs.min_by_key(|(high, low)| columns[*high].count * columns[*low].count)
}

/// The number of terms that test both columns.
fn common(one: &Column, other: &Column) -> u32 {
    one.tests.iter().zip(&other.tests).map(|(one, other)| (one & other).count_ones()).sum()
}

impl Column {
    /// The classes of a field's values, numbered by their first value, and the parts of the field.
    async fn of_field(
        number: usize,
        index: &Index,
        slots: &Slots,
        most: usize,
        pace: &Pace,
    ) -> Option<(Self, Vec<(u32, u32)>)> {
        let words = slots.len().div_ceil(64).max(1);
        let mut numbers = vec![NONE; index.rows.len()];
        let mut rows = RowStore::new(words);
        let mut count = 0;
        let mut parts = Vec::with_capacity(index.parts.len());
        for (start, class) in &index.parts {
            let number = numbers.get_mut(*class as usize)?;
            if *number == NONE {
                *number = count;
                count += 1;
                pace.spend(words).await;
                if rows.bytes() > most {
                    return None;
                }
                rows.push((0..words).map(|word| index.rows.word(*class, word)));
            }
            parts.push((*start, *number));
        }
        let mut tests = vec![0; words];
        for (slot, entry) in slots.iter().enumerate() {
            pace.spend(3).await;
            if entry.is_some_and(|(_, term)| term.set(index.number).is_some()) {
                tests[slot / 64] |= 1 << (slot % 64);
            }
        }
        let count = count as usize;
        (count <= MAX_CLASSES).then_some((Self { number, tests, rows, count }, parts))
    }

    /// Bytes of the rows.
    fn row_bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// The row of a class.
    fn row(&self, class: usize) -> &[u64] {
        self.rows.row(class)
    }

    /// Divides the accepted terms of each class, for a merge: terms in `tests` test this column, those in `others` the other.
    async fn side(&self, tests: &[u64], others: &[u64], pace: &Pace) -> Side {
        let mut numbers = Numbers::new(self.count);
        // The first class of each set.
        let mut firsts: Vec<usize> = Vec::new();
        let (alone, starts) = (Vec::with_capacity(self.count), Vec::with_capacity(self.count));
        let mut side = Side { alone, sets: 0, starts, both: Vec::new() };
        for class in 0..self.count {
            pace.spend(2 * self.tests.len()).await;
            let alone_in = |class: usize| {
                let masks = tests.iter().zip(others);
                self.row(class).iter().zip(masks).map(|(bits, (tests, others))| bits & tests & !others)
            };
            let number = numbers.place(hash(0, (0..).zip(alone_in(class))), |number| {
                firsts.get(usize::from(number)).is_some_and(|first| alone_in(*first).eq(alone_in(class)))
            });
            if *number == NEW {
                *number = firsts.len() as u16;
                firsts.push(class);
            }
            side.alone.push(u32::from(*number));
            side.starts.push(side.both.len());
            let both = self.row(class).iter().zip(tests.iter().zip(others));
            let both = (0u32..).zip(both.map(|(bits, (tests, others))| bits & tests & others));
            side.both.extend(both.filter(|(_, bits)| *bits != 0));
        }
        side.sets = firsts.len();
        side
    }
}

/// Merges two columns into the column `number`. Terms in `except` are not taken on: the classes do not depend on them. The
/// table may take `bytes`, the rows of its classes `row_bytes`.
async fn merge(
    left: &Column,
    right: &Column,
    number: usize,
    except: &[u64],
    (bytes, row_bytes): (usize, usize),
    pace: &Pace,
) -> Option<(Merge, Column)> {
    let combinations = left.count.checked_mul(right.count)?;
    if combinations.checked_mul(2)? > bytes {
        return None;
    }
    let mut cells: Vec<u16> = Vec::with_capacity(combinations);
    let without = |tests: &[u64]| tests.iter().zip(except).map(|(tests, except)| tests & !except).collect();
    let (left_tests, right_tests): (Vec<u64>, Vec<u64>) = (without(&left.tests), without(&right.tests));
    let one = left.side(&left_tests, &right_tests, pace).await;
    let other = right.side(&right_tests, &left_tests, pace).await;
    // The class of each pair of numbers if no term that tests both columns accepts it.
    let mut apart = vec![NEW; one.sets * other.sets];
    let mut together = Numbers::new(combinations);
    let mut rows = RowStore::new(left.tests.len());
    for class in 0..left.count {
        pace.spend(2 * right.count + 1).await;
        let (alone, both) = (one.alone[class], one.both(class));
        for (with, with_alone) in other.alone.iter().enumerate() {
            let pair = u64::from(alone) << 32 | u64::from(*with_alone);
            let common = intersection(both, other.both(with));
            let rows_of_both = || left.row(class).iter().zip(right.row(with)).zip(except);
            let row = || rows_of_both().map(|((one, other), except)| one & other | except);
            let known = if common.clone().next().is_some() {
                together.place(hash(pair, common), |number| {
                    row().eq(rows.row(usize::from(number)).iter().copied())
                })
            } else {
                apart.get_mut(alone as usize * other.sets + *with_alone as usize)?
            };
            let is_new = *known == NEW;
            if is_new {
                if rows.len() == MAX_CLASSES || rows.bytes() > row_bytes {
                    return None;
                }
                *known = rows.len() as u16;
                rows.push(row());
            }
            cells.push(*known);
            if is_new {
                pace.spend(except.len()).await;
            }
        }
    }
    let tests = left_tests.iter().zip(&right_tests).map(|(one, other)| one | other).collect();
    let merge = Merge { left: left.number, right: right.number, width: right.count as u32, cells };
    Some((merge, Column { number, tests, count: rows.len(), rows }))
}

/// Numbers of sets, found by a hash of the set.
struct Numbers(Vec<u16>);

impl Numbers {
    /// Room for this many sets, at most [`MAX_CLASSES`].
    fn new(sets: usize) -> Self {
        Self(vec![NEW; (2 * sets.min(MAX_CLASSES)).next_power_of_two()])
    }

    /// The place of the number of a set; [`NEW`] if it has none. `is_same` tells whether a number is that of the set.
    fn place(&mut self, hash: u64, is_same: impl Fn(u16) -> bool) -> &mut u16 {
        let mask = self.0.len() - 1;
        let mut place = hash as usize & mask;
        while self.0[place] != NEW && !is_same(self.0[place]) {
            place = (place + 1) & mask;
        }
        &mut self.0[place]
    }
}

/// A hash of the words of a set.
fn hash(start: u64, words: impl Iterator<Item = (u32, u64)>) -> u64 {
    words.fold(start, |hash, (word, bits)| match bits {
        0 => hash,
        _ => scatter(hash ^ bits.rotate_left(word)),
    })
}

/// The bits that both have.
#[inline]
fn intersection<'a>(
    mut one: &'a [(u32, u64)],
    mut other: &'a [(u32, u64)],
) -> impl Iterator<Item = (u32, u64)> + Clone + 'a {
    core::iter::from_fn(move || {
        while let ([(word, bits), rest @ ..], [(with, with_bits), with_rest @ ..]) = (one, other) {
            let common = if word == with { bits & with_bits } else { 0 };
            (one, other) =
                (if word <= with { rest } else { one }, if with <= word { with_rest } else { other });
            if common != 0 {
                return Some((*word, common));
            }
        }
        None
    })
}

impl RuleTerms<'_> {
    /// The lowest rule of these terms.
    #[inline]
    fn first_rule(&self, words: impl Iterator<Item = (u32, u64)>) -> u32 {
        let mut first = self.fallback;
        for (word, mut bits) in words {
            while bits != 0 {
                let slot = 64 * word as usize + bits.trailing_zeros() as usize;
                first = first.min(self.slot_rules.get(slot).copied().unwrap_or(NONE));
                bits &= bits - 1;
            }
        }
        first
    }

    /// For each class the lowest rule of the accepted terms that do not test the `other` column.
    async fn first_rules(&self, column: &Column, other: &[u64], pace: &Pace) -> Vec<u32> {
        let mut rules = Vec::with_capacity(column.count);
        for class in 0..column.count {
            pace.spend(8 * column.tests.len()).await;
            let words = (0u32..).zip(column.row(class)).zip(column.tests.iter().zip(other));
            rules.push(
                self.first_rule(words.map(|((word, bits), (tests, other))| (word, bits & tests & !other))),
            );
        }
        rules
    }
}

impl Verdicts {
    /// The outputs of the classes of the only column.
    async fn of_column(column: &Column, terms: &RuleTerms<'_>, most: usize, pace: &Pace) -> Option<Self> {
        if column.count > most {
            return None;
        }
        let mut verdicts = Self {
            left: column.number,
            right: column.number,
            width: 0,
            cells: Vec::new(),
            outputs: Vec::new(),
        };
        let none = vec![0; column.tests.len()];
        let numbers = verdicts.number_outputs(terms)?;
        let rules = terms.first_rules(column, &none, pace).await.into_iter();
        verdicts.cells = rules.map(|rule| number_of(&numbers, rule)).collect();
        Some(verdicts)
    }

    /// The outputs of the combinations of the last two columns.
    async fn of_pair(
        left: &Column,
        right: &Column,
        terms: &RuleTerms<'_>,
        most: usize,
        pace: &Pace,
    ) -> Option<Self> {
        let combinations =
            left.count.checked_mul(right.count).filter(|combinations| *combinations <= most)?;
        let mut verdicts = Self {
            left: left.number,
            right: right.number,
            width: right.count as u32,
            cells: Vec::with_capacity(combinations),
            outputs: Vec::new(),
        };
        let one = left.side(&left.tests, &right.tests, pace).await;
        let other = right.side(&right.tests, &left.tests, pace).await;
        let numbers = verdicts.number_outputs(terms)?;
        let with_rules = terms.first_rules(right, &left.tests, pace).await;
        // The right classes by the words in which they have terms that test both columns: few share one with a left class.
        let mut by_word = vec![Vec::new(); left.tests.len()];
        for with in 0..right.count {
            pace.spend(2).await;
            other.both(with).iter().for_each(|(word, bits)| by_word[*word as usize].push((with, *bits)));
        }
        let mut firsts = Vec::with_capacity(right.count);
        for (class, rule) in terms.first_rules(left, &right.tests, pace).await.into_iter().enumerate() {
            pace.spend(right.count / 4 + 1).await;
            firsts.clear();
            firsts.extend(with_rules.iter().map(|with_rule| rule.min(*with_rule)));
            for (word, bits) in one.both(class) {
                for (with, with_bits) in
                    by_word[*word as usize].iter().filter(|(_, with_bits)| bits & with_bits != 0)
                {
                    firsts[*with] =
                        firsts[*with].min(terms.first_rule([(*word, bits & with_bits)].into_iter()));
                }
            }
            verdicts.cells.extend(firsts.iter().map(|first| number_of(&numbers, *first)));
        }
        Some(verdicts)
    }

    /// Numbers the outputs. Returns the number for each rule; that of the fallback is 0. Returns `None` if there are too many outputs.
    fn number_outputs(&mut self, terms: &RuleTerms<'_>) -> Option<Vec<u8>> {
        let mut number = |rule: u32| {
            let output = (terms.output)(rule);
            let known = self.outputs.iter().position(|known| *known == output);
            let number = known.unwrap_or_else(|| {
                self.outputs.push(output);
                self.outputs.len() - 1
            });
            u8::try_from(number).ok()
        };
        number(terms.fallback)?;
        let mut numbers = vec![
            0;
            terms
                .slot_rules
                .iter()
                .filter(|rule| **rule != NONE)
                .max()
                .map_or(0, |last| *last as usize + 1)
        ];
        for rule in terms.slot_rules.iter().filter(|rule| **rule != NONE) {
            numbers[*rule as usize] = number(*rule)?;
        }
        Some(numbers)
    }
}

/// The number of the output of a rule. That of the fallback is 0.
#[inline]
fn number_of(numbers: &[u8], rule: u32) -> u8 {
    numbers.get(rule as usize).copied().unwrap_or(0)
}
