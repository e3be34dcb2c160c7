//! Requests to a box.

use super::instance::Instance;
use crate::limits::STATS_TIMEOUT;
use boundary::{Request, Stats};
use model::ConfigurationName;
use std::time::Duration;

/// A configuration's name inside the box: the main one's is empty.
pub(crate) fn in_box(name: &ConfigurationName) -> &str {
    if *name == ConfigurationName::main() { "" } else { name.as_str() }
}

impl Instance {
    /// The box's own counters, if it reports them in a short time.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.stats_within(STATS_TIMEOUT)
    }

    /// The box's own counters, if it reports them in time.
    pub(crate) fn stats_within(&self, time: Duration) -> Option<Stats> {
        let reply = self.call(&Request::Stats, time).ok()?;
        Stats::decode(&reply).ok()
    }
}
