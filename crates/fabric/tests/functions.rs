//! Functions in other processes, which here are threads that write to the same memory: those that behave, and those that do not.

mod function_process;
#[path = "functions/handover.rs"]
mod handover;
#[path = "functions/leaving.rs"]
mod leaving;
#[path = "functions/pools.rs"]
mod pools;
mod support;

use function_process::{FunctionProcess, Socket};
use model::{
    AccountPlace, Attachment, ChainStatus, ConfigurationName, CreateBox, CreateChain, EventKind,
    InstanceStatus, Limits, Owner, PortRequest, Ring, Sandbox, Size, SwitchMode, SwitchName, Time,
};
use protocol::fabric::{
    Client, Configuration, ConfigurationVersion, FabricError, InstanceDefinition, ServiceDefinition,
    SteeringDefinition, orders,
};
use protocol::function::{FromFunction, MAX_MESSAGE, RefusedReason, TOKEN_BYTES, ToFunction, VERSION};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A source of UDP packets of 32 flows, as many as the handler `limit` says.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 0, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetRandIPAddress(10.0.0.0/27) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> sent :: Counter -> ToDevice(0); FromDevice(0) -> Discard;";
const SINK: &str = "FromDevice(0) -> got :: Counter -> Discard;";

const TOKEN: &[u8; TOKEN_BYTES] = b"0123456789abcdef0123456789abcdef";

/// A fabric with a source, two sinks and a chain from the source through the service `nf` to the first sink.
struct TestBed {
    client: Arc<Client>,
    socket: Socket,
    /// The owner whose pool functions join.
    pool: Option<Owner>,
}

fn lan() -> SwitchName {
    "lan".parse().unwrap()
}

fn service(name: &str, faces: &str, destinations: &[&str]) -> ServiceDefinition {
    ServiceDefinition {
        name: name.parse().unwrap(),
        faces: faces.parse().unwrap(),
        destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
        instances: Vec::new(),
        translation: None,
        dead_after_ms: None,
        places: None,
        pool: None,
    }
}

fn chain() -> CreateChain {
    CreateChain {
        name: "web".parse().unwrap(),
        switch: lan(),
        services: vec!["nf".parse().unwrap()],
        from: Some("source.0".parse().unwrap()),
        to: "sink.0".parse().unwrap(),
        both_ways: false,
    }
}

impl TestBed {
    /// With a service with these faces, whose functions may send to these destinations, and this number of switch threads.
    fn new(name: &str, threads: usize, faces: &str, destinations: &[&str]) -> Self {
        Self::with_pool(name, threads, (faces, destinations), None)
    }

    /// The same, with functions in the pool of this owner. If the boxes have the same owner, they are in it too.
    fn with_pool(
        name: &str,
        threads: usize,
        (faces, destinations): (&str, &[&str]),
        pool: Option<Owner>,
    ) -> Self {
        let client = support::TestBed::with_threads(threads, SwitchMode::Steering).0;
        let bed = Self { client, socket: Socket::new(&format!("{name}-{threads}")), pool };
        // Packets that are no longer than the head that the switch copies do not stay in their buffers.
        let length = if bed.pool.is_some() { "LENGTH 218" } else { "LENGTH 18" };
        let source = SOURCE.replace("LENGTH 18", length);
        for (number, (name, text)) in
            [("source", source.as_str()), ("sink", SINK), ("jail", SINK)].into_iter().enumerate()
        {
            bed.run(name, number as u8, text);
        }
        let pool = bed.pool.clone();
        bed.steer(vec![ServiceDefinition { pool, ..service("nf", faces, destinations) }]).unwrap();
        bed.serve("nf").unwrap();
        bed
    }

    fn run(&self, name: &str, number: u8, text: &str) {
        let port = PortRequest {
            attach: Attachment::Switch(lan()),
            mac: Some(model::MacAddr::new([2, 1, 0, 0, 0, number])),
            limits: Limits { transparent: true, ..Limits::default() },
        };
        let definition = CreateBox {
            sandbox: Sandbox::Process,
            memory: Size(4 << 20),
            // More slots than packets are sent at once.
            ring: Ring::try_from(2048).unwrap(),
            ports: vec![port],
            share_packets: self.pool == Some(Owner::default()),
            ..CreateBox::new(name.parse().unwrap(), "")
        };
        self.client.ask(orders::DefineBox { definition, stopped: false, prepare: false }).unwrap();
        self.start(name, text);
    }

