//! Requests in JSON: their form, optional fields, and rejected input.

use std::fmt::Debug;

use api::{AddPort, CreateBox, CreateSwitch, ErrorCode, ErrorReply, EventKind, PortDriver, Stack};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses a request and asserts that a round trip preserves it.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &str) -> T {
    let request: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let again = serde_json::to_string(&request).expect("JSON");
    assert_eq!(serde_json::from_str::<T>(&again).expect("the same"), request);
    request
}

/// Asserts that a request is rejected with this message.
fn refused<T: DeserializeOwned + Debug>(text: &str, why: &str) {
    let error = serde_json::from_str::<T>(text).expect_err(text).to_string();
    assert!(error.contains(why), "{text}: {error}");
}

#[test]
fn a_box_needs_a_name_and_a_configuration() {
    let usual = r#"{"name": "fw", "configuration": "Idle -> Discard;"}"#;
    let request: CreateBox = read(usual);
    assert_eq!(request, CreateBox::new("fw".parse().expect("a name"), "Idle -> Discard;"));
    let request: CreateBox = read(
        r#"{"name": "fw", "configuration": "", "sandbox": "vm", "memory": "16M", "ring": 1024,
            "ports": [{"attach": "lan", "mac": "02:00:00:00:00:01"}, {"attach": "pipe:a"}, {}],
            "cpu_weight": 200, "cpu_limit": 0.5, "dedicated": true, "share_packets": true, "restart": "on-failure", "owner": "me",
            "labels": {"site": "north"}, "files": [{"name": "a.dump", "contents": {"base64": "AAA="}}]}"#,
    );
    assert_eq!((request.ports.len(), request.memory.0, request.files.len()), (3, 16 << 20, 1));
    let request: CreateBox =
        read(r#"{"name": "fw", "configuration": "", "uploads": [{"name": "a.dump", "upload": "u1"}]}"#);
    assert_eq!((request.files.len(), request.uploads[0].upload.as_str()), (0, "u1"));
    refused::<CreateBox>(
        r#"{"name": "fw", "configuration": "", "uploads": [{"name": "a", "upload": "../x"}]}"#,
        "is not a valid name",
    );
    refused::<CreateBox>(r#"{"name": "fw"}"#, "configuration");
    refused::<CreateBox>(r#"{"name": "../etc", "configuration": ""}"#, "is not a valid name");
    refused::<CreateBox>(r#"{"name": "fw", "configuration": "", "memroy": 1}"#, "memroy");
    refused::<CreateBox>(r#"{"name": "fw", "configuration": "", "ring": 100}"#, "64, 128, 256");
    refused::<CreateBox>(r#"{"name": "fw", "configuration": "", "cpu_weight": 0}"#, "weight");
    refused::<CreateBox>(r#"{"name": "fw", "configuration": "", "ports": [{"atach": "lan"}]}"#, "atach");
    refused::<CreateBox>(r#"{"name": "fw", "configuration": "", "restart": "sometimes"}"#, "sometimes");
}

#[test]
fn port_drivers_are_parsed() {
    let request: AddPort = read(r#"{"name": "tap0", "driver": {"kind": "tap"}}"#);
    assert_eq!(request.driver, PortDriver::Tap { device: None, queues: None });
    let request: AddPort =
        read(r#"{"name": "in", "driver": {"kind": "pcap", "read": "/a.pcap", "repeat": 0}}"#);
    assert!(matches!(request.driver, PortDriver::Pcap { repeat: 0, .. }));
    read::<AddPort>(r#"{"name": "x", "driver": {"kind": "null"}, "limits": {"frames": 1000}}"#);
    refused::<AddPort>(r#"{"name": "x", "driver": {"kind": "null", "device": "y"}}"#, "device");
    refused::<AddPort>(
        r#"{"name": "x", "driver": {"kind": "tap", "device": "../../dev"}}"#,
        "network device",
    );
    refused::<AddPort>(r#"{"name": "x", "driver": {"kind": "pipe", "switch": "b"}}"#, "port");
    refused::<AddPort>(r#"{"name": "x", "driver": {"kind": "carrier-pigeon"}}"#, "carrier-pigeon");
}

#[test]
fn stacks_are_boxes_and_switches() {
    let stack: Stack = read(
        r#"{"switches": [{"name": "lan", "ports": [{"name": "up", "driver": {"kind": "null"}}]}],
            "boxes": [{"name": "fw", "configuration": "", "ports": [{"attach": "lan"}]}]}"#,
    );
    assert_eq!((stack.switches.len(), stack.boxes.len()), (1, 1));
    let usual: CreateSwitch = read(r#"{"name": "lan"}"#);
    assert_eq!(usual, CreateSwitch::new("lan".parse().expect("a name")));
    refused::<Stack>(r#"{"pipes": []}"#, "pipes");
}

#[test]
fn replies_of_a_newer_daemon_are_read() {
    let reply: ErrorReply =
        serde_json::from_str(r#"{"error": {"code": "on_fire", "message": "Run.", "more": 1}, "more": 1}"#)
            .expect("a reply");
    assert_eq!(reply.error.code, ErrorCode::Unknown);
    assert_eq!(serde_json::from_str::<EventKind>("\"box_ascended\"").expect("a kind"), EventKind::Unknown);
}

#[test]
fn every_error_code_has_an_http_status() {
    for code in ErrorCode::ALL {
        assert!((400..=507).contains(&code.status()), "{code:?}");
    }
}
