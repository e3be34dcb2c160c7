//! The configurations in `examples/`: each runs and behaves as its comments describe.

use std::fs;
use std::process::Command;

/// Runs an example with a few frames of one size; returns the values of the handlers, in order.
fn values(example: &str, length: u32, handlers: &[&str]) -> Vec<u64> {
    let path = format!("{}/../../examples/{example}.click", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command.args(["run", "--json", &path, "LIMIT=1000", &format!("LENGTH={length}")]);
    for handler in handlers {
        command.args(["--handler", handler]);
    }
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let value = |handler: &&str| summary["handlers"][*handler].as_str()?.trim().parse().ok();
    handlers
        .iter()
        .map(|handler| value(handler).unwrap_or_else(|| panic!("{handler} in {summary}")))
        .collect()
}

#[test]
fn examples_forward_every_frame() {
    for length in [64, 1500] {
        for example in
            ["wire", "ethermirror", "router", "firewall", "nat", "bras", "ids", "loadbalancer", "flowmonitor"]
        {
            assert_eq!(values(example, length, &["out.count"]), [1000], "{example}, {length} bytes");
        }
    }
}

#[test]
fn frames_of_unknown_sessions_are_dropped() {
    let frame = "FRAME=\\<020000000001 020000000002 8864  1100 0099 0004 0021  45000014>";
    let path = format!("{}/../../examples/bras.click", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["click", &path, "LIMIT=10", frame, "-h", "unknown.count", "-h", "out.count"])
        .output()
        .expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "unknown.count:\n10\n\nout.count:\n0\n\n");
}

/// Keys of the example, to the other gateway and from it.
const TO: &str = "1001 00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff00112233 1 64";
const FROM: &str = "1002 ffeeddccbbaa99887766554433221100 33221100ffeeddccbbaa99887766554433221100 1 64";

/// Two gateways, with captures in the place of networks: what the first one sends is what the second one receives.
#[test]
fn packets_pass_the_tunnel_of_two_ipsec_gateways() {
    let folder = std::env::temp_dir().join(format!("clickbox-ipsec-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_string();
    let host = |last: u8| [2, 0, 0, 0, 0, last];
    // Of every length of padding, and longer than the tunnel takes: these are fragmented.
    let packets: Vec<Vec<u8>> = (0..30).chain([1_410, 1_480]).map(|length| ip(&vec![7; length])).collect();
    let mut lan: Vec<Vec<u8>> =
        packets.iter().map(|packet| frame([2, 0, 0, 0, 1, 1], host(5), [8, 0], packet)).collect();
    lan.push(frame([2, 0, 0, 0, 1, 1], host(5), [8, 0], &ip(&[7; 3])[..22]));
    write(&path("lan1"), &lan);
    write(
        &path("wan1"),
        &[arp_reply([2, 0, 0, 0, 2, 2], [192, 0, 2, 2], [2, 0, 0, 0, 2, 1], [192, 0, 2, 1])],
    );
    write(&path("lan2"), &[arp_reply(host(6), [10, 2, 0, 6], [2, 0, 0, 0, 1, 2], [10, 2, 0, 1])]);

    let first = gateway(&path("lan1"), &path("out1"), &path("wan1"), &path("wire"), &[]);
    assert_eq!(first, ["33", "0", ""]);
    let (to, from) = (format!("TO={FROM}"), format!("FROM={TO}"));
    let other = [
        "LAN_IP=10.2.0.1",
        "LAN_NET=10.2.0.0/24",
        "LAN_ETH=02:00:00:00:01:02",
        "WAN_IP=192.0.2.2",
        "WAN_ETH=02:00:00:00:02:02",
        "PEER=192.0.2.1",
        "PEER_NET=10.1.0.0/24",
        &to,
        &from,
    ];
    let second = gateway(&path("lan2"), &path("out2"), &path("wire"), &path("wire2"), &other);
    assert_eq!(second, ["0", "33", ""]);
    let arrived: Vec<Vec<u8>> =
        read(&path("out2")).into_iter().filter(|frame| frame[12..14] == [8, 0]).collect();
    assert_eq!(arrived.len(), 33);
    for (arrived, sent) in arrived.iter().zip(&packets[..31]) {
        assert_eq!(arrived[..6], host(6));
        // Two gateways have decremented the time to live.
        assert_eq!((arrived[22], &arrived[26..]), (62, &sent[12..]));
    }
    // Nothing of a packet is in the clear in between.
    assert!(read(&path("wire")).iter().all(|frame| !frame.windows(8).any(|bytes| bytes == [7; 8])));
    fs::remove_dir_all(&folder).expect("it can be removed");
}

/// Runs the example of a gateway with these captures as its networks. Returns what passed the tunnel, and what was lost in
/// it.
fn gateway(lan: &str, lan_out: &str, wan: &str, wan_out: &str, parameters: &[&str]) -> [String; 3] {
    let example = format!("{}/../../examples/networks/ipsec-gateway.click", env!("CARGO_MANIFEST_DIR"));
    let devices = [format!("0=pcap:{lan},{lan_out}"), format!("1=pcap:{wan},{wan_out}")];
    let handlers = ["to_tunnel.count", "from_tunnel.count", "routes.losses"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command
        .args(["run", "--json", "--device", &devices[0], "--device", &devices[1], &example])
        .args(parameters);
    for handler in &handlers {
        command.args(["--handler", handler]);
    }
    let output = command.output().expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    handlers.map(|handler| summary["handlers"][handler].as_str().unwrap_or_default().trim().to_string())
}

/// A UDP packet between two hosts of the sites.
fn ip(payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; 20], payload].concat();
    let length = bytes.len() as u16;
    let mut header = packet::Ip4ViewMut::new(&mut bytes).expect("a header");
    header.set_version_length(0x45);
    header.set_total_length(length);
    header.set_ttl(64);
    header.set_protocol(packet::protocol::UDP);
    header.set_source([10, 1, 0, 5].into());
    header.set_destination([10, 2, 0, 6].into());
    header.fill_checksum();
    bytes
}

fn frame(to: [u8; 6], from: [u8; 6], ether_type: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &ether_type, payload].concat()
}

fn arp_reply(from: [u8; 6], sender: [u8; 4], to: [u8; 6], target: [u8; 4]) -> Vec<u8> {
    let reply = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &from, &sender, &to, &target].concat();
    frame(to, from, [8, 6], &reply)
}

fn write(path: &str, frames: &[Vec<u8>]) {
    let encoder = capture::PcapEncoder::new(capture::LinkType::ETHERNET);
    let mut file = encoder.file_header().to_vec();
    frames.iter().for_each(|frame| encoder.record(0, frame.len() as u32, frame, &mut file));
    fs::write(path, file).expect("it can be written");
}

fn read(path: &str) -> Vec<Vec<u8>> {
    let file = fs::read(path).expect("it was written");
    let (mut parser, mut unread, mut frames) = (capture::Parser::new(), &file[..], Vec::new());
    while let Ok(Some(record)) = parser.record(&mut unread) {
        frames.push(record.bytes.to_vec());
    }
    frames
}
