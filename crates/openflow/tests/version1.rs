//! Sessions with controllers of OpenFlow 1.0, as bytes.

#[path = "support/software.rs"]
mod software;

use std::time::Duration;

use flow_table::{Action, Entry};
use openflow::session::{Agent, AgentLimits, SessionId, SessionState};
use software::Software;

const START: Duration = Duration::from_secs(100);

/// All fields are ignored, among them 32 bits of each address.
const ANY: [u8; 40] = {
    let mut any = [0; 40];
    (any[1], any[2], any[3]) = (0x38, 0x20, 0xff);
    any
};

/// An output to port 2 that states 128 bytes.
const TO_PORT_2: [u8; 8] = [0, 0, 0, 8, 0, 2, 0, 128];

/// An output to the controller, of 64 bytes.
const TO_CONTROLLER: [u8; 8] = [0, 0, 0, 8, 0xff, 0xfd, 0, 64];

struct Controller {
    agent: Agent<Software>,
    id: SessionId,
}

/// A message of the switch: its type, number and body.
type Found = (u8, u32, Vec<u8>);

fn message(message_type: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, message_type];
    bytes.extend((body.len() as u16 + 8).to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend(body);
    bytes
}

impl Controller {
    /// A session whose controller greets with the header of its version alone.
    fn greeted() -> Self {
        let mut agent = Agent::new(Software::new(3), AgentLimits::default());
        let id = agent.connect(START).expect("a session");
        let mut controller = Self { agent, id };
        assert_eq!(controller.raw()[..8], [4, 0, 0, 16, 0, 0, 0, 0], "both versions are offered");
        assert_eq!(controller.ask(0, &[]), []);
        assert_eq!(controller.agent.state(id), SessionState::Open);
        controller
    }

    /// All that the switch says.
    fn raw(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.agent.output(self.id).is_empty() {
            all.extend_from_slice(self.agent.output(self.id));
            self.agent.sent(self.id, self.agent.output(self.id).len(), START);
        }
        all
    }

    fn messages(&mut self) -> Vec<Found> {
        let (bytes, mut found, mut at) = (self.raw(), Vec::new(), 0);
        while at < bytes.len() {
            let length = usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
            assert_eq!(bytes[at], 1, "all messages are of version 1.0");
            let xid = u32::from_be_bytes([bytes[at + 4], bytes[at + 5], bytes[at + 6], bytes[at + 7]]);
            found.push((bytes[at + 1], xid, bytes[at + 8..at + length].to_vec()));
            at += length;
        }
        found
    }

    fn ask(&mut self, message_type: u8, body: &[u8]) -> Vec<Found> {
        let bytes = message(message_type, 7, body);
        assert_eq!(self.agent.receive(self.id, &bytes, START), bytes.len());
        self.messages()
    }

    fn arrive(&mut self, frame: &[u8]) -> Vec<Found> {
        self.agent.datapath().arrive(1, frame, START);
        self.agent.poll(START);
        self.messages()
    }

    /// The entries, as bytes.
    fn flows(&mut self) -> Vec<Vec<u8>> {
        let request = [&[0, 1, 0, 0][..], &ANY, &[0xff, 0, 0xff, 0xff]].concat();
        let mut flows = Vec::new();
        for (kind, xid, body) in self.ask(16, &request) {
            assert_eq!((kind, xid, &body[..2]), (17, 7, &[0, 1][..]));
            let mut rest = &body[4..];
            while !rest.is_empty() {
                let (flow, after) = rest.split_at(usize::from(u16::from_be_bytes([rest[0], rest[1]])));
                flows.push(flow.to_vec());
                rest = after;
            }
        }
        flows
    }
}

