//! The configurations in `examples/`: each runs and behaves as its comments describe.

use std::process::Command;

/// Runs an example with a few frames of one size; returns the values of the handlers, in order.
fn values(example: &str, length: u32, handlers: &[&str]) -> Vec<u64> {
    let path = format!("{}/../../examples/{example}.click", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command.args(["run", "--json", &path, "LIMIT=1000", &format!("LENGTH={length}")]);
    for handler in handlers {
        command.args(["--handler", handler]);
    }
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let value = |handler: &&str| summary["handlers"][*handler].as_str()?.trim().parse().ok();
    handlers
        .iter()
        .map(|handler| value(handler).unwrap_or_else(|| panic!("{handler} in {summary}")))
        .collect()
}

#[test]
fn examples_forward_every_frame() {
    for length in [64, 1500] {
        for example in
            ["wire", "ethermirror", "router", "firewall", "nat", "bras", "ids", "loadbalancer", "flowmonitor"]
        {
            assert_eq!(values(example, length, &["out.count"]), [1000], "{example}, {length} bytes");
        }
    }
}

#[test]
fn frames_of_unknown_sessions_are_dropped() {
    let frame = "FRAME=\\<020000000001 020000000002 8864  1100 0099 0004 0021  45000014>";
    let path = format!("{}/../../examples/bras.click", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["click", &path, "LIMIT=10", frame, "-h", "unknown.count", "-h", "out.count"])
        .output()
        .expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "unknown.count:\n10\n\nout.count:\n0\n\n");
}
