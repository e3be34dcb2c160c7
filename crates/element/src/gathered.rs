//! Packets that were split among outputs, gathered for the elements that they go to.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::Cell;

use packet::{Batch, Packet};

/// Where an output gathers its packets instead of emitting them.
///
/// The router sets this up where the parts of a split batch meet again: packets are stamped in the order in which they arrive
/// at the element that splits them, and put back into that order before the element where they meet.
#[derive(Debug)]
pub struct Gathering {
    /// The router's number of the place. Places upstream have lower numbers.
    pub place: u32,
    /// The router's number of the connection through which gathered packets leave the place.
    pub connection: u32,
    /// The router's number of the split. `None` if the parts never meet: then order does not matter, and they are gathered up
    /// to the end of the task's or timer's call.
    pub split: Option<u32>,
    /// Whether this is the place where the parts meet.
    pub is_meeting: bool,
    /// The input that the place is before, if the parts meet at several inputs of an element that mixes them.
    pub mixed_input: Option<MixedInput>,
    /// The part of the place, if the ways from the split end at several elements.
    pub part: Option<Part>,
    /// Whether everything behind the split is reached through it only. Then packets are gathered up to the end of the call.
    pub is_closed: bool,
    /// Packets that left by the output.
    pub packets: Cell<u64>,
}

/// The part of a place behind a split whose ways end at several elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What packets cause from there on concerns no other place of this kind.
    End,
    /// Packets may return from there to the split. They are delivered in their order among those of all places.
    Return,
}

/// An element that splits batches among outputs that gather.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The router's number of it.
    pub number: u32,
    /// Whether everything behind it is reached through it only.
    pub is_closed: bool,
    /// Whether packets may be copied behind it: then stamps leave room for those of copies.
    pub has_copies: bool,
}

/// The distance between stamps that leave room for copies, behind a split where packets may be copied.
pub const STEP_WITH_COPIES: u32 = 1 << 8;

/// The greatest part of stamps that may have no packet any more when packets are put in order by a place for each stamp.
const SPAN_OF_PACKET: usize = 16;

/// An input of an element that takes packets of several inputs in one batch.
#[derive(Clone, Copy, Debug)]
pub struct MixedInput {
    /// The number of the input.
    pub input: u16,
    /// The first place before an input of the element.
    pub first: u32,
    /// The number of such places, which follow each other.
    pub places: u32,
}

/// The gathered packets of parts that never meet.
#[derive(Default)]
pub(crate) struct Spread {
    places: Vec<SpreadPlace>,
    /// The places that hold packets, and some that no longer do.
    open: VecDeque<u32>,
}

#[derive(Default)]
struct SpreadPlace {
    batch: Batch,
    connection: u32,
    is_open: bool,
}

impl Spread {
    /// The batch being gathered at a place. `spare` supplies memory.
    #[inline]
    pub(crate) fn batch(&mut self, to: &Gathering, spare: impl FnOnce() -> Batch) -> &mut Batch {
        let number = to.place as usize;
        if self.places.get(number).is_none_or(|place| place.batch.is_empty()) {
            if number >= self.places.len() {
                self.places.resize_with(number + 1, SpreadPlace::default);
            }
            let place = &mut self.places[number];
            (place.batch, place.connection) = (spare(), to.connection);
            if !core::mem::replace(&mut place.is_open, true) {
                self.open.push_back(to.place);
            }
        }
        &mut self.places[number].batch
    }

    /// Whether no place holds packets, and none has held some lately.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes what one place has gathered.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(u32, Batch)> {
        while let Some(number) = self.open.pop_front() {
            let place = self.places.get_mut(number as usize)?;
            place.is_open = false;
            if !place.batch.is_empty() {
                return Some((place.connection, core::mem::take(&mut place.batch)));
            }
        }
        None
    }
}

/// The gathered packets of parts that meet again.
///
/// Packets wait until everything is delivered that the split has emitted otherwise: until the stack of waiting batches has the
/// height again that it had when packets arrived at the split. Splits nest, so heights form a stack of their own.
#[derive(Default)]
pub(crate) struct Gathered {
    places: Vec<Place>,
    /// The heights at which packets wait, each with the number of places.
    levels: Vec<(usize, usize)>,
    /// The height at the last arrival at each split.
    heights: Vec<usize>,
    /// No place below this one holds packets.
    first: usize,
    stamp: u32,
    /// Working memory for putting packets in order.
    ordered: Vec<Option<Packet>>,
    /// What is delivered after the batch that was taken last, the next one last.
    sequence: Vec<(u32, Batch)>,
    /// The number of places that hold packets that may return to a split.
    returning: usize,
}

#[derive(Default)]
struct Place {
    batch: Batch,
    connection: u32,
    height: usize,
    is_meeting: bool,
    mixed_input: Option<MixedInput>,
    split: u32,
    part: Option<Part>,
}