    fn start(&self, name: &str, text: &str) {
        let configuration = Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
            text: text.into(),
            files: Vec::new(),
            destinations: Vec::new(),
            parameters: Vec::new(),
        };
        let order = orders::StartBox {
            name: name.parse().unwrap(),
            configurations: vec![configuration],
            restore: false,
            writes: Vec::new(),
            replay: false,
            has_equals: false,
        };
        self.client.ask(order).unwrap();
    }

    fn steer(&self, services: Vec<ServiceDefinition>) -> Result<(), FabricError> {
        let chains = if services.is_empty() { Vec::new() } else { vec![chain()] };
        self.steer_chains(services, chains)
    }

    fn steer_chains(
        &self,
        services: Vec<ServiceDefinition>,
        chains: Vec<CreateChain>,
    ) -> Result<(), FabricError> {
        let steering = SteeringDefinition { services, chains };
        self.client.ask(orders::SetSteering { switch: lan(), steering })
    }

    fn serve(&self, service: &str) -> Result<(), FabricError> {
        self.serve_at(service, &self.socket)
    }

    fn serve_at(&self, service: &str, socket: &Socket) -> Result<(), FabricError> {
        let order = orders::ServeFunctions {
            switch: lan(),
            service: service.parse().unwrap(),
            token: ByteBuf::from(TOKEN.to_vec()),
        };
        self.client.ask_with(order, &[socket.listener().as_fd()]).map(drop)
    }

    fn read(&self, name: &str, handler: &str) -> u64 {
        let order = orders::ReadHandler {
            name: name.parse().unwrap(),
            configuration: ConfigurationName::main(),
            handler: handler.into(),
            argument: ByteBuf::new(),
            timeout_ms: 5000,
        };
        String::from_utf8(self.client.ask(order).unwrap().into_vec()).unwrap().trim().parse().unwrap()
    }

    /// Sends packets, and waits until the switch has them.
    fn send(&self, packets: u64) {
        let limit = self.read("source", "s.count") + packets;
        for (handler, value) in [("s.limit", limit.to_string()), ("s.active", "true".into())] {
            let order = orders::WriteHandler {
                name: "source".parse().unwrap(),
                configuration: ConfigurationName::main(),
                handler: handler.into(),
                value: ByteBuf::from(value.into_bytes()),
            };
            self.client.ask(order).unwrap();
        }
        self.until("the switch has the packets", |bed| bed.port("source.0").0 == limit);
    }

    fn instances(&self, index: usize) -> Vec<InstanceStatus> {
        self.client.ask(orders::Steering { switch: lan() }).unwrap().services[index].1.clone()
    }

    /// Whether each instance of the first service is up.
    fn up(&self) -> Vec<bool> {
        self.instances(0).iter().map(|instance| instance.up).collect()
    }

    /// Packets from a port, packets to it, and those lost there by reason.
    fn port(&self, name: &str) -> (u64, u64, BTreeMap<String, u64>) {
        let ports = self.client.ask(orders::Traffic {}).unwrap().switches.remove(&lan()).unwrap();
        let counters = ports[&name.parse().unwrap()].counters.clone();
        (counters.received_packets, counters.sent_packets, counters.drops)
    }

    fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(begin.elapsed() < Duration::from_secs(40), "{what}: {:?}", self.instances(0));
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The events of this kind.
    fn events(&self, kind: EventKind) -> Vec<String> {
        let page = self.client.ask(orders::Events { after: 0, most: 1000 }).unwrap();
        page.events.into_iter().filter(|event| event.kind == kind).map(|event| event.message).collect()
    }

    /// The events about functions that left, once at least `count` are recorded: the switch shows an
    /// instance as down before that.
    fn detached(&self, count: usize) -> Vec<String> {
        let read = |bed: &Self| bed.events(EventKind::FunctionDetached);
        self.until("the events are recorded", |bed| read(bed).len() >= count);
        read(self)
    }

    fn join(&self) -> FunctionProcess {
        self.socket.connect().register(TOKEN, 0).unwrap()
    }

    /// Every packet that entered the switch left it, or was lost for a reason that is counted.
    fn check_account(&self) {
        let order = orders::Account { boxes: None, switches: None, services: false };
        let is_balanced = |bed: &Self| {
            let rows = bed.client.ask(order.clone()).unwrap();
            rows.iter().all(|row| {
                let lost: u64 = row.lost.values().sum();
                let [incoming, out, waiting] =
                    [row.incoming, row.out, row.waiting].map(Option::unwrap_or_default);
                incoming + row.made == out + lost + row.discarded + waiting
                    || !matches!(row.place, AccountPlace::Port { .. } | AccountPlace::Switch { .. })
            })
        };
        self.until("the accounts are right", is_balanced);
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        let _ = self.client.ask(orders::End {});
    }
}

