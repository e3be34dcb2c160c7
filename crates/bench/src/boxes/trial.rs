//! A trial: whether boxes of a kind run here at all.

use crate::boxes::boot::start;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use std::fs::read_link;

/// What a box did that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Milliseconds from the call that makes it to its first packet.
    pub boot_ms: f64,
    /// Whether it has namespaces of its own; nothing: it is no process.
    pub namespaces: Option<bool>,
}

/// Makes one box, sends a packet through it, and takes it away.
pub fn trial(bed: &TestBed) -> Result<Trial, MeasureError> {
    let (sandbox, steps) = start(bed)?;
    let namespaces = sandbox.process_id().map(|id| {
        let namespace = |process: &str| read_link(format!("/proc/{process}/ns/user")).ok();
        namespace(&id.to_string()) != namespace("self")
    });
    Ok(Trial { boot_ms: steps.iter().sum(), namespaces })
}
