//! The state of flows goes from one box to another, and nothing else gets in.

mod support;

use boundary::{
    FlowExport, FlowList, FlowPosition, RefusedState, Request, StateRecord, StateTuple, encode_groups,
    encode_states,
};
use support::TestBox;

/// A NAT behind a filter that knows connections.
const NAT: &str = "
    seen :: IPRewriter(keep 0 1, drop);
    nat :: IPRewriter(pattern 203.0.113.1 2000-2999 - - 0 1, drop);
    FromDevice(0) -> Strip(14) -> CheckIPHeader -> seen;
    seen[0] -> nat; nat[0] -> Unstrip(14) -> ToDevice(1);
    FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1]nat;
    nat[1] -> [1]seen; seen[1] -> Unstrip(14) -> ToDevice(0);";

const INSIDE: u32 = 0x0a00_0001;
const SERVER: u32 = 0x0808_0808;

/// A UDP packet.
fn packet(source: (u32, u16), destination: (u32, u16)) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    ip.extend(source.0.to_be_bytes());
    ip.extend(destination.0.to_be_bytes());
    let words = ip.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(source.1.to_be_bytes());
    ip.extend(destination.1.to_be_bytes());
    ip.extend([0, 8, 0, 0]);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend(ip);
    frame.resize(60, 0);
    frame
}

/// A UDP packet over IPv6 from the host with this number.
fn packet6(host: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64];
    for host in [host, 99] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    // From port 1000 to port 53.
    frame.extend([3, 0xe8, 0, 53, 0, 8, 1, 1]);
    frame
}

/// Source and destination of a packet.
fn ends(frame: &[u8]) -> [(u32, u16); 2] {
    let at = |address: usize, port: usize| {
        let address = u32::from_be_bytes(*frame[address..].first_chunk().unwrap());
        (address, u16::from_be_bytes(*frame[port..].first_chunk().unwrap()))
    };
    [at(26, 34), at(30, 36)]
}

fn new_box(text: &str) -> TestBox {
    let mut test_box = TestBox::new(2, 256);
    test_box.install("", text).unwrap();
    test_box
}

/// Sends packets of this many clients. Returns their translated sources.
fn send(test_box: &mut TestBox, clients: u16) -> Vec<(u32, u16)> {
    let packets: Vec<_> = (0..clients).map(|port| packet((INSIDE, 1000 + port), (SERVER, 53))).collect();
    assert_eq!(test_box.send(0, &packets), packets.len());
    test_box.settle();
    test_box.receive(1).iter().map(|frame| ends(frame)[0]).collect()
}

fn list(test_box: &mut TestBox, most: u32, range: Option<(u32, u16, u16)>) -> FlowList {
    let request = Request::ListFlows { position: FlowPosition::default(), most, range };
    FlowList::decode(&test_box.call(&request).unwrap()).unwrap()
}

fn export(test_box: &mut TestBox, age: u64, groups: &[Vec<StateTuple>]) -> FlowExport {
    let request = Request::ExportFlows { age, groups: &encode_groups(groups) };
    FlowExport::decode(&test_box.call(&request).unwrap()).unwrap()
}

fn import(test_box: &mut TestBox, states: &[StateRecord]) -> Vec<String> {
    let request = Request::ImportFlows { states: &encode_states(states) };
    let refused = RefusedState::decode(&test_box.call(&request).unwrap()).unwrap();
    refused.into_iter().map(|refused| format!("{}: {}", refused.number, refused.reason)).collect()
}

fn sizes(test_box: &mut TestBox) -> [String; 2] {
    ["seen.table_size", "nat.table_size"].map(|handler| test_box.read("", handler).unwrap())
}

