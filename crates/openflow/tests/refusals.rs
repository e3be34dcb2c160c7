//! Each fault is answered with the error type and code of the specification.

#[path = "support/controller.rs"]
mod controller;
#[path = "support/software.rs"]
mod software;

use controller::{START, agent, ask, greeted, messages};
use flow_table::{
    Action, Band, BandType, Bucket, Change, Command, EntryFlags, Field, GroupType, Instructions, Match,
    MeterDefinition, Output,
};
use openflow::message::{
    Config, Experimenter, FlowMod, GroupMod, Message, MeterMod, MultipartRequest, PacketOut, PacketOutAction,
    PortMod, TableFeatures, TableMod,
};
use openflow::session::{Agent, AgentLimits, SessionId, SessionState};
use openflow::{ErrorCode, VERSION};
use packet::MacAddr;
use software::Software;

/// A message from its parts.
fn raw(version: u8, message_type: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![version, message_type, 0, 0, 0, 0, 0, 9];
    bytes.extend_from_slice(body);
    let length = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// What the switch answers to bytes.
fn answer(agent: &mut Agent<Software>, id: SessionId, bytes: &[u8]) -> Vec<(u32, Message)> {
    assert_eq!(agent.receive(id, bytes, START), bytes.len());
    messages(agent, id, START)
}

/// Checks that a message is refused with a code, and that the answer begins with the message.
fn assert_refused(message_type: u8, body: &[u8], expected: ErrorCode) {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let bytes = raw(VERSION, message_type, body);
    let data = bytes[..bytes.len().min(64)].to_vec();
    let found = answer(&mut agent, id, &bytes);
    assert_eq!(found, [(9, Message::Error { code: expected, data })], "{body:02x?}");
    assert_eq!(agent.state(id), SessionState::Open);
    assert!(agent.datapath().pipeline.is_empty(), "nothing changed");
}

fn body(message: &Message) -> Vec<u8> {
    message.encode(0).expect("a short message")[8..].to_vec()
}

/// A flow-mod message with these TLVs as match, and these instructions.
fn flow_mod(fields: &[u8], instructions: &[u8]) -> Vec<u8> {
    let mut body = vec![0; 32];
    body[24..28].fill(0xff);
    body.extend([0xff; 8]);
    body.truncate(40);
    body[28..36].fill(0xff);
    body[36..40].fill(0);
    let length = (4 + fields.len()) as u16;
    body.extend([0, 1]);
    body.extend(length.to_be_bytes());
    body.extend_from_slice(fields);
    body.resize(body.len().next_multiple_of(8), 0);
    body.extend_from_slice(instructions);
    body
}

const ETH_IP4: [u8; 6] = [0x80, 0, 5 << 1, 2, 8, 0];

fn with_fields(parts: &[&[u8]]) -> Vec<u8> {
    flow_mod(&parts.concat(), &[])
}

/// A flow-mod message with one apply-actions instruction.
fn with_actions(actions: &[u8]) -> Vec<u8> {
    let length = (8 + actions.len()) as u16;
    let mut instruction = vec![0, 4];
    instruction.extend(length.to_be_bytes());
    instruction.extend([0; 4]);
    instruction.extend_from_slice(actions);
    flow_mod(&[], &instruction)
}

#[test]
fn bad_requests_get_their_codes() {
    let bad_length = ErrorCode::BRC_BAD_LEN;
    assert_refused(99, &[], ErrorCode::BRC_BAD_TYPE);
    for message_type in [6, 8, 10, 11, 12, 19, 21, 23, 25, 27] {
        assert_refused(message_type, &[], ErrorCode::BRC_BAD_TYPE);
    }
    for message_type in [5, 7, 20, 26] {
        assert_refused(message_type, &[0], bad_length);
    }
    for message_type in [4, 9, 13, 14, 15, 16, 17, 18, 22, 24, 28, 29] {
        assert_refused(message_type, &[0, 0], bad_length);
    }
    let experimenter = Experimenter { experimenter: 1, kind: 2, data: vec![3] };
    assert_refused(4, &body(&Message::Experimenter(experimenter)), ErrorCode::BRC_BAD_EXPERIMENTER);
    assert_refused(18, &[0xff, 0xff, 0, 0, 0, 0, 0, 0], ErrorCode::BRC_BAD_EXPERIMENTER);
    assert_refused(18, &[0, 77, 0, 0, 0, 0, 0, 0], ErrorCode::BRC_BAD_MULTIPART);
    assert_refused(18, &[0, 0, 0, 1, 0, 0, 0, 0], ErrorCode::BRC_MULTIPART_BUFFER_OVERFLOW);
    let request = |request| body(&Message::MultipartRequest { request, more: false });
    assert_refused(18, &request(MultipartRequest::PortStats(Some(9))), ErrorCode::BRC_BAD_PORT);
    assert_refused(18, &request(MultipartRequest::Meter(Some(9))), ErrorCode::MMFC_UNKNOWN_METER);
    let queue = |port, queue| request(MultipartRequest::Queue { port: Some(port), queue: Some(queue) });
    assert_refused(18, &queue(9, 1), ErrorCode::QOFC_BAD_PORT);
    assert_refused(18, &queue(1, 1), ErrorCode::QOFC_BAD_QUEUE);
    assert_refused(22, &[0, 0, 0, 9, 0, 0, 0, 0], ErrorCode::QOFC_BAD_PORT);
    assert_refused(24, &[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ErrorCode::RRFC_BAD_ROLE);
    let features = TableFeatures::of_pipeline(1, 10);
    assert_refused(18, &request(MultipartRequest::TableFeatures(vec![features])), ErrorCode::TFFC_EPERM);
    assert_refused(18, &[0, 12, 0, 0, 0, 0, 0, 0, 0, 1], ErrorCode::TFFC_BAD_LEN);
    let config = Config { flags: 1, miss_send_length: 0 };
    assert_refused(9, &body(&Message::SetConfig(config)), ErrorCode::SCFC_BAD_FLAGS);
    let table = |table, config| body(&Message::TableMod(TableMod { table, config }));
    assert_refused(17, &table(64, 0), ErrorCode::TMFC_BAD_TABLE);
    assert_refused(17, &table(255, 4), ErrorCode::TMFC_BAD_CONFIG);
    let port = |port, last| {
        let address = MacAddr([2, 0, 0, 0, 0, last]);
        body(&Message::PortMod(PortMod { port, address, config: 1, mask: 1, advertise: 0 }))
    };
    assert_refused(16, &port(9, 9), ErrorCode::PMFC_BAD_PORT);
    assert_refused(16, &port(1, 9), ErrorCode::PMFC_BAD_HW_ADDR);
}

#[test]
fn bad_packets_get_their_codes() {
    let packet = |buffer, in_port, actions| {
        body(&Message::PacketOut(PacketOut { buffer, in_port, actions, data: vec![0; 60] }))
    };
    assert_refused(13, &packet(Some(5), 1, Vec::new()), ErrorCode::BRC_BUFFER_UNKNOWN);
    assert_refused(13, &packet(None, 0xffff_fff9, Vec::new()), ErrorCode::BRC_BAD_PORT);
    let group = PacketOutAction::Perform(Action::Group(1));
    assert_refused(13, &packet(None, 1, vec![group]), ErrorCode::BAC_BAD_OUT_GROUP);
    let mut longer = packet(None, 1, Vec::new());
    longer[9] = 200;
    assert_refused(13, &longer, ErrorCode::BRC_BAD_LEN);
}

#[test]
fn bad_matches_get_their_codes() {
    let is_refused = |parts: &[&[u8]], code| assert_refused(14, &with_fields(parts), code);
    let mut standard = with_fields(&[]);
    standard[41] = 0;
    assert_refused(14, &standard, ErrorCode::BMC_BAD_TYPE);
    let mut longer = with_fields(&[]);
    longer[43] = 20;
    assert_refused(14, &longer, ErrorCode::BMC_BAD_LEN);
    longer[43] = 3;
    assert_refused(14, &longer, ErrorCode::BMC_BAD_LEN);
    is_refused(&[&[0x80, 0, 5 << 1, 9, 8, 0]], ErrorCode::BMC_BAD_LEN);
    is_refused(&[&[0x80, 0, 5 << 1, 1, 8]], ErrorCode::BMC_BAD_LEN);
    is_refused(&[&[0x80, 0, 5 << 1, 3, 8, 0, 0]], ErrorCode::BMC_BAD_LEN);
    is_refused(&[&[0x80, 0, 60 << 1, 1, 8]], ErrorCode::BMC_BAD_FIELD);
    is_refused(&[&[0x80, 1, 0, 1, 8]], ErrorCode::BMC_BAD_FIELD);
    is_refused(&[&[0xff, 0xff, 0, 4, 0, 0, 0, 0]], ErrorCode::BMC_BAD_FIELD);
    is_refused(&[&[0x80, 0, 5 << 1 | 1, 4, 8, 0, 0xff, 0xff]], ErrorCode::BMC_BAD_MASK);
    is_refused(
        &[&ETH_IP4, &[0x80, 0, 11 << 1 | 1, 8, 10, 0, 0, 1, 255, 0, 0, 0]],
        ErrorCode::BMC_BAD_WILDCARDS,
    );
    is_refused(&[&[0x80, 0, 6 << 1, 2, 0, 5]], ErrorCode::BMC_BAD_VALUE);
    is_refused(&[&ETH_IP4, &[0x80, 0, 8 << 1, 1, 64]], ErrorCode::BMC_BAD_VALUE);
    is_refused(&[&[0x80, 0, 11 << 1, 4, 10, 0, 0, 1]], ErrorCode::BMC_BAD_PREREQ);
    is_refused(&[&[0x80, 0, 7 << 1, 1, 3]], ErrorCode::BMC_BAD_PREREQ);
    is_refused(&[&[0x80, 0, 10 << 1, 1, 6], &ETH_IP4], ErrorCode::BMC_BAD_PREREQ);
    is_refused(&[&ETH_IP4, &ETH_IP4], ErrorCode::BMC_DUP_FIELD);
}

#[test]
fn bad_actions_and_instructions_get_their_codes() {
    let is_refused = |actions: &[u8], code| assert_refused(14, &with_actions(actions), code);
    is_refused(&[0, 99, 0, 8, 0, 0, 0, 0], ErrorCode::BAC_BAD_TYPE);
    is_refused(&[0, 18, 0, 4, 0, 0, 0, 0], ErrorCode::BAC_BAD_LEN);
    is_refused(&[0, 18, 0, 16, 0, 0, 0, 0], ErrorCode::BAC_BAD_LEN);
    is_refused(&[0, 18, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ErrorCode::BAC_BAD_LEN);
    is_refused(&[0xff, 0xff, 0, 8, 0, 0, 0, 1], ErrorCode::BAC_BAD_EXPERIMENTER);
    for port in [[0; 4], [0xff; 4], [0xff, 0xff, 0xff, 0xf9], [0xff, 0xff, 0xff, 1]] {
        let mut output = vec![0, 0, 0, 16];
        output.extend(port);
        output.extend([0; 8]);
        is_refused(&output, ErrorCode::BAC_BAD_OUT_PORT);
    }
    is_refused(&[0, 22, 0, 8, 0xff, 0xff, 0xff, 0xff], ErrorCode::BAC_BAD_OUT_GROUP);
    is_refused(&[0, 22, 0, 8, 0, 0, 0, 1], ErrorCode::BAC_BAD_OUT_GROUP);
    is_refused(&[0, 17, 0, 8, 8, 0, 0, 0], ErrorCode::BAC_BAD_ARGUMENT);
    is_refused(&[0, 25, 0, 16, 0x80, 0, 60 << 1, 2, 0, 0, 0, 0, 0, 0, 0, 0], ErrorCode::BAC_BAD_SET_TYPE);
    is_refused(&[0, 25, 0, 16, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0], ErrorCode::BAC_BAD_SET_TYPE);
    is_refused(&[0, 25, 0, 16, 0x80, 0, 39 << 1, 2, 0, 1, 0, 0, 0, 0, 0, 0], ErrorCode::BAC_BAD_SET_TYPE);
    is_refused(&[0, 25, 0, 16, 0x80, 0, 4 << 1, 9, 8, 0, 0, 0, 0, 0, 0, 0], ErrorCode::BAC_BAD_SET_LEN);
    is_refused(&[0, 25, 0, 16, 0x80, 0, 7 << 1, 1, 8, 0, 0, 0, 0, 0, 0, 0], ErrorCode::BAC_BAD_SET_ARGUMENT);
    is_refused(
        &[0, 25, 0, 16, 0x80, 0, 13 << 1, 2, 0, 80, 0, 0, 0, 0, 0, 0],
        ErrorCode::BAC_MATCH_INCONSISTENT,
    );
    is_refused(&[0, 18, 0, 8, 0, 0, 0, 0].repeat(257), ErrorCode::BAC_TOO_MANY);

    let is_refused = |instructions: &[u8], code| assert_refused(14, &flow_mod(&[], instructions), code);
    is_refused(&[0, 77, 0, 8, 0, 0, 0, 0], ErrorCode::BIC_UNKNOWN_INST);
    is_refused(&[0xff, 0xff, 0, 8, 0, 0, 0, 0], ErrorCode::BIC_BAD_EXPERIMENTER);
    is_refused(&[0, 5, 0, 4, 0, 0, 0, 0], ErrorCode::BIC_BAD_LEN);
    is_refused(&[0, 5, 0, 16, 0, 0, 0, 0], ErrorCode::BIC_BAD_LEN);
    is_refused(&[0, 1, 0, 8, 0, 0, 0, 0], ErrorCode::BIC_BAD_TABLE_ID);
    is_refused(&[0, 1, 0, 8, 64, 0, 0, 0], ErrorCode::BIC_BAD_TABLE_ID);
    is_refused(&[0, 5, 0, 8, 0, 0, 0, 0, 0, 5, 0, 8, 0, 0, 0, 0], ErrorCode::BIC_UNSUP_INST);
    is_refused(&[0, 6, 0, 8, 0, 0, 0, 1], ErrorCode::MMFC_UNKNOWN_METER);
}

#[test]
fn bad_flow_entries_get_their_codes() {
    let change = || Change::new(Command::Add, Match::any(), 1);
    let is_refused = |change, code| {
        assert_refused(14, &body(&Message::FlowMod(FlowMod { change, buffer: None })), code);
    };
    is_refused(Change { table: Some(64), ..change() }, ErrorCode::FMFC_BAD_TABLE_ID);
    is_refused(Change { table: None, ..change() }, ErrorCode::FMFC_BAD_TABLE_ID);
    let mut bytes = with_fields(&[]);
    bytes[17] = 5;
    assert_refused(14, &bytes, ErrorCode::FMFC_BAD_COMMAND);
    bytes[17] = 0;
    bytes[36] = 1;
    assert_refused(14, &bytes, ErrorCode::FMFC_BAD_FLAGS);

    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let port = Match::any().with(Field::InPort, 1).expect("a port fits");
    let first = Change::new(Command::Add, port, 1);
    let flags = EntryFlags { check_overlap: true, ..EntryFlags::default() };
    assert_eq!(ask(&mut agent, id, &Message::FlowMod(FlowMod { change: first.clone(), buffer: None })), []);
    // One packet may match both. With equal matches it always does.
    for second in [change(), first] {
        let second = Change { flags, ..second };
        let found = ask(&mut agent, id, &Message::FlowMod(FlowMod { change: second, buffer: None }));
        assert!(matches!(found[..], [Message::Error { code: ErrorCode::FMFC_OVERLAP, .. }]), "{found:?}");
    }
}

#[test]
fn bad_groups_get_their_codes() {
    let bucket = |actions: &[Action]| Bucket { actions: actions.to_vec(), ..Bucket::default() };
    let add = |group, group_type, buckets| Message::GroupMod(GroupMod::Add { group, group_type, buckets });
    let modify =
        |group, buckets| Message::GroupMod(GroupMod::Modify { group, group_type: GroupType::All, buckets });
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    assert_eq!(ask(&mut agent, id, &add(1, GroupType::All, vec![bucket(&[])])), []);
    assert_eq!(ask(&mut agent, id, &add(2, GroupType::All, vec![bucket(&[Action::Group(1)])])), []);
    let weighted = Bucket { weight: 2, ..Bucket::default() };
    for (message, expected) in [
        (add(1, GroupType::All, Vec::new()), ErrorCode::GMFC_GROUP_EXISTS),
        (add(0xffff_ff01, GroupType::All, Vec::new()), ErrorCode::GMFC_INVALID_GROUP),
        (add(3, GroupType::Indirect, Vec::new()), ErrorCode::GMFC_INVALID_GROUP),
        (add(3, GroupType::All, vec![weighted]), ErrorCode::GMFC_INVALID_GROUP),
        (add(3, GroupType::All, vec![Bucket::default(); 1025]), ErrorCode::GMFC_OUT_OF_BUCKETS),
        (add(3, GroupType::All, vec![bucket(&[Action::PushMpls(1)])]), ErrorCode::BAC_BAD_ARGUMENT),
        (modify(9, Vec::new()), ErrorCode::GMFC_UNKNOWN_GROUP),
        (modify(1, vec![bucket(&[Action::Group(2)])]), ErrorCode::GMFC_LOOP),
        (Message::GroupMod(GroupMod::Delete(Some(1))), ErrorCode::GMFC_CHAINED_GROUP),
    ] {
        let found = ask(&mut agent, id, &message);
        assert!(
            matches!(found[..], [Message::Error { code, .. }] if code == expected),
            "{expected}: {found:?}"
        );
    }
    assert_refused(15, &[0, 3, 0, 0, 0, 0, 0, 1], ErrorCode::GMFC_BAD_COMMAND);
    assert_refused(15, &[0, 0, 7, 0, 0, 0, 0, 1], ErrorCode::GMFC_BAD_TYPE);
    assert_refused(15, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0], ErrorCode::GMFC_BAD_BUCKET);
    let mut watching = body(&add(1, GroupType::All, vec![bucket(&[])]));
    watching[12..16].copy_from_slice(&[0xff, 0xff, 0xff, 1]);
    assert_refused(15, &watching, ErrorCode::GMFC_BAD_WATCH);
    // Its description would not fit into a message.
    let output = Action::Output(Output::Port(1));
    let mut longest = vec![bucket(&[output; 3]); 1023];
    longest.push(bucket(&[output]));
    let found = ask(&mut agent, id, &add(4, GroupType::All, longest));
    assert!(matches!(found[..], [Message::Error { code: ErrorCode::GMFC_OUT_OF_BUCKETS, .. }]), "{found:?}");
}

#[test]
fn bad_meters_get_their_codes() {
    let band = Band { band_type: BandType::Drop, rate: 5, burst: 0 };
    let definition = |bands: Vec<Band>| MeterDefinition { flags: MeterDefinition::KILOBITS, bands };
    let add = |meter, bands| Message::MeterMod(MeterMod::Add(meter, definition(bands)));
    let is_refused = |message: &Message, code| assert_refused(29, &body(message), code);
    is_refused(&add(0, Vec::new()), ErrorCode::MMFC_INVALID_METER);
    is_refused(&add(0xffff_fffd, Vec::new()), ErrorCode::MMFC_INVALID_METER);
    is_refused(&add(1, vec![Band { rate: 0, ..band }]), ErrorCode::MMFC_BAD_RATE);
    let level = Band { band_type: BandType::DscpRemark(3), ..band };
    is_refused(&add(1, vec![level]), ErrorCode::MMFC_BAD_BAND_VALUE);
    is_refused(&add(1, vec![band; 17]), ErrorCode::MMFC_OUT_OF_BANDS);
    is_refused(
        &Message::MeterMod(MeterMod::Modify(1, definition(vec![band]))),
        ErrorCode::MMFC_UNKNOWN_METER,
    );
    assert_refused(29, &[0, 3, 0, 1, 0, 0, 0, 1], ErrorCode::MMFC_BAD_COMMAND);
    assert_refused(29, &[0, 0, 0, 3, 0, 0, 0, 1], ErrorCode::MMFC_BAD_FLAGS);
    let mut unknown = body(&add(1, vec![band]));
    unknown[9] = 7;
    assert_refused(29, &unknown, ErrorCode::MMFC_BAD_BAND);
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    assert_eq!(ask(&mut agent, id, &add(1, vec![band])), []);
    let found = ask(&mut agent, id, &add(1, vec![band]));
    assert!(matches!(found[..], [Message::Error { code: ErrorCode::MMFC_METER_EXISTS, .. }]), "{found:?}");
}

/// Instructions that name a group or meter that exists are accepted.
#[test]
fn references_to_existing_groups_and_meters_are_accepted() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let group = GroupMod::Add { group: 1, group_type: GroupType::All, buckets: Vec::new() };
    let band = Band { band_type: BandType::Drop, rate: 5, burst: 0 };
    let meter = MeterDefinition { flags: MeterDefinition::PACKETS, bands: vec![band] };
    assert_eq!(ask(&mut agent, id, &Message::GroupMod(group)), []);
    assert_eq!(ask(&mut agent, id, &Message::MeterMod(MeterMod::Add(2, meter))), []);
    let instructions = Instructions { meter: Some(2), ..Instructions::apply([Action::Group(1)]) };
    let change = Change { instructions, ..Change::new(Command::Add, Match::any(), 1) };
    assert_eq!(ask(&mut agent, id, &Message::FlowMod(FlowMod { change, buffer: None })), []);
    assert_eq!(agent.datapath().pipeline.len(), 1);
}

#[test]
fn versions_are_negotiated() {
    for (version, body, agrees) in [
        (4, &[][..], true),
        (2, &[][..], false),
        (3, &[][..], false),
        (0, &[][..], false),
        (1, &[][..], true),
        (6, &[][..], true),
        (6, &[0, 1, 0, 8, 0, 0, 0, 0x52][..], true),
        (6, &[0, 1, 0, 8, 0, 0, 0, 0x4c][..], false),
        (4, &[0, 9, 0, 6, 1, 2, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x10][..], true),
        (4, &[0, 1, 0, 2][..], false),
    ] {
        let mut agent = agent(AgentLimits::default());
        let id = agent.connect(START).expect("a session");
        messages(&mut agent, id, START);
        let found = answer(&mut agent, id, &raw(version, 0, body));
        match agrees {
            true => assert_eq!((found, agent.state(id)), (Vec::new(), SessionState::Open)),
            false => {
                let is_right =
                    matches!(found[..], [(9, Message::Error { code: ErrorCode::HFC_INCOMPATIBLE, .. })]);
                assert!(is_right, "{found:?}");
                assert_eq!(agent.state(id), SessionState::Closed);
            }
        }
    }
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let found = answer(&mut agent, id, &raw(1, 5, &[]));
    assert!(matches!(found[..], [(9, Message::Error { code: ErrorCode::BRC_BAD_VERSION, .. })]), "{found:?}");
    let found = answer(&mut agent, id, &[4, 5, 0, 7, 0, 0, 0, 9]);
    assert!(matches!(found[..], [(9, Message::Error { code: ErrorCode::BRC_BAD_LEN, .. })]), "{found:?}");
    assert_eq!(agent.state(id), SessionState::Closed);
}
