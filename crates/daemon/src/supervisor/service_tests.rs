//! Tests of services and chains with a fabric whose switches a test stands in for.

use super::state::Supervisor;
use super::test_bed::{TestBed, process};
use crate::caller::{Caller, User};
use crate::error::OperationError;
use crate::settings::Settings;
use crate::thread_fabric::ThreadFabric;
use api::{
    AddPort, BoxName, CreateBox, CreateChain, CreateService, CreateSwitch, EventKind, ExternalSwitch,
    Install, Limits, PortDriver, PortRequest, Quota, Right, ScaleService, ServiceName, ServiceStatus, Stack,
    SwitchMode, SwitchName, Time, Translation, with_causes,
};
use protocol::fabric::SteeringDefinition;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn lan() -> SwitchName {
    "lan".parse().unwrap()
}

pub(super) fn service(name: &str, replicas: u16) -> CreateService {
    CreateService {
        name: name.parse().unwrap(),
        switch: lan(),
        instance: CreateBox { memory: api::Size(1 << 20), ..process(name, "drop") },
        faces: "in=0,out=1".parse().unwrap(),
        replicas,
        container: false,
        places: None,
        trust_pool: false,
        auto: None,
        dead_after_ms: None,
        may_send_to: ["port:wan".parse().unwrap()].into(),
        translation: None,
    }
}

pub(super) fn chain(name: &str, services: &[&str]) -> CreateChain {
    CreateChain {
        name: name.parse().unwrap(),
        switch: lan(),
        services: services.iter().map(|name| name.parse().unwrap()).collect(),
        from: None,
        to: "wan".parse().unwrap(),
        both_ways: false,
    }
}

