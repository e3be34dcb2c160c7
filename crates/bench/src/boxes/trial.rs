//! A trial run: checks that boxes of a platform work on this host.

use crate::boxes::boot::start;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use std::fs::read_link;

/// The result of a trial run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Milliseconds from the call that creates the box to its first packet.
    pub boot_ms: f64,
    /// Whether the box has its own namespaces; `None` if it is not a process.
    pub namespaces: Option<bool>,
}

/// Creates a box, sends a packet through it, and removes it.
pub fn trial(bed: &TestBed) -> Result<Trial, MeasureError> {
    let (sandbox, steps) = start(bed)?;
    let namespaces = sandbox.process_id().map(|id| {
        let namespace = |process: &str| read_link(format!("/proc/{process}/ns/user")).ok();
        namespace(&id.to_string()) != namespace("self")
    });
    Ok(Trial { boot_ms: steps.iter().sum(), namespaces })
}
