//! A daemon that is killed at random moments of operations: each is whole or absent, and what was acknowledged stays.
//!
//! Two clients run random operations and keep books of what was acknowledged. The daemon is killed, sometimes again
//! while it starts, and sometimes its store is first turned into one of an earlier version. The next daemon must have
//! exactly what the books say, with or without the operation that was in progress. `CLICKBOX_TEST_KILLS` is the number
//! of rounds, 50 by default. `CLICKBOX_TEST_SEED` repeats a run.

mod support;

use api::client::{Address, Client, ClientError, Credentials};
use api::operation as op;
use api::{
    AddPort, BoxState, CreateBox, CreateSwitch, HandlerWrite, Install, Limits, PortDriver, RemoveQuery, Stack,
};
use daemon::{Listeners, Settings};
use random::Random;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use support::{Folder, process, until};

/// The environment variable that makes this program run as a daemon.
const BE_A_DAEMON: &str = "CLICKBOX_TEST_KILLED_DAEMON";

/// The longest time between the start of the clients and the kill.
const MAX_LIFE: Duration = Duration::from_millis(60);

/// Names of each kind that a client uses.
const NAMES: u32 = 4;

/// Not a test: the daemon that is killed.
#[test]
fn run_as_daemon() {
    let Some(folder) = std::env::var_os(BE_A_DAEMON).map(PathBuf::from) else { return };
    let settings = Settings { store: Some(folder.join("store")), ..support::settings() };
    let result =
        daemon::run(&settings, Listeners::open(&folder.join("socket"), None, None).unwrap(), None, |_| {
            std::fs::write(folder.join("ready"), "").unwrap();
        });
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(7);
    }
}

