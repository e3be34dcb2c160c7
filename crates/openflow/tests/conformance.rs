//! What OpenFlow 1.3.5 demands of every switch, by section, as far as other tests do not show it.

#[path = "support/controller.rs"]
mod controller;
#[path = "support/software.rs"]
mod software;

use std::time::Duration;

use controller::{START, agent, ask, greeted, messages, send};
use flow_table::{
    Action, Bucket, Change, Command, EntryFlags, Field, GroupType, Instructions, Match, Output, port_number,
};
use openflow::ErrorCode;
use openflow::message::{
    Aggregate, Config, Features, FlowMod, FlowSelection, FlowStats, GroupMod, Message, MultipartReply,
    MultipartRequest, PacketIn, PacketInReason, PacketOut, PacketOutAction,
};
use openflow::session::{Agent, AgentLimits, SessionId};
use software::Software;

const SECOND: Duration = Duration::from_secs(1);

/// A switch with three ports, and one controller.
struct Bench {
    agent: Agent<Software>,
    id: SessionId,
    now: Duration,
}

impl Bench {
    fn new() -> Self {
        let mut agent = agent(AgentLimits::default());
        let id = greeted(&mut agent, START);
        assert_eq!(ask(&mut agent, id, &Message::BarrierRequest), [Message::BarrierReply]);
        Self { agent, id, now: START }
    }

    fn ask(&mut self, message: &Message) -> Vec<Message> {
        send(&mut self.agent, self.id, 77, message, self.now);
        self.told()
    }

    fn told(&mut self) -> Vec<Message> {
        messages(&mut self.agent, self.id, self.now).into_iter().map(|(_, message)| message).collect()
    }

    /// Changes entries, which says nothing.
    fn change(&mut self, change: &Change) {
        let message = Message::FlowMod(FlowMod { change: change.clone(), buffer: None });
        assert_eq!(self.ask(&message), [], "{change:?}");
    }

    fn report(&mut self, request: MultipartRequest) -> MultipartReply {
        let found = self.ask(&Message::MultipartRequest { request, more: false });
        let [Message::MultipartReply { reply, more: false }] = &found[..] else { panic!("{found:?}") };
        reply.clone()
    }

    fn flows(&mut self, selection: FlowSelection) -> Vec<FlowStats> {
        match self.report(MultipartRequest::Flow(selection)) {
            MultipartReply::Flow(flows) => flows,
            other => panic!("{other:?}"),
        }
    }

    /// The cookies of the entries, in order.
    fn cookies(&mut self, selection: FlowSelection) -> Vec<u64> {
        let mut cookies: Vec<u64> = self.flows(selection).iter().map(|flow| flow.cookie).collect();
        cookies.sort_unstable();
        cookies
    }

    /// What the controller gets of a frame that arrives.
    fn arrive(&mut self, port: u32, frame: &[u8]) -> Vec<Message> {
        self.agent.datapath().arrive(port, frame, self.now);
        self.agent.poll(self.now);
        self.told()
    }

    fn packet(&mut self, frame: &[u8]) -> PacketIn {
        let found = self.arrive(2, frame);
        let [Message::PacketIn(packet)] = &found[..] else { panic!("{found:?}") };
        packet.clone()
    }

    fn error(&mut self, message: &Message) -> ErrorCode {
        let found = self.ask(message);
        let [Message::Error { code, .. }] = found[..] else { panic!("{found:?}") };
        code
    }
}

fn frame() -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5][..], &[7; 186]].concat()
}

fn to(port: u32) -> Instructions {
    Instructions::output(Output::Port(port))
}

fn entry(priority: u16, matching: Match, cookie: u64) -> Change {
    Change { cookie, instructions: to(1), ..Change::new(Command::Add, matching, priority) }
}

fn from(port: u32) -> Match {
    Match::any().with(Field::InPort, port.into()).expect("a port")
}

