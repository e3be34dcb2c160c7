//! Click configurations in boxes under the supervisor.

mod support;

use api::{
    Check, ConfigurationName, CreateBox, CreateSwitch, ErrorCode, EventKind, EventQuery, File, Install,
    LogQuery, Restart, Sandbox, Severity,
};
use daemon::{OperationError, Supervisor};
use std::collections::BTreeSet;
use std::time::Duration;
use support::{handler, name, process, state, switch, until};
use test_support::{Capability, require};

/// Runs `check` with boxes in processes, and in virtual machines where available.
fn in_each(check: impl Fn(&Supervisor, Sandbox)) {
    let start = || Supervisor::start(&support::settings_of(image::CLICKBOX, "clickbox", 2)).unwrap();
    let kinds = start().host().unwrap().sandboxes;
    assert_eq!(kinds.contains(&Sandbox::Vm), require(Capability::Kvm));
    assert!(kinds.contains(&Sandbox::Process));
    kinds.into_iter().for_each(|kind| check(&start(), kind));
}

fn make(sandbox: Sandbox, name: &str, text: &str, ports: &[&str]) -> CreateBox {
    CreateBox { sandbox, memory: api::Size(8 << 20), ..process(name, text, ports) }
}

fn read(supervisor: &Supervisor, path: &str) -> String {
    supervisor.read(&handler(path), b"").unwrap().value.text().trim().to_string()
}

fn install(text: &str) -> Install {
    Install {
        configuration: text.into(),
        source: Some("new.click".into()),
        files: Vec::new(),
        uploads: Vec::new(),
    }
}

#[test]
fn a_chain_of_boxes_is_reconfigured_under_traffic() {
    in_each(|supervisor, sandbox| {
        supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
        let source = "FastUDPSource(RATE 20000, LIMIT -1, LENGTH 60, SRCETH 2:0:0:0:0:1, SRCIP 10.0.0.1, \
                      SPORT 1, DSTETH 2:0:0:0:0:2, DSTIP 10.0.0.2, DPORT 2) -> ToDevice(0);";
        let firewall = "FromDevice(0) -> c :: Counter -> Strip(14) -> CheckIPHeader -> filter :: \
                        IPFilter(allow udp, deny all) -> Unstrip(14) -> ToDevice(1);";
        let monitor = "FromDevice(0) -> c :: Counter -> Discard;";
        supervisor.create_box(make(sandbox, "monitor", monitor, &["pipe:out"])).unwrap();
        supervisor.create_box(make(sandbox, "fw", firewall, &["lan", "pipe:out"])).unwrap();
        supervisor.create_box(make(sandbox, "source", source, &["lan"])).unwrap();
        let count = |path: &str| read(supervisor, path).parse::<u64>().unwrap();
        until("packets pass", || count("monitor/c.count") > 1000);
        // The rule is removed; packets still reach the firewall, but no longer pass it.
        let before = count("fw/c.count");
        let closed = firewall.replace("allow udp, ", "");
        let main = ConfigurationName::main();
        let status = supervisor.install(&name("fw"), &main, &install(&closed)).unwrap();
        assert_eq!((status.swaps, status.diagnostics.len()), (1, 0), "{sandbox:?}: {status:?}");
        assert!(count("fw/c.count") >= before, "{sandbox:?}: a swap keeps counters");
        let closed_at = count("fw/c.count");
        until("packets come", || count("fw/c.count") > closed_at + 1000);
        // A box that does not answer at once is reported with its last known counters.
        let drops = || supervisor.show_box(&name("fw")).unwrap().status.drops.into_values().sum::<u64>();
        until("drops are reported", || drops() > 0);
        let seen = count("monitor/c.count");
        assert!(seen < count("fw/c.count"));
        // A rejected configuration is reported with its location, and changes nothing.
        let refused =
            supervisor.install(&name("fw"), &main, &install("FromDevice(0) -> Cuonter -> Discard;"));
        let Err(OperationError::Refused(details)) = refused else { panic!("{refused:?}") };
        let error = details.iter().find(|one| one.message.contains("Cuonter")).unwrap();
        assert_eq!((error.file.as_deref(), error.line), (Some("new.click"), Some(1)));
        assert!(count("fw/c.count") > closed_at);
        // Handlers can be listed and written, and unknown ones are reported.
        let handlers: Vec<String> =
            supervisor.handlers(&name("fw")).unwrap().iter().map(api::HandlerInfo::path).collect();
        for wanted in ["list", "c.count", "c.reset", "filter.config"] {
            assert!(handlers.iter().any(|path| path == wanted), "{sandbox:?}: {wanted} in {handlers:?}");
        }
        supervisor.write(&handler("monitor/c.reset"), b"").unwrap();
        assert!(count("monitor/c.count") < seen.max(1));
        for missing in ["fw/c.none", "fw/none.count", "fw/second:c.count"] {
            let result = supervisor.read(&handler(missing), b"");
            assert_eq!(result.unwrap_err().code(), ErrorCode::NotFound, "{missing}");
        }
    });
}

