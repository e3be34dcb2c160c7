//! An indexed field of a program: maps a packet's bytes to the field's class and the class's row.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::headers::Headers;
use crate::map::Map;
use crate::pace::Pace;
use crate::rows::{Rows, RowsBuilder};
use crate::slots::Slots;
use crate::spans::{Field, Spans};

/// A field with its classes and their rows.
pub(crate) struct Index {
    pub(crate) field: Field,
    /// Number of the field in the terms.
    pub(crate) number: u16,
    /// Offset of the word that contains the field, and the field's position in it.
    word: usize,
    pub(crate) shift: u8,
    pub(crate) mask: u32,
    /// First value and class of each range of values, sorted. The compiler needs it; then it is freed.
    pub(crate) parts: Vec<(u32, u32)>,
    map: Map,
    /// Classes of the coordinates beyond the values: packets that end inside or before the field.
    beyond: Vec<u32>,
    /// For each class, a bitmap of the slot granules in which its row is non-zero.
    tops: Vec<u64>,
    pub(crate) rows: Rows,
}

impl Index {
    /// Indexes `field`, which has number `number` in the terms of `slots`.
    ///
    /// Returns `None` if the rows would need too much memory.
    pub(crate) async fn new(field: Field, number: u16, slots: &Slots, pace: &Pace) -> Option<Self> {
        // A coordinate where a term begins or ends to accept, and its slot.
        let mut events: Vec<u128> = Vec::with_capacity(2 * slots.len());
        let mut builder = RowsBuilder::new(slots.len());
        for (slot, entry) in slots.iter().enumerate() {
            let set = entry.and_then(|(_, term)| term.set(number));
            pace.spend(4 + 2 * set.map_or(0, Spans::len)).await;
            if entry.is_some() && set.is_none() {
                builder.set_free(slot);
            }
            let ends = set.iter().flat_map(|spans| spans.iter()).flat_map(|(first, last)| [first, last + 1]);
            events.extend(ends.map(|end| u128::from(end) << 64 | slot as u128));
        }
        pace.sort(&mut events).await;
        let coordinate = |event: u128| (event >> 64) as u64;
        let mut parts: Vec<(u64, u32)> = Vec::new();
        if events.first().is_none_or(|event| coordinate(*event) > 0) {
            parts.push((0, builder.class()?));
        }
        for group in events.chunk_by(|a, b| coordinate(*a) == coordinate(*b)) {
            pace.spend(builder.work() + 2 * group.len()).await;
            for event in group {
                builder.toggle(*event as u64 as usize);
            }
            let class = builder.class()?;
            if parts.last().is_none_or(|(_, previous)| *previous != class) {
                parts.push((coordinate(group[0]), class));
            }
        }
        let class_at = |coordinate: u64| {
            let index = parts.partition_point(|(start, _)| *start <= coordinate);
            parts.get(index.wrapping_sub(1)).map_or(0, |(_, class)| *class)
        };
        let beyond = (field.values()..=field.absent()).map(class_at).collect();
        let values = parts.iter().filter_map(|(start, class)| {
            let start = u32::try_from(*start).ok()?;
            (u64::from(start) < field.values()).then_some((start, *class))
        });
        let values: Vec<(u32, u32)> = values.collect();
        let map = Map::new(&values, field.width, pace).await;
        let rows = builder.finish(pace).await;
        let (offset, width) = (usize::from(field.offset), u32::from(field.width));
        let word = offset / 4 * 4;
        let shift = (32 - 8 * width - 8 * (offset - word) as u32) as u8;
        let mask = u32::MAX >> (32 - 8 * width);
        let tops = rows.tops(slots.granule(), pace).await;
        Some(Self { field, number, word, shift, mask, parts: values, map, beyond, tops, rows })
    }

    /// The class of a packet; `None` if it ends inside a 4-byte field.
    #[inline]
    pub(crate) fn class(&self, headers: &Headers<'_>) -> Option<u32> {
        let bytes = headers.from(self.field.base);
        match bytes.get(self.word..).and_then(|bytes| bytes.first_chunk()) {
            Some(word) => {
                let value = (u32::from_be_bytes(*word) >> (self.shift & 31)) & self.mask;
                Some(self.map.class(value))
            }
            None => self.class_at_end(headers),
        }
    }

    /// The class of a packet that ends less than four bytes after the start of the word, or before it.
    #[inline(never)]
    fn class_at_end(&self, headers: &Headers<'_>) -> Option<u32> {
        let bytes = headers.from(self.field.base).get(usize::from(self.field.offset)..).unwrap_or_default();
        let value = match self.field.width {
            1 => bytes.first().map(|byte| u32::from(*byte)),
            2 => bytes.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
            _ => bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        };
        match value {
            Some(value) => Some(self.map.class(value)),
            None => self.class_beyond(bytes),
        }
    }

    /// Bitmap of the slot granules in which the row of `class` is non-zero.
    #[inline]
    pub(crate) fn top(&self, class: u32) -> u64 {
        self.tops.get(class as usize).copied().unwrap_or(0)
    }

    /// Estimate of how many granules remain after this field for a typical packet.
    pub(crate) fn typical(&self) -> u32 {
        if self.tops.len() <= 8 {
            return self.tops.iter().map(|top| top.count_ones()).max().unwrap_or(0);
        }
        let somewhere = self.field.values() / 2 + self.field.values() / 5;
        self.top(self.class_at(somewhere)).count_ones()
    }

    /// The class of a packet that contains only `bytes` of the field, fewer than its width.
    fn class_beyond(&self, bytes: &[u8]) -> Option<u32> {
        match (bytes, self.field.width) {
            ([], _) => self.beyond.last().copied(),
            ([byte], 2) => self.beyond.get(usize::from(*byte)).copied(),
            _ => None,
        }
    }

    /// The class at a coordinate of the field.
    pub(crate) fn class_at(&self, coordinate: u64) -> u32 {
        match u32::try_from(coordinate) {
            Ok(value) if coordinate < self.field.values() => self.map.class(value),
            _ => {
                let index = coordinate.saturating_sub(self.field.values()) as usize;
                self.beyond.get(index).copied().unwrap_or(0)
            }
        }
    }

    /// The classes of packets that end inside or before the field.
    pub(crate) fn ends(&self) -> BTreeSet<u32> {
        self.beyond.iter().copied().collect()
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.map.bytes() + self.rows.bytes() + 4 * self.beyond.len() + 8 * self.parts.len()
    }
}
