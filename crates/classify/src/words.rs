//! The words of packets that programs read, in columns: one lane for each packet of a batch.

use alloc::vec::Vec;

use packet::MAX_BATCH;

use crate::headers::Base;

/// Words of an IP header, without options and the first one, which rules seldom read: fragment, protocol and addresses.
pub(crate) const HEADER_WORDS: usize = 4;
/// From this number of these words on, copying all of them is as cheap.
const MIN_HEADER_COPY: usize = 2;

/// One word of every packet of a batch, in network byte order.
pub(crate) type Column = [u32; MAX_BATCH];

/// The words that a program reads, without duplicates.
pub(crate) struct Words {
    /// At most one per field of the program, plus those of `header`.
    pub(crate) words: Vec<(Base, u16)>,
    /// Index of the first of `HEADER_WORDS` words, if so many of them are read that they are copied at once.
    pub(crate) header: Option<u16>,
}

impl Words {
    pub(crate) fn new(words: impl Iterator<Item = (Base, u16)>) -> Self {
        let mut words: Vec<_> = words.collect();
        sorting::sort(&mut words);
        words.dedup();
        let of_header = (1..=HEADER_WORDS as u16).map(|word| (Base::Network, 4 * word));
        let whole = of_header.clone().filter(|word| words.contains(word)).count() >= MIN_HEADER_COPY;
        if whole {
            words.extend(of_header);
            sorting::sort(&mut words);
            words.dedup();
        }
        let header = words.iter().position(|word| *word == (Base::Network, 4)).filter(|_| whole);
        Self { words, header: header.and_then(|first| u16::try_from(first).ok()) }
    }

    /// The number of a word.
    pub(crate) fn number(&self, word: (Base, u16)) -> u16 {
        self.words.binary_search(&word).map_or(0, |number| number as u16)
    }
}