/// A change: command, priority, flags, port of a deletion.
fn flow_mod(matching: &[u8; 40], command: u8, priority: u16, flags: u8, actions: &[u8]) -> Vec<u8> {
    let mut body = matching.to_vec();
    body.extend([0, 0, 0, 0, 0, 0, 0, 5, 0, command, 0, 0, 0, 60]);
    body.extend(priority.to_be_bytes());
    body.extend([0xff; 6]);
    body.extend([0, flags]);
    body.extend(actions);
    body
}

/// A match of TCP to a net and a port.
fn to_web_server() -> [u8; 40] {
    let mut matching = [0; 40];
    // The type, the protocol, the port, and 24 bits of the destination are compared.
    let wildcards: u32 = 0x38_20ff & !(1 << 4 | 1 << 5 | 1 << 7 | 63 << 14) | 8 << 14;
    matching[..4].copy_from_slice(&wildcards.to_be_bytes());
    matching[22..26].copy_from_slice(&[8, 0, 0, 6]);
    matching[32..36].copy_from_slice(&[192, 0, 2, 0]);
    matching[38..40].copy_from_slice(&[0, 80]);
    matching
}

fn frame(destination_port: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0, 0, 186, 0, 0, 0, 0, 64, 6];
    frame.extend([0, 0, 10, 0, 0, 1, 192, 0, 2, 7, 0, 1, 0, destination_port]);
    frame.resize(200, 7);
    frame
}

fn error(error_type: u8, code: u8) -> Vec<u8> {
    vec![0, error_type, 0, code]
}