/// 6.3.1 and 7.3.1: what a switch says of itself. No connection is auxiliary (6.3.7).
#[test]
fn a_switch_says_what_it_is() {
    let mut bench = Bench::new();
    let found = bench.ask(&Message::FeaturesRequest);
    let [Message::FeaturesReply(features)] = &found[..] else { panic!("{found:?}") };
    let Features { datapath, buffers, tables, auxiliary, capabilities } = *features;
    // Statistics of entries, tables, ports and groups.
    assert_eq!((datapath, buffers, tables, auxiliary, capabilities), (0x42, 256, 64, 0, 0b1111));
}

/// 5.4: without an entry that matches all packets at priority 0, a packet that matches none is dropped. That entry is one as others.
#[test]
fn an_entry_for_misses_is_one_as_others() {
    let mut bench = Bench::new();
    assert_eq!(bench.arrive(2, &frame()), []);
    let output = Output::Controller { max_length: 0xffff };
    let miss = Change { instructions: Instructions::output(output), ..entry(0, Match::any(), 3) };
    bench.change(&Change { idle_timeout: Some(SECOND), ..miss.clone() });
    let packet = bench.packet(&frame());
    assert_eq!((packet.reason, packet.cookie, packet.table), (PacketInReason::NoMatch, 3, 0));
    // Time ends it.
    bench.now += 2 * SECOND;
    assert_eq!(bench.arrive(2, &frame()).len(), 1, "it was used until now");
    bench.now += SECOND;
    assert_eq!(bench.arrive(2, &frame()).len(), 1);
    bench.now += 2 * SECOND;
    bench.agent.poll(bench.now);
    assert_eq!(bench.flows(FlowSelection::all()), []);
    assert_eq!(bench.arrive(2, &frame()), []);
    // The same of another priority, or for fewer packets, is no miss. A deletion removes it.
    for change in [Change { priority: 1, ..miss.clone() }, Change { matching: from(2), ..miss.clone() }] {
        bench.change(&change);
        assert_eq!(bench.packet(&frame()).reason, PacketInReason::Action);
        bench.change(&miss);
        bench.change(&Change { command: Command::DeleteStrict, ..change });
        assert_eq!(bench.packet(&frame()).reason, PacketInReason::NoMatch);
        bench.change(&Change { command: Command::DeleteStrict, ..miss.clone() });
        assert_eq!(bench.arrive(2, &frame()), []);
    }
}

/// 6.4: an entry with the match and priority of another takes its place. Nothing is reported; its time starts again.
#[test]
fn an_entry_takes_the_place_of_an_equal_one() {
    let mut bench = Bench::new();
    let flags = EntryFlags { send_removed: true, ..EntryFlags::default() };
    bench.change(&Change { flags, ..entry(5, from(2), 1) });
    bench.arrive(2, &frame());
    bench.now += SECOND;
    assert_eq!(bench.flows(FlowSelection::all())[0].age, SECOND);
    let timeouts =
        Change { idle_timeout: Some(9 * SECOND), hard_timeout: Some(8 * SECOND), ..entry(5, from(2), 2) };
    for (reset_counts, packets) in [(false, 1), (true, 0)] {
        bench.change(&Change {
            flags: EntryFlags { reset_counts, ..EntryFlags::default() },
            ..timeouts.clone()
        });
        let flows = bench.flows(FlowSelection::all());
        let found: Vec<_> =
            flows.iter().map(|flow| (flow.cookie, flow.packets, flow.bytes, flow.age)).collect();
        assert_eq!(found, [(2, packets, 200 * packets, Duration::ZERO)]);
        assert_eq!((flows[0].idle_timeout, flows[0].hard_timeout), (Some(9 * SECOND), Some(8 * SECOND)));
        assert!(!flows[0].flags.send_removed);
    }
    // The same match in another table, or of another priority, is another entry.
    bench.change(&Change { table: Some(1), ..entry(5, from(2), 3) });
    bench.change(&entry(6, from(2), 4));
    assert_eq!(bench.cookies(FlowSelection::all()), [2, 3, 4]);
}

