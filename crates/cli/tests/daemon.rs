//! The commands for boxes against a daemon of the test, with boxes in processes.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::{Daemon, TIMEOUT};
use test_support::{Capability, require};

const FIREWALL: &str = "source :: InfiniteSource(LIMIT 5) -> UDPIPEncap(10.1.2.3, 1234, 10.9.9.9, 53)
    -> filter :: IPFilter(allow all) -> c :: Counter -> Discard;\n";

#[test]
fn a_box_is_created_used_and_removed() {
    let daemon = Daemon::start("life");
    let file = daemon.file("fw.click", FIREWALL);
    daemon.check(&["ps"], 0, &["clickbox create"]);
    daemon.check(
        &["create", "fw", &file, "--sandbox", "process", "--restart", "on-failure"],
        0,
        &["fw runs"],
    );
    daemon.check(&["create", "fw", &file, "--sandbox", "process"], 6, &["fw"]);
    daemon.check(&["ps"], 0, &["fw", "running", "process"]);
    daemon.check(&["top"], 0, &["1 box, 1 running", "fw"]);
    daemon.until(&["read", "fw/c.count"], "5");

    daemon.check(&["handlers", "fw", "c"], 0, &["fw/c.count", "read"]);
    daemon.check(&["handlers", "fw", "d"], 4, &["no element d"]);
    daemon.check(&["ps", "--label", "site=north"], 0, &["no box has"]);
    daemon.check(&["write", "fw/filter.rules", "deny udp dst port 53, allow all"], 0, &[]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny udp dst port 53, allow all"]);
    daemon.check(&["write", "fw/filter.rules", "allow nonsense"], 5, &["nonsense"]);
    daemon.check(&["read", "fw/nothing.count"], 4, &["nothing"]);
    daemon.check(&["read", "absent/c.count"], 4, &["absent"]);

    // The count is carried over, and an error changes nothing.
    let better = daemon.file("better.click", &FIREWALL.replace("allow all", "deny all"));
    daemon.check(&["reload", "fw", &better], 0, &["main is replaced, for the 1st time"]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny all"]);
    let wrong = daemon.file("wrong.click", "Idle -> Cuonter -> Discard;\n");
    daemon.check(&["reload", "fw", &wrong], 5, &["Idle -> Cuonter -> Discard;", "^^^^^^^", "Counter"]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny all"]);
    daemon.check(&["create", "other", &wrong, "--sandbox", "process"], 5, &["Cuonter"]);
    daemon.check(&["create", "other", &better, "--memory", "100K"], 2, &["512K"]);

    let second = daemon.file("second.click", "i :: Idle -> Discard; Script(print \"hello\");\n");
    daemon.check(&["install", "fw", &format!("second={second}")], 0, &["second is installed"]);
    daemon.check(&["read", "fw/second:i.class"], 0, &["Idle"]);
    daemon.until(&["logs", "fw"], "second: hello");
    daemon.check(&["uninstall", "fw", "second"], 0, &[]);
    let lost = daemon.file("lost.click", "Idle -> Discard;\n  lost :: FromDump(nowhere.pcap) -> Discard;\n");
    let place = format!("{lost}:2:3");
    daemon.check(&["install", "fw", &format!("second={lost}")], 5, &[&place, "^^^^", "nowhere.pcap"]);
    daemon.check(&["read", "fw/second:i.class"], 4, &["second"]);

    daemon.check(&["suspend", "fw"], 0, &["fw is suspended"]);
    daemon.check(&["resume", "fw"], 0, &["fw is running"]);
    daemon.check(&["kill", "fw"], 0, &["fw was killed, and restarts"]);
    daemon.until(&["show", "fw"], "; 1 restart\n");
    daemon.until(&["ps"], "running");
    daemon.check(&["stop", "fw"], 0, &["fw is stopped"]);
    daemon.check(&["read", "fw/c.count"], 6, &["fw"]);
    daemon.check(&["start", "fw"], 0, &["fw is running"]);
    daemon.check(&["restart", "fw"], 0, &["fw is running"]);
    daemon.check(&["events"], 0, &["box/fw"]);
    daemon.check(&["rm", "fw"], 6, &["is not stopped", "clickbox stop fw", "--force"]);
    daemon.check(&["rm", "--force", "fw"], 0, &[]);
    daemon.check(&["rm", "fw"], 4, &["fw"]);
    daemon.check(&["doctor"], 0, &["Boxes can run here."]);
}

/// A configuration can pass the check, and be too large for the memory of its box.
#[test]
fn a_box_with_too_little_memory_says_so() {
    let daemon = Daemon::start("memory");
    let rule =
        |number| format!("allow src net 10.{}.{}.0/24 && dst port {number}", number / 250, number % 250);
    let rules: Vec<String> = (0..4000).map(rule).collect();
    let file = daemon.file("large.click", &format!("Idle -> IPFilter({}) -> Discard;\n", rules.join(", ")));
    let create = ["create", "large", &file, "--sandbox", "process"];
    let texts = ["the box can't be created", "out of memory", "more memory than 4M"];
    daemon.check(&[&create[..], &["--memory", "4M"]].concat(), 2, &texts);
    daemon.check(&["show", "large"], 4, &["large"]);
    daemon.check(&[&create[..], &["--memory", "64M"]].concat(), 0, &["large runs"]);
}

#[test]
fn a_crash_report_names_the_function() {
    let daemon = Daemon::start("function");
    let file = daemon.file("busy.click", "InfiniteSource -> c :: Counter -> Discard;\n");
    daemon.check(&["create", "busy", &file, "--sandbox", "process", "--restart", "never"], 0, &["busy runs"]);
    let process = daemon.json(&["show", "busy"])["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let process = process.and_then(Pid::from_raw).expect("a process");
    kill_process(process, Signal::SEGV).expect("a signal");
    daemon.until(&["show", "busy"], "last crash");
    let crash = &daemon.json(&["show", "busy"])["crash"];
    let function = crash["function"].as_str().unwrap_or_default();
    let (name, offset) = function.rsplit_once('+').expect("a function and an offset");
    assert!(!name.is_empty() && offset.starts_with("0x"), "{function}");
}

/// The files that a box writes can be read by other tools, and their names are not host paths.
#[test]
fn files_that_a_box_writes_are_fetched() {
    let daemon = Daemon::start("files");
    let file = daemon.file(
        "dump.click",
        "i :: InfiniteSource(LENGTH 60, LIMIT 1000, BURST 7) -> ToDump(../out.pcap, UNBUFFERED true);\n",
    );
    daemon.check(&["create", "fw", &file, "--sandbox", "process"], 0, &[]);
    let size = 24 + 1000 * (16 + 60);
    daemon.until(&["files", "fw"], "76,024");
    assert_eq!(daemon.json(&["files", "fw"])[0]["name"], "../out.pcap");
    let copy = daemon.folder.join("copy.pcap");
    let path = copy.to_str().expect("a plain path");
    daemon.check(&["files", "fw", "../out.pcap", "-w", path], 0, &[]);
    assert_eq!(std::fs::read(&copy).expect("the copy").len(), size);
    assert!(!daemon.folder.join("../out.pcap").exists());
    let read = [
        "run",
        "-q",
        "-e",
        &format!("FromDump({path}, STOP true) -> c :: Counter -> Discard"),
        "--handler",
        "c.count",
    ];
    daemon.check(&read, 0, &["1000"]);
    daemon.check(&["files", "fw", "other.pcap"], 4, &["clickbox files fw"]);
    daemon.check(&["files", "fw", "-w", path], 2, &[]);
    daemon.check(&["logs", "fw"], 0, &["the box writes a file ../out.pcap"]);
    // The file is removed with the box.
    daemon.check(&["restart", "fw"], 0, &[]);
    daemon.until(&["files", "fw"], "76,024");
    daemon.check(&["rm", "--force", "fw"], 0, &[]);
    daemon.check(&["files", "fw"], 4, &["no box fw"]);
}

/// A box can't decompress gzip files, so they are decompressed before the transfer.
#[test]
fn a_compressed_file_is_unpacked_for_the_box() {
    let daemon = Daemon::start("gzip");
    let plain = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&std::fs::read(plain).expect("the capture")).expect("it is packed");
    let path = daemon.folder.join("mix.pcap.gz");
    std::fs::write(&path, packed.finish().expect("it is packed")).expect("a file");
    let text = |path: &str| format!("FromDump({path}, STOP false) -> c :: Counter -> Discard;\n");
    let file = daemon.file("packed.click", &text(path.to_str().expect("a plain path")));
    daemon.check(&["create", "packed", &file, "--sandbox", "process"], 0, &[]);
    let file = daemon.file("plain.click", &text(plain));
    daemon.check(&["create", "plain", &file, "--sandbox", "process"], 0, &[]);
    let begin = Instant::now();
    loop {
        let counts =
            ["packed", "plain"].map(|name| daemon.check(&["read", &format!("{name}/c.count")], 0, &[]));
        if counts[0] == counts[1] && counts[0].trim() != "0" {
            return;
        }
        assert!(begin.elapsed() < TIMEOUT, "{counts:?}");
    }
}

#[test]
fn no_box_runs_in_a_thread_of_the_daemon() {
    let daemon = Daemon::start("threads");
    let file = daemon.file("fw.click", FIREWALL);
    for sandbox in ["none", "thread"] {
        daemon.check(&["create", "fw", &file, "--sandbox", sandbox], 2, &[sandbox, "process"]);
    }
    let boxes = daemon.run(&["ps", "--json"]);
    assert_eq!((boxes.0, boxes.1.trim()), (0, "[]"));
}

#[test]
fn boxes_are_joined_by_switches() {
    let daemon = Daemon::start("switches");
    let source = daemon.file(
        "source.click",
        "RatedSource(DATA \\<020000000002 020000000001 0800 00>, LENGTH 64, RATE 1000) -> Queue(100) -> ToDevice(0);\n",
    );
    let sink = daemon.file("sink.click", "FromDevice(0) -> c :: Counter -> Discard;\n");
    daemon.check(&["switch", "create", "lan", "--mode", "static"], 0, &[]);
    daemon.check(&["create", "sink", &sink, "--sandbox", "process", "--attach", "lan"], 0, &[]);
    daemon.check(
        &["create", "source", &source, "--sandbox", "process", "--attach", "lan,mac=02:00:00:00:00:01"],
        0,
        &[],
    );
    daemon.check(&["port", "ls", "lan"], 0, &["sink.0", "source.0"]);
    daemon.check(&["port", "ls"], 0, &["SWITCH", "lan", "sink.0"]);
    daemon.check(&["port", "ls", "--json"], 0, &["\"switch\": \"lan\"", "\"name\": \"sink.0\""]);
    daemon.check(&["address", "add", "lan", "02:00:00:00:00:02", "sink.0"], 0, &[]);
    daemon.check(&["address", "ls", "lan"], 0, &["02:00:00:00:00:02", "sink.0", "static"]);
    let begin = Instant::now();
    while daemon.check(&["read", "sink/c.count"], 0, &[]).trim().parse::<u64>().expect("a number") < 10 {
        assert!(begin.elapsed() < TIMEOUT, "no packet comes through the switch");
    }
    let capture = daemon.folder.join("out.pcap");
    let path = capture.to_str().expect("a plain path");
    daemon.check(&["capture", "sink", "--port", "0", "--count", "3", "-w", path], 0, &[]);
    // A file header, and three packets of 64 bytes, each with a record header.
    assert_eq!(std::fs::read(&capture).expect("the capture").len(), 24 + 3 * (16 + 64));
    let packets = daemon.check(&["capture", "sink", "--count", "2", "--snap", "14", "--json"], 0, &[]);
    for packet in packets.lines() {
        let packet: serde_json::Value = serde_json::from_str(packet).expect("JSON");
        assert_eq!(
            (&packet["length"], &packet["bytes"]),
            (&64.into(), &"0200000000020200000000010800".into())
        );
    }
    assert_eq!(packets.lines().count(), 2);
    // Ctrl-C ends a capture, and its summary is printed.
    let mut capture = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["capture", "sink", "-w", path])
        .env("CLICKBOX_SOCKET", daemon.socket())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut messages = BufReader::new(capture.stderr.take().expect("a pipe")).lines();
    let mut next = || messages.next().expect("a line").expect("a line");
    assert_eq!(next(), "clickbox: capturing at sink:0; press Ctrl-C to stop");
    kill_process(Pid::from_child(&capture), Signal::INT).expect("a signal");
    assert!(next().contains("captured"));
    assert!(capture.wait().expect("the program ends").success());
    let none = daemon.folder.join("none.pcap");
    let path = none.to_str().expect("a plain path");
    daemon.check(&["capture", "absent", "-w", path], 4, &["no box absent"]);
    assert!(!none.exists());
    daemon.check(&["port", "add", "lan", "nowhere", "--driver", "null"], 0, &[]);
    daemon.check(&["port", "rm", "lan", "nowhere"], 0, &[]);
    daemon.check(&["port", "rm", "lan", "nowhere"], 4, &["nowhere"]);
    daemon.check(&["address", "rm", "lan", "02:00:00:00:00:02"], 0, &[]);
    daemon.check(&["switch", "rm", "lan"], 6, &["is used by box sink, box source", "--force"]);
    daemon.check(&["port", "rm", "lan", "sink.0"], 6, &["port lan/sink.0 is used by box sink", "--force"]);
    daemon.check(&["switch", "rm", "--force", "lan"], 0, &[]);
    daemon.check(&["ps", "--quiet"], 0, &["sink", "source"]);
}

#[test]
fn a_stack_is_applied_changed_and_removed() {
    let daemon = Daemon::start("stack");
    daemon.file("fw.click", "FromDevice(0) -> c :: Counter -> Queue -> ToDevice(1);\n");
    let text = "chains = [[\"lan\", \"one\", \"two\"]]\n[switches.lan]\n\
         [boxes.one]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\n\
         [boxes.two]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\nattach = [\"-\"]\n";
    let file = daemon.file("edge.toml", text);
    daemon.check(&["diff", &file], 1, &["create", "box/one", "switch/lan"]);
    daemon.check(&["up", &file], 0, &["create", "box/one", "box/two", "switch/lan"]);
    daemon.check(&["up", &file], 0, &["nothing to change"]);
    daemon.check(&["port", "add", "lan", "hand", "--driver", "null"], 0, &[]);
    let left_alone = "switch/lan/hand: not part of the stack; left alone";
    daemon.check(&["up", &file], 0, &["nothing to change", left_alone]);
    daemon.check(&["diff", &file], 0, &["nothing to change", left_alone]);
    daemon.check(&["down", "edge"], 6, &["switch lan is used by port lan/hand", "--force"]);
    daemon.check(&["port", "rm", "lan", "hand"], 0, &[]);
    daemon.check(&["stacks"], 0, &["edge", "2", "1"]);
    daemon.check(&["ps"], 0, &["one", "two", "running"]);
    daemon.file("fw.click", "FromDevice(0) -> c :: Counter -> Queue(7) -> ToDevice(1);\n");
    let text = daemon.check(&["diff", &file], 1, &["reload", "box/one"]);
    for line in [
        "--- box/one\n+++ fw.click\n@@ -1 +1 @@\n",
        "\n-FromDevice(0) -> c :: Counter -> Queue -> ToDevice(1);\n",
        "\n+FromDevice(0) -> c :: Counter -> Queue(7) -> ToDevice(1);\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    daemon.check(&["diff", "--exit-code", &file], 1, &["reload", "box/one"]);
    daemon.check(&["up", &file], 0, &["reload"]);
    daemon.file("fw.click", "FromDevice(0) -> Cuonter;\n");
    daemon.check(&["up", &file], 5, &["Cuonter"]);
    daemon.check(&["down", "edge"], 0, &["remove", "box/one"]);
    daemon.check(&["ps"], 0, &["there are no boxes"]);
    daemon.check(&["down", "edge"], 4, &["clickbox stacks"]);
    daemon.check(&["down"], 2, &["clickbox stacks"]);
}

/// The running state of each example, written as a stack file, needs no change, also after a restart of the daemon.
#[test]
fn an_exported_stack_has_nothing_to_change() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    // The stacks between networks have tap devices: they need root, and a network of their own.
    let networks = (format!("{examples}/networks"), &["unshare", "-n"][..]);
    let folders = [(examples.to_string(), &[][..]), networks];
    let folders = folders.iter().filter(|(_, program)| program.is_empty() || require(Capability::Root));
    for (folder, program) in folders {
        let files =
            std::fs::read_dir(folder).expect("the examples").map(|entry| entry.expect("an entry").path());
        let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        assert!(!files.is_empty());
        for path in files {
            check_export(path.to_str().expect("a plain path"), program);
        }
    }
}

fn check_export(path: &str, program: &[&str]) {
    let daemon = Daemon::start_by("export", program, &["--no-store"]);
    daemon.check(&["export"], 2, &["there are no stacks"]);
    daemon.check(&["up", path], 0, &["create"]);
    let text = daemon.check(&["export"], 0, &["name = ", "text = "]);
    let exported = daemon.file("other.toml", &text);
    daemon.check(&["diff", &exported], 0, &["nothing to change"]);
    daemon.check(&["up", &exported], 0, &["nothing to change"]);
    daemon.check(&["up", path], 0, &["nothing to change"]);
    daemon.check(&["down", path], 0, &["remove"]);
    // It makes the same stack again.
    daemon.check(&["up", &exported], 0, &["create"]);
    daemon.check(&["diff", path], 0, &["nothing to change"]);
    daemon.check(&["export", "nowhere"], 4, &["clickbox stacks"]);
}

/// A backup is made while the daemon runs, only its user can read it, and another daemon can use it as its store.
#[test]
fn the_store_is_backed_up_checked_and_repaired() {
    let folder = std::env::temp_dir().join(format!("clickbox-backup-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_string();
    let (store, backup) = (path("store"), path("backup"));
    let daemon = Daemon::start_with("backup", &["--store", &store]);
    let text = daemon.file("fw.click", "FromDevice(0) -> Discard;\n");
    daemon.check(&["create", "fw", &text, "--sandbox", "process", "--attach", "-"], 0, &[]);
    daemon.check(&["store", "check"], 0, &["the store is sound"]);
    for _ in 0..2 {
        daemon.check(&["store", "backup", &backup], 0, &[]);
    }
    daemon.check(&["rm", "--force", "fw"], 0, &[]);
    daemon.check(&["store", "backup", &path("nowhere/backup")], 2, &["nowhere"]);
    daemon.check(&["store", "repair"], 0, &["nothing is set aside"]);
    daemon.check(&["store", "repair", "--drop", "7"], 4, &["no entry 7 was set aside"]);
    drop(daemon);
    let mode = std::fs::metadata(&backup).expect("the backup").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.join("backup.partial").exists());
    // An entry that cannot be read is listed, and dropped on request.
    let connection = rusqlite::Connection::open(&backup).expect("a database");
    let order = "INSERT INTO stacks VALUES ('odd', 'no', '')";
    connection.execute(order, []).expect("a row");
    drop(connection);
    let daemon = Daemon::start_with("backup", &["--store", &backup]);
    daemon.check(&["ps", "--quiet"], 0, &["fw"]);
    daemon.check(&["store", "check"], 1, &["stack", "odd"]);
    daemon.check(&["store", "repair", "--retry"], 1, &["odd"]);
    daemon.check(&["store", "repair", "--drop", "1"], 0, &["nothing is set aside"]);
    daemon.check(&["store", "check", "--json"], 0, &["findings"]);
    drop(daemon);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// Unconfirmed changes of a stack are undone: at the time limit, on request, or by the next daemon.
#[test]
fn an_unconfirmed_stack_is_rolled_back() {
    let folder = std::env::temp_dir().join(format!("clickbox-confirm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let store = folder.join("store");
    let store = ["--store", store.to_str().expect("a plain path")];
    let text = |capacity: &str| format!("FromDevice(0) -> q :: Queue({capacity}) -> Discard;\n");
    let stack = "[boxes.one]\nconfiguration = \"q.click\"\nsandbox = \"process\"\nattach = [\"-\"]\n";
    let two =
        format!("{stack}[boxes.two]\nconfiguration = \"q.click\"\nsandbox = \"process\"\nattach = [\"-\"]\n");
    let daemon = Daemon::start_with("confirm", &store);
    daemon.file("q.click", &text("10"));
    let file = daemon.file("edge.toml", stack);
    // The stack did not exist before, so it is removed.
    daemon.check(&["up", "--confirm-within", "1s", &file], 0, &["create", "clickbox confirm edge"]);
    daemon.check(&["stacks"], 0, &["unconfirmed"]);
    daemon.until(&["ps"], "there are no boxes");
    daemon.until(&["events"], "it was not confirmed in time");
    // A confirmed stack stays.
    daemon.check(&["up", "--confirm-within", "5m", &file], 0, &["create"]);
    daemon.check(&["up", &file], 6, &["clickbox rollback edge"]);
    daemon.check(&["down", "edge"], 6, &["clickbox confirm edge"]);
    daemon.check(&["confirm", &file], 0, &[]);
    daemon.check(&["confirm", "edge"], 6, &["does not await"]);
    // Rollback: the new box is removed, the old one has its previous configuration.
    daemon.file("q.click", &text("20"));
    daemon.file("edge.toml", &two);
    daemon.check(&["up", "--confirm-within", "5m", &file], 0, &["create", "reload"]);
    daemon.check(&["read", "one/q.capacity"], 0, &["20"]);
    daemon.check(&["rollback", "edge"], 0, &["remove", "reload"]);
    daemon.check(&["read", "one/q.capacity"], 0, &["10"]);
    daemon.check(&["ps", "--quiet"], 0, &["one\n"]);
    daemon.check(&["up", "--confirm-within", "1", &file], 2, &["60s"]);
    // A rejected stack leaves nothing unconfirmed.
    daemon.file("q.click", "Cuonter;\n");
    daemon.check(&["up", "--confirm-within", "5m", &file], 5, &["Cuonter"]);
    daemon.check(&["confirm", "edge"], 6, &["does not await"]);
    daemon.file("q.click", &text("30"));
    daemon.check(&["up", "--confirm-within", "5m", &file], 0, &["create", "reload"]);
    drop(daemon);
    let daemon = Daemon::start_with("confirm", &store);
    daemon.until(&["ps", "--quiet"], "one\n");
    daemon.check(&["read", "one/q.capacity"], 0, &["10"]);
    assert_eq!(daemon.check(&["ps", "--quiet"], 0, &[]), "one\n");
    daemon.check(&["events"], 0, &["the daemon ended before it was confirmed"]);
    drop(daemon);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn a_socket_is_served_by_one_daemon() {
    let daemon = Daemon::start("one");
    let socket = daemon.socket();
    daemon.check(
        &["daemon", "--no-store", "--socket", socket.to_str().expect("a plain path")],
        1,
        &["another daemon"],
    );
    daemon.check(&["daemon", "--listen", "127.0.0.1:0"], 2, &["certificate"]);
}

#[test]
fn the_demonstration_cleans_up_without_a_reader() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["demo", "--seconds", "0", "--rate", "5000", "--sandbox", "process"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let folder = std::env::temp_dir().join(format!("clickbox-demo-{}", child.id()));
    assert!(child.wait().expect("the program ends").success());
    assert!(!folder.exists(), "{} is left", folder.display());
}

#[test]
fn the_demonstration_accounts_for_each_packet() {
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["demo", "--seconds", "0", "--rate", "5000", "--sandbox", "process"])
        .stdin(Stdio::null())
        .output()
        .expect("the program ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let number = |line: &str| {
        let words = line.split_whitespace().rev();
        words.skip(2).find_map(|word| word.replace(',', "").parse::<u64>().ok())
    };
    let went_in = out.lines().find(|line| line.contains("the capture")).and_then(number);
    let sums: Vec<u64> = out.lines().filter(|line| line.contains("total")).filter_map(number).collect();
    assert_eq!(went_in, Some(2500), "{out}");
    assert_eq!((sums.len(), sums.iter().sum::<u64>()), (2, 2500), "{out}");
    for text in [
        "firewall  runs",
        "the rule `deny udp dst port 53` is now the first rule",
        "killed and restarted within",
    ] {
        assert!(err.contains(text), "no {text:?} in: {err}");
    }
}

#[test]
fn the_service_manager_is_notified_of_start_health_and_end() {
    let path = std::env::temp_dir().join(format!("clickbox-notify-{}", std::process::id()));
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    let receive = || {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).expect("a notification");
        String::from_utf8_lossy(&bytes[..length]).trim().to_string()
    };
    let notify = format!("NOTIFY_SOCKET={}", path.display());
    let mut daemon = Daemon::start_by("notify", &["env", &notify, "WATCHDOG_USEC=200000"], &["--no-store"]);
    assert_eq!(receive(), "READY=1");
    assert_eq!(receive(), "WATCHDOG=1");
    assert_eq!(receive(), "WATCHDOG=1");
    daemon.child.stdin.take();
    let last = std::iter::repeat_with(receive).find(|text| text != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    assert!(daemon.child.wait().expect("an end").success());
    std::fs::remove_file(&path).expect("the socket goes");
}