/// A daemon with a steering switch that has two ports.
pub(super) fn bed() -> TestBed {
    let bed = TestBed::with_probe();
    bed.0.fabrics.stand_in.begin();
    let port = |name: &str| AddPort {
        name: name.parse().unwrap(),
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    let switch = CreateSwitch {
        mode: SwitchMode::Steering,
        ports: vec![port("uplink"), port("wan")],
        ..CreateSwitch::new(lan())
    };
    bed.create_switch(switch).unwrap();
    bed
}

/// A definition in short: each service with its instances, those that are drained in parentheses, and each chain.
fn shown(definition: &SteeringDefinition) -> String {
    let services = definition.services.iter().map(|service| {
        let instances = service.instances.iter().map(|instance| match instance.draining {
            true => format!(" ({})", instance.name),
            false => format!(" {}", instance.name),
        });
        format!("{}:{}", service.name, instances.collect::<String>())
    });
    let chains = definition.chains.iter().map(|chain| {
        let names: Vec<&str> = chain.services.iter().map(|name| name.as_str()).collect();
        format!("{} = {} > {}", chain.name, names.join(","), chain.to)
    });
    services.chain(chains).collect::<Vec<_>>().join("; ")
}

/// The definitions that the fabric got since the last call.
fn ordered(bed: &TestBed) -> Vec<String> {
    bed.0
        .fabrics
        .stand_in
        .take()
        .iter()
        .map(|(switch, definition)| {
            assert_eq!(*switch, lan());
            shown(definition)
        })
        .collect()
}

fn instances(status: &ServiceStatus) -> Vec<String> {
    status.instances.iter().map(|there| there.name.to_string()).collect()
}

pub(super) fn refused<T: std::fmt::Debug>(result: Result<T, OperationError>) -> String {
    with_causes(&result.unwrap_err())
}

fn boxes(bed: &TestBed) -> Vec<String> {
    bed.boxes().unwrap().iter().map(|status| status.name.to_string()).collect()
}

fn scale(bed: &TestBed, replicas: u16, drain_seconds: u32) -> Result<ServiceStatus, OperationError> {
    bed.scale_service(
        &"ids".parse().unwrap(),
        ScaleService { replicas: Some(replicas), auto: None, drain_seconds },
    )
}

/// The events of a kind, as their messages.
fn events(bed: &TestBed, kind: EventKind) -> Vec<String> {
    let page = bed.0.journal.history.after(0, 10_000);
    let events = page.entries.into_iter().map(|(_, event)| event);
    events.filter(|event| event.kind == kind).map(|event| event.message).collect()
}

#[test]
fn each_change_gives_the_fabric_the_whole_state() {
    let bed = bed();
    let ids: ServiceName = "ids".parse().unwrap();
    let status = bed.create_service(service("ids", 2)).unwrap();
    assert_eq!((instances(&status), status.replicas), (vec!["ids-1".to_string(), "ids-2".into()], 2));
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2"]);
    // The instances are boxes as others, with transparent ports at the switch.
    let detail = bed.show_box(&"ids-2".parse().unwrap()).unwrap();
    assert_eq!(detail.status.service, Some(ids.clone()));
    let ports: Vec<_> =
        detail.ports.iter().map(|port| (port.attach.to_string(), port.limits.transparent)).collect();
    assert_eq!(ports, [("lan".to_string(), true), ("lan".into(), true)]);
    let managed = bed.0.managed_box(&"ids-1".parse().unwrap()).unwrap();
    assert_eq!(managed.destinations(), ["port:wan".parse().unwrap()]);

    let mut firewall = service("firewall", 1);
    firewall.may_send_to = ["ids".parse().unwrap(), "firewall".parse().unwrap()].into();
    bed.create_service(firewall).unwrap();
    bed.create_chain(chain("web", &["firewall", "ids"])).unwrap();
    let wanted =
        CreateChain { from: Some("uplink".parse().unwrap()), both_ways: true, ..chain("web", &["ids"]) };
    bed.set_chain(&lan(), &"web".parse().unwrap(), wanted.clone()).unwrap();
    let one = "ids: ids-1 ids-2; firewall: firewall-1";
    assert_eq!(
        ordered(&bed),
        [one.to_string(), format!("{one}; web = firewall,ids > wan"), format!("{one}; web = ids > wan")]
    );
    let detail = bed.show_chain(&lan(), &"web".parse().unwrap()).unwrap();
    assert_eq!((detail.status.chain, detail.status.hops.len()), (wanted, 1));
    assert_eq!((bed.services().unwrap().len(), bed.chains().unwrap().len()), (2, 1));

    // What is used is not removed.
    let firewall = "firewall".parse().unwrap();
    assert_eq!(
        refused(bed.remove_unused_service(&ids)),
        "service ids can't be removed, even by force, while service firewall may send packets to it (may_send_to): \
         remove service firewall first"
    );
    assert_eq!(refused(bed.remove_service(&ids)), refused(bed.remove_unused_service(&ids)));
    let missing = serde_json::from_str(r#"{"output": "chain:wob"}"#).unwrap();
    assert_eq!(refused(bed.add_flow(&lan(), &missing)), "switch lan has no chain wob");
    assert!(
        refused(bed.remove_switch(&lan())).contains("the services ids, firewall: remove the services first")
    );
    assert_eq!(ordered(&bed), [""; 0]);
    bed.remove_unused_chain(&lan(), &"web".parse().unwrap()).unwrap();
    bed.remove_unused_service(&firewall).unwrap();
    assert_eq!(ordered(&bed), [one, "ids: ids-1 ids-2"]);
    // A chain goes with its service by force.
    bed.create_chain(chain("web", &["ids"])).unwrap();
    assert_eq!(refused(bed.remove_unused_service(&ids)), "service ids is used by chain lan/web");
    bed.remove_service(&ids).unwrap();
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2; web = ids > wan", ""]);
    assert!(boxes(&bed).is_empty());
    bed.remove_switch(&lan()).unwrap();
}

/// A port where a chain begins or ends goes by force only.
#[test]
fn ports_of_chains_are_in_use() {
    let bed = bed();
    bed.create_service(service("ids", 1)).unwrap();
    for name in ["web", "dns"] {
        let from = (name == "web").then(|| "uplink".parse().unwrap());
        bed.create_chain(CreateChain { from, ..chain(name, &["ids"]) }).unwrap();
    }
    let [uplink, wan] = ["uplink", "wan"].map(|name| name.parse().unwrap());
    assert_eq!(refused(bed.remove_unused_port(&lan(), &uplink)), "port lan/uplink is used by chain lan/web");
    assert_eq!(
        refused(bed.remove_unused_port(&lan(), &wan)),
        "port lan/wan is used by chain lan/web, chain lan/dns"
    );
    bed.remove_port(&lan(), &uplink).unwrap();
    bed.remove_chain(&lan(), &"web".parse().unwrap()).unwrap();
    assert_eq!(refused(bed.remove_unused_port(&lan(), &wan)), "port lan/wan is used by chain lan/dns");
    bed.remove_chain(&lan(), &"dns".parse().unwrap()).unwrap();
    bed.remove_unused_port(&lan(), &wan).unwrap();
}

/// A chain that a service may send packets to goes by force only, and may come back.
#[test]
fn chains_that_services_may_send_to_are_in_use() {
    let bed = bed();
    bed.create_service(service("scrub", 1)).unwrap();
    bed.create_chain(chain("scrubbed", &["scrub"])).unwrap();
    let mut ids = service("ids", 1);
    ids.may_send_to = ["chain:scrubbed".parse().unwrap(), "port:wan".parse().unwrap()].into();
    bed.create_service(ids).unwrap();
    let managed = bed.0.managed_box(&"ids-1".parse().unwrap()).unwrap();
    // Answers know destinations by their places.
    assert_eq!(managed.destinations(), ["port:wan", "chain:scrubbed"].map(|text| text.parse().unwrap()));
    let name = "scrubbed".parse().unwrap();
    assert_eq!(refused(bed.remove_unused_chain(&lan(), &name)), "chain lan/scrubbed is used by service ids");
    ordered(&bed);
    bed.remove_chain(&lan(), &name).unwrap();
    bed.create_chain(chain("scrubbed", &["scrub"])).unwrap();
    // It goes with its last service.
    bed.remove_service(&"scrub".parse().unwrap()).unwrap();
    let both = "scrub: scrub-1; ids: ids-1";
    assert_eq!(ordered(&bed), [both, &format!("{both}; scrubbed = scrub > wan"), "ids: ids-1"]);
    assert_eq!(managed.destinations().len(), 2);
    // Services and chains that need each other come together.
    let edge = "edge".parse().unwrap();
    let [mut first, mut second] = ["first", "second"].map(|name| service(name, 1));
    // A plain name of a port is the port.
    first.may_send_to = ["chain:other", "wan"].map(|text| text.parse().unwrap()).into();
    second.may_send_to = ["chain:web".parse().unwrap()].into();
    let mut stack = Stack {
        external: vec![ExternalSwitch { name: lan(), ports: Vec::new() }],
        services: vec![first, second],
        chains: vec![chain("web", &["first"]), chain("other", &["second"])],
        ..Stack::default()
    };
    bed.apply_stack(&edge, stack.clone()).unwrap();
    let to_port = |name: &str| {
        let found = bed.show_service(&name.parse().unwrap()).unwrap().may_send_to;
        found.contains(&"port:wan".parse().unwrap())
    };
    assert!(to_port("first"));
    let made = "ids: ids-1; first: first-1; second: second-1; web = first > wan; other = second > wan";
    assert_eq!(ordered(&bed).last().map(String::as_str), Some(made));
    assert!(bed.apply_stack(&edge, stack.clone()).unwrap().changes.is_empty());
    stack.chains.pop();
    assert!(refused(bed.apply_stack(&edge, stack)).contains("no chain other"));
    assert_eq!(ordered(&bed), [""; 0]);
    let mut plain = service("plain", 1);
    plain.may_send_to = ["wan", "ids"].map(|text| text.parse().unwrap()).into();
    let status = bed.create_service(plain).unwrap();
    assert_eq!(status.may_send_to, ["ids", "port:wan"].map(|text| text.parse().unwrap()).into());
}

#[test]
fn a_failed_change_leaves_everything_as_it_was() {
    let bed = bed();
    bed.fail_commits(true);
    bed.create_service(service("ids", 3)).unwrap_err();
    // The undo gives the fabric the previous state.
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2 ids-3", ""]);
    assert!(boxes(&bed).is_empty() && bed.services().unwrap().is_empty());
    bed.fail_commits(false);
    bed.0.fabrics.stand_in.fail(true);
    assert!(refused(bed.create_service(service("ids", 2))).contains("refused by the test"));
    assert!(boxes(&bed).is_empty());
    bed.0.fabrics.stand_in.fail(false);
    bed.create_service(service("ids", 2)).unwrap();
    bed.create_chain(chain("web", &["ids"])).unwrap();
    ordered(&bed);
    let before = "ids: ids-1 ids-2; web = ids > wan";
    bed.fail_commits(true);
    scale(&bed, 3, 30).unwrap_err();
    scale(&bed, 1, 30).unwrap_err();
    bed.remove_service(&"ids".parse().unwrap()).unwrap_err();
    bed.remove_unused_chain(&lan(), &"web".parse().unwrap()).unwrap_err();
    let changed = [
        "ids: ids-1 ids-2 ids-3; web = ids > wan",
        "ids: ids-1 (ids-2); web = ids > wan",
        "",
        "ids: ids-1 ids-2",
    ];
    let expected: Vec<&str> = changed.iter().flat_map(|change| [*change, before]).collect();
    assert_eq!(ordered(&bed), expected);
    assert_eq!(boxes(&bed), ["ids-1", "ids-2"]);
    let status = bed.show_service(&"ids".parse().unwrap()).unwrap();
    assert!(status.replicas == 2 && status.instances.iter().all(|there| !there.draining));
}

#[test]
fn drained_instances_are_removed_when_their_flows_have_ended() {
    let bed = bed();
    let later = |seconds| Time::from(Time::now().system() + Duration::from_secs(seconds));
    bed.create_service(service("ids", 4)).unwrap();
    for name in ["ids-2", "ids-3", "ids-4"] {
        bed.0.fabrics.stand_in.set_flows(name, 5);
    }
    ordered(&bed);
    let status = scale(&bed, 1, 600).unwrap();
    assert_eq!(
        status.instances.iter().map(|there| there.draining).collect::<Vec<_>>(),
        [false, true, true, true]
    );
    bed.look_at_services(Time::now());
    assert_eq!(ordered(&bed), ["ids: ids-1 (ids-2) (ids-3) (ids-4)"]);
    // One comes back before it is removed, and another has no flows any more.
    scale(&bed, 2, 600).unwrap();
    bed.0.fabrics.stand_in.set_flows("ids-4", 0);
    bed.look_at_services(Time::now());
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2 (ids-3) (ids-4)", "ids: ids-1 ids-2 (ids-3)"]);
    assert_eq!(boxes(&bed), ["ids-1", "ids-2", "ids-3"]);
    let drained = "instance ids-4 of service ids had no flows left and was removed";
    assert_eq!(events(&bed, EventKind::ServiceDrained), [drained]);
    bed.look_at_services(later(590));
    assert_eq!(ordered(&bed), [""; 0]);
    bed.look_at_services(later(610));
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2"]);
    let late = "instance ids-3 of service ids was removed with 5 flows left: its time to drain is over";
    assert_eq!(events(&bed, EventKind::DrainTimeout), [late]);
    let scaled = [
        "service ids was scaled from 4 instances to 1 instance",
        "service ids was scaled from 1 instance to 2 instances",
    ];
    assert_eq!(events(&bed, EventKind::ServiceScaled), scaled);
    // New instances get the free numbers.
    assert_eq!(instances(&scale(&bed, 4, 30).unwrap()), ["ids-1", "ids-2", "ids-3", "ids-4"]);
    assert_eq!(ordered(&bed), ["ids: ids-1 ids-2 ids-3 ids-4"]);
    assert!(refused(scale(&bed, 0, 30)).contains("1 to 128"));
}

#[test]
fn only_the_service_changes_its_instances() {
    let bed = bed();
    let (ids, first): (ServiceName, BoxName) = ("ids".parse().unwrap(), "ids-1".parse().unwrap());
    bed.create_service(service("ids", 2)).unwrap();
    let main = api::ConfigurationName::main();
    let install = |text: &str| Install {
        configuration: text.into(),
        source: Some("ids.click".into()),
        files: Vec::new(),
        uploads: Vec::new(),
    };
    let message = "box ids-1 is an instance of service ids, which alone removes and changes it";
    assert_eq!(refused(bed.remove_box(&first)), message);
    assert_eq!(refused(bed.remove_stopped_box(&first)), message);
    assert_eq!(refused(bed.install(&first, &main, &install("drop"))), message);
    assert_eq!(refused(bed.remove_configuration(&first, &"other".parse().unwrap())), message);
    assert_eq!(refused(bed.create_service(service("ids", 1))), "a service named ids already exists");
    let text = |name: &str| bed.show_configuration(&name.parse().unwrap(), &main).unwrap().configuration;
    assert!(refused(bed.reload_service(&ids, &install("nonsense"))).contains("rejected"));
    assert_eq!((text("ids-1"), text("ids-2")), ("drop".into(), "drop".into()));
    bed.reload_service(&ids, &install("send 60")).unwrap();
    scale(&bed, 3, 30).unwrap();
    for name in ["ids-1", "ids-2", "ids-3"] {
        assert_eq!(text(name), "send 60", "{name}");
    }
    // The previous configuration is back in all if the new one can't be stored.
    bed.fail_commits(true);
    bed.reload_service(&ids, &install("drop")).unwrap_err();
    bed.fail_commits(false);
    assert_eq!((text("ids-1"), text("ids-3")), ("send 60".into(), "send 60".into()));
    bed.stop_box(&first).unwrap();
    bed.start_box(&first).unwrap();
}

#[test]
fn impossible_services_and_chains_are_refused() {
    let bed = bed();
    bed.create_switch(CreateSwitch::new("other".parse().unwrap())).unwrap();
    bed.create_service(service("ids", 1)).unwrap();
    ordered(&bed);
    let mut wanted = service("nat", 1);
    wanted.may_send_to = ["quarantine".parse().unwrap()].into();
    assert!(refused(bed.create_service(wanted)).contains("no service quarantine"));
    let mut wanted = service("nat", 1);
    wanted.may_send_to = ["port:uplonk".parse().unwrap()].into();
    assert!(refused(bed.create_service(wanted)).contains("no port uplonk"));
    let mut wanted = service("nat", 1);
    wanted.may_send_to = ["chain:web".parse().unwrap()].into();
    assert!(refused(bed.create_service(wanted)).contains("no chain web"));
    let wanted = CreateService { switch: "other".parse().unwrap(), ..service("nat", 1) };
    assert!(refused(bed.create_service(wanted)).contains("steering"));
    let wanted = CreateService { switch: "none".parse().unwrap(), ..service("nat", 1) };
    assert_eq!(refused(bed.create_service(wanted)), "there is no switch none");
    let mut wanted = service("nat", 1);
    wanted.instance.configuration = "nonsense".into();
    assert!(refused(bed.create_service(wanted)).contains("rejected"));
    // A box of the name of an instance is there already.
    bed.create_box(process("nat-2", "drop")).unwrap();
    assert_eq!(refused(bed.create_service(service("nat", 2))), "a box named nat-2 already exists");
    assert_eq!(boxes(&bed), ["ids-1", "nat-2"]);

    let create = |wanted: CreateChain| refused(bed.create_chain(wanted));
    assert!(create(chain("web", &[])).contains("at least one service"));
    assert!(create(chain("web", &["ids"; 33])).contains("at most 32"));
    assert_eq!(create(chain("web", &["ads"])), "there is no service ads");
    assert!(create(CreateChain { both_ways: true, ..chain("web", &["ids"]) }).contains("starts at"));
    let hairpin = CreateChain { from: Some("wan".parse().unwrap()), ..chain("web", &["ids"]) };
    assert!(create(hairpin).contains("starts and ends at port wan"));
    assert_eq!(
        create(CreateChain { to: "won".parse().unwrap(), ..chain("web", &["ids"]) }),
        "switch lan has no port won"
    );
    let from_uplink = |name| CreateChain { from: Some("uplink".parse().unwrap()), ..chain(name, &["ids"]) };
    bed.create_chain(from_uplink("web")).unwrap();
    assert!(create(from_uplink("dns")).contains("packets from port uplink take chain web already"));
    assert_eq!(create(from_uplink("web")), "a chain named lan/web already exists");
    let other = chain("dns", &["ids"]);
    assert!(refused(bed.set_chain(&lan(), &"web".parse().unwrap(), other.clone())).contains("can't change"));
    assert_eq!(refused(bed.set_chain(&lan(), &"dns".parse().unwrap(), other)), "switch lan has no chain dns");
    assert_eq!(ordered(&bed), ["ids: ids-1; web = ids > wan"]);
}

#[test]
fn a_stack_has_services_and_chains() {
    let bed = bed();
    let edge = "edge".parse().unwrap();
    let mut firewall = service("firewall", 1);
    // They may send to each other.
    firewall.may_send_to = ["ids".parse().unwrap()].into();
    let mut ids = service("ids", 2);
    ids.may_send_to = ["firewall".parse().unwrap(), "port:wan".parse().unwrap()].into();
    let stack = |services: &[&CreateService], chains: &[CreateChain]| Stack {
        external: vec![ExternalSwitch { name: lan(), ports: Vec::new() }],
        services: services.iter().map(|service| (*service).clone()).collect(),
        chains: chains.to_vec(),
        ..Stack::default()
    };
    let changes = |stack: Stack| {
        let changes = bed.apply_stack(&edge, stack).unwrap().changes;
        changes
            .iter()
            .map(|change| format!("{:?} {} {}", change.action, change.subject, change.detail))
            .collect::<Vec<_>>()
    };
    let web = chain("web", &["firewall", "ids"]);
    let first = stack(&[&ids, &firewall], std::slice::from_ref(&web));
    assert_eq!(
        changes(first.clone()),
        ["Create service/ids ", "Create service/firewall ", "Create chain/lan/web "]
    );
    let all = "ids: ids-1 ids-2; firewall: firewall-1";
    let made = [
        "ids:; firewall:".to_string(),
        "ids: ids-1 ids-2; firewall:".into(),
        all.into(),
        format!("{all}; web = firewall,ids > wan"),
    ];
    assert_eq!(ordered(&bed), made);
    assert_eq!(boxes(&bed), ["firewall-1", "ids-1", "ids-2"]);
    assert!(changes(first).is_empty());
    let export = bed.export_stack(&edge).unwrap();
    assert_eq!((export.services.len(), export.chains.len(), export.boxes.len()), (2, 1, 0));
    assert!(changes(export).is_empty());
    assert_eq!(ordered(&bed), [""; 0]);

    // A new text, more instances, another chain.
    ids.instance.configuration = "send 60".into();
    ids.replicas = 3;
    let other = chain("web", &["ids"]);
    let second = stack(&[&ids, &firewall], std::slice::from_ref(&other));
    let expected = [
        "Reload service/ids configuration; replicas 2 -> 3",
        "Change chain/lan/web services firewall ids -> ids",
    ];
    assert_eq!(changes(second.clone()), expected);
    let three = "ids: ids-1 ids-2 ids-3; firewall: firewall-1";
    assert_eq!(
        ordered(&bed),
        [format!("{three}; web = firewall,ids > wan"), format!("{three}; web = ids > wan")]
    );
    // Other faces need other instances, under a chain that stays.
    ids.faces = "in=1,out=0".parse().unwrap();
    assert_eq!(
        changes(stack(&[&ids, &firewall], std::slice::from_ref(&other))),
        ["Replace service/ids faces"]
    );
    let chain_stays =
        ["ids:; firewall: firewall-1; web = ids > wan".to_string(), format!("{three}; web = ids > wan")];
    assert_eq!(ordered(&bed), chain_stays);

    // What can't be done changes nothing.
    bed.fail_commits(true);
    bed.apply_stack(&edge, second).unwrap_err();
    bed.remove_stack(&edge).unwrap_err();
    bed.fail_commits(false);
    ordered(&bed);
    let there = |name: &str| {
        bed.show_box(&name.parse().unwrap()).unwrap().status.service.map(|name| name.to_string())
    };
    assert_eq!(there("ids-3"), Some("ids".into()));
    bed.create_chain(chain("dns", &["ids"])).unwrap();
    assert_eq!(refused(bed.remove_stack(&edge)), "service ids is used by chain lan/dns");
    bed.remove_unused_chain(&lan(), &"dns".parse().unwrap()).unwrap();
    ordered(&bed);
    bed.remove_stack(&edge).unwrap();
    assert_eq!(ordered(&bed).last().map(String::as_str), Some(""));
    assert!(boxes(&bed).is_empty());

    let failure = |stack: Stack| refused(bed.apply_stack(&edge, stack));
    assert!(failure(stack(&[&ids, &ids], &[])).contains("two services ids"));
    assert!(failure(stack(&[&ids, &firewall], &[web.clone(), web])).contains("two chains web"));
    let with_box = Stack { boxes: vec![process("ids-2", "drop")], ..stack(&[&ids, &firewall], &[]) };
    assert!(failure(with_box).contains("a box ids-2, which is an instance"));
    assert_eq!(
        failure(stack(&[&ids], &[])),
        "service ids: switch lan has no service firewall, which the instances may send packets to: create it first, or \
         define it in the same stack"
    );
    // Each message names the object.
    let many = CreateService { replicas: 300, ..firewall.clone() };
    assert_eq!(
        failure(stack(&[&ids, &many], &[])),
        "service firewall: a service has 1 to 128 instances, and not 300"
    );
    let range = "203.0.113.1:1024-65535".parse().unwrap();
    let translation = Translation { ranges: vec![range], slices: 0, mappings: Vec::new() };
    let slices = CreateService { translation: Some(translation), ..ids.clone() };
    assert!(failure(stack(&[&slices, &firewall], &[])).starts_with("service ids: the ranges are divided"));
    assert_eq!(
        failure(stack(&[&ids, &firewall], &[chain("web", &["ids", "nope"])])),
        "chain lan/web: there is no service nope"
    );
    assert_eq!(
        failure(stack(&[&ids, &firewall], &[chain("web", &[])])),
        "chain lan/web: a chain needs at least one service"
    );
    let flows = vec![serde_json::from_str(r#"{"match": "prot 5", "output": "normal"}"#).unwrap()];
    let wan = CreateSwitch { mode: SwitchMode::Steering, flows, ..CreateSwitch::new("wan".parse().unwrap()) };
    let message = failure(Stack { switches: vec![wan], ..Stack::default() });
    let start = "switch wan, flow \"prot 5\" to normal, priority 32768: the condition of the flow";
    assert!(message.starts_with(start), "{message}");
    bed.create_service(service("ids", 1)).unwrap();
    assert!(failure(stack(&[&ids, &firewall], &[])).contains("does not belong to this stack"));
    assert_eq!(boxes(&bed), ["ids-1"]);
}

/// A switch that a stack replaces keeps its services and chains.
#[test]
fn a_replaced_switch_keeps_its_services() {
    let bed = bed();
    let edge = "edge".parse().unwrap();
    let port = AddPort {
        name: "wan".parse().unwrap(),
        driver: PortDriver::Null {},
        addresses: Vec::new(),
        default: false,
        limits: Limits::default(),
    };
    let name: SwitchName = "own".parse().unwrap();
    let stack = |mode, age_seconds| Stack {
        switches: vec![CreateSwitch {
            mode,
            age_seconds,
            ports: vec![port.clone()],
            ..CreateSwitch::new(name.clone())
        }],
        ..Stack::default()
    };
    bed.apply_stack(&edge, stack(SwitchMode::Steering, 300)).unwrap();
    bed.create_service(CreateService { switch: name.clone(), ..service("ids", 1) }).unwrap();
    bed.create_chain(CreateChain { switch: name.clone(), ..chain("web", &["ids"]) }).unwrap();
    bed.0.fabrics.stand_in.take();
    bed.apply_stack(&edge, stack(SwitchMode::Steering, 7)).unwrap();
    let orders = bed.0.fabrics.stand_in.take();
    assert_eq!(
        orders.iter().map(|(_, order)| shown(order)).collect::<Vec<_>>(),
        ["ids: ids-1; web = ids > wan"]
    );
    assert_eq!(bed.show_switch(&name).unwrap().port_list.len(), 3);
    let message = "switch own has the service ids: remove the service first";
    assert_eq!(refused(bed.apply_stack(&edge, stack(SwitchMode::Learning, 7))), message);
    assert_eq!(refused(bed.remove_stack_by_force(&edge)), message);
    // It gets them back when the removal of the old one is undone.
    bed.fail_commits(true);
    bed.apply_stack(&edge, stack(SwitchMode::Steering, 9)).unwrap_err();
    bed.fail_commits(false);
    let orders = bed.0.fabrics.stand_in.take();
    assert_eq!(orders.last().map(|(_, order)| shown(order)), Some("ids: ids-1; web = ids > wan".into()));
    assert_eq!(bed.services().unwrap().len(), 1);
}

/// The next fabric gets services and chains before the flows that lead to them.
#[test]
fn another_fabric_gets_the_services() {
    let bed = bed();
    bed.create_service(service("ids", 2)).unwrap();
    bed.create_chain(chain("web", &["ids"])).unwrap();
    bed.0.fabrics.stand_in.set_flows("ids-2", 1);
    scale(&bed, 1, 600).unwrap();
    ordered(&bed);
    bed.replace_fabric_of(&"ids-1".parse().unwrap());
    assert_eq!(ordered(&bed), ["ids: ids-1 (ids-2); web = ids > wan"]);
}

/// The next daemon has the services as they were, also those that are drained.
#[test]
fn services_survive_the_daemon() {
    let folder = std::env::temp_dir().join(format!("clickbox-services-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let fabric = ThreadFabric::new(image::PROBE, 1);
    let settings = Settings { store: Some(folder.join("store")), ..Settings::new(fabric, "probe") };
    let ids: ServiceName = "ids".parse().unwrap();
    let before = {
        let first = Supervisor::start(&settings).unwrap();
        first.0.fabrics.stand_in.begin();
        let port = AddPort {
            name: "wan".parse().unwrap(),
            driver: PortDriver::Null {},
            addresses: Vec::new(),
            default: false,
            limits: Limits::default(),
        };
        let mode = SwitchMode::Steering;
        first.create_switch(CreateSwitch { mode, ports: vec![port], ..CreateSwitch::new(lan()) }).unwrap();
        first.create_service(service("ids", 2)).unwrap();
        first.create_chain(chain("web", &["ids"])).unwrap();
        // Without a flow, its drain would end at once.
        first.0.fabrics.stand_in.set_flows("ids-2", 1);
        first
            .scale_service(&ids, ScaleService { replicas: Some(1), auto: None, drain_seconds: 600 })
            .unwrap();
        let stored = first.stored_service(&ids).unwrap();
        first.end();
        stored
    };
    let second = loop {
        // The last thread of the first daemon may still be ending.
        match Supervisor::start(&settings) {
            Ok(supervisor) => break supervisor,
            Err(error) => assert!(error.to_string().contains("another daemon"), "{error}"),
        }
    };
    assert_eq!(second.stored_service(&ids).unwrap(), before);
    assert_eq!(second.chains().unwrap().len(), 1);
    let managed = second.0.managed_box(&"ids-1".parse().unwrap()).unwrap();
    assert_eq!(managed.destinations(), ["port:wan".parse().unwrap()]);
    // The instance that is drained goes when its time is over.
    second.look_at_services(Time::from(Time::now().system() + Duration::from_secs(601)));
    let status = second.show_service(&ids).unwrap();
    assert_eq!(instances(&status), ["ids-1"]);
    drop(second);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The time is the test's: the looks of the daemon's own thread are in the past, and count for nothing.
#[test]
fn a_service_is_scaled_by_its_load() {
    let bed = bed();
    let ids: ServiceName = "ids".parse().unwrap();
    bed.create_service(CreateService { auto: "1-3".parse().ok(), ..service("ids", 1) }).unwrap();
    let mut now = Time::now().system() + Duration::from_secs(1000);
    let mut look = |lost: u64| {
        now += Duration::from_secs(1);
        bed.0.fabrics.stand_in.set_lost("ids-1", lost);
        bed.look_at_services(Time::from(now));
        bed.show_service(&ids).unwrap().replicas
    };
    // The first look is what the next is compared with.
    look(1000);
    assert_eq!(
        (1..=12).map(|number| look(1000 + 7 * number)).collect::<Vec<_>>(),
        [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3]
    );
    assert!((20..=40).all(|number| look(1000 + 7 * number) == 3), "three is the most");
    let why = "packets were lost for lack of room for 3 s, 7 in the last one";
    let grown = [
        format!("service ids was scaled from 1 instance to 2 instances: {why}"),
        format!("service ids was scaled from 2 instances to 3 instances: {why}"),
    ];
    assert_eq!(events(&bed, EventKind::ServiceScaled), grown);
    // A stack or a user who asks for the same range leaves the number to the load.
    let same = ScaleService { replicas: None, auto: "1-3".parse().ok(), drain_seconds: 30 };
    assert_eq!(bed.scale_service(&ids, same).unwrap().replicas, 3);
    // Without losses one goes after thirty looks, when its flows have ended.
    bed.0.fabrics.stand_in.set_flows("ids-3", 2);
    assert_eq!((0..30).map(|_| look(1280)).collect::<Vec<_>>(), [[3; 29].as_slice(), &[2]].concat());
    assert_eq!(boxes(&bed), ["ids-1", "ids-2", "ids-3"]);
    bed.0.fabrics.stand_in.set_flows("ids-3", 0);
    look(1280);
    assert_eq!(boxes(&bed), ["ids-1", "ids-2"]);
    let shrunk = events(&bed, EventKind::ServiceScaled).pop().unwrap();
    assert!(
        shrunk.starts_with("service ids was scaled from 3 instances to 2 instances: one less would"),
        "{shrunk}"
    );
    // What fails is reported, and tried again after a minute.
    bed.0.fabrics.stand_in.fail(true);
    assert!((1..60).all(|number| look(1280 + 9 * number) == 2));
    let failed = events(&bed, EventKind::ScalingFailed);
    assert!(
        matches!(&failed[..], [one] if one.contains("could not be scaled although packets were lost")),
        "{failed:?}"
    );
    bed.0.fabrics.stand_in.fail(false);
    assert!((60..80).any(|number| look(1280 + 9 * number) == 3));
    // A number given by hand ends it.
    let status =
        bed.scale_service(&ids, ScaleService { replicas: Some(2), auto: None, drain_seconds: 0 }).unwrap();
    assert_eq!((status.replicas, status.auto), (2, None));
    assert_eq!(
        events(&bed, EventKind::ServiceScaled).pop().unwrap(),
        "service ids is no longer scaled by its load"
    );
    assert!((100..200).all(|number| look(9000 + 9 * number) == 2));
    assert!(
        refused(bed.scale_service(&ids, ScaleService { replicas: None, auto: None, drain_seconds: 0 }))
            .contains("how many")
    );
    // The nearest number of the range.
    let up = ScaleService { replicas: None, auto: "3-5".parse().ok(), drain_seconds: 0 };
    let status = bed.scale_service(&ids, up).unwrap();
    assert_eq!((status.replicas, status.auto), (3, up.auto));
}

/// A stack states a range; the number in it is the load's.
#[test]
fn a_stack_leaves_the_number_of_instances_to_the_load() {
    let bed = bed();
    let name: api::StackName = "edge".parse().unwrap();
    let auto = CreateService { auto: "1-3".parse().ok(), dead_after_ms: Some(200), ..service("ids", 1) };
    let stack = |service: CreateService| Stack {
        external: vec![ExternalSwitch { name: lan(), ports: Vec::new() }],
        services: vec![service],
        ..Stack::default()
    };
    let apply = |service: CreateService| {
        let changes = bed.apply_stack(&name, stack(service)).unwrap();
        let all = changes.changes.iter().map(|change| change.detail.clone());
        (all.collect::<Vec<_>>(), bed.show_service(&"ids".parse().unwrap()).unwrap().replicas)
    };
    assert_eq!(apply(auto.clone()).1, 1);
    let grown = ScaleService { replicas: Some(2), auto: auto.auto, drain_seconds: 30 };
    bed.scale_service(&"ids".parse().unwrap(), grown).unwrap();
    assert_eq!(apply(auto.clone()), (Vec::new(), 2));
    let narrow = CreateService { auto: "3-4".parse().ok(), ..auto.clone() };
    assert_eq!(apply(narrow), (vec!["replicas 2 -> 3; range of replicas 1-3 -> 3-4".into()], 3));
    let fixed = CreateService { auto: None, replicas: 3, dead_after_ms: None, ..auto };
    assert_eq!(apply(fixed), (vec!["range of replicas 3-4 -> none; dead_after".into()], 3));
    let last = bed.0.fabrics.stand_in.take().pop().unwrap().1;
    assert_eq!(last.services[0].dead_after_ms, None);
}

/// A user has services at switches of the own owner only, within the quota of boxes.
#[test]
fn users_have_services_of_their_own() {
    let bed = bed();
    let user = |owner: &str| {
        bed.for_caller(Caller::User(Arc::new(User {
            name: "somebody".parse().unwrap(),
            owner: owner.parse().unwrap(),
            rights: Right::OF_TOKENS.into_iter().collect(),
            quota: Quota { boxes: Some(3), ..Quota::default() },
        })))
    };
    let (alice, bob) = (user("alice"), user("bob"));
    let theirs: SwitchName = "theirs".parse().unwrap();
    alice
        .create_switch(CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(theirs.clone()) })
        .unwrap();
    let wanted = |name, replicas| CreateService {
        switch: theirs.clone(),
        container: false,
        may_send_to: Default::default(),
        ..service(name, replicas)
    };
    assert_eq!(refused(alice.create_service(service("ids", 1))), "there is no switch lan");
    assert_eq!(refused(bob.create_service(wanted("ids", 1))), "there is no switch theirs");
    let mut spoofing = wanted("ids", 1);
    spoofing.instance.ports = vec![PortRequest::default(); 3];
    spoofing.instance.ports[2].limits.transparent = true;
    assert!(refused(alice.create_service(spoofing)).contains("only administrators"));
    assert!(refused(alice.create_service(wanted("ids", 4))).contains("the quota for boxes is 3"));
    let status = alice.create_service(wanted("ids", 2)).unwrap();
    assert_eq!(status.owner.as_str(), "alice");
    let ids = status.name;
    let four = ScaleService { replicas: Some(4), auto: None, drain_seconds: 30 };
    assert!(refused(alice.scale_service(&ids, four)).contains("the quota for boxes is 3"));
    let auto = ScaleService { replicas: None, auto: "1-4".parse().ok(), drain_seconds: 30 };
    assert!(refused(alice.scale_service(&ids, auto)).contains("the quota for boxes is 3"));
    assert_eq!(boxes(&bed), ["ids-1", "ids-2"]);
    let missing = "there is no service ids";
    assert_eq!(refused(bob.authorize(Right::Read, &[(&ids).into()])), missing);
    assert_eq!(refused(bob.scale_service(&ids, four)), missing);
    assert_eq!(refused(bob.remove_service(&ids)), missing);
    assert_eq!(refused(bob.create_service(wanted("ids", 1))), "there is no switch theirs");
    assert!(bob.services().unwrap().is_empty() && alice.services().unwrap().len() == 1);
    let web =
        CreateChain { switch: theirs.clone(), to: "ids-1.0".parse().unwrap(), ..chain("web", &["ids"]) };
    assert_eq!(refused(bob.create_chain(web.clone())), "there is no switch theirs");
    alice.create_chain(web).unwrap();
    assert!(bob.chains().unwrap().is_empty() && alice.chains().unwrap().len() == 1);
    alice.remove_service(&ids).unwrap();
}
