//! Two switches that are joined by a memif interface, whose ends come and go.

mod support;

use std::os::unix::net::UnixStream;
use std::path::Path;
use support::planes::Planes;
use support::{Daemon, capture as start_capture, wait};

/// Frames of a capture.
const FRAMES: u64 = 200;

/// What a port of a switch shows.
fn port(daemon: &Daemon, switch: &str, name: &str) -> serde_json::Value {
    let ports = daemon.json(&["port", "ls", switch]);
    let found = ports.as_array().and_then(|ports| ports.iter().find(|port| port["name"] == name));
    found.cloned().unwrap_or_else(|| panic!("no {name} in {ports}"))
}

#[test]
fn two_switches_are_joined_by_a_memif() {
    let daemon = Daemon::start("memif");
    let capture = daemon.folder.join("in.pcap");
    let (socket, capture) = (daemon.folder.join("memif.sock"), capture.to_str().expect("a plain path"));
    let source = format!(
        "InfiniteSource(LIMIT {FRAMES}, LENGTH 1000, STOP true) -> EtherEncap(0x88b5, 2:0:0:0:0:2, 2:0:0:0:0:1) \
         -> ToDump({capture});"
    );
    daemon.check(&["run", "-e", &source], 0, &[]);
    let socket = socket.to_str().expect("a plain path");
    for switch in ["left", "right"] {
        daemon.check(&["switch", "create", switch], 0, &[]);
    }
    let join = |switch: &'static str, role: &'static str| {
        [
            "port", "add", switch, "memif", "--driver", "memif", "--path", socket, "--role", role,
            "--secret", "hush",
        ]
    };
    // The client waits for its server.
    daemon.check(&join("left", "client"), 0, &["port memif waits", "can't connect to the socket"]);
    daemon.check(&["port", "ls", "left"], 0, &["memif client", "can't connect to the socket"]);
    for round in 1..=3u64 {
        daemon.check(&join("right", "server"), 0, &["no client is connected"]);
        wait("both ends are connected", || {
            ["left", "right"].iter().all(|switch| port(&daemon, switch, "memif")["link"] == "up")
        });
        // Both ends of one socket can't be servers.
        if round == 1 {
            let other = join("left", "server").map(|word| if word == "memif" { "other" } else { word });
            let mut other = other.to_vec();
            other[5] = "memif";
            daemon.check(&other, 5, &["has this device, file, socket or tunnel already"]);
        }
        let captured = start_capture(&daemon.socket(), "left/memif", FRAMES as usize);
        let name = format!("in{round}");
        daemon.check(&["port", "add", "left", &name, "--driver", "pcap", "--read", capture], 0, &[]);
        wait("all frames arrive", || {
            port(&daemon, "right", "memif")["traffic"]["received_packets"] == FRAMES
        });
        let left = port(&daemon, "left", "memif");
        assert_eq!(left["traffic"]["sent_packets"], round * FRAMES);
        assert_eq!(left["drops"], serde_json::json!({}));
        let header = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
        assert!(captured().iter().all(|frame| frame.len() == 1014 && frame.starts_with(&header)));
        daemon.check(&["account"], 0, &["port left/memif", "port right/memif"]);
        daemon.until(&["events"], "port memif of switch left works again");
        daemon.check(&["port", "rm", "right", "memif"], 0, &[]);
        assert!(!std::path::Path::new(socket).exists(), "the socket goes with its port");
        wait("the client notices", || !port(&daemon, "left", "memif")["fault"].is_null());
    }
}

#[test]
fn a_socket_that_somebody_removed_is_made_again() {
    let planes = Planes::new("lost-sockets");
    let mut daemon = planes.start();
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let sockets = ["memif", "vhost_user"].map(|driver| planes.path(driver));
    for (driver, socket) in ["memif", "vhost_user"].into_iter().zip(&sockets) {
        let add = ["port", "add", "lan", driver, "--driver", driver, "--path", socket, "--role", "server"];
        planes.check(&add, 0, &[]);
    }
    let are_there = || sockets.iter().all(|socket| Path::new(socket).exists());
    let link = || planes.json(&["port", "ls", "lan"])[1]["link"].clone();
    // While a daemon runs, and while none does.
    for round in 1..=2 {
        if round == 2 {
            daemon.kill().expect("a signal");
            daemon.wait().expect("an end");
        }
        sockets.iter().for_each(|socket| std::fs::remove_file(socket).expect("a socket"));
        if round == 2 {
            daemon = planes.start();
        }
        wait("the sockets are there again", are_there);
        for (driver, socket) in ["memif", "vhost_user"].into_iter().zip(&sockets) {
            let event = |what: &str| format!("port {driver} of switch lan {what}");
            let removed = event(&format!("does not work: its socket {socket} was removed"));
            wait("the port works again", || {
                let events = planes.check(&["events"], 0, &[]);
                [&removed, &event("works again")].iter().all(|text| events.matches(*text).count() == round)
            });
        }
        let peer = UnixStream::connect(&sockets[1]).expect("somebody listens");
        wait("the fabric has accepted the peer", || link() == "connected");
        drop(peer);
        wait("the peer has gone", || link() != "connected");
    }
    // The launcher lets go of what the ports of a switch had.
    planes.check(&["switch", "rm", "lan"], 0, &[]);
    wait("the sockets are gone", || sockets.iter().all(|socket| !Path::new(socket).exists()));
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

#[test]
fn the_options_of_a_memif_are_checked() {
    let daemon = Daemon::start("memif-options");
    daemon.check(&["switch", "create", "lan"], 0, &[]);
    let refused = |options: &[&str], code, text| {
        daemon.check(&[&["port", "add", "lan", "m", "--driver"], options].concat(), code, &[text]);
    };
    let needs = "a memif port needs --path SOCKET, and --role server or --role client";
    refused(&["memif", "--role", "server"], 2, needs);
    refused(&["memif", "--path", "/run/m.sock"], 2, needs);
    refused(&["null", "--secret", "x"], 2, "the driver null has no \"secret\"");
    let server = ["memif", "--path", "/nowhere/m.sock", "--role", "server"];
    let long = "a-secret-of-24-character";
    refused(&[&server[..], &["--secret", long]].concat(), 2, "1 to 23 visible ASCII characters");
    refused(&server, 5, "can't listen at the socket");
}
