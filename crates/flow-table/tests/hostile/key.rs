//! Frames of any bytes: their keys have the fields that the header views of `packet` show.

use flow_table::{
    Action, Effects, Field, Fragments, FrameBuffer, Ingress, Key, Match, MeterVerdict, Operation, Output,
    OutputState, Performed, Seed, perform,
};
use packet::{ArpView, EthernetView, Ip4View, Ip6View, VlanView, protocol};
use std::time::Duration;

/// Extracts the key, compares it with the header views, and matches it with the match of all its fields.
pub fn frame(bytes: &[u8]) {
    let ingress = Ingress { port: 7, metadata: 8, tunnel: 9 };
    let (mut key, fragment) = Key::extract(bytes, &ingress);
    let known = [Field::InPort, Field::Metadata, Field::TunnelId].map(|field| key.get(field));
    assert_eq!(known, [Some(7), Some(8), Some(9)]);
    compare(bytes, &key);
    change(bytes, &key);
    let least = (0..bytes.len()).find(|cut| !Key::needs_more(&bytes[..*cut]));
    // A switch looks at 64 bytes first.
    let cut = Some(64).filter(|cut| *cut < bytes.len() && !Key::needs_more(&bytes[..*cut]));
    for cut in [least, cut].into_iter().flatten() {
        let of_head = Key::extract(&bytes[..cut], &ingress);
        assert_eq!(of_head, (key, fragment), "the first {cut} bytes");
        assert_eq!(of_head.0.flow_tuple(&bytes[..cut], 9), key.flow_tuple(bytes, 9), "the first {cut} bytes");
    }
    is_matched(&key);
    assert_eq!(fragment.is_some(), key.get(Field::IpFragment).is_some_and(|bits| bits != 0));
    if let Some(fragment) = fragment {
        let mut fragments = Fragments::new(4, Seed::new(1, 2));
        fragments.resolve(&mut key, fragment, Duration::ZERO);
        fragments.resolve(&mut key, fragment, Duration::from_secs(100));
        is_matched(&key);
        let counters = fragments.counters();
        assert!(counters.resolved == 0 && counters.conflicting == 0, "{counters:?}");
    }
}

/// Performs all actions that the packet admits, and takes off again what they push.
fn change(bytes: &[u8], key: &Key) {
    let has = |names: bool| {
        let settable = Field::ALL.iter().filter(|field| field.is_settable() && key.get(**field).is_some());
        settable.filter(move |field| field.names_a_header() == names)
    };
    let set = |field: &Field| Action::SetField(*field, u128::from(field.bits()) & 1);
    let sets = has(false).map(set);
    let eth_type = key.get(Field::EthType).unwrap_or(0) as u16;
    let pushes = [Action::PushMpls(0x8847), Action::CopyTtlOut, Action::DecMplsTtl, Action::PushVlan(0x8100)];
    let pops = [Action::PopVlan, Action::CopyTtlIn, Action::PopMpls(eth_type)];
    let actions = sets.chain([Action::DecIpTtl, Action::SetIpTtl(64)]).chain(pushes).chain(pops);
    let actions = actions.chain(has(true).map(set));
    let operations: Vec<Operation> = actions.map(Operation::Action).collect();
    let mut buffer = FrameBuffer::default();
    buffer.set(bytes);
    let done = perform(&operations, &mut buffer, &mut OutputState::default(), &mut NoEffects);
    assert!(done == Performed::InvalidTtl || buffer.frame().len() == bytes.len(), "{:02x?}", buffer.frame());
}

/// The actions above have no effects beyond the frame.
struct NoEffects;

impl Effects for NoEffects {
    fn meter(&mut self, _: u32, _: &[u8]) -> MeterVerdict {
        MeterVerdict::Pass
    }

    fn output(&mut self, _: Output, _: &[u8], _: OutputState) {}

    fn group(&mut self, _: u32, _: &[u8], _: OutputState) {}
}

fn compare(bytes: &[u8], key: &Key) {
    let Some(ethernet) = EthernetView::new(bytes) else {
        return assert_eq!(key.get(Field::EthType), Some(0));
    };
    let number =
        |address: packet::MacAddr| address.0.iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
    assert_eq!(key.get(Field::EthDst), Some(number(ethernet.destination())));
    assert_eq!(key.get(Field::EthSrc), Some(number(ethernet.source())));
    let mut eth_type = ethernet.ether_type().0;
    let mut rest = ethernet.rest();
    let mut tag = None;
    for _ in 0..4 {
        if let (0x8100 | 0x88a8 | 0x9100, Some(vlan)) = (eth_type, VlanView::new(rest)) {
            tag = tag.or(Some((u128::from(vlan.identifier()) | 0x1000, u128::from(vlan.priority()))));
            (eth_type, rest) = (vlan.ether_type().0, vlan.rest());
        }
    }
    assert_eq!(key.get(Field::VlanVid), Some(tag.map_or(0, |(number, _)| number)));
    assert_eq!(key.get(Field::VlanPcp), tag.map(|(_, priority)| priority));
    if eth_type < 0x600 {
        return;
    }
    assert_eq!(key.get(Field::EthType), Some(eth_type.into()));
    match eth_type {
        0x0800 => compare_ip4(rest, key),
        0x86dd => compare_ip6(rest, key),
        0x0806 => {
            let view = ArpView::new(rest).filter(ArpView::is_ethernet_ip4);
            let expected = view.map(|view| u128::from(u32::from(view.sender_ip())));
            assert_eq!(key.get(Field::ArpSpa), expected);
            assert_eq!(key.get(Field::ArpTpa), view.map(|view| u128::from(u32::from(view.target_ip()))));
            assert_eq!(key.get(Field::ArpSha), view.map(|view| number(view.sender_mac())));
            assert_eq!(key.get(Field::ArpTha), view.map(|view| number(view.target_mac())));
            assert_eq!(key.get(Field::ArpOp), view.map(|view| u128::from(view.operation())));
        }
        0x8847 => {
            let label = rest.first_chunk::<4>().map(|header| u32::from_be_bytes(*header));
            assert_eq!(key.get(Field::MplsLabel), label.map(|label| u128::from(label >> 12)));
            assert_eq!(key.get(Field::MplsTc), label.map(|label| u128::from(label >> 9 & 7)));
            assert_eq!(key.get(Field::MplsBos), label.map(|label| u128::from(label >> 8 & 1)));
        }
        0x88e7 => {
            let service = rest.first_chunk::<18>().map(|tag| u32::from_be_bytes([0, tag[1], tag[2], tag[3]]));
            assert_eq!(key.get(Field::PbbIsid), service.map(u128::from));
        }
        _ => assert_eq!(key.get(Field::IpProto), None),
    }
}

