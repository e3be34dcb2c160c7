//! What the fabric of an owner gets of the processors: `alice=200`, `bob=100@2-3`.

use std::fmt;
use std::str::FromStr;

use api::Owner;
use protocol::launcher::Share;

/// The largest weight that control groups accept.
const MAX_WEIGHT: u16 = 10_000;

/// The largest number of a processor.
const MAX_PROCESSOR: u16 = 1023;

/// The share of an owner's fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FabricShare {
    pub(super) owner: Owner,
    pub(super) share: Share,
}

/// Text that is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareError;

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a share is an owner, a weight from 1 to 10000, and perhaps the processors that the fabric has to itself, \
             such as alice=200 or bob=100@2-3",
        )
    }
}

impl std::error::Error for ShareError {}

impl FromStr for FabricShare {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let (owner, share) = text.split_once('=').ok_or(ShareError)?;
        let (weight, list) = match share.split_once('@') {
            Some((weight, list)) => (weight, Some(list)),
            None => (share, None),
        };
        let weight = weight.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight));
        Ok(Self {
            owner: owner.parse().map_err(|_| ShareError)?,
            share: Share {
                weight: weight.ok_or(ShareError)?,
                processors: list.map_or(Ok(Vec::new()), processors)?,
            },
        })
    }
}

/// A list of processors, such as `2,4-6`.
fn processors(list: &str) -> Result<Vec<u16>, ShareError> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u16>().ok().filter(|number| *number <= MAX_PROCESSOR);
        let (first, last) = (number(first).ok_or(ShareError)?, number(last).ok_or(ShareError)?);
        if first > last {
            return Err(ShareError);
        }
        all.extend(first..=last);
    }
    sorting::sort(&mut all);
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parsed() {
        let parse =
            |text: &str| text.parse::<FabricShare>().map(|found| (found.owner.to_string(), found.share)).ok();
        let share = |weight, processors: &[u16]| Share { weight, processors: processors.to_vec() };
        assert_eq!(parse("alice=200"), Some(("alice".into(), share(200, &[]))));
        assert_eq!(parse("bob=1@2-4,7,3"), Some(("bob".into(), share(1, &[2, 3, 4, 7]))));
        let bad =
            ["alice", "=1", "Alice=1", "alice=0", "alice=10001", "alice=1@", "alice=1@4-2", "alice=1@9999"];
        for text in bad {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
