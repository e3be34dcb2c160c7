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
    /// Whether everything behind the split is reached through it only. Then packets are gathered up to the end of the call.
    pub is_closed: bool,
    /// Packets that left by the output.
    pub packets: Cell<u64>,
}

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
}

#[derive(Default)]
struct Place {
    batch: Batch,
    connection: u32,
    height: usize,
    is_meeting: bool,
    mixed_input: Option<MixedInput>,
}

impl Gathered {
    /// Stamps packets that arrive at a split, with `height` batches waiting.
    pub(crate) fn stamp(&mut self, split: u32, packets: &mut [Packet], height: usize) {
        let split = split as usize;
        if split >= self.heights.len() {
            self.heights.resize(split + 1, 0);
        }
        self.heights[split] = height;
        if self.levels.is_empty() {
            self.stamp = 0;
        }
        for packet in packets {
            packet.set_stamp(self.stamp);
            self.stamp = self.stamp.wrapping_add(1);
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
        let Gathering { connection, is_meeting, mixed_input, .. } = *to;
        let own = core::mem::take(&mut self.places[number].batch);
        let batch = if own.has_memory() { own } else { spare() };
        self.places[number] = Place { batch, connection, height, is_meeting, mixed_input };
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
        let (connection, is_meeting, mixed_input) = (place.connection, place.is_meeting, place.mixed_input);
        let batch = match mixed_input {
            Some(mixed) => self.take_mixed(height, mixed)?,
            None => {
                let mut batch = self.take_place(number)?;
                if is_meeting {
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

    /// Takes what a place has gathered, at the highest level.
    fn take_place(&mut self, number: usize) -> Option<Batch> {
        let (_, left) = self.levels.last_mut()?;
        *left -= 1;
        if *left == 0 {
            self.levels.pop();
        }
        Some(core::mem::take(&mut self.places.get_mut(number)?.batch))
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
