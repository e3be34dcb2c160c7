//! Batches of frames that pass through the switch.

use boundary::{Answer, NEAR_PREFETCH, PayloadTail, SourceRegion, TakenPacket};

/// Maximum frame length in bytes: one packet buffer.
pub const MAX_FRAME: usize = boundary::limits::BUFFER_SIZE;

/// Bytes of a frame that are copied before it is inspected: the headers that decide where it goes, in one cache line.
const HEAD: usize = 64;

/// Frames start at multiples of this, so that copies are aligned.
const ALIGN: usize = 16;

/// The frames of one visit to a port, stored contiguously so that short frames share cache lines.
///
/// A frame is either whole or split. Of a split frame the batch holds only the head; the tail is still in the memory of
/// the box that sent it. A long frame to another box is therefore copied once, not twice.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    filled: usize,
    entries: Vec<Entry>,
    /// The memory that holds the tails.
    source: Option<SourceRegion>,
    /// Slots of the source whose buffer was passed on with the frame, each with the spare buffer that replaces it.
    replaced: Vec<(u32, u32)>,
    /// Whether a frame has a tag or an answer.
    is_tagged: bool,
    /// Whether frames that a function passes on are left unread.
    leaves_unread: bool,
    capacity: usize,
    /// Frames that take room and are not in the batch.
    elsewhere: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Offset of the frame, or of its head, in the batch.
    start: u32,
    /// Bytes in the batch: the head's length.
    here: u16,
    /// Bytes that are not in the batch: the tail's length.
    tail: u16,
    /// Offset of the tail in the source.
    tail_start: u32,
    /// The slot of the source that the frame came from.
    slot: u32,
    /// What its function answered, and what the port notes about it.
    meta: u16,
    tag: u64,
}

/// What is known of a frame besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameMark {
    /// What was noted when its function got it; 0 if nothing was.
    pub tag: u64,
    /// What its function answered: see [`boundary::Answer`].
    pub meta: u16,
}

/// A frame that a function passes on, and of which nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadFrame {
    /// Its place in the batch.
    pub number: u32,
    /// Its length in bytes.
    pub length: u32,
    /// What was noted when its function got it.
    pub tag: u64,
}

/// A frame of which possibly only the head was copied.
#[derive(Clone, Copy, Debug)]
pub struct SplitFrame<'a> {
    /// The first bytes of the frame: all of them, or at least an Ethernet header. Nothing of a frame that is unread.
    pub head: &'a [u8],
    /// The remaining bytes, if there are any.
    pub tail: Option<PayloadTail<'a>>,
}

impl SplitFrame<'_> {
    /// The frame's length in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        self.head.len() + self.tail.map_or(0, |rest| rest.length())
    }
}

impl Batch {
    /// Creates a batch with room for `capacity` frames.
    pub fn new(capacity: usize) -> Self {
        let bytes = vec![0; capacity * (MAX_FRAME + HEAD)];
        let (entries, replaced) = (Vec::with_capacity(capacity), Vec::new());
        let (is_tagged, leaves_unread) = (false, false);
        Self {
            bytes,
            filled: 0,
            entries,
            source: None,
            replaced,
            is_tagged,
            leaves_unread,
            capacity,
            elsewhere: 0,
        }
    }

