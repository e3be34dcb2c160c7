//! Functions in C and Python: the libraries, their examples, projects, and processes and containers that join services.

#[path = "functions/answers.rs"]
mod answers;
#[path = "functions/containers.rs"]
mod containers;
#[path = "functions/handover.rs"]
mod handover;
#[path = "functions/leaving.rs"]
mod leaving;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use support::planes::Planes;
use support::{Daemon, wait};
use test_support::{Capability, require, skip};

const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c");

/// The sources of the library in C.
const LIBRARY: [&str; 6] = ["clickbox", "capture", "flows", "handover", "run", "watch"];

const PYTHON_SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");

/// Sends UDP packets of 32 flows when it is told to.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetRandIPAddress(10.0.0.0/27) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0); FromDevice(0) -> Discard;\n";
const SINK: &str = "FromDevice(0) -> got :: Counter -> Discard;\n";

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The folder with the library and all examples, statically linked. They are built once, with all warnings as errors.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("functions-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
        let library = folder.join("libclickbox.a");
        let mut archive = Command::new("ar");
        archive.arg("rcs").arg(&library);
        for name in LIBRARY {
            let (source, object) = (format!("{SDK}/{name}.c"), folder.join(format!("{name}.o")));
            succeed(Command::new("cc").args(strict).args(["-c", &source, "-o"]).arg(&object));
            archive.arg(object);
        }
        succeed(&mut archive);
        for name in EXAMPLES {
            let source = format!("{SDK}/examples/{name}.c");
            let program = folder.join(name);
            let mut command = Command::new("cc");
            command.args(strict).args(["-static", "-I", SDK, &source]).arg(&library).arg("-o").arg(program);
            succeed(&mut command);
        }
        folder
    })
}

const EXAMPLES: [&str; 8] = ["forward", "bridge", "monitor", "firewall", "scan", "flows", "bucket", "load"];

/// A function that runs. It is killed on drop.
struct Function(Child);

impl Function {
    /// Starts a program with the folder of a service, and waits until it is an instance.
    fn join(daemon: &Daemon, program: &str, service: &str, variables: &[(&str, &str)]) -> Self {
        Self::start(daemon, Command::new(built().join(program)).envs(variables.iter().copied()), service)
    }

