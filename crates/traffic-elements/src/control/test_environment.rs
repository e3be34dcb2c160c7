//! An empty environment, for tests of parsers.

use alloc::vec::Vec;

use element::{Descriptor, Environment};
use packet::Timestamp;

/// An environment with a stopped clock and no output.
pub(super) struct TestEnvironment;

impl Environment for TestEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn steady(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn seed(&self) -> u64 {
        0
    }

    fn console(&self, _: &str) {}

    fn wait(&self, _: &[(Descriptor, bool, bool)], _: Option<Timestamp>) -> Vec<Descriptor> {
        Vec::new()
    }
}
