//! A launcher that is killed: boxes and traffic go on, and the next launcher adopts their fabric.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Stdio};
use support::network::Network;
use support::planes::{Planes, is_running, until};
use test_support::{Capability, require, skip};

/// Counts packets, so that a test sees whether the box goes on.
const COUNTER: &str = "RatedSource(RATE 1000, LENGTH 64) -> c :: Counter -> Discard;\n";

/// What is reported when the next launcher has the fabric.
const ADOPTED: &str = "another launcher runs, and has adopted the fabrics of the one before";

/// Creates a box `fw` that counts.
fn create_box(planes: &Planes) {
    let file = planes.file("fw.click", COUNTER);
    planes.check(&["create", "fw", &file, "--sandbox", "process"], 0, &["fw runs"]);
    until("the first packet", || planes.number("fw/c.count") > 0);
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process.cast_signed()).expect("a process"), Signal::KILL).expect("a signal");
}

/// How often something was reported.
fn count(planes: &Planes, event: &str) -> usize {
    planes.check(&["events"], 0, &[]).matches(event).count()
}

/// Kills the launcher, and waits until the next one has adopted the fabric.
fn replace_launcher(planes: &Planes) {
    let (launcher, before) = (planes.launcher().expect("a launcher"), count(planes, ADOPTED));
    kill(launcher);
    until("another launcher", || count(planes, ADOPTED) > before);
    assert!(planes.launcher().is_some_and(|another| another != launcher));
}

/// A spare is a whole fabric, which no launcher but its own knows.
#[test]
fn a_spare_takes_over_or_ends_with_its_launcher() {
    let planes = Planes::new("spare");
    let mut daemon = planes.start();
    create_box(&planes);
    until("a spare", || planes.spare().is_some());
    let spare = planes.spare().expect("a spare");
    kill(planes.fabric().expect("a fabric"));
    until("the fabric is rebuilt", || count(&planes, "the fabric was restarted with all boxes") > 0);
    // The launcher does not wait for long until it knows the signal.
    let known = count(&planes, "the fabric was ended by signal 9");
    assert_eq!(
        known + count(&planes, "the fabric was killed or crashed"),
        1,
        "{}",
        planes.check(&["events"], 0, &[])
    );
    assert_eq!(planes.fabric(), Some(spare));
    until("packets after the restart", || planes.number("fw/c.count") > 0);
    until("another spare", || planes.spare().is_some_and(|other| other != spare));
    let unused = planes.spare().expect("a spare");
    replace_launcher(&planes);
    until("the unused spare has ended", || !is_running(unused));
    assert!(is_running(spare));
    until("a spare of the next launcher", || planes.spare().is_some());
    let last = planes.spare().expect("a spare");
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    until("all have ended", || !is_running(spare) && !is_running(last));
    daemon.wait().expect("an end");
}

#[test]
fn boxes_go_on_when_their_launcher_is_killed() {
    let planes = Planes::new("adopt");
    let mut daemon = planes.start();
    create_box(&planes);
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let fabric = planes.fabric().expect("a fabric");
    let mut last = 0;
    for round in 0..3 {
        replace_launcher(&planes);
        assert!(is_running(fabric));
        let counted = planes.number("fw/c.count");
        assert!(counted > last, "the box goes on");
        last = counted;
        // The fabric and the new launcher do everything.
        let name = format!("other{round}");
        planes.check(&["create", &name, &planes.path("fw.click"), "--sandbox", "process"], 0, &[]);
        let capture = planes.path(&format!("{round}.pcap"));
        let port = format!("rec{round}");
        planes.check(&["port", "add", "lan", &port, "--driver", "pcap", "--write", &capture], 0, &[]);
        planes.check(&["fabric", "drain"], 0, &["fw"]);
        planes.check(&["fabric", "drain", "--cancel"], 0, &[]);
    }
    assert_eq!(count(&planes, "the launcher has ended; boxes go on"), 3);
    assert_eq!(count(&planes, "fabric_lost"), 0);
    // A fabric that dies later is built again, with the recordings that the first launcher created.
    kill(fabric);
    until("another fabric", || count(&planes, "the fabric was restarted with all boxes") > 0);
    // Its launcher is not its parent, and so does not know its exit status.
    assert_eq!(count(&planes, "the fabric was killed or crashed"), 1);
    until("packets after the restart", || planes.number("fw/c.count") > 0);
    let events = planes.check(&["events"], 0, &[]);
    assert!(!events.contains("does not work") && !events.contains("not be restored"), "{events}");
    let second = planes.fabric().expect("a fabric");
    // An adopted fabric is replaced on request.
    replace_launcher(&planes);
    assert!(is_running(second));
    planes.check(&["fabric", "restart", "--force"], 0, &["4 boxes were away for"]);
    assert!(!is_running(second));
    // The request to end everything comes before anybody has noticed.
    let third = planes.fabric().expect("a fabric");
    kill(planes.launcher().expect("a launcher"));
    planes.check(&["daemon", "stop", "--all"], 0, &["the daemon and all boxes have ended"]);
    assert!(daemon.wait().expect("an end").success());
    until("the end of everything", || !is_running(third) && planes.launcher().is_none());
}