/// Runs a test with one switch thread, and with two.
fn with_threads(test: fn(usize)) {
    thread::scope(|scope| {
        for threads in [1, 2] {
            scope.spawn(move || test(threads));
        }
    });
}

fn drops(reason: &str, count: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(reason.to_string(), count)])
}

/// Two functions share the flows; when one vanishes with packets in its ring, these are counted, and its flows continue.
#[test]
fn a_function_that_vanishes_loses_only_what_it_has() {
    with_threads(|threads| {
        let bed = TestBed::new("vanish", threads, "in=0", &[]);
        let (mut first, mut second) = (bed.join(), bed.join());
        assert_eq!([&first, &second].map(|there| there.welcome.instance.to_string()), ["nf-1", "nf-2"]);
        assert_eq!(bed.up(), [true, true]);
        bed.send(400);
        let mut forwarded = [0, 0];
        bed.until("packets pass", |bed| bed.port("nf-1.0").1 + bed.port("nf-2.0").1 == 400);
        for (function, count) in [&mut first, &mut second].into_iter().zip(&mut forwarded) {
            *count = function.forward(u64::MAX, 0);
        }
        assert!(
            forwarded[0] + forwarded[1] == 400 && forwarded.iter().all(|count| *count > 50),
            "{forwarded:?}"
        );
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 400);
        let flows: Vec<u64> = bed.instances(0).iter().map(|instance| instance.flows).collect();
        assert_eq!(flows.iter().sum::<u64>(), 32);

        // The second takes no packets any more, and vanishes with those in its ring.
        bed.send(400);
        bed.until("packets wait", |bed| bed.port("nf-1.0").1 + bed.port("nf-2.0").1 == 800);
        let waiting = bed.port("nf-2.0").1 - forwarded[1];
        assert!(waiting > 50, "{waiting}");
        bed.until("they are shown", |bed| bed.instances(0)[1].waiting == waiting);
        let passed = first.forward(u64::MAX, 0);
        assert_eq!(passed + waiting, 400);
        drop(second);
        bed.until("the switch knows", |bed| bed.up() == [true, false]);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 400 + passed);
        assert_eq!(bed.port("nf-2.0"), (forwarded[1], forwarded[1] + waiting, drops("down", waiting)));
        let left = bed.detached(1);
        let expected =
            format!("nf-2 left service nf: its process ended or left; {waiting} packets were lost");
        assert!(left.len() == 1 && left[0].contains(&expected), "{left:?}");

        // All flows continue at the first.
        bed.send(400);
        bed.until("packets pass", |bed| bed.port("nf-1.0").1 == forwarded[0] + passed + 400);
        assert_eq!(first.forward(u64::MAX, 0), 400);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 800 + passed);
        let flows: Vec<u64> = bed.instances(0).iter().map(|instance| instance.flows).collect();
        assert_eq!(flows, [32, 0]);
        assert_eq!(bed.port("source.0"), (1200, 0, BTreeMap::new()));
        assert_eq!(bed.port("sink.0"), (0, 800 + passed, BTreeMap::new()));

        // The next function takes the number that is free, with memory of its own.
        let third = bed.join();
        assert_eq!((third.welcome.instance.as_str(), bed.up()), ("nf-2", vec![true, true]));
        assert_ne!(third.file_number(), first.file_number());
        bed.check_account();
        // Without any function, packets are lost where they would enter.
        drop((first, third));
        bed.until("the switch knows", |bed| bed.up() == [false, false]);
        bed.send(10);
        bed.until("packets are lost", |bed| bed.port("source.0").2 == drops("no_instance", 10));
        bed.check_account();
    });
}