fn spawn(folder: &Path) -> Child {
    let _ = std::fs::remove_file(folder.join("ready"));
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_as_daemon", "--nocapture", "--test-threads=1"])
        .env(BE_A_DAEMON, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts a daemon and waits until it serves.
fn start(folder: &Path) -> (Child, Client) {
    let mut child = spawn(folder);
    until("the daemon is ready", || {
        assert_eq!(child.try_wait().unwrap(), None, "the daemon ended");
        folder.join("ready").exists()
    });
    (child, client(folder))
}

fn client(folder: &Path) -> Client {
    Client::new(Address::Unix(folder.join("socket")), &Credentials::default()).unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What a daemon has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct World {
    boxes: BTreeMap<String, BoxEntry>,
    switches: BTreeMap<String, SwitchEntry>,
    stacks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct BoxEntry {
    stack: Option<String>,
    text: String,
    weight: u32,
    is_running: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SwitchEntry {
    stack: Option<String>,
    age: u32,
    /// The ports that connect no box, each with the stack that made it.
    ports: BTreeMap<String, Option<String>>,
}

impl World {
    /// What a daemon has of the client with this prefix.
    fn read(client: &Client, prefix: &str) -> Self {
        let mut world = Self::default();
        for status in client.ask(&op::LIST_BOXES, &[]).unwrap() {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let path = [name.as_str(), "main"];
                let text = client.ask(&op::SHOW_CONFIGURATION, &path).unwrap().configuration;
                let stack = status.stack.map(|stack| stack.to_string());
                let is_running = status.state == BoxState::Running;
                let weight = status.cpu_weight.into();
                world.boxes.insert(name, BoxEntry { stack, text, weight, is_running });
            }
        }
        for status in client.ask(&op::LIST_SWITCHES, &[]).unwrap() {
            let name = status.name.to_string();
            if name.starts_with(prefix) {
                let detail = client.ask(&op::SHOW_SWITCH, &[&name]).unwrap();
                let ports = detail.port_list.into_iter();
                let ports = ports.filter(|port| !matches!(port.driver, PortDriver::Box { .. }));
                let ports = ports
                    .map(|port| (port.name.to_string(), port.stack.map(|stack| stack.to_string())))
                    .collect();
                let stack = status.stack.map(|stack| stack.to_string());
                world.switches.insert(name, SwitchEntry { stack, age: status.age_seconds, ports });
            }
        }
        let stacks = client.ask(&op::LIST_STACKS, &[]).unwrap();
        let stacks = stacks.into_iter().map(|status| status.name.to_string());
        world.stacks = stacks.filter(|name| name.starts_with(prefix)).collect();
        world
    }
}

/// An operation of a client.
#[derive(Clone, Debug)]
enum Order {
    CreateBox { name: String, text: &'static str, is_running: bool, switch: Option<String> },
    RemoveBox(String),
    Install { name: String, text: &'static str },
    SetRunning { name: String, is_running: bool },
    WriteHandler(String),
    CreateSwitch(String),
    RemoveSwitch(String),
    AddPort { switch: String, port: String },
    RemovePort { switch: String, port: String },
    Apply { name: String, boxes: Vec<(String, &'static str, u32)>, age: u32, ports: u32 },
    RemoveStack(String),
}

fn null_port(name: &str) -> AddPort {
    AddPort {
        name: name.parse().unwrap(),
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    }
}

impl Order {
    /// A random operation.
    fn new(random: &mut Random, prefix: &str) -> Self {
        let mut name = |kind: &str| format!("{prefix}{kind}{}", random.below(NAMES));
        let (box_name, switch, port, stack) = (name("box"), name("lan"), name("port"), name("stack"));
        let mut text = || *["drop", "mirror"].get(random.below(2) as usize).unwrap();
        let (text, other) = (text(), text());
        match random.below(16) {
            0..3 => Self::CreateBox {
                name: box_name,
                text,
                is_running: random.below(2) == 0,
                switch: (random.below(2) == 0).then_some(switch),
            },
            3 => Self::RemoveBox(box_name),
            4..6 => Self::Install { name: box_name, text },
            6 => Self::SetRunning { name: box_name, is_running: random.below(2) == 0 },
            7 => Self::WriteHandler(box_name),
            8 => Self::CreateSwitch(switch),
            9 => Self::RemoveSwitch(switch),
            10 => Self::AddPort { switch, port },
            11 => Self::RemovePort { switch, port },
            12..15 => {
                let count = random.below(4);
                let member = |number: u32| {
                    let text = if number.is_multiple_of(2) { text } else { other };
                    (format!("{stack}member{number}"), text, 100 + 10 * (number % 2))
                };
                Self::Apply {
                    name: stack.clone(),
                    boxes: (0..count).map(member).collect(),
                    age: 5 + random.below(2),
                    ports: random.below(3),
                }
            }
            _ => Self::RemoveStack(stack),
        }
    }

    fn send(&self, client: &Client) -> Result<(), ClientError> {
        let force = &RemoveQuery::FORCE;
        match self {
            Self::CreateBox { name, text, is_running, switch } => {
                let attach = [switch.as_deref().unwrap_or("-")];
                let request = CreateBox { start: *is_running, ..process(name, text, &attach) };
                client.send(&op::CREATE_BOX, &[], &request).map(drop)
            }
            Self::RemoveBox(name) => client.call(&op::REMOVE_BOX, &[name], force, &()).map(drop),
            Self::Install { name, text } => {
                let request = Install { configuration: text.to_string(), source: None, files: Vec::new() };
                client.send(&op::INSTALL, &[name, "main"], &request).map(drop)
            }
            Self::SetRunning { name, is_running: true } => client.ask(&op::START_BOX, &[name]).map(drop),
            Self::SetRunning { name, is_running: false } => client.ask(&op::STOP_BOX, &[name]).map(drop),
            Self::WriteHandler(name) => {
                let write = HandlerWrite { value: "7".into() };
                client.send(&op::WRITE, &[name, "value"], &write).map(drop)
            }
            Self::CreateSwitch(name) => {
                let request = CreateSwitch::new(name.parse().unwrap());
                client.send(&op::CREATE_SWITCH, &[], &request).map(drop)
            }
            Self::RemoveSwitch(name) => client.call(&op::REMOVE_SWITCH, &[name], force, &()).map(drop),
            Self::AddPort { switch, port } => {
                client.send(&op::ADD_PORT, &[switch], &null_port(port)).map(drop)
            }
            Self::RemovePort { switch, port } => {
                client.call(&op::REMOVE_PORT, &[switch, port], force, &()).map(drop)
            }
            Self::Apply { name, boxes, age, ports } => {
                let switch = format!("{name}lan");
                let mut lan = CreateSwitch::new(switch.parse().unwrap());
                lan.age_seconds = *age;
                lan.ports = (0..*ports).map(|number| null_port(&format!("p{number}"))).collect();
                let member = |(member, text, weight): &(String, &str, u32)| CreateBox {
                    cpu_weight: (*weight).try_into().unwrap(),
                    ..process(member, text, &[&switch])
                };
                let boxes = boxes.iter().map(member).collect();
                let stack = Stack { switches: vec![lan], boxes, ..Stack::default() };
                client.send_with_default_query(name, &stack)
            }
            Self::RemoveStack(name) => client.call(&op::REMOVE_STACK, &[name], force, &()).map(drop),
        }
    }

    /// What the operation changes if it succeeds.
    fn book(&self, world: &mut World) {
        match self.clone() {
            Self::CreateBox { name, text, is_running, .. } => {
                let entry = BoxEntry { stack: None, text: text.into(), weight: 100, is_running };
                world.boxes.insert(name, entry);
            }
            Self::RemoveBox(name) => drop(world.boxes.remove(&name)),
            Self::Install { name, text } => {
                if let Some(entry) = world.boxes.get_mut(&name) {
                    entry.text = text.into();
                }
            }
            Self::SetRunning { name, is_running } => {
                if let Some(entry) = world.boxes.get_mut(&name) {
                    entry.is_running = is_running;
                }
            }
            Self::WriteHandler(_) => {}
            Self::CreateSwitch(name) => {
                world.switches.insert(name, SwitchEntry { stack: None, age: 300, ports: BTreeMap::new() });
            }
            Self::RemoveSwitch(name) => drop(world.switches.remove(&name)),
            Self::AddPort { switch, port } => {
                if let Some(entry) = world.switches.get_mut(&switch) {
                    entry.ports.insert(port, None);
                }
            }
            Self::RemovePort { switch, port } => {
                if let Some(entry) = world.switches.get_mut(&switch) {
                    entry.ports.remove(&port);
                }
            }
            Self::Apply { name, boxes, age, ports } => {
                let before = world.clone();
                Self::RemoveStack(name.clone()).book(world);
                let stack = Some(name.clone());
                for (member, text, weight) in boxes {
                    // A box that was stopped by hand is not started.
                    let is_running = before.boxes.get(&member).is_none_or(|entry| entry.is_running);
                    let entry = BoxEntry { stack: stack.clone(), text: text.into(), weight, is_running };
                    world.boxes.insert(member, entry);
                }
                let ports = (0..ports).map(|number| (format!("p{number}"), stack.clone())).collect();
                world.switches.insert(format!("{name}lan"), SwitchEntry { stack, age, ports });
                world.stacks.push(name);
                world.stacks.sort();
            }
            Self::RemoveStack(name) => {
                world.boxes.retain(|_, entry| entry.stack.as_ref() != Some(&name));
                world.switches.retain(|_, entry| entry.stack.as_ref() != Some(&name));
                world.stacks.retain(|stack| *stack != name);
            }
        }
    }
}

/// Sends an operation with a query that is left at its defaults.
trait SendWithDefaultQuery {
    fn send_with_default_query(&self, name: &str, stack: &Stack) -> Result<(), ClientError>;
}

impl SendWithDefaultQuery for Client {
    fn send_with_default_query(&self, name: &str, stack: &Stack) -> Result<(), ClientError> {
        self.call(&op::APPLY_STACK, &[name], &api::ApplyQuery::default(), stack).map(drop)
    }
}

/// A client's books.
#[derive(Default)]
struct Books {
    /// What was acknowledged.
    world: World,
    /// The operation that was in progress when the daemon was killed.
    open: Option<Order>,
    acknowledged: u64,
}

impl Books {
    /// Runs random operations until the daemon is killed.
    fn run(&mut self, client: &Client, random: &mut Random, prefix: &str) {
        loop {
            let order = Order::new(random, prefix);
            match order.send(client) {
                Ok(()) => {
                    order.book(&mut self.world);
                    self.acknowledged += 1;
                }
                // Refused: for example, there is no such box.
                Err(ClientError::Api(error)) if error.code != api::ErrorCode::Internal => {}
                Err(ClientError::Api(error)) => panic!("{order:?}: {error}"),
                Err(_) => {
                    self.open = Some(order);
                    return;
                }
            }
        }
    }

    /// Compares the books with what a daemon has.
    fn check(&mut self, found: World) {
        let Some(open) = self.open.take() else { return assert_eq!(found, self.world) };
        if found != self.world {
            let mut after = self.world.clone();
            open.book(&mut after);
            assert_eq!(found, after, "neither whole nor absent: {open:?}, before: {:#?}", self.world);
            self.world = after;
        }
    }
}

/// Turns the store of a daemon that has ended into one of an earlier version.
fn downgrade(store: &Path, random: &mut Random) {
    let connection = rusqlite::Connection::open(store).unwrap();
    // Earlier versions have no boxes that are no boxes yet. The next opening would remove them.
    let mut orders = "BEGIN; DELETE FROM boxes WHERE operation IS NOT NULL; DROP TABLE writes;".to_string();
    let mut version = 6;
    let steps = random.below(3);
    if steps > 0 {
        orders += "DROP TABLE events;";
        version = 5;
    }
    if steps > 1 {
        orders += "DROP TABLE operations; ALTER TABLE boxes DROP COLUMN operation;";
        version = 4;
    }
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    connection.execute_batch(&format!("{orders} PRAGMA user_version = {version}; COMMIT;")).unwrap();
}

#[test]
fn what_was_acknowledged_survives_kills_and_the_rest_is_whole_or_absent() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let rounds = number("CLICKBOX_TEST_KILLS").unwrap_or(50);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let folder = Folder::new("kills");
    let mut random = Random::new(seed);
    let prefixes = ["a-", "b-"];
    let mut books = [Books::default(), Books::default()];
    let (mut migrations, mut undone) = (0, 0);
    let begin = Instant::now();
    for round in 0..rounds {
        let (child, client) = start(&folder.0);
        for (books, prefix) in books.iter_mut().zip(prefixes) {
            books.check(World::read(&client, prefix));
        }
        let life = Duration::from_micros(random.below_u64(MAX_LIFE.as_micros() as u64));
        let seeds = [random.next(), random.next()];
        std::thread::scope(|scope| {
            for ((books, prefix), seed) in books.iter_mut().zip(prefixes).zip(seeds) {
                let client = self::client(&folder.0);
                scope.spawn(move || books.run(&client, &mut Random::new(seed), prefix));
            }
            std::thread::sleep(life);
            kill(child);
        });
        undone += books.iter().filter(|books| books.open.is_some()).count();
        if round % 3 == 2 {
            // Kill it while it migrates, opens or restores.
            downgrade(&folder.file("store"), &mut random);
            let child = spawn(&folder.0);
            std::thread::sleep(Duration::from_micros(random.below_u64(80_000)));
            kill(child);
            migrations += 1;
        }
    }
    let (child, client) = start(&folder.0);
    for (books, prefix) in books.iter_mut().zip(prefixes) {
        books.check(World::read(&client, prefix));
    }
    kill(child);
    let acknowledged: u64 = books.iter().map(|books| books.acknowledged).sum();
    println!(
        "{rounds} kills of running daemons and {migrations} of migrating ones, {acknowledged} operations acknowledged, \
         {undone} in progress, in {:?}",
        begin.elapsed()
    );
    assert!(acknowledged > rounds && undone as u64 > rounds / 2, "{acknowledged} {undone}");
}
