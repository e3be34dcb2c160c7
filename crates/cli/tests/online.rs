//! The commands that talk to a daemon, against a test server with fixed replies: requests, output and exit codes.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// Request, which may end with `*`, status and reply body.
type Route<'a> = (&'a str, u16, &'a str);

/// A server that replies by its routes and records requests.
struct Server {
    folder: PathBuf,
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    fn new(name: &str, routes: &[Route]) -> Server {
        let own = |(request, status, text): &Route| (request.to_string(), *status, text.to_string());
        let routes: Vec<(String, u16, String)> = routes.iter().map(own).collect();
        let folder = std::env::temp_dir().join(format!("clickbox-online-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let listener = UnixListener::bind(folder.join("socket")).expect("a socket");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &routes, &seen);
            }
        });
        Server { folder, requests }
    }

    /// Runs the program with arguments and standard input.
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        run(&self.folder.join("socket"), arguments, input)
    }

    /// Asserts the exit code, and that the output contains each text; returns the requests.
    fn check(&self, arguments: &[&str], code: i32, texts: &[&str]) -> Vec<(String, String)> {
        let output = self.run(arguments, "");
        let all = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {all}");
        for text in texts {
            assert!(all.contains(text), "{arguments:?}: no {text:?} in: {all}");
        }
        assert!(!all.contains('\x1b'), "{arguments:?}: {all}");
        std::mem::take(&mut *self.requests.lock().expect("what was requests"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(socket: &std::path::Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("CLICKBOX_SOCKET", socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn serve(mut stream: UnixStream, routes: &[(String, u16, String)], seen: &Mutex<Vec<(String, String)>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).expect("a request") == 0 {
            return;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    let first = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_string();
    let unknown = r#"{"error":{"code":"not_found","message":"There is no such thing."}}"#;
    let is_meant = |request: &str| match request.strip_suffix('*') {
        Some(start) => first.starts_with(start),
        None => request == first,
    };
    let route = routes.iter().find(|(request, ..)| is_meant(request));
    let (status, text) = route.map_or((404, unknown), |(_, status, text)| (*status, text));
    seen.lock()
        .expect("what was requests")
        .push((first.clone(), String::from_utf8_lossy(&body).into_owned()));
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    let _ = stream.write_all((head + text).as_bytes());
}

const BOX: &str = r#"{
    "name": "fw", "owner": "default", "labels": {"site": "north"}, "state": "running", "sandbox": "vm", "pid": 7,
    "created": "2026-01-31T12:00:00.000Z", "started": "2026-01-31T12:00:00.000Z", "uptime_ms": 61000, "boot_ms": 0.9,
    "restarts": 1, "configurations": ["main"], "memory": 8388608, "ring": 256, "cpu_weight": 100, "dedicated": false,
    "restart": "on-failure", "usage": {"own_ns": 1000000, "switch_ns": 0, "memory": 300000},
    "traffic": {"received_packets": 1234567, "received_bytes": 1, "sent_packets": 1, "sent_bytes": 1},
    "rates": {"received_packets": 1500, "received_bits": 1e6, "sent_packets": 1, "sent_bits": 1, "dropped_packets": 0,
              "cores": 0.25},
    "drops": {"no_route\u001b[2J": 3}, "ports": [], "installed": [],
    "crash": {"time": "2026-01-31T12:00:00.000Z", "cause": "page fault", "element": "nat", "packet": "ab"}
}"#;

#[test]
fn boxes_are_listed_and_shown() {
    let server =
        Server::new("list", &[("GET /v1/boxes", 200, &format!("[{BOX}]")), ("GET /v1/boxes/fw", 200, BOX)]);
    server.check(&["ps"], 0, &["NAME", "fw", "running", "vm", "1m01s", "25%", "1.50k"]);
    server.check(&["ps", "--quiet", "--label", "site=north"], 0, &["fw\n"]);
    server.check(&["ps", "--label", "site=south"], 0, &["no box has"]);
    let list: serde_json::Value =
        serde_json::from_slice(&server.run(&["ps", "--json"], "").stdout).expect("JSON");
    assert_eq!(list[0]["name"], "fw");
    server.check(
        &["show", "fw"],
        0,
        &["1,234,567", "3 no_route\\u{1b}[2J", "page fault", "nat", "0000  61 62"],
    );
    server.check(&["show", "nat"], 4, &["there is no box, service, chain or switch nat"]);
}

#[test]
fn create_sends_options_and_files() {
    let server = Server::new("create", &[("PUT /v1/uploads/*", 204, ""), ("POST /v1/boxes", 200, BOX)]);
    let requests = server.check(
        &[
            "create",
            "fw",
            "examples/firewall.click",
            "--attach",
            "lan",
            "--attach",
            "-",
            "--ring",
            "1024",
            "--memory",
            "16M",
            "--cpu-weight",
            "200",
            "--restart",
            "on-failure",
            "--label",
            "site=north",
            "--file",
            "x=testdata/mix.pcap",
        ],
        0,
        &["fw runs in a virtual machine"],
    );
    let request: api::CreateBox =
        serde_json::from_str(&requests.last().expect("a request").1).expect("a request");
    let attached: Vec<String> = request.ports.iter().map(|port| port.attach.to_string()).collect();
    assert_eq!(attached, ["lan", "-"]);
    assert_eq!(
        (u32::from(request.ring), request.memory.0, u32::from(request.cpu_weight)),
        (1024, 16 << 20, 200)
    );
    assert_eq!(request.source.as_deref(), Some("examples/firewall.click"));
    // Files are uploaded before, as they are.
    let of_x = request.uploads.iter().find(|file| file.name == "x").expect("the file");
    let sent = requests.iter().find(|(first, _)| *first == format!("PUT /v1/uploads/{}", of_x.upload));
    let contents = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap"));
    let contents = contents.expect("the capture");
    assert_eq!(sent.expect("an upload").1, String::from_utf8_lossy(&contents));
    assert_eq!((request.files.len(), requests.len()), (0, 2));
    server.check(&["create", "fw", "nowhere.click"], 2, &["nowhere.click"]);
    server.check(&["create", "../fw", "examples/firewall.click"], 2, &["is not a valid name"]);
    server.check(&["create", "fw", "examples/firewall.click", "--ring", "100"], 2, &["64, 128, 256"]);
}

#[test]
fn a_rejected_configuration_is_shown_with_its_line() {
    let refusal = r#"{"error": {"code": "refused", "message": "The configuration of fw was refused.", "details": [
        {"severity": "error", "file": "<stdin>", "line": 2, "column": 6, "message": "unknown element class `Cuonter`"}]}}"#;
    let server = Server::new("refused", &[("PUT /v1/boxes/fw/configurations/main", 422, refusal)]);
    let output = server.run(&["reload", "fw", "-"], "a :: Idle;\nb :: Cuonter;\n");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{text}");
    for expected in
        ["b :: Cuonter;", "^^^^^^^", "unknown element class", "The configuration of fw was refused."]
    {
        assert!(text.contains(expected), "no {expected:?} in: {text}");
    }
}

#[test]
fn handlers_are_read_and_written() {
    let server = Server::new(
        "handlers",
        &[
            ("GET /v1/boxes/fw/handlers/c.count", 200, r#"{"value": "10\u001b[2J"}"#),
            ("POST /v1/boxes/fw/handlers/in%2Ft.lookup", 200, r#"{"value": {"base64": "/wA="}}"#),
            ("PUT /v1/boxes/fw/handlers/second%3Ac.reset", 204, ""),
            (
                "GET /v1/boxes/fw/handlers",
                200,
                r#"[{"configuration": "second", "element": "c", "handler": "count", "read": true, "write": false}]"#,
            ),
        ],
    );
    // Output to a pipe is not escaped.
    assert_eq!(server.run(&["read", "fw/c.count"], "").stdout, b"10\x1b[2J");
    assert_eq!(server.run(&["read", "fw/in/t.lookup", "1.2.3.4"], "").stdout, b"\xff\0");
    server.requests.lock().expect("what was requests").clear();
    let requests = server.check(&["write", "fw/second:c.reset", "-1"], 0, &[]);
    assert_eq!(requests.first().map(|(_, body)| body.as_str()), Some(r#"{"value":"-1"}"#));
    server.check(&["handlers", "fw"], 0, &["fw/second:c.count", "read"]);
    server.check(&["read", "fw"], 2, &["fw/counter.count"]);
    server.check(&["read", "fw/c.nothing"], 4, &["no such thing"]);
}

#[test]
fn patterns_read_the_handlers_that_match() {
    let handler = |configuration: &str, element: &str, handler: &str, read: bool| {
        format!(
            r#"{{"configuration": "{configuration}", "element": "{element}", "handler": "{handler}", "read": {read},
                "write": false}}"#
        )
    };
    let handlers = [
        handler("main", "a", "count", true),
        handler("main", "in/b", "count", true),
        handler("main", "a", "counts", false),
        handler("second", "c", "count", true),
        handler("main", "a", "rate", true),
    ];
    let server = Server::new(
        "patterns",
        &[
            ("GET /v1/boxes/fw/handlers", 200, &format!("[{}]", handlers.join(","))),
            ("GET /v1/boxes/fw/handlers/a.count", 200, r#"{"value": "1\n2\n"}"#),
            ("GET /v1/boxes/fw/handlers/in%2Fb.count", 200, r#"{"value": "3"}"#),
            ("GET /v1/boxes/fw/handlers/second%3Ac.count", 200, r#"{"value": "4"}"#),
        ],
    );
    let read = |pattern: &str| String::from_utf8(server.run(&["read", pattern], "").stdout).expect("text");
    assert_eq!(read("fw/*.count"), "fw/a.count = 1\\n2\nfw/in/b.count = 3\n");
    assert_eq!(read("fw/second:[bc].*"), "fw/second:c.count = 4\n");
    server.check(&["read", "fw/a.*"], 4, &["fw/a.count = 1", "no such thing"]);
    server.check(
        &["read", "fw/*.cuont"],
        4,
        &["no handler of box fw matches *.cuont", "clickbox handlers fw"],
    );
    server.check(&["read", "fw/[.count"], 2, &["the pattern [.count is invalid"]);
    let output = server.run(&["read", "fw/in*", "--json"], "").stdout;
    let values: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(values, serde_json::json!([{"handler": "fw/in/b.count", "value": "3"}]));
}

#[test]
fn misspelt_names_get_suggestions() {
    let handlers = r#"[{"configuration": "main", "element": "counter", "handler": "count", "read": true, "write": false}]"#;
    let missing = |reason: &str, subject: &str| {
        format!(
            r#"{{"error": {{"code": "not_found", "reason": "{reason}", "subject": "{subject}", "message": "none"}}}}"#
        )
    };
    let [no_box, no_other, no_switch, no_stack, no_handler] = [
        ("no_box", "box/firewal"),
        ("no_box", "box/zebra"),
        ("no_switch", "switch/lna"),
        ("no_stack", "stack/wbe"),
        ("no_handler", "box/firewall"),
    ]
    .map(|(reason, subject)| missing(reason, subject));
    let boxes = format!("[{}]", BOX.replace("\"name\": \"fw\"", "\"name\": \"firewall\""));
    let switches = r#"[{"name": "lan", "mode": "learning", "age_seconds": 300, "addresses_per_port": 16,
        "created": "2026-01-31T12:00:00.000Z", "ports": 0, "addresses": 0,
        "traffic": {"received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0},
        "rates": {"received_packets": 0, "received_bits": 0, "sent_packets": 0, "sent_bits": 0,
                  "dropped_packets": 0, "cores": 0}}]"#;
    let stacks =
        r#"[{"name": "web", "applied": "2026-01-31T12:00:00.000Z", "boxes": ["fw"], "switches": []}]"#;
    let server = Server::new(
        "suggestions",
        &[
            ("GET /v1/boxes/firewal", 404, &no_box),
            ("GET /v1/boxes/zebra", 404, &no_other),
            ("POST /v1/boxes/firewal/stop", 404, &no_box),
            ("GET /v1/boxes", 200, &boxes),
            ("GET /v1/switches/lna", 404, &no_switch),
            ("GET /v1/switches", 200, switches),
            ("DELETE /v1/stacks/wbe", 404, &no_stack),
            ("GET /v1/stacks", 200, stacks),
            ("GET /v1/boxes/firewall/handlers/conuter.cuont", 404, &no_handler),
            ("GET /v1/boxes/firewall/handlers", 200, handlers),
        ],
    );
    server.check(&["show", "firewal"], 4, &["none; did you mean firewall?"]);
    server.check(
        &["show", "zebra"],
        4,
        &["there is no box, service, chain or switch zebra; `clickbox ps`, `clickbox service ls`"],
    );
    server.check(&["show", "box/zebra"], 4, &["none; `clickbox ps` lists the boxes"]);
    server.check(&["stop", "firewal"], 4, &["none; did you mean firewall?"]);
    server.check(&["switch", "show", "lna"], 4, &["none; did you mean lan?"]);
    server.check(&["down", "wbe"], 4, &["none; did you mean web?"]);
    server.check(&["read", "firewall/conuter.cuont"], 4, &["none; did you mean firewall/counter.count?"]);
    server.check(&["handlers", "firewall", "conuter"], 4, &["did you mean counter?"]);
}

/// A command for boxes says what it is that has the name.
#[test]
fn names_of_other_objects_are_explained() {
    let missing = |name: &str| {
        format!(
            r#"{{"error": {{"code": "not_found", "reason": "no_box", "subject": "box/{name}", "message": "no box"}}}}"#
        )
    };
    let [lan, nat, log, web] = ["lan", "nat", "log-1", "web"].map(missing);
    let instance = |name: &str| {
        format!(
            r#"{{"name": "{name}", "up": true, "draining": false, "flows": 0, "packets": 0, "overruled": 0}}"#
        )
    };
    let service = |name: &str, instances: &str, rest: &str| {
        format!(
            r#"{{"name": "{name}", "switch": "slan", "created": "2026-01-31T12:00:00.000Z", "faces": "in=0,out=1",
                "replicas": 1, "instances": [{instances}]{rest}}}"#
        )
    };
    let two = [instance("nat-1"), instance("nat-2")].join(", ");
    let services = format!(
        "[{}, {}]",
        service("nat", &two, ""),
        service("log", &instance("log-1"), r#", "socket": "/run/log.socket""#)
    );
    let traffic = r#"{"received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0}"#;
    let switches = format!(
        r#"[{{"name": "lan", "mode": "learning", "age_seconds": 300, "addresses_per_port": 16,
            "created": "2026-01-31T12:00:00.000Z", "ports": 0, "addresses": 0, "traffic": {traffic},
            "rates": {{"received_packets": 0, "received_bits": 0, "sent_packets": 0, "sent_bits": 0,
                      "dropped_packets": 0, "cores": 0}}}}]"#
    );
    let stacks =
        r#"[{"name": "web", "applied": "2026-01-31T12:00:00.000Z", "boxes": ["fw"], "switches": []}]"#;
    let server = Server::new(
        "kinds",
        &[
            ("GET /v1/boxes/lan", 404, &lan),
            ("GET /v1/capture?port=lan*", 404, &lan),
            ("GET /v1/boxes/nat/handlers/c.count", 404, &nat),
            ("GET /v1/boxes/nat/logs*", 404, &nat),
            ("GET /v1/boxes/log-1/handlers/c.count", 404, &log),
            ("GET /v1/capture?port=log-1*", 404, &log),
            ("POST /v1/boxes/web/stop", 404, &web),
            ("GET /v1/services", 200, &services),
            ("GET /v1/switches", 200, &switches),
            ("GET /v1/chains", 200, "[]"),
            ("GET /v1/stacks", 200, stacks),
        ],
    );
    server.check(&["show", "lan"], 4, &["no box; lan is a switch: `clickbox switch show lan` shows it"]);
    server.check(
        &["capture", "lan", "--json"],
        4,
        &["no box; lan is a switch: name its port, as in lan/PORT (`clickbox port ls lan` lists them)"],
    );
    let nat = "no box; nat is a service: name one of its instances, as nat-1 (`clickbox service show nat` lists them)";
    server.check(&["read", "nat/c.count"], 4, &[nat]);
    server.check(&["logs", "nat"], 4, &[nat]);
    server.check(
        &["read", "log-1/c.count"],
        4,
        &["no box; log-1 is a function of service log: `clickbox service show log` shows it"],
    );
    server.check(
        &["capture", "log-1", "--json"],
        4,
        &["log-1 is a function of service log: its port is captured by `clickbox capture slan/log-1.0`"],
    );
    server.check(&["stop", "web"], 4, &["no box; web is a stack: `clickbox ps` lists its boxes"]);
}

/// What a value may be is in the error for a wrong one, and options that stand for each other are named together.
#[test]
fn wrong_and_missing_values_say_what_is_accepted() {
    let server = Server::new("values", &[]);
    let flow = |output: &str| ["flow", "add", "lan", "--output", output].map(String::from);
    let flow = |output: &str, texts: &[&str]| {
        server.check(&flow(output).each_ref().map(String::as_str), 2, texts);
    };
    let forms = "the output of a flow is a port's name, chain:NAME, normal, flood or drop";
    flow("service:ids", &[forms, "and no service: create a chain of the service, and name that"]);
    flow("Wan 0", &[forms, "is not a valid name"]);
    server.check(&["flow", "add", "lan"], 2, &["<--output <OUTPUT>|--chain <CHAIN>>"]);
    server.check(&["flow", "add", "--help"], 0, &["chain:NAME"]);
    server.check(
        &["service", "scale", "fw"],
        2,
        &["<N|--auto <MIN-MAX>>", "Usage: clickbox service scale [OPTIONS] <SERVICE> [N]\n"],
    );
    server.check(
        &["chain", "set", "web"],
        2,
        &[
            "<SERVICE|--from <PORT|->|",
            "--one-way>",
            "Usage: clickbox chain set [OPTIONS] <CHAIN> [SERVICE]...\n",
        ],
    );
    for wrong in ["two", "0", "300", "1-4"] {
        server.check(
            &["service", "scale", "fw", wrong],
            2,
            &["expected a number of instances from 1 to 128; a range, such as 1-4, follows --auto"],
        );
    }
}

#[test]
fn lifecycle_commands_apply_to_each_box() {
    let busy = r#"{"error": {"code": "busy", "message": "b is stopped: start it first."}}"#;
    let server = Server::new(
        "lifecycle",
        &[
            ("POST /v1/boxes/a/kill", 200, BOX),
            ("POST /v1/boxes/b/kill", 409, busy),
            ("DELETE /v1/boxes/a", 204, ""),
        ],
    );
    let requests = server.check(
        &["kill", "a", "b", "c"],
        4,
        &["b is stopped: start it first.", "no such thing", "fw was killed"],
    );
    assert_eq!(requests.len(), 3);
    server.check(&["kill", "b"], 6, &["start it first"]);
    server.check(&["kill", "a"], 0, &["fw was killed, and restarts"]);
    server.check(&["rm", "a"], 0, &[]);
    server.check(&["rm"], 2, &["BOX"]);
}

#[test]
fn streams_print_lines() {
    let server = Server::new(
        "streams",
        &[
            (
                "GET /v1/boxes/fw/logs?follow=false&lines=2",
                200,
                "{\"time\":\"2026-01-31T12:00:00.000Z\",\"configuration\":\"main\",\"text\":\"hello\\u001b\",\"lost\":4}\n",
            ),
            (
                "GET /v1/events?follow=false&since=6",
                200,
                "{\"sequence\":7,\"time\":\"2026-01-31T12:00:00.000Z\",\"kind\":\"box_created\",\"subject\":\"box/fw\",\
                 \"message\":\"made\"}\n",
            ),
        ],
    );
    server.check(&["logs", "-n", "2", "fw"], 0, &["(4 lines were lost)\nhello\\u{1b}\n"]);
    server.check(&["events", "--since", "6"], 0, &["7 2026-01-31T12:00:00.000Z  box/fw  made"]);
    let output = server.run(&["events", "--since", "6", "--json"], "");
    let event: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(event["kind"], "box_created");
}

const HOST: &str = r#"{
    "version": "1", "image": "x", "started": "2026-01-31T12:00:00.000Z", "pid": 1, "sandboxes": ["process"],
    "kvm": {"usable": false}, "cgroup": "none", "cores": 1, "workers": 1, "memory": 1, "memory_available": 1,
    "counts": {"boxes": 0, "running": 0, "switches": 0, "ports": 0, "stacks": 0}
}"#;

