//! Several switch threads, as a user has them: all processes, with their filters, boxes of both kinds, interfaces with several
//! queues, and a fabric that is killed.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::net::UdpSocket;
use std::time::Duration;
use support::network::Network;
use support::planes::{Planes, until};
use test_support::{Capability, require, skip};

/// Sends packets of 300 flows to `mirror`, and counts those that come back.
const SOURCE: &str =
    "s :: FastUDPFlows(20000, 0, 60, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 300, 1000000,
    ACTIVE false) -> ToDevice(0);
FromDevice(0) -> r :: Counter -> Discard;\n";

/// Sends packets back.
const MIRROR: &str =
    "FromDevice(0) -> MarkIPHeader(14) -> EtherMirror -> IPMirror -> Queue(4096) -> ToDevice(0);\n";

/// The switch threads of a process, by their names.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("threads").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<String> = names.map(|name| name.trim().into()).collect();
    names.retain(|name: &String| name.starts_with("switch"));
    names.sort();
    names
}

/// A packet of each of 16 flows every few milliseconds, for the test of cores.
fn flows() -> String {
    let flow = |number: u32| {
        format!(
            "RatedSource(RATE 200, LENGTH 30) -> UDPIPEncap(10.0.{number}.1, {}, 10.0.0.2, 53)
                -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> q;\n",
            1024 + 977 * number
        )
    };
    "q :: Queue(1000) -> ToDevice(0);\nFromDevice(0) -> Discard;\n".to_string()
        + &(0..16).map(flow).collect::<String>()
}

/// Counts what its cores get, which share a queue of `limit` packets.
fn counter(limit: u32) -> String {
    format!("FromDevice(0) -> c :: Counter -> q :: Queue({limit}) -> Unqueue -> d :: Discard;\n")
}

#[test]
fn a_new_daemon_adopts_a_box_with_several_cores() {
    for sandbox in ["process", "vm"] {
        if sandbox == "vm" && !require(Capability::Kvm) {
            continue;
        }
        let planes = Planes::new(&format!("cores-{sandbox}"));
        let mut daemon = planes.start();
        planes.check(&["switch", "create", "lan"], 0, &[]);
        let text = planes.file("counter.click", &counter(50));
        let attach = "lan,mac=02:00:00:00:00:02";
        let create = ["create", "nf", &text, "--sandbox", sandbox, "--cores", "2", "--attach", attach];
        planes.check(&create, 0, &["nf runs"]);
        let source = planes.file("flows.click", &flows());
        let attach = "lan,mac=02:00:00:00:00:01";
        planes.check(
            &["create", "source", &source, "--sandbox", "process", "--attach", attach],
            0,
            &["source runs"],
        );
        let of_cores = || [0, 1].map(|core| planes.number(&format!("nf/shard{core}/c.count")));
        until("packets at both cores", || of_cores().iter().all(|count| *count > 0));
        let fabric = planes.fabric().expect("a fabric");
        for (round, is_killed) in [true, false].into_iter().enumerate() {
            let before = of_cores();
            if is_killed {
                let process = Pid::from_raw(daemon.id().cast_signed()).expect("a process");
                kill_process(process, Signal::KILL).expect("a signal");
            } else {
                planes.check(&["daemon", "stop"], 0, &["2 boxes go on"]);
            }
            daemon.wait().expect("an end");
            daemon = planes.start();
            assert_eq!(planes.fabric(), Some(fabric));
            let after = of_cores();
            assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
            // The new daemon reads, writes and swaps in all cores, and a sum is that of both.
            let sum = planes.number("nf/c.count");
            assert!(sum >= after[0] + after[1], "{sum} {after:?}");
            let limit = 60 + 2 * u32::try_from(round).expect("a number");
            let other = planes.file("other.click", &counter(limit));
            planes.check(&["reload", "nf", &other], 0, &[]);
            for core in [0, 1] {
                assert_eq!(planes.number(&format!("nf/shard{core}/q.capacity")), u64::from(limit) / 2);
            }
            until("packets after the swap", || {
                let now = of_cores();
                now[0] > after[0] && now[1] > after[1]
            });
            planes.check(&["write", "nf/q.capacity", "77"], 0, &[]);
            let parts = [0, 1].map(|core| planes.number(&format!("nf/shard{core}/q.capacity")));
            assert_eq!(parts, [39, 38], "each core has its part");
        }
        planes.check(&["ps"], 0, &[&format!("{sandbox} x2")]);
        assert!(!planes.check(&["events"], 0, &[]).contains("crashed"));
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        daemon.wait().expect("an end");
    }
}