    /// The same for any command.
    fn start(daemon: &Daemon, command: &mut Command, service: &str) -> Self {
        // Functions that were killed a moment ago may still be instances.
        let before = joins(daemon, service).len();
        let child = command.arg(folder(daemon, service)).stderr(Stdio::null()).spawn();
        let function = Self(child.expect("the function starts"));
        wait("the function joins", || {
            let is_up = |instance: &serde_json::Value, name: &String| {
                instance["name"] == **name && instance["up"] == true
            };
            let new = joins(daemon, service).into_iter().nth(before);
            new.is_some_and(|name| instances(daemon, service).iter().any(|one| is_up(one, &name)))
        });
        function
    }

    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn folder(daemon: &Daemon, service: &str) -> PathBuf {
    daemon.folder.join("functions").join(service)
}

fn instances(daemon: &Daemon, service: &str) -> Vec<serde_json::Value> {
    daemon.json(&["service", "show", service])["instances"].as_array().expect("a list").clone()
}

/// The instances as which functions joined the service, from the first on.
fn joins(daemon: &Daemon, service: &str) -> Vec<String> {
    let events = daemon.check(&["events"], 0, &[]);
    let what = format!(" joined service {service} as ");
    events.lines().filter_map(|line| Some(line.split_once(&what)?.1.to_string())).collect()
}

fn ups(daemon: &Daemon, service: &str) -> usize {
    instances(daemon, service).iter().filter(|instance| instance["up"] == true).count()
}

/// A counter that an instance publishes.
fn published(daemon: &Daemon, service: &str, instance: usize, name: &str) -> Option<u64> {
    instances(daemon, service)[instance]["counters"][name].as_u64()
}

fn count(daemon: &Daemon, handler: &str) -> u64 {
    let (code, text) = daemon.run(&["read", handler]);
    text.trim().parse().unwrap_or_else(|_| panic!("{handler}: {code} {text}"))
}

/// Adds a source and a sink to a switch `lan`.
fn add_boxes(daemon: &Daemon) {
    add_boxes_with(daemon, SOURCE, &[]);
}

fn add_boxes_with(daemon: &Daemon, source: &str, options: &[&str]) {
    daemon.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
    for (name, text, attach) in [("source", source, "lan,transparent"), ("sink", SINK, "lan")] {
        let path = daemon.file(&format!("{name}.click"), text);
        let words = ["create", name, &path, "--sandbox", "process", "--ring", "2048", "--attach", attach];
        daemon.check(&[&words, options].concat(), 0, &[]);
    }
}

fn send(daemon: &Daemon, packets: u64) {
    let limit = (count(daemon, "source/sent.count") + packets).to_string();
    daemon.check(&["write", "source/s.limit", &limit], 0, &[]);
    daemon.check(&["write", "source/s.active", "true"], 0, &[]);
}

/// Sends packets through the chain, in portions for which the rings have room even if the function does not run for a while.
fn pass(daemon: &Daemon, packets: u64) {
    let end = count(daemon, "sink/got.count") + packets;
    for _ in 0..packets / 250 {
        let next = count(daemon, "sink/got.count") + 250;
        send(daemon, 250);
        wait("all packets arrive", || count(daemon, "sink/got.count") == next);
    }
    assert_eq!(count(daemon, "sink/got.count"), end);
}

/// A daemon with a source, a sink, and a chain through a service of functions with these options.
fn daemon(name: &str, options: &[&str]) -> Daemon {
    prepared(Daemon::start(name), options)
}

fn prepared(daemon: Daemon, options: &[&str]) -> Daemon {
    add_boxes(&daemon);
    let create = [&["service", "create", "nf", "--container"], options].concat();
    daemon.check(&create, 0, &["nf accepts functions for switch lan at ", "/functions/nf/socket"]);
    daemon.check(&["chain", "create", "web", "nf", "--from", "lan.source.0", "--to", "sink.0"], 0, &[]);
    daemon
}

/// Packets that the switch took from a port, sent to it, and lost there.
fn port(daemon: &Daemon, name: &str) -> (u64, u64, serde_json::Value) {
    let switch = daemon.json(&["switch", "show", "lan"]);
    let ports = switch["port_list"].as_array().expect("the ports");
    let found =
        ports.iter().find(|found| found["name"] == name).unwrap_or_else(|| panic!("{name}: {switch}"));
    let counters = |key: &str| found["traffic"][key].as_u64().unwrap_or_else(|| panic!("{key}: {found}"));
    (counters("received_packets"), counters("sent_packets"), found["drops"].clone())
}

#[test]
fn functions_in_c_pass_the_packets_of_a_chain() {
    pass_functions_in_c("1");
}

#[test]
fn functions_in_c_pass_the_packets_of_all_threads() {
    pass_functions_in_c("2");
}

fn pass_functions_in_c(threads: &str) {
    let daemon = Daemon::start_with(&format!("functions-{threads}"), &["--switch-threads", threads]);
    let daemon = prepared(daemon, &["--faces", "in=0,out=1"]);
    daemon.check(&["service", "show", "nf"], 0, &["faces           in=0,out=1", "no function has joined"]);
    daemon.check(&["account", "nf"], 0, &["packets pass no place of nf yet"]);
    let first = Function::join(&daemon, "bridge", "nf", &[]);
    let second = Function::start(&daemon, &mut leaving::own_loop(&daemon), "nf");
    pass(&daemon, 2000);
    let packets: Vec<u64> =
        instances(&daemon, "nf").iter().filter_map(|one| one["packets"].as_u64()).collect();
    assert!(packets.len() == 2 && packets.iter().sum::<u64>() == 2000, "{packets:?}");
    assert!(packets.iter().all(|count| *count > 400), "{packets:?}");
    for (name, count) in ["nf-1", "nf-2"].into_iter().zip(&packets) {
        assert_eq!(port(&daemon, &format!("{name}.0")), (0, *count, serde_json::json!({})));
        assert_eq!(port(&daemon, &format!("{name}.1")), (*count, 0, serde_json::json!({})));
    }
    daemon.check(&["service", "ls"], 0, &["nf", "2,000"]);
    wait("counters are shown", || published(&daemon, "nf", 0, "learned") == Some(1));
    daemon.check(&["show", "service/nf"], 0, &["nf-1: filtered 0, learned 1"]);
    let account = daemon.check(&["account", "nf"], 0, &["port lan/nf-1.0", "port lan/nf-2.1"]);
    assert!(!account.contains("service nf"), "{account}");
    daemon.check(&["show", "chain/web"], 0, &["nf", "2,000", "left sink.0: 2,000 packets"]);

    // One leaves under traffic, with packets in its rings: none is lost.
    leaving::leave(&daemon, second, 2, 400);
    let second = Function::join(&daemon, "forward", "nf", &[]);

    // One is killed: its flows continue, and the next one takes its place.
    first.kill();
    wait("the switch knows", || ups(&daemon, "nf") == 1);
    pass(&daemon, 1000);
    let third = Function::join(&daemon, "forward", "nf", &[]);
    assert_eq!((instances(&daemon, "nf").len(), ups(&daemon, "nf")), (2, 2));
    daemon.check(
        &["events"],
        0,
        &["joined service nf as nf-1", "nf-1 left service nf: its process ended or left"],
    );

    // Killed and started without a pause while packets pass: what is lost is counted.
    send(&daemon, 4000);
    third.kill();
    drop(second);
    let _last = Function::join(&daemon, "forward", "nf", &[]);
    wait("the source has sent all", || count(&daemon, "source/sent.count") == 7400);
    let lost = |name: &str| {
        let drops = port(&daemon, name).2;
        drops.as_object().expect("drops").values().filter_map(serde_json::Value::as_u64).sum::<u64>()
    };
    // Functions that are killed with packets in hand take these with them: two batches at most. What waited in their rings, and what
    // came when there was none, is lost as `down`.
    let names = ["source.0", "nf-1.0", "nf-1.1", "nf-2.0", "nf-2.1"];
    let known = || count(&daemon, "sink/got.count") + names.into_iter().map(lost).sum::<u64>();
    wait("all packets but those in hand have arrived or are counted", || known() >= 7400 - 128);
    wait("no packet waits", || {
        let account = daemon.json(&["account"]);
        account["places"].as_array().expect("places").iter().all(|place| place["waiting"] == 0)
    });
    assert!(
        (7400 - 128..=7400).contains(&known()),
        "{} of 7400: {}",
        known(),
        daemon.json(&["switch", "show", "lan"])
    );
    daemon.check(&["account"], 0, &[]);
}

/// Functions in C and Python share the pool of a source and a sink. They are killed under traffic, and the next ones go on.
#[test]
fn functions_join_the_pool_of_their_owner() {
    let daemon = Daemon::start("function-pool");
    // The head of a packet is copied with each one: only longer ones stay in their buffers.
    add_boxes_with(&daemon, &SOURCE.replace("LENGTH 18", "LENGTH 218"), &["--share-packets"]);
    let create = ["service", "create", "nf", "--container", "--trust-pool", "--faces", "in=0,out=1"];
    daemon.check(&create, 0, &["nf accepts functions"]);
    daemon.check(&["service", "show", "nf"], 0, &["packet pool     shared with the boxes of the owner"]);
    daemon.check(&["chain", "create", "web", "nf", "--from", "lan.source.0", "--to", "sink.0"], 0, &[]);
    let counts = || -> Vec<u64> {
        instances(&daemon, "nf").iter().filter_map(|one| one["packets"].as_u64()).collect()
    };
    for round in 1..=2 {
        let first = Function::join(&daemon, "forward", "nf", &[]);
        let second = Function::start(&daemon, &mut python("monitor"), "nf");
        assert_eq!(ups(&daemon, "nf"), 2);
        pass(&daemon, 1000);
        if round == 1 {
            // Each gets some of the 32 flows. Those stay where they are: also with the next function at the same place.
            assert!(counts().iter().all(|count| *count > 100), "{:?}", counts());
        }
        assert!(counts().iter().sum::<u64>() >= 1000 * round, "{:?}", counts());
        send(&daemon, 1000);
        first.kill();
        second.kill();
        wait("the switch knows", || ups(&daemon, "nf") == 0);
        wait("the source has sent all", || count(&daemon, "source/sent.count") == 2000 * round);
    }
    assert_eq!(counts().len(), 2);
    daemon.check(&["events"], 0, &[") in the packet pool of its owner joined service nf as nf-1"]);
    daemon.check(&["account"], 0, &[]);
}

#[test]
fn what_a_service_of_functions_has_is_refused_elsewhere() {
    let daemon = daemon("function-rules", &["--may-send-to", "port:sink.0"]);
    daemon.check(&["service", "scale", "nf", "2"], 2, &["join it", "start or stop them instead"]);
    let path = daemon.file("x.click", SINK);
    daemon.check(&["service", "reload", "nf", &path], 2, &["start or stop them instead"]);
    daemon.check(&["service", "create", "x", &path, "--container"], 2, &["cannot be used with"]);
    for (option, message) in [
        ("--trust-pool", "only the functions of a container service"),
        ("--places=2", "a container service has 1 to 128"),
    ] {
        daemon.check(&["service", "create", "x", &path, option], 2, &[message]);
    }
    let long = format!("x{}", "y".repeat(55));
    let (code, text) = daemon.run(&["service", "create", &long, "--container"]);
    assert!(code == 2 && text.contains("too long"), "{code} {text}");
    daemon.check(&["service", "ls"], 0, &["nf"]);
    assert!(!folder(&daemon, &long).join("socket").exists());
    // A wrong token, and what is no socket.
    let other = daemon.folder.join("other");
    fs::create_dir_all(&other).expect("a folder");
    fs::write(other.join("token"), "0".repeat(32)).expect("a token");
    std::os::unix::fs::symlink(folder(&daemon, "nf").join("socket"), other.join("socket")).expect("a link");
    let fails = |path: &Path, text: &str| {
        let output = Command::new(built().join("forward")).arg(path).output().expect("it starts");
        let found = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && found.contains(text), "{found}");
    };
    fails(&other, "the token is not that of the service");
    fails(&daemon.folder.join("nothing"), "No such file");
    assert_eq!(instances(&daemon, "nf").len(), 0);
    // With the service, its socket goes, and its functions with it.
    let mut function = Function::join(&daemon, "forward", "nf", &[]);
    daemon.check(&["port", "rm", "--force", "lan", "nf-1.0"], 2, &["that of the function nf-1"]);
    daemon.check(&["service", "rm", "--force", "nf"], 0, &[]);
    assert!(!folder(&daemon, "nf").exists());
    daemon.until(&["events"], "nf-1 left service nf: its service was removed or changed");
    assert!(function.0.try_wait().expect("its state").is_none(), "it tries to join again");
    daemon.check(&["service", "create", "nf", "--container"], 0, &[]);
    wait("it has joined again", || ups(&daemon, "nf") == 1);
}

