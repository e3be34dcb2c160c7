//! Sessions: what an agent answers, reports unasked, and keeps.

#[path = "support/controller.rs"]
mod controller;
#[path = "support/software.rs"]
mod software;

use std::time::Duration;

use controller::{START, agent, ask, greeted, messages, send};
use flow_table::{Action, Change, Command, EntryFlags, Field, GroupType, Instructions, Match, Output};
use openflow::ErrorCode;
use openflow::message::{
    AsyncConfig, Config, FlowMod, FlowRemovedReason, FlowSelection, GroupMod, Message, MultipartReply,
    MultipartRequest, PacketInReason, PacketOut, PacketOutAction, PortMod, Role, RoleRequest,
};
use openflow::session::{Agent, AgentLimits, Datapath, SessionId, SessionState};
use packet::MacAddr;
use software::Software;

/// An IPv4 frame of UDP.
fn frame(length: usize) -> Vec<u8> {
    let mut frame =
        vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0, 0, (length - 14) as u8, 0, 0, 0, 0, 64, 17];
    frame.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 20, 0, 0]);
    frame.resize(length, 7);
    frame
}

fn change(instructions: Instructions) -> Change {
    Change { instructions, cookie: 5, ..Change::new(Command::Add, Match::any(), 0) }
}

fn flow(change: Change) -> Message {
    Message::FlowMod(FlowMod { change, buffer: None })
}

/// An entry that sends packets to the controller.
fn to_controller(max_length: u16) -> Message {
    flow(change(Instructions::output(Output::Controller { max_length })))
}

fn error_of(found: &[Message]) -> ErrorCode {
    let [Message::Error { code, .. }] = found else { panic!("no error: {found:?}") };
    *code
}

fn role(agent: &mut Agent<Software>, id: SessionId, role: Option<Role>, generation: u64) -> Vec<Message> {
    ask(agent, id, &Message::RoleRequest(RoleRequest { role, generation }))
}

fn granted(role: Role, generation: u64) -> [Message; 1] {
    [Message::RoleReply(RoleRequest { role: Some(role), generation })]
}

#[test]
fn messages_in_any_pieces_are_answered_in_order() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let mut bytes = Vec::new();
    for (xid, message) in
        [Message::EchoRequest(b"one".into()), Message::BarrierRequest, Message::GetConfigRequest]
            .into_iter()
            .enumerate()
    {
        bytes.extend(message.encode(xid as u32).expect("a short message"));
    }
    for byte in bytes {
        assert_eq!(agent.receive(id, &[byte], START), 1);
    }
    let config = Config { flags: 0, miss_send_length: 128 };
    assert_eq!(
        messages(&mut agent, id, START),
        [
            (0, Message::EchoReply(b"one".into())),
            (1, Message::BarrierReply),
            (2, Message::GetConfigReply(config))
        ]
    );
}

#[test]
fn a_silent_controller_is_asked_and_then_left() {
    let limits = AgentLimits::default();
    let mut agent = agent(limits);
    let id = greeted(&mut agent, START);
    agent.poll(START + limits.silence - Duration::from_millis(1));
    assert_eq!(messages(&mut agent, id, START), []);
    let asked = START + limits.silence;
    agent.poll(asked);
    assert_eq!(messages(&mut agent, id, asked), [(0, Message::EchoRequest(Vec::new()))]);
    send(&mut agent, id, 0, &Message::EchoReply(Vec::new()), asked);
    agent.poll(asked + limits.silence - Duration::from_millis(1));
    assert_eq!(agent.state(id), SessionState::Open);
    let again = asked + limits.silence;
    agent.poll(again);
    agent.poll(again + limits.silence);
    assert_eq!(agent.state(id), SessionState::Closed);

    let mute = agent.connect(START).expect("a session");
    agent.poll(START + limits.greeting);
    assert_eq!(agent.state(mute), SessionState::Closed);
}

