//! One indexed field of a program: from a packet's bytes to the class of the field, and to the class's row.

use alloc::vec::Vec;

use super::headers::Headers;
use super::map::Map;
use super::rows::{Rows, RowsBuilder};
use super::spans::Field;
use super::terms::Term;

/// A field with its classes and their rows.
pub(crate) struct Index {
    pub(crate) field: Field,
    map: Map,
    /// Classes of the coordinates beyond the values: packets that end in the field or before it.
    beyond: Vec<u32>,
    pub(crate) rows: Rows,
}

impl Index {
    /// Indexes `field`, number `number` of the terms, whose slots are their places in `terms`.
    ///
    /// None when the rows would take too much memory.
    pub(crate) fn new(field: Field, number: u16, terms: &[(u32, Term)]) -> Option<Self> {
        let constrained = || {
            let sets = terms.iter().enumerate();
            sets.filter_map(|(slot, (_, term))| Some((slot, term.set(number)?)))
        };
        let mut events: Vec<(u64, u32)> = Vec::new();
        for (slot, spans) in constrained() {
            let slot = u32::try_from(slot).ok()?;
            events.extend(spans.iter().flat_map(|(first, last)| [(first, slot), (last + 1, slot)]));
        }
        events.sort_unstable();
        let mut builder = RowsBuilder::new(terms.len(), constrained().map(|(slot, _)| slot));
        let mut parts: Vec<(u64, u32)> = Vec::new();
        if events.first().is_none_or(|(coordinate, _)| *coordinate > 0) {
            parts.push((0, builder.class()?));
        }
        for group in events.chunk_by(|a, b| a.0 == b.0) {
            for (_, slot) in group {
                builder.toggle(*slot as usize);
            }
            let class = builder.class()?;
            if parts.last().is_none_or(|(_, previous)| *previous != class) {
                parts.push((group[0].0, class));
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
        let map = Map::new(&values.collect::<Vec<_>>(), field.width);
        Some(Self { field, map, beyond, rows: builder.finish() })
    }

    /// The class of the packet; none when it ends inside a field of 4 bytes.
    #[inline]
    pub(crate) fn class(&self, headers: &Headers<'_>) -> Option<u32> {
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

    /// The class of a packet of which the field has only `bytes`, fewer than its width.
    #[cold]
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

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.map.bytes() + self.rows.bytes() + 4 * self.beyond.len()
    }
}