/// 6.4: a modification changes instructions alone, and adds nothing.
#[test]
fn modifications_change_instructions_alone() {
    let mut bench = Bench::new();
    let flags = EntryFlags { send_removed: true, no_byte_counts: true, ..EntryFlags::default() };
    let first = Change { flags, idle_timeout: Some(60 * SECOND), ..entry(5, from(2), 1) };
    bench.change(&first);
    bench.arrive(2, &frame());
    let before = bench.flows(FlowSelection::all());
    for (command, matching, priority, port) in [
        (Command::Modify, Match::any(), 9, 2),
        (Command::ModifyStrict, from(2), 5, 3),
        // These select nothing.
        (Command::ModifyStrict, from(2), 6, 1),
        (Command::ModifyStrict, Match::any(), 5, 1),
        (Command::Modify, from(3), 5, 1),
    ] {
        let change =
            Change { cookie: 7, hard_timeout: Some(SECOND), ..Change::new(command, matching, priority) };
        bench.change(&Change { instructions: to(port), ..change });
        let expected = FlowStats { instructions: to(if port == 2 { 2 } else { 3 }), ..before[0].clone() };
        assert_eq!(bench.flows(FlowSelection::all()), [expected], "{command:?} {matching:?} {priority}");
    }
    let reset = EntryFlags { reset_counts: true, ..EntryFlags::default() };
    let change = Change::new(Command::Modify, Match::any(), 0);
    bench.change(&Change { flags: reset, instructions: to(3), ..change.clone() });
    assert_eq!(bench.flows(FlowSelection::all())[0].packets, 0);
    // A cookie selects what is modified.
    bench.change(&entry(6, from(3), 0x12));
    bench.change(&Change { cookie: 0x10, cookie_mask: 0xf0, instructions: to(2), ..change });
    let ports: Vec<_> =
        bench.flows(FlowSelection::all()).into_iter().map(|flow| (flow.cookie, flow.instructions)).collect();
    assert_eq!((ports.len(), ports.contains(&(1, to(3))), ports.contains(&(0x12, to(2)))), (2, true, true));
}

