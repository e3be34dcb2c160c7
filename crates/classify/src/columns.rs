//! Evaluates a decision diagram on whole batches: each comparison runs over all packets that reach it.
//!
//! Before its first comparison, a word is copied from every packet into a column, one lane per packet. While all
//! packets take the same path, a comparison is one pass over a column, which ends early where they split. From then on,
//! each lane has the number of its next step, in a byte, and each further step is one pass over all lanes, of which it moves those
//! that have its number. No branch depends on a packet, so that none is mispredicted.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::array;

use packet::{MAX_BATCH, lanes_in_range, replace_lanes, transpose_words};

use crate::diagram::{ARRIVED, Comparison, Diagram, END, MAX_STEPS, Place, Step};
use crate::expression::DROP;
use crate::headers::{Base, Headers};
use crate::tables::Tables;
use crate::words::{Column, HEADER_WORDS, Words};

/// Lanes are processed in groups of this size.
const LANES: usize = 16;

/// The scratch memory for decisions, reused from batch to batch.
pub struct Columns {
    columns: Vec<Column>,
    /// For tables: the classes of each field and merge.
    classes: Vec<Column>,
    /// Bitmap of the columns that hold words of the current batch.
    filled: u64,
    /// The lanes whose packets end before a compared word.
    short: Vec<u8>,
    pub(crate) outputs: Box<[u32; MAX_BATCH]>,
}

/// The outputs for the packets of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// All packets go to this output, or `DROP`.
    All(u32),
    /// The output of each packet, or `DROP`.
    Each(&'a [u32]),
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            classes: Vec::new(),
            filled: 0,
            short: Vec::new(),
            outputs: Box::new([DROP; MAX_BATCH]),
        }
    }
}

impl Columns {
    /// Decides `packets`, at most one batch, by a diagram, by tables, or by a diagram until the packets take different
    /// paths, and then by tables. `headers` returns the headers of a packet, and `short` decides packets that end before
    /// a word that is read.
    #[inline(always)]
    pub(crate) fn decide<T>(
        &mut self,
        (words, diagram, tables): (&Words, Option<&Diagram>, Option<&Tables>),
        packets: &[T],
        headers: impl Fn(&T) -> Headers<'_>,
        short: impl Fn(Headers<'_>) -> u32,
    ) -> Decision<'_> {
        let packets = packets.get(..MAX_BATCH).unwrap_or(packets);
        let count = packets.len();
        self.columns.resize(words.words.len(), [0; MAX_BATCH]);
        self.filled = 0;
        self.short.clear();
        let mut all = None;
        if let Some(diagram) = diagram {
            match self.follow((words, diagram), packets, &headers) {
                Ok(output) if self.short.is_empty() => return Decision::All(output),
                Ok(output) => all = Some(output),
                Err(at) if tables.is_none() => self.walk((words, diagram), at, packets, &headers),
                Err(_) => {}
            }
        }
        match (all, tables) {
            (Some(output), _) => self.outputs[..count].fill(output),
            (None, Some(tables)) => self.look_up((words, tables), packets, &headers),
            _ => {}
        }
        for lane in self.short.drain(..).map(usize::from) {
            if let Some(packet) = packets.get(lane) {
                self.outputs[lane] = short(headers(packet));
            }
        }
        Decision::Each(&self.outputs[..count])
    }

    /// Decides the batch by tables; sets `outputs`.
    #[inline(never)]
    fn look_up<T>(
        &mut self,
        (words, tables): (&Words, &Tables),
        packets: &[T],
        headers: &impl Fn(&T) -> Headers<'_>,
    ) {
        for lookup in &tables.lookups {
            self.fill(words, lookup.column, packets, headers);
        }
        self.combine(tables, packets.len());
    }

