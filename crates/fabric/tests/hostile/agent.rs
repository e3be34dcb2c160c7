//! Any bytes as the messages of an agent: the fabric answers or closes the connection, and goes on.

use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread;

use fabric::{Fabric, Settings, serve, serve_agent};
use model::{AddPort, CreateSwitch, Limits, PortDriver, SwitchMode, SwitchName};
use openflow::message::{GroupMod, Message, MeterMod};
use protocol::agent::{FromFabric, MAX_REPLY, Reply, Request, ToFabric, VERSION};
use protocol::fabric::{Client, orders};
use protocol::{Channel, Hello, StoreIdentity};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};
use sandbox::{HostSettings, KvmDevice};
use serde_bytes::ByteBuf;

const STORE: StoreIdentity = [7; 16];

/// The first byte of a message that is whole in a datagram.
const INLINE: u8 = 0;

/// A fabric without boxes, with a steering switch of two ports that has a controller.
struct World {
    fabric: Fabric,
    client: Arc<Client>,
    switch: u64,
}

/// The same for all inputs: starting one takes longer than most of them.
static WORLD: OnceLock<World> = OnceLock::new();

/// The smallest box image that a fabric accepts: no box is created from it.
pub(crate) fn empty_image() -> &'static [u8] {
    // What only a thread's stack refers to counts as leaked.
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(make_image)
}

fn make_image() -> Vec<u8> {
    const HEADER: usize = 64;
    const ENTRY: usize = 56;
    let description =
        [u64::from(boundary::PROTOCOL), 0x2000, 0x4000_0000, 4096].map(u64::to_le_bytes).concat();
    let name = boundary::NOTE_NAME;
    let mut note =
        [name.len() as u32, description.len() as u32, boundary::NOTE_TYPE].map(u32::to_le_bytes).concat();
    note.extend(name);
    note.resize(note.len().next_multiple_of(4), 0);
    note.extend(description);
    let note_at = HEADER + 3 * ENTRY;
    let mut file = vec![0; note_at];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..20].copy_from_slice(&[2, 0, 62, 0]);
    file[24..32].copy_from_slice(&0x2000u64.to_le_bytes());
    (file[32], file[56]) = (HEADER as u8, 3);
    // Code, variables, and the note: kind, flags, address, bytes in the file, size. Shared memory needs bytes of the file,
    // so the note is the code too.
    let stored = note.len() as u64;
    let segments = [(1, 5, 0x2000u64, stored, 4096u64), (1, 6, 0x4000_0000, 0, 4096), (4, 4, 0, stored, 0)];
    for (at, (kind, flags, address, stored, size)) in segments.into_iter().enumerate() {
        let place = &mut file[HEADER + at * ENTRY..][..ENTRY];
        (place[0], place[4]) = (kind, flags);
        place[8..16].copy_from_slice(&(note_at as u64).to_le_bytes());
        place[16..24].copy_from_slice(&address.to_le_bytes());
        place[32..40].copy_from_slice(&stored.to_le_bytes());
        place[40..48].copy_from_slice(&size.to_le_bytes());
    }
    file.extend(note);
    file
}

fn world() -> World {
    let host = HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() };
    let settings = Settings { image: empty_image(), workers: 1, shares_processors: false, switch_threads: 1 };
    let fabric = Fabric::start(&settings, host, STORE).expect("a fabric");
    let (near, far) = Channel::pair().expect("a channel");
    let of_client = fabric.clone();
    thread::spawn(move || serve(&of_client, &Arc::new(far)));
    let (client, reader) = Client::connect(near, STORE).expect("a client");
    thread::spawn(move || reader.run(|_| {}));
    let switch: SwitchName = "lan".parse().expect("a name");
    let controllers = vec!["tcp:127.0.0.1:1".parse().expect("an address")];
    let definition =
        CreateSwitch { mode: SwitchMode::Steering, controllers, ..CreateSwitch::new(switch.clone()) };
    client.ask(orders::AddSwitch { definition }).expect("a switch");
    for name in ["one", "two"] {
        let (name, driver) = (name.parse().expect("a name"), PortDriver::Null {});
        let port = AddPort { name, driver, addresses: Vec::new(), default: false, limits: Limits::default() };
        client.ask(orders::AddPort { switch: switch.clone(), port, instead: None }).expect("a port");
    }
    let agent = Agent::greeted(&fabric);
    let Some(Reply::Switches(list)) = agent.ask(&Request::Switches) else { panic!("no switches") };
    let switch = list.first().expect("the switch").number;
    World { fabric, client, switch }
}

/// An agent's end of the conversation.
pub(crate) struct Agent(Channel);

impl Agent {
    fn greeted(fabric: &Fabric) -> Self {
        let (near, far) = Channel::pair().expect("a channel");
        let fabric = fabric.clone();
        thread::spawn(move || serve_agent(&fabric, &far));
        let agent = Self(near);
        assert!(matches!(agent.receive(), Some(FromFabric::Hello(_))));
        agent.0.send(&ToFabric::Hello(Hello { version: VERSION, store: STORE }), &[]).expect("a fabric");
        agent
    }

    /// The next message of the fabric; `None` if it closed the connection.
    fn receive(&self) -> Option<FromFabric> {
        self.0.receive(MAX_REPLY).ok().flatten().map(|received| received.message)
    }

    fn reply(&self) -> Option<Reply> {
        loop {
            match self.receive()? {
                FromFabric::Reply(reply) => return Some(reply),
                FromFabric::Wake => {}
                FromFabric::Hello(_) => panic!("it greets twice"),
            }
        }
    }

    fn ask(&self, request: &Request) -> Option<Reply> {
        self.0.send(&ToFabric::Request(request.clone()), &[]).ok()?;
        self.reply()
    }

    /// Sends bytes as a message; `None` if the fabric closes the connection.
    fn send(&self, bytes: &[u8]) -> Option<Reply> {
        let message = [&[INLINE], bytes].concat();
        retry_on_intr(|| send(self.0.as_fd(), &message, SendFlags::NOSIGNAL)).ok()?;
        self.reply()
    }
}

/// Removes what earlier inputs added.
fn reset(agent: &Agent, switch: u64) {
    let delete = flow_table::Change {
        table: None,
        ..flow_table::Change::new(flow_table::Command::Delete, flow_table::Match::any(), 0)
    };
    for message in [
        Message::FlowMod(openflow::message::FlowMod { change: delete, buffer: None }),
        Message::GroupMod(GroupMod::Delete(None)),
        Message::MeterMod(MeterMod::Delete(None)),
    ] {
        let body = ByteBuf::from(message.encode(0).expect("a short message").split_off(8));
        let request = Request::Perform { switch, message_type: message.message_type(), body };
        assert_eq!(agent.ask(&request), Some(Reply::Done));
    }
}

/// The messages: each begins with its length in two bytes. Those after a message that ends the connection are ignored.
pub fn messages(mut data: &[u8]) {
    let world = WORLD.get_or_init(world);
    let agent = Agent::greeted(&world.fabric);
    reset(&agent, world.switch);
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (message, after) = rest.split_at(length);
        data = after;
        if agent.send(message).is_none() {
            break;
        }
    }
    world.client.ask(orders::Ping {}).expect("the fabric goes on");
}

/// The number of the switch.
#[cfg(test)]
pub(crate) fn switch() -> u64 {
    WORLD.get_or_init(world).switch
}
