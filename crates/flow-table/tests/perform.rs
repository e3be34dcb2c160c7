//! Actions change frames as the pipeline expects, keep checksums right, and survive any frame.

#[path = "support/frames.rs"]
mod frames;

use std::time::Duration;

use flow_table::{
    Action, ActionError, Bucket, Change, Command, Effects, Field, FlowModError, FrameBuffer, GroupError,
    GroupType, Groups, Ingress, Instructions, Key, Limits, Match, MeterVerdict, Operation, Output,
    OutputState, Performed, Pipeline, Seed, perform,
};
use packet::checksum::Sum;
use packet::{Ip4View, Ip6View};
use random::Random;

/// Checksums of an SCTP packet before and after a change of its destination port from 2 to 9.
const SCTP_BEFORE: [u8; 4] = [0x17, 0x8c, 0x6f, 0x9a];
const SCTP_AFTER: [u8; 4] = [0x61, 0x71, 0x64, 0x48];

/// Records what leaves.
#[derive(Default)]
struct Recorder {
    outputs: Vec<(Output, Vec<u8>, OutputState)>,
    groups: Vec<u32>,
    drops_in_meter: Option<u32>,
}

impl Effects for Recorder {
    fn meter(&mut self, meter: u32, _: &[u8]) -> MeterVerdict {
        if self.drops_in_meter == Some(meter) { MeterVerdict::Drop } else { MeterVerdict::Remark(1) }
    }

    fn output(&mut self, output: Output, frame: &[u8], state: OutputState) {
        self.outputs.push((output, frame.to_vec(), state));
    }

    fn group(&mut self, group: u32, _: &[u8], _: OutputState) {
        self.groups.push(group);
    }
}

fn run(actions: &[Action], frame: &[u8]) -> (Performed, Vec<u8>, Recorder) {
    let operations: Vec<Operation> = actions.iter().copied().map(Operation::Action).collect();
    let (mut buffer, mut recorder) = (FrameBuffer::default(), Recorder::default());
    buffer.set(frame);
    let done = perform(&operations, &mut buffer, &mut OutputState::default(), &mut recorder);
    (done, buffer.frame().to_vec(), recorder)
}