/// Functions and fabrics go on without a daemon, and functions join the fabric that follows one which ended.
#[test]
fn functions_survive_daemons_and_join_again() {
    let planes = Planes::new("functions");
    let mut daemon = planes.start();
    planes.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
    for (name, text, attach) in [("source", SOURCE, "lan,transparent"), ("sink", SINK, "lan")] {
        let path = planes.file(&format!("{name}.click"), text);
        let words = ["create", name, &path, "--sandbox", "process", "--ring", "2048", "--attach", attach];
        planes.check(&words, 0, &[]);
    }
    planes.check(&["service", "create", "nf", "--container"], 0, &[]);
    planes.check(&["chain", "create", "web", "nf", "--from", "lan.source.0", "--to", "sink.0"], 0, &[]);
    let folder = planes.folder.join("functions/nf");
    let start = || {
        let child = Command::new(built().join("forward")).arg(&folder).stderr(Stdio::null()).spawn();
        Function(child.expect("the function starts"))
    };
    let ups = || {
        let (code, text) = planes.run(&["service", "show", "nf", "--json"]);
        if code == 0 { text.matches("\"up\": true").count() } else { 0 }
    };
    let send = |packets: u64| {
        let limit = (planes.number("source/sent.count") + packets).to_string();
        planes.check(&["write", "source/s.limit", &limit], 0, &[]);
        planes.check(&["write", "source/s.active", "true"], 0, &[]);
    };
    let _function = start();
    wait("it joins", || ups() == 1);
    let token = fs::read(folder.join("token")).expect("the token");
    daemon.kill().expect("it runs");
    daemon.wait().expect("it ends");
    // Without a daemon, functions join too.
    let second = start();
    let mut daemon = planes.start();
    wait("the next daemon sees both", || ups() == 2);
    assert_eq!(fs::read(folder.join("token")).expect("the token"), token);
    send(500);
    wait("all packets arrive", || planes.number("sink/got.count") == 500);
    second.kill();
    // The fabric ends: what is left joins the next one.
    let fabric = planes.fabric().expect("a fabric").to_string();
    succeed(Command::new("kill").args(["-9", &fabric]));
    wait("it joins the next fabric", || {
        planes.fabric().is_some_and(|next| next.to_string() != fabric) && ups() == 1
    });
    planes.check(&["ps"], 0, &["running"]);
    send(500);
    wait("all packets arrive", || planes.number("sink/got.count") == 500);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    daemon.wait().expect("it ends");
}

