//! Any bytes as the messages of functions that join a service: the fabric answers or closes the connection, and goes on.

use crate::agent::empty_image;
use fabric::{Fabric, Settings, serve};
use model::{CreateSwitch, SwitchMode, SwitchName};
use protocol::fabric::{Client, ServiceDefinition, SteeringDefinition, orders};
use protocol::function::{FromFunction, StatesRequest, TOKEN_BYTES, ToFunction, VERSION};
use protocol::{Channel, StoreIdentity};
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen,
    recv, send, socket_with,
};
use sandbox::{HostSettings, KvmDevice};
use serde_bytes::ByteBuf;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread;

const STORE: StoreIdentity = [8; 16];
const TOKEN: [u8; TOKEN_BYTES] = [b'a'; TOKEN_BYTES];

/// A fabric without boxes, with a service that functions join.
struct World {
    client: Arc<Client>,
    address: SocketAddrUnix,
}

/// The same for all inputs: starting one takes longer than most of them.
static WORLD: OnceLock<World> = OnceLock::new();

fn socket() -> OwnedFd {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a socket")
}

fn world() -> World {
    let host = HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() };
    let settings = Settings { image: empty_image(), workers: 1, shares_processors: false, switch_threads: 1 };
    let fabric = Fabric::start(&settings, host, STORE).expect("a fabric");
    let (near, far) = Channel::pair().expect("a channel");
    thread::spawn(move || serve(&fabric, &Arc::new(far)));
    let (client, reader) = Client::connect(near, STORE).expect("a client");
    thread::spawn(move || reader.run(|_| {}));
    let switch: SwitchName = "lan".parse().expect("a name");
    let definition = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(switch.clone()) };
    client.ask(orders::AddSwitch { definition }).expect("a switch");
    let name = |text: &str| text.parse().expect("a name");
    let service = ServiceDefinition {
        name: name("nf"),
        faces: "in=0,out=1".parse().expect("faces"),
        destinations: vec!["nf".parse().expect("a destination"), "port:x".parse().expect("a destination")],
        instances: Vec::new(),
        translation: None,
        dead_after_ms: None,
        places: None,
        pool: None,
    };
    let steering = SteeringDefinition { services: vec![service], chains: Vec::new() };
    client.ask(orders::SetSteering { switch: switch.clone(), steering }).expect("a service");
    // A name that is in no folder.
    let address =
        SocketAddrUnix::new_abstract_name(format!("clickbox-hostile-{}", std::process::id()).as_bytes());
    let (address, listener) = (address.expect("a name"), socket());
    bind(&listener, &address).expect("a free name");
    listen(&listener, 128).expect("a socket");
    let order = orders::ServeFunctions { switch, service: name("nf"), token: ByteBuf::from(TOKEN.to_vec()) };
    client.ask_with(order, &[listener.as_fd()]).expect("a listener");
    let heir = socket();
    connect(&heir, &address).expect("a fabric");
    register(&heir, true);
    thread::spawn(move || take_flows_over(&heir));
    World { client, address }
}

/// Registers a function. Returns the answer.
fn register(function: &OwnedFd, hands_over: bool) -> ToFunction {
    let register = FromFunction::Register { version: VERSION, slots: 64, hands_over, token: TOKEN };
    retry_on_intr(|| send(function, &register.encode(), SendFlags::NOSIGNAL)).expect("a fabric");
    let mut buffer = [0; 65_536];
    let received = retry_on_intr(|| recv(function, &mut buffer[..], RecvFlags::empty()));
    let (_, length) = received.expect("an answer");
    ToFunction::decode(&buffer[..length]).expect("a message")
}

/// The next request for the state of flows, if one comes.
fn request(function: &OwnedFd) -> Option<(StatesRequest, u32)> {
    let mut buffer = [0; 65_536];
    let (_, length) = retry_on_intr(|| recv(function, &mut buffer[..], RecvFlags::empty())).ok()?;
    match ToFunction::decode(buffer.get(..length)?) {
        Ok(ToFunction::States { kind, number, .. }) => Some((kind, number)),
        _ => None,
    }
}

fn answer(function: &OwnedFd, number: u32, reply: &[u8]) {
    let message = FromFunction::States { number, reply: reply.to_vec() };
    // The fabric may have closed the connection.
    let _ = send(function, &message.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Takes all states over, and has none.
fn take_flows_over(function: &OwnedFd) {
    while let Some((kind, number)) = request(function) {
        let nothing = [0; 12];
        answer(function, number, if kind == StatesRequest::Import { &nothing[..4] } else { &nothing });
    }
}

/// Sends messages as a function, the first of which may be a right registration, each begins with its length in two bytes. It may
/// leave at once, whereupon the messages answer what it is asked about its flows.
pub fn messages(data: &[u8]) {
    let world = WORLD.get_or_init(world);
    let (Some((how, mut data)), function) = (data.split_first(), socket()) else { return };
    // A fuzzer's timer interrupts what waits.
    retry_on_intr(|| connect(&function, &world.address)).expect("a fabric");
    if how & 1 == 1 {
        let answer = register(&function, how & 2 == 2);
        // There are as many as a service may have, until those of earlier inputs are gone.
        assert!(matches!(answer, ToFunction::Welcome(_) | ToFunction::Refused(_)));
    }
    let leaves = how & 7 == 7;
    if leaves {
        let _ = send(&function, &FromFunction::Leave.encode(), SendFlags::NOSIGNAL);
    }
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (message, after) = rest.split_at(length);
        data = after;
        if leaves {
            let Some((_, number)) = request(&function) else { break };
            answer(&function, number, message);
        } else if send(&function, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err() {
            break;
        }
    }
    let mut buffer = [0; 65_536];
    while let Ok((_, 1..)) = recv(&function, &mut buffer[..], RecvFlags::DONTWAIT) {}
    drop(function);
    world.client.ask(orders::Ping {}).expect("the fabric goes on");
}
