//! Pipes between switches of two fabrics.

use fabric::{Fabric, Settings, serve};
use model::{
    AddPort, BoxName, ConfigurationName, CreateBox, CreateSwitch, Limits, MacAddr, PortDriver, PortName,
    PortRequest, Sandbox, Size, SwitchName, Time,
};
use protocol::Channel;
use protocol::fabric::{Client, Configuration, ConfigurationVersion, FabricError, PortStats, orders};
use sandbox::{HostSettings, KvmDevice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn fabric() -> Arc<Client> {
    let fabric = Fabric::start(
        &Settings { image: image::PROBE, workers: 1, shares_processors: false, switch_threads: 1 },
        HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() },
        [7; 16],
    )
    .unwrap();
    let (near, far) = Channel::pair().unwrap();
    thread::spawn(move || serve(&fabric, &Arc::new(far)));
    let (client, reader) = Client::connect(near, [7; 16]).unwrap();
    thread::spawn(move || reader.run(|_| {}));
    client
}

fn switch(name: &str) -> SwitchName {
    name.parse().unwrap()
}

/// The end of the pipe between the ports `to-right` of `left` and `to-left` of `right`.
fn end(at: &str) -> AddPort {
    let (name, far, port) = match at {
        "left" => ("to-right", "right", "to-left"),
        _ => ("to-left", "left", "to-right"),
    };
    AddPort {
        name: name.parse().unwrap(),
        driver: PortDriver::Pipe { switch: switch(far), port: port.parse().unwrap() },
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    }
}

fn open(client: &Client) -> Vec<OwnedFd> {
    let order = orders::OpenLink { switch: switch("left"), port: end("left") };
    client.ask_with(order, &[]).unwrap().1
}

fn join(client: &Client, descriptors: &[OwnedFd]) -> Result<(), FabricError> {
    let order = orders::JoinLink { switch: switch("right"), port: end("right") };
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    client.ask_with(order, &borrowed).map(|((), _)| ())
}

fn start_box(client: &Client, at: &str, text: &str) {
    let name: BoxName = "box".parse().unwrap();
    let limits = Limits { transparent: true, ..Limits::default() };
    let port = PortRequest { attach: at.parse().unwrap(), mac: Some(MacAddr::new([2; 6])), limits };
    let definition = CreateBox {
        sandbox: Sandbox::Process,
        memory: Size(1 << 20),
        ports: vec![port],
        ..CreateBox::new(name.clone(), "")
    };
    client.ask(orders::DefineBox { definition, stopped: false, prepare: false }).unwrap();
    let configuration = Configuration {
        name: ConfigurationName::main(),
        version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
        text: text.into(),
        files: Vec::new(),
        destinations: Vec::new(),
        parameters: Vec::new(),
    };
    let (configurations, writes) = (vec![configuration], Vec::new());
    let order =
        orders::StartBox { name, configurations, restore: false, writes, replay: false, has_equals: false };
    client.ask(order).unwrap();
}

fn port(client: &Client, at: &str, name: &str) -> PortStats {
    let ports = client.ask(orders::Traffic {}).unwrap().switches.remove(&switch(at)).unwrap();
    ports.get(&name.parse::<PortName>().unwrap()).unwrap().clone()
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(40), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Frames of a box in one fabric reach a box in the other. When the other fabric ends, the frames are counted as lost, and
/// the next one gets them over a new link.
#[test]
fn a_pipe_connects_the_switches_of_two_fabrics() {
    let left = fabric();
    left.ask(orders::AddSwitch { definition: CreateSwitch::new(switch("left")) }).unwrap();
    start_box(&left, "left", "send 60");
    for _ in 0..2 {
        let right = fabric();
        right.ask(orders::AddSwitch { definition: CreateSwitch::new(switch("right")) }).unwrap();
        start_box(&right, "right", "drop");
        let descriptors = open(&left);
        assert_eq!(descriptors.len(), 2);
        join(&right, &descriptors).unwrap();
        drop(descriptors);
        until("frames arrive", || port(&right, "right", "box.0").counters.sent_packets > 1000);
        let there = right.ask(orders::Inventory {}).unwrap().switches.remove(0).ports;
        let found: Vec<_> = there.iter().filter(|there| there.port == end("right")).collect();
        assert!(matches!(found[..], [one] if one.implied), "{there:?}");
        // As when its process ends, its end of the link is closed.
        right.ask(orders::RemovePort { switch: switch("right"), port: end("right").name }).unwrap();
        right.ask(orders::End {}).unwrap();
        let lost = || port(&left, "left", "to-right").counters.drops.get("down").copied().unwrap_or(0);
        let before = lost();
        until("frames are lost", || lost() > before + 1000);
        assert_eq!(port(&left, "left", "to-right").fault, None);
    }
    left.ask(orders::RemovePort { switch: switch("left"), port: end("left").name }).unwrap();
    left.ask(orders::End {}).unwrap();
}

#[test]
fn links_of_strangers_are_refused() {
    let right = fabric();
    right.ask(orders::AddSwitch { definition: CreateSwitch::new(switch("right")) }).unwrap();
    assert_eq!(join(&right, &[]), Err(FabricError::NoDevice));
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(matches!(join(&right, &[one.into(), other.into()]), Err(FabricError::Device(_))));
    let missing = orders::OpenLink { switch: switch("left"), port: end("left") };
    assert_eq!(right.ask(missing), Err(FabricError::NoSwitch(switch("left"))));
    right.ask(orders::End {}).unwrap();
}