/// What an example prints for the capture.
fn offline(example: &str, variables: &[(&str, &str)]) -> BTreeMap<String, u64> {
    let written = built().join(format!("{example}.pcap"));
    let mut command = Command::new(built().join(example));
    let output =
        succeed(command.args(["--read", CAPTURE, "--write"]).arg(&written).envs(variables.iter().copied()));
    counters(&output)
}

/// The counters that a function printed.
fn counters(output: &Output) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let counters = text.lines().filter_map(|line| line.split_once(' '));
    counters.filter_map(|(name, value)| Some((name.to_string(), value.parse().ok()?))).collect()
}

/// Packets in a capture.
fn packets(path: &Path) -> u64 {
    let bytes = fs::read(path).expect("a capture");
    let (mut at, mut count) = (24, 0);
    while let Some(length) = bytes.get(at + 8..at + 12) {
        at += 16 + u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        count += 1;
    }
    assert_eq!(at, bytes.len());
    count
}

/// Each example on the same capture: all of its counters, and the number of packets that it lets pass.
#[test]
fn the_examples_do_what_they_say() {
    let library = fs::metadata(built().join("libclickbox.a")).expect("the library").len();
    assert!(library < 100_000, "{library} bytes");
    for name in EXAMPLES {
        let text = fs::read_to_string(format!("{SDK}/examples/{name}.c")).expect("the source");
        assert!(text.lines().count() < 200, "{name}");
    }
    let (rules, patterns) = (built().join("rules"), built().join("patterns"));
    fs::write(&rules, "# comment\n10.0.0.0/8 drop\n10.1.0.0/16 allow\n0.0.0.0/0 allow\n").expect("the rules");
    fs::write(&patterns, "HTTP\nTTP/9\n").expect("the patterns");
    let rules = [("RULES", rules.to_str().expect("a plain path"))];
    let patterns = [("PATTERNS", patterns.to_str().expect("a plain path"))];
    let cases: [(&str, &[(&str, &str)]); 7] = [
        ("forward", &[]),
        ("bridge", &[]),
        ("monitor", &[]),
        ("firewall", &rules),
        ("scan", &patterns),
        ("flows", &[("IDLE", "1")]),
        ("bucket", &[("RATE", "1000000")]),
    ];
    let mut found = String::new();
    for (name, variables) in cases {
        let counters = offline(name, variables);
        found += &format!("{name} {counters:?} {}\n", packets(&built().join(format!("{name}.pcap"))));
    }
    assert_eq!(found, include_str!("functions.txt"));
}

