//! The agent's side of the conversation with a fabric.

use fabric::{Fabric, serve_agent};
use openflow::message::Message;
use protocol::agent::{AgentSwitch, FromFabric, Reply, Request, ToFabric, VERSION};
use protocol::{Channel, Hello, StoreIdentity};
use serde_bytes::ByteBuf;
use std::thread::{self, JoinHandle};

pub(crate) const STORE: StoreIdentity = [7; 16];

/// The agent's end of a connection, and the thread that serves it.
pub(crate) fn connect(fabric: &Fabric) -> (Channel, JoinHandle<()>) {
    let (near, far) = Channel::pair().unwrap();
    let fabric = fabric.clone();
    (near, thread::spawn(move || serve_agent(&fabric, &far)))
}

pub(crate) fn agent(fabric: &Fabric) -> Channel {
    let (near, _) = connect(fabric);
    assert!(matches!(receive(&near), Some(FromFabric::Hello(hello)) if hello.version == VERSION));
    near.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).unwrap();
    near
}

pub(crate) fn receive(agent: &Channel) -> Option<FromFabric> {
    agent.receive(8 << 20).unwrap().map(|received| received.message)
}

pub(crate) fn ask(agent: &Channel, request: Request) -> Reply {
    ask_with_wakes(agent, request).0
}

/// The reply, and how often the fabric said before that something waits.
pub(crate) fn ask_with_wakes(agent: &Channel, request: Request) -> (Reply, u32) {
    agent.send(&ToFabric::Request(request), &[]).unwrap();
    let mut wakes = 0;
    loop {
        match receive(agent).expect("an answer") {
            FromFabric::Reply(reply) => return (reply, wakes),
            FromFabric::Wake => wakes += 1,
            FromFabric::Hello(_) => panic!("it greets twice"),
        }
    }
}

pub(crate) fn switches(agent: &Channel) -> Vec<AgentSwitch> {
    match ask(agent, Request::Switches) {
        Reply::Switches(list) => list,
        reply => panic!("{reply:?}"),
    }
}

pub(crate) fn body(message: &Message) -> ByteBuf {
    ByteBuf::from(message.encode(0).unwrap().split_off(8))
}
