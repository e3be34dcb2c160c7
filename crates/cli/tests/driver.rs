//! The option errors of the `click` command, which use the wording of Click's program.

use std::process::{Command, Stdio};

/// Runs `clickbox click` with arguments, and asserts the exit code and the first line of standard error.
fn check(arguments: &[&str], code: i32, line: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .arg("click")
        .args(arguments)
        .env("LANG", "C")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert_eq!(text.lines().next().unwrap_or_default(), line, "{arguments:?}");
    let is_about_options = line.starts_with("click: ");
    assert_eq!(text.contains("\nUsage: click [OPTION]... [ROUTERFILE]\n"), is_about_options, "{arguments:?}");
}

const NOTHING: &str = "Idle -> Discard; DriverManager(stop)";

#[test]
fn option_errors_have_clicks_wording() {
    check(&["--nosuch"], 1, "click: unrecognized option '--nosuch'");
    check(&["-Z"], 1, "click: unrecognized option '-Z'");
    check(&["-f"], 1, "click: '-f' requires an argument");
    check(&["--handler"], 1, "click: '--handler' requires an argument");
    check(&["-j", "abc"], 1, "click: '-j' expects an integer, not 'abc'");
    check(&["--threads=abc"], 1, "click: '--threads' expects an integer, not 'abc'");
    check(&["--simtime=abc"], 1, "click: '--simtime' expects a real number, not 'abc'");
    check(&["-p", "abc"], 1, "click: '-p' expects a TCP port number, not 'abc'");
    check(&["--quit=3"], 1, "click: '--quit' can't take an argument");
    check(&["-x", "nope", "-e", NOTHING], 255, "no 'nope' read handler");
    check(&["-x", "nope.count", "-e", NOTHING], 255, "no element named 'nope'");
    check(&["-h", "nope", "-e", NOTHING], 1, "no 'nope' handler");
}

#[test]
fn long_options_may_be_abbreviated() {
    check(&["--vers"], 0, "");
    check(&["-q", "--hand=x.y", "-e", "x :: Idle -> Discard"], 1, "no 'x.y' handler");
    check(&["-q", "-q", "--expr", NOTHING], 0, "");
}
