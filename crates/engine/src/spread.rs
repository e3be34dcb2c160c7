//! What a box knows as one of several that run one configuration together: it has a part of the flows.

use alloc::vec::Vec;
use boundary::SpreadRange;
use element::{DividedRange, HandlerError, IoError, OtherShards};
use packet::steering::Steering;

/// Why an element cannot reach the other boxes.
const APART: &str = "elements of a box with several cores can't reach the handlers of the other cores";

/// The ranges that translators divide among the boxes.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    steering: Steering,
    ranges: Vec<DividedRange>,
    /// Whether the host spreads packets by them.
    is_fixed: bool,
}

impl Spread {
    /// Divides a range.
    pub(crate) fn divide(&mut self, range: DividedRange) -> Result<(), IoError> {
        if self.steering.divides(range) {
            return Ok(());
        }
        let refused = |text: &str| Err(IoError::Failed(text.into()));
        if self.is_fixed {
            return refused(
                "the ranges of translators can't change while a box with several cores runs: stop it, and start it with \
                 the new configuration",
            );
        }
        if !self.steering.divide(range) {
            return refused("several cores need ranges that do not overlap");
        }
        self.ranges.push(range);
        Ok(())
    }

    /// The ranges, which can't change from now on.
    pub(crate) fn fix(&mut self) -> Vec<SpreadRange> {
        self.is_fixed = true;
        let told = |range: &DividedRange| match *range {
            DividedRange::Ports(address, first, last) => SpreadRange::Ports(address, first, last),
            DividedRange::Addresses(first, last) => SpreadRange::Addresses(first, last),
        };
        self.ranges.iter().map(told).collect()
    }
}

/// The other boxes, as elements of the first one would reach them. Only the host does.
pub(crate) struct UnreachableShards;

impl OtherShards for UnreachableShards {
    fn read(&self, _: &str, _: &str) -> Vec<Result<alloc::string::String, HandlerError>> {
        Vec::from([Err(HandlerError::new(APART))])
    }

    fn write(&self, _: &str, _: &str) -> Result<(), HandlerError> {
        Err(HandlerError::new(APART))
    }

    fn prepare(&self, _: &str) -> Result<(), HandlerError> {
        Err(HandlerError::new(APART))
    }

    fn abort(&self) {}

    fn commit(&self) {}
}