/// The frame with all checksums filled in.
fn completed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let type_at =
        (12..).step_by(4).find(|at| ![[0x81, 0], [0x88, 0xa8]].contains(&[frame[*at], frame[at + 1]]));
    let (head, packet) = frame.split_at_mut(type_at.unwrap() + 2);
    let is_ip4 = head.ends_with(&[8, 0]);
    if is_ip4 {
        packet[10..12].fill(0);
        let sum = packet::checksum::internet(&packet[..20]).to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
    } else if !head.ends_with(&[0x86, 0xdd]) {
        return frame;
    }
    let (protocol, start) = if is_ip4 { (packet[9], 20) } else { (packet[6], 40) };
    let at =
        start + [(6, 16), (17, 6), (1, 2), (58, 2)].iter().find(|(number, _)| *number == protocol).unwrap().1;
    packet[at..at + 2].fill(0);
    let length = packet.len() - start;
    let pseudo = match is_ip4 {
        true if protocol == 1 => Sum::ZERO,
        true => Ip4View::new(packet).unwrap().pseudo_header(length as u16),
        false => Ip6View::new(packet).unwrap().pseudo_header(protocol, length as u32),
    };
    let sum = match pseudo.bytes(&packet[start..]).finish() {
        0 if protocol == 17 => 0xffff,
        sum => sum,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// A frame like those of the oracle, with room for a TCP header, and right checksums.
fn frame(random: &mut Random) -> Vec<u8> {
    const EXTRA: u8 = 24;
    let (mut frame, _) = frames::frame(random);
    for at in 12..frame.len() - 8 {
        match frame[at..] {
            [8, 0, 0x45, _, 0, 28, ..] => frame[at + 5] = 28 + EXTRA,
            [0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, ..] => frame[at + 7] = 8 + EXTRA,
            _ => continue,
        }
        break;
    }
    frame.extend([0; EXTRA as usize]);
    completed(&frame)
}

/// A random action that a packet with this key admits, except those that reveal headers.
fn action(random: &mut Random, key: &Key) -> Action {
    match random.below(9) {
        8 => Action::PushPbb(0x88e7),
        0 => Action::PushVlan([0x8100, 0x88a8][random.below(2) as usize]),
        1 => Action::PushMpls(0x8847),
        2 => Action::SetIpTtl(9),
        _ => loop {
            let field = Field::ALL[random.below(Field::ALL.len() as u32) as usize];
            let is_there = key.get(field).is_some() && field.is_settable();
            let is_there = is_there && !matches!(field, Field::TunnelId | Field::Icmpv6Type);
            let is_there = is_there && !field.names_a_header();
            if is_there && (field != Field::VlanVid || key.get(field) != Some(0)) {
                let value = u128::from(random.next()) << 64 | u128::from(random.next());
                return Action::SetField(field, value & u128::MAX >> (128 - field.bits()));
            }
        },
    }
}

/// The match of all fields of a key.
fn exactly(key: &Key) -> Match {
    let fields = Field::ALL.iter().filter_map(|field| Some((*field, key.get(*field)?)));
    fields.fold(Match::any(), |matching, (field, value)| matching.with(field, value).unwrap())
}

/// The key that the pipeline computes after actions is the key of the frame that they made.
#[test]
fn frames_change_as_the_pipeline_expects() {
    let mut random = Random::new(17);
    let mut changed = 0;
    for _ in 0..6_000 {
        let before = frame(&mut random);
        assert!(completed(&before) == before);
        let ingress = Ingress::default();
        let key = Key::extract(&before, &ingress).0;
        let (mut actions, mut now) = (Vec::new(), before.clone());
        for _ in 0..1 + random.below(4) {
            actions.push(action(&mut random, &Key::extract(&now, &ingress).0));
            let (done, after, _) = run(&actions, &before);
            assert_eq!(done, Performed::All);
            now = after;
        }
        assert!(completed(&now) == now, "{actions:?}\n{before:02x?}\n{now:02x?}");
        changed += u32::from(now != before);

        let after = Key::extract(&now, &ingress).0;
        if matches!(after.get(Field::EthType), Some(0x8100 | 0x88a8)) {
            // More tags than the extraction skips.
            continue;
        }
        let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
        let instructions = Instructions { goto: Some(1), ..Instructions::apply(actions.clone()) };
        let first = Change { instructions, ..Change::new(Command::Add, exactly(&key), 1) };
        pipeline.apply(&first, Duration::ZERO).unwrap();
        let second = Change { table: Some(1), ..Change::new(Command::Add, exactly(&after), 1) };
        pipeline.apply(&second, Duration::ZERO).unwrap();
        let path = pipeline.look_up(&key);
        assert!(!pipeline.path(path).unwrap().is_miss(), "{actions:?}\n{key:?}\n{after:?}");
    }
    assert!(changed > 5_000, "{changed}");
}

#[test]
fn what_is_pushed_can_be_popped() {
    let mut random = Random::new(3);
    for _ in 0..500 {
        let before = frame(&mut random);
        let key = Key::extract(&before, &Ingress::default()).0;
        let eth_type = key.get(Field::EthType).unwrap() as u16;
        for _ in 0..3 {
            let mut actions = Vec::new();
            for _ in 0..random.below(30) {
                let is_vlan = random.below(2) == 0;
                actions.push(if is_vlan { Action::PushVlan(0x8100) } else { Action::PushMpls(0x8847) });
            }
            let pushed = actions.clone();
            let mut shims = pushed.iter().filter(|action| matches!(action, Action::PushMpls(_))).count();
            for action in pushed.iter().rev() {
                actions.push(match action {
                    Action::PushVlan(_) => Action::PopVlan,
                    _ => {
                        shims -= 1;
                        Action::PopMpls(if shims == 0 { eth_type } else { 0x8847 })
                    }
                });
            }
            // More tags than are skipped hide the label stack.
            if pushed.iter().filter(|action| matches!(action, Action::PushVlan(_))).count() > 1 {
                continue;
            }
            let (done, after, _) = run(&actions, &before);
            assert_eq!(done, Performed::All);
            assert_eq!(after, before, "{actions:?}");
        }
    }
}

/// IEEE 802.1Q-2018, 9.7: the service tag has the priority, flags and the number of the service.
#[test]
fn service_tags_enclose_the_frame() {
    let inner =
        [[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2].as_slice(), &[0x81, 0, 0x60, 5, 0x88, 0xb5], &[7; 46]].concat();
    let push = Action::PushPbb(0x88e7);
    let mut outer = [&inner[..12], &[0x88, 0xe7, 0x60, 0, 0, 0]].concat();
    outer.extend(&inner);
    assert_eq!(run(&[push], &inner).1, outer);
    let key = Key::extract(&outer, &Ingress::default()).0;
    assert_eq!((key.get(Field::EthType), key.get(Field::PbbIsid)), (Some(0x88e7), Some(0)));
    assert_eq!(key.get(Field::VlanVid), Some(0), "the tag is that of the customer");
    outer[15..18].copy_from_slice(&[0x12, 0x34, 0x56]);
    let set = Action::SetField(Field::PbbIsid, 0x12_3456);
    assert_eq!(run(&[push, set], &inner).1, outer);
    // Another one has the same number, and no priority because there is no VLAN tag outside.
    let twice = [&inner[..12], &[0x88, 0xe7, 0, 0x12, 0x34, 0x56], &outer].concat();
    assert_eq!(run(&[push, set, push], &inner).1, twice);
    assert_eq!(run(&[Action::PopPbb, Action::PopPbb], &twice).1, inner);
    // A tag of the backbone's VLAN goes with it.
    let tagged = [&outer[..12], &[0x88, 0xa8, 0, 9], &outer[12..]].concat();
    assert_eq!(Key::extract(&tagged, &Ingress::default()).0.get(Field::PbbIsid), Some(0x12_3456));
    assert_eq!(run(&[Action::PopPbb], &tagged).1, inner);
    for end in 14..32 {
        assert_eq!(run(&[Action::PopPbb, set], &outer[..end]).1, outer[..end], "cut off at {end}");
    }
    assert_eq!(run(&[Action::PopPbb], &inner).1, inner);
}

/// A neighbour message gets or loses its target with its type.
#[test]
fn the_type_of_icmp6_decides_about_the_target() {
    let mut frame = [[2; 12].as_slice(), &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255], &[0xfd; 32]].concat();
    frame.extend([128, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend([5; 16]);
    let frame = completed(&frame);
    let after = run(&[Action::SetField(Field::Icmpv6Type, 136)], &frame).1;
    assert!(after != frame && completed(&after) == after, "the checksum is right");
    let target = |frame: &[u8]| Key::extract(frame, &Ingress::default()).0.get(Field::NdTarget);
    assert_eq!((target(&frame), target(&after)), (None, Some(0x0505_0505_0505_0505_0505_0505_0505_0505)));
    // Later tables see it.
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let echo = Match::any().with(Field::EthType, 0x86dd).unwrap().with(Field::IpProto, 58).unwrap();
    let echo = echo.with(Field::Icmpv6Type, 128).unwrap();
    let mut change = Change::new(Command::Add, echo, 1);
    change.instructions = Instructions::apply([Action::SetField(Field::Icmpv6Type, 136)]);
    change.instructions.goto = Some(1);
    pipeline.apply(&change, Duration::ZERO).unwrap();
    let path = pipeline.look_up(&Key::extract(&frame, &Ingress::default()).0);
    assert!(pipeline.path(path).unwrap().resume().is_some());
}

/// A packet gets another protocol: checksums that cover its number change too.
#[test]
fn protocols_change_with_the_checksums_that_cover_them() {
    let ip4 = [&[8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0][..], &[10; 8]].concat();
    let ip6 = [&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64][..], &[0xfd; 32]].concat();
    let options = [&ip6[..7], &[28, 0, 64][..], &[0xfd; 32], &[6, 0, 1, 4, 0, 0, 0, 0]].concat();
    for (headers, named_at) in [(&ip4, 9), (&ip6, 6), (&options, 40)] {
        let start = 12 + headers.len();
        let mut frame = [&[2; 12][..], headers, &[3; 16], &[0; 4]].concat();
        if headers != &options {
            frame = completed(&frame);
        } else {
            let sum =
                Ip6View::new(&frame[14..]).unwrap().pseudo_header(6, 20).bytes(&frame[start..]).finish();
            frame[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        }
        let after = run(&[Action::SetField(Field::IpProto, 132)], &frame).1;
        assert_eq!((after.len(), after[14 + named_at]), (frame.len(), 132));
        let pseudo = match named_at {
            9 => Ip4View::new(&after[14..]).unwrap().pseudo_header(20),
            _ => Ip6View::new(&after[14..]).unwrap().pseudo_header(132, 20),
        };
        assert_eq!(pseudo.bytes(&after[start..]).finish(), 0, "{named_at}");
        assert!(named_at != 9 || packet::checksum::internet(&after[14..34]) == 0);
        let sum = start + 16;
        let header_sum = if named_at == 9 { 24 } else { sum };
        let is_sum = |at: &usize| [header_sum, header_sum + 1, sum, sum + 1].contains(at);
        let changed = (0..after.len()).filter(|at| after[*at] != frame[*at] && !is_sum(at));
        assert!(changed.eq([14 + named_at]), "{after:02x?}");
        assert_eq!(Key::extract(&after, &Ingress::default()).0.get(Field::IpProto), Some(132));
    }
}

/// Another Ethernet type reveals other headers, which later tables and actions know.
#[test]
fn types_of_ethernet_reveal_headers() {
    let plain = [[2; 12].as_slice(), &[0x88, 0xb5, 0x12, 0x34, 0x51, 9], &[7; 46]].concat();
    let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
    let set = Action::SetField(Field::EthType, 0x8847);
    for (frame, at) in [(&plain, 12), (&tagged, 16)] {
        let bottom = Action::SetField(Field::MplsBos, 0);
        let expected = [&frame[..at], &[0x88, 0x47, 0x12, 0x34, 0x50, 9], &frame[at + 6..]].concat();
        assert_eq!(run(&[set, bottom], frame).1, expected);
    }
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let mut change = Change::new(Command::Add, Match::any(), 1);
    change.instructions = Instructions { goto: Some(1), ..Instructions::apply([set]) };
    pipeline.apply(&change, Duration::ZERO).unwrap();
    let path = pipeline.look_up(&Key::extract(&plain, &Ingress::default()).0);
    assert!(pipeline.path(path).unwrap().resume().is_some());
}

/// OpenFlow 1.0, 3.3: actions on VLAN tags push one if there is none, and others do nothing without their header.
#[test]
fn actions_of_openflow_1_0_need_no_header() {
    let plain = [[2; 12].as_slice(), &[0x88, 0xb5], &[7; 46]].concat();
    let tagged = |tci: [u8; 2]| [&plain[..12], &[0x81, 0], &tci, &plain[12..]].concat();
    for (actions, before, after) in [
        (&[Action::TagVlanVid(5)][..], &plain, &tagged([0, 5])),
        (&[Action::TagVlanVid(5)], &tagged([0x60, 9]), &tagged([0x60, 5])),
        (&[Action::TagVlanPcp(3)], &plain, &tagged([0x60, 0])),
        (&[Action::TagVlanPcp(3)], &tagged([0x20, 9]), &tagged([0x60, 9])),
        (&[Action::TagVlanVid(5), Action::TagVlanPcp(3)], &plain, &tagged([0x60, 5])),
        (&[Action::StripVlan], &plain, &plain),
        (&[Action::StripVlan], &tagged([0, 5]), &plain),
        (&[Action::SetIfPresent(Field::TcpDst, 80)], &plain, &plain),
        (&[Action::SetIfPresent(Field::VlanVid, 8)], &plain, &plain),
        (&[Action::SetIfPresent(Field::VlanVid, 8)], &tagged([0, 5]), &tagged([0, 8])),
    ] {
        assert_eq!(run(actions, before).1, *after, "{actions:?}");
    }
    let mut pipeline = Pipeline::new(Limits::default(), Seed::new(1, 2));
    let mut change = Change::new(Command::Add, Match::any(), 1);
    change.instructions = Instructions::apply([
        Action::SetIfPresent(Field::TcpDst, 80),
        Action::TagVlanVid(5),
        Action::SetField(Field::VlanPcp, 1),
        Action::StripVlan,
    ]);
    assert_eq!(pipeline.apply(&change, Duration::ZERO).map(|done| done.added), Ok(true));
    for (refused, error) in [
        (Action::TagVlanVid(0x1000), ActionError::TooWide(Field::VlanVid)),
        (Action::TagVlanPcp(8), ActionError::TooWide(Field::VlanPcp)),
        (Action::SetIfPresent(Field::IpEcn, 4), ActionError::TooWide(Field::IpEcn)),
        (Action::SetIfPresent(Field::InPort, 4), ActionError::NotSettable(Field::InPort)),
    ] {
        change.instructions = Instructions::apply([refused]);
        assert_eq!(pipeline.apply(&change, Duration::ZERO), Err(FlowModError::Action(error)));
    }
    for old in [Action::StripVlan, Action::TagVlanVid(1), Action::SetIfPresent(Field::EthDst, 1)] {
        change.instructions = Instructions { write: vec![old], ..Instructions::default() };
        let error = FlowModError::Action(ActionError::OnlyApplied);
        assert_eq!(pipeline.apply(&change, Duration::ZERO), Err(error));
        let bucket = Bucket { actions: vec![old], ..Bucket::default() };
        let error = GroupError::Action(ActionError::OnlyApplied);
        assert_eq!(Groups::default().add(1, GroupType::All, vec![bucket]), Err(error));
    }
}

#[test]
fn times_to_live_end() {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 2, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 1, 0, 2, 0, 8, 0, 0]);
    let frame = completed(&frame);
    let ttl = |actions: &[Action]| {
        let (done, after, _) = run(actions, &frame);
        assert!(done != Performed::All || completed(&after) == after || after.len() != frame.len());
        (done, after[after.len() - 20])
    };
    let out = Action::Output(Output::Normal);
    assert_eq!(ttl(&[Action::DecIpTtl]), (Performed::All, 1));
    assert_eq!(ttl(&[Action::DecIpTtl, Action::DecIpTtl, out]), (Performed::InvalidTtl, 1));
    assert_eq!(ttl(&[Action::SetIpTtl(200)]).1, 200);
    let labelled =
        [Action::PushMpls(0x8847), Action::SetMplsTtl(77), Action::CopyTtlIn, Action::PopMpls(0x0800)];
    assert_eq!(ttl(&labelled), (Performed::All, 77));
    let copied = run(&[Action::PushMpls(0x8847), Action::SetMplsTtl(9), Action::CopyTtlOut], &frame).1;
    assert_eq!(
        copied[14..18],
        [0, 0, 1, 2],
        "a label without number, the bottom of the stack, the time to live of IP"
    );
    assert_eq!(run(&[Action::DecMplsTtl], &frame).0, Performed::All, "there is no label");
}

