//! Ports for tunnels as a user adds them, against the kernel's VXLAN device in another network of the test. Needs root and
//! `ip`; prints a note and skips without them.

mod support;

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;
use support::network::Network;
use support::{Daemon, capture};
use test_support::{Capability, require};

/// The address of the second host in the tunnel, with the port where it returns datagrams.
const FAR: &str = "10.9.0.2:7";
/// How long a datagram may take to the second host and back.
const ROUND_TRIP: Duration = Duration::from_secs(1);
/// How often a datagram is sent that should return.
const ATTEMPTS: u8 = 10;

/// Returns datagrams to their senders until the test ends.
fn echo(far: &Network) {
    let socket = far.inside(|| UdpSocket::bind(FAR).expect("a socket"));
    thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            // A way back that is gone for a moment is the sender's loss.
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
}

/// Sends datagrams of `length` bytes, which the kernel may not divide, through the tunnel, each after the one before has returned.
/// Returns whether all do, each at one of `attempts`.
fn return_from(near: &Network, (count, length): (u8, usize), attempts: u8) -> bool {
    let socket = near.inside(|| UdpSocket::bind("10.9.0.1:0").expect("a socket"));
    socket.connect(FAR).expect("a route");
    socket.set_read_timeout(Some(ROUND_TRIP)).expect("a time limit");
    let mut returned = vec![0; length];
    (0..count).all(|number| {
        let sent = vec![number; length];
        (0..attempts).any(|_| {
            let is_sent = socket.send(&sent).is_ok();
            is_sent && socket.recv(&mut returned).is_ok_and(|_| returned == sent)
        })
    })
}

/// Two hosts, the second one with a device of the kernel for the network 42. The first one has the address 10.9.0.1 at the
/// tap that the switch gets.
fn hosts() -> [Network; 2] {
    let [near, far] = [(); 2].map(|()| Network::new());
    for network in [&near, &far] {
        network.set("ipv6/conf/default/disable_ipv6", "1");
    }
    assert!(near.ip(&[
        &format!("link add near type veth peer name far netns {}", far.path()),
        "addr add 192.0.2.1/24 dev near",
        "link set near up",
        "tuntap add mode tap name tap0",
        "addr add 10.9.0.1/24 dev tap0",
    ]));
    assert!(far.ip(&[
        "addr add 192.0.2.2/24 dev far",
        "link set far up",
        "link add vx type vxlan id 42 local 192.0.2.2 remote 192.0.2.1 dstport 4789",
        "addr add 10.9.0.2/24 dev vx",
        "link set vx up",
    ]));
    echo(&far);
    [near, far]
}

/// The traffic of a port of `lan`, and the name of its driver.
fn traffic(daemon: &Daemon, port: &str) -> (serde_json::Value, String) {
    let ports = daemon.json(&["port", "ls", "lan"]);
    let found = ports.as_array().and_then(|ports| ports.iter().find(|found| found["name"] == port));
    let found = found.expect("the port");
    (found["traffic"].clone(), found["driver"]["kind"].as_str().expect("a driver").to_string())
}