    /// The number of frames that can still be added.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.elsewhere + self.entries.len())
    }

    /// The number of frames in the batch.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the batch has no frames.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Leaves room for fewer frames until the batch is cleared: these are not in it, but belong to the same visit.
    pub(crate) fn count_elsewhere(&mut self, frames: usize) {
        self.elsewhere = frames;
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.elsewhere = 0;
        self.entries.clear();
        self.replaced.clear();
        self.filled = 0;
        self.is_tagged = false;
        self.source = None;
    }

    /// Sets whether frames that a function passes on along their chain are left unread, where they are.
    pub(crate) fn leave_unread(&mut self, leaves: bool) {
        self.leaves_unread = leaves;
    }

    /// The frames of which nothing was read, in order.
    pub(crate) fn unread(&self) -> impl Iterator<Item = UnreadFrame> {
        let entries = if self.leaves_unread { &self.entries[..] } else { &[] };
        let frames = (0u32..).zip(entries).filter(|(_, entry)| entry.here == 0 && entry.tail > 0);
        frames.map(|(number, entry)| UnreadFrame { number, length: entry.tail.into(), tag: entry.tag })
    }

    /// Copies the head of an unread frame.
    pub(crate) fn read_head(&mut self, number: u32) {
        let (Some(source), Some(entry)) = (&self.source, self.entries.get_mut(number as usize)) else {
            return;
        };
        let (start, here) = (self.filled, usize::from(entry.tail).min(HEAD));
        let Some(space) = self.bytes.get_mut(start..start + here).filter(|_| entry.here == 0) else { return };
        source.read(entry.tail_start as usize, space);
        (entry.start, entry.here) = (start as u32, here as u16);
        (entry.tail, entry.tail_start) = (entry.tail - here as u16, entry.tail_start + here as u32);
        self.filled = (start + here).next_multiple_of(ALIGN);
    }

    /// The frame at index `number`, if it is whole. Frames that [`Driver::receive`](crate::Driver::receive) adds are
    /// whole.
    #[inline]
    pub fn frame(&self, number: usize) -> Option<&[u8]> {
        self.split_frame(number).filter(|part| part.tail.is_none()).map(|part| part.head)
    }

    /// All whole frames, in order.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.frame(number))
    }

    /// The frame at index `number`, possibly split.
    #[inline]
    pub fn split_frame(&self, number: usize) -> Option<SplitFrame<'_>> {
        let entry = self.entries.get(number)?;
        let start = entry.start as usize;
        let head = self.bytes.get(start..start + usize::from(entry.here))?;
        let tail = match &self.source {
            Some(source) if entry.tail > 0 => {
                let start = entry.tail_start as usize;
                Some(source.tail(start..start + usize::from(entry.tail)))
            }
            _ => None,
        };
        Some(SplitFrame { head, tail })
    }

    /// The head and the total length of each frame, in order.
    #[inline]
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.entries.iter().map(|entry| {
            let (start, here) = (entry.start as usize, usize::from(entry.here));
            (self.bytes.get(start..start + here).unwrap_or_default(), here + usize::from(entry.tail))
        })
    }

    /// What the port that a frame came from noted about it, and what its function answered.
    #[inline]
    pub(crate) fn mark(&self, number: usize) -> FrameMark {
        let entry = self.entries.get(number).filter(|_| self.is_tagged);
        entry.map_or_else(FrameMark::default, |entry| FrameMark { tag: entry.tag, meta: entry.meta })
    }

    /// The tag that the port that a frame goes to notes.
    #[inline]
    pub(crate) fn tag(&self, number: usize) -> u64 {
        if self.is_tagged { self.entries.get(number).map_or(0, |entry| entry.tag) } else { 0 }
    }

    /// Sets the tag of a frame for the port that it goes to.
    pub(crate) fn set_tag(&mut self, number: usize, tag: u64) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.tag = tag;
            self.is_tagged = true;
        }
    }

    /// Replaces the tags that frames came with by those for the ports that they go to. Frames that are not listed get none.
    pub(crate) fn replace_tags(&mut self, tags: &[(u32, u64)]) {
        if self.is_tagged && tags.len() < self.entries.len() {
            self.entries.iter_mut().for_each(|entry| entry.tag = 0);
        }
        for (number, tag) in tags {
            self.set_tag(*number as usize, *tag);
        }
    }

    /// Sets bits of all tags that there are.
    pub(crate) fn mark_tags(&mut self, bits: u64) {
        if self.is_tagged {
            self.entries.iter_mut().filter(|entry| entry.tag != 0).for_each(|entry| entry.tag |= bits);
        }
    }

    /// Clears bits of all tags.
    pub(crate) fn clear_tags(&mut self, bits: u64) {
        if self.is_tagged {
            self.entries.iter_mut().for_each(|entry| entry.tag &= !bits);
        }
    }

    /// Space for one more frame. [`commit`](Self::commit) adds the frame to the batch.
    #[inline]
    pub fn space(&mut self) -> Option<&mut [u8; MAX_FRAME]> {
        if self.room() == 0 {
            return None;
        }
        self.bytes.get_mut(self.filled..)?.first_chunk_mut()
    }

    /// Adds the first `length` bytes of [`space`](Self::space) as a frame, at most [`MAX_FRAME`].
    #[inline]
    pub fn commit(&mut self, length: usize) {
        if self.room() > 0 {
            let here = length.min(MAX_FRAME);
            let start = self.filled as u32;
            self.add(Entry { start, here: here as u16, ..Entry::default() });
        }
    }

    /// Like [`commit`](Self::commit), for a frame of which something is known.
    pub(crate) fn commit_marked(&mut self, length: usize, mark: FrameMark) {
        self.commit(length);
        if let Some(entry) = self.entries.last_mut().filter(|_| mark != FrameMark::default()) {
            (entry.tag, entry.meta) = (mark.tag, mark.meta);
            self.is_tagged = true;
        }
    }

    /// Removes the frames with these indices, which are in order.
    pub(crate) fn remove(&mut self, frames: &[u32]) {
        let (mut number, mut gone) = (0, frames.iter().peekable());
        self.entries.retain(|_| {
            let is_gone = gone.next_if(|frame| **frame == number).is_some();
            number += 1;
            !is_gone
        });
    }

    /// Adds a copy of a frame. Returns false if the batch is full or the frame is too long.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        match self.space() {
            Some(space) if frame.len() <= MAX_FRAME => {
                match (space.first_chunk_mut::<HEAD>(), frame.first_chunk::<HEAD>()) {
                    // A constant length compiles to a few instructions instead of a call.
                    (Some(space), Some(line)) if frame.len() == HEAD => *space = *line,
                    _ => space[..frame.len()].copy_from_slice(frame),
                }
                self.commit(frame.len());
                true
            }
            _ => false,
        }
    }

    /// Adds a frame that lies in `source`, and copies its head, unless it is [left unread](Self::leave_unread). The frame
    /// must be at most [`MAX_FRAME`] long and inside
    /// the source.
    #[inline(always)]
    pub(crate) fn push_split(&mut self, source: &SourceRegion, taken: TakenPacket) {
        let TakenPacket { range, slot, tag, meta } = taken;
        self.is_tagged |= tag != 0 || meta != 0;
        let (start, length) = (self.filled, range.len().min(MAX_FRAME));
        if self.leaves_unread && tag != 0 && meta == Answer::Next.to_meta() {
            let (tail, tail_start) = (length as u16, range.start as u32);
            self.entries.push(Entry { start: start as u32, tail, tail_start, slot, meta, tag, here: 0 });
            return;
        }
        let here = length.min(HEAD);
        let Some(space) = self.bytes.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<HEAD>) else {
            return;
        };
        if here == HEAD {
            // A constant length compiles to a few instructions instead of a call.
            source.read(range.start, space);
        } else if let Some(space) = space.get_mut(..here) {
            source.read(range.start, space);
        }
        let (here, tail) = (here as u16, (length - here) as u16);
        let tail_start = (range.start + HEAD) as u32;
        self.add(Entry { start: start as u32, here, tail, tail_start, slot, meta, tag });
    }

    /// Records that the frame at index `number` was passed on with its buffer, and that `spare` replaces this buffer.
    #[inline]
    pub(crate) fn replace_buffer(&mut self, number: usize, spare: u32) {
        self.replaced.extend(self.entries.get(number).map(|entry| (entry.slot, spare)));
    }

    /// Slots of the source whose buffer was passed on, each with the buffer that replaces it.
    pub(crate) fn replaced_buffers(&self) -> &[(u32, u32)] {
        &self.replaced
    }

    /// Sets the memory that the frames of [`push_split`](Self::push_split) lie in. It is set once, because all frames
    /// of a batch come from one port.
    pub(crate) fn set_source(&mut self, source: &SourceRegion) {
        self.source = Some(source.clone());
    }

    /// The memory that holds the tails.
    pub(crate) fn source(&self) -> Option<&SourceRegion> {
        self.source.as_ref()
    }

    /// Copies the tails of the frames with these indices.
    pub(crate) fn complete(&mut self, frames: &[u32]) {
        let Some(source) = &self.source else { return };
        for (at, number) in frames.iter().enumerate() {
            let coming =
                frames.get(at + NEAR_PREFETCH as usize).and_then(|coming| self.entries.get(*coming as usize));
            if let Some(coming) = coming.filter(|coming| coming.here == 0) {
                let start = coming.tail_start as usize;
                source.tail(start..start + usize::from(coming.tail)).prefetch();
            }
            let Some(entry) = self.entries.get_mut(*number as usize).filter(|entry| entry.tail > 0) else {
                continue;
            };
            let (from, here) = (entry.start as usize, usize::from(entry.here));
            let length = here + usize::from(entry.tail);
            self.bytes.copy_within(from..from + here, self.filled);
            if let Some(space) = self.bytes.get_mut(self.filled + here..self.filled + length) {
                source.read(entry.tail_start as usize, space);
            }
            *entry = Entry { start: self.filled as u32, here: length as u16, tail: 0, ..*entry };
            self.filled = (self.filled + length).next_multiple_of(ALIGN);
        }
    }

    /// Copies the tails of the frames whose heads meet a condition.
    pub(crate) fn complete_where(&mut self, condition: impl Fn(&[u8]) -> bool) {
        if self.source.is_some() {
            let is_split = |head: &[u8], length| !head.is_empty() && head.len() < length;
            let heads = (0u32..).zip(self.heads()).filter(|(_, (head, length))| is_split(head, *length));
            let chosen: Vec<u32> =
                heads.filter(|(_, (head, _))| condition(head)).map(|(number, _)| number).collect();
            self.complete(&chosen);
        }
    }

    #[inline]
    fn add(&mut self, entry: Entry) {
        self.filled = (entry.start as usize + usize::from(entry.here)).next_multiple_of(ALIGN);
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use boundary::{HostPort, Mapped, RegionLayout, Slots};
    use std::ptr::NonNull;
    use std::sync::Arc;

    #[test]
    fn a_batch_returns_frames_unchanged() {
        let mut batch = Batch::new(4);
        for round in 0..3 {
            for length in [0, 64, 2048, 17] {
                assert!(batch.push(&vec![round + length as u8; length]));
            }
            assert!(!batch.push(b"no room") && batch.space().is_none());
            let lengths: Vec<usize> = batch.frames().map(<[u8]>::len).collect();
            assert_eq!(lengths, [0, 64, 2048, 17]);
            assert!(batch.frame(1).unwrap().iter().all(|byte| *byte == round + 64));
            assert!(batch.frame(3).unwrap().iter().all(|byte| *byte == round + 17));
            assert_eq!(batch.frame(4), None);
            batch.clear();
            assert!(batch.is_empty() && !batch.push(&[0; 2049]));
        }
    }

    #[test]
    fn frame_tails_are_copied_from_their_source() {
        let mut words: Vec<u64> = (0..4 * 256).collect();
        let expected: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let layout = RegionLayout::new(&[Slots::new(64).unwrap()]).unwrap();
        let mut area = vec![0u64; layout.size / 8];
        let buffers = layout.ports[0].buffers / 8;
        area[buffers..buffers + words.len()].swap_with_slice(&mut words);
        // SAFETY: the vector outlives the test's use of it, and is not touched meanwhile.
        let memory = unsafe { Mapped::new(NonNull::new(area.as_mut_ptr().cast()).unwrap(), layout.size) };
        let source = HostPort::at(&memory, &layout.ports[0], [0; 2], Arc::new(())).unwrap().source_region();
        let mut batch = Batch::new(6);
        let ranges = [0..2048, 3..67, 100..120, 7000..7065, 50..50, 6144..8192];
        for round in 0..2 {
            batch.set_source(&source);
            for range in &ranges {
                batch.push_split(&source, TakenPacket { range: range.clone(), slot: 0, tag: 0, meta: 0 });
            }
            let parts: Vec<_> = (0..batch.len()).filter_map(|number| batch.split_frame(number)).collect();
            let lengths: Vec<usize> = parts.iter().map(|part| part.length()).collect();
            assert_eq!(lengths, ranges.clone().map(|range| range.len()));
            for (part, range) in parts.iter().zip(&ranges) {
                assert_eq!(part.head, &expected[range.clone()][..part.head.len()]);
            }
            let whole = |batch: &Batch, number| batch.frame(number).map(<[u8]>::to_vec);
            assert_eq!((whole(&batch, 0), batch.frames().count()), (None, 3));
            // Completing a frame twice, or a whole frame, changes nothing.
            let some: &[u32] = if round == 0 { &[0, 1, 2, 3, 4, 5] } else { &[5, 0, 3, 3, 1] };
            batch.complete(some);
            batch.complete(some);
            for (number, range) in ranges.iter().enumerate() {
                assert_eq!(whole(&batch, number).unwrap(), &expected[range.clone()], "{number}");
            }
            batch.clear();
        }
    }
}