#[test]
fn one_master_at_a_time_and_no_stale_elections() {
    let mut agent = agent(AgentLimits::default());
    let (one, two) = (greeted(&mut agent, START), greeted(&mut agent, START));
    assert_eq!(role(&mut agent, one, None, 0), granted(Role::Equal, u64::MAX));
    assert_eq!(role(&mut agent, one, Some(Role::Master), 7), granted(Role::Master, 7));
    assert_eq!(role(&mut agent, two, Some(Role::Master), 8), granted(Role::Master, 8));
    assert_eq!((agent.role(one), agent.role(two)), (Some(Role::Slave), Some(Role::Master)));
    assert_eq!(error_of(&role(&mut agent, one, Some(Role::Master), 7)), ErrorCode::RRFC_STALE);
    assert_eq!(role(&mut agent, one, None, 0), granted(Role::Slave, 8));
    // Numbers wrap around.
    assert_eq!(
        role(&mut agent, two, Some(Role::Master), 7 + (1 << 63)),
        granted(Role::Master, 7 + (1 << 63))
    );
    assert_eq!(role(&mut agent, two, Some(Role::Slave), 3 + (1 << 63)).len(), 1);
    assert_eq!(role(&mut agent, one, Some(Role::Equal), 0), granted(Role::Equal, 7 + (1 << 63)));
}

#[test]
fn slaves_change_nothing_but_read() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    role(&mut agent, id, Some(Role::Slave), 1);
    let group = GroupMod::Delete(None);
    let packet = PacketOut { buffer: None, in_port: 1, actions: Vec::new(), data: frame(60) };
    for message in [to_controller(0), Message::GroupMod(group), Message::PacketOut(packet)] {
        assert_eq!(error_of(&ask(&mut agent, id, &message)), ErrorCode::BRC_IS_SLAVE);
    }
    let request = Message::MultipartRequest { request: MultipartRequest::Table, more: false };
    assert!(matches!(ask(&mut agent, id, &request)[..], [Message::MultipartReply { more: false, .. }]));
}

#[test]
fn controllers_are_told_what_they_asked_for() {
    let mut agent = agent(AgentLimits::default());
    let [master, slave, deaf] = [(); 3].map(|()| greeted(&mut agent, START));
    role(&mut agent, master, Some(Role::Master), 1);
    role(&mut agent, slave, Some(Role::Slave), 1);
    let silence = AsyncConfig { packet_in: [0; 2], port_status: [0; 2], flow_removed: [0; 2] };
    assert_eq!(ask(&mut agent, deaf, &Message::SetAsync(silence)), []);
    assert_eq!(ask(&mut agent, deaf, &Message::GetAsyncRequest), [Message::GetAsyncReply(silence)]);

    assert_eq!(ask(&mut agent, master, &to_controller(0xffff)), []);
    agent.datapath().arrive(2, &frame(60), START);
    let address = MacAddr([2, 0, 0, 0, 0, 1]);
    let port = PortMod { port: 1, address, config: 1, mask: 1, advertise: 0 };
    let found = ask(&mut agent, master, &Message::PortMod(port));
    let [Message::PacketIn(packet), Message::PortStatus(status)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((packet.reason, packet.cookie, packet.buffer), (PacketInReason::NoMatch, 5, None));
    assert_eq!((packet.fields.get(Field::InPort).map(|field| field.0), &packet.data), (Some(2), &frame(60)));
    assert_eq!((status.port.number, status.port.config), (1, 1));
    let told = messages(&mut agent, slave, START);
    assert!(matches!(told[..], [(0, Message::PortStatus(_))]), "{told:?}");
    assert_eq!(messages(&mut agent, deaf, START), []);
    // What happened before a controller came is no news to it.
    agent.datapath().change_port(&port).expect("a port");
    let late = greeted(&mut agent, START);
    agent.poll(START);
    assert_eq!(messages(&mut agent, late, START), []);
    assert!(matches!(messages(&mut agent, master, START)[..], [(0, Message::PortStatus(_))]));
    let no_flood = Message::PortMod(PortMod { config: 1 << 4, mask: 1 << 4, ..port });
    assert_eq!(error_of(&ask(&mut agent, master, &no_flood)), ErrorCode::PMFC_BAD_CONFIG);
}

#[test]
fn a_packet_is_kept_for_the_controller_and_used_once() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    ask(&mut agent, id, &to_controller(20));
    let mut packets = Vec::new();
    for _ in 0..3 {
        agent.datapath().arrive(2, &frame(100), START);
        agent.poll(START);
        let found = messages(&mut agent, id, START);
        let [(0, Message::PacketIn(packet))] = &found[..] else { panic!("{found:?}") };
        assert_eq!((packet.total_length, packet.data.as_slice()), (100, &frame(100)[..20]));
        packets.push(packet.buffer.expect("a buffer"));
    }
    let out = |buffer| {
        let actions = vec![PacketOutAction::Perform(Action::Output(Output::Port(3)))];
        Message::PacketOut(PacketOut { buffer: Some(buffer), in_port: 2, actions, data: Vec::new() })
    };
    assert_eq!(ask(&mut agent, id, &out(packets[0])), []);
    assert_eq!(agent.datapath().transmitted, [(3, frame(100))]);
    assert_eq!(error_of(&ask(&mut agent, id, &out(packets[0]))), ErrorCode::BRC_BUFFER_EMPTY);
    // An entry that names a buffer sends its packet through the tables.
    let entry = Change { priority: 9, ..change(Instructions::output(Output::Port(1))) };
    let entry = Message::FlowMod(FlowMod { change: entry, buffer: Some(packets[1]) });
    assert_eq!(ask(&mut agent, id, &entry), []);
    assert_eq!(agent.datapath().transmitted[1..], [(1, frame(100))]);
    agent.poll(START + AgentLimits::default().buffer);
    assert_eq!(error_of(&ask(&mut agent, id, &out(packets[2]))), ErrorCode::BRC_BUFFER_EMPTY);
}

