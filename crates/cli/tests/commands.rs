//! The commands' output and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How many times `bench engine` puts a short chain in a row, as `crates/bench` has it.
const REPETITIONS: u32 = 9;

/// The time for a process to reach a state.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Runs the program with arguments and standard input.
fn clickbox(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that does not read its input closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

/// Asserts the exit code, and that standard output or error contains each text.
fn check(arguments: &[&str], input: &str, code: i32, texts: &[&str]) {
    let output = clickbox(arguments, input);
    let all = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {all}");
    for text in texts {
        assert!(all.contains(text), "{arguments:?}: no {text:?} in: {all}");
    }
    assert!(!all.contains('\x1b'), "{arguments:?} prints colours into a pipe: {all}");
}

const GOOD: &str =
    "s :: InfiniteSource(LIMIT 3, STOP true) -> q :: Queue -> Unqueue -> c :: Counter -> Discard;\n";

#[test]
fn commands_print_the_expected_output() {
    for option in ["--version", "-V"] {
        assert_eq!(
            clickbox(&[option], "").stdout,
            concat!("clickbox ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()
        );
    }
    check(&["run", "-"], GOOD, 0, &["c :: Counter", "packets in"]);
    check(&["run", "--quiet", "--handler", "c.count", "-"], GOOD, 0, &["c.count = 3"]);
    check(&["run", "--quiet", "--handler", "c.nothing", "-"], GOOD, 1, &["nothing"]);
    check(&["check", "-"], GOOD, 0, &["0 errors"]);
    let files = ["check", "examples/wire.click", "-", "nowhere.click", "RATE=10"];
    check(&files, "", 2, &["wire.click: ", "<stdin>: 0 elements", "clickbox: nowhere.click: No such file"]);
    let lacking = "Idle -> Nothing(1) -> Strip(x) -> b :: Missing -> Nothing -> Strip(y) -> Discard";
    let brief = "<stdin>: no class Missing, Nothing; Strip: LENGTH: invalid number; 1 other error\n";
    check(&["check", "--brief", "-"], lacking, 1, &[brief]);
    check(&["check", "--brief", "-"], GOOD, 0, &["<stdin>: accepted\n"]);
    let unknown = "there is no driver dpdk: use af_packet or af_xdp for an interface, tap for ToHost and FromHost, or pcap \
                   for captures";
    check(&["run", "--device", "0=dpdk:eth0", "-"], GOOD, 2, &[unknown]);
    check(
        &["check", "--device", "eth0", "-"],
        GOOD,
        2,
        &["expected NAME=DRIVER:INTERFACE, for example 0=af_packet:eth0"],
    );
    let address = "Idle -> q :: ARPQuerier(10.0.0.1, lan) -> Discard; Idle -> [1]q; q[1] -> Discard;";
    check(&["check", "-"], address, 1, &["ETH: parse error"]);
    check(&["check", "--device", "lan=af_packet:lo", "-"], address, 0, &["0 errors"]);
    check(&["click", "-q", "-e", address], "", 1, &["ETH: parse error"]);
    check(&["click", "-q", "--device", "lan=af_packet:lo", "-e", address], "", 0, &[]);
    let route = "Idle -> LinearIPLookup(10.0.0.0/8 0, 0.0.0.0/0 0) -> Discard";
    check(&["check", "--device", "0=af_packet:lo", "-"], route, 0, &["0 errors"]);
    // A name stands for one interface, and one that no element has is probably misspelt.
    let twice = ["--device", "0=af_packet:lo", "--device", "0=af_packet:eth0", "-"];
    let refused = "--device binds 0 twice: a name stands for one interface, so leave one of them out";
    check(&[&["run"][..], &twice].concat(), GOOD, 2, &[refused]);
    check(&[&["check"][..], &twice].concat(), GOOD, 2, &[refused]);
    check(&[&["click", "-q"][..], &twice].concat(), GOOD, 1, &[refused]);
    let unused = "warning: --device 1: no element uses a device of this name: check it in the configuration";
    check(&["run", "--quiet", "--device", "1=af_packet:lo", "-"], GOOD, 0, &[unused]);
    check(&["click", "-q", "--device", "1=af_packet:lo", "-"], GOOD, 0, &[unused]);
    let used = ["run", "--quiet", "--device", "0=pcap:testdata/mix.pcap", "-"];
    let found = clickbox(&used, "FromDevice(0) -> Discard");
    assert_eq!((found.status.code(), String::from_utf8_lossy(&found.stderr).as_ref()), (Some(0), ""));
    let writers =
        "Idle -> ToDevice(0); Idle -> ToDPDKDevice(PORT 1); Idle -> ToDevice(DEVNAME 0); Idle -> ToDevice(2)";
    let duplicate = "ToDevice: duplicate writer for device ‘0’: join the paths before one ToDevice, for example at a Queue";
    check(&["check", "-"], writers, 1, &[duplicate, "8 elements, 1 error,"]);
    check(&["element", "FromDPDKDevice"], "", 0, &["FromDevice", "also FromDPDKDevice"]);
    check(&["flatten", "-"], GOOD, 0, &["Queue", "->"]);
    check(&["element", "Counter"], "", 0, &["Counter", "count"]);
    check(&["graph", "-"], GOOD, 0, &["<svg", "InfiniteSource", "class=\"line pull\"", "</svg>"]);
    check(&["graph", "--format", "dot", "-"], GOOD, 0, &["digraph", "style=dashed"]);
    check(&["completion", "bash"], "", 0, &["complete", "CLICKBOX_COMPLETE"]);
    check(&["--help"], "", 0, &["demo", "run", "check", "graph"]);
    check(&["flatten", "--json", "-"], GOOD, 0, &[r#""configuration": "s :: InfiniteSource"#]);
    check(&["graph", "--json", "-"], GOOD, 0, &[r#""class": "Queue""#, r#""element": "c""#]);
    check(
        &["fmt", "--json", "-"],
        "Idle->Discard;",
        0,
        &[r#""changed": true"#, r#""text": "Idle -> Discard"#],
    );
    check(&["fmt", "--json", "--check", "-"], "Idle->Discard;", 1, &[r#""changed": true"#]);
    check(&["fmt", "--check", "-"], "Idle->Discard;", 1, &["-\n"]);
    check(&["completion", "zsh", "--json"], "", 0, &[r##""script": "#compdef"##]);
}

#[test]
fn colors_follow_the_environment() {
    let is_styled = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
        command.args(["check", "-e", "Idle -> Disard;"]).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).output().expect("the program runs");
        String::from_utf8_lossy(&output.stderr).contains('\x1b')
    };
    assert!(!is_styled(&[]));
    assert!(is_styled(&[("CLICOLOR_FORCE", "1")]));
    assert!(!is_styled(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn missing_input_files_are_errors() {
    let missing = "FromDump(nowhere.dump, STOP true)\n -> Discard;";
    check(
        &["check", "-"],
        missing,
        1,
        &["the file ‘nowhere.dump’ does not exist", "<stdin>:1:10", "1 error, "],
    );
    let keyword = "f :: FromIPSummaryDump(STOP true,\n  FILENAME \"no where\") -> Discard;";
    check(&["check", "-"], keyword, 1, &["the file ‘no where’ does not exist", ":2:13", "1 error, "]);
    check(&["check", "-"], "FromDump($CAPTURE) -> Discard;", 0, &["0 errors"]);
    check(&["check", "-"], "FromDump(-) -> Discard; Idle -> ToDump(new.dump)", 0, &["0 errors"]);
    check(&["check", "-"], "FromDump(Cargo.toml) -> Discard;", 0, &["0 errors"]);
}

#[test]
fn errors_set_the_exit_code_and_name_the_cause() {
    check(&["run", "-"], "Idle -> Cuonter -> Discard;", 1, &["Cuonter", "Counter"]);
    check(&["check", "-"], "c :: Counter; c -> ", 1, &["error"]);
    check(&["graph", "-"], "Idle -> [", 1, &["error"]);
    check(&["fmt", "-"], "Idle -> [", 2, &["error"]);
    check(&["run", "nowhere.click"], "", 2, &["nowhere.click", "No such file"]);
    check(&["bench", "engine", "--config", "nowhere"], "", 1, &["nowhere"]);
    check(
        &["bench", "engine", "--config", "wire", "--peer", "/nowhere"],
        "",
        1,
        &["the peer /nowhere can't be started: No such file"],
    );
    check(&["nonsense"], "", 2, &["nonsense"]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let bad = "Idle -> Nosuch(1) -> Strip(a) -> Queue -> Discard(x); r :: Queue; Idle -> [1]r -> y;";
    let texts = [
        "undeclared element ‘Nosuch’",
        "undeclared element ‘y’",
        "‘r :: Queue’ has no input 1",
        "‘r :: Queue’ input 0 unused",
        "LENGTH: invalid number",
        "too many arguments",
        "6 errors",
    ];
    check(&["check", "-"], bad, 1, &texts);
    // An unknown name is reported once.
    check(&["check", "-"], "x -> Discard;", 1, &["undeclared element ‘x’", "1 error,"]);
    check(&["run", "nosuch.click"], "", 2, &["clickbox: nosuch.click: No such file or directory\n"]);
}

#[test]
fn errors_that_follow_from_others_are_left_out() {
    let alone = |text: &str, error: &str| check(&["check", "-"], text, 1, &[error, "1 error, 0 warnings"]);
    alone("InfiniteSource -> Strip(14) - Counter -> c :: Counter -> Discard;", "syntax error near ‘-’");
    alone("InfiniteSource -> Discard; s :: Strip(14) -> Counter -> Discard;", "‘s :: Strip’ input 0 unused");
    alone("x -> Discard; InfiniteSource -> x; InfiniteSource -> x;", "undeclared element ‘x’");
    // Click reports them.
    let text = "Idle -> Strip(14) - Discard;";
    check(&["click"], text, 1, &["syntax error near '-'"]);
}

#[test]
fn a_mistake_in_an_argument_is_shown_there() {
    let alone = |text: &str, column: usize, error: &str, hint: &str| {
        let place = format!(":1:{column}\n");
        check(&["check", "-"], text, 1, &[&place, error, hint, "1 error, "]);
        let [column, error, hint] = [format!("\"column\": {column},"), error.into(), hint.into()];
        check(&["check", "--json", "-"], text, 1, &[&column, &error, &hint]);
    };
    alone("InfiniteSource(LIMT 5) -> Discard;", 16, "LIMT: unknown argument", "did you mean ‘LIMIT’?");
    alone("InfiniteSource -> Queue(abc) -> Unqueue -> Discard;", 25, "Queue: CAPACITY: invalid number", "");
    let order = "arguments without a keyword come before those with one";
    alone("InfiniteSource -> Print(MAXLENGTH 5, hello) -> Discard;", 38, "Print: too many arguments", order);
    let tunnel = "InfiniteSource -> KernelTun(DEVNAME x, 10.0.0.1/24) -> Discard;";
    check(&["check", "-"], tunnel, 1, &["KernelTun: ADDR: parse error", order]);
    let filter = |rules: &str| format!("InfiniteSource -> f :: IPFilter({rules}) -> Discard;");
    alone(&filter("alow tcp, deny all"), 33, "IPFilter ‘f’: unknown action ‘alow’", "did you mean ‘allow’?");
    alone(&filter("deny all, allow tcp prot 80"), 43, "‘prot’ begins no condition", "did you mean ‘port’?");
    alone(
        &filter("allow dst net 10.0.0.0/33"),
        33,
        "address missing",
        "/33 is over 32, the length of an IPv4 address",
    );
    let routes = "InfiniteSource -> RadixIPLookup(0.0.0.0/0 0, 1.2.3.256/32 0) -> Discard;";
    alone(routes, 46, "a route is ‘ADDR/MASK [GATEWAY] OUTPUT’", "256 in ‘1.2.3.256’ is over 255");
    alone(
        "elementclas A { input -> output } InfiniteSource -> A -> Discard;",
        1,
        "elementclas",
        "‘elementclass’?",
    );
    alone("a : Idle; InfiniteSource -> Discard;", 3, "syntax error near ‘:’", "did you mean ‘::’?");
    // Click's words, for Click's driver.
    let click = "While configuring 'f :: IPFilter':\n  pattern 0: unknown slot ID 'alow'\n";
    check(&["click"], &filter("alow tcp"), 1, &[click]);
}

#[test]
fn requirements_are_checked() {
    let config = |package: &str| format!("require(package {package}); {GOOD}");
    check(&["click"], &config("ip"), 1, &["requirement 'ip' not available"]);
    check(&["click"], &config("pigeons"), 1, &["requirement 'pigeons' not available"]);
    check(&["check", "-"], &config("pigeons"), 1, &["requirement", "pigeons", "1 error"]);
}

#[test]
fn timewarp_controls_waiting() {
    let config = "Script(write timewarp nowait, print $(timewarp));
        TimedSource(3600, x, LIMIT 5, STOP true) -> c :: Counter -> Discard;";
    check(&["click", "-h", "c.count", "-h", "timewarp"], config, 0, &["nowait\n", "c.count:\n5\n"]);
    let config = "Script(write timewarp 0, write timewarp fast, print $(timewarp), stop)";
    check(&["click"], config, 0, &["timefactor must be > 0", "expected double", "1\n"]);
    check(&["click", "--simtime", "-h", "timewarp"], GOOD, 0, &["simulation"]);
}

#[test]
fn simulated_runs_end_at_their_time() {
    let config =
        "TimedSource(1) -> c :: Counter -> Discard; InfiniteSource(LIMIT 3) -> d :: Counter -> Discard;";
    let run = ["run", "--quiet", "--simtime", "--seconds", "3600.5", "--handler", "c.count", "-"];
    check(&run, config, 0, &["c.count = 3600\n"]);
}

#[test]
fn the_driver_ends_like_clicks() {
    let counters = "InfiniteSource(LIMIT 1, STOP true) -> a :: AggregatePacketCounter \
                    -> b :: AggregatePacketCounter -> CheckIPHeader -> Discard;";
    let of = |name| format!("{name} :: AggregatePacketCounter: warning: saw no packets");
    // Elements are cleaned up in reverse order of creation, and a handler that needs a parameter gives an empty value.
    let output = clickbox(&["click", "-h", "a.received", "-h", "a.undelivered", "-e", counters], "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.find(&of("b")) < text.find(&of("a")) && text.contains(&of("b")), "{text}");
    assert!(text.contains("no 'a.undelivered' handler"), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a.received:\n\n");
    let check_header = "c :: CheckIPHeader; Idle -> c -> Discard; DriverManager(stop)";
    check(&["click", "-h", "c.drop_details", "-e", check_header], "", 1, &["no 'c.drop_details' handler"]);
}

/// The signal reaches one thread; the shards sleep in others.
#[test]
fn a_signal_ends_shards_that_sleep() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["run", "-q", "--shards", "2", "-e", "TimedSource(1000) -> Discard"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let begin = Instant::now();
    let file = |task: &std::fs::DirEntry, name: &str| {
        std::fs::read_to_string(task.path().join(name)).unwrap_or_default()
    };
    let is_shard = |task: &std::fs::DirEntry| file(task, "comm").starts_with("shard");
    let sleeps = |task: &std::fs::DirEntry| {
        file(task, "stat").rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
    };
    // They may also wait for each other before they start.
    let mut seen = 0;
    while seen < 50 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", run.id())).expect("tasks");
        let tasks: Vec<_> = tasks.flatten().collect();
        let all = tasks.iter().filter(|task| is_shard(task)).count() == 2 && tasks.iter().all(sleeps);
        seen = if all { seen + 1 } else { 0 };
        assert!(begin.elapsed() < TIMEOUT, "they do not sleep");
        std::thread::sleep(Duration::from_millis(1));
    }
    let process = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a signal");
    let ended = loop {
        if let Some(status) = run.try_wait().expect("its status") {
            break Some(status);
        }
        if begin.elapsed() > TIMEOUT {
            break None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // A failed test leaves no process behind.
    let _ = run.kill();
    assert!(ended.is_some(), "it goes on");
}

#[test]
fn elements_are_assigned_to_threads() {
    let config = "StaticThreadSched(sub0 1); sub0, sub1 :: { s :: RatedSource -> q :: Queue -> d :: Discard;
        StaticThreadSched(d 0) }; Script(wait 1s, stop)";
    let handlers = ["-h", "sub0/s.home_thread", "-h", "sub0/d.home_thread", "-h", "sub1/s.home_thread"];
    let text = ["sub0/s.home_thread:\n1\n", "sub0/d.home_thread:\n0\n", "sub1/s.home_thread:\n0\n"];
    let run = ["click", "--simtime", "--threads=2", "-e", config];
    check(&[&run[..], &handlers].concat(), "", 0, &text);
    check(&["click", "-q", "-e", config], "", 0, &["warning: thread preference 1 out of range"]);
}

#[test]
fn formatting_changes_only_the_layout() {
    let output = clickbox(&["fmt", "-"], "a::Idle->b::Discard;// end");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a :: Idle -> b :: Discard; // end\n");
    for example in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).expect("examples")
    {
        let path = example.expect("an entry").path();
        if path.extension().is_some_and(|ending| ending == "click") {
            check(&["fmt", "--check", path.to_str().expect("a plain path")], "", 0, &[]);
        }
    }
}

#[test]
fn the_engine_demonstration_accounts_for_every_packet() {
    let output = clickbox(&["demo", "--engine", "--seconds", "0"], "");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let number = |line: &str| {
        let words = line.split_whitespace().rev();
        words.skip(2).find_map(|word| word.replace(',', "").parse::<u64>().ok())
    };
    let went_in = text.lines().find(|line| line.contains("the capture,")).and_then(number);
    let sums: Vec<u64> = text.lines().filter(|line| line.contains("total")).filter_map(number).collect();
    assert_eq!(went_in, Some(2500), "{text}");
    assert_eq!(sums.iter().sum::<u64>(), 2500, "{text}");
    assert!(text.contains("belongs to no connection") && text.contains("mail from inside"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    let output = clickbox(&["demo", "--engine", "--seconds", "0", "--json"], "");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let dropped =
        summary["dropped"].as_array().into_iter().flatten().filter_map(|row| row["packets"].as_u64());
    let sum = summary["sent_packets"].as_u64().map(|sent| sent + dropped.sum::<u64>());
    assert_eq!((summary["received_packets"].as_u64(), sum), (Some(2500), Some(2500)), "{summary}");
}

/// If the peer does not exit, only this program's figures are printed.
#[test]
fn a_peer_that_exceeds_its_time_limit_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let peer = std::env::temp_dir().join(format!("clickbox-late-{}", std::process::id()));
    std::fs::write(&peer, "#!/bin/sh\nexec sleep 600\n").expect("a script");
    std::fs::set_permissions(&peer, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let path = peer.to_str().expect("a plain path");
    let words = ["bench", "engine", "--config", "wire", "--runs", "1", "--packets", "3000", "--json"];
    let output = clickbox(&[&words[..], &["--timeout", "8", "--peer", path]].concat(), "");
    let _ = std::fs::remove_file(&peer);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let row = &report["results"][0];
    assert!(row["mpps"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
    assert!(row["peer"].is_null(), "{row}");
    assert_eq!(row["note"], "the peer takes longer than 8 s");
}

/// Writes a script that stands for a peer: it prints times that depend on the configuration's file alone, and this many
/// packets.
///
/// For 3000 packets its times are 1000 ns a packet for reading and 4000 ns for the chain.
fn peer_script(path: &Path, packets_out: u64) {
    use std::os::unix::fs::PermissionsExt;
    let text = format!(
        "#!/bin/sh\n\
         for file; do :; done\n\
         ! grep -q MEMORY $file || exit 1\n\
         case $file in\n\
         */peer-baseline.click) echo 0.002u 0.001s 0:00.01;;\n\
         */peer-whole.click) echo 0.010u 0.005s 0:00.02;;\n\
         */peer-repeated.click) echo 0.{:03}u 0.000s 0:00.20;;\n\
         *) echo \"unknown file $file\" >&2; exit 1;;\n\
         esac\n\
         case \"$*\" in *'-h chain/out.count'*) echo {packets_out};; esac\n",
        3 + 12 * REPETITIONS
    );
    std::fs::write(path, text).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

/// Checks every field of the JSON of `bench engine`, with a script as the peer.
#[test]
fn the_benchmark_prints_its_fields() {
    let folder = std::env::temp_dir().join(format!("clickbox-peer-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (lossy, lossless) = (folder.join("lossy"), folder.join("lossless"));
    peer_script(&lossy, 41);
    peer_script(&lossless, 3000);
    let bench = |words: &[&str]| {
        let short = ["bench", "engine", "--runs", "1", "--packets", "3000", "--json"];
        let output = clickbox(&[&short, words].concat(), "");
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        report["results"].as_array().expect("a list").clone()
    };
    let peer = ["--peer", lossy.to_str().expect("a plain path")];
    let loads = ["--config", "firewall", "--config", "wire", "--size", "64,imix", "--rules", "1,20"];
    let results = bench(&[&loads[..], &["--flows", "50"], &peer].concat());
    let shape: Vec<_> = results
        .iter()
        .map(|row| (row["config"].as_str().expect("a name"), row["size"].to_string(), row["rules"].as_u64()))
        .collect();
    let expected = [
        ("firewall", "64", Some(1)),
        ("firewall", "64", Some(20)),
        ("firewall", "\"imix\"", Some(1)),
        ("firewall", "\"imix\"", Some(20)),
        ("wire", "64", None),
        ("wire", "\"imix\"", None),
    ];
    assert_eq!(shape, expected.map(|(config, size, rules)| (config, size.to_string(), rules)));
    for row in &results {
        assert_eq!(
            (&row["traffic"], row["flows"].as_u64(), row["packets"].as_u64()),
            (&"mixed".into(), Some(50), Some(3000))
        );
        let figure = |field: &str| row.pointer(field).and_then(Value::as_f64).unwrap_or(f64::NAN);
        for field in ["/ns_per_packet", "/mpps", "/batch"] {
            assert!(figure(field) > 0.0, "{field}: {row}");
        }
        for field in ["/chain_ns", "/spread", "/repeated"] {
            assert!(figure(field) >= 0.0, "{field}: {row}");
        }
        let theirs = [("ns_per_packet", 5000.0), ("mpps", 0.2), ("chain_ns", 4000.0), ("spread", 0.0)];
        for (field, expected) in theirs.into_iter().chain([("ratio", 5000.0 / figure("/ns_per_packet"))]) {
            let found = figure(&format!("/peer/{field}"));
            assert!((found - expected).abs() <= 0.01 * expected, "peer's {field} is not {expected}: {row}");
        }
        let note = row["note"].as_str().unwrap_or_default();
        assert!(note.ends_with(" packets came out here, 41 in the peer"), "{row}");
    }
    let ratio = |row: &Value| row["peer"]["chain_ratio"].as_f64().zip(row["chain_ns"].as_f64());
    for (ratio, chain) in results.iter().filter_map(ratio) {
        assert!((ratio * chain - 4000.0).abs() < 0.05 * 4000.0, "{results:?}");
    }
    // The wire loses nothing, and neither does this peer.
    let results_of_lossless =
        bench(&["--config", "wire", "--peer", lossless.to_str().expect("a plain path")]);
    assert!(results_of_lossless[0]["peer"].is_object(), "{results_of_lossless:?}");
    assert_eq!(results_of_lossless[0]["note"], Value::Null, "{results_of_lossless:?}");
    // A chain that passes all packets of FromDump keeps the batches large; a chain that splits them does not.
    let batch = |row: &Value| row["batch"].as_f64().expect("a length");
    assert!((64.0..=256.0).contains(&batch(&results[4])), "{}", results[4]);
    let split = bench(&["--config", "loadbalancer"]);
    assert!((1.0..64.0).contains(&batch(&split[0])), "{}", split[0]);

    // The peer does not know the argument for the compact form.
    let compact = ["--config", "firewall", "--config", "wire", "--rules", "20", "--compact"];
    let results = bench(&[&compact[..], &peer].concat());
    let shape: Vec<_> =
        results.iter().map(|row| (row["compact"].as_bool(), row["peer"].is_object())).collect();
    assert_eq!(shape, [(Some(true), true), (None, true)], "{results:?}");

    // A failed peer is noted, and is not an error.
    let results = bench(&["--config", "wire", "--peer", "/bin/false"]);
    assert_eq!(results[0]["peer"], Value::Null);
    assert!(
        results[0]["note"].as_str().is_some_and(|note| note.contains("the peer fails")),
        "{}",
        results[0]
    );

    // Classes are measured in all their forms, and not repeated.
    let results = bench(&[&["--classes", "Strip,Tee"], &peer[..]].concat());
    let shape =
        results.iter().map(|row| (row["config"].as_str(), row["repeated"].as_u64(), row["peer"].is_object()));
    let expected = ["Tee", "Tee (4 ways)", "Strip"].map(|name| (Some(name), Some(1), true));
    assert_eq!(shape.collect::<Vec<_>>(), expected);
    let strip = ["bench", "engine", "--classes", "Strip", "--runs", "1", "--packets", "3000", "--peer"];
    check(
        &[&strip[..], &[lossless.to_str().expect("a plain path")]].concat(),
        "",
        0,
        &["the peer's whole time"],
    );
    check(
        &["bench", "engine", "--classes", "Nothing"],
        "",
        1,
        &["no configuration measures a class `Nothing`"],
    );

    // Every example runs with every kind of traffic.
    for traffic in ["mixed", "constant", "testdata/mix.pcap"] {
        let results = bench(&["--all", "--traffic", traffic]);
        assert_eq!(results.len(), 9, "{traffic}");
        for row in &results {
            // The capture file has no PPPoE.
            let is_unsuitable = row["config"] == "bras" && traffic.ends_with("pcap");
            let note = row["note"].as_str().unwrap_or("");
            assert_eq!(
                (row["batch"].is_null(), note.contains("no packet")),
                (is_unsuitable, is_unsuitable),
                "{traffic}: {row}"
            );
        }
    }
    check(&["bench", "engine", "--traffic", "/nowhere.pcap"], "", 1, &["/nowhere.pcap", "No such file"]);
    check(&["bench", "engine", "--size", "59"], "", 2, &["60 to 1514"]);
    let _ = std::fs::remove_dir_all(&folder);
}

/// The output of the box benchmarks; their figures are tested in `crates/bench`.
#[test]
fn the_benchmarks_of_boxes_print_their_fields() {
    let short = ["--sandbox", "process", "--runs", "1", "--time", "10", "--json"];
    let cases: [(&[&str], &[&str]); 7] = [
        (
            &["boot", "--count", "2"],
            &[
                "/daemon_ms/first_packet_ms/p50",
                "/daemon_ms/reply_ms/max",
                "/service_ms/first_packet_ms/p50",
                "/death_ms/p50",
            ],
        ),
        (&["boot", "--count", "2"], &["/boot_ms/p50", "/boot_ms/p99", "/boot_ms/max", "/boot_ms/first"]),
        (&["boot", "--count", "1"], &["/boot_ms/last", "/steps_ms/create", "/install_ms/p50", "/private_kb"]),
        (&["io", "--mode", "mirror", "--size", "64", "--ring", "64"], &["/size", "/ring", "/mpps", "/gbps"]),
        (&["latency", "--others", "0"], &["/rows/0/p50_us", "/rows/0/p99_us"]),
        (&["density", "--boxes", "2", "--ring", "128"], &["/boxes", "/size", "/ring", "/mpps", "/gbps"]),
        (&["state"], &["/write_us/p50", "/write_us/p99", "/read_us/p50", "/read_us/p99"]),
    ];
    for (words, fields) in cases {
        let output = clickbox(&[&["bench"], words, &short].concat(), "");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{words:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        });
        for field in fields {
            let number = report.pointer(field).and_then(Value::as_f64);
            // On a busy machine a rate may round to zero.
            assert!(number.is_some_and(|number| number >= 0.0), "{words:?}: {field}: {report}");
        }
    }
    check(&["bench", "io", "--ring", "100", "--sandbox", "process"], "", 1, &["100 slots"]);
    let controller =
        ["--rules", "40", "--services", "1", "--flows", "4", "--rate", "1000", "--changes", "60"];
    let output =
        clickbox(&[&["bench", "controller", "--batch", "20", "--json"], &controller[..]].concat(), "");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let [rate, sent, hits] =
        ["changes_per_second", "sent", "hit_rate"].map(|field| &report["rows"][0][field]);
    assert!(rate.as_f64() > Some(0.0) && sent.as_u64() > Some(0) && hits.as_f64() <= Some(1.0), "{report}");
    check(&["bench", "memory", "--entries", "20"], "", 0, &["2048", "20 rules", "8 patterns"]);
    check(&["bench", "all", "--out", "/proc/nowhere"], "", 1, &["/proc/nowhere"]);
}