/// The library's own tests, with checks of each access to memory.
#[test]
fn the_library_reads_no_byte_that_is_not_there() {
    let program = built().join("library-tests");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover", "-o"]).arg(&program);
    let sources = ["tests/library"].into_iter().chain(LIBRARY);
    succeed(command.args(sources.map(|name| format!("{SDK}/{name}.c"))));
    succeed(Command::new(program).current_dir(built()));
}

/// The load generator sends through another service, and gets all of its packets back.
#[test]
fn the_load_generator_measures_what_comes_back() {
    let daemon = daemon("load", &[]);
    daemon.check(&["service", "create", "load", "--container", "--may-send-to", "nf"], 0, &[]);
    daemon.check(&["chain", "create", "back", "load", "--to", "sink.0"], 0, &[]);
    daemon.check(&["flow", "add", "lan", "--match", "udp dst port 9", "--chain", "back"], 0, &[]);
    let _function = Function::join(&daemon, "forward", "nf", &[]);
    let mut command = Command::new(built().join("load"));
    command.arg(folder(&daemon, "load")).envs([("TO", "nf"), ("COUNT", "400"), ("RATE", "20000")]);
    let output = String::from_utf8(succeed(&mut command).stdout).expect("a text");
    assert!(output.starts_with("sent 400 received 400 mean_us "), "{output}");
    command.env("TO", "port:sink.0");
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && text.contains("may not send to port:sink.0"), "{text}");
}

