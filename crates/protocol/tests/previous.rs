//! Programs whose versions are one apart work together: the bytes of earlier versions are recorded, and read here.
//!
//! `previous/VERSION.txt` has a line for each message: what it is, the order's name, and its bytes in hexadecimal. A line is
//! never changed. If a change of the protocol makes one unreadable, give new fields a default (`#[serde(default)]`). A new
//! order, or a new version, is added by `RECORD_PROTOCOL=1 cargo test -p protocol --test previous`.

mod samples;

use protocol::fabric::{
    Ask, Client, FabricError, FromFabric, Notice, Order, Reply, ToFabric, UnknownToFabric, VERSION, orders,
};
use protocol::{Channel, Hello, StoreIdentity, codec};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;

const STORE: StoreIdentity = [7; 16];

/// The number of each recorded order.
const NUMBER: u64 = 1;

/// Maximum bytes of a sample, generously.
const MAX_SAMPLE_BYTES: usize = 1 << 20;

/// The recorded bytes of a version, by kind and name.
type Records = BTreeMap<(String, String), Vec<u8>>;

fn path(version: u16) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/previous")).join(format!("{version}.txt"))
}

fn read(version: u16) -> Records {
    let text = fs::read_to_string(path(version)).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, name, digits] = words.as_slice() else { panic!("{line:?}") };
        let bytes = (0..digits.len()).step_by(2);
        let bytes = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect();
        ((kind.to_string(), name.to_string()), bytes)
    };
    text.lines().map(line).collect()
}

fn write(version: u16, records: &Records) {
    let line = |((kind, name), bytes): (&(String, String), &Vec<u8>)| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{kind} {name} {digits}\n")
    };
    fs::write(path(version), records.iter().map(line).collect::<String>()).expect("the records");
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    codec::encode_to(value, Vec::new()).expect("an encoding")
}

fn decoded<T: for<'de> Deserialize<'de>>(what: &str, bytes: &[u8]) -> T {
    match codec::decode(bytes) {
        Ok((value, 0)) => value,
        result => panic!("{what} can't be read any more: {:?}", result.err()),
    }
}

/// The messages of this version.
#[derive(Default)]
struct Present(Records);

impl samples::Visit for Present {
    fn visit<A: Ask>(&mut self, name: &'static str, order: A, answer: A::Answer) {
        let order = ToFabric::Order { number: NUMBER, order: Box::new(order.into()) };
        self.0.insert(("order".into(), name.into()), encoded(&order));
        let result = Ok(ByteBuf::from(encoded(&answer)));
        let reply = FromFabric::Reply(Reply { number: NUMBER, result });
        self.0.insert(("reply".into(), name.into()), encoded(&reply));
    }
}

fn present() -> Records {
    let mut present = Present::default();
    samples::visit(&mut present);
    let hello = Hello { version: VERSION, store: STORE };
    let mut others = |kind: &str, name: &str, bytes| {
        present.0.insert((kind.into(), name.into()), bytes);
    };
    others("hello", "daemon", encoded(&ToFabric::Hello(hello)));
    others("hello", "fabric", encoded(&FromFabric::Hello(hello)));
    others("notice", "News", encoded(&FromFabric::Notice(Notice::News)));
    let error = FabricError::NoBox("fw".parse().expect("a name"));
    others("reply", "error", encoded(&FromFabric::Reply(Reply { number: NUMBER, result: Err(error) })));
    present.0
}

#[test]
fn every_order_is_recorded() {
    let mut records = read(VERSION);
    let present = present();
    for name in Order::NAMES {
        assert!(present.contains_key(&("order".into(), name.to_string())), "no sample of {name}");
    }
    if std::env::var_os("RECORD_PROTOCOL").is_some() {
        for (key, bytes) in present {
            records.entry(key).or_insert(bytes);
        }
        return write(VERSION, &records);
    }
    for key in present.keys() {
        assert!(records.contains_key(key), "no record of {key:?}: run this test with RECORD_PROTOCOL=1");
    }
}

/// The recorded answers must have the present types.
struct Answers<'a>(&'a Records);

impl samples::Visit for Answers<'_> {
    fn visit<A: Ask>(&mut self, name: &'static str, _: A, _: A::Answer) {
        // An order of this version only has no earlier answer.
        let Some(bytes) = self.0.get(&("reply".to_string(), name.to_string())) else { return };
        let FromFabric::Reply(reply) = decoded(name, bytes) else { panic!("{name}: no reply") };
        let _: A::Answer = decoded(name, &reply.result.expect("an answer"));
    }
}

/// An old daemon's messages are read by this fabric, and an old fabric's by this daemon.
#[test]
fn messages_of_the_previous_version_are_read() {
    for version in VERSION.saturating_sub(1).max(1)..=VERSION {
        let records = read(version);
        assert!(records.len() > Order::NAMES.len(), "no records of version {version}");
        for ((kind, name), bytes) in &records {
            let what = format!("{kind} {name} of version {version}");
            match (kind.as_str(), name.as_str()) {
                ("order", _) | ("hello", "daemon") => drop(decoded::<ToFabric>(&what, bytes)),
                _ => drop(decoded::<FromFabric>(&what, bytes)),
            }
        }
        samples::visit(&mut Answers(&records));
    }
}

/// Definitions with unknown fields are refused, so that a fabric never leaves out what a user asked for. A definition
/// without new features must therefore be encoded as before: new fields are left out when they have their default.
#[test]
fn an_earlier_fabric_reads_what_has_no_new_feature() {
    let (records, present) = (read(VERSION - 1), present());
    for name in ["AddSwitch", "AddPort", "DefineBox", "DefineBoxes", "AlterBox", "ReattachBox"] {
        let key = ("order".to_string(), name.to_string());
        assert_eq!(
            records.get(&key),
            present.get(&key),
            "{name}: leave new fields out by `skip_serializing_if`"
        );
    }
}