/// What a connection says first, and how it ends.
#[test]
fn only_functions_that_register_rightly_are_accepted() {
    with_threads(|threads| {
        let bed = TestBed::new("refuse", threads, "in=0", &[]);
        let register = |version, token: &[u8; TOKEN_BYTES], slots| {
            FromFunction::Register { version, slots, hands_over: false, token: *token }.encode()
        };
        let good = register(VERSION, TOKEN, 64);
        let mut long = good.clone();
        long.resize(MAX_MESSAGE + 1, 0);
        let mut wrong_length = good.clone();
        wrong_length[4] += 1;
        let counters = FromFunction::Counters(vec![("x".into(), 1)]).encode();
        let other = [b'0'; TOKEN_BYTES];
        for (message, reason) in [
            (register(VERSION, &other, 0), RefusedReason::Token),
            (register(VERSION + 1, TOKEN, 0), RefusedReason::Version),
            (register(VERSION, TOKEN, 63), RefusedReason::Malformed),
            (register(VERSION, TOKEN, u16::MAX), RefusedReason::Malformed),
            (good[..good.len() - 1].to_vec(), RefusedReason::Malformed),
            (good[..3].to_vec(), RefusedReason::Malformed),
            (long, RefusedReason::Malformed),
            (wrong_length, RefusedReason::Malformed),
            (counters.clone(), RefusedReason::Malformed),
            (vec![0xff; 100], RefusedReason::Malformed),
        ] {
            let connection = bed.socket.connect();
            connection.send(&message);
            assert_eq!(connection.receive(), Some(ToFunction::Refused(reason)));
            assert_eq!(connection.receive(), None, "the connection is closed");
        }
        // Descriptors that come with a message are closed.
        let connection = bed.socket.connect();
        connection.send_with_descriptor(&good);
        assert!(matches!(connection.receive(), Some(ToFunction::Welcome(_))));
        assert_eq!(bed.up(), [true]);
        drop(connection);
        bed.until("it is gone", |bed| bed.up() == [false]);
        // A second registration, and a message that is none.
        for message in [good.clone(), counters[..9].to_vec()] {
            let mut function = bed.join();
            assert_eq!(function.welcome.instance.as_str(), "nf-1");
            function.send(&message);
            assert_eq!(function.receive(), Some(ToFunction::Refused(RefusedReason::Malformed)));
            bed.until("it is gone", |bed| bed.up() == [false]);
            function.forward(1, 0);
        }
        // Those that say nothing keep nobody else out for long, and are closed.
        let silent: Vec<_> = (0..64).map(|_| bed.socket.connect()).collect();
        let late = silent.iter().filter_map(|connection| connection.receive());
        assert!(late.eq(vec![ToFunction::Refused(RefusedReason::Late); 32]));
        let function = bed.join();
        assert_eq!((function.welcome.instance.as_str(), bed.up()), ("nf-1", vec![true]));
        // Orders that are wrong.
        assert!(matches!(bed.serve("other"), Err(FabricError::Flow(_))));
        let order = orders::ServeFunctions {
            switch: lan(),
            service: "nf".parse().unwrap(),
            token: ByteBuf::from(TOKEN.to_vec()),
        };
        assert_eq!(bed.client.ask(order.clone()), Err(FabricError::NoDevice));
        let refused = |order: orders::ServeFunctions, descriptor: &dyn AsFd| {
            matches!(bed.client.ask_with(order, &[descriptor.as_fd()]), Err(FabricError::Device(_)))
        };
        assert!(refused(order.clone(), &std::fs::File::open("/dev/null").unwrap()));
        assert!(refused(order.clone(), &std::os::unix::net::UnixStream::pair().unwrap().0));
        let short = orders::ServeFunctions { token: ByteBuf::from(vec![b'0'; 31]), ..order };
        assert!(refused(short, &bed.socket.listener()));
    });
}

