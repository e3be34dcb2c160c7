//! Address prefixes in host byte order.

/// An address that is matched by its leading bits: `u32` for IPv4, `u128` for IPv6.
pub trait Address: Copy + Ord {
    /// Length of an address in bits: a multiple of 8, at least 16.
    const BITS: u8;

    /// The byte at `level`, starting with the most significant; 0 beyond the end.
    fn byte(self, level: usize) -> usize;

    /// The address with all bits after the first `length` cleared.
    fn first(self, length: u8) -> Self;

    /// The address with all bits after the first `length` set.
    fn last(self, length: u8) -> Self;
}

macro_rules! address {
    ($word:ty) => {
        impl Address for $word {
            const BITS: u8 = <$word>::BITS as u8;

            #[inline]
            fn byte(self, level: usize) -> usize {
                match (<$word>::BITS as usize).checked_sub(8 * (level + 1)) {
                    Some(shift) => (self >> shift) as usize & 0xff,
                    None => 0,
                }
            }

            #[inline]
            fn first(self, length: u8) -> Self {
                self & !<$word>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
            }

            #[inline]
            fn last(self, length: u8) -> Self {
                self | <$word>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
            }
        }
    };
}

address!(u32);
address!(u128);

/// The first `length` bits of an address. The other bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    length: u8,
}

impl<A: Address> Prefix<A> {
    /// The prefix of `length` bits of `address`; `None` if an address has fewer bits.
    pub fn new(address: A, length: u8) -> Option<Self> {
        (length <= A::BITS).then(|| Self { address: address.first(length), length })
    }

    /// The lowest matching address.
    pub fn address(self) -> A {
        self.address
    }

    /// Number of bits to match.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether `address` begins with this prefix.
    pub fn contains(self, address: A) -> bool {
        address.first(self.length) == self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_length_are_cleared() {
        let prefix = Prefix::new(0x1234_5678u32, 12).unwrap();
        assert_eq!((prefix.address(), prefix.length()), (0x1230_0000, 12));
        assert!(prefix.contains(0x123f_ffff) && !prefix.contains(0x1240_0000));
        assert_eq!(Prefix::new(u32::MAX, 0).unwrap().address(), 0);
        assert_eq!(Prefix::new(u32::MAX, 32).unwrap().address(), u32::MAX);
        assert_eq!(Prefix::new(0u32, 33), None);
    }

    #[test]
    fn bytes_count_from_the_left() {
        assert_eq!([0, 1, 2, 3, 4].map(|level| 0x0102_03ffu32.byte(level)), [1, 2, 3, 255, 0]);
        assert_eq!((0xab_u128 << 120).byte(0), 0xab);
    }
}