/// Functions in C and Python give flows another chain: they see no more packets of these.
#[test]
fn functions_give_flows_another_chain() {
    let daemon = Daemon::start("director");
    add_boxes(&daemon);
    let run = |words: &str| daemon.check(&words.split(' ').collect::<Vec<_>>(), 0, &[]);
    let scrub = daemon.file("scrub.click", "FromDevice(0) -> got :: Counter -> ToNext;");
    run(&format!("service create scrub {scrub} --sandbox process --ring 2048"));
    run("chain create scrubbed scrub --switch lan --to sink.0");
    run("service create nf --container --may-send-to chain:scrubbed");
    run("chain create web nf --from lan.source.0 --to sink.0");
    let text = "import clickbox_function as c\n\
                c.main(packet=lambda box, _: c.with_flow(box.destination('chain:scrubbed')))";
    let mut in_python = Command::new("python3");
    in_python.args(["-B", &daemon.file("director.py", text)]).env("PYTHONPATH", PYTHON_SDK);
    let mut in_c = Command::new(built().join("scan"));
    in_c.env("PATTERNS", daemon.file("patterns", "Random")).env("MATCHES", "chain:scrubbed");
    for (round, command) in (1..).zip([&mut in_c, &mut in_python]) {
        let function = Function::start(&daemon, command, "nf");
        pass(&daemon, 1000);
        let seen = port(&daemon, "nf-1.0").1;
        pass(&daemon, 1000);
        assert_eq!((port(&daemon, "nf-1.0").1, count(&daemon, "scrub-1/got.count")), (seen, 2000 * round));
        function.kill();
        wait("the switch knows", || ups(&daemon, "nf") == 0);
        run("chain rm --force scrubbed");
        run("chain create scrubbed scrub --switch lan --to sink.0");
    }
    daemon.check(&["account"], 0, &[]);
}

/// A project in C is made, built and tested; its test can fail.
#[test]
fn a_project_in_c_passes_its_test() {
    let folder = built().join("rate-limit");
    let shown = folder.to_str().expect("a plain path").to_string();
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_clickbox")).args(words).output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text.into_owned())
    };
    let begin = Instant::now();
    let (code, text) = run(&["function", "new", "rate-limit", "--language", "c", &shown]);
    assert!(code == 0 && text.contains("rate-limit.c"), "{text}");
    assert!(matches!(run(&["function", "test", &shown]), (0, text) if text == "the test passed\n"));
    assert!(begin.elapsed() < Duration::from_secs(60));
    let (code, text) = run(&["function", "build", &shown, "--json"]);
    let made: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(code == 0 && made["bytes"].as_u64() > Some(10_000), "{text}");
    assert_eq!(packets(&folder.join("build/written.pcap")), 500);
    // Another test leaves the program for a container as it was built.
    let program = fs::read(folder.join("rate-limit")).expect("the program");
    fs::write(folder.join("tests/expected"), "passed 499\n").expect("a file");
    let (code, text) = run(&["function", "test", &shown]);
    assert!(fs::read(folder.join("rate-limit")).expect("the program") == program);
    assert!(
        code != 0 && text.contains("passed 499") && text.contains("If the function is right"),
        "{code} {text}"
    );
    fs::write(folder.join("rate-limit.c"), "int main(void) { return 0 }\n").expect("a file");
    let (code, text) = run(&["function", "build", &shown]);
    assert!(code != 0 && text.contains("the build of the function failed"), "{code} {text}");
    let (code, text) = run(&["function", "new", "x", "--language", "c", &shown]);
    assert!(code != 0 && text.contains("exists already"), "{code} {text}");
    // A program without its sources leaves no half of a project.
    let (alone, made) = (built().join("clickbox-alone"), built().join("half"));
    fs::hard_link(env!("CARGO_BIN_EXE_clickbox"), &alone).expect("a link");
    let mut command = Command::new(&alone);
    command.args(["function", "new", "half", "--language", "c"]).arg(&made);
    let output = command.output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains(".sources") && !made.exists(), "{text}");
    fs::remove_file(&alone).expect("the link");
}