#[test]
fn a_box_runs_several_configurations_with_files() {
    in_each(|supervisor, sandbox| {
        let text = "FromDevice(0) -> Print(seen, MAXLENGTH 0) -> c :: Counter -> Discard;";
        supervisor.create_box(make(sandbox, "fw", text, &["-", "-"])).unwrap();
        let second: ConfigurationName = "second".parse().unwrap();
        let other = "InfiniteSource(LIMIT 5) -> c :: Counter -> Print(five, MAXLENGTH 0) -> Discard;";
        supervisor.install(&name("fw"), &second, &install(other)).unwrap();
        until("its packets are counted", || read(supervisor, "fw/second:c.count") == "5");
        assert_eq!(read(supervisor, "fw/c.count"), "0");
        until("what it prints is kept", || {
            let log = supervisor.log_list(&name("fw"), &LogQuery::default()).unwrap();
            log.iter().filter(|line| line.configuration.as_deref() == Some("second")).count() == 5
        });
        // The file still exists after a restart of the box.
        let mut with_file = install("s :: Script(TYPE PASSIVE, return $(cat rules.txt)); Idle -> Discard;");
        with_file.files.push(File { name: "rules.txt".into(), contents: "shipped".into() });
        supervisor.install(&name("fw"), &"third".parse().unwrap(), &with_file).unwrap();
        assert_eq!(read(supervisor, "fw/third:s.run"), "shipped");
        supervisor.restart_box(&name("fw")).unwrap();
        assert_eq!(read(supervisor, "fw/third:s.run"), "shipped");
        supervisor.remove_configuration(&name("fw"), &second).unwrap();
        let gone = supervisor.read(&handler("fw/second:c.count"), b"").unwrap_err();
        assert_eq!(gone.code(), ErrorCode::NotFound);
        assert_eq!(supervisor.show_box(&name("fw")).unwrap().installed.len(), 2);
    });
}

#[test]
fn a_check_reports_all_errors() {
    let settings = support::settings_of(image::CLICKBOX, "clickbox", 0);
    let supervisor = Supervisor::start(&settings).unwrap();
    let check = |text: &str, ports| {
        let request = Check {
            configuration: text.into(),
            source: Some("a.click".into()),
            files: Vec::new(),
            uploads: Vec::new(),
            ports,
        };
        supervisor.check(&request).unwrap().diagnostics
    };
    assert_eq!(check("FromDevice(0) -> Discard;", Some(1)), []);
    let found = check("FromDevice(0) -> Cuonter -> Discard;\nIdle -> Nonsense -> Discard;\n", Some(1));
    let lines: BTreeSet<Option<u32>> =
        found.iter().filter(|one| one.severity == Severity::Error).map(|one| one.line).collect();
    assert_eq!(lines, BTreeSet::from([Some(1), Some(2)]), "{found:?}");
    assert!(found.iter().any(|one| one.message.contains("‘Cuonter’")), "{found:?}");
    // No text may harm the daemon: each is rejected with a message.
    for bad in ["\0\u{1b}[2J", &"(".repeat(100_000), &"elementclass A { A -> A } A;".repeat(50)] {
        assert!(check(bad, None).iter().all(|one| !one.message.contains('\u{1b}')));
    }
    let refused =
        supervisor.create_box(make(Sandbox::Process, "fw", "FromDevice(3) -> Discard;", &["-"])).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Refused, "{refused}");
    assert!(supervisor.boxes().unwrap().is_empty());
}