#[test]
fn flows_go_on_in_another_box() {
    let (mut old, mut new) = (new_box(NAT), new_box(NAT));
    let translated = send(&mut old, 100);
    assert_eq!(translated.len(), 100);
    assert_eq!(sizes(&mut old), ["100", "100"]);
    // Both elements know a flow from inside, and one of them also the translated one.
    let all = list(&mut old, 512, None);
    assert_eq!((all.groups.len(), all.next, all.lost.len()), (100, None, 0));
    assert!(all.groups.iter().all(|group| group.len() == 2), "{:?}", all.groups[0]);
    let (address, port) = translated[7];
    let one = list(&mut old, 512, Some((address, port, port)));
    assert_eq!(one.groups.len(), 1);
    // In two parts.
    let part = list(&mut old, 60, None);
    assert_eq!((part.groups.len(), part.next.is_some()), (60, true));
    for groups in [part.groups.clone(), all.groups[60..].to_vec()] {
        let exported = export(&mut old, 0, &groups);
        assert_eq!((exported.groups, exported.states.len()), (Some(groups.len() as u32), 2 * groups.len()));
        assert_eq!(import(&mut new, &exported.states), [""; 0]);
    }
    assert_eq!(
        (sizes(&mut old), sizes(&mut new)),
        (["0", "0"].map(String::from), ["100", "100"].map(String::from))
    );
    assert_eq!(list(&mut old, 512, None).groups.len(), 0);
    // Packets of both directions are translated as before.
    assert_eq!(send(&mut new, 100), translated);
    let replies: Vec<_> = translated.iter().map(|source| packet((SERVER, 53), *source)).collect();
    assert_eq!(new.send(1, &replies), 100);
    new.settle();
    let back: Vec<_> = new.receive(0).iter().map(|frame| ends(frame)[1]).collect();
    assert_eq!(back, (0..100).map(|port| (INSIDE, 1000 + port)).collect::<Vec<_>>());
    assert_eq!(new.stats().drops, []);
    // The other box knows nothing any more.
    assert_eq!(old.send(1, &replies), 100);
    old.settle();
    assert_eq!(old.receive(0).len(), 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (mut old, mut new) = (new_box(NAT), new_box(NAT));
    send(&mut old, 3);
    let groups = list(&mut old, 512, None).groups;
    let states = export(&mut old, 0, &groups).states;
    let state = |change: fn(&mut StateRecord)| {
        let mut state = states.iter().find(|state| state.element == "nat").unwrap().clone();
        change(&mut state);
        state
    };
    for (change, expected) in [
        (
            (|state| state.version = 2) as fn(&mut StateRecord),
            "0: the state has an unknown format or version",
        ),
        (|state| state.format = "other".into(), "0: the state has an unknown format or version"),
        (|state| state.element = "none".into(), "0: the state does not fit the configuration"),
        (|state| state.tuples[0].protocol = 6, "0: the state does not fit the configuration"),
        (|state| state.payload.truncate(20), "0: the state does not fit the configuration"),
        // An output that the element does not have.
        (|state| state.payload[25] = 9, "0: the state does not fit the configuration"),
        (|state| state.payload[29] = 9, "0: the state does not fit the configuration"),
    ] {
        assert_eq!(import(&mut new, &[state(change)]), [expected]);
    }
    assert_eq!(sizes(&mut new), ["0", "0"]);
    assert_eq!(import(&mut new, &states), [""; 0]);
    // Each flow once.
    assert_eq!(import(&mut new, &states[..1]), ["0: another flow has the addresses and ports"]);
    let mut small = new_box(&NAT.replace("- - 0 1, drop)", "- - 0 1, drop, MAPPING_CAPACITY 1)"));
    let refused = import(&mut small, &states);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|text| text.ends_with("there is no room for the flow")), "{refused:?}");
    // No bytes harm the box.
    for length in 0..64 {
        let bytes = vec![255 - length as u8; length];
        assert!(new.call(&Request::ImportFlows { states: &bytes }).is_err() || length == 4);
        assert!(new.call(&Request::ExportFlows { age: 0, groups: &bytes }).is_err() || length == 4);
    }
    assert_eq!(sizes(&mut new), ["3", "3"]);
}

