//! A rewriter that takes a flow over from a box that lies, and then has packets of this flow.

use std::rc::Rc;

use element::{FlowState, FlowTuple};
use packet::Timestamp;
use router::{Options, Registry, Router};

use crate::Nowhere;

/// The rewriters whose flows can be handed over, and the protocol of the packets that they get.
const REWRITERS: [(&str, u8); 4] =
    [("IPRewriter", 6), ("TCPRewriter", 6), ("UDPRewriter", 17), ("ICMPPingRewriter", 1)];

/// Bytes of the two keys, at the front of a state.
const KEYS: usize = 24;

/// The address and the port of one end of a key, from its source or its destination.
fn end(key: &[u8], is_destination: bool) -> (u32, u16) {
    let (address, port) =
        (&key[4 * usize::from(is_destination)..], &key[8 + 2 * usize::from(is_destination)..]);
    (
        u32::from_be_bytes([address[0], address[1], address[2], address[3]]),
        u16::from_be_bytes([port[0], port[1]]),
    )
}

/// The flow of a key, as the rewriter of this protocol knows it.
fn tuple(protocol: u8, key: &[u8]) -> FlowTuple {
    let (source, mut destination) = (end(key, false), end(key, true));
    if protocol == 1 {
        destination.1 = source.1;
    }
    FlowTuple::ipv4(protocol, source, destination)
}

/// A packet of a key's flow, as hexadecimal digits: IP, and a segment, a datagram, or an echo request.
fn packet(protocol: u8, key: &[u8], rest: &[u8]) -> String {
    let mut bytes = vec![0x45, 0, 0, 60, 0, 1, 0, 0, 64, protocol, 0, 0];
    bytes.extend(&key[..8]);
    bytes.extend(if protocol == 1 { vec![8, 0, 0, 0, key[8], key[9]] } else { key[8..12].to_vec() });
    bytes.extend(rest);
    bytes.resize(60, 0);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives a rewriter a state, and packets of the state's flow. What it hands over in the end, it takes again.
pub fn take_over(choice: u8, payload: &[u8]) {
    let (class, protocol) = REWRITERS[usize::from(choice) % REWRITERS.len()];
    let Some(keys) = payload.get(..KEYS) else { return };
    let (forward, rest) = (packet(protocol, &keys[..12], payload), &keys[12..]);
    // The packets of replies go the other way.
    let reply: Vec<u8> = [&rest[4..8], &rest[..4], &rest[10..12], &rest[8..10]].concat();
    let reply = packet(protocol, &reply, payload);
    let config = format!(
        "InfiniteSource(DATA \\<{forward}>, LIMIT 2) -> MarkIPHeader -> [0] rw :: {class}(pattern 1.0.0.1 1024-65535 - - 0 1, drop);
         InfiniteSource(DATA \\<{reply}>, LIMIT 2) -> MarkIPHeader -> [1] rw;
         rw -> d :: Discard; rw[1] -> d;"
    );
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled = click_lang::compile(&config, &click_lang::Options::new("fuzz", &is_class));
    let begin = Timestamp::from_millis(1_000_000_000);
    let options = Options { seed: Some(1), packets: 1 << 8, simulated: Some(begin), ..Options::default() };
    let router = Router::new(compiled.graph, Registry::new(elements::REGISTRY), Rc::new(Nowhere), options);
    let mut router = router.unwrap_or_else(|problems| panic!("the router is in order: {problems:?}"));
    let state = FlowState {
        element: "rw".into(),
        format: "rewriter".into(),
        version: 1,
        tuples: [tuple(protocol, &keys[..12]), tuple(protocol, &keys[12..])],
        payload: payload.into(),
    };
    let _ = router.import_flow(&state);
    router.run(Some(begin + Timestamp::from_millis(1)));
    for group in router.list_flows((0, 0), 16, |_| true).groups {
        for state in router.export_flow(&group) {
            assert_eq!(router.import_flow(&state), Ok(()), "{state:?}");
        }
    }
}
