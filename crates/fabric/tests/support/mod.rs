//! A fabric with a steering switch, and boxes at it.

#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod agent;

use fabric::{Fabric, Settings, serve};
use model::{
    Attachment, ConfigurationName, CreateBox, CreateChain, CreateSwitch, EventKind, Limits, PortRequest,
    Restart, Ring, Sandbox, Size, SwitchMode, SwitchName, Time,
};
use protocol::Channel;
use protocol::fabric::{
    Asked, BoxRuntime, Client, Configuration, ConfigurationVersion, FabricError, InstanceDefinition,
    ServiceDefinition, SteeringDefinition, SteeringReply, orders,
};
use rustix::process::Pid;
use sandbox::{HostSettings, KvmDevice};
use serde_bytes::ByteBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) struct TestBed(pub(crate) Arc<Client>);

pub(crate) fn lan() -> SwitchName {
    "lan".parse().unwrap()
}

impl TestBed {
    pub(crate) fn new() -> Self {
        Self::with_threads(1, SwitchMode::Steering)
    }

    /// A fabric with this number of switch threads, and a switch of this mode.
    pub(crate) fn with_threads(switch_threads: usize, mode: SwitchMode) -> Self {
        Self::with_fabric(switch_threads, mode).0
    }

    /// The same, and the fabric.
    pub(crate) fn with_fabric(switch_threads: usize, mode: SwitchMode) -> (Self, Fabric) {
        Self::with_kvm(KvmDevice::Given(None), switch_threads, mode)
    }

    /// The same, which may run virtual machines.
    pub(crate) fn with_kvm(kvm: KvmDevice, switch_threads: usize, mode: SwitchMode) -> (Self, Fabric) {
        let fabric = Fabric::start(
            &Settings { image: image::CLICKBOX, workers: 1, shares_processors: false, switch_threads },
            HostSettings { kvm, ..HostSettings::default() },
            [7; 16],
        )
        .unwrap();
        let (near, far) = Channel::pair().unwrap();
        let served = fabric.clone();
        thread::spawn(move || serve(&served, &Arc::new(far)));
        let (client, reader) = Client::connect(near, [7; 16]).unwrap();
        thread::spawn(move || reader.run(|_| {}));
        let definition = CreateSwitch { mode, ..CreateSwitch::new(lan()) };
        client.ask(orders::AddSwitch { definition }).unwrap();
        (Self(client), fabric)
    }

    pub(crate) fn define(&self, name: &str, ports: u8) {
        self.define_at(name, ports, Attachment::Switch(lan()));
    }

    pub(crate) fn define_at(&self, name: &str, ports: u8, attach: Attachment) {
        self.define_box(definition(name, ports, attach), false);
    }

    pub(crate) fn define_box(&self, definition: CreateBox, stopped: bool) {
        self.0.ask(orders::DefineBox { definition, stopped, prepare: false }).unwrap();
    }

    pub(crate) fn start(&self, name: &str, text: &str, destinations: &[&str]) -> Result<(), FabricError> {
        self.start_with(
            name,
            Configuration {
                destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
                ..configuration(text)
            },
        )
    }

    pub(crate) fn start_with(&self, name: &str, configuration: Configuration) -> Result<(), FabricError> {
        let order = orders::StartBox {
            name: name.parse().unwrap(),
            configurations: vec![configuration],
            restore: false,
            writes: Vec::new(),
            replay: false,
            has_equals: false,
        };
        self.0.ask(order).map(drop)
    }

    pub(crate) fn run(&self, name: &str, ports: u8, text: &str, destinations: &[&str]) {
        self.define(name, ports);
        self.start(name, text, destinations).unwrap();
    }

    pub(crate) fn read(&self, name: &str, handler: &str) -> u64 {
        let order = orders::ReadHandler {
            name: name.parse().unwrap(),
            configuration: ConfigurationName::main(),
            handler: handler.into(),
            argument: ByteBuf::new(),
            timeout_ms: 5000,
        };
        String::from_utf8(self.0.ask(order).unwrap().into_vec()).unwrap().trim().parse().unwrap()
    }