/// The commands that wait for something to print end when the reader of their output does.
#[test]
fn waiting_commands_end_with_their_reader() {
    let folder = std::env::temp_dir().join(format!("clickbox-online-readers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let socket = folder.join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    // Each stream starts with one line and then stays open.
    thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a request") > 0 {}
            let line = match head.split_whitespace().nth(1).unwrap_or_default() {
                path if path.starts_with("/v1/events") => {
                    "{\"sequence\":7,\"time\":\"2026-01-31T12:00:00.000Z\",\"kind\":\"box_created\",\
                     \"subject\":\"box/fw\",\"message\":\"made\"}\n"
                        .to_string()
                }
                path if path.contains("/logs") => {
                    "{\"time\":\"2026-01-31T12:00:00.000Z\",\"text\":\"hello\"}\n".to_string()
                }
                "/v1/host" => HOST.to_string(),
                "/v1/boxes" => "[]".to_string(),
                _ => format!("{}{}\x03\0\0\0\x40\0\0\0abc", "h".repeat(24), "\0".repeat(8)),
            };
            let _ = stream.write_all(format!("HTTP/1.1 200 X\r\nConnection: close\r\n\r\n{line}").as_bytes());
            if !matches!(head.split_whitespace().nth(1), Some("/v1/host" | "/v1/boxes")) {
                open.push(stream);
            }
        }
    });
    for arguments in [
        &["events", "-f"][..],
        &["logs", "-f", "fw"],
        &["capture", "fw"],
        &["capture", "fw", "--json"],
        &["top", "--json", "--interval", "60"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .args(arguments)
            .env("CLICKBOX_SOCKET", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut output = child.stdout.take().expect("a pipe");
        output.read_exact(&mut [0]).expect("a first byte");
        drop(output);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let status = loop {
            match child.try_wait().expect("its state") {
                Some(status) => break status,
                None if std::time::Instant::now() > end => {
                    let _ = child.kill();
                    panic!("{arguments:?} goes on without a reader");
                }
                None => thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn captures_print_bytes() {
    // A file header, a packet of three bytes, and a truncated one.
    let whole = format!("{}{}\x03\0\0\0\x40\0\0\0abc", "h".repeat(24), "\0".repeat(8));
    let text = format!("{whole}{}", "\0".repeat(7));
    let server = Server::new("capture", &[("GET /v1/capture?port=fw%3A1&snap=64", 200, &text)]);
    let output = server.run(&["capture", "fw", "--port", "1", "-s", "64", "-w", "-"], "");
    assert_eq!(output.stdout, whole.as_bytes());
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.contains("capturing at fw:1") && output.contains("1 packet captured"), "{output}");
    let output = server.run(&["capture", "fw:1", "-s", "64", "--quiet"], "");
    assert!(output.stdout == whole.as_bytes() && output.stderr.is_empty());
    let file = server.folder.join("out.pcap");
    let path = file.to_str().expect("a plain path");
    server.check(&["capture", "fw:1", "-s", "64", "-w", path], 0, &[]);
    assert_eq!(std::fs::read(&file).expect("the capture"), whole.as_bytes());
    server.check(&["capture", "a/b/c"], 2, &["a/b/c"]);
}

#[test]
fn switches_and_ports_are_managed() {
    let port = r#"{"name": "tap0", "driver": {"kind": "tap"}, "limits": {}, "rates": RATES, "traffic": TRAFFIC,
        "fault": "the device is gone", "drops": {"full": 2}}"#;
    let client = r#"{"name": "vpp0", "driver": {"kind": "memif", "path": "/run/vpp", "role": "client"}, "limits": {}, "rates": RATES,
        "traffic": TRAFFIC, "link": "waiting", "fault": "no server"}"#;
    let switch = r#"{"name": "lan", "mode": "learning", "age_seconds": 300, "addresses_per_port": 1024, "ports": 1,
        "created": "2026-01-31T12:00:00.000Z", "addresses": 2, "rates": RATES, "traffic": TRAFFIC, "port_list": [PORT, CLIENT]}"#;
    let rates = r#"{"received_packets": 0, "received_bits": 0, "sent_packets": 0, "sent_bits": 0, "dropped_packets": 0,
        "cores": 0}"#;
    let traffic = r#"{"received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0}"#;
    let fill = |text: &str| {
        let ports = text.replace("PORT", port).replace("CLIENT", client);
        ports.replace("RATES", rates).replace("TRAFFIC", traffic)
    };
    let (port, switch) = (fill(port), fill(switch));
    let server = Server::new(
        "switches",
        &[
            ("POST /v1/switches", 200, &switch),
            ("GET /v1/switches/lan", 200, &switch),
            ("GET /v1/switches", 200, &format!("[{switch}]")),
            ("POST /v1/switches/lan/ports", 200, &port),
            ("DELETE /v1/switches/lan/ports/tap0", 204, ""),
            ("PUT /v1/switches/lan/addresses/02%3A00%3A00%3A00%3A00%3A01", 204, ""),
            (
                "GET /v1/switches/lan/addresses",
                200,
                r#"[{"mac": "02:00:00:00:00:01", "port": "tap0", "kind": "learned", "age_seconds": 3}]"#,
            ),
        ],
    );
    server.check(&["switch", "create", "lan", "--mode", "learning"], 0, &[]);
    server.check(&["switch", "ls"], 0, &["lan", "learning"]);
    server.check(
        &["switch", "show", "lan"],
        0,
        &[
            "tap0",
            "tap (fault)",
            "lan/tap0: the device is gone\n",
            "full 2",
            "memif client /run/vpp 0 (waiting)",
        ],
    );
    let requests =
        server.check(&["port", "add", "lan", "in", "--driver", "pcap", "--read", "x.pcap"], 0, &[]);
    let request: api::AddPort =
        serde_json::from_str(&requests.first().expect("a request").1).expect("a request");
    assert!(
        matches!(request.driver, api::PortDriver::Pcap { read: Some(path), .. } if path.starts_with('/'))
    );
    server.check(&["port", "add", "lan", "x", "--driver", "null", "--rate", "5"], 2, &["has no \"rate\""]);
    server.check(&["port", "rm", "lan", "tap0"], 0, &[]);
    server.check(&["address", "add", "lan", "2:0:0:0:0:1", "tap0"], 0, &[]);
    server.check(&["address", "ls", "lan"], 0, &["02:00:00:00:00:01", "learned", "3s"]);
}

