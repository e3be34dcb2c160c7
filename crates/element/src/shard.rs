//! Shards: engines that run one configuration together, each with a part of the flows.

use alloc::format;
use core::net::Ipv4Addr;

use crate::error::SetupError;

/// One of the engines that run a configuration together, each with a part of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

impl Shard {
    /// The only shard of a configuration.
    pub const ONLY: Shard = Shard { index: 0, count: 1 };

    /// The shard that a handler's path begins with, `shard1/`, and the rest of the path.
    pub fn strip_prefix(self, path: &str) -> (Option<u32>, &str) {
        let split = path.strip_prefix("shard").and_then(|rest| rest.split_once('/'));
        let named = split.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        match named.filter(|(number, _)| self.count > 1 && *number < self.count) {
            Some((number, rest)) => (Some(number), rest),
            None => (None, path),
        }
    }

    /// Its part of a rate or of a capacity. The parts of all shards add up to `total`.
    pub fn share(self, total: u32) -> u32 {
        total / self.count.max(1) + u32::from(self.index < total % self.count.max(1))
    }

    /// Its part of a rate or of a capacity, which is an argument or a handler. Fails if a shard would get nothing.
    pub fn divide(self, name: &str, total: u32) -> Result<u32, SetupError> {
        match self.share(total) {
            0 if total > 0 => {
                Err(SetupError::new(format!("{name} {total} cannot be divided among {} shards", self.count)))
            }
            part => Ok(part),
        }
    }

    /// Its part of the numbers 0 to `top`: the first and the last. `None` if there are fewer numbers than shards.
    pub fn part(self, top: u32) -> Option<(u32, u32)> {
        let start = |index: u32| (u64::from(top) + 1) * u64::from(index) / u64::from(self.count.max(1));
        let (first, end) = (start(self.index), start(self.index + 1));
        (end > first).then(|| (first as u32, (end - 1) as u32))
    }

    /// The shard that has `number` of the numbers 0 to `top`.
    pub fn owner(number: u32, top: u32, count: u32) -> u32 {
        let owns =
            |index: &u32| Shard { index: *index, count }.part(top).is_some_and(|(_, last)| number <= last);
        (0..count).find(owns).unwrap_or(0)
    }
}

/// Numbers that a translator gives to flows, a part of them in each shard, so that replies show which shard has the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DividedRange {
    /// Ports of an address, both ends included.
    Ports(Ipv4Addr, u16, u16),
    /// Addresses, both ends included.
    Addresses(Ipv4Addr, Ipv4Addr),
}

impl DividedRange {
    /// Whether a reply could belong to both.
    pub fn overlaps(&self, other: &DividedRange) -> bool {
        let ends = |range: &DividedRange| match *range {
            DividedRange::Ports(address, ..) => (address, address),
            DividedRange::Addresses(first, last) => (first, last),
        };
        let ((first, last), (other_first, other_last)) = (ends(self), ends(other));
        match (self, other) {
            (DividedRange::Ports(one, low, high), DividedRange::Ports(two, other_low, other_high)) => {
                one == two && low <= other_high && other_low <= high
            }
            _ => first <= other_last && other_first <= last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn shares_add_up() {
        for (total, count) in [(1000, 3), (7, 7), (0, 2), (u32::MAX, 5)] {
            let shares = (0..count).map(|index| u64::from(Shard { index, count }.share(total)));
            assert_eq!(shares.sum::<u64>(), u64::from(total));
        }
        let last = Shard { index: 1, count: 2 };
        assert_eq!(
            last.divide("RATE", 1).map_err(|error| error.to_string()),
            Err("RATE 1 cannot be divided among 2 shards".into())
        );
    }

    #[test]
    fn parts_cover_each_number_once() {
        for (top, count) in [(64_511, 2), (64_511, 7), (3, 4), (u32::MAX, 3)] {
            let mut next = 0;
            for index in 0..count {
                let (first, last) = Shard { index, count }.part(top).expect("enough numbers");
                assert_eq!(u64::from(first), next);
                next = u64::from(last) + 1;
                for number in [first, last, first + (last - first) / 2] {
                    assert_eq!(Shard::owner(number, top, count), index);
                }
            }
            assert_eq!(next, u64::from(top) + 1);
        }
        assert_eq!(Shard { index: 0, count: 3 }.part(1), None);
    }

    #[test]
    fn ranges_overlap_by_address_and_port() {
        let ports = |last, low, high| DividedRange::Ports(Ipv4Addr::new(1, 0, 0, last), low, high);
        let addresses =
            |low, high| DividedRange::Addresses(Ipv4Addr::new(1, 0, 0, low), Ipv4Addr::new(1, 0, 0, high));
        assert!(ports(1, 10, 20).overlaps(&ports(1, 20, 30)));
        assert!(!ports(1, 10, 20).overlaps(&ports(1, 21, 30)));
        assert!(!ports(1, 10, 20).overlaps(&ports(2, 10, 20)));
        assert!(addresses(1, 4).overlaps(&ports(4, 1, 2)));
        assert!(!addresses(1, 3).overlaps(&addresses(4, 5)));
    }
}