/// A box that starts at once finds the errors itself. They are those of a check, and nothing is left of the box.
#[test]
fn a_new_box_finds_the_errors_of_a_check() {
    in_each(|supervisor, sandbox| {
        let text = "FromDevice(0) -> Cuonter -> Discard;\nIdle -> Queue(many) -> Discard;";
        let source = Some("fw.click".to_string());
        let check = Check {
            configuration: text.into(),
            source: source.clone(),
            ports: Some(1),
            files: Vec::new(),
            uploads: Vec::new(),
        };
        let found = supervisor.check(&check).unwrap().diagnostics;
        assert!(found.len() > 1, "{sandbox:?}: {found:?}");
        for start in [true, false] {
            let request = CreateBox { start, source: source.clone(), ..make(sandbox, "fw", text, &["-"]) };
            let refused = supervisor.create_box(request);
            let Err(OperationError::Refused(details)) = refused else { panic!("{sandbox:?}: {refused:?}") };
            assert_eq!(details, found, "{sandbox:?}, start: {start}");
            assert_eq!(supervisor.show_box(&name("fw")).unwrap_err().code(), ErrorCode::NotFound);
        }
        supervisor.create_box(make(sandbox, "fw", "Idle -> Discard;", &["-"])).unwrap();
        assert_eq!(state(supervisor, "fw"), api::BoxState::Running);
    });
}

/// A removal ends a box that is still being installed. It is then neither stored nor attached, and its name is free.
#[test]
fn a_box_is_removed_while_it_is_created() {
    const ATTEMPTS: u32 = 40;
    const STEP: Duration = Duration::from_micros(500);
    let slow = "Idle -> Counter -> Discard;".repeat(1000);
    in_each(|supervisor, sandbox| {
        let (fw, lan) = (name("fw"), switch("lan"));
        supervisor.create_switch(CreateSwitch::new(lan.clone())).unwrap();
        let create = || supervisor.create_box(make(sandbox, "fw", &slow, &["lan"]));
        create().unwrap();
        supervisor.remove_box(&fw).unwrap();
        let is_interrupted = |attempt| {
            let created = std::thread::scope(|scope| {
                let creating = scope.spawn(create);
                until("it exists", || supervisor.show_box(&fw).is_ok() || creating.is_finished());
                std::thread::sleep(STEP * attempt);
                let _ = supervisor.remove_box(&fw);
                creating.join().unwrap()
            });
            // The removal may come before its installation, or when it was just created.
            if created.is_ok() {
                let _ = supervisor.remove_box(&fw);
            }
            assert_eq!(supervisor.show_box(&fw).unwrap_err().code(), ErrorCode::NotFound);
            assert!(supervisor.show_switch(&lan).unwrap().port_list.is_empty());
            created.is_err()
        };
        assert!((0..ATTEMPTS).any(is_interrupted), "{sandbox:?}: no creation was interrupted");
        let events = supervisor.event_list(&EventQuery::default());
        assert!(events.iter().all(|event| event.kind != EventKind::BoxCrashed), "{events:?}");
        create().unwrap();
        assert_eq!(state(supervisor, "fw"), api::BoxState::Running);
    });
}

/// The error of a box that crashes at its first start says so. There is no box that an event could be about.
#[test]
fn a_new_box_that_crashes_is_no_event() {
    in_each(|supervisor, sandbox| {
        let large = "Idle -> Counter -> Discard;".repeat(4000);
        let request = CreateBox { memory: api::Size(2 << 20), ..make(sandbox, "fw", &large, &["-"]) };
        let error = supervisor.create_box(request).unwrap_err();
        assert!(error.to_string().contains("memory"), "{sandbox:?}: {error}");
        let events = supervisor.event_list(&EventQuery::default());
        assert!(events.iter().all(|event| event.kind != EventKind::BoxCrashed), "{events:?}");
    });
}