#[test]
fn stacks_are_applied() {
    let changes = r#"{"changes": [{"action": "create", "subject": "box/fw"},
        {"action": "change", "subject": "box/nat", "detail": "weight 100 -> 200"}]}"#;
    let server = Server::new(
        "stacks",
        &[
            ("PUT /v1/stacks/edge", 200, changes),
            ("POST /v1/stacks/edge/diff", 200, changes),
            ("DELETE /v1/stacks/edge", 200, r#"{"changes": []}"#),
            (
                "GET /v1/stacks",
                200,
                r#"[{"name": "edge", "applied": "2026-01-31T12:00:00.000Z", "boxes": ["fw"], "switches": []}]"#,
            ),
        ],
    );
    let file = server.folder.join("edge.toml");
    std::fs::write(&file, "[boxes.fw]\nconfiguration = \"fw.click\"\n").expect("a file");
    std::fs::write(server.folder.join("fw.click"), "Idle -> Discard;").expect("a file");
    let path = file.to_str().expect("a plain path");
    server.check(&["up", path], 0, &["+ create  box/fw\n", "~ change  box/nat: weight 100 -> 200"]);
    server.check(&["diff", path], 1, &["create"]);
    server.check(&["diff", "--exit-code", path], 1, &["create"]);
    server.check(&["down", path], 0, &["nothing to remove"]);
    server.check(&["down", "edge"], 0, &["nothing to remove"]);
    server.check(&["stacks"], 0, &["edge"]);
    server.check(&["up", "nowhere.toml"], 2, &["nowhere.toml"]);
}

