//! Longest-prefix match for IPv4.

/// Routes of IPv4 addresses in host byte order.
///
/// A lookup takes two loads from 4 KB of arrays, then a node of one cache line and its value. Prefixes longer than 24
/// bits take one more node.
pub type Ip4Table = crate::PrefixTable<u32>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Prefix};

    /// Memory of a table with `count` consecutive /24 networks, in bytes.
    fn bytes(count: u32) -> usize {
        let route = |index: u32| {
            (Prefix::new(0x0a00_0000 + (index << 8), 24).unwrap(), Entry { hop: index % 7, tag: 0 })
        };
        Ip4Table::build((0..count).map(route)).unwrap().bytes()
    }

    #[test]
    fn memory_grows_with_the_table() {
        assert!(bytes(0) < 5_000 && bytes(10) < 7_500, "{} {}", bytes(0), bytes(10));
        assert!(bytes(1_000) < 20_000, "{}", bytes(1_000));
        assert!(bytes(100_000) < 1_000_000, "{}", bytes(100_000));
    }
}