/// An example in Python.
fn python(example: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(format!("{PYTHON_SDK}/examples/{example}.py"));
    command.env("PYTHONPATH", PYTHON_SDK).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Functions in Python do the same as those in C: with packets of a chain, and with a capture.
#[test]
fn functions_in_python_pass_the_packets_of_a_chain() {
    if !require(Capability::Python) {
        return;
    }
    let daemon = daemon("python", &["--faces", "in=0,out=1"]);
    let monitor = Function::start(&daemon, &mut python("monitor"), "nf");
    pass(&daemon, 2000);
    let expected =
        [("packets", 2000), ("bytes", 120_000), ("udp", 2000), ("tcp", 0), ("icmp", 0), ("other", 0)];
    wait("counters are shown", || published(&daemon, "nf", 0, "packets") == Some(2000));
    for (name, count) in expected {
        assert_eq!(published(&daemon, "nf", 0, name), Some(count), "{name}");
    }
    assert_eq!(port(&daemon, "nf-1.0"), (0, 2000, serde_json::json!({})));
    assert_eq!(port(&daemon, "nf-1.1"), (2000, 0, serde_json::json!({})));
    // It leaves by itself when it is told to, and answers the packets in its ring before.
    leaving::leave(&daemon, monitor, 1, 250);

    // One that drops all packets; when its service is made again, it joins again.
    let rules = daemon.file("rules", "10.0.0.0/8 drop\n");
    let mut firewall = python("firewall");
    let function = Function::start(&daemon, firewall.env("RULES", &rules), "nf");
    send(&daemon, 250);
    wait("they are dropped", || port(&daemon, "nf-1.1").2 == serde_json::json!({ "function_drop": 250 }));
    wait("they are counted", || published(&daemon, "nf", 0, "dropped") == Some(250));
    assert_eq!(published(&daemon, "nf", 0, "allowed"), Some(0));
    assert_eq!(count(&daemon, "sink/got.count"), 2250);
    daemon.check(&["service", "rm", "--force", "nf"], 0, &[]);
    daemon.check(&["service", "create", "nf", "--container"], 0, &[]);
    wait("it joins again", || ups(&daemon, "nf") == 1);
    drop(function);

    // A wrong token, and what is no socket.
    let other = daemon.folder.join("other");
    fs::create_dir_all(&other).expect("a folder");
    fs::write(other.join("token"), "0".repeat(32)).expect("a token");
    std::os::unix::fs::symlink(folder(&daemon, "nf").join("socket"), other.join("socket")).expect("a link");
    for (path, text) in [
        (&other, "the token is not that of the service"),
        (&daemon.folder.join("nothing"), "name the folder"),
    ] {
        let output = python("monitor").arg(path).output().expect("it starts");
        let found = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && found.contains(text), "{found}");
    }
    daemon.check(&["account"], 0, &[]);
}

/// The library in Python, and its examples on the same capture as those in C, with the same counters.
#[test]
fn the_examples_in_python_do_what_those_in_c_do() {
    if !require(Capability::Python) {
        return;
    }
    let tests = format!("{PYTHON_SDK}/tests/library.py");
    succeed(Command::new("python3").args(["-B", "-W", "error", &tests]));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let rules = folder.join("rules");
    fs::write(&rules, "# comment\n10.0.0.0/8 drop\n10.1.0.0/16 allow\n0.0.0.0/0 allow\n").expect("the rules");
    for name in ["monitor", "firewall"] {
        let written = folder.join(format!("{name}.pcap"));
        let mut command = python(name);
        command.env("RULES", &rules).args(["--read", CAPTURE, "--write"]).arg(&written);
        let counters = counters(&succeed(&mut command));
        let found = format!("{name} {counters:?} {}\n", packets(&written));
        assert!(include_str!("functions.txt").contains(&found), "{found}");
        let source = fs::read_to_string(format!("{PYTHON_SDK}/examples/{name}.py")).expect("the source");
        assert!(source.lines().count() < 200, "{name}");
    }
    fs::remove_dir_all(folder).expect("the folder");
}