/// The function answers with destinations, some of which it may not use.
#[test]
fn answers_are_checked_against_the_rights_of_the_service() {
    with_threads(|threads| {
        let bed = TestBed::new("answers", threads, "in=0", &["port:jail.0"]);
        let mut function = bed.join();
        assert_eq!(function.welcome.destinations, ["port:jail.0".parse().unwrap()]);
        bed.send(100);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 == 100);
        use boundary::Answer::{Drop, LookUp, Next, Port, Service};
        let answers = [(Next, 10), (Port(0), 20), (Port(1), 5), (Service(0), 5), (Drop, 30), (LookUp, 30)];
        for (answer, count) in answers {
            assert_eq!(function.forward(count, answer.to_meta()), count);
        }
        // Those that were overruled go on in the chain. No flow concerns those that are looked up, so they go on behind the service.
        bed.until("packets leave", |bed| bed.read("sink", "got.count") == 10 + 5 + 5 + 30);
        bed.until("packets leave", |bed| bed.read("jail", "got.count") == 20);
        bed.until("packets are dropped", |bed| bed.port("nf-1.0") == (100, 100, drops("function_drop", 30)));
        assert_eq!(bed.instances(0)[0].overruled, 10);
        bed.check_account();
        // What a function drops is no loss of its chain and of the switch.
        let rows = bed.client.ask(orders::Account { boxes: None, switches: None, services: true }).unwrap();
        let numbers = rows.iter().filter_map(|row| {
            let is_asked = matches!(row.place, AccountPlace::Chain { .. } | AccountPlace::Switch { .. });
            is_asked.then(|| (row.place.to_string(), (row.lost(), row.discarded)))
        });
        let expected = ["chain lan/web", "switch lan"].map(|place| (place.to_string(), (0, 30)));
        assert_eq!(numbers.collect::<BTreeMap<_, _>>(), BTreeMap::from(expected));
    });
}

/// A function gives all flows another chain, as long as that is there.
#[test]
fn a_function_gives_flows_another_chain() {
    with_threads(|threads| {
        let bed = TestBed::new("director", threads, "in=0", &["chain:scrub"]);
        bed.run("scrub-1", 3, "FromDevice(0) -> got :: Counter -> ToDevice(0);");
        let mut function = bed.socket.connect().register(TOKEN, 2048).unwrap();
        assert_eq!(function.welcome.destinations, ["chain:scrub".parse().unwrap()]);
        let [nf, scrub] = [service("nf", "in=0", &["chain:scrub"]), service("scrub", "in=0", &[])];
        let instance = InstanceDefinition { name: "scrub-1".parse().unwrap(), draining: false, range: None };
        let services = vec![nf, ServiceDefinition { instances: vec![instance], ..scrub }];
        let scrub = CreateChain {
            name: "scrub".parse().unwrap(),
            services: vec!["scrub".parse().unwrap()],
            from: None,
            to: "jail.0".parse().unwrap(),
            ..chain()
        };
        let counts = |bed: &TestBed| {
            let ends = ["sink", "jail", "scrub-1"].map(|name| bed.read(name, "got.count"));
            let chains = bed.client.ask(orders::Steering { switch: lan() }).unwrap().chains;
            let chain = |chain: &ChainStatus| {
                [chain.hops[0].traffic[0], chain.left[0]].map(|traffic| (traffic.packets, traffic.lost))
            };
            (ends, chains.iter().map(chain).collect::<Vec<_>>())
        };
        let into = boundary::Answer::FlowChain(0).to_meta();
        let mut at_function = 0;
        // Where packets arrive, and of each chain: what was sent to its hop, and what left it.
        let rounds = [
            (false, [(100, true)].as_slice(), ([100, 0, 0], vec![[100, 100]])),
            // With the first packets, those of all of the 32 flows.
            (true, &[(1000, true), (1000, false)], ([100, 2000, 2000], vec![[1100, 100], [2000, 2000]])),
            (false, &[(100, true)], ([200, 2000, 2000], vec![[1200, 200]])),
        ];
        for (there, sends, (ends, chains)) in rounds {
            let other = there.then(|| scrub.clone());
            bed.steer_chains(services.clone(), [chain()].into_iter().chain(other).collect()).unwrap();
            bed.until("the instances are up", |bed| bed.instances(1)[0].up);
            for (count, is_seen) in sends {
                bed.send(*count);
                if *is_seen {
                    at_function += count;
                    bed.until("packets come", |bed| bed.port("nf-1.0").1 == at_function);
                    assert_eq!(function.forward(*count, into), *count);
                    bed.until("packets go on", |bed| bed.port("nf-1.0").0 == at_function);
                }
            }
            let lossless = |pair: [u64; 2]| pair.map(|count| (count, 0));
            let expected = (ends, chains.into_iter().map(lossless).collect());
            bed.until("packets arrive", |bed| counts(bed).0 == expected.0);
            assert_eq!(counts(&bed), expected);
        }
        assert_eq!((bed.instances(0)[0].overruled, bed.port("nf-1.0").2), (200, BTreeMap::new()));
        bed.check_account();
    });
}

