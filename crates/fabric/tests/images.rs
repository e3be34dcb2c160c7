//! Images that a daemon gives to a fabric, as if a stranger had.

use fabric::{Fabric, Settings, serve};
use model::{
    BoxName, ConfigurationName, CoreCount, CreateBox, ImageDigest, ImageSource, Sandbox, Size, Time,
};
use protocol::fabric::{
    Asked, CheckOutcome, Client, Configuration, ConfigurationVersion, CreateFailure, FabricError, orders,
};
use protocol::{Channel, StoreIdentity, memory_file};
use sandbox::{HostSettings, KvmDevice};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

const STORE: StoreIdentity = [7; 16];

/// A fabric whose own image runs configurations.
fn client() -> Arc<Client> {
    let settings =
        Settings { image: image::CLICKBOX, workers: 1, shares_processors: false, switch_threads: 1 };
    let host = HostSettings { kvm: KvmDevice::Given(None), ..HostSettings::default() };
    let fabric = Fabric::start(&settings, host, STORE).unwrap();
    let (near, far) = Channel::pair().unwrap();
    thread::spawn(move || serve(&fabric, &Arc::new(far)));
    let (client, reader) = Client::connect(near, STORE).unwrap();
    thread::spawn(move || reader.run(|_| {}));
    client
}

fn digest(number: u8) -> ImageDigest {
    ImageDigest([number; 32])
}

fn load(client: &Client, number: u8, contents: &[u8]) -> Result<(), FabricError> {
    let file = memory_file::create(contents).unwrap();
    let order = orders::LoadImage { image: digest(number), bytes: contents.len() as u64 };
    client.ask_with(order, &[file.as_fd()]).map(drop)
}

fn definition(name: &str, number: u8) -> CreateBox {
    let image = Some(ImageSource::Digest(digest(number)));
    let definition = CreateBox::new(name.parse().unwrap(), "");
    CreateBox { image, sandbox: Sandbox::Process, memory: Size(8 << 20), ..definition }
}

fn configuration(text: &str) -> Configuration {
    Configuration {
        name: ConfigurationName::main(),
        version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
        text: text.into(),
        files: Vec::new(),
        destinations: Vec::new(),
        parameters: Vec::new(),
    }
}

fn images(client: &Client) -> Vec<ImageDigest> {
    client.ask(orders::Inventory {}).unwrap().images
}

#[test]
fn an_image_is_kept_as_long_as_a_box_names_it() {
    let client = client();
    let define = |name: &str, number| {
        client.ask(orders::DefineBox { definition: definition(name, number), stopped: false, prepare: false })
    };
    assert_eq!(define("probe", 1), Err(FabricError::NoImage(digest(1))));
    load(&client, 1, image::PROBE).unwrap();
    // It is there: no file is needed.
    client.ask(orders::LoadImage { image: digest(1), bytes: 0 }).unwrap();
    // Its configurations are checked by it, and others by the built-in one.
    let check = |image: Option<ImageDigest>| {
        let order = orders::Check {
            configuration: configuration("mirror"),
            ports: 0,
            limits: None,
            image,
            cores: CoreCount::default(),
            faces: Vec::new(),
        };
        client.ask(order)
    };
    let found = |image: Option<ImageDigest>| match check(image) {
        Ok(CheckOutcome::Accepted(found)) => found.into_iter().map(|found| found.message).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(found(Some(digest(1))), Vec::<String>::new());
    assert_eq!(found(None), ["undeclared element ‘mirror’"]);
    assert!(matches!(check(Some(digest(2))), Err(FabricError::NoImage(image)) if image == digest(2)));
    // The second box makes a template, and the third may be a copy of it.
    for name in ["one", "two", "three"] {
        define(name, 1).unwrap();
        let start = orders::StartBox {
            name: name.parse().unwrap(),
            configurations: vec![configuration("mirror")],
            restore: false,
            writes: Vec::new(),
            replay: false,
            has_equals: false,
        };
        client.ask(start).unwrap();
    }
    let runtimes = client.ask(orders::BoxRuntimes { names: Vec::new(), ask: Asked::None }).unwrap();
    assert!(runtimes.len() == 3 && runtimes.iter().all(|runtime| runtime.uptime.is_some()), "{runtimes:?}");
    client.ask(orders::ForgetImage { image: digest(1) }).unwrap();
    assert_eq!(images(&client), [digest(1)]);
    for name in ["one", "two", "three"] {
        client.ask(orders::ForgetBox { name: name.parse::<BoxName>().unwrap() }).unwrap();
    }
    client.ask(orders::ForgetImage { image: digest(1) }).unwrap();
    assert_eq!(images(&client), []);
    assert_eq!(define("probe", 1), Err(FabricError::NoImage(digest(1))));
}

#[test]
fn what_is_no_image_is_refused() {
    let client = client();
    let refusal = |result: Result<(), FabricError>| match result {
        Err(FabricError::Image(message)) => message,
        other => panic!("{other:?}"),
    };
    assert!(refusal(load(&client, 1, b"#!/bin/sh")).contains("not a 64-bit x86 ELF program"));
    assert!(refusal(load(&client, 1, &image::PROBE[..5000])).contains("ends too early"));
    // A file that its sender could still change, a wrong length, and no file.
    let wrong = |bytes: u64, file: File| {
        let order = orders::LoadImage { image: digest(1), bytes };
        refusal(client.ask_with(order, &[file.as_fd()]).map(drop))
    };
    assert!(wrong(9, File::open("/dev/zero").unwrap()).contains("could change"), "not sealed");
    assert!(wrong(9, memory_file::create(b"too long").unwrap().into()).contains("another length"), "length");
    assert!(wrong(u64::MAX, memory_file::create(b"").unwrap().into()).contains("at most"), "too long");
    let none = client.ask(orders::LoadImage { image: digest(1), bytes: 9 });
    assert_eq!(none, Err(FabricError::NoImage(digest(1))));
    assert_eq!(images(&client), []);
    // A definition with an upload is none that a daemon orders.
    let image = Some(ImageSource::Upload("upload-1".parse().unwrap()));
    let definition = CreateBox { image, ..definition("probe", 1) };
    assert!(matches!(
        client.ask(orders::DefineBox { definition, stopped: false, prepare: false }),
        Err(FabricError::Image(_))
    ));
    // A box that is too small for its image is not created, and does not end the fabric.
    load(&client, 1, image::PROBE).unwrap();
    let small = CreateBox { memory: Size(4096), ..self::definition("probe", 1) };
    client.ask(orders::DefineBox { definition: small, stopped: false, prepare: false }).unwrap();
    let start = orders::StartBox {
        name: "probe".parse().unwrap(),
        configurations: Vec::new(),
        restore: false,
        writes: Vec::new(),
        replay: false,
        has_equals: false,
    };
    assert!(matches!(client.ask(start), Err(FabricError::Create(CreateFailure::Settings, _))));
    assert_eq!(client.ask(orders::Ping {}), Ok(()));
}