#[test]
fn outputs_see_the_frame_of_their_moment() {
    let frame = [[2; 12].as_slice(), &[0x88, 0xb5], &[7; 46]].concat();
    let actions = [
        Action::Output(Output::Port(1)),
        Action::SetField(Field::EthDst, 1),
        Action::SetQueue(4),
        Action::SetField(Field::TunnelId, 5),
        Action::Group(6),
        Action::Output(Output::Service(2)),
    ];
    let (_, _, recorder) = run(&actions, &frame);
    let [(first, before, no_state), (second, after, state)] = &recorder.outputs[..] else { panic!() };
    assert_eq!((first, before, no_state), (&Output::Port(1), &frame, &OutputState::default()));
    assert_eq!((second, &after[..6]), (&Output::Service(2), &[0, 0, 0, 0, 0, 1][..]));
    assert_eq!(*state, OutputState { tunnel: 5, queue: Some(4) });
    assert_eq!(recorder.groups, [6]);

    let mut buffer = FrameBuffer::default();
    buffer.set(&frame);
    let operations = [Operation::Meter(3), Operation::Action(Action::Output(Output::All))];
    let mut dropping = Recorder { drops_in_meter: Some(3), ..Recorder::default() };
    let done = perform(&operations, &mut buffer, &mut OutputState::default(), &mut dropping);
    assert_eq!((done, dropping.outputs.len()), (Performed::Metered, 0));
}