#[test]
fn a_daemon_runs_switches_in_several_threads() {
    for sandbox in ["process", "vm"] {
        if sandbox == "vm" && !require(Capability::Kvm) {
            continue;
        }
        let planes = Planes::new(&format!("threads-{sandbox}"));
        planes.check(&["daemon", "--switch-threads", "9"], 2, &["9", "1..=8"]);
        let store = planes.path("store");
        let mut daemon = planes.start_with(&["--store", &store, "--switch-threads", "2"]);
        planes.check(&["switch", "create", "lan"], 0, &[]);
        for (name, text, mac) in
            [("mirror", MIRROR, "02:00:00:00:00:02"), ("source", SOURCE, "02:00:00:00:00:01")]
        {
            let file = planes.file(&format!("{name}.click"), text);
            let attach = format!("lan,mac={mac}");
            let create = ["create", name, &file, "--sandbox", sandbox, "--ring", "2048", "--attach", &attach];
            planes.check(&create, 0, &["runs"]);
        }
        let exchange = || {
            let before = planes.number("source/r.count");
            planes.check(&["write", "source/s.limit", "1200"], 0, &[]);
            planes.check(&["write", "source/s.active", "true"], 0, &[]);
            until("all packets are back", || planes.number("source/r.count") == before + 1200);
            let account = planes.json(&["account"]);
            assert!(account.to_string().contains("lan"), "{account}");
            planes.check(&["account"], 0, &["switch lan"]);
        };
        exchange();
        let fabric = planes.fabric().expect("a fabric");
        assert_eq!(threads(fabric), ["switch", "switch 1"]);
        kill_process(Pid::from_raw(fabric.cast_signed()).expect("a process"), Signal::KILL)
            .expect("a signal");
        until("another fabric", || planes.fabric().is_some_and(|other| other != fabric));
        until("the fabric is rebuilt", || {
            planes.check(&["events"], 0, &[]).contains("the fabric was restarted with all boxes")
        });
        exchange();
        assert_eq!(threads(planes.fabric().expect("a fabric")), ["switch", "switch 1"]);
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        daemon.wait().expect("an end");
    }
}

/// Flows between the hosts of a test.
const FLOWS: u64 = 120;

/// Two hosts with the addresses 10.0.0.1 and 10.0.0.2, and the interfaces `end0` and `end1` in between, which lead to them.
fn join_hosts(hosts: &[Network; 2], middle: &Network) {
    for (number, host) in hosts.iter().enumerate() {
        let queues = "numrxqueues 2 numtxqueues 2";
        let far = format!("peer name eth0 {queues} netns {}", host.path());
        assert!(middle.ip(&[
            format!("link add end{number} {queues} type veth {far}"),
            format!("link set end{number} up")
        ]));
        let address = format!("addr add 10.0.0.{}/24 dev eth0", number + 1);
        assert!(host.ip(&[address.as_str(), "link set eth0 up"]));
    }
}

