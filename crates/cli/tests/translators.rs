//! Replicas of a NAT, from the command line to the packets in boxes.

mod support;

use support::{Daemon, wait};

/// Sends UDP packets of 64 clients, and answers as a server on port 5353.
const CLIENTS: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 1000, ACTIVE false) -> UDPIPEncap(10.0.1.0, 1000, 198.51.100.9, 53)
    -> SetRandIPAddress(10.0.1.0/26) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> out :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);
    FromDevice(0) -> Strip(14) -> CheckIPHeader
    -> k :: IPClassifier(dst net 10.0.1.0/26 and udp dst port 1000, dst host 10.0.0.5 and udp dst port 5353, -);
    k[0] -> back :: Counter -> Discard;
    k[1] -> IPMirror -> out;
    k[2] -> wrong :: Counter -> Discard;\n";
/// Answers, and sends UDP packets of 16 hosts to port 53 of the NAT.
const WORLD: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 500, ACTIVE false) -> UDPIPEncap(192.0.2.0, 4000, 203.0.113.1, 53)
    -> SetRandIPAddress(192.0.2.0/28) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> out :: EtherEncap(0x0800, 2:0:0:0:0:2, 2:0:0:0:0:1) -> ToDevice(0);
    FromDevice(0) -> Strip(14) -> CheckIPHeader
    -> k :: IPClassifier(dst host 198.51.100.9 and src host 203.0.113.1, src host 203.0.113.1 and udp src port 53, -);
    k[0] -> got :: Counter -> IPMirror -> out;
    k[1] -> back :: Counter -> Discard;
    k[2] -> wrong :: Counter -> Discard;\n";
const NAT: &str = "
    define($TRANSLATE_ADDRESS 203.0.113.1, $TRANSLATE_PORTS 1024-65535);
    nat :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop, pattern - - 10.0.0.5 5353 1 0);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> nat;
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> mapped :: IPClassifier(dst host 203.0.113.1 and udp dst port 53, -);
    mapped[0] -> [2]nat; mapped[1] -> [1]nat;
    nat[0] -> Unstrip(14) -> ToDevice(1);
    nat[1] -> Unstrip(14) -> ToDevice(0);\n";

const MAPPING: &str = "udp 203.0.113.1:53 -> 10.0.0.5:5353";

fn count(daemon: &Daemon, handler: &str) -> u64 {
    let (code, text) = daemon.run(&["read", handler]);
    text.trim().parse().unwrap_or_else(|_| panic!("{handler}: {code} {text}"))
}

