//! Any bytes as a controller's: what decodes is encoded and decoded to the same, and a session survives.

#[path = "../support/software.rs"]
mod software;

use std::time::Duration;

use openflow::VERSION;
use openflow::message::{HEADER, Header, Hello, Message};
use openflow::session::{Agent, AgentLimits, SessionState};
use software::Software;

/// Decodes the bytes as messages, and encodes and decodes them again.
fn check_messages(mut bytes: &[u8]) {
    while let Some(header) = Header::decode(bytes) {
        let length = usize::from(header.length).max(HEADER);
        let Some((message, rest)) = bytes.split_at_checked(length) else { return };
        bytes = rest;
        let Ok(decoded) = Message::decode(header.message_type, &message[HEADER..]) else { continue };
        let Ok(encoded) = decoded.encode(header.xid) else { panic!("{decoded:?} became longer") };
        assert_eq!(Message::decode(header.message_type, &encoded[HEADER..]).as_ref(), Ok(&decoded));
    }
}

/// The bytes go to sessions of both versions, in pieces, while frames arrive and time passes.
pub fn any_bytes(data: &[u8]) {
    check_messages(data);
    let hello = Message::Hello(Hello { versions: Some(1 << VERSION) }).encode(1).expect("a short message");
    converse(&hello, data);
    converse(&[1, 0, 0, 8, 0, 0, 0, 1], &of_version1(data));
}

/// The bytes with the number of OpenFlow 1.0 in each header.
fn of_version1(data: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (data.to_vec(), 0);
    while let Some(header) = bytes.get(at..).and_then(Header::decode) {
        bytes[at] = 1;
        at += usize::from(header.length).max(HEADER);
    }
    bytes
}

fn converse(hello: &[u8], data: &[u8]) {
    let mut agent = Agent::new(Software::new(3), AgentLimits { output: 1 << 14, ..AgentLimits::default() });
    let mut now = Duration::from_secs(1);
    let session = agent.connect(now).expect("a session");
    agent.receive(session, hello, now);
    for piece in data.chunks(97) {
        let mut left = piece;
        while !left.is_empty() {
            let taken = agent.receive(session, left, now);
            left = &left[taken..];
            let output = agent.output(session).len();
            assert!(output < 1 << 20, "{output} bytes wait");
            assert!(taken > 0 || output > 0, "the session neither reads nor answers");
            agent.sent(session, output.div_ceil(2), now);
        }
        agent.datapath().arrive(1, &[2; 60], now);
        agent.poll(now);
        now += Duration::from_millis(100);
    }
    // All that the session says is well formed.
    let mut output = agent.output(session).to_vec();
    agent.sent(session, output.len(), now);
    while agent.state(session) != SessionState::Closed && !agent.output(session).is_empty() {
        output = agent.output(session).to_vec();
        agent.sent(session, output.len(), now);
    }
}
