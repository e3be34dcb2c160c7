//! Hostile agents and functions: what is called here must survive every input. The fuzz targets `agent` and `function` call it
//! too.

#![allow(unreachable_pub, reason = "the fuzz target uses these modules too")]

mod agent;
mod function;

use std::path::Path;

use model::ControllerRole;
use openflow::message::{HEADER, Header, Message, MultipartRequest};
use protocol::Channel;
use protocol::agent::{ControllerState, Request, ToFabric};
use random::Random;
use rustix::net::{RecvFlags, recv};
use serde_bytes::ByteBuf;

/// A request with its length, as the function takes it.
fn record(request: Request) -> Vec<u8> {
    let (near, far) = Channel::pair().expect("a channel");
    near.send(&ToFabric::Request(request), &[]).expect("room");
    let mut buffer = vec![0; 1 << 17];
    let (length, _) = recv(&far, &mut buffer[..], RecvFlags::empty()).expect("a message");
    [&(length as u16 - 1).to_be_bytes()[..], &buffer[1..length]].concat()
}

/// A folder of the fuzz targets' seeds.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("the seeds").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let read = |file: std::fs::DirEntry| {
        let name = file.file_name().into_string().expect("a plain name");
        (name, std::fs::read(file.path()).expect("a seed"))
    };
    files.into_iter().map(read).collect()
}

/// All kinds of requests, with the messages that are seeds of the sessions.
fn valid() -> Vec<(String, Vec<u8>)> {
    let switch = agent::switch();
    let state = ControllerState {
        role: Some(ControllerRole::Equal),
        since_seconds: 1,
        error: Some("it ended".into()),
        gets_misses: true,
    };
    let status = record(Request::Status { switch, controllers: vec![state] });
    let mut all = vec![
        ("switches".to_string(), record(Request::Switches)),
        ("status".to_string(), status.clone()),
        ("events".to_string(), record(Request::Events { switch })),
    ];
    for (name, bytes) in seeds("openflow").into_iter().filter(|(name, _)| !name.starts_with("version1")) {
        let mut records = status.clone();
        let mut rest = bytes.as_slice();
        while let Some(header) = Header::decode(rest) {
            let (message, after) = rest.split_at(usize::from(header.length));
            rest = after;
            let body = ByteBuf::from(&message[HEADER..]);
            records.extend(match Message::decode(header.message_type, &body) {
                Ok(Message::MultipartRequest { .. }) => record(Request::Report { switch, body, from: 0 }),
                _ => record(Request::Perform { switch, message_type: header.message_type, body }),
            });
        }
        records.extend(record(Request::Events { switch }));
        all.push((name, records));
    }
    for request in [
        MultipartRequest::Description,
        MultipartRequest::Table,
        MultipartRequest::PortStats(None),
        MultipartRequest::GroupDescription,
        MultipartRequest::Meter(None),
        MultipartRequest::TableFeatures(Vec::new()),
        MultipartRequest::PortDescription,
    ] {
        let name = format!("report_{}", format!("{request:?}").split('(').next().unwrap_or_default());
        let message = Message::MultipartRequest { request, more: false };
        let body = ByteBuf::from(message.encode(0).expect("a short message").split_off(HEADER));
        all.push((name.to_lowercase(), record(Request::Report { switch, body, from: 0 })));
    }
    all
}

#[test]
fn a_fabric_survives_any_messages_of_an_agent() {
    let valid = valid();
    for (_, records) in &valid {
        agent::messages(records);
    }
    let mut random = Random::new(11);
    for _ in 0..1500 {
        let (_, records) = &valid[random.below(valid.len() as u32) as usize];
        let mut records = records.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(records.len() as u32) as usize;
            records[at] = random.next() as u8;
        }
        agent::messages(&records);
    }
}

/// The seeds of the fuzz target are requests that a fabric understands: `UPDATE_SEEDS=1` writes them.
#[test]
fn a_fabric_survives_the_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/agent");
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, records) in valid() {
            std::fs::write(folder.join(name), records).expect("a seed");
        }
    }
    let seeds = seeds("agent");
    assert!(seeds.len() >= 40, "{} seeds", seeds.len());
    assert!(
        seeds == {
            let mut valid = valid();
            valid.sort();
            valid
        },
        "UPDATE_SEEDS=1 writes the seeds of this version"
    );
    seeds.iter().for_each(|(_, records)| agent::messages(records));
}

/// Random bytes, and right messages that were cut or changed, in any order.
#[test]
fn a_fabric_survives_any_messages_of_a_function() {
    use protocol::function::{FromFunction, TOKEN_BYTES, VERSION};
    let valid = [
        FromFunction::Register { version: VERSION, slots: 0, hands_over: true, token: [b'a'; TOKEN_BYTES] },
        FromFunction::Counters(vec![("packets".into(), 7); 32]),
        FromFunction::Message { destination: 0, payload: vec![1; 4096] },
        FromFunction::Message { destination: 1, payload: Vec::new() },
        FromFunction::Leave,
        FromFunction::States { number: 1, reply: vec![0; 20] },
    ];
    for seed in 1..=300 {
        let mut random = Random::new(seed);
        let mut input = vec![random.below(4) as u8];
        for _ in 0..random.below(8) {
            let mut message = valid[random.below(valid.len() as u32) as usize].encode();
            match random.below(3) {
                0 => message.truncate(random.below(message.len() as u32 + 1) as usize),
                1 => {
                    let at = random.below(message.len().min(24) as u32) as usize;
                    message[at] = random.below(256) as u8;
                }
                _ => {}
            }
            input.extend((message.len() as u16).to_be_bytes());
            input.extend(message);
        }
        input.extend((0..random.below(40)).map(|_| random.below(256) as u8));
        function::messages(&input);
    }
}

/// A function that leaves answers with right lists and states of flows that were cut or changed.
#[test]
fn a_fabric_survives_any_answers_about_flows() {
    use boundary::{FlowExport, FlowList, FlowPosition, StateRecord, StateTuple};
    use std::net::Ipv4Addr;
    let tuple = |port| {
        let end = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped();
        StateTuple { protocol: 17, ends: [(end, port), (end, 53)] }
    };
    let state = |port| StateRecord {
        element: String::new(),
        format: String::new(),
        version: 1,
        tuples: [tuple(port); 2],
        payload: vec![7; usize::from(port)],
    };
    let list = |next: bool| {
        let next = next.then_some(FlowPosition { element: 0, inside: 3 });
        FlowList { next, groups: (0..3).map(|port| vec![tuple(port)]).collect(), lost: Vec::new() }.encode()
    };
    let export = FlowExport { groups: Some(3), states: (0..3).map(state).collect() }.encode();
    for seed in 1..=300 {
        let mut random = Random::new(seed);
        let mut input = vec![7];
        for message in [list(true), export.clone(), list(false), export.clone(), list(false), export.clone()]
        {
            let mut message = message;
            match random.below(8) {
                0 => message.truncate(random.below(message.len() as u32 + 1) as usize),
                1 | 2 => {
                    let at = random.below(message.len() as u32) as usize;
                    message[at] = random.below(256) as u8;
                }
                _ => {}
            }
            input.extend((message.len() as u16).to_be_bytes());
            input.extend(message);
        }
        function::messages(&input);
    }
}