    pub(crate) fn write(&self, name: &str, handler: &str, value: &str) {
        let order = orders::WriteHandler {
            name: name.parse().unwrap(),
            configuration: ConfigurationName::main(),
            handler: handler.into(),
            value: ByteBuf::from(value.as_bytes()),
        };
        self.0.ask(order).unwrap();
    }

    pub(crate) fn send(&self, packets: u64) {
        let limit = self.read("source", "s.count") + packets;
        self.write("source", "s.limit", &limit.to_string());
        self.write("source", "s.active", "true");
    }

    pub(crate) fn runtime(&self, name: &str) -> BoxRuntime {
        let names = vec![name.parse().unwrap()];
        self.0.ask(orders::BoxRuntimes { names, ask: Asked::None }).unwrap().remove(0)
    }

    /// The process of a box.
    pub(crate) fn process(&self, name: &str) -> Pid {
        Pid::from_raw(self.runtime(name).process.unwrap()).unwrap()
    }

    /// The messages of events of this kind.
    pub(crate) fn events(&self, kind: EventKind) -> Vec<String> {
        let page = self.0.ask(orders::Events { after: 0, most: 1024 }).unwrap();
        page.events.into_iter().filter(|event| event.kind == kind).map(|event| event.message).collect()
    }

    pub(crate) fn steer(
        &self,
        services: Vec<ServiceDefinition>,
        chains: Vec<CreateChain>,
    ) -> Result<(), FabricError> {
        let steering = SteeringDefinition { services, chains };
        self.0.ask(orders::SetSteering { switch: lan(), steering })
    }

    pub(crate) fn state(&self) -> SteeringReply {
        self.0.ask(orders::Steering { switch: lan() }).unwrap()
    }

    pub(crate) fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            let seen = || (self.0.ask(orders::Traffic {}), self.0.ask(orders::Steering { switch: lan() }));
            assert!(begin.elapsed() < Duration::from_secs(40), "{what}: {:?}", seen());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A box in a process, with ports that send from any address.
pub(crate) fn definition(name: &str, ports: u8, attach: Attachment) -> CreateBox {
    let limits = Limits { transparent: true, ..Limits::default() };
    let port = PortRequest { attach, limits, ..PortRequest::default() };
    let ports = (0..ports).map(|number| PortRequest {
        mac: Some(model::MacAddr::new([
            2,
            1,
            name.len() as u8,
            name.as_bytes()[0],
            number,
            name.as_bytes()[name.len() - 1],
        ])),
        ..port.clone()
    });
    CreateBox {
        sandbox: Sandbox::Process,
        memory: Size(16 << 20),
        restart: Restart::OnFailure,
        // More slots than packets are sent at once.
        ring: Ring::try_from(2048).unwrap(),
        ports: ports.collect(),
        ..CreateBox::new(name.parse().unwrap(), "")
    }
}

pub(crate) fn service(
    name: &str,
    faces: &str,
    instances: &[&str],
    destinations: &[&str],
) -> ServiceDefinition {
    let instance =
        |name: &&str| InstanceDefinition { name: name.parse().unwrap(), draining: false, range: None };
    ServiceDefinition {
        name: name.parse().unwrap(),
        faces: faces.parse().unwrap(),
        destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
        instances: instances.iter().map(instance).collect(),
        dead_after_ms: None,
        places: None,
        pool: None,
        translation: None,
    }
}

pub(crate) fn chain(services: &[&str]) -> CreateChain {
    CreateChain {
        name: "web".parse().unwrap(),
        switch: lan(),
        services: services.iter().map(|name| name.parse().unwrap()).collect(),
        from: Some("source.0".parse().unwrap()),
        to: "sink.0".parse().unwrap(),
        both_ways: true,
    }
}

/// A configuration without files and rights.
pub(crate) fn configuration(text: &str) -> Configuration {
    Configuration {
        name: ConfigurationName::main(),
        version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
        text: text.into(),
        files: Vec::new(),
        destinations: Vec::new(),
        parameters: Vec::new(),
    }
}