#[test]
fn packets_in_the_box_are_waited_for() {
    let text = NAT.replace("seen[0] -> nat", "seen[0] -> Queue(100) -> u :: Unqueue(ACTIVE false) -> nat");
    let mut test_box = new_box(&text);
    assert_eq!(send(&mut test_box, 5), []);
    let groups = list(&mut test_box, 512, None).groups;
    assert_eq!(groups.len(), 5);
    // They have waited for longer than the flows are frozen.
    assert_eq!(export(&mut test_box, 1, &groups), FlowExport::default());
    // These have come since.
    assert_eq!(export(&mut test_box, 1 << 50, &[]).groups, Some(0));
    test_box.write("", "u.active", "true").unwrap();
    test_box.settle();
    assert_eq!(test_box.receive(1).len(), 5);
    assert_eq!(export(&mut test_box, 1, &groups).states.len(), 10);
}

/// A NAT of whole addresses, or of pairs, behind a filter that knows connections.
fn address_nat(nat: &str) -> String {
    NAT.replace("IPRewriter(pattern 203.0.113.1 2000-2999 - - 0 1, drop)", nat)
}

/// The hosts that `clients` packets of each are sent from.
fn send_from(test_box: &mut TestBox, hosts: std::ops::Range<u32>, clients: u16) -> Vec<u32> {
    let of = |host| (0..clients).map(move |port| packet((INSIDE + host, 1000 + port), (SERVER, 53)));
    let packets: Vec<_> = hosts.flat_map(of).collect();
    assert_eq!(test_box.send(0, &packets), packets.len());
    test_box.settle();
    test_box.receive(1).iter().map(|frame| ends(frame)[0].0).collect()
}

#[test]
fn mappings_of_addresses_go_on_in_another_box() {
    for nat in [
        "IPAddrRewriter(pattern 203.0.113.1-203.0.113.99 - 0 1, drop)",
        "IPAddrPairRewriter(pattern 203.0.113.1-203.0.113.99 - 0 1, drop)",
    ] {
        let (mut old, mut new) = (new_box(&address_nat(nat)), new_box(&address_nat(nat)));
        let translated = send_from(&mut old, 0..20, 3);
        assert_eq!((translated.len(), sizes(&mut old)), (60, ["60", "20"].map(String::from)));
        // States that flows share come first, whatever the order of the elements.
        let all = list(&mut old, 512, None);
        assert_eq!((all.groups.len(), all.next, all.lost.len()), (80, None, 0));
        let is_shared = |group: &Vec<StateTuple>| group.iter().all(StateTuple::is_of_addresses);
        assert!(all.groups[..20].iter().all(is_shared) && !all.groups[20..].iter().any(is_shared));
        let one = list(&mut old, 512, Some((translated[0], 0, u16::MAX)));
        assert_eq!(one.groups.len(), 1);
        let states = export(&mut old, 0, &all.groups).states;
        assert_eq!((states.len(), sizes(&mut old)), (80, ["0", "0"].map(String::from)));
        assert_eq!(import(&mut new, &states), [""; 0]);
        assert_eq!(sizes(&mut new), ["60", "20"]);
        // Packets of both directions are translated as before.
        assert_eq!(send_from(&mut new, 0..20, 3), translated);
        let reply = |(at, address): (usize, &u32)| packet((SERVER, 53), (*address, 1000 + at as u16 % 3));
        let replies: Vec<_> = translated.iter().enumerate().map(reply).collect();
        assert_eq!(new.send(1, &replies), 60);
        new.settle();
        let back: Vec<u32> = new.receive(0).iter().map(|frame| ends(frame)[1].0).collect();
        assert_eq!(back, (0..20).flat_map(|host| [INSIDE + host; 3]).collect::<Vec<_>>());
        // Addresses of others stay theirs: a host that comes later gets another one.
        let later = send_from(&mut new, 20..99, 1);
        let both: std::collections::BTreeSet<u32> = later.iter().chain(&translated).copied().collect();
        assert_eq!((later.len(), both.len(), new.stats().drops), (79, 99, vec![]));
    }
}