#[test]
fn invalid_times_to_live_are_reported_to_those_that_ask() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let entry = change(Instructions::apply([Action::SetIpTtl(1), Action::DecIpTtl]));
    let matching = Match::any().with(Field::EthType, 0x0800).expect("a type");
    ask(&mut agent, id, &flow(Change { matching, ..entry }));
    let run = |agent: &mut Agent<Software>| {
        agent.datapath().arrive(1, &frame(200), START);
        agent.poll(START);
        messages(agent, id, START)
    };
    assert_eq!(run(&mut agent), []);
    let reports = AsyncConfig { packet_in: [0b100, 0], ..AsyncConfig::default() };
    ask(&mut agent, id, &Message::SetAsync(reports));
    let found = run(&mut agent);
    let [(_, Message::PacketIn(packet))] = &found[..] else { panic!("{found:?}") };
    assert_eq!((packet.reason, packet.data.len()), (PacketInReason::InvalidTtl, 128));
}

#[test]
fn removed_entries_are_reported_with_the_reason() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let flags = EntryFlags { send_removed: true, ..EntryFlags::default() };
    let group = GroupMod::Add { group: 3, group_type: GroupType::All, buckets: Vec::new() };
    assert_eq!(ask(&mut agent, id, &Message::GroupMod(group)), []);
    let second = Some(Duration::from_secs(1));
    let entries = [
        Change { idle_timeout: second, ..change(Instructions::default()) },
        Change { hard_timeout: second, ..change(Instructions::default()) },
        change(Instructions::output(Output::Port(1))),
        change(Instructions::apply([Action::Group(3)])),
    ];
    for (priority, entry) in (1..).zip(entries) {
        assert_eq!(ask(&mut agent, id, &flow(Change { priority, flags, ..entry })), []);
    }
    agent.poll(START + Duration::from_secs(1));
    let delete = Change { out_port: Some(1), ..Change::new(Command::Delete, Match::any(), 0) };
    send(&mut agent, id, 1, &flow(delete), START);
    send(&mut agent, id, 2, &Message::GroupMod(GroupMod::Delete(Some(3))), START);
    send(&mut agent, id, 3, &Message::BarrierRequest, START);
    let mut reasons = Vec::new();
    let found = messages(&mut agent, id, START);
    for (_, message) in &found {
        if let Message::FlowRemoved(removed) = message {
            reasons.push((removed.priority, removed.reason));
        }
    }
    reasons.sort_by_key(|(priority, _)| *priority);
    assert_eq!(
        reasons,
        [
            (1, FlowRemovedReason::IdleTimeout),
            (2, FlowRemovedReason::HardTimeout),
            (3, FlowRemovedReason::Delete),
            (4, FlowRemovedReason::GroupDelete)
        ]
    );
    assert_eq!(found.last(), Some(&(3, Message::BarrierReply)), "the barrier comes last");
}

