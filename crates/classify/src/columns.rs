//! Evaluates a decision diagram on whole batches: each comparison runs over all packets that reach it.
//!
//! Before its first comparison, a word is copied from every packet into a column, one lane per packet. While all
//! packets take the same path, a comparison is one pass over a column, which the compiler vectorizes. Once the paths split,
//! each lane has the number of its next step, in a byte, and each further step is one pass over all lanes, of which it moves those
//! that have its number. No branch depends on a packet, so that none is mispredicted.

use alloc::boxed::Box;
use alloc::vec::Vec;

use packet::MAX_BATCH;

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
            let mut hits = packets.len();
            if !comparison.is_always() {
                self.fill(words, *column, packets, headers);
                hits = self
                    .columns
                    .get(usize::from(*column))
                    .map_or(0, |column| comparison.hits(&column[..hits]));
            }
            if hits == 0 {
                at += 1;
            } else if hits < packets.len() {
                return Err(at);
            } else if *target >= END {
                return Ok(output(*target));
            } else {
                at = *target as usize;
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
            Some(word) => *value = u32::from_be_bytes(*word),
            None => short.push(lane as u8),
        }
    }
}

/// Copies the words of each packet's IP header to its lane. Lanes of packets that end inside the header go to `short`.
#[inline(always)]
fn gather_header<T>(
    [a, b, c, d, e]: &mut [Column; HEADER_WORDS],
    short: &mut Vec<u8>,
    packets: &[T],
    header: impl Fn(&T) -> &[u8],
) {
    let columns = a.iter_mut().zip(b).zip(c).zip(d).zip(e);
    for (lane, (packet, ((((a, b), c), d), e))) in packets.iter().zip(columns).enumerate() {
        let Some(bytes) = header(packet).first_chunk::<{ 4 * HEADER_WORDS }>() else {
            short.push(lane as u8);
            continue;
        };
        let (words, _) = bytes.as_chunks();
        for (value, word) in [a, b, c, d, e].into_iter().zip(words) {
            *value = u32::from_be_bytes(*word);
        }
    }
}

/// The output that a final step's target encodes.
#[inline]
fn output(target: u32) -> u32 {
    if target == DROP { DROP } else { target & !END }
}

impl Comparison {
    /// Whether the comparison holds for `word`.
    #[inline(always)]
    fn holds(&self, word: u32) -> bool {
        (word & self.mask).wrapping_sub(self.low) <= self.span
    }

    /// Moves each packet that is at step `at` to `target` if the comparison holds for its word, otherwise to `other`.
    #[inline(never)]
    fn advance(&self, places: &mut [Place], words: &Column, at: Place, (target, other): (Place, Place)) {
        if self.span == 0 {
            move_on(places, words, at, (target, other), |word| word & self.mask == self.low);
        } else {
            move_on(places, words, at, (target, other), |word| self.holds(word));
        }
    }

    /// The number of words in a column for which the comparison holds.
    #[inline]
    fn hits(&self, column: &[u32]) -> usize {
        // Equality is the most common comparison, and cheaper.
        if self.span == 0 {
            return column.iter().map(|word| u32::from(word & self.mask == self.low)).sum::<u32>() as usize;
        }
        column.iter().map(|word| u32::from(self.holds(*word))).sum::<u32>() as usize
    }
}

/// Moves each packet that is at step `at` to `target` if `holds` is true of its word, otherwise to `other`. Places come in groups
/// of `LANES`.
#[inline(always)]
fn move_on(
    places: &mut [Place],
    words: &Column,
    at: Place,
    (target, other): (Place, Place),
    holds: impl Fn(u32) -> bool,
) {
    // In this form, the compiler makes no branches, and a vector of places from four of words.
    let (step, more) = (other.wrapping_sub(at), target.wrapping_sub(at) ^ other.wrapping_sub(at));
    let all_if = |condition: bool| Place::from(condition).wrapping_neg();
    let (groups, _) = places.as_chunks_mut::<LANES>();
    let (words, _) = words.as_chunks::<LANES>();
    for (places, words) in groups.iter_mut().zip(words) {
        let held = words.map(|word| all_if(holds(word)));
        for (place, held) in places.iter_mut().zip(held) {
            *place = place.wrapping_add((step ^ (more & held)) & all_if(*place == at));
        }
    }
}
