//! What the store counts for each fabric.

/// What the store counts for each fabric.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counter {
    /// When the fabric started whose events were fetched.
    Started,
    /// The number of the last event that was fetched.
    Events,
}

impl Counter {
    /// The counter's name for the fabric with this number.
    pub(super) fn name(self, number: u32) -> String {
        let name = match self {
            Self::Started => "fabric_started",
            Self::Events => "fabric_events",
        };
        match number {
            0 => name.into(),
            number => format!("{name}/{number}"),
        }
    }
}
