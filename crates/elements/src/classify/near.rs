//! The first bytes of a packet's headers, read once into words: nearly all fields that rules look at are in them.

use super::headers::{Base, Headers};
use super::program::Layout;
use super::spans::Field;

/// Bytes of the network header that are read ahead, or of the packet when there are no headers.
const FIRST: usize = 20;
/// Bytes that are read ahead of the transport header, or after the first ones.
const SECOND: usize = 16;

/// The words of a packet's headers, with zeros where it is short.
pub(crate) struct Near {
    words: [u32; 16],
    /// Bytes there are of the first and of the second part, counted beyond what was read, too.
    lengths: [usize; 2],
}

impl Near {
    /// Reads the headers.
    #[inline]
    pub(crate) fn new(headers: &Headers<'_>, layout: Layout) -> Self {
        let first = headers.network;
        let second = match layout {
            Layout::Ip => headers.transport,
            Layout::Bytes => first.get(FIRST..).unwrap_or_default(),
        };
        let mut words = [0; 16];
        match first.first_chunk::<FIRST>() {
            Some(bytes) => read(&mut words[..5], bytes),
            None => read_short(&mut words[..5], first),
        }
        if let Some(bytes) = second.first_chunk::<SECOND>() {
            read(&mut words[5..9], bytes);
        } else if let Some(bytes) = second.first_chunk::<8>() {
            read(&mut words[5..7], bytes);
            if second.len() > 8 {
                read_short(&mut words[7..9], &second[8..]);
            }
        } else {
            read_short(&mut words[5..9], second);
        }
        Self { words, lengths: [first.len(), second.len()] }
    }

    /// The field at `place`, or none when the packet ends before its end.
    #[inline]
    pub(crate) fn get(&self, place: Place) -> Option<u32> {
        let value = (self.words[usize::from(place.word & 15)] >> (place.shift & 31)) & place.mask;
        (self.lengths[usize::from(place.second)] >= usize::from(place.end)).then_some(value)
    }
}

/// Where a field is among the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    mask: u32,
    /// Bytes that its part must have.
    end: u8,
    word: u8,
    shift: u8,
    second: bool,
}

impl Place {
    /// The place of `field`; none when it is not among the words.
    pub(crate) fn new(field: Field, layout: Layout) -> Option<Self> {
        let offset = usize::from(field.offset);
        let (second, offset) = match (field.base, layout) {
            (Base::Network, _) if offset < FIRST => (false, offset),
            (Base::Network, Layout::Bytes) => (true, offset - FIRST),
            (Base::Transport, Layout::Ip) => (true, offset),
            _ => return None,
        };
        let width = usize::from(field.width);
        if second && offset + width > SECOND {
            return None;
        }
        Some(Self {
            mask: u32::MAX >> (32 - 8 * width),
            end: (offset + width) as u8,
            word: (offset / 4 + if second { FIRST / 4 } else { 0 }) as u8,
            shift: (32 - 8 * width - 8 * (offset % 4)) as u8,
            second,
        })
    }
}

#[inline]
fn read(words: &mut [u32], bytes: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
}

#[cold]
fn read_short(words: &mut [u32], bytes: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(4)) {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_be_bytes(whole);
    }
}
