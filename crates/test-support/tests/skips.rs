//! A skip is seen although the test harness captures output, and is a failure where the capability is required.

use std::process::{Command, Output};
use test_support::{Capability, VARIABLE, skip};

/// Set for the test that this program runs in a process of its own.
const INNER: &str = "CLICKBOX_TEST_INNER_SKIP";

/// Skips in the inner process; in the outer one there is nothing to do.
#[test]
fn inner() {
    if std::env::var_os(INNER).is_some() {
        skip(Capability::HugePages, "this machine is small");
    }
}

/// Runs `inner` in another process, with this list of required capabilities.
fn run(required: &str) -> (Output, String) {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "inner"])
        .env(INNER, "1")
        .env(VARIABLE, required)
        .output()
        .expect("this program runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).expect("text");
    (output, text)
}

#[test]
fn skips_are_printed_despite_output_capture() {
    for required in ["", "kvm,root"] {
        let (output, text) = run(required);
        assert!(output.status.success(), "{text}");
        let line = "SKIPPED inner: huge-pages is missing (this machine is small)";
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[test]
fn a_missing_required_capability_fails_the_test() {
    let (output, text) = run("kvm,huge-pages");
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("huge-pages is missing, and CLICKBOX_REQUIRE names it"), "{text}");
}

#[test]
fn an_unknown_capability_fails_the_test() {
    let (output, text) = run("kmv");
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("there is no capability \"kmv\""), "{text}");
}