/// A fabric that answers each message with recorded bytes, and refuses what its version does not have.
fn recorded_fabric(version: u16, records: Records) -> Channel {
    #[derive(Serialize)]
    enum Renumbered<'a> {
        Reply { number: u64, result: &'a Result<ByteBuf, FabricError> },
    }
    let (near, far) = Channel::pair().expect("a pair");
    thread::spawn(move || {
        let _: ToFabric = far.receive(MAX_SAMPLE_BYTES).expect("a greeting").expect("a greeting").message;
        far.send(&FromFabric::Hello(Hello { version, store: STORE }), &[]).expect("a daemon");
        while let Ok(Some(received)) = far.receive::<Named>(MAX_SAMPLE_BYTES) {
            let Named::Order { number, order } = received.message;
            let name = order.into_keys().next().expect("a name");
            let result = match records.get(&("reply".to_string(), name.clone())) {
                Some(bytes) => match decoded(&name, bytes) {
                    FromFabric::Reply(reply) => reply.result,
                    _ => panic!("{name}: no reply"),
                },
                None => Err(FabricError::Protocol(format!("{name} is unknown"))),
            };
            far.send(&Renumbered::Reply { number, result: &result }, &[]).expect("a daemon");
        }
    });
    near
}

/// An order whose contents do not matter.
#[derive(Deserialize)]
enum Named {
    Order { number: u64, order: BTreeMap<String, serde::de::IgnoredAny> },
}

/// Asks everything. A fabric answers what its version has.
struct Asks<'a>(&'a Client, &'a Records);

impl samples::Visit for Asks<'_> {
    fn visit<A: Ask>(&mut self, name: &'static str, order: A, _: A::Answer) {
        let is_known = self.1.contains_key(&("reply".to_string(), name.to_string()));
        assert_eq!(self.0.ask(order).is_ok(), is_known, "{name}");
    }
}

#[test]
fn a_daemon_works_with_an_earlier_fabric() {
    for version in VERSION.saturating_sub(1).max(1)..=VERSION {
        let records = read(version);
        let (client, reader) =
            Client::connect(recorded_fabric(version, records.clone()), STORE).expect("a fabric");
        let reader = thread::spawn(move || reader.run(|_| {}));
        assert_eq!(client.peer_version(), version);
        samples::visit(&mut Asks(&client, &records));
        client.close();
        assert_eq!(reader.join().expect("the reader ends"), None);
    }
}

/// What a later version may send: messages with more fields, more variants, and fewer optional fields.
#[derive(Serialize)]
enum Later {
    Order { number: u64, order: LaterOrder, colour: String },
    Reply { number: u64, result: Result<ByteBuf, LaterError>, colour: String },
    Notice(LaterNotice),
}

#[derive(Serialize)]
enum LaterOrder {
    Ping { loudness: u8 },
    Paint { colour: String },
}

#[derive(Serialize)]
enum LaterError {
    OutOfPaint { colours: Vec<String> },
}

#[derive(Serialize)]
enum LaterNotice {
    Painted { walls: u8 },
}

#[test]
fn messages_of_a_later_version_are_told_apart() {
    let colour = || "red".to_string();
    let known = Later::Order { number: 3, order: LaterOrder::Ping { loudness: 7 }, colour: colour() };
    let ToFabric::Order { number: 3, order } = decoded("a ping", &encoded(&known)) else {
        panic!("an order is misread");
    };
    assert!(matches!(*order, Order::Ping(orders::Ping {})));
    let unknown = Later::Order { number: 4, order: LaterOrder::Paint { colour: colour() }, colour: colour() };
    let bytes = encoded(&unknown);
    assert!(codec::decode::<ToFabric>(&bytes).is_err());
    let UnknownToFabric::Order { number } = decoded("an unknown order", &bytes);
    assert_eq!(number, 4);
}

/// Errors and notices of a later fabric do not end the conversation.
#[test]
fn a_daemon_works_with_a_later_fabric() {
    let (near, far) = Channel::pair().expect("a pair");
    let fabric = thread::spawn(move || {
        let _: ToFabric = far.receive(MAX_SAMPLE_BYTES).expect("a greeting").expect("a greeting").message;
        far.send(&FromFabric::Hello(Hello { version: VERSION + 1, store: STORE }), &[]).expect("a daemon");
        far.send(&Later::Notice(LaterNotice::Painted { walls: 4 }), &[]).expect("a daemon");
        let error = || Err(LaterError::OutOfPaint { colours: vec!["red".into()] });
        for result in [error(), Ok(ByteBuf::from(encoded(&())))] {
            let received = far.receive::<ToFabric>(MAX_SAMPLE_BYTES).expect("an order").expect("an order");
            let ToFabric::Order { number, .. } = received.message else { panic!("no order") };
            far.send(&Later::Reply { number, result, colour: "red".into() }, &[]).expect("a daemon");
        }
    });
    let (client, reader) = Client::connect(near, STORE).expect("a fabric");
    let reader = thread::spawn(move || reader.run(|_| {}));
    assert!(matches!(client.ask(orders::Ping {}), Err(FabricError::Protocol(_))));
    assert_eq!(client.ask(orders::Ping {}), Ok(()));
    fabric.join().expect("the fabric ends");
    client.close();
    let _ = reader.join();
}