impl Gathered {
    /// Stamps packets that arrive at a split, with `height` batches waiting.
    pub(crate) fn stamp(&mut self, split: &Split, packets: &mut [Packet], height: usize) {
        let step = if split.has_copies { STEP_WITH_COPIES } else { 1 };
        let split = split.number as usize;
        if split >= self.heights.len() {
            self.heights.resize(split + 1, 0);
        }
        self.heights[split] = height;
        if self.levels.is_empty() {
            self.stamp = 0;
        }
        for packet in packets {
            packet.set_stamp(self.stamp);
            self.stamp = self.stamp.wrapping_add(step);
        }
    }

    /// The batch being gathered at a place. `spare` supplies memory.
    #[inline]
    pub(crate) fn batch(&mut self, to: &Gathering, spare: impl FnOnce() -> Batch) -> &mut Batch {
        let number = to.place as usize;
        if self.places.get(number).is_none_or(|place| place.batch.is_empty()) {
            self.open(to, spare);
        }
        &mut self.places[number].batch
    }

    /// Begins to gather at a place, in its own memory if it has any.
    fn open(&mut self, to: &Gathering, spare: impl FnOnce() -> Batch) {
        let number = to.place as usize;
        let height = to.split.and_then(|split| self.heights.get(split as usize).copied()).unwrap_or(0);
        // Behind a closed split packets wait until nothing else does.
        let height = if to.is_closed { 0 } else { height };
        if number >= self.places.len() {
            self.places.resize_with(number + 1, Place::default);
        }
        let Gathering { connection, is_meeting, mixed_input, part, .. } = *to;
        let split = to.split.unwrap_or(u32::MAX);
        let own = core::mem::take(&mut self.places[number].batch);
        let batch = if own.has_memory() { own } else { spare() };
        self.returning += usize::from(part == Some(Part::Return));
        self.places[number] = Place { batch, connection, height, is_meeting, mixed_input, split, part };
        match self.levels.last_mut() {
            Some((level, places)) if *level == height => *places += 1,
            _ => self.levels.push((height, 1)),
        }
        self.first = self.first.min(number);
    }

    /// Whether no place holds packets.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Takes what the first place has gathered, if only `height` batches wait that were emitted before it.
    #[inline]
    pub(crate) fn take(&mut self, height: usize) -> Option<(u32, Batch)> {
        let (level, _) = self.levels.last()?;
        if *level >= height { self.take_first() } else { None }
    }

    fn take_first(&mut self) -> Option<(u32, Batch)> {
        let height = self.levels.last()?.0;
        let is_next = |place: &Place| place.height == height && !place.batch.is_empty();
        let number = self.first + self.places.get(self.first..)?.iter().position(is_next)?;
        let place = self.places.get(number)?;
        if place.part.is_some() && self.returning > 0 {
            let split = place.split;
            let returns =
                |place: &Place| is_next(place) && place.split == split && place.part == Some(Part::Return);
            if self.places.get(number..)?.iter().any(returns) {
                return self.take_in_sequence(height, split);
            }
        }
        let (connection, is_meeting, mixed_input) = (place.connection, place.is_meeting, place.mixed_input);
        let batch = match mixed_input {
            Some(mixed) => self.take_mixed(height, mixed)?,
            None => {
                let is_one_of_several = place.part.is_some();
                let mut batch = self.take_place(number)?;
                if is_one_of_several {
                    sort_by_stamp(&mut batch);
                } else if is_meeting {
                    self.put_in_order(&mut batch);
                }
                batch
            }
        };
        // Places before this one may hold packets at a lower height.
        self.first = if self.levels.len() < 2 { number } else { 0 };
        if self.levels.is_empty() {
            self.first = usize::MAX;
        }
        Some((connection, batch))
    }

    /// Takes what all places of a split have gathered before the elements where its parts meet. Each packet that may return to the
    /// split is a batch, behind all packets before it.
    fn take_in_sequence(&mut self, height: usize, split: u32) -> Option<(u32, Batch)> {
        let (mut ends, mut returning) = (Vec::new(), Vec::new());
        for number in 0..self.places.len() {
            let place = self.places.get(number)?;
            if place.height == height && place.split == split && !place.batch.is_empty() {
                let (connection, part) = (place.connection, place.part);
                let mut batch = self.take_place(number)?;
                sort_by_stamp(&mut batch);
                if part == Some(Part::Return) { &mut returning } else { &mut ends }.push((connection, batch));
            }
        }
        self.first = if self.levels.is_empty() { usize::MAX } else { 0 };
        let first_stamp = |batch: &Batch| batch.as_slice().first().map_or(u32::MAX, Packet::stamp);
        while let Some((connection, batch)) = returning.iter_mut().min_by_key(|(_, batch)| first_stamp(batch))
            && !batch.is_empty()
        {
            let stamp = first_stamp(batch);
            for (connection, batch) in &mut ends {
                let before = batch.as_slice().partition_point(|packet| packet.stamp() < stamp);
                self.wait_in_sequence(*connection, batch, before);
            }
            self.wait_in_sequence(*connection, batch, 1);
        }
        self.sequence.extend(ends.into_iter().filter(|(_, batch)| !batch.is_empty()));
        self.sequence.reverse();
        self.sequence.pop()
    }