/// A box with the policy `never` stays stopped after a stop, and crashed after it was killed.
#[test]
fn a_box_that_never_restarts_stays_stopped_or_crashed() {
    in_each(|supervisor, sandbox| {
        let text = "FromDevice(0) -> c :: Counter -> Discard;";
        let request = CreateBox { restart: Restart::Never, ..make(sandbox, "fw", text, &["-"]) };
        supervisor.create_box(request).unwrap();
        supervisor.stop_box(&name("fw")).unwrap();
        assert_eq!(state(supervisor, "fw"), api::BoxState::Stopped);
        supervisor.start_box(&name("fw")).unwrap();
        supervisor.kill_box(&name("fw")).unwrap();
        until("the end is seen", || state(supervisor, "fw") == api::BoxState::Crashed);
        assert_eq!(supervisor.crash(&name("fw")).unwrap().cause, "killed on request");
    });
}

/// At the second start of equal boxes a template is created. Later boxes are copies of it, each with its own random
/// numbers, counters and diagnostics.
#[test]
fn equal_boxes_start_as_copies_of_a_template() {
    let text = "FromDevice(0) -> c :: Counter -> Discard; Idle -> IPFilter(allow udp, deny udp) -> Discard;
        dice :: Script(TYPE PASSIVE, return $(random 4000000000));";
    let busy = "InfiniteSource -> Discard;";
    in_each(|supervisor, sandbox| {
        supervisor.create_switch(CreateSwitch::new(switch("lan"))).unwrap();
        let is_copy = |box_name: &str| {
            let log = supervisor.log_list(&name(box_name), &LogQuery::default()).unwrap();
            log.iter().any(|line| line.text.contains("started from a template"))
        };
        let (mut copies, mut fresh_diagnostics) = (Vec::new(), Vec::new());
        let mut number = 0;
        until("boxes are copies", || {
            let box_name = format!("fw{number}");
            number += 1;
            supervisor.create_box(make(sandbox, &box_name, text, &["lan"])).unwrap();
            if is_copy(&box_name) {
                copies.push(box_name);
            } else {
                fresh_diagnostics =
                    supervisor.show_box(&name(&box_name)).unwrap().installed[0].diagnostics.clone();
                assert!(copies.is_empty(), "{sandbox:?}: {box_name} is none");
                supervisor.remove_box(&name(&box_name)).unwrap();
            }
            copies.len() == 3
        });
        assert!(number >= 5, "{sandbox:?}: the first two of {number} are none");
        let numbers: BTreeSet<String> =
            copies.iter().map(|copy| read(supervisor, &format!("{copy}/dice.run"))).collect();
        assert_eq!(numbers.len(), 3, "{sandbox:?}: {numbers:?}");
        let source = "FastUDPSource(RATE 1000, LIMIT 50, LENGTH 60, SRCETH 2:0:0:0:0:1, SRCIP 10.0.0.1, \
                      SPORT 1, DSTETH 2:0:0:0:0:2, DSTIP 10.0.0.2, DPORT 2) -> ToDevice(0);";
        supervisor.create_box(make(sandbox, "source", source, &["lan"])).unwrap();
        for copy in &copies {
            let count = format!("{copy}/c.count");
            until("packets come to each", || read(supervisor, &count) == "50");
            let installed = supervisor.show_box(&name(copy)).unwrap().installed;
            assert_eq!((installed.len(), &installed[0].diagnostics), (1, &fresh_diagnostics), "{sandbox:?}");
        }
        // A box that is never idle is installed each time.
        for round in 0..4 {
            let box_name = format!("busy{round}");
            supervisor.create_box(make(sandbox, &box_name, busy, &[])).unwrap();
            assert!(!is_copy(&box_name), "{sandbox:?}");
            supervisor.remove_box(&name(&box_name)).unwrap();
        }
    });
}