/// 6.4: what a deletion selects, and statistics alike (7.3.5.2): the table, the match, the port, the group and the cookie; and strictly,
/// the priority.
#[test]
fn deletions_and_statistics_select_the_same_entries() {
    let tcp = || {
        let ip = from(2).with(Field::EthType, 0x0800).expect("a type");
        ip.with(Field::IpProto, 6).expect("a protocol")
    };
    let group = Instructions::apply([Action::Group(3), Action::Output(Output::Port(2))]);
    let entries = [
        entry(5, from(2), 0x11),
        Change { table: Some(1), ..entry(5, from(2), 0x12) },
        Change { instructions: group, ..entry(6, tcp(), 0x21) },
        entry(7, from(3), 0x22),
    ];
    let selection = |matching: Match| FlowSelection { matching, ..FlowSelection::all() };
    for (selection, expected) in [
        (FlowSelection::all(), &[0x11, 0x12, 0x21, 0x22][..]),
        (selection(from(2)), &[0x11, 0x12, 0x21]),
        (selection(tcp()), &[0x21]),
        (FlowSelection { table: Some(1), ..FlowSelection::all() }, &[0x12]),
        (FlowSelection { table: Some(63), ..FlowSelection::all() }, &[]),
        (FlowSelection { out_port: Some(1), ..FlowSelection::all() }, &[0x11, 0x12, 0x22]),
        (FlowSelection { out_port: Some(2), ..selection(from(2)) }, &[0x21]),
        (FlowSelection { out_group: Some(3), ..FlowSelection::all() }, &[0x21]),
        (FlowSelection { out_group: Some(4), ..FlowSelection::all() }, &[]),
        (FlowSelection { cookie: 0x10, cookie_mask: 0xf0, ..FlowSelection::all() }, &[0x11, 0x12]),
        (FlowSelection { cookie: 0x12, cookie_mask: 0x0f, ..FlowSelection::all() }, &[0x12, 0x22]),
    ] {
        let mut bench = Bench::new();
        let add = GroupMod::Add { group: 3, group_type: GroupType::All, buckets: Vec::new() };
        assert_eq!(bench.ask(&Message::GroupMod(add)), []);
        entries.iter().for_each(|change| bench.change(change));
        bench.arrive(3, &frame());
        assert_eq!(bench.cookies(selection), expected, "{selection:?}");
        let packets = u64::from(expected.contains(&0x22));
        assert_eq!(
            bench.report(MultipartRequest::Aggregate(selection)),
            MultipartReply::Aggregate(Aggregate {
                packets,
                bytes: 200 * packets,
                flows: expected.len() as u32
            })
        );
        let FlowSelection { table, out_port, out_group, cookie, cookie_mask, matching } = selection;
        // The priority is no matter.
        let delete = Change::new(Command::Delete, matching, 1);
        bench.change(&Change { table, out_port, out_group, cookie, cookie_mask, ..delete });
        let left: Vec<u64> =
            [0x11, 0x12, 0x21, 0x22].into_iter().filter(|one| !expected.contains(one)).collect();
        assert_eq!(bench.cookies(FlowSelection::all()), left, "{selection:?}");
    }
    let mut bench = Bench::new();
    entries.iter().filter(|change| change.cookie != 0x21).for_each(|change| bench.change(change));
    for (matching, priority, table, left) in [
        (Match::any(), 5, None, 3),
        (from(2), 6, None, 3),
        (from(2), 5, Some(2), 3),
        (from(2), 5, Some(1), 2),
        (from(3), 7, None, 1),
    ] {
        bench.change(&Change { table, ..Change::new(Command::DeleteStrict, matching, priority) });
        assert_eq!(bench.flows(FlowSelection::all()).len(), left, "{matching:?} {priority} {table:?}");
    }
    // A table that is not there has no statistics (7.4.4, `OFPBRC_BAD_TABLE_ID`).
    let selection = FlowSelection { table: Some(64), ..FlowSelection::all() };
    for request in [MultipartRequest::Flow(selection), MultipartRequest::Aggregate(selection)] {
        let request = Message::MultipartRequest { request, more: false };
        assert_eq!(bench.error(&request), ErrorCode::BRC_BAD_TABLE_ID);
    }
}

/// 7.3.2 and 7.4.1: how much of a packet a controller gets, and that it learns the whole length.
#[test]
fn a_controller_gets_as_much_of_a_packet_as_it_asked_for() {
    let mut bench = Bench::new();
    for (max_length, bytes) in [(0, 0), (60, 60), (199, 199), (200, 200), (0xffe5, 200), (0xffff, 200)] {
        let output = Output::Controller { max_length };
        bench.change(&Change { instructions: Instructions::output(output), ..entry(0, Match::any(), 3) });
        let packet = bench.packet(&frame());
        assert_eq!((packet.data.len(), packet.total_length), (bytes, 200), "{max_length}");
        assert_eq!(packet.buffer.is_some(), bytes < 200, "what is cut is kept");
        assert_eq!(packet.fields.get(Field::InPort).map(|(port, _)| port), Some(2));
    }
    // What no output action states is that of the configuration: here of a packet whose time to live ends.
    let ends = Instructions::apply([Action::SetIpTtl(1), Action::DecIpTtl]);
    let ip = Match::any().with(Field::EthType, 0x0800).expect("a type");
    bench.change(&Change { instructions: ends, ..entry(5, ip, 4) });
    let mut packet = frame();
    packet[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 186, 0, 0, 0, 0, 64, 17]);
    let reports = openflow::message::AsyncConfig { packet_in: [0b111, 0], ..Default::default() };
    assert_eq!(bench.ask(&Message::SetAsync(reports)), []);
    for (miss_send_length, bytes) in [(0, 0), (64, 64), (0xffff, 200)] {
        let config = Config { flags: 0, miss_send_length };
        assert_eq!(bench.ask(&Message::SetConfig(config)), []);
        assert_eq!(bench.ask(&Message::GetConfigRequest), [Message::GetConfigReply(config)]);
        let found = bench.packet(&packet);
        assert_eq!((found.reason, found.data.len()), (PacketInReason::InvalidTtl, bytes));
    }
}

