//! Longest-prefix match for IPv6.

/// Routes of IPv6 addresses in host byte order (the first byte is the most significant).
pub type Ip6Table = crate::PrefixTable<u128>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Prefix};

    #[test]
    fn nested_prefixes_of_every_length() {
        let address = 0x2001_0db8_0001_0203_0405_0607_0809_0a0b_u128;
        let mut table = Ip6Table::new();
        for length in (0..=128).rev() {
            let prefix = Prefix::new(address, length).unwrap();
            table.insert(prefix, Entry { hop: u32::from(length), tag: 0 }).unwrap();
        }
        assert_eq!(table.lookup(address), Some(128));
        for length in 0..128 {
            let sibling = address ^ 1 << (127 - length);
            assert_eq!(table.lookup(sibling), Some(length));
        }
    }
}
