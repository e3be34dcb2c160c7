//! What is encoded decodes to the same message, and long replies take several messages.

#[path = "support/messages.rs"]
mod messages;

use flow_table::{Instructions, Match, Output};
use openflow::message::{
    FlowStats, HEADER, Header, Message, MultipartReply, Port, TableStats, encode_multipart,
};
use openflow::{MAX_MESSAGE, VERSION};
use random::Random;

fn decode(bytes: &[u8]) -> Message {
    let header = Header::decode(bytes).expect("a header");
    assert_eq!((header.version, usize::from(header.length)), (VERSION, bytes.len()));
    Message::decode(header.message_type, &bytes[HEADER..])
        .unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"))
}

#[test]
fn what_is_encoded_decodes_to_the_same() {
    let mut random = Random::new(1);
    for round in 0..500 {
        for kind in 0..30 {
            let message = messages::message(kind, &mut random);
            let bytes = message.encode(round).expect("a short message");
            assert_eq!(
                Header::decode(&bytes).map(|header| (header.message_type, header.xid)),
                Some((kind, round))
            );
            assert_eq!(decode(&bytes), message, "round {round}");
        }
    }
}

/// A message without its end, or with more bytes, is refused or has another meaning, and no bytes panic.
#[test]
fn damaged_messages_are_refused_or_decode_to_something_encodable() {
    let mut random = Random::new(2);
    for _ in 0..200 {
        for kind in 0..30 {
            let bytes = messages::message(kind, &mut random).encode(1).expect("a short message");
            let mut body = bytes[HEADER..].to_vec();
            for _ in 0..random.below(3) {
                if !body.is_empty() {
                    let at = random.below(body.len() as u32) as usize;
                    body[at] = random.next() as u8;
                }
            }
            body.truncate(random.below(body.len() as u32 + 1) as usize);
            if let Ok(message) = Message::decode(kind, &body) {
                let again = message.encode(1).expect("no longer than before");
                assert_eq!(decode(&again), message);
            }
        }
    }
}

fn flow(priority: u16) -> FlowStats {
    FlowStats {
        table: 0,
        age: std::time::Duration::ZERO,
        priority,
        idle_timeout: None,
        hard_timeout: None,
        flags: flow_table::EntryFlags::default(),
        cookie: 7,
        packets: 1,
        bytes: 64,
        matching: Match::any(),
        instructions: Instructions::output(Output::Port(1)),
    }
}

/// Controllers compare the entries that they added with those that the switch reports: the length that an output to a port
/// states has no meaning, but it is theirs. So are the flags that they need no counters.
#[test]
fn what_a_controller_states_is_kept() {
    let mut body = vec![0; 22];
    body.extend([
        0x80, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x18, 0, 0,
    ]);
    body.extend([0, 1, 0, 4, 0, 0, 0, 0]);
    for (kind, port, length) in [(4, 2, 0xffe5u16), (3, 3, 0x80)] {
        body.extend([0, kind, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, port]);
        body.extend(length.to_be_bytes());
        body.extend([0; 6]);
    }
    let message = Message::decode(14, &body).expect("a change");
    let Message::FlowMod(change) = &message else { panic!("{message:?}") };
    assert_eq!(change.change.instructions.stated_lengths, [0xffe5, 0x80]);
    assert_eq!(message.encode(0).expect("a short message")[HEADER..], body);
}

#[test]
fn long_replies_are_split_between_entries() {
    let flows: Vec<FlowStats> = (0..5_000).map(flow).collect();
    let parts = encode_multipart(9, &MultipartReply::Flow(flows.clone()), false);
    assert!(parts.len() > 4 && parts.iter().all(|part| part.len() <= MAX_MESSAGE));
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        assert_eq!(Header::decode(part).map(|header| header.xid), Some(9));
        let Message::MultipartReply { reply: MultipartReply::Flow(flows), more } = decode(part) else {
            panic!("another message")
        };
        assert_eq!(more, at + 1 < parts.len(), "part {at}");
        found.extend(flows);
    }
    assert_eq!(found, flows);
}

#[test]
fn an_empty_reply_is_one_message() {
    for more in [false, true] {
        let parts = encode_multipart(9, &MultipartReply::PortDescription(Vec::<Port>::new()), more);
        assert_eq!(parts.len(), 1);
        assert_eq!(
            decode(&parts[0]),
            Message::MultipartReply { reply: MultipartReply::PortDescription(Vec::new()), more }
        );
    }
    let one = vec![TableStats::default()];
    let parts = encode_multipart(9, &MultipartReply::Table(one.clone()), false);
    assert_eq!(
        parts.iter().map(|part| decode(part)).collect::<Vec<_>>(),
        [Message::MultipartReply { reply: MultipartReply::Table(one), more: false }]
    );
}

#[test]
fn messages_beyond_64_kb_are_refused() {
    let message = |length| Message::EchoReply(vec![0; length]);
    assert!(message(MAX_MESSAGE - HEADER).encode(1).is_ok());
    assert!(message(MAX_MESSAGE - HEADER + 1).encode(1).is_err());
}