#[test]
fn the_switch_introduces_itself_with_its_ports() {
    let mut controller = Controller::greeted();
    let found = controller.ask(5, &[]);
    let [(6, 7, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(body.len(), 24 + 3 * 48);
    assert_eq!(body[8..12], [0, 0, 1, 0], "256 buffers");
    assert_eq!(body[20..24], [0, 0, 0x0f, 0xff], "all actions but those of vendors");
    assert_eq!(body[24..35], [0, 1, 2, 0, 0, 0, 0, 1, b'p', b'1', 0]);
    assert_eq!(body[24 + 96..24 + 98], [0, 3]);
    assert_eq!(controller.ask(7, &[]), [(8, 7, vec![0, 0, 0, 128])]);
    assert_eq!(controller.ask(9, &[0, 0, 0, 200]), []);
    assert_eq!(controller.ask(7, &[]), [(8, 7, vec![0, 0, 0, 200])]);
    assert_eq!(controller.ask(2, b"there?"), [(3, 7, b"there?".to_vec())]);
    assert_eq!(controller.ask(18, &[]), [(19, 7, Vec::new())]);
    assert_eq!(controller.ask(20, &[0, 1, 0, 0]), [(21, 7, vec![0, 1, 0, 0, 0, 0, 0, 0])]);
    // A port that is not flooded, which later versions do not know.
    let address = [2, 0, 0, 0, 0, 1];
    let change = [&[0, 1][..], &address, &[0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let found = controller.ask(15, &change);
    let [(12, 0, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((body[0], &body[8..16], &body[32..36]), (2, &change[..8], &[0, 0, 0, 16][..]));
}

#[test]
fn entries_are_reported_as_they_were_added() {
    let mut controller = Controller::greeted();
    let actions = [
        &[0, 1, 0, 8, 0, 9, 0, 0][..],
        &[0, 2, 0, 8, 3, 0, 0, 0],
        &[0, 3, 0, 8, 0, 0, 0, 0],
        &[0, 4, 0, 16, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        &[0, 5, 0, 16, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        &[0, 6, 0, 8, 10, 0, 0, 1],
        &[0, 7, 0, 8, 10, 0, 0, 2],
        &[0, 8, 0, 8, 0x28, 0, 0, 0],
        &[0, 9, 0, 8, 0, 81, 0, 0],
        &[0, 10, 0, 8, 0, 82, 0, 0],
        &TO_PORT_2,
        &[0, 11, 0, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4],
    ]
    .concat();
    // IPv6 has no addresses in the match, but the other fields.
    let mut ip6 = to_web_server();
    ip6[..4].copy_from_slice(&(0x38_20ffu32 & !(1 << 4 | 1 << 5 | 1 << 7 | 1 << 21)).to_be_bytes());
    ip6[22..25].copy_from_slice(&[0x86, 0xdd, 0x20]);
    ip6[32..36].fill(0);
    for (matching, priority) in [(to_web_server(), 9), (ANY, 8), (ip6, 7)] {
        assert_eq!(controller.ask(14, &flow_mod(&matching, 0, priority, 0, &actions)), []);
        let flows = controller.flows();
        let flow = flows.iter().find(|flow| flow[52..54] == u16::to_be_bytes(priority)).expect("the entry");
        assert_eq!((&flow[4..44], flow[88..].to_vec()), (&matching[..], actions.clone()), "{flow:?}");
        assert_eq!(flow[56..58], [0, 60], "the hard timeout");
        assert_eq!(flow[64..72], [0, 0, 0, 0, 0, 0, 0, 5], "the cookie");
    }
}

/// OpenFlow 1.0, 3.4 and 4.6: entries that ignore no field come first, modifications add, and deletions select by port.
#[test]
fn changes_have_the_rules_of_the_version() {
    let mut controller = Controller::greeted();
    let exact = [0; 40];
    assert_eq!(controller.ask(14, &flow_mod(&exact, 0, 3, 0, &[])), []);
    assert_eq!(controller.flows()[0][52..54], [0xff, 0xff]);
    for (command, priority) in [(1, 4), (2, 5)] {
        assert_eq!(controller.ask(14, &flow_mod(&to_web_server(), command, priority, 0, &TO_PORT_2)), []);
    }
    let priorities = |controller: &mut Controller| {
        let flows = controller.flows();
        let mut all: Vec<_> = flows.iter().map(|flow| u16::from_be_bytes([flow[52], flow[53]])).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(priorities(&mut controller), [4, 5, 0xffff]);
    // Now there is one to modify.
    assert_eq!(controller.ask(14, &flow_mod(&to_web_server(), 1, 6, 0, &TO_CONTROLLER)), []);
    assert_eq!(priorities(&mut controller), [4, 5, 0xffff]);
    assert!(controller.flows().iter().filter(|flow| flow[88..] == TO_CONTROLLER).count() == 2);
    let mut delete = flow_mod(&ANY, 3, 0, 0, &[]);
    delete[60..62].copy_from_slice(&[0, 2]);
    assert_eq!(controller.ask(14, &delete), []);
    assert_eq!(priorities(&mut controller), [4, 5, 0xffff], "none outputs to port 2");
    assert_eq!(controller.ask(14, &flow_mod(&ANY, 3, 0, 0, &[])), []);
    assert_eq!(controller.flows(), Vec::<Vec<u8>>::new());
}

#[test]
fn packets_that_no_entry_matches_go_to_the_controller() {
    let mut controller = Controller::greeted();
    let found = controller.arrive(&frame(80));
    let [(10, 0, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(body[4..10], [0, 200, 0, 1, 0, 0], "length, port, reason");
    assert_eq!(body[10..], frame(80)[..128], "as many bytes as configured");
    // It comes out of the buffer, changed, and with a tag.
    let actions = [&[0, 1, 0, 8, 0, 9, 0, 0][..], &TO_PORT_2].concat();
    let packet_out = [&body[..4], &[0, 1, 0, 16], &actions].concat();
    assert_eq!(controller.ask(13, &packet_out), []);
    let (port, sent) = controller.agent.datapath().transmitted.pop().expect("a frame");
    assert_eq!((port, &sent[12..16], &sent[16..]), (2, &[0x81, 0, 0, 9][..], &frame(80)[12..]));
    assert_eq!(
        controller.ask(13, &packet_out),
        [(1, 7, [&error(1, 7)[..], &message(13, 7, &packet_out)].concat())]
    );
    // An entry sends it there for another reason.
    assert_eq!(controller.ask(14, &flow_mod(&to_web_server(), 0, 9, 0, &TO_CONTROLLER)), []);
    let found = controller.arrive(&frame(80));
    let [(10, 0, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&body[4..10], body.len()), (&[0, 200, 0, 1, 1, 0][..], 10 + 64));
    // Through the table again, which has no entry for this one.
    let packet_out =
        [&[0xff, 0xff, 0xff, 0xff, 0, 2, 0, 8, 0, 0, 0, 8, 0xff, 0xf9, 0, 0][..], &frame(81)].concat();
    let found = controller.ask(13, &packet_out);
    let [(10, 0, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(body[6..9], [0, 2, 0]);
}

#[test]
fn removed_entries_are_reported() {
    let mut controller = Controller::greeted();
    assert_eq!(controller.ask(14, &flow_mod(&to_web_server(), 0, 9, 1, &TO_PORT_2)), []);
    controller.arrive(&frame(80));
    let found = controller.ask(14, &flow_mod(&ANY, 3, 0, 0, &[]));
    let [(11, 0, body)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&body[..40], body.len()), (&to_web_server()[..], 80));
    assert_eq!(body[48..51], [0, 9, 2], "priority and reason");
    assert_eq!(
        (&body[64..72], &body[72..]),
        (&[0, 0, 0, 0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 0, 0, 200][..])
    );
}

#[test]
fn statistics_have_the_sizes_of_the_version() {
    let mut controller = Controller::greeted();
    controller.ask(14, &flow_mod(&to_web_server(), 0, 9, 0, &TO_PORT_2));
    controller.arrive(&frame(80));
    let selection = [&ANY[..], &[0xff, 0, 0, 2]].concat();
    for (kind, request, length) in [
        (0, &[][..], 1056),
        (2, &selection, 24),
        (3, &[], 64 * 64),
        (4, &[0xff, 0xff, 0, 0, 0, 0, 0, 0], 3 * 104),
        (4, &[0, 2, 0, 0, 0, 0, 0, 0], 104),
        (5, &[0xff, 0xfc, 0, 0, 0xff, 0xff, 0xff, 0xff], 0),
    ] {
        let found = controller.ask(16, &[&[0, kind, 0, 0][..], request].concat());
        let [(17, 7, body)] = &found[..] else { panic!("{kind}: {found:?}") };
        assert_eq!((&body[..4], body.len()), (&[0, kind, 0, 0][..], 4 + length), "{kind}");
        match kind {
            2 => assert_eq!(
                body[4..28],
                [[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 200], [0, 0, 0, 1, 0, 0, 0, 0]].concat()
            ),
            3 => {
                assert_eq!(
                    body[40..52],
                    [0, 0x3f, 0xff, 0xff, 0, 1, 0, 0, 0, 0, 0, 1],
                    "entries that fit, and are there"
                );
                assert_eq!((body[59], body[67]), (1, 1), "lookups and matches");
            }
            _ => {}
        }
    }
}

#[test]
fn refusals_have_the_codes_of_the_version() {
    let mut controller = Controller::greeted();
    let emergency = flow_mod(&ANY, 0, 0, 4, &[]);
    for (kind, body, expected) in [
        (4, &[0, 0, 0x23, 0x20, 0, 0, 0, 1][..], error(1, 3)),
        (14, &emergency, error(3, 5)),
        (14, &flow_mod(&ANY, 9, 0, 0, &[]), error(3, 4)),
        (14, &flow_mod(&ANY, 0, 0, 0, &[0, 12, 0, 8, 0, 0, 0, 0]), error(2, 0)),
        (14, &flow_mod(&ANY, 0, 0, 0, &[0xff, 0xff, 0, 8, 0, 0, 0x23, 0x20]), error(2, 2)),
        (14, &flow_mod(&ANY, 0, 0, 0, &[0, 0, 0, 7, 0, 0, 0, 0]), error(2, 1)),
        (14, &flow_mod(&ANY, 0, 0, 0, &[0, 0, 0, 8, 0xff, 0xff, 0, 0]), error(2, 4)),
        (14, &flow_mod(&ANY, 0, 0, 0, &[0, 1, 0, 8, 0x10, 0, 0, 0]), error(2, 5)),
        (14, &emergency[..60], error(1, 6)),
        (15, &[0; 24], error(4, 0)),
        (16, &[0, 6, 0, 0], error(1, 2)),
        (16, &[0xff, 0xff, 0, 0, 0, 0, 0, 1], error(1, 3)),
        (20, &[0, 9, 0, 0], error(5, 0)),
        (6, &[], error(1, 1)),
        (22, &[], error(1, 1)),
    ] {
        let found = controller.ask(kind, body);
        let [(1, 7, answer)] = &found[..] else { panic!("{kind} {expected:?}: {found:?}") };
        let sent = message(kind, 7, body);
        assert_eq!(answer[..4], expected, "{kind} {body:?}");
        assert_eq!(answer[4..], sent[..sent.len().min(64)]);
    }
    // A message of another version.
    let bytes = [4, 2, 0, 8, 0, 0, 0, 9];
    controller.agent.receive(controller.id, &bytes, START);
    assert_eq!(controller.messages(), [(1, 9, [&error(1, 0)[..], &bytes].concat())]);
}

/// Sets a VLAN number, a priority, and removes a tag.
const SET_VID: [u8; 8] = [0, 1, 0, 8, 0, 9, 0, 0];
const SET_PCP: [u8; 8] = [0, 2, 0, 8, 3, 0, 0, 0];
const STRIP: [u8; 8] = [0, 3, 0, 8, 0, 0, 0, 0];

/// A match of frames without a tag, or with a number or any priority.
fn of_vlan(wildcard: u32, vlan: u16) -> [u8; 40] {
    let mut matching = ANY;
    let wildcards = u32::from_be_bytes([ANY[0], ANY[1], ANY[2], ANY[3]]) & !wildcard;
    matching[..4].copy_from_slice(&wildcards.to_be_bytes());
    matching[18..20].copy_from_slice(&vlan.to_be_bytes());
    matching
}

/// What a controller of 1.3 sees of actions on VLAN tags is 1.3's own wherever the match tells whether there is a tag. Frames become
/// the same, and the controller of 1.0 sees what it added.
#[test]
fn actions_on_tags_are_those_of_later_versions_where_they_mean_the_same() {
    let tagged = |tags: &[u8]| {
        let tags: Vec<u8> = tags.iter().flat_map(|number| [0x81, 0, 0, *number]).collect();
        [&frame(80)[..12], &tags, &frame(80)[12..]].concat()
    };
    let lists: Vec<Vec<[u8; 8]>> = (0..4u32.pow(3))
        .map(|list| {
            (0..3)
                .filter_map(move |at| [SET_VID, SET_PCP, STRIP].get((list >> (2 * at) & 3) as usize).copied())
        })
        .map(Iterator::collect)
        .collect();
    let [dl_vlan, dl_vlan_pcp] = [1 << 1, 1 << 20];
    for actions in lists {
        let mut sent = Vec::new();
        for (matching, frames) in [
            (ANY, [tagged(&[]), tagged(&[5]), tagged(&[5, 6])].to_vec()),
            (of_vlan(dl_vlan, 0xffff), vec![tagged(&[])]),
            (of_vlan(dl_vlan, 5), vec![tagged(&[5]), tagged(&[5, 6])]),
            (of_vlan(dl_vlan_pcp, 0), vec![tagged(&[5]), tagged(&[5, 6])]),
        ] {
            let mut controller = Controller::greeted();
            let list = [&actions.concat()[..], &TO_PORT_2].concat();
            assert_eq!(controller.ask(14, &flow_mod(&matching, 0, 9, 0, &list)), []);
            let flows = controller.flows();
            assert_eq!((&flows[0][4..44], &flows[0][88..]), (&matching[..], &list[..]));
            let is_own = |action: &Action| {
                matches!(action, Action::TagVlanVid(_) | Action::TagVlanPcp(_) | Action::StripVlan)
            };
            let own = |entry: Entry<'_>| entry.instructions.apply.iter().filter(|one| is_own(one)).count();
            let own: usize = controller.agent.datapath().pipeline.entries().map(own).sum();
            // After a tag is removed, another may follow. Removing none is no action of 1.3.
            let strips = actions.iter().filter(|action| **action == STRIP).count();
            assert!(own <= if matching == ANY { 3 } else { 2 * strips }, "{actions:?}: {own}");
            for frame in &frames {
                assert_eq!(controller.arrive(frame), []);
                let (port, becomes) = controller.agent.datapath().transmitted.pop().expect("a frame");
                assert_eq!(port, 2);
                match matching == ANY {
                    true => sent.push((frame.clone(), becomes)),
                    false => assert!(sent.contains(&(frame.clone(), becomes)), "{actions:?} {matching:?}"),
                }
            }
        }
    }
}

/// A switch has the bits of 1.0; those of 1.3 are fewer, and one of them means two.
#[test]
fn configurations_of_ports_are_those_of_the_version() {
    let mut controller = Controller::greeted();
    let later = controller.agent.connect(START).expect("a session");
    let of_later = |controller: &mut Controller, bytes: &[u8]| {
        assert_eq!(controller.agent.receive(later, bytes, START), bytes.len());
        let found = controller.agent.output(later).to_vec();
        controller.agent.sent(later, found.len(), START);
        found
    };
    of_later(&mut controller, &[4, 0, 0, 8, 0, 0, 0, 0]);
    let address = [2, 0, 0, 0, 0, 1];
    let change =
        |config: u8, mask: u8| [&[0, 1][..], &address, &[0, 0, 0, config, 0, 0, 0, mask], &[0; 8]].concat();
    let later_change = |config: u8, mask: u8| {
        let body =
            [&[0, 0, 0, 1, 0, 0, 0, 0][..], &address, &[0, 0, 0, 0, 0, config, 0, 0, 0, mask], &[0; 8]]
                .concat();
        [&[4, 16, 0, 40, 0, 0, 0, 7][..], &body].concat()
    };
    let is_refused = |found: &[u8]| found[1] == 1 && found[8..12] == error(7, 2);
    // What both are told: the switch has the bits of 1.0, of which 1.3 has some.
    for (config, seen) in [(0b100, 0b100), (0b1000, 0), (0b1_1100, 0b100), (0b10_0000, 0b10_0000)] {
        let found = controller.ask(15, &change(config, 0xff));
        let [(12, 0, body)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(body[32..36], [0, 0, 0, config]);
        let told = of_later(&mut controller, &[]);
        assert_eq!((told[1], told[16 + 32 + 3]), (12, seen), "{told:?}");
        // Port description.
        let shown = of_later(&mut controller, &[4, 18, 0, 16, 0, 0, 0, 7, 0, 13, 0, 0, 0, 0, 0, 0]);
        assert_eq!((shown[1], shown[16 + 32 + 3]), (19, seen), "{shown:?}");
    }
    for (config, mask, becomes) in [(0b100, 0b100, 0b10_1100), (0, 0b100, 0b10_0000), (0x10, 0, 0b10_0000)] {
        let told = of_later(&mut controller, &later_change(config, mask));
        assert_eq!((told[1], told[16 + 32 + 3]), (12, becomes & 0b110_0101));
        let found = controller.messages();
        let [(12, 0, body)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(body[32..36], [0, 0, 0, becomes]);
    }
    for bit in [0b1000, 0b1_0000] {
        assert!(is_refused(&of_later(&mut controller, &later_change(bit, bit))));
        assert_eq!(controller.messages(), []);
    }
}
