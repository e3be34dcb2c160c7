//! A controller of an agent in memory.

use std::time::Duration;

use openflow::VERSION;
use openflow::message::{HEADER, Header, Hello, Message};
use openflow::session::{Agent, AgentLimits, SessionId};

use crate::software::Software;

pub(crate) const START: Duration = Duration::from_secs(100);

/// An agent of a switch with three ports.
pub(crate) fn agent(limits: AgentLimits) -> Agent<Software> {
    Agent::new(Software::new(3), limits)
}

/// A session whose controller has greeted.
pub(crate) fn greeted(agent: &mut Agent<Software>, now: Duration) -> SessionId {
    let id = agent.connect(now).expect("a session");
    send(agent, id, 1, &Message::Hello(Hello { versions: Some(1 << VERSION) }), now);
    let greeting = messages(agent, id, now);
    assert_eq!(greeting, [(0, Message::Hello(Hello { versions: Some(1 << VERSION | 1 << 1) }))]);
    id
}

pub(crate) fn send(agent: &mut Agent<Software>, id: SessionId, xid: u32, message: &Message, now: Duration) {
    let bytes = message.encode(xid).expect("a short message");
    assert_eq!(agent.receive(id, &bytes, now), bytes.len());
}

/// Reads all that the switch says.
pub(crate) fn messages(agent: &mut Agent<Software>, id: SessionId, now: Duration) -> Vec<(u32, Message)> {
    let mut all = Vec::new();
    while !agent.output(id).is_empty() {
        all.extend_from_slice(agent.output(id));
        agent.sent(id, agent.output(id).len(), now);
    }
    let (mut found, mut rest) = (Vec::new(), all.as_slice());
    while let Some(header) = Header::decode(rest) {
        let (message, after) = rest.split_at(header.length.into());
        let message = Message::decode(header.message_type, &message[HEADER..]).expect("a right message");
        found.push((header.xid, message));
        rest = after;
    }
    assert!(rest.is_empty(), "half a message: {rest:?}");
    found
}

/// Sends a message, and returns what the switch says afterwards.
pub(crate) fn ask(agent: &mut Agent<Software>, id: SessionId, message: &Message) -> Vec<Message> {
    send(agent, id, 77, message, START);
    messages(agent, id, START).into_iter().map(|(_, message)| message).collect()
}