    /// Adds the first packets of a batch to the sequence.
    fn wait_in_sequence(&mut self, connection: u32, batch: &mut Batch, count: usize) {
        if count > 0 {
            let mut first = Batch::new();
            batch.drain_front(count).for_each(|packet| first.push(packet));
            self.sequence.push((connection, first));
        }
    }

    /// What is delivered after the batch that was taken last, the next one last.
    #[inline]
    pub(crate) fn take_sequence(&mut self) -> Option<alloc::vec::Drain<'_, (u32, Batch)>> {
        (!self.sequence.is_empty()).then(|| self.sequence.drain(..))
    }

    /// Has what was gathered behind a split at a height delivered ahead of a batch that begins to wait at this height.
    pub(crate) fn raise(&mut self, split: u32, height: usize) {
        if let Some(own) = self.heights.get_mut(split as usize) {
            *own = height + 1;
        }
        let is_raised =
            |place: &&mut Place| place.split == split && place.height == height && !place.batch.is_empty();
        let raised = self.places.iter_mut().filter(is_raised).map(|place| place.height += 1).count();
        if let Some((_, left)) = self.levels.last_mut().filter(|_| raised > 0) {
            *left -= raised;
            if *left == 0 {
                self.levels.pop();
            }
            self.levels.push((height + 1, raised));
        }
    }

    /// Takes what a place has gathered, at the highest level.
    fn take_place(&mut self, number: usize) -> Option<Batch> {
        let (_, left) = self.levels.last_mut()?;
        *left -= 1;
        if *left == 0 {
            self.levels.pop();
        }
        let place = self.places.get_mut(number)?;
        self.returning -= usize::from(place.part == Some(Part::Return));
        Some(core::mem::take(&mut place.batch))
    }

    /// Takes what was gathered before the inputs of an element that mixes them. Packets have the numbers of their inputs in place of
    /// their stamps then.
    fn take_mixed(&mut self, height: usize, mixed: MixedInput) -> Option<Batch> {
        let places = mixed.first as usize..(mixed.first + mixed.places) as usize;
        let (mut least, mut most, mut count) = (u32::MAX, 0, 0);
        let is_taken = |place: &Place| place.height == height && !place.batch.is_empty();
        // The last ones do not exist before they get packets.
        let existing = self.places.iter().skip(places.start).take(places.len());
        for place in existing.filter(|place| is_taken(place)) {
            for packet in place.batch.as_slice() {
                (least, most) = (least.min(packet.stamp()), most.max(packet.stamp()));
            }
            count += place.batch.len();
        }
        let span = (most - least) as usize + 1;
        // Each stamp was given once, so a place for each is enough; but not if most have gone.
        let has_places = span <= SPAN_OF_PACKET * count;
        let (mut rest, mut all) = (Vec::new(), Batch::new());
        self.ordered.resize_with(if has_places { span } else { 0 }, || None);
        for number in places {
            let Some(place) = self.places.get_mut(number).filter(|place| is_taken(place)) else { continue };
            let input = place.mixed_input.map_or(0, |mixed| u32::from(mixed.input));
            for mut packet in place.batch.drain() {
                let stamp = packet.stamp();
                packet.set_stamp(input);
                match self.ordered.get_mut((stamp - least) as usize) {
                    Some(free @ None) => *free = Some(packet),
                    _ => rest.push((stamp, packet)),
                }
            }
            // The memory of the others stays for what is gathered next.
            let emptied = self.take_place(number).unwrap_or_default();
            match all.has_memory() {
                false => all = emptied,
                true => self.places.get_mut(number)?.batch = emptied,
            }
        }
        rest.sort_by_key(|(stamp, _)| *stamp);
        let ordered = self.ordered.iter_mut().filter_map(Option::take);
        ordered.chain(rest.into_iter().map(|(_, packet)| packet)).for_each(|packet| all.push(packet));
        Some(all)
    }

    /// Puts packets in the order of their stamps.
    fn put_in_order(&mut self, batch: &mut Batch) {
        let packets = batch.as_mut_slice();
        if packets.is_sorted_by_key(|packet| packet.stamp()) {
            return;
        }
        let stamps = || packets.iter().map(Packet::stamp);
        let (least, most) = (stamps().min().unwrap_or(0), stamps().max().unwrap_or(0));
        let span = (most - least) as usize + 1;
        // Each stamp was given once, so a place for each is enough; but not if most have gone.
        if span > SPAN_OF_PACKET * packets.len() {
            return packets.sort_by_key(Packet::stamp);
        }
        self.ordered.resize_with(span, || None);
        let mut twice = Vec::new();
        for packet in batch.drain() {
            let place = &mut self.ordered[(packet.stamp() - least) as usize];
            twice.extend(place.replace(packet));
        }
        self.ordered.iter_mut().filter_map(Option::take).for_each(|packet| batch.push(packet));
        twice.into_iter().for_each(|packet| batch.push(packet));
    }
}

/// Puts packets in the order of their stamps. Those with the same stamp stay in their order.
fn sort_by_stamp(batch: &mut Batch) {
    let packets = batch.as_mut_slice();
    if !packets.is_sorted_by_key(|packet| packet.stamp()) {
        packets.sort_by_key(Packet::stamp);
    }
}
