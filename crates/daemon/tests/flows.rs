//! Flows of steering switches: they carry packets, and survive the daemon and the fabric.

mod support;

use api::{AddFlow, CreateSwitch, FlowOutput, FlowStatus, Stack, SwitchMode};
use daemon::{Settings, Supervisor};
use support::{Folder, process, settings, supervisor, switch, until};

fn flow(text: &str) -> AddFlow {
    serde_json::from_str(text).unwrap()
}

fn create_lan(supervisor: &Supervisor) {
    let lan = CreateSwitch { mode: SwitchMode::Steering, ..CreateSwitch::new(switch("lan")) };
    supervisor.create_switch(lan).unwrap();
}

fn drops(supervisor: &Supervisor, reason: &str) -> u64 {
    let detail = supervisor.show_switch(&switch("lan")).unwrap();
    detail.status.drops.get(reason).copied().unwrap_or(0)
}

fn flows(supervisor: &Supervisor) -> Vec<FlowStatus> {
    supervisor.flows(&switch("lan")).unwrap()
}

/// The packets that the first flow matched.
fn matched(supervisor: &Supervisor) -> u64 {
    flows(supervisor).first().map_or(0, |flow| flow.packets)
}

#[test]
fn packets_follow_the_flows_of_a_user() {
    let supervisor = supervisor();
    let lan = switch("lan");
    create_lan(&supervisor);
    supervisor.create_box(process("from", "send 60", &["lan"])).unwrap();
    supervisor.create_box(process("to", "drop", &["lan"])).unwrap();
    until("no flow matches", || drops(&supervisor, "flow_miss") > 100);
    let received = || {
        let detail = supervisor.show_box(&support::name("to")).unwrap();
        detail.ports[0].traffic.received_packets
    };
    assert_eq!(received(), 0);
    let added = supervisor.add_flow(&lan, &flow(r#"{"output": "to.0", "in_port": "from.0"}"#)).unwrap();
    assert_eq!((added.id, added.flow.priority), (1, Some(0x8000)));
    until("packets follow the flow", || received() > 100 && matched(&supervisor) > 100);
    // A flow of higher priority drops them, until it ends.
    let short = flow(r#"{"output": "drop", "priority": 40000, "timeout_seconds": 1}"#);
    supervisor.add_flow(&lan, &short).unwrap();
    until("packets are dropped", || drops(&supervisor, "flow_drop") > 100);
    until("the flow has ended", || flows(&supervisor).len() == 1);
    let before = received();
    until("packets follow the flow again", || received() > before + 100);
    supervisor.remove_flow(&lan, 1).unwrap();
    assert!(flows(&supervisor).is_empty());
    let before = drops(&supervisor, "flow_miss");
    until("no flow matches", || drops(&supervisor, "flow_miss") > before + 100);
}

#[test]
fn refused_flows_say_why() {
    let supervisor = supervisor();
    let lan = switch("lan");
    create_lan(&supervisor);
    supervisor.create_switch(CreateSwitch::new(switch("other"))).unwrap();
    let refused = |switch: &api::SwitchName, text: &str| {
        let error = supervisor.add_flow(switch, &flow(text)).unwrap_err();
        api::with_causes(&error)
    };
    let any = r#"{"output": "normal"}"#;
    assert!(refused(&switch("other"), any).contains("steering"), "{}", refused(&switch("other"), any));
    assert!(refused(&switch("none"), any).contains("no switch none"));
    assert!(refused(&lan, r#"{"output": "wan0"}"#).contains("no port wan0"));
    assert!(refused(&lan, r#"{"output": "normal", "in_port": "wan0"}"#).contains("no port wan0"));
    let condition = refused(&lan, r#"{"output": "normal", "match": "tcp dst prt 80"}"#);
    assert_eq!(condition, "the condition of the flow can't be used: ‘prt’ begins no condition");
    assert!(refused(&lan, r#"{"output": "normal", "match": "tcp && udp"}"#).contains("no packet"));
    assert!(
        refused(&lan, r#"{"output": "drop", "match": " "}"#).contains("the condition of the flow is empty")
    );
    assert!(refused(&lan, r#"{"output": "normal", "idle_seconds": 0}"#).contains("zero"));
    supervisor.add_flow(&lan, &flow(any)).unwrap();
    assert!(refused(&lan, r#"{"output": "drop"}"#).contains("flow 1"));
    assert!(api::with_causes(&supervisor.remove_flow(&lan, 9).unwrap_err()).contains("no flow 9"));
    assert_eq!(flows(&supervisor).len(), 1);
}

/// A daemon adopts the flows of a fabric with their counters, and gives a new fabric those that are stored.
#[test]
fn flows_survive_the_daemon_and_the_fabric() {
    for ended in [false, true] {
        let folder = Folder::new(&format!("flows-{ended}"));
        let settings = Settings { store: Some(folder.file("store")), ..settings() };
        let lan = switch("lan");
        let before = {
            let supervisor = Supervisor::start(&settings).unwrap();
            create_lan(&supervisor);
            supervisor.create_box(process("from", "send 60", &["lan"])).unwrap();
            supervisor.create_box(process("to", "drop", &["lan"])).unwrap();
            let web = r#"{"output": "to.0", "match": "tcp dst port 80 or 443"}"#;
            for text in
                [r#"{"output": "to.0"}"#, web, r#"{"output": "drop", "match": "udp", "idle_seconds": 600}"#]
            {
                supervisor.add_flow(&lan, &flow(text)).unwrap();
            }
            supervisor.add_flow(&lan, &flow(r#"{"output": "drop", "match": "icmp"}"#)).unwrap();
            supervisor.remove_flow(&lan, 4).unwrap();
            until("packets follow the flow", || matched(&supervisor) > 100);
            let before = flows(&supervisor);
            match ended {
                true => supervisor.end_all(),
                false => supervisor.end(),
            }
            before
        };
        let supervisor = loop {
            // The last thread of the first daemon may still be ending.
            match Supervisor::start(&settings) {
                Ok(supervisor) => break supervisor,
                Err(error) => assert!(error.to_string().contains("another daemon"), "{error}"),
            }
        };
        let after = flows(&supervisor);
        let shown = |list: &[FlowStatus]| {
            list.iter().map(|status| (status.id, status.flow.clone())).collect::<Vec<_>>()
        };
        let kept = if ended { 2 } else { 3 };
        assert_eq!(shown(&after), shown(&before)[..kept], "{ended}");
        if !ended {
            assert!(after[0].packets >= before[0].packets, "the counters go on");
        }
        until("packets follow the flow", || matched(&supervisor) > 100);
        assert_eq!(after[0].flow.output, FlowOutput::Port("to.0".parse().unwrap()));
    }
}

/// The number of a flow that was removed, or that ended, belongs to no other one.
#[test]
fn numbers_of_flows_are_not_used_again() {
    let supervisor = supervisor();
    let lan = switch("lan");
    create_lan(&supervisor);
    let add = |text: &str| supervisor.add_flow(&lan, &flow(text)).unwrap().id;
    assert_eq!(add(r#"{"output": "normal"}"#), 1);
    assert_eq!(add(r#"{"output": "drop", "match": "tcp", "timeout_seconds": 600}"#), 2);
    supervisor.remove_flow(&lan, 2).unwrap();
    assert_eq!(add(r#"{"output": "drop", "match": "tcp"}"#), 3);
    supervisor.remove_flow(&lan, 3).unwrap();
    assert_eq!(add(r#"{"output": "drop", "match": "udp", "idle_seconds": 600}"#), 4);
}

/// A listing takes several replies of the fabric, and has each flow once.
#[test]
fn all_flows_are_listed() {
    let supervisor = supervisor();
    let lan = switch("lan");
    create_lan(&supervisor);
    for port in 1..=600 {
        let text = format!(r#"{{"output": "drop", "match": "udp dst port {port}"}}"#);
        supervisor.add_flow(&lan, &flow(&text)).unwrap();
    }
    let listed: Vec<u64> = flows(&supervisor).iter().map(|found| found.id).collect();
    assert_eq!(listed, (1..=600).collect::<Vec<_>>());
}

/// A switch that is replaced keeps its flows as long as it has any, and says before how many it loses.
#[test]
fn a_replaced_switch_keeps_its_flows() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let stack = |mode, age_seconds| Stack {
        switches: vec![CreateSwitch { mode, age_seconds, ..CreateSwitch::new(switch("lan")) }],
        ..Stack::default()
    };
    supervisor.apply_stack(&edge, stack(SwitchMode::Steering, 300)).unwrap();
    for text in [r#"{"output": "normal"}"#, r#"{"output": "drop", "match": "tcp"}"#] {
        supervisor.add_flow(&switch("lan"), &flow(text)).unwrap();
    }
    let shown = || flows(&supervisor).into_iter().map(|found| (found.id, found.flow)).collect::<Vec<_>>();
    let before = shown();
    supervisor.apply_stack(&edge, stack(SwitchMode::Steering, 9)).unwrap();
    assert_eq!(shown(), before);
    let added = supervisor.add_flow(&switch("lan"), &flow(r#"{"output": "drop", "match": "udp"}"#)).unwrap();
    assert_eq!(added.id, 3);
    let changes = supervisor.apply_stack(&edge, stack(SwitchMode::Learning, 9)).unwrap();
    assert!(format!("{changes:?}").contains("3 flows that it loses"), "{changes:?}");
}

/// The flows of a stack are those of its definition, whatever others add.
#[test]
fn a_stack_has_flows() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let stack = |texts: &[&str]| {
        let flows = texts.iter().map(|text| flow(text)).collect();
        let lan = CreateSwitch { mode: SwitchMode::Steering, flows, ..CreateSwitch::new(switch("lan")) };
        let boxes = vec![process("to", "drop", &["lan"])];
        Stack { switches: vec![lan], boxes, ..Stack::default() }
    };
    let outputs = || {
        let shown = flows(&supervisor).into_iter();
        shown.map(|found| format!("{} {}", found.id, found.flow)).collect::<Vec<_>>()
    };
    let (web, rest) = (r#"{"output": "to.0", "match": "tcp dst port 80"}"#, r#"{"output": "normal"}"#);
    let changes = supervisor.apply_stack(&edge, stack(&[web, rest])).unwrap();
    assert_eq!(changes.changes.len(), 2, "{changes:?}");
    let first = [
        r#"1 "tcp dst port 80" to to.0, priority 32768"#.to_string(),
        r#"2 all packets to normal, priority 0"#.to_string(),
    ];
    assert_eq!(outputs(), first);
    let by_hand =
        supervisor.add_flow(&switch("lan"), &flow(r#"{"output": "drop", "match": "udp"}"#)).unwrap();
    assert!(supervisor.apply_stack(&edge, stack(&[rest, web])).unwrap().changes.is_empty());
    assert_eq!(supervisor.export_stack(&edge).unwrap().switches[0].flows.len(), 2);
    let export = supervisor.export_stack(&edge).unwrap();
    assert!(supervisor.diff_stack(&edge, &export).unwrap().changes.is_empty());

    // Another flow with the same match, and one less.
    let other = r#"{"output": "drop", "match": "tcp dst port 80"}"#;
    let changes = supervisor.diff_stack(&edge, &stack(&[other])).unwrap();
    let detail = r#"without flow 1: "tcp dst port 80" to to.0, priority 32768; without flow 2: all packets to normal, priority 0; with flow "tcp dst port 80" to drop, priority 32768"#;
    assert_eq!(changes.changes[0].detail, detail);
    assert_eq!(outputs().len(), 3);
    supervisor.apply_stack(&edge, stack(&[other])).unwrap();
    let second = [
        format!(r#"{} "udp" to drop, priority 32768"#, by_hand.id),
        r#"4 "tcp dst port 80" to drop, priority 32768"#.to_string(),
    ];
    assert_eq!(outputs(), second);

    // What fails changes nothing.
    let third = r#"{"output": "normal", "match": "icmp"}"#;
    for (text, expected) in [
        (r#"{"output": "nowhere"}"#, "nowhere"),
        (r#"{"output": "drop", "match": "tcp dst prot 80"}"#, "prot"),
        (r#"{"output": "drop", "idle_seconds": 5}"#, "timeout"),
        (r#"{"output": "normal", "match": "udp"}"#, "flow 3"),
        (other, "twice"),
    ] {
        let failure = supervisor.apply_stack(&edge, stack(&[other, third, text])).unwrap_err();
        assert!(api::with_causes(&failure).contains(expected), "{failure:?}");
        assert_eq!(outputs(), second);
    }
    supervisor.apply_stack(&edge, stack(&[])).unwrap();
    assert_eq!(outputs(), second[..1]);
    let learning = CreateSwitch { flows: vec![flow(web)], ..CreateSwitch::new(switch("wan")) };
    let failure = supervisor.create_switch(learning).unwrap_err();
    assert!(failure.to_string().contains("steering"), "{failure}");
}

/// A definition with all flows that a switch can have is compared and applied in a time that grows with their number.
#[test]
fn a_stack_has_many_flows() {
    let supervisor = supervisor();
    let edge = "edge".parse().unwrap();
    let stack = |first: u32| {
        let text = |number| {
            format!(r#"{{"output": "drop", "match": "src host 10.0.{}.{}"}}"#, number / 250, number % 250)
        };
        let flows = (first..first + 4000).map(|number| flow(&text(number))).collect();
        let lan = CreateSwitch { mode: SwitchMode::Steering, flows, ..CreateSwitch::new(switch("lan")) };
        Stack { switches: vec![lan], ..Stack::default() }
    };
    supervisor.apply_stack(&edge, stack(0)).unwrap();
    assert_eq!(flows(&supervisor).len(), 4000);
    let changes = supervisor.apply_stack(&edge, stack(1)).unwrap();
    let detail = &changes.changes[0].detail;
    assert_eq!((detail.matches("without flow").count(), detail.matches("with flow").count()), (1, 1));
    assert_eq!(flows(&supervisor).last().unwrap().id, 4001);
}