    /// Decides a batch of `count` packets whose words are in the columns; sets `outputs`.
    #[inline]
    fn combine(&mut self, tables: &Tables, count: usize) {
        self.classes.resize(tables.columns(), [0; MAX_BATCH]);
        for (lookup, classes) in tables.lookups.iter().zip(&mut self.classes) {
            let Some(words) = self.columns.get(usize::from(lookup.column)) else { return };
            lookup.classes(words, classes, count);
        }
        for (number, merge) in (tables.lookups.len()..).zip(&tables.merges) {
            let Some((known, into)) = self.classes.split_at_mut_checked(number) else { return };
            let (left, right) = (known.get(merge.left), known.get(merge.right));
            if let ([into, ..], Some((left, right))) = (into, left.zip(right)) {
                merge.classes(&mut into[..count], &left[..count], &right[..count]);
            }
        }
        let verdicts = &tables.verdicts;
        if let Some((left, right)) = self.classes.get(verdicts.left).zip(self.classes.get(verdicts.right)) {
            verdicts.outputs(&mut self.outputs[..count], &left[..count], &right[..count]);
        }
    }

    /// Follows the steps with the whole batch. Returns the output if all packets share it; otherwise the step where the
    /// paths split.
    #[inline(always)]
    fn follow<T>(
        &mut self,
        (words, diagram): (&Words, &Diagram),
        packets: &[T],
        headers: &impl Fn(&T) -> Headers<'_>,
    ) -> Result<u32, usize> {
        let mut at = 0;
        // Every path through a diagram ends at an output.
        while let Some(Step { comparison, column, target }) = diagram.steps.get(at) {
            let mut holds = Some(true);
            if !comparison.is_always() {
                self.fill(words, *column, packets, headers);
                let column = self.columns.get(usize::from(*column));
                holds = column.and_then(|column| comparison.holds(column, packets.len()));
            }
            match holds {
                None => return Err(at),
                Some(false) => at += 1,
                Some(true) if *target >= END => return Ok(output(*target)),
                Some(true) => at = *target as usize,
            }
        }
        Ok(DROP)
    }

    /// Continues `follow` from step `first`, where the paths split; sets `outputs`. A step leads only to later ones.
    #[inline(never)]
    fn walk<T>(
        &mut self,
        (words, diagram): (&Words, &Diagram),
        first: usize,
        packets: &[T],
        headers: &impl Fn(&T) -> Headers<'_>,
    ) {
        let count = packets.len().next_multiple_of(LANES).min(MAX_BATCH);
        let mut places = [first as Place; MAX_BATCH];
        let places = &mut places[..count];
        for (at, (step, ways)) in diagram.steps.iter().zip(&diagram.ways).enumerate().skip(first) {
            let Step { comparison, column, .. } = step;
            let is_filled = self.filled >> column & 1 != 0;
            if comparison.is_always() || !is_filled && !places.contains(&(at as Place)) {
                continue;
            }
            self.fill(words, *column, packets, headers);
            let Some(column) = self.columns.get(usize::from(*column)) else { continue };
            comparison.advance(places, column, at as Place, *ways);
        }
        let mut ends = [DROP; MAX_STEPS];
        ends.iter_mut().zip(&diagram.ends).for_each(|(end, output)| *end = *output);
        for (output, place) in self.outputs.iter_mut().zip(places) {
            *output = ends[usize::from(*place & !ARRIVED)];
        }
    }

    /// Copies the words of a column from the packets, unless the column is already filled.
    #[inline(always)]
    fn fill<T>(&mut self, words: &Words, number: u16, packets: &[T], headers: &impl Fn(&T) -> Headers<'_>) {
        if self.filled >> number & 1 == 0 {
            self.copy_words(words, number, packets, headers);
        }
    }

    /// Copies the words of a column from the packets.
    #[inline(never)]
    fn copy_words<T>(
        &mut self,
        words: &Words,
        number: u16,
        packets: &[T],
        headers: &impl Fn(&T) -> Headers<'_>,
    ) {
        if let Some(first) = words.header
            && (first..first + HEADER_WORDS as u16).contains(&number)
            && let Some(columns) = self.columns.get_mut(usize::from(first)..)
            && let Some(columns) = columns.first_chunk_mut()
        {
            self.filled |= ((1 << HEADER_WORDS) - 1) << first;
            return gather_header(columns, &mut self.short, packets, |packet| headers(packet).network);
        }
        self.filled |= 1 << number;
        let column = self.columns.get_mut(usize::from(number));
        let Some((column, (base, offset))) = column.zip(words.words.get(usize::from(number))) else {
            return;
        };
        let short = &mut self.short;
        match base {
            Base::Link => gather(column, short, *offset, packets, |packet| headers(packet).link),
            Base::Network => gather(column, short, *offset, packets, |packet| headers(packet).network),
            Base::Transport => gather(column, short, *offset, packets, |packet| headers(packet).transport),
        }
    }
}