/// Checks that the metrics of a port of `lan` are its traffic, these drops, and that it is up.
fn check_port_metrics(daemon: &Daemon, port: &str, drops: &[(&str, u64)]) {
    // The kernels may ask for their neighbours meanwhile.
    let (metrics, (traffic, driver)) = (0..ATTEMPTS)
        .find_map(|_| {
            let before = traffic(daemon, port);
            let metrics = daemon.metrics();
            (traffic(daemon, port) == before).then_some((metrics, before))
        })
        .expect("a moment without traffic");
    let labels = format!("switch=\"lan\",port=\"{port}\",driver=\"{driver}\"");
    let mut expected: Vec<String> = drops
        .iter()
        .map(|(reason, count)| {
            format!("clickbox_port_dropped_packets_total{{{labels},reason=\"{reason}\"}} {count}")
        })
        .collect();
    for name in ["received_packets", "received_bytes", "sent_packets", "sent_bytes"] {
        expected.push(format!("clickbox_port_{name}_total{{{labels}}} {}", traffic[name]));
    }
    expected.push(format!("clickbox_port_up{{{labels}}} 1"));
    expected.sort_unstable();
    let is_it = |line: &&str| line.starts_with("clickbox_port_") && line.contains(&labels);
    let mut found: Vec<&str> = metrics.lines().filter(is_it).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_user_connects_hosts_by_tunnels() {
    if !require(Capability::Root) {
        return;
    }
    let [near, far] = hosts();
    let daemon = near.inside(|| Daemon::start("tunnels"));
    daemon.check(&["switch", "create", "lan"], 0, &[]);
    daemon.check(&["port", "add", "lan", "tap0", "--driver", "tap"], 0, &[]);
    assert!(near.ip(&["link set tap0 up"]));
    let add = |name: &'static str, driver: &'static str, rest: &[&'static str]| {
        [&["port", "add", "lan", name, "--driver", driver], rest].concat()
    };
    let tunnel =
        |name, rest: &[&'static str]| add(name, "vxlan", &[&["--remote", "192.0.2.2"], rest].concat());
    // What is impossible is refused, with what to do.
    for (arguments, code, text) in [
        (add("far", "vxlan", &["--vni", "42"]), 2, "a tunnel needs --remote ADDRESS and --vni N"),
        (tunnel("far", &[]), 2, "a tunnel needs --remote ADDRESS and --vni N"),
        (tunnel("far", &["--vni", "16777216"]), 2, "a VNI is a number from 0 to 16777215"),
        (tunnel("far", &["--vni", "42", "--mtu", "9000"]), 2, "a switch has frames of 2048 bytes at most"),
        (tunnel("far", &["--vni", "42", "--device", "eth0"]), 2, "the driver vxlan has no \"device\""),
        (add("far", "geneve", &["--remote", "224.0.0.1", "--vni", "42"]), 2, "unicast, and not link-local"),
        (add("far", "tap", &["--vni", "42"]), 2, "the driver tap has no \"vni\""),
        (tunnel("far", &["--vni", "42", "--local", "::1"]), 2, "give two addresses of IPv4 or of IPv6"),
        (tunnel("far", &["--vni", "42", "--mtu", "1451"]), 5, "leave room for 1450 bytes"),
        (
            tunnel("far", &["--vni", "42", "--local", "192.0.2.9"]),
            5,
            "this host does not have the local address",
        ),
        (
            add("far", "vxlan", &["--remote", "203.0.113.1", "--vni", "1"]),
            5,
            "find a route to the remote address",
        ),
    ] {
        daemon.check(&arguments, code, &[text]);
    }
    daemon.check(&tunnel("far", &["--vni", "42"]), 0, &[]);
    daemon.check(&["port", "ls", "lan"], 0, &["vxlan 192.0.2.2 vni 42"]);
    assert!(return_from(&near, (3, 56), ATTEMPTS));
    // Datagrams and their returns.
    let captured = near.inside(|| capture(&daemon.socket(), "lan/far", 6));
    assert!(return_from(&near, (3, 1422), ATTEMPTS));
    let captured = captured();
    for addresses in [[10, 9, 0, 1, 10, 9, 0, 2], [10, 9, 0, 2, 10, 9, 0, 1]] {
        let is_it =
            |frame: &&Vec<u8>| frame.len() == 1464 && frame[12..14] == [8, 0] && frame[26..34] == addresses;
        assert_eq!(captured.iter().filter(is_it).count(), 3, "{captured:?}");
    }
    // The same network a second time; another one at the same UDP port; one that has another kind of tunnel.
    daemon.check(
        &tunnel("again", &["--vni", "42"]),
        5,
        &["port lan/far has this device, file, socket or tunnel already"],
    );
    daemon.check(&tunnel("other", &["--vni", "43", "--local", "192.0.2.1"]), 0, &[]);
    let geneve = add("geneve", "geneve", &["--remote", "192.0.2.2", "--vni", "1", "--udp-port", "4789"]);
    daemon.check(&geneve, 5, &["can't reserve the UDP port", "Address already in use"]);
    // Longer packets are answered with the MTU, and what the other end may not send is counted.
    assert!(!return_from(&near, (1, 1423), 1));
    let socket = far.inside(|| UdpSocket::bind("192.0.2.2:0").expect("a socket"));
    // The flag for a VNI is missing.
    let header = [0, 0, 0, 0, 0, 0, 42, 0];
    for _ in 0..5 {
        socket.send_to(&header, "192.0.2.1:4789").expect("a route");
    }
    daemon.until(&["port", "ls", "lan"], "bad_tunnel_header 5");
    let ports = daemon.json(&["port", "ls", "lan"]).as_array().expect("ports").clone();
    let drops = |name: &str| {
        let port = ports.iter().find(|port| port["name"] == name).expect("the port");
        let drops = port["drops"].as_object().expect("drops").clone();
        drops.into_iter().filter(|(_, count)| *count != 0).collect::<serde_json::Map<_, _>>()
    };
    let expected = serde_json::json!({ "bad_tunnel_header": 5, "too_big": 1 });
    assert_eq!(serde_json::Value::from(drops("far")), expected);
    assert!(drops("tap0").is_empty());
    let metrics = daemon.metrics();
    for (reason, count) in [("bad_tunnel_header", 5), ("too_big", 1)] {
        let is_it = |line: &str| line.starts_with("clickbox_switch_dropped_packets") && line.contains(reason);
        let found = metrics.lines().find(|line| is_it(line)).unwrap_or_else(|| panic!("{reason}: {metrics}"));
        assert!(found.ends_with(&format!(" {count}")), "{found}");
    }
    check_port_metrics(&daemon, "far", &[("bad_tunnel_header", 5), ("too_big", 1)]);
    check_port_metrics(&daemon, "tap0", &[]);
    daemon.check(&["account"], 0, &["switch lan"]);
    // The port works again after its path was gone.
    assert!(near.ip(&["link set near down"]));
    assert!(!return_from(&near, (1, 56), 1));
    daemon.check(&["port", "ls", "lan"], 0, &["vni 42 (waiting)", "lan/far: 192.0.2.2 can't be reached"]);
    let is_up = |value: u8| {
        let line = format!("\nclickbox_port_up{{switch=\"lan\",port=\"far\",driver=\"vxlan\"}} {value}\n");
        daemon.metrics().contains(&line)
    };
    assert!(is_up(0));
    assert!(near.ip(&["link set near up"]));
    assert!(return_from(&near, (2, 56), ATTEMPTS));
    let far = daemon
        .json(&["port", "ls", "lan"])
        .as_array()
        .and_then(|ports| ports.iter().find(|port| port["name"] == "far").cloned());
    assert_eq!(far.expect("the port")["link"], "up");
    assert!(is_up(1));
    daemon.check(&["port", "rm", "lan", "far"], 0, &[]);
    daemon.check(&["port", "rm", "lan", "other"], 0, &[]);
    assert!(near.ip(&["link add vx type vxlan id 9 remote 192.0.2.2 dstport 4789", "link set vx up"]));
    daemon.check(&tunnel("far", &["--vni", "42"]), 5, &["which another program or a kernel device may use"]);
}

/// A tunnel of a stack passes packets again after the fabric was killed.
#[test]
fn a_tunnel_of_a_stack_outlives_its_fabric() {
    if !require(Capability::Root) {
        return;
    }
    let [near, _far] = hosts();
    let daemon = near.inside(|| Daemon::start("tunnels-stack"));
    let stack = "name = \"site\"\n[switches.lan.ports]\ntap0 = { driver = \"tap\" }\n\
                 far = { driver = \"vxlan\", remote = \"192.0.2.2\", local = \"192.0.2.1\", vni = 42, mtu = 1400 }\n";
    let path = daemon.file("site.toml", stack);
    daemon.check(&["up", &path], 0, &[]);
    assert!(near.ip(&["link set tap0 up"]));
    assert!(return_from(&near, (2, 1372), ATTEMPTS) && !return_from(&near, (1, 1373), 1));
    daemon.check(&["fabric", "restart", "--force"], 0, &[]);
    assert!(near.ip(&["link set tap0 up"]));
    assert!(return_from(&near, (2, 56), ATTEMPTS));
    daemon.check(&["down", "site"], 0, &[]);
}