/// A project in Python is made, built and tested; its test can fail.
#[test]
fn a_project_in_python_passes_its_test() {
    if !require(Capability::Python) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("scrub-py-{}", std::process::id()));
    let shown = folder.to_str().expect("a plain path").to_string();
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_clickbox")).args(words).output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text.into_owned())
    };
    let (code, text) = run(&["function", "new", "scrub", "--language", "python", &shown]);
    assert!(code == 0 && text.contains("scrub.py"), "{text}");
    assert_eq!(run(&["function", "test", &shown]), (0, "the test passed\n".to_string()));
    let (code, text) = run(&["function", "build", &shown, "--json"]);
    let made: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(code == 0 && made["bytes"].as_u64() > Some(10_000), "{text}");
    assert_eq!(packets(&folder.join("build/written.pcap")), 500);
    // The file is all that it needs.
    let program = folder.join("scrub.pyz");
    let alone = folder.join("build/alone.pyz");
    fs::copy(&program, &alone).expect("a copy");
    let output = succeed(Command::new(&alone).arg("--read").arg(folder.join("tests/traffic.pcap")));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "passed 500\nexpired 0\n");
    fs::write(folder.join("tests/expected"), "passed 499\n").expect("a file");
    let (code, text) = run(&["function", "test", &shown]);
    assert!(code != 0 && text.contains("passed 499") && text.contains("If the function is right"), "{text}");
    fs::write(folder.join("scrub.py"), "def x(:\n").expect("a file");
    let (code, text) = run(&["function", "build", &shown]);
    assert!(
        code != 0 && text.contains("scrub.py") && text.contains("the check of the function failed"),
        "{text}"
    );
    fs::remove_dir_all(folder).expect("the folder");
}

/// A stack file has services of functions; what is exported is the same.
#[test]
fn stack_files_have_services_of_functions() {
    let daemon = Daemon::start("function-stacks");
    let stack = "
        [switches.lan]
        mode = \"steering\"
        ports = { a.driver = \"null\", b.driver = \"null\" }
        [service.nf]
        switch = \"lan\"
        container = true
        faces = \"in=0,out=1\"
        may_send_to = [\"port:b\"]
        [chain.web]
        switch = \"lan\"
        services = [\"nf\"]
        from = \"a\"
        to = \"b\"
        both_ways = true\n";
    let path = daemon.file("edge.toml", stack);
    daemon.check(&["up", &path], 0, &[]);
    let function = Function::join(&daemon, "forward", "nf", &[]);
    daemon.check(&["up", &path], 0, &["nothing"]);
    assert_eq!(ups(&daemon, "nf"), 1);
    let exported =
        daemon.check(&["export", "edge"], 0, &["[service.nf]", "container = true", "in=0,out=1", "port:b"]);
    assert!(!exported.contains("memory"), "{exported}");
    let again = daemon.file("edge.toml", &exported);
    daemon.check(&["up", &again], 0, &["nothing"]);
    // Other destinations: the function joins again.
    daemon.check(
        &["up", &daemon.file("edge.toml", &stack.replace("port:b\"]", "port:a\"]"))],
        0,
        &["service/nf"],
    );
    wait("it joins again", || ups(&daemon, "nf") == 1);
    // So it does when it may join the pool of its owner, and when it may no longer.
    for trusting in ["container = true\ntrust_pool = true", "container = true"] {
        let path = daemon.file("edge.toml", &stack.replace("container = true", trusting));
        daemon.check(&["up", &path], 0, &["service/nf", "packet pool"]);
        wait("it joins again", || ups(&daemon, "nf") == 1);
        daemon.check(&["export", "edge"], 0, &[trusting]);
        daemon.check(&["up", &path], 0, &["nothing"]);
    }
    daemon.check(&["events"], 0, &[") in the packet pool of its owner joined service nf as nf-1"]);
    let wrong = stack.replace("container = true", "container = true\nfile = \"x.click\"");
    daemon.check(&["up", &daemon.file("wrong.toml", &wrong)], 2, &["leave `file` and `text` out"]);
    daemon.check(&["down", "edge"], 0, &[]);
    assert!(!folder(&daemon, "nf").exists());
    drop(function);
}
