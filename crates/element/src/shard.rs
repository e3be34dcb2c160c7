//! Shards: engines that run one configuration together, each with a part of the flows.

use alloc::format;

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
        packet::steering::part(top, self.index, self.count)
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
}
