//! Tests of services that translate addresses, with a fabric whose switches a test stands in for.

use super::check_instance_names;
use super::test_bed::{TestBed, process};
use crate::error::OperationError;
use api::{
    AddPort, CreateBox, CreateChain, CreateService, CreateSwitch, ExternalSwitch, Install, Limits,
    PortDriver, ScaleService, ServiceName, ServiceStatus, Stack, SwitchMode, SwitchName, Translation,
    with_causes,
};

const NAT: &str = "
    define($TRANSLATE_ADDRESS 192.0.2.1, $TRANSLATE_PORTS 1-65535);
    f :: IPRewriter(pattern $TRANSLATE_ADDRESS $TRANSLATE_PORTS - - 0 1, drop);
    FromDevice(0) -> f -> Discard; FromDevice(1) -> [1]f; f[1] -> Discard;";

fn lan() -> SwitchName {
    "lan".parse().unwrap()
}

fn nat() -> ServiceName {
    "nat".parse().unwrap()
}

fn translation(slices: u16, mappings: &[&str]) -> Translation {
    Translation {
        ranges: vec!["203.0.113.1:1024-65535".parse().unwrap()],
        slices,
        mappings: mappings.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

fn service(replicas: u16) -> CreateService {
    CreateService {
        name: nat(),
        switch: lan(),
        instance: process("nat", NAT),
        faces: "in=0,out=1".parse().unwrap(),
        replicas,
        container: false,
        places: None,
        trust_pool: false,
        may_send_to: Default::default(),
        translation: Some(translation(4, &[])),
        dead_after_ms: None,
        auto: None,
    }
}

/// A daemon with a steering switch.
fn bed() -> TestBed {
    let bed = TestBed::with_click();
    bed.0.fabrics.stand_in.begin();
    let port = |name: &str| AddPort {
        name: name.parse().unwrap(),
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    let ports = vec![port("wan"), port("wan2")];
    let switch = CreateSwitch { mode: SwitchMode::Steering, ports, ..CreateSwitch::new(lan()) };
    bed.create_switch(switch).unwrap();
    bed
}

fn scale(bed: &TestBed, replicas: u16) -> Result<ServiceStatus, OperationError> {
    bed.scale_service(&nat(), ScaleService { replicas: Some(replicas), auto: None, drain_seconds: 100 })
}

fn refused<T: std::fmt::Debug>(result: Result<T, OperationError>) -> String {
    with_causes(&result.unwrap_err())
}

/// What the configuration of an instance translates to.
fn pattern(bed: &TestBed, instance: u16) -> String {
    let patterns = bed.value(&format!("nat-{instance}/f.patterns"));
    patterns.lines().next().unwrap_or_default().to_string()
}

/// The ranges that the fabric was given last, and the static mappings.
fn ordered(bed: &TestBed) -> String {
    let (_, definition) = bed.0.fabrics.stand_in.take().pop().expect("an order");
    let service = &definition.services[0];
    let instances = service.instances.iter().map(|instance| {
        format!("{} {}", instance.name, instance.range.map_or("-".into(), |range| range.to_string()))
    });
    let translation = service.translation.as_ref().expect("a translator");
    let mappings = translation.mappings.iter().map(ToString::to_string);
    instances.chain(mappings).collect::<Vec<_>>().join("; ")
}

const SLICES: [&str; 4] = [
    "203.0.113.1:1024-17151",
    "203.0.113.1:17152-33279",
    "203.0.113.1:33280-49407",
    "203.0.113.1:49408-65535",
];

#[test]
fn each_instance_has_its_slice_as_long_as_it_lives() {
    let bed = bed();
    let status = bed.create_service(service(2)).unwrap();
    let translations = status.instances.iter().filter_map(|instance| instance.translation);
    let ranges: Vec<String> = translations.map(|translation| translation.range.to_string()).collect();
    assert_eq!(
        (ranges.as_slice(), status.translation),
        (&SLICES.map(String::from)[..2], service(2).translation)
    );
    assert_eq!(ordered(&bed), format!("nat-1 {}; nat-2 {}", SLICES[0], SLICES[1]));
    let expected = ["203.0.113.1 1024-17151 - -", "203.0.113.1 17152-33279 - -"];
    let check = |bed: &TestBed| assert_eq!([1, 2].map(|number| pattern(bed, number)), expected);
    check(&bed);
    // When a user or the next fabric starts the instance.
    bed.restart_box(&"nat-2".parse().unwrap()).unwrap();
    check(&bed);
    bed.replace_fabric_of(&"nat-2".parse().unwrap());
    check(&bed);
    // Another configuration.
    let text = NAT.replace("- - 0 1", "198.51.100.9 - 0 1");
    let install = Install { configuration: text, source: None, files: Vec::new(), uploads: Vec::new() };
    bed.reload_service(&nat(), &install).unwrap();
    assert_eq!(pattern(&bed, 2), "203.0.113.1 17152-33279 198.51.100.9 -");
    // Instances that come and go move no slice.
    scale(&bed, 3).unwrap();
    scale(&bed, 1).unwrap();
    scale(&bed, 4).unwrap();
    let all: Vec<String> =
        (1..5).zip(SLICES).map(|(number, slice)| format!("nat-{number} {slice}")).collect();
    assert_eq!(ordered(&bed), all.join("; "));
    assert_eq!(pattern(&bed, 4), "203.0.113.1 49408-65535 198.51.100.9 -");
    assert!(refused(scale(&bed, 5)).contains("5 instances need as many slices"));
    let auto = ScaleService { replicas: None, auto: "1-5".parse().ok(), drain_seconds: 100 };
    assert!(refused(bed.scale_service(&nat(), auto)).contains("5 instances need as many slices"));
    let auto = CreateService { name: "nat2".parse().unwrap(), auto: "1-5".parse().ok(), ..service(1) };
    assert!(refused(bed.create_service(auto)).contains("5 instances need as many slices"));
    assert_eq!(bed.show_service(&nat()).unwrap().replicas, 4);
}

#[test]
fn impossible_translators_are_refused() {
    let bed = bed();
    let create = |change: &dyn Fn(&mut CreateService)| {
        let mut wanted = service(2);
        change(&mut wanted);
        refused(bed.create_service(wanted))
    };
    let translating = |translation: Translation| {
        move |wanted: &mut CreateService| wanted.translation = Some(translation.clone())
    };
    for (message, expected) in [
        (create(&|wanted| wanted.faces = "in=0".parse().unwrap()), "name both faces"),
        (create(&translating(translation(1, &[]))), "2 instances need as many slices"),
        (create(&translating(translation(4, &["tcp 203.0.113.1:2000 -> 10.0.0.5:80"]))), "lies in the range"),
        (create(&|wanted| wanted.instance.configuration = "Idle -> X($TRANSLATE_PORTS);".into()), "X"),
        (
            create(&|wanted| wanted.instance.configuration = NAT.replace("FromDevice(1)", "Idle")),
            "port 1 is a face of the service, but no element uses it",
        ),
    ] {
        assert!(message.contains(expected), "{message}");
    }
    // Others than instances of translators have no such variables.
    let text = NAT.lines().skip(2).collect::<Vec<_>>().join("\n");
    let none = create(&|wanted| {
        wanted.translation = None;
        wanted.instance.configuration.clone_from(&text);
    });
    assert!(none.contains("bad source"), "{none}");
    assert!(refused(bed.create_box(process("nat", &text))).contains("bad source"));
    assert!(bed.services().unwrap().is_empty());
    let instance = CreateBox { configuration: text, ..service(2).instance };
    bed.create_service(CreateService { instance, ..service(2) }).unwrap();
}

#[test]
fn the_name_of_an_instance_is_that_of_the_service() {
    assert_eq!(check_instance_names(&[service(1)]), Ok(()));
    let other = CreateService { name: "edge".parse().unwrap(), ..service(1) };
    assert_eq!(
        with_causes(&check_instance_names(&[service(1), other]).unwrap_err()),
        "the instances of service edge are named edge-1, edge-2 and so on: let the `name` of `instance` be edge, and not nat"
    );
}

/// Packets from outside could be for either translator. With an uplink for each, it is clear.
#[test]
fn translators_with_addresses_in_common_need_an_uplink_each() {
    let bed = bed();
    let mapping = "tcp 203.0.113.1:80 -> 10.0.0.5:8080";
    let other = |name: &str, range: &str, mappings: &[&str]| CreateService {
        name: name.parse().unwrap(),
        translation: Some(Translation { ranges: vec![range.parse().unwrap()], ..translation(1, mappings) }),
        ..service(1)
    };
    bed.create_service(CreateService { translation: Some(translation(4, &[mapping])), ..service(1) })
        .unwrap();
    for (name, range, mappings) in [
        ("same", "203.0.113.1:4000-5000", &[][..]),
        ("mapped", "203.0.113.2", &[mapping]),
        ("own", "203.0.113.2", &["udp 203.0.113.1:80 -> 10.0.0.5:8080"]),
    ] {
        bed.create_service(other(name, range, mappings)).unwrap();
    }
    let chain = |name: &str, services: &[&str], to: &str| CreateChain {
        name: name.parse().unwrap(),
        switch: lan(),
        services: services.iter().map(|name| name.parse().unwrap()).collect(),
        from: None,
        to: to.parse().unwrap(),
        both_ways: false,
    };
    bed.create_chain(chain("web", &["nat"], "wan")).unwrap();
    // The same translator in another chain, and one with other addresses.
    bed.create_chain(chain("mail", &["nat"], "wan")).unwrap();
    bed.create_chain(chain("games", &["own"], "wan")).unwrap();
    let message = |name: &str, range: &str| {
        format!(
            "services nat and {name} both translate to {range}, so a packet from port wan could be for either: give one of them other \
             addresses or ports, or let its chains end at another port"
        )
    };
    for (name, range) in [("same", "203.0.113.1:4000-5000"), ("mapped", "203.0.113.1:80-80")] {
        let found = refused(bed.create_chain(chain("guests", &[name], "wan")));
        assert_eq!(found, message(name, range));
        let found = refused(bed.create_chain(chain("guests", &["nat", name], "wan2")));
        assert_eq!(found, message(name, range).replace("port wan ", "port wan2 "));
        bed.create_chain(chain("guests", &[name], "wan2")).unwrap();
        // A chain that is changed.
        let guests = "guests".parse().unwrap();
        let found = refused(bed.set_chain(&lan(), &guests, chain("guests", &[name], "wan")));
        assert_eq!(found, message(name, range));
        assert_eq!(bed.show_chain(&lan(), &guests).unwrap().status.chain.to.as_str(), "wan2");
        bed.remove_chain(&lan(), &guests).unwrap();
    }
    // A mapping that a stack adds to a translator under traffic.
    let apply = |mappings: &[&str]| {
        let stack = Stack {
            external: vec![ExternalSwitch { name: lan(), ports: Vec::new() }],
            services: vec![other("late", "203.0.113.3", mappings)],
            ..Stack::default()
        };
        bed.apply_stack(&"edge".parse().unwrap(), stack)
    };
    apply(&[]).unwrap();
    bed.create_chain(chain("late", &["late"], "wan")).unwrap();
    assert!(refused(apply(&[mapping])).ends_with(&message("late", "203.0.113.1:80-80")));
    apply(&["tcp 203.0.113.1:81 -> 10.0.0.5:8080"]).unwrap();
}

#[test]
fn a_stack_changes_static_mappings_in_place_and_ranges_with_new_instances() {
    let bed = bed();
    let edge = "edge".parse().unwrap();
    let apply = |translation: Translation| {
        let service = CreateService { translation: Some(translation), ..service(2) };
        let stack = Stack {
            external: vec![ExternalSwitch { name: lan(), ports: Vec::new() }],
            services: vec![service],
            ..Stack::default()
        };
        let changes = bed.apply_stack(&edge, stack).unwrap().changes;
        let shown = |change: &api::Change| format!("{:?} {}", change.action, change.detail);
        changes.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(apply(translation(4, &[])), ["Create "]);
    assert!(apply(translation(4, &[])).is_empty());
    let created = |bed: &TestBed| bed.show_box(&"nat-1".parse().unwrap()).unwrap().status.created;
    let before = created(&bed);
    let mapping = "tcp 203.0.113.1:80 -> 10.0.0.5:8080";
    assert_eq!(apply(translation(4, &[mapping])), ["Change static mappings"]);
    assert_eq!(ordered(&bed), format!("nat-1 {}; nat-2 {}; {mapping}", SLICES[0], SLICES[1]));
    assert_eq!(created(&bed), before);
    assert!(apply(translation(4, &[mapping])).is_empty());
    let exported = bed.export_stack(&edge).unwrap();
    assert_eq!(exported.services[0].translation, Some(translation(4, &[mapping])));
    assert_eq!(apply(translation(2, &[mapping])), ["Replace addresses"]);
    let halves = "nat-1 203.0.113.1:1024-33279; nat-2 203.0.113.1:33280-65535";
    assert_eq!(ordered(&bed), format!("{halves}; {mapping}"));
    assert_eq!(pattern(&bed, 2), "203.0.113.1 33280-65535 - -");
}