/// 4.5 and 7.3.7: a packet of a controller enters at the port that the message names, of which the controller is one.
#[test]
fn packets_of_a_controller_enter_where_it_says() {
    let mut bench = Bench::new();
    bench.change(&Change { instructions: to(1), ..entry(5, from(port_number::CONTROLLER), 1) });
    bench.change(&Change { instructions: to(2), ..entry(5, from(3), 2) });
    let out = |in_port, actions: &[PacketOutAction]| {
        Message::PacketOut(PacketOut { buffer: None, in_port, actions: actions.to_vec(), data: frame() })
    };
    let mut sent = Vec::new();
    for in_port in [port_number::CONTROLLER, 3, 2] {
        assert_eq!(bench.ask(&out(in_port, &[PacketOutAction::Table])), []);
        sent.extend(std::mem::take(&mut bench.agent.datapath().transmitted));
    }
    assert_eq!(sent, [(1, frame()), (2, frame())]);
    // To all ports but that one; and without actions to none (7.3.7).
    let perform = |output| PacketOutAction::Perform(Action::Output(output));
    for (in_port, actions, expected) in [
        (port_number::CONTROLLER, vec![perform(Output::All)], &[1, 2, 3][..]),
        (2, vec![perform(Output::All)], &[1, 3]),
        (2, vec![perform(Output::InPort)], &[2]),
        (2, Vec::new(), &[]),
    ] {
        assert_eq!(bench.ask(&out(in_port, &actions)), []);
        let sent = std::mem::take(&mut bench.agent.datapath().transmitted);
        assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), expected);
    }
}

/// 5.10 and 5.6: the set of actions that the tables collect is performed at the end, once, and a group has the frame for itself.
#[test]
fn actions_of_the_set_come_at_the_end() {
    let mut bench = Bench::new();
    let source = |last: u128| Action::SetField(Field::EthSrc, 0x0200_0000_0000 | last);
    let port = |port| Action::Output(Output::Port(port));
    let bucket = Bucket { actions: vec![port(3), source(0x33)], ..Bucket::default() };
    let add = GroupMod::Add { group: 3, group_type: GroupType::All, buckets: vec![bucket] };
    assert_eq!(bench.ask(&Message::GroupMod(add)), []);
    let write = vec![port(1), source(0x11)];
    let first =
        Instructions { write, goto: Some(1), ..Instructions::apply([port(2), Action::Group(3), port(2)]) };
    let with_source = |last: u8| [&frame()[..11], &[last], &frame()[12..]].concat();
    for (second, expected) in [
        (Instructions::default(), &[(1, 0x11)][..]),
        (Instructions { write: vec![port(2)], ..Instructions::default() }, &[(2, 0x11)]),
        (Instructions { clear: true, ..Instructions::default() }, &[]),
        (Instructions { clear: true, write: vec![port(3)], ..Instructions::default() }, &[(3, 8)]),
        // A group takes the place of an output.
        (Instructions { write: vec![Action::Group(3)], ..Instructions::default() }, &[(3, 0x33)]),
        (Instructions::apply([source(0x22), port(1)]), &[(1, 0x22), (1, 0x11)]),
    ] {
        bench.change(&Change { instructions: first.clone(), ..entry(5, from(2), 1) });
        bench.change(&Change { table: Some(1), instructions: second, ..entry(0, Match::any(), 2) });
        assert_eq!(bench.arrive(2, &frame()), []);
        let found = std::mem::take(&mut bench.agent.datapath().transmitted);
        let applied = [(2, 8), (3, 0x33), (2, 8)];
        let all: Vec<_> =
            applied.iter().chain(expected).map(|(port, last)| (*port, with_source(*last))).collect();
        assert_eq!(found, all);
    }
}