/// Descriptors outside of the region are counted; an index that cannot be ends the membership, and nothing else.
#[test]
fn descriptors_that_lie_are_counted() {
    with_threads(|threads| {
        let bed = TestBed::new("lies", threads, "in=0", &[]);
        let mut function = bed.join();
        bed.send(10);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 == 10);
        assert_eq!(function.forward(10, 0), 10);
        let lies = [u64::MAX, 0xfffff, 2040 << 20 | 60 << 32, 2049 << 32];
        for lie in lies {
            function.push_raw(lie);
        }
        function.publish();
        bed.until("the lies are counted", |bed| bed.port("nf-1.0") == (10, 10, drops("faulty", 4)));
        assert_eq!(bed.up(), [true]);
        // A buffer that it was not given is a packet that it made: it has no identity, but is no danger.
        function.push_raw(1000 | 60 << 32);
        function.publish();
        bed.until("it is looked up", |bed| bed.port("nf-1.0").0 == 11);
        // The index of the ring from the function, far ahead.
        function.write_index(1 << 20);
        bed.until("it is taken out", |bed| bed.up() == [false]);
        assert_eq!(function.receive(), None);
        let left = bed.detached(1);
        assert!(left.iter().any(|text| text.contains("violated the ring protocol")), "{left:?}");
        // The next one has the number, and counters that go on.
        let mut next = bed.join();
        assert_eq!(next.welcome.instance.as_str(), "nf-1");
        let before = bed.port("nf-1.0").1;
        bed.send(10);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 == before + 10);
        assert_eq!(next.forward(10, 0), 10);
        bed.check_account();
    });
}

/// A function that takes no packets is taken out, and its flows continue elsewhere.
#[test]
fn a_silent_function_is_taken_out() {
    with_threads(|threads| {
        let bed = TestBed::new("silent", threads, "in=0", &[]);
        let (mut works, silent) = (bed.join(), bed.join());
        bed.send(200);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 + bed.port("nf-2.0").1 == 200);
        let waiting = bed.port("nf-2.0").1;
        assert_eq!(works.forward(u64::MAX, 0), 200 - waiting);
        bed.until("it is taken out", |bed| bed.up() == [true, false]);
        assert_eq!(bed.port("nf-2.0"), (0, waiting, drops("down", waiting)));
        assert_eq!(silent.receive(), None);
        let left = bed.detached(1);
        assert!(left[0].contains("nf-2 left service nf: it took no packets for 2 s"), "{left:?}");
        // One without work is not silent.
        bed.send(50);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 == 250 - waiting);
        assert_eq!(works.forward(u64::MAX, 0), 50);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 250 - waiting);
        bed.check_account();
    });
}

/// A service with two faces, whose functions are told apart from boxes; changes of the service end memberships.
#[test]
fn a_service_that_changes_lets_its_functions_go() {
    with_threads(|threads| {
        let bed = TestBed::new("changes", threads, "in=0,out=1", &[]);
        let mut function = bed.join();
        assert_eq!(function.welcome.faces.len(), 2);
        bed.send(10);
        bed.until("packets come", |bed| bed.port("nf-1.0").1 == 10);
        assert_eq!(function.forward_across(10), 10);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 10);
        assert_eq!(
            (bed.port("nf-1.0"), bed.port("nf-1.1")),
            ((0, 10, BTreeMap::new()), (10, 0, BTreeMap::new()))
        );
        // What does not concern it leaves it there.
        bed.steer(vec![service("nf", "in=0,out=1", &[]), service("other", "in=0", &[])]).unwrap();
        // A refused order changes nothing.
        let long = InstanceDefinition { name: "x".repeat(63).parse().unwrap(), draining: false, range: None };
        let other = ServiceDefinition { instances: vec![long], ..service("other", "in=0", &[]) };
        bed.steer(vec![service("nf", "in=0,out=1", &["other"]), other]).unwrap_err();
        assert_eq!((bed.up(), bed.port("nf-1.0").1), (vec![true], 10));
        // It knows destinations by their places.
        bed.steer(vec![service("nf", "in=0,out=1", &["other"]), service("other", "in=0", &[])]).unwrap();
        assert_eq!(function.receive(), None);
        assert_eq!(bed.instances(0), []);
        let function = bed.join();
        assert_eq!((function.welcome.instance.as_str(), bed.up()), ("nf-1", vec![true]));
        bed.steer(Vec::new()).unwrap();
        assert_eq!(function.receive(), None);
        let ports = bed.client.ask(orders::Ports { switch: lan() }).unwrap();
        assert_eq!(ports.len(), 3, "its ports went with it: {ports:?}");
        // The socket of a service that is gone is closed.
        bed.until("the socket is closed", |bed| bed.socket.try_connect().is_none());
    });
}