/// RFC 2597: AF11 becomes AF12, then AF13, which stays; other classes stay.
#[test]
fn meters_raise_the_drop_precedence() {
    let mut random = Random::new(31);
    let mut checked = 0;
    for _ in 0..200 {
        let plain = frame(&mut random);
        if Key::extract(&plain, &Ingress::default()).0.get(Field::IpDscp).is_none() {
            continue;
        }
        for (before, expected) in [(10, 12), (12, 14), (14, 14), (34, 36), (46, 46), (0, 0), (11, 11), (8, 8)]
        {
            let (_, marked, _) = run(&[Action::SetField(Field::IpDscp, before)], &plain);
            let mut buffer = FrameBuffer::default();
            buffer.set(&marked);
            let mut recorder = Recorder::default();
            perform(&[Operation::Meter(1)], &mut buffer, &mut OutputState::default(), &mut recorder);
            assert_eq!(completed(buffer.frame()), buffer.frame());
            let key = Key::extract(buffer.frame(), &Ingress::default()).0;
            assert_eq!(key.get(Field::IpDscp), Some(expected));
            checked += 1;
        }
    }
    assert!(checked > 400);
}

/// UDP without a checksum stays without one, and wrong checksums stay wrong.
#[test]
fn checksums_that_are_absent_or_wrong_stay_so() {
    let (mut random, mut checked) = (Random::new(9), 0);
    for _ in 0..2_000 {
        let mut frame = frame(&mut random);
        let key = Key::extract(&frame, &Ingress::default()).0;
        if key.get(Field::UdpSrc).is_none() || key.get(Field::Ipv4Src).is_none() {
            continue;
        }
        let at = frame.len() - 32 + 6;
        let set = [Action::SetField(Field::UdpSrc, 77), Action::SetField(Field::Ipv4Src, 0x0102_0304)];
        frame[at..at + 2].fill(0);
        assert_eq!(run(&set, &frame).1[at..at + 2], [0, 0]);
        frame[at..at + 2].copy_from_slice(&[1, 2]);
        let after = run(&set, &frame).1;
        let difference = |frame: &[u8]| {
            let right = completed(frame);
            let word = |frame: &[u8]| u16::from_be_bytes([frame[at], frame[at + 1]]);
            (i64::from(word(frame)) - i64::from(word(&right))).rem_euclid(0xffff)
        };
        assert_eq!(difference(&after), difference(&frame), "as wrong as before");
        checked += 1;
    }
    assert!(checked > 100);
}