#[test]
fn boxes_go_on_when_launcher_and_daemon_are_killed() {
    let planes = Planes::new("adopt-both");
    let mut daemon = planes.start();
    create_box(&planes);
    let fabric = planes.fabric().expect("a fabric");
    let mut last = 0;
    for is_launcher_first in [true, false] {
        let launcher = planes.launcher().expect("a launcher");
        let order = if is_launcher_first { [launcher, daemon.id()] } else { [daemon.id(), launcher] };
        order.into_iter().for_each(kill);
        daemon.wait().expect("an end");
        daemon = planes.start();
        assert!(is_running(fabric));
        let counted = planes.number("fw/c.count");
        assert!(counted > last, "the box goes on");
        last = counted;
        planes.check(&["fabric", "drain"], 0, &["1 box still runs"]);
        planes.check(&["fabric", "drain", "--cancel"], 0, &[]);
    }
    // If no launcher comes, the box must end too.
    let launcher = planes.launcher().expect("a launcher");
    [launcher, daemon.id()].into_iter().for_each(kill);
    daemon.wait().expect("an end");
    until("the end of the fabric", || !is_running(fabric));
}

/// A launcher of a service manager, which starts it again.
#[test]
fn a_daemon_waits_for_the_launcher_of_a_service_manager() {
    let planes = Planes::new("adopt-service");
    let socket = planes.path("launcher.sock");
    let start_launcher = || -> Child {
        let mut command = Command::new(&planes.program);
        command.args(["launcher", "--stay", "--json", "--socket", &socket]).env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a launcher")
    };
    let mut launcher = start_launcher();
    until("the launcher", || fs::exists(&socket).is_ok_and(|exists| exists));
    let store = planes.path("store");
    let mut daemon = planes.start_with(&["--store", &store, "--launcher", &socket, "--expect-launcher"]);
    create_box(&planes);
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let fabric = planes.fabric().expect("a fabric");
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    std::thread::scope(|scope| {
        // A request that needs the launcher waits for the next one.
        let capture = planes.path("waits.pcap");
        let add = ["port", "add", "lan", "rec", "--driver", "pcap", "--write", &capture].map(String::from);
        let planes = &planes;
        scope.spawn(move || planes.check(&add.each_ref().map(String::as_str), 0, &[]));
        std::thread::sleep(std::time::Duration::from_millis(300));
        launcher = start_launcher();
    });
    until("another launcher", || count(&planes, ADOPTED) == 1);
    assert!(is_running(fabric) && planes.number("fw/c.count") > 0);
    // One that stays away is reported, and the boxes go on.
    launcher.kill().expect("a signal");
    launcher.wait().expect("an end");
    until("a report", || count(&planes, "the launcher has ended; no other one runs") == 1);
    assert!(is_running(fabric));
    launcher = start_launcher();
    until("another launcher", || count(&planes, ADOPTED) == 2);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
    until("the end of the fabric", || !is_running(fabric));
    let pid = Pid::from_raw(launcher.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
    assert!(launcher.wait().expect("an end").success());
}

#[test]
fn a_tap_outlives_launcher_and_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let planes = Planes::new("adopt-tap");
    let mut daemon = planes.start();
    let device = format!("cba{}", std::process::id());
    planes.check(&["switch", "create", "lan"], 0, &[]);
    let (code, text) = planes.run(&["port", "add", "lan", "tap", "--driver", "tap", "--device", &device]);
    if code != 0 {
        planes.check(&["daemon", "stop", "--all"], 0, &[]);
        let _ = daemon.wait();
        return skip(Capability::Root, format!("TAP device: {text}"));
    }
    let index = || fs::read_to_string(format!("/sys/class/net/{device}/ifindex")).ok();
    let (first, fabric) = (index(), planes.fabric().expect("a fabric"));
    assert!(first.is_some());
    replace_launcher(&planes);
    assert_eq!(index(), first);
    kill(fabric);
    until("another fabric", || count(&planes, "the fabric was restarted with all boxes") > 0);
    assert_eq!(index(), first, "the device is still there");
    let events = planes.check(&["events"], 0, &[]);
    assert!(!events.contains("does not work"), "{events}");
    // The launcher lets go of a removed one.
    planes.check(&["port", "rm", "lan", "tap"], 0, &[]);
    until("the end of the device", || index().is_none());
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

/// The number of the XDP program at an interface, if there is one.
fn xdp_program(interface: &str) -> Option<u32> {
    let output = Command::new("ip").args(["link", "show", interface]).output().expect("ip runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_once("prog/xdp id ")?.1.split(' ').next()?.parse().ok()
}

/// A port of a switch, as `port ls` has it.
fn port_status(planes: &Planes, name: &str) -> Value {
    let all = planes.json(&["port", "ls"]);
    let found = all.as_array().and_then(|ports| ports.iter().find(|port| port["name"] == name));
    found.unwrap_or_else(|| panic!("no port {name}: {all}")).clone()
}

/// Frames of the capture, and those without an Ethernet header.
const CAPTURE_FRAMES: u64 = 2500;
const TOO_SHORT: u64 = 2;

/// Sends a capture to the other end of the interface of `wan0`, and waits until all frames have come and gone on to `sink`.
fn cross_to_wan(planes: &Planes) {
    const NAMES: [&str; 3] = ["wan0", "sink", "far"];
    let packets = |name, field: &str| port_status(planes, name)["traffic"][field].as_u64().expect("a number");
    let now = || {
        [("wan0", "received_packets"), ("sink", "sent_packets"), ("far", "sent_packets")]
            .map(|(port, field)| packets(port, field))
    };
    let before = now();
    let drops = NAMES.map(|name| port_status(planes, name)["drops"].clone());
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");
    planes.check(&["port", "add", "beyond", "replay", "--driver", "pcap", "--read", capture], 0, &[]);
    until("all frames", || {
        let read = packets("replay", "received_packets");
        let moved: Vec<u64> = now().iter().zip(before).map(|(now, before)| now - before).collect();
        read == CAPTURE_FRAMES && moved == [CAPTURE_FRAMES - TOO_SHORT; 3]
    });
    // A device that was removed costs its port a `faulty`.
    assert_eq!(NAMES.map(|name| port_status(planes, name)["drops"].clone()), drops);
    assert_eq!(port_status(planes, "replay")["drops"], json!({ "too_short": TOO_SHORT }));
    planes.check(&["port", "rm", "beyond", "replay"], 0, &[]);
}

/// The program of a port leaves its interface with the fabric, whatever ends, and comes back with the next one.
#[test]
fn an_xdp_program_ends_with_its_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let network = Network::new();
    network.set("ipv6/conf/default/disable_ipv6", "1");
    let pair = ["link add left type veth peer name right", "link set left up", "link set right up"];
    // A bridge has a carrier while one of its ports has one.
    let bridge = [
        "link add bridge type bridge",
        "link set bridge up",
        "link add hub type veth peer name spoke",
        "link set hub master bridge up",
        "link set spoke up",
    ];
    assert!(network.ip(&pair) && network.ip(&bridge));
    network.inside(|| {
        let planes = Planes::new("xdp");
        let mut daemon = planes.start();
        for (switch, port) in [
            ("lan", &["sink", "--driver", "null"][..]),
            ("beyond", &["far", "--driver", "af_packet", "--device", "right"]),
        ] {
            planes.check(&["switch", "create", switch, "--mode", "static"], 0, &[]);
            planes.check(&[&["port", "add", switch, "--default"], port].concat(), 0, &[]);
        }
        let add = |name, device| ["port", "add", "lan", name, "--driver", "af_xdp", "--device", device];
        let text = planes.check(&add("wan0", "left"), 0, &[]);
        if text.contains("can't open an XDP socket") {
            daemon.kill().expect("a signal");
            daemon.wait().expect("an end");
            return skip(Capability::Root, text);
        }
        let first = xdp_program("left").expect("a program");
        cross_to_wan(&planes);
        planes.check(&add("wan1", "left"), 5, &["port lan/wan0 has this device"]);
        // An interface without XDP works by a packet socket, and the port says so.
        let why = "af_packet is used, because the launcher can't attach the XDP program";
        planes.check(&add("wan1", "bridge"), 0, &["port wan1", why]);
        until("the carrier", || port_status(&planes, "wan1")["link"] == "up");
        planes.check(
            &["port", "ls", "lan"],
            0,
            &["af_xdp left ", "af_xdp bridge (see below)", &format!("lan/wan1: {why}")],
        );
        planes.check(&["events"], 0, &[&format!("port wan1 of switch lan: {why}")]);
        let port = port_status(&planes, "wan1");
        assert_eq!((&port["link"], &port["fault"]), (&"up".into(), &Value::Null), "{port}");
        let port = port_status(&planes, "wan0");
        assert_eq!((&port["link"], &port["awaits"]), (&"up".into(), &Value::Null));
        // The other end of the interface goes down, and comes up.
        for (state, link) in [("down", "waiting"), ("up", "up")] {
            let set = ["link", "set", "right", state];
            assert!(Command::new("ip").args(set).status().expect("ip runs").success());
            until("the carrier", || port_status(&planes, "wan0")["link"] == link);
        }
        // One with an MTU for whose frames there is no room is refused, also by the packet socket.
        let set = ["link", "set", "spoke", "mtu", "9000"];
        assert!(Command::new("ip").args(set).status().expect("ip runs").success());
        for driver in ["af_xdp", "af-packet"] {
            let add = ["port", "add", "lan", "big", "--driver", driver, "--device", "spoke"];
            planes.check(&add, 5, &["must be at most 2,034", "ip link set DEVICE mtu 1500"]);
        }

        kill(planes.fabric().expect("a fabric"));
        until("the program of the next fabric", || xdp_program("left").is_some_and(|next| next != first));
        until("the fabric is rebuilt", || count(&planes, "the fabric was restarted") > 0);
        let second = xdp_program("left").expect("a program");
        assert_eq!(port_status(&planes, "wan0")["awaits"], Value::Null);
        cross_to_wan(&planes);
        // A launcher has none of the descriptors.
        replace_launcher(&planes);
        assert_eq!(xdp_program("left"), Some(second));

        // The interface goes and comes back.
        assert!(Command::new("ip").args(["link", "del", "left"]).status().expect("ip runs").success());
        until("a fault", || port_status(&planes, "wan0")["fault"].is_string());
        for command in pair {
            let status = Command::new("ip").args(command.split(' ')).status().expect("ip runs");
            assert!(status.success(), "{command}");
        }
        let works = |name| port_status(&planes, name)["fault"].is_null();
        until("both ports work again", || works("wan0") && works("far") && xdp_program("left").is_some());
        cross_to_wan(&planes);

        // All end at once.
        let all = [planes.launcher(), planes.fabric(), planes.spare()];
        daemon.kill().expect("a signal");
        daemon.wait().expect("an end");
        all.into_iter().flatten().filter(|process| is_running(*process)).for_each(kill);
        until("no program", || xdp_program("left").is_none());
    });
}
