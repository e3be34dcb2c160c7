//! Longest-prefix match, and the elements that route by it.

mod ip4;
mod ip6;
mod node;
mod prefix;
mod trie;

pub use ip4::Ip4Table;
pub use ip6::Ip6Table;
pub use prefix::{Address, Prefix};
pub use trie::{Entry, HopTooLarge, MAX_HOP, NO_HOP, PrefixTable};

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[element::Class] = &[];
