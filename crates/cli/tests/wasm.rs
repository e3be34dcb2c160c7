//! Functions in WebAssembly: a project, its test and its image, and a box that runs it under traffic.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Daemon, wait};
use test_support::{Capability, require};

/// Sends UDP packets when it is told to.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetUDPChecksum -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0);
    FromDevice(0) -> Discard;\n";
const SINK: &str = "FromDevice(0) -> got :: Counter -> Discard;\n";

fn clickbox(words: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox")).args(words).output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), text.into_owned())
}

fn count(daemon: &Daemon, handler: &str) -> u64 {
    let (code, text) = daemon.run(&["read", handler]);
    text.trim().parse().unwrap_or_else(|_| panic!("{handler}: {code} {text}"))
}

/// The packets that an element lost, by reason.
fn losses(daemon: &Daemon, handler: &str) -> Vec<(String, u64)> {
    let (_, text) = daemon.run(&["read", handler]);
    let split = text.lines().filter_map(|line| line.trim().split_once(' '));
    split.filter_map(|(name, count)| Some((name.to_string(), count.trim().parse().ok()?))).collect()
}

/// Base64, by the tool that the book names.
fn base64(path: &Path) -> String {
    let output = Command::new("base64").arg("-w0").arg(path).output().expect("base64");
    String::from_utf8(output.stdout).expect("a text")
}

#[test]
fn a_project_in_webassembly_runs_in_a_box_and_is_replaced_under_traffic() {
    if !require(Capability::Wasm) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm/scrub");
    fs::remove_dir_all(&folder).ok();
    let shown = folder.to_str().expect("a plain path").to_string();
    let (code, text) = clickbox(&["function", "new", "scrub", "--language", "wasm", &shown]);
    assert!(code == 0 && text.contains("src/lib.rs"), "{text}");
    let (code, text) = clickbox(&["function", "test", &shown]);
    assert!(code == 0 && text.contains("packets_pass_until_their_time_is_over ... ok"), "{text}");
    let (code, text) = clickbox(&["function", "build", "--debug", &shown]);
    assert!(code == 0 && text.contains("scrub.wasm has ") && text.contains("scrub.image has "), "{text}");
    let module = folder.join("scrub.wasm");
    let bytes = fs::metadata(&module).expect("the module").len();
    assert!(bytes < 20_000, "{bytes} bytes");

    // Another module: it drops all packets, and counts them under another name.
    let first = folder.join("first.wasm");
    fs::rename(&module, &first).expect("the module");
    let source = folder.join("src/lib.rs");
    let text = fs::read_to_string(&source).expect("the source");
    let changed = text.replace("Answer::NEXT", "Answer::DROP").replace("\"passed\"", "\"dropped\"");
    fs::write(&source, changed).expect("the source");
    let (code, text) = clickbox(&["function", "build", "--debug", &shown, "--json"]);
    assert!(code == 0 && text.contains("\"module\""), "{text}");
    let second = folder.join("second.wasm");
    fs::rename(&module, &second).expect("the module");
    fs::copy(&first, &module).expect("the module");

    let daemon = Daemon::start("wasm");
    for name in ["lan", "wan"] {
        daemon.check(&["switch", "create", name], 0, &[]);
    }
    let image = folder.join("scrub.image");
    let (configuration, image) = (folder.join("scrub.click"), image.to_str().expect("a plain path"));
    let configuration = configuration.to_str().expect("a plain path");
    let file = |name: &str, path: &Path| format!("{name}={}", path.display());
    let sent = file("scrub.wasm", &module);
    let words = ["create", "fw", configuration, "--image", image, "--file", &sent, "--ring", "2048"];
    let ports = ["--attach", "lan,transparent", "--attach", "wan,transparent"];
    daemon.check(&[&words[..], &ports[..]].concat(), 0, &["fw runs in "]);
    for (name, text, attach) in [("source", SOURCE, "lan,transparent"), ("sink", SINK, "wan,transparent")] {
        let path = daemon.file(&format!("{name}.click"), text);
        daemon.check(
            &["create", name, &path, "--sandbox", "process", "--ring", "2048", "--attach", attach],
            0,
            &[],
        );
    }
    let sent = || count(&daemon, "source/sent.count");
    daemon.check(&["write", "source/s.limit", "500"], 0, &[]);
    daemon.check(&["write", "source/s.active", "true"], 0, &[]);
    wait("all packets arrive", || count(&daemon, "sink/got.count") == 500);
    daemon.check(&["read", "fw/scrub.counters"], 0, &["passed 500"]);
    daemon.check(&["read", "fw/scrub.traps"], 0, &["0"]);

    // The module is replaced while packets pass. What is no module changes nothing.
    daemon.check(&["write", "source/s.limit", "1000000000"], 0, &[]);
    daemon.check(&["write", "source/s.active", "true"], 0, &[]);
    wait("packets pass", || count(&daemon, "sink/got.count") > 1_000);
    let refused = |words: &[&str], texts: &[&str]| {
        let (code, text) = daemon.run(words);
        assert!(code != 0 && texts.iter().all(|part| text.contains(part)), "{code} {text}");
    };
    refused(&["write", "fw/scrub.module", "AAAA"], &["does not begin with"]);
    daemon.check(&["write", "fw/scrub.module", &base64(&second)], 0, &[]);
    wait("packets are dropped", || losses(&daemon, "fw/scrub.losses").iter().any(|(_, lost)| *lost > 1_000));
    daemon.check(&["write", "fw/scrub.module", &base64(&first)], 0, &[]);
    daemon.check(&["write", "source/s.active", "false"], 0, &[]);
    let sent = sent();
    let calls = || count(&daemon, "fw/scrub.calls");
    let lost = || -> u64 { losses(&daemon, "fw/scrub.losses").iter().map(|(_, lost)| lost).sum() };
    let got = || count(&daemon, "sink/got.count");
    // Packets for which a ring had no room are lost before or behind the function.
    let full = || -> u64 {
        let ports = ["lan", "wan"].map(|name| daemon.json(&["switch", "show", name]));
        let ports = ports.iter().flat_map(|switch| switch["port_list"].as_array().expect("the ports"));
        ports
            .flat_map(|port| port["drops"].as_object().expect("drops").values())
            .filter_map(|lost| lost.as_u64())
            .sum()
    };
    wait("every packet is counted", || got() + lost() + full() == sent);
    assert!(calls() <= sent && calls() >= got() + lost(), "{} calls", calls());
    assert_eq!(losses(&daemon, "fw/scrub.losses"), [("function_drop".to_string(), lost())]);
    daemon.check(&["read", "fw/scrub.replaced"], 0, &["2"]);
    daemon.check(&["account"], 0, &[]);

    // A hot swap of the configuration keeps the counters.
    let path = daemon.file(
        "other.click",
        "FromDevice(0) -> scrub :: Wasm(second.wasm, FUEL 5000) -> ToDevice(1); FromDevice(1) -> ToDevice(0);",
    );
    let extra = file("second.wasm", &second);
    daemon.check(&["reload", "fw", &path, "--file", &extra], 0, &[]);
    daemon.check(&["read", "fw/scrub.fuel"], 0, &["5000"]);
    assert!(calls() >= got(), "the calls go on");
    // What is refused is told with its place, and the old one goes on.
    let wrong = daemon
        .file("wrong.click", "FromDevice(0) -> Wasm(nothing.wasm) -> ToDevice(1); Idle -> ToDevice(0);");
    refused(&["reload", "fw", &wrong], &["nothing.wasm", "wrong.click"]);
    daemon.check(&["read", "fw/scrub.fuel"], 0, &["5000"]);
}
