//! The example stacks between networks: `clickbox demo --network` passes and leaves nothing. Needs root and `ip`; prints
//! a note and skips without them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::{Capability, require};

/// A folder for the temporary files of the program, which has to be empty at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("clickbox-networks-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// The demonstration, with this folder. `program` starts it, given with its arguments.
    fn demo(&self, program: &[&str], arguments: &[&str]) -> Command {
        let words = [program, &[env!("CARGO_BIN_EXE_clickbox"), "demo", "--network"], arguments].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("TMPDIR", &self.0).stdin(Stdio::null());
        command
    }

    /// Removes the folder; fails if it is not empty.
    fn remove_empty(self) {
        fs::remove_dir(&self.0).expect("nothing remains");
    }
}

#[test]
fn example_stacks_pass_traffic_between_networks() {
    if !require(Capability::Root) {
        return;
    }
    let folder = Folder::new("pass");
    let output = folder.demo(&[], &["--json"]).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    let stacks = summary["stacks"].as_array().expect("a list");
    let names: Vec<_> = stacks.iter().filter_map(|stack| stack["name"].as_str()).collect();
    assert_eq!(names, ["bridge-firewall", "router", "nat", "load-balancer"]);
    for stack in stacks {
        let checks = stack["checks"].as_array().expect("a list");
        assert!(checks.len() >= 4 && checks.iter().all(|check| check["passed"] == true), "{stack}");
    }
    folder.remove_empty();
}

#[test]
fn an_interrupted_demonstration_leaves_nothing() {
    if !require(Capability::Root) {
        return;
    }
    let folder = Folder::new("interrupt");
    let mut child =
        folder.demo(&[], &["bridge-firewall"]).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("the output"));
    let mut text = String::new();
    while !text.contains("passed") {
        assert_ne!(lines.read_line(&mut text).expect("text"), 0, "{text}");
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("the program runs");
    lines.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("the program ends").code(), Some(1));
    assert!(text.ends_with("clickbox: interrupted\n"), "{text}");
    folder.remove_empty();
}

#[test]
fn a_missing_privilege_is_one_line() {
    if !require(Capability::Root) {
        return;
    }
    let folder = Folder::new("privilege");
    let program = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"];
    match folder.demo(&program, &[]).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
            assert!(text.contains("run it as root"), "{text}");
        }
        Err(error) => test_support::skip(Capability::Root, format!("setpriv: {error}")),
    }
    folder.remove_empty();
}
