//! Checks that start a real box, send it a packet, and remove it.

use bench::{BoxProgram, MeasureError, PlatformKind, TestBed, trial};

use crate::components;
use crate::error::message;

use super::check_result::CheckResult;

/// Checks that boxes of this platform run here; `name` is the name of the check.
pub(super) fn check(name: &'static str, platform: PlatformKind) -> CheckResult {
    let tried = TestBed::new(platform, BoxProgram::Click, components::get().box_image, None)
        .and_then(|bed| trial(&bed));
    match tried {
        Ok(trial) => {
            let found = format!("a firewall boots and forwards a packet in {:.1} ms", trial.boot_ms);
            match trial.namespaces {
                Some(false) => CheckResult::limited(
                    name,
                    found,
                    "boxes share the host's namespaces, so they are less isolated; see user namespaces",
                ),
                _ => CheckResult::good(name, found),
            }
        }
        Err(MeasureError::NoKvm) => CheckResult::missing(name, "not available", "see kvm"),
        Err(error) => CheckResult::missing(name, "no box can run", message(&error)),
    }
}
