//! Trials: boxes that are made for real, sent a packet, and taken away.

use bench::{Backend, BoxProgram, MeasureError, TestBed, trial};

use super::finding::Finding;

/// Whether a kind of box runs here; `name` is what it is called.
pub(super) fn attempt(name: &'static str, kind: Backend) -> Finding {
    let tried = TestBed::new(kind, BoxProgram::Click, None).and_then(|bed| trial(&bed));
    match tried {
        Ok(trial) => {
            let found = format!("a firewall has its first packet through in {:.1} ms", trial.boot_ms);
            match trial.namespaces {
                Some(false) => Finding::limited(
                    name,
                    found,
                    "it has no namespaces of its own: fewer walls bed around it; see user namespaces",
                ),
                _ => Finding::good(name, found),
            }
        }
        Err(MeasureError::NoKvm) => Finding::missing(name, "none can be made", "see kvm"),
        Err(error) => Finding::missing(name, "none runs", error.to_string()),
    }
}