/// Exchanges a packet in each direction of each flow.
fn exchange(hosts: &[Network; 2]) {
    let bind = |host: usize| hosts[host].inside(|| UdpSocket::bind(format!("10.0.0.{}:0", host + 1)));
    let server = bind(1).expect("a socket");
    let address = server.local_addr().expect("an address");
    let clients: Vec<UdpSocket> = (0..FLOWS).map(|_| bind(0).expect("a socket")).collect();
    let mut data = [0; 64];
    // Until packets pass, they are lost.
    server.set_read_timeout(Some(Duration::from_millis(100))).expect("a limit");
    let probe = bind(0).expect("a socket");
    until("packets pass", || {
        // The host knows no way as long as its interface is not there.
        let _ = probe.send_to(b"", address);
        server.recv_from(&mut data).is_ok()
    });
    for socket in clients.iter().chain([&server]) {
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    }
    for (number, client) in clients.iter().enumerate() {
        client.send_to(&number.to_be_bytes(), address).expect("a packet is sent");
    }
    let mut left = clients.len();
    while left > 0 {
        let (length, from) = server.recv_from(&mut data).expect("a packet");
        if length > 0 {
            server.send_to(&data[..length], from).expect("a packet is sent");
            left -= 1;
        }
    }
    for (number, client) in clients.iter().enumerate() {
        let length = client.recv(&mut data).expect("the packet comes back");
        assert_eq!(data[..length], number.to_be_bytes());
    }
}

#[test]
fn a_port_of_an_interface_has_a_queue_for_each_thread() {
    if !require(Capability::Root) {
        return;
    }
    for driver in ["af_packet", "af_xdp"] {
        let [left, right, middle] = [(); 3].map(|()| Network::new());
        for network in [&left, &right, &middle] {
            network.set("ipv6/conf/default/disable_ipv6", "1");
        }
        let hosts = [left, right];
        join_hosts(&hosts, &middle);
        let planes = Planes::new(&format!("queues-{driver}"));
        let store = planes.path("store");
        let mut daemon = middle.inside(|| planes.start_with(&["--store", &store, "--switch-threads", "2"]));
        planes.check(&["switch", "create", "lan"], 0, &[]);
        for port in ["end0", "end1"] {
            planes.check(&["port", "add", "lan", port, "--driver", driver], 0, &[]);
        }
        let fabric = || middle.inside(|| planes.fabric());
        let ports = || {
            let shown = planes.json(&["switch", "show", "lan"]);
            shown["port_list"].as_array().expect("ports").clone()
        };
        let awaits = ports()[0]["awaits"].clone();
        if let Some(why) = awaits.as_str() {
            assert_eq!(driver, "af_xdp");
            skip(Capability::Root, why);
        }
        for round in 0..3 {
            exchange(&hosts);
            planes.check(&["port", "ls", "lan"], 0, &[&format!("{driver}, 2 queues")]);
            for port in ports() {
                assert_eq!((&port["queues"], &port["awaits"]), (&2.into(), &awaits), "{port}");
                let traffic = |name: &str| port["traffic"][name].as_u64().expect("a number");
                assert!(traffic("received_packets") >= FLOWS && traffic("sent_packets") >= FLOWS, "{port}");
                // Later, packets arrived while the other port was away.
                assert!(round > 0 || port["drops"] == serde_json::json!({}), "{port}");
            }
            for row in planes.json(&["account"])["places"].as_array().expect("places") {
                assert_eq!(row["difference"], 0, "{row}");
            }
            match round {
                // Another fabric gets queues of its own.
                0 => {
                    let before = fabric().expect("a fabric");
                    kill_process(Pid::from_raw(before.cast_signed()).expect("a process"), Signal::KILL)
                        .expect("a signal");
                    until("another fabric", || fabric().is_some_and(|other| other != before));
                }
                // The interfaces are removed, and come back.
                1 => {
                    assert!(middle.ip(&["link del end0", "link del end1"]));
                    until("the ports are down", || ports().iter().all(|port| port["fault"].is_string()));
                    join_hosts(&hosts, &middle);
                }
                _ => {}
            }
            until("the ports work", || ports().iter().all(|port| port["fault"].is_null()));
        }
        // Without the port, nothing passes, and the interface is the host's alone.
        planes.check(&["port", "rm", "lan", "end0"], 0, &[]);
        assert_eq!(ports().len(), 1);
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        daemon.wait().expect("an end");
    }
}