/// What elements lose, discard and hold is shown with the place, and stays counted after the box has ended.
#[test]
fn the_places_of_lost_discarded_and_waiting_packets_are_shown() {
    in_each(|supervisor, sandbox| {
        let text = "InfiniteSource(LIMIT 7) -> UDPIPEncap(10.1.2.3, 1, 10.9.9.9, 53) -> t :: Tee
                    -> filter :: IPFilter(deny all) -> Discard;
                    t[1] -> c :: Counter -> gone :: Discard;
                    t[2] -> q :: Queue -> Idle;";
        supervisor.create_box(make(sandbox, "fw", text, &[])).unwrap();
        let detail = || supervisor.show_box(&name("fw")).unwrap();
        until("its packets are counted", || detail().status.account.waiting == 7);
        let found = detail();
        let place = |place: &api::LostPackets| {
            (place.configuration.to_string(), place.element.clone(), place.reason.clone(), place.packets)
        };
        let losses: Vec<_> = found.places.losses.iter().map(place).collect();
        assert_eq!(losses, [("main".into(), "filter".into(), "denied".into(), 7)], "{sandbox:?}");
        let discards: Vec<_> =
            found.places.discards.iter().map(|place| (place.connection.as_str(), place.packets)).collect();
        assert_eq!(discards, [("c -> gone", 7)]);
        let waits: Vec<_> =
            found.places.waits.iter().map(|place| (place.element.as_str(), place.packets)).collect();
        assert_eq!(waits, [("q", 7)]);
        let oldest = found.status.account.oldest_ns;
        assert!(oldest > 0 && found.places.waits[0].oldest_ns > 0);
        assert!(detail().status.account.oldest_ns > oldest, "{sandbox:?}: a packet that waits becomes older");
        assert_eq!(found.status.drops["denied"], 7);
        let counters = |account: api::PacketAccount| account.counters().map(|(_, count)| count);
        assert_eq!(counters(found.status.account), [0, 7, 14, 0, 7, 0, 0]);
        supervisor.stop_box(&name("fw")).unwrap();
        let ended = detail();
        assert_eq!(counters(ended.status.account), [0, 7, 14, 0, 7, 0, 0]);
        assert_eq!((ended.status.account.waiting, ended.places), (0, api::PacketPlaces::default()));
        assert_eq!(ended.status.drops["in_ended_box"], 7);
    });
}

/// Packets inside a box when it ends, and its earlier drops, stay counted after it is gone.
#[test]
fn packets_in_a_box_that_ends_are_counted() {
    in_each(|supervisor, sandbox| {
        let text = "RatedSource(RATE 100000, LIMIT 400) -> q :: Queue(300) -> Idle;
                    FromDevice(0) -> r :: Queue(1000) -> Idle;";
        let source = "RatedSource(RATE 20000, LIMIT 200, DATA \\<000000000000000000000001080000000000>) \
                      -> ToDevice(0);";
        let to = CreateBox { restart: Restart::Never, ..make(sandbox, "to", text, &["pipe:a"]) };
        supervisor.create_box(to).unwrap();
        supervisor.create_box(make(sandbox, "from", source, &["pipe:a"])).unwrap();
        until("they are there", || {
            ["q.length", "q.drops", "r.length"].map(|handler| read(supervisor, &format!("to/{handler}")))
                == ["300", "100", "200"]
        });
        let drops = || supervisor.show_box(&name("to")).unwrap().status.drops;
        // A box that does not answer at once is reported with its last known counters.
        until("drops are reported", || drops().values().sum::<u64>() == 100);
        let before = drops();
        supervisor.kill_box(&name("to")).unwrap();
        until("it is gone", || state(supervisor, "to") == api::BoxState::Crashed);
        let mut expected = before;
        expected.insert("in_ended_box".into(), 500);
        assert_eq!(drops(), expected);
        supervisor.start_box(&name("to")).unwrap();
        until("it is there again", || read(supervisor, "to/q.length") == "300");
        until("new drops are added", || drops().values().sum::<u64>() == 700);
        supervisor.stop_box(&name("to")).unwrap();
        assert_eq!(drops()["in_ended_box"], 800);
    });
}