/// OpenFlow 1.3.5, 5.8: counters that are not kept are all ones.
#[test]
fn counters_that_an_entry_does_not_keep_are_reported_as_such() {
    let mut agent = agent(AgentLimits::default());
    let id = greeted(&mut agent, START);
    let mut expected = Vec::new();
    for (priority, no_packet_counts, no_byte_counts) in
        [(1, false, false), (2, true, false), (3, false, true), (4, true, true)]
    {
        let flags =
            EntryFlags { no_packet_counts, no_byte_counts, send_removed: true, ..EntryFlags::default() };
        let entry = Change { flags, priority, ..change(Instructions::default()) };
        assert_eq!(ask(&mut agent, id, &flow(entry)), []);
        agent.datapath().arrive(1, &frame(200), START);
        let kept = |is_not: bool, count: u64| if is_not { u64::MAX } else { count };
        expected.push((priority, flags, kept(no_packet_counts, 1), kept(no_byte_counts, 200)));
    }
    let found = ask(&mut agent, id, &all_flows());
    let [Message::MultipartReply { reply: MultipartReply::Flow(flows), .. }] = &found[..] else {
        panic!("{found:?}")
    };
    let mut shown: Vec<_> =
        flows.iter().map(|flow| (flow.priority, flow.flags, flow.packets, flow.bytes)).collect();
    shown.sort_by_key(|(priority, ..)| *priority);
    assert_eq!(shown, expected);
    let removed = ask(&mut agent, id, &flow(Change::new(Command::Delete, Match::any(), 0)));
    let mut removed: Vec<_> = removed
        .iter()
        .map(|message| match message {
            Message::FlowRemoved(removed) => (removed.priority, removed.packets, removed.bytes),
            other => panic!("{other:?}"),
        })
        .collect();
    removed.sort_by_key(|(priority, ..)| *priority);
    let expected: Vec<_> =
        expected.iter().map(|(priority, _, packets, bytes)| (*priority, *packets, *bytes)).collect();
    assert_eq!(removed, expected);
}

fn all_flows() -> Message {
    Message::MultipartRequest { request: MultipartRequest::Flow(FlowSelection::all()), more: false }
}

/// A controller that asks for much and reads nothing costs bounded memory, and gets all answers in the end.
#[test]
fn a_controller_that_does_not_read_is_not_read_from() {
    let limits = AgentLimits { output: 1 << 14, ..AgentLimits::default() };
    let mut agent = agent(limits);
    let id = greeted(&mut agent, START);
    for port in 0..300 {
        let matching = Match::any().with(Field::InPort, port).expect("a port fits");
        let entry = change(Instructions::output(Output::Port(1)));
        assert_eq!(ask(&mut agent, id, &flow(Change { matching, ..entry })), []);
    }
    let request = all_flows().encode(5).expect("a short message");
    let requests = request.repeat(5_000);
    let mut taken = agent.receive(id, &requests, START);
    assert!(taken < 2 * openflow::MAX_MESSAGE, "{taken} bytes were taken");
    taken += agent.receive(id, &requests[taken..], START);
    assert_eq!(agent.receive(id, &requests[taken..], START), 0);
    assert!(agent.output(id).len() < 2 * limits.output);
    agent.datapath().arrive(1, &frame(60), START);
    for _ in 0..3 {
        let found = messages(&mut agent, id, START);
        let flows = found.iter().map(|(xid, message)| match message {
            Message::MultipartReply { reply: MultipartReply::Flow(flows), .. } if *xid == 5 => flows.len(),
            _ => 0,
        });
        let ends = found
            .iter()
            .filter(|(_, message)| matches!(message, Message::MultipartReply { more: false, .. }));
        let (count, ends) = (flows.sum::<usize>(), ends.count());
        assert!(ends > 0 && count == 300 * ends, "{count} flows in {ends} answers");
        let more = agent.receive(id, &requests[taken..taken + request.len() * 3], START);
        assert!(more > 0);
        taken += more;
    }
}

#[test]
fn packets_for_a_controller_that_does_not_read_are_counted() {
    let limits = AgentLimits { output: 1 << 12, ..AgentLimits::default() };
    let mut agent = agent(limits);
    let id = greeted(&mut agent, START);
    ask(&mut agent, id, &to_controller(0xffff));
    for _ in 0..100 {
        agent.datapath().arrive(1, &frame(200), START);
        agent.poll(START);
    }
    let lost = agent.counters().lost_packets;
    let found = messages(&mut agent, id, START).len() as u64;
    assert!(lost > 50 && found > 5 && lost + found == 100, "{lost} lost, {found} sent");
}

#[test]
fn the_number_of_sessions_is_bounded() {
    let mut agent = agent(AgentLimits { sessions: 2, ..AgentLimits::default() });
    let first = agent.connect(START).expect("a session");
    assert!(agent.connect(START).is_some() && agent.connect(START).is_none());
    agent.disconnect(first);
    assert!(agent.connect(START).is_some());
}