/// Each time the switch is changed, and everybody learns of it.
#[test]
fn a_function_that_joins_again_and_again_is_slowed_down() {
    let (bed, begin) = (TestBed::new("again", 1, "in=0", &[]), Instant::now());
    (0..300).for_each(|_| drop(bed.socket.connect().register(TOKEN, 64).unwrap()));
    assert!(begin.elapsed() > Duration::from_secs(2), "256 at once, and 20 a second: {:?}", begin.elapsed());
}

/// No more functions join than the service has places.
#[test]
fn a_service_has_a_number_of_places() {
    with_threads(|threads| {
        let bed = TestBed::new("places", threads, "in=0", &[]);
        let with = |places| vec![ServiceDefinition { places: Some(places), ..service("nf", "in=0", &[]) }];
        bed.steer(with(2)).unwrap();
        let refused = || {
            let connection = bed.socket.connect();
            connection.send(
                &FromFunction::Register { version: VERSION, slots: 64, hands_over: false, token: *TOKEN }
                    .encode(),
            );
            connection.receive() == Some(ToFunction::Refused(RefusedReason::Full))
        };
        let (first, second) = (bed.join(), bed.join());
        assert_eq!(bed.up(), [true, true]);
        assert!(refused() && refused());
        assert_eq!(bed.up(), [true, true]);
        // One that leaves makes room.
        drop(first);
        bed.until("it is gone", |bed| bed.up() == [false, true]);
        let first = bed.join();
        assert_eq!((first.welcome.instance.as_str(), refused()), ("nf-1", true));
        // With fewer places all join again, as far as there is room.
        bed.steer(with(1)).unwrap();
        for function in [first, second] {
            assert_eq!(function.receive(), None);
        }
        let _only = bed.join();
        assert!(refused());
        assert_eq!(bed.up(), [true]);
    });
}

/// Counters are shown, and messages reach the functions of a service that may be sent to.
#[test]
fn functions_publish_counters_and_send_messages() {
    with_threads(|threads| {
        let bed = TestBed::new("messages", threads, "in=0", &[]);
        let both = vec![service("nf", "in=0", &["other", "port:sink.0"]), service("other", "in=0", &[])];
        bed.steer(both).unwrap();
        let (sender, one) = (bed.join(), {
            bed.serve("other").unwrap();
            bed.socket.connect().register(TOKEN, 0).unwrap()
        });
        assert_eq!((sender.welcome.instance.as_str(), one.welcome.instance.as_str()), ("nf-1", "other-1"));
        sender.send(&FromFunction::Counters(vec![("seen".into(), 7), ("lost".into(), 1)]).encode());
        let expected = BTreeMap::from([("lost".to_string(), 1), ("seen".to_string(), 7)]);
        bed.until("they are shown", |bed| bed.instances(0)[0].counters == expected);
        let message =
            |destination, payload: &[u8]| FromFunction::Message { destination, payload: payload.into() };
        // To a port, to what is not there, and to the service.
        for destination in [1, 2, u16::MAX, 0] {
            sender.send(&message(destination, b"hello").encode());
        }
        let from = "nf".parse().unwrap();
        assert_eq!(one.receive(), Some(ToFunction::Message { from, payload: b"hello".to_vec() }));
        // It may not send to anyone.
        one.send(&message(0, b"back").encode());
        // One that does not read keeps no one waiting; what it has no room for is counted.
        for number in 0..3000u32 {
            sender.send(&message(0, &number.to_le_bytes().repeat(1000)).encode());
        }
        drop(sender);
        bed.until("it is gone", |bed| bed.up() == [false]);
        let left = bed.detached(1);
        assert!(left[0].contains("messages were lost"), "{left:?}");
        let mut received = 0;
        while received < 3000 && one.receive_now().is_some() {
            received += 1;
        }
        let lost = left[0].split("; ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(received + lost, 3003, "{}", left[0]);
    });
}