fn compare_ip4(packet: &[u8], key: &Key) {
    let view = Ip4View::new(packet).filter(|view| {
        let length = usize::from(packet[0] & 15) * 4;
        view.version() == 4 && length >= 20 && length <= packet.len()
    });
    assert_eq!(key.get(Field::Ipv4Src), view.map(|view| u32::from(view.source()).into()));
    assert_eq!(key.get(Field::Ipv4Dst), view.map(|view| u32::from(view.destination()).into()));
    assert_eq!(key.get(Field::IpProto), view.map(|view| view.protocol().into()));
    assert_eq!(key.get(Field::IpDscp), view.map(|view| view.dscp().into()));
    assert_eq!(key.get(Field::IpEcn), view.map(|view| view.ecn().into()));
    let Some(view) = view else { return };
    let is_first = view.fragment_offset() == 0;
    let bits = u128::from(view.is_fragment()) | u128::from(!is_first) << 1;
    assert_eq!(key.get(Field::IpFragment), Some(bits));
    compare_transport(view.protocol(), is_first.then(|| view.payload()), key);
    let icmp = view.payload().first_chunk::<2>().filter(|_| is_first && view.protocol() == protocol::ICMP);
    assert_eq!(key.get(Field::Icmpv4Type), icmp.map(|bytes| bytes[0].into()));
    assert_eq!(key.get(Field::Icmpv4Code), icmp.map(|bytes| bytes[1].into()));
}

fn compare_ip6(packet: &[u8], key: &Key) {
    let view = Ip6View::new(packet).filter(|view| view.version() == 6);
    assert_eq!(key.get(Field::Ipv6Src), view.map(|view| view.source().into()));
    assert_eq!(key.get(Field::Ipv6Dst), view.map(|view| view.destination().into()));
    assert_eq!(key.get(Field::Ipv6Flabel), view.map(|view| view.flow_label().into()));
    assert_eq!(key.get(Field::IpDscp), view.map(|view| view.dscp().into()));
    let Some(view) = view else { return };
    let transport = view.transport();
    // The view also walks mobility headers, in which nothing follows. No match field tells of them.
    let is_mobile = key.get(Field::IpProto) == Some(protocol::MOBILITY.into());
    if !transport.complete || is_mobile {
        return;
    }
    let is_later = transport.fragment.is_some_and(|fragment| fragment.offset != 0);
    assert_eq!(key.get(Field::IpProto), Some(transport.protocol.into()));
    compare_transport(transport.protocol, (!is_later).then_some(transport.bytes), key);
    let icmp = transport.bytes.first_chunk::<2>();
    let icmp = icmp.filter(|_| !is_later && transport.protocol == protocol::ICMP6);
    assert_eq!(key.get(Field::Icmpv6Type), icmp.map(|bytes| bytes[0].into()));
    let neighbour =
        transport.bytes.get(8..24).filter(|_| icmp.is_some_and(|bytes| matches!(bytes[0], 135 | 136)));
    let target = neighbour.map(|target| target.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)));
    assert_eq!(key.get(Field::NdTarget), target);
}

fn compare_transport(number: u8, payload: Option<&[u8]>, key: &Key) {
    let ports = payload.and_then(|payload| payload.first_chunk::<4>());
    let ports = ports.map(|bytes| {
        let [source, destination] = [[bytes[0], bytes[1]], [bytes[2], bytes[3]]].map(u16::from_be_bytes);
        (u128::from(source), u128::from(destination))
    });
    for (protocol, source, destination) in [
        (protocol::TCP, Field::TcpSrc, Field::TcpDst),
        (protocol::UDP, Field::UdpSrc, Field::UdpDst),
        (protocol::SCTP, Field::SctpSrc, Field::SctpDst),
    ] {
        let expected = ports.filter(|_| protocol == number);
        assert_eq!(key.get(source).zip(key.get(destination)), expected);
    }
}

/// The match of all fields of a key has their prerequisites, and matches the key.
fn is_matched(key: &Key) {
    let mut matching = Match::any();
    for &field in Field::ALL {
        if let Some(value) = key.get(field) {
            matching = matching.with(field, value).expect("a field with its prerequisites");
            assert_eq!(matching.get(field), Some((value, u128::MAX >> (128 - field.bits()))));
        }
    }
    assert!(matching.matches(key) && Match::any().matches(key), "{key:?}");
}