#[test]
fn a_user_runs_replicas_of_a_nat() {
    let daemon = Daemon::start("translators");
    daemon.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
    for (name, text, mac) in [("clients", CLIENTS, 1), ("world", WORLD, 2)] {
        let path = daemon.file(&format!("{name}.click"), text);
        let mac = format!("lan,mac=02:00:00:00:00:0{mac}");
        let options = ["--sandbox", "process", "--ring", "2048", "--attach", &mac];
        daemon.check(&[&["create", name, &path], &options[..]].concat(), 0, &[]);
    }
    let path = daemon.file("nat.click", NAT);
    let create = |more: &[&str]| {
        let words =
            ["service", "create", "nat", &path, "--sandbox", "process", "--ring", "2048", "--replicas", "2"];
        [&words[..], more].concat().iter().map(|word| word.to_string()).collect::<Vec<_>>()
    };
    let refused = |more: &[&str], expected: &[&str]| {
        let words = create(more);
        daemon.check(&words.iter().map(String::as_str).collect::<Vec<_>>(), 2, expected);
    };
    refused(&["--slices", "4"], &["--translate"]);
    refused(&["--translate", "203.0.113.1/28"], &["ADDRESS:FIRST-LAST"]);
    let faces = ["--faces", "in=0,out=1"];
    let ports = ["--translate", "203.0.113.1:1024-65535"];
    refused(&ports, &["name both faces"]);
    refused(&[&faces[..], &ports, &["--slices", "1"]].concat(), &["2 instances need as many slices"]);
    refused(
        &[&faces[..], &ports, &["--static", "udp 203.0.113.1:5353 -> 10.0.0.5:5353"]].concat(),
        &["lies in the range 203.0.113.1:1024-65535"],
    );
    let words = create(&[&faces[..], &ports, &["--slices", "4", "--static", MAPPING]].concat());
    daemon.check(&words.iter().map(String::as_str).collect::<Vec<_>>(), 0, &["nat has 2 instances"]);
    let chain =
        ["chain", "create", "web", "nat", "--from", "lan.clients.0", "--to", "world.0", "--both-ways"];
    daemon.check(&chain, 0, &["clients.0 <-> nat <-> world.0"]);
    let shown = [
        "translates to",
        "203.0.113.1:1024-65535",
        MAPPING,
        "203.0.113.1:1024-17151",
        "203.0.113.1:17152-33279",
        "OUT OF RANGE",
    ];
    daemon.check(&["service", "show", "nat"], 0, &shown);

    let send = |box_name: &str, limit: u32| {
        daemon.check(&["write", &format!("{box_name}/s.limit"), &limit.to_string()], 0, &[]);
        daemon.check(&["write", &format!("{box_name}/s.active"), "true"], 0, &[]);
    };
    send("clients", 1000);
    send("world", 500);
    wait("replies reach the clients", || count(&daemon, "clients/back.count") == 1000);
    wait("replies come from the mapped server", || count(&daemon, "world/back.count") == 500);
    // More instances get no flow, and those that are drained hand theirs over.
    daemon.check(&["service", "scale", "nat", "5"], 2, &["5 instances need as many slices"]);
    daemon.check(&["service", "scale", "nat", "4"], 0, &["nat has 4 instances"]);
    let flows = daemon.json(&["service", "show", "nat"])["instances"][1]["flows"].as_u64().expect("a number");
    assert!((10..64).contains(&flows), "{flows}");
    // The answer has all three, also those that are gone already.
    let scale = ["service", "scale", "nat", "1", "--drain", "60"];
    daemon.check(&scale, 0, &["nat has 1 instance at switch lan; 3 were taken out"]);
    wait("the instances are removed", || {
        daemon.json(&["service", "show", "nat"])["instances"].as_array().map(Vec::len) == Some(1)
    });
    daemon.check(
        &["events"],
        0,
        &[&format!("instance nat-2 of service nat handed {flows} flows over to instance nat-1")],
    );
    daemon.check(&["service", "show", "nat"], 0, &["TAKEN OVER", &flows.to_string()]);
    send("clients", 2000);
    send("world", 1000);
    wait("replies reach the clients", || count(&daemon, "clients/back.count") == 2000);
    wait("replies come from the mapped server", || count(&daemon, "world/back.count") == 1000);
    assert_eq!((count(&daemon, "clients/wrong.count"), count(&daemon, "world/wrong.count")), (0, 0));
    let status = daemon.json(&["service", "show", "nat"]);
    let instances = status["instances"].as_array().expect("instances");
    let sum = |field: &str| instances.iter().filter_map(|found| found[field].as_u64()).sum::<u64>();
    // 64 clients, and 16 hosts at the mapped server.
    assert_eq!((sum("flows"), sum("overruled"), sum("taken_over")), (80, 0, flows), "{status}");
    let metrics = daemon.metrics();
    for (name, value) in [("taken_over_flows_total", flows), ("kept_flows", 0)] {
        let line = format!("clickbox_service_{name}{{service=\"nat\",owner=\"default\"}} {value}\n");
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    for instance in instances {
        let nothing = serde_json::json!({ "out_of_range": 0, "taken": 0, "no_room": 0 });
        assert_eq!(instance["translation"]["refused"], nothing, "{status}");
    }

    daemon.check(&["service", "rm", "--force", "nat"], 0, &[]);
    let stack = daemon.file(
        "edge.toml",
        &format!(
            "switches.lan.external = true
            [service.nat]
            switch = \"lan\"
            file = \"nat.click\"
            sandbox = \"process\"
            replicas = 2
            faces = \"in=0,out=1\"
            translation = {{ ranges = [\"203.0.113.1:1024-65535\"], slices = 2, mappings = [\"{MAPPING}\"] }}
            "
        ),
    );
    daemon.check(&["up", &stack], 0, &["nat"]);
    daemon.check(&["export", "edge"], 0, &["ranges = [\"203.0.113.1:1024-65535\"]", MAPPING, "slices = 2"]);
    daemon.check(&["service", "show", "nat"], 0, &["203.0.113.1:33280-65535"]);
    daemon.check(&["down", "edge"], 0, &[]);
    daemon.check(&["switch", "rm", "--force", "lan"], 0, &[]);
}