#[test]
fn mappings_of_addresses_that_do_not_fit_are_refused() {
    let text =
        address_nat("IPAddrRewriter(pattern 203.0.113.1-203.0.113.9# - 0 1, drop, MAPPING_CAPACITY 3)");
    let (mut old, mut new) = (new_box(&text), new_box(&text));
    assert_eq!(send_from(&mut old, 0..3, 1).len(), 3);
    let groups = list(&mut old, 3, None).groups;
    let states = export(&mut old, 0, &groups).states;
    assert_eq!(states.len(), 3);
    for (change, expected) in [
        (
            (|state| state.version = 2) as fn(&mut StateRecord),
            "0: the state has an unknown format or version",
        ),
        (|state| state.tuples[0].protocol = 6, "0: the state does not fit the configuration"),
        (|state| state.payload.truncate(20), "0: the state does not fit the configuration"),
        // A destination, a port and a protocol that such mappings do not have, here and in the tuples.
        (
            |state| {
                state.payload[4] = 9;
                state.tuples[0].ends[0].0 = std::net::Ipv4Addr::new(9, 0, 0, 0).to_ipv6_mapped();
            },
            "0: the state does not fit the configuration",
        ),
        (
            |state| {
                state.payload[21] = 9;
                state.tuples[1].ends[1].1 = 9;
            },
            "0: the state does not fit the configuration",
        ),
        (
            |state| {
                state.payload[30] = 6;
                state.tuples.iter_mut().for_each(|tuple| tuple.protocol = 6);
            },
            "0: the state does not fit the configuration",
        ),
        // An output and an input that the element does not have.
        (|state| state.payload[25] = 9, "0: the state does not fit the configuration"),
        (|state| state.payload[29] = 9, "0: the state does not fit the configuration"),
    ] {
        let mut state = states[0].clone();
        change(&mut state);
        assert_eq!(import(&mut new, &[state]), [expected]);
    }
    assert_eq!(sizes(&mut new), ["0", "0"]);
    // A host that has the same mapping here already keeps it. One with another address is refused, and so is its address.
    assert_eq!(import(&mut new, &states), [""; 0]);
    assert_eq!(import(&mut new, &states), [""; 0]);
    assert_eq!(sizes(&mut new), ["0", "3"]);
    let mut other = new_box(&text);
    assert_eq!(send_from(&mut other, 1..3, 1).len(), 2);
    let taken = "another flow has the addresses and ports";
    assert_eq!(import(&mut other, &states), [0, 1, 2].map(|at| format!("{at}: {taken}")));
    let mut full = new_box(&text);
    assert_eq!(send_from(&mut full, 10..13, 1).len(), 3);
    let no_room = "there is no room for the flow";
    assert_eq!(import(&mut full, &states), [0, 1, 2].map(|at| format!("{at}: {no_room}")));
    // The address need not be one that the box would choose: the switch knows who may use it.
    let mut foreign = new_box(&text.replace("203.0.113.1-203.0.113.9#", "192.0.2.1"));
    assert_eq!(import(&mut foreign, &states), [""; 0]);
    let kept = send_from(&mut foreign, 0..3, 1);
    assert_eq!(kept, [0xcb00_7101, 0xcb00_7102, 0xcb00_7103]);
}

#[test]
fn elements_that_lose_flows_are_named() {
    // Dynamic mappings of addresses stay, as soon as there are some.
    let mut test_box = new_box(
        "at :: AddressTranslator(1, 0, fd00::1 2001:db8::1, 1, 1, 0, 2001:db8::9 6000 6010);
        FromDevice(0) -> Strip(14) -> at; at[0] -> Unstrip(14) -> ToDevice(1);
        FromDevice(1) -> Strip(14) -> [1]at; at[1] -> Unstrip(14) -> ToDevice(0);",
    );
    for (host, lost) in [(1, &[][..]), (2, &["at".to_string()])] {
        assert_eq!(test_box.send(0, &[packet6(host)]), 1);
        test_box.settle();
        assert_eq!(test_box.receive(1).len(), 1);
        assert_eq!(list(&mut test_box, 512, None).lost, lost);
    }
    let mut empty = TestBox::new(2, 64);
    assert_eq!(list(&mut empty, 512, None), FlowList::default());
}