#[test]
fn without_a_daemon_the_error_says_how_to_start_one() {
    let socket = std::env::temp_dir().join("clickbox-no-daemon");
    for arguments in [&["ps"][..], &["top"], &["read", "fw/c.count"], &["events"], &["rm", "fw"], &["stacks"]]
    {
        let output = run(&socket, arguments, "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {text}");
        assert!(text.contains("start one with `clickbox daemon &`"), "{text}");
    }
    let output = run(&socket, &["ps", "--socket", "elsewhere"], "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("start one with `clickbox daemon --socket elsewhere &`"), "{text}");
    let output = run(&socket, &["doctor"], "");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("kvm") && text.contains("clickbox daemon &"), "{text}");
    let report: serde_json::Value =
        serde_json::from_slice(&run(&socket, &["doctor", "--json"], "").stdout).expect("JSON");
    assert!(
        report["findings"].as_array().is_some_and(|findings| findings.len() > 10)
            && report["daemon"].is_null()
    );
    // Process boxes are really started.
    let of = |name: &str| report["findings"].as_array()?.iter().find(|finding| finding["name"] == name);
    let tried = of("box in a process").expect("the trial");
    assert!(tried["found"].as_str().is_some_and(|found| found.contains("forwards a packet")), "{tried}");
}

#[test]
fn names_are_completed() {
    let lan = r#"[{"name": "lan", "mode": "learning", "age_seconds": 300, "addresses_per_port": 1024, "ports": 0,
        "created": "2026-01-31T12:00:00.000Z", "addresses": 0, "rates": {"received_packets": 0, "received_bits": 0,
        "sent_packets": 0, "sent_bits": 0, "dropped_packets": 0, "cores": 0}, "traffic": {"received_packets": 0,
        "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0}}]"#;
    let server = Server::new(
        "complete",
        &[
            ("GET /v1/switches", 200, lan),
            ("GET /v1/boxes", 200, &format!("[{BOX}]")),
            (
                "GET /v1/boxes/fw/handlers",
                200,
                r#"[{"configuration": "main", "element": "c", "handler": "count", "read": true, "write": false}]"#,
            ),
        ],
    );
    let complete = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .env("CLICKBOX_SOCKET", server.folder.join("socket"))
            .env("CLICKBOX_COMPLETE", "fish")
            .args(["--", "clickbox"])
            .args(words)
            .output()
            .expect("the program ends");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(complete(&["kill", "f"]).lines().any(|line| line == "fw"));
    assert!(complete(&["read", ""]).lines().any(|line| line == "fw/"));
    assert!(complete(&["read", "fw/c"]).lines().any(|line| line == "fw/c.count"));
    assert_eq!(complete(&["handlers", "fw", ""]).lines().next(), Some("c"));
    assert_eq!(complete(&["capture", "l"]).lines().next(), Some("lan/"));
    assert!(complete(&["create", "fw", "x", "--attach", ""]).lines().any(|line| line == "lan"));
    assert!(complete(&["element", "IPFil"]).lines().any(|line| line == "IPFilter"));
    assert!(complete(&["reload", "fw", "Cargo.t"]).lines().any(|line| line == "Cargo.toml"));
    assert!(complete(&["sus"]).lines().any(|line| line.starts_with("suspend")));
    // The scripts of these shells pass the index of the word in a variable.
    for shell in ["bash", "zsh"] {
        let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .env("CLICKBOX_SOCKET", server.folder.join("socket"))
            .envs([("CLICKBOX_COMPLETE", shell), ("_CLAP_COMPLETE_INDEX", "2"), ("_CLAP_IFS", "\n")])
            .args(["--", "clickbox", "kill", "f"])
            .output()
            .expect("the program ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "fw", "{shell}");
    }
}