/// Copies the word at `offset` of each packet's header to its lane. Lanes of packets that end before the word go to
/// `short`.
#[inline(always)]
fn gather<T>(
    column: &mut Column,
    short: &mut Vec<u8>,
    offset: u16,
    packets: &[T],
    header: impl Fn(&T) -> &[u8],
) {
    let offset = usize::from(offset);
    for (lane, (packet, value)) in packets.iter().zip(column).enumerate() {
        match header(packet).get(offset..offset + 4).and_then(|word| word.first_chunk()) {
            Some(word) => *value = u32::from_ne_bytes(*word),
            None => {
                add_short(short, lane);
            }
        }
    }
}

/// Copies the second to fifth word of each packet's IP header to its lane, four packets at a time. Lanes of packets that end
/// inside the header go to `short`.
#[inline(always)]
fn gather_header<'a, T>(
    columns: &mut [Column; HEADER_WORDS],
    short: &mut Vec<u8>,
    packets: &'a [T],
    header: impl Fn(&T) -> &[u8],
) {
    let mut words = |lane: usize, packet: &'a T| {
        let header: Option<&[u8; 4 + 4 * HEADER_WORDS]> = header(packet).first_chunk();
        header.and_then(|header| header.last_chunk()).unwrap_or_else(|| add_short(short, lane))
    };
    let mut put = |number: usize, headers| {
        for (column, words) in columns.iter_mut().zip(transpose_words(headers)) {
            if let Some(lanes) = column.as_chunks_mut().0.get_mut(number) {
                *lanes = words;
            }
        }
    };
    let (groups, rest) = packets.as_chunks::<4>();
    for (number, group) in (0..MAX_BATCH / 4).zip(groups) {
        put(number, array::from_fn(|lane| words(4 * number + lane, &group[lane])));
    }
    if !rest.is_empty() {
        let first = packets.len() - rest.len();
        let of_rest = |lane| rest.get(lane).map_or(&NO_WORDS, |packet| words(first + lane, packet));
        put(groups.len(), array::from_fn(of_rest));
    }
}

/// Words for lanes that nothing is read from.
const NO_WORDS: [u8; 4 * HEADER_WORDS] = [0; 4 * HEADER_WORDS];

/// Adds a lane to `short`. Returns words for it.
#[cold]
#[inline(never)]
fn add_short(short: &mut Vec<u8>, lane: usize) -> &'static [u8; 4 * HEADER_WORDS] {
    short.push(lane as u8);
    &NO_WORDS
}

/// The output that a final step's target encodes.
#[inline]
fn output(target: u32) -> u32 {
    if target == DROP { DROP } else { target & !END }
}

impl Comparison {
    /// The masked bits, the first value of the range, and its width.
    #[inline(always)]
    fn range(&self) -> (u32, u32, u32) {
        (self.mask, self.low, self.span)
    }

    /// Moves each packet that is at step `at` to `target` if the comparison holds for its word, otherwise to `other`. Places come in
    /// groups of `LANES`.
    #[inline(never)]
    fn advance(&self, places: &mut [Place], words: &Column, at: Place, ways: (Place, Place)) {
        let (groups, _) = places.as_chunks_mut::<LANES>();
        let (words, _) = words.as_chunks::<LANES>();
        for (places, words) in groups.iter_mut().zip(words) {
            replace_lanes(places, at, &lanes_in_range(words, self.range()), ways);
        }
    }

    /// Whether the comparison holds for all of the first `count` words of a column, or for none; `None` if for some.
    #[inline]
    fn holds(&self, words: &Column, count: usize) -> Option<bool> {
        let (mut any, mut all) = (0, u128::MAX);
        let (groups, _) = words.as_chunks::<LANES>();
        for (first, words) in (0..count).step_by(LANES).zip(groups) {
            let used = u128::MAX >> (8 * LANES.saturating_sub(count - first));
            let held = u128::from_le_bytes(lanes_in_range(words, self.range()));
            (any, all) = (any | held & used, all & (held | !used));
            if any != 0 && all != u128::MAX {
                return None;
            }
        }
        Some(any != 0)
    }
}