/// The ports of SCTP change with its checksum, which covers the whole packet.
#[test]
fn sctp_ports_change_with_their_checksum() {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, 132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    // Ports 1 and 2, tag 3. The checksum was computed bit by bit.
    frame.extend([0, 1, 0, 2, 0, 0, 0, 3]);
    frame.extend(SCTP_BEFORE);
    frame.extend([0, 0, 0, 4]);
    let after = run(&[Action::SetField(Field::SctpDst, 9)], &frame).1;
    assert_eq!(after[36..38], [0, 9]);
    assert_eq!(after[42..46], SCTP_AFTER);
    frame[42] ^= 1;
    assert_eq!(
        run(&[Action::SetField(Field::SctpDst, 9)], &frame).1[42..46],
        frame[42..46],
        "wrong stays wrong"
    );
}

/// Any actions on any bytes.
#[test]
fn no_frame_makes_an_action_panic() {
    let mut random = Random::new(23);
    for seed in 0..20_000 {
        let mut bytes = frame(&mut random);
        bytes.truncate(random.below(bytes.len() as u32 + 1) as usize);
        for _ in 0..random.below(4) {
            if !bytes.is_empty() {
                let at = random.below(bytes.len() as u32) as usize;
                bytes[at] = random.next() as u8;
            }
        }
        let actions: Vec<Action> = (0..random.below(6))
            .map(|_| match random.below(15) {
                12 => Action::TagVlanVid(random.below(4096) as u16),
                13 => Action::TagVlanPcp(random.below(8) as u8),
                14 => Action::StripVlan,
                8 => Action::PushPbb(0x88e7),
                9 => Action::PopPbb,
                0 => Action::PushVlan(0x8100),
                1 => Action::PopVlan,
                2 => Action::PushMpls(0x8847),
                3 => Action::PopMpls([0x0800, 0x86dd, 0x8847][random.below(3) as usize]),
                4 => Action::DecIpTtl,
                5 => Action::DecMplsTtl,
                6 => Action::CopyTtlIn,
                7 => Action::CopyTtlOut,
                _ => {
                    let field = Field::ALL[random.below(Field::ALL.len() as u32) as usize];
                    Action::SetField(field, u128::from(random.next()) & u128::MAX >> (128 - field.bits()))
                }
            })
            .collect();
        let (_, after, _) = run(&actions, &bytes);
        assert!(after.len() <= bytes.len() + 18 * actions.len(), "{seed}");
    }
}
