//! Writes to handlers that change a configuration: what a restart does with them, and that it is reported.

mod support;

use api::{
    BoxState, ConfigurationName, CreateBox, EventKind, EventQuery, Install, RecordedWrite, Restart, Sandbox,
    Save, Stack, StackName, WriteEffect,
};
use daemon::{Settings, Supervisor};
use std::path::Path;
use std::sync::Arc;
use support::{Folder, ThreadFabric, handler, name, process, state, until};

const FIREWALL: &str =
    "Idle -> c :: Counter -> f :: IPFilter(allow all) -> s :: Switch(0) -> Discard; s[1] -> Discard;
                        Idle -> r :: RadixIPLookup(10.0.0.0/8 0) -> Discard;
                        Idle -> t :: Switch(0) -> Discard; t[1] -> Discard;
                        script :: Script(TYPE PASSIVE, write t.switch 1);";

fn fabric() -> Arc<ThreadFabric> {
    ThreadFabric::new(image::CLICKBOX, 1)
}

fn start(fabric: &Arc<ThreadFabric>, store: Option<&Path>) -> Supervisor {
    let settings =
        Settings { store: store.map(Path::to_path_buf), ..Settings::new(fabric.clone(), "clickbox") };
    Supervisor::start(&settings).unwrap()
}

fn firewall(keep_writes: bool) -> CreateBox {
    let definition = process("fw", FIREWALL, &[]);
    CreateBox { memory: api::Size(8 << 20), sandbox: Sandbox::Process, keep_writes, ..definition }
}

fn write(supervisor: &Supervisor, path: &str, value: &str) {
    supervisor.write(&handler(path), value.as_bytes()).unwrap();
}

fn read(supervisor: &Supervisor, path: &str) -> String {
    supervisor.read(&handler(path), b"").unwrap().value.text().trim().to_string()
}

fn writes(supervisor: &Supervisor) -> Vec<RecordedWrite> {
    supervisor.show_box(&name("fw")).unwrap().writes
}

fn texts(supervisor: &Supervisor) -> Vec<String> {
    let text = |write: RecordedWrite| format!("{} {}", write.handler, write.value.text());
    writes(supervisor).into_iter().map(text).collect()
}

/// The messages of events about lost writes.
fn lost(supervisor: &Supervisor) -> Vec<String> {
    let of = |event: &api::Event| event.kind == EventKind::WritesLost;
    supervisor.event_list(&EventQuery::default()).into_iter().filter(of).map(|event| event.message).collect()
}

/// Writes one handler of each kind.
fn change(supervisor: &Supervisor) {
    write(supervisor, "fw/c.reset", "");
    write(supervisor, "fw/f.rules", "deny all");
    write(supervisor, "fw/r.add", "11.0.0.0/8 0");
    write(supervisor, "fw/r.add", "12.0.0.0/8 0");
    write(supervisor, "fw/f.rules", "allow udp");
}

const CHANGED: [&str; 3] = ["r.add 11.0.0.0/8 0", "r.add 12.0.0.0/8 0", "f.rules allow udp"];

/// Whether what was written is in effect.
fn is_changed(supervisor: &Supervisor) -> bool {
    let rules = read(supervisor, "fw/f.config");
    let routes = read(supervisor, "fw/r.table").contains("12.0.0.0/8");
    assert_eq!(rules == "allow udp", routes, "all or nothing: {rules}");
    routes
}

/// Makes a box crash, and waits until it runs again.
fn crash(supervisor: &Supervisor) {
    let restarts = supervisor.show_box(&name("fw")).unwrap().status.restarts;
    supervisor.kill_box(&name("fw")).unwrap();
    until("it runs again", || {
        let status = supervisor.show_box(&name("fw")).unwrap().status;
        status.restarts > restarts && status.state == BoxState::Running
    });
}

/// A way to restart a box, after which it was started, or given another configuration.
type Restarting = (&'static str, fn(&Supervisor));

#[test]
fn a_restart_loses_writes_and_says_which() {
    let restarts: [Restarting; 4] = [
        ("started", crash),
        ("started", |supervisor| drop(supervisor.restart_box(&name("fw")).unwrap())),
        ("started", |supervisor| {
            supervisor.stop_box(&name("fw")).unwrap();
            assert_eq!(texts(supervisor), CHANGED, "they are not lost yet");
            supervisor.start_box(&name("fw")).unwrap();
        }),
        ("given a new configuration", |supervisor| {
            let install = Install {
                configuration: FIREWALL.into(),
                source: None,
                files: Vec::new(),
                uploads: Vec::new(),
            };
            supervisor.install(&name("fw"), &ConfigurationName::main(), &install).unwrap();
        }),
    ];
    for (how, restart) in restarts {
        let supervisor = start(&fabric(), None);
        supervisor.create_box(firewall(false)).unwrap();
        change(&supervisor);
        assert!(is_changed(&supervisor));
        assert_eq!(texts(&supervisor), CHANGED);
        let effects: Vec<_> =
            writes(&supervisor).iter().map(|write| (write.effect, write.in_config)).collect();
        assert_eq!(effects[2], (WriteEffect::Setting, true));
        assert_eq!(effects[0].0, WriteEffect::Edit);
        restart(&supervisor);
        assert!(!is_changed(&supervisor), "{how}");
        until("they are reported", || !lost(&supervisor).is_empty());
        assert_eq!(
            lost(&supervisor),
            [format!("box fw was {how} without 3 earlier writes to its handlers: f.rules, r.add (2 times)")]
        );
        assert_eq!(texts(&supervisor), [""; 0]);
        // Nothing is lost twice.
        crash(&supervisor);
        assert_eq!(lost(&supervisor).len(), 1);
    }
}

#[test]
fn kept_writes_are_repeated_after_every_restart() {
    let folder = Folder::new("writes");
    let store = folder.file("store");
    let mut fabric = fabric();
    let mut supervisor = start(&fabric, Some(&store));
    supervisor.create_box(firewall(true)).unwrap();
    change(&supervisor);
    for round in 0..6 {
        match round {
            0 => crash(&supervisor),
            1 => drop(supervisor.restart_box(&name("fw")).unwrap()),
            // The daemon ends, and the fabric goes on.
            2 => {
                supervisor.end();
                drop(supervisor);
                supervisor = start(&fabric, Some(&store));
            }
            // Both end.
            3 => {
                supervisor.end();
                drop(supervisor);
                fabric = self::fabric();
                supervisor = start(&fabric, Some(&store));
                until("it runs", || state(&supervisor, "fw") == BoxState::Running);
            }
            4 => crash(&supervisor),
            _ => {
                let configuration = FIREWALL.replace("10.0.0.0/8", "9.0.0.0/8");
                let install = Install { configuration, source: None, files: Vec::new(), uploads: Vec::new() };
                supervisor.install(&name("fw"), &ConfigurationName::main(), &install).unwrap();
            }
        }
        assert!(is_changed(&supervisor), "round {round}");
        assert_eq!(texts(&supervisor), CHANGED, "round {round}");
    }
    assert_eq!(lost(&supervisor), [""; 0]);
    // A write that a new configuration refuses is lost, and reported.
    let configuration = "Idle -> f :: IPFilter(allow all) -> Discard;".to_string();
    let install = Install { configuration, source: None, files: Vec::new(), uploads: Vec::new() };
    supervisor.install(&name("fw"), &ConfigurationName::main(), &install).unwrap();
    assert_eq!(read(&supervisor, "fw/f.config"), "allow udp");
    assert_eq!(texts(&supervisor), CHANGED[2..]);
    until("it is reported", || lost(&supervisor).len() == 2);
    assert!(lost(&supervisor)[0].contains("refused an earlier write to r.add"), "{:?}", lost(&supervisor));
    crash(&supervisor);
    assert_eq!(texts(&supervisor), CHANGED[2..]);
}

#[test]
fn a_new_fabric_loses_writes_and_says_which() {
    let folder = Folder::new("lost-writes");
    let store = folder.file("store");
    let supervisor = start(&fabric(), Some(&store));
    supervisor.create_box(firewall(false)).unwrap();
    change(&supervisor);
    supervisor.end();
    drop(supervisor);
    for expected in [1, 1] {
        let supervisor = start(&fabric(), Some(&store));
        until("it runs", || state(&supervisor, "fw") == BoxState::Running);
        assert!(!is_changed(&supervisor));
        until("they are reported", || lost(&supervisor).len() == expected);
        assert_eq!(texts(&supervisor), [""; 0]);
        supervisor.end();
        supervisor.close_store();
    }
}

#[test]
fn a_rejected_configuration_leaves_writes_alone() {
    let supervisor = start(&fabric(), None);
    supervisor.create_box(firewall(false)).unwrap();
    change(&supervisor);
    let main = ConfigurationName::main();
    // The check accepts it, but the box has no port.
    let install = |text: &str| Install {
        configuration: text.into(),
        source: None,
        files: Vec::new(),
        uploads: Vec::new(),
    };
    assert!(supervisor.install(&name("fw"), &main, &install("nonsense(")).is_err());
    assert!(supervisor.install(&name("fw"), &main, &install("FromDevice(0) -> Discard;")).is_err());
    assert!(is_changed(&supervisor));
    assert_eq!(texts(&supervisor), CHANGED);
    assert_eq!(lost(&supervisor), [""; 0]);
    // Another configuration has writes of its own.
    let second: ConfigurationName = "second".parse().unwrap();
    supervisor
        .install(&name("fw"), &second, &install("Idle -> f :: IPFilter(allow all) -> Discard;"))
        .unwrap();
    write(&supervisor, "fw/second:f.rules", "deny all");
    assert_eq!(writes(&supervisor).last().unwrap().path(), "second:f.rules");
    supervisor.remove_configuration(&name("fw"), &second).unwrap();
    assert_eq!(texts(&supervisor), CHANGED);
}

#[test]
fn writes_are_drift_of_a_stack() {
    let supervisor = start(&fabric(), None);
    let edge: StackName = "edge".parse().unwrap();
    let stack = Stack { boxes: vec![firewall(false)], ..Stack::default() };
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    let drift = |stack: &Stack| supervisor.diff_stack(&edge, stack).unwrap();
    assert_eq!(drift(&stack).drift, []);
    change(&supervisor);
    let found = drift(&stack);
    assert_eq!((found.changes.len(), found.drift.len()), (0, 1));
    assert_eq!((found.drift[0].name.as_str(), found.drift[0].writes.len()), ("fw", 3));
    // Keeping them is a setting that can change while the box runs.
    let kept = Stack { boxes: vec![firewall(true)], ..Stack::default() };
    supervisor.apply_stack(&edge, kept.clone()).unwrap();
    crash(&supervisor);
    assert!(is_changed(&supervisor));
    assert_eq!(drift(&kept).drift[0].writes.len(), 3);
    let never = CreateBox { restart: Restart::Never, ..firewall(true) };
    supervisor.apply_stack(&edge, Stack { boxes: vec![never], ..Stack::default() }).unwrap();
    assert!(is_changed(&supervisor));
    // Replacing the box loses them if the new one does not keep them.
    let larger = CreateBox { memory: api::Size(9 << 20), ..firewall(false) };
    let changes = supervisor.apply_stack(&edge, Stack { boxes: vec![larger], ..Stack::default() }).unwrap();
    assert!(!is_changed(&supervisor));
    let message = "box fw was replaced without 3 earlier writes to its handlers: f.rules, r.add (2 times)";
    assert_eq!(lost(&supervisor), [message]);
    assert_eq!(texts(&supervisor), [""; 0]);
    assert_eq!((changes.lost[0].name.as_str(), changes.lost[0].writes.len()), ("fw", 3));
}

/// A box that takes the place of another one executes the writes again that fit it, also after a restart and with a new
/// daemon. If the change of the stack fails, the old box has all of them.
#[test]
fn a_replaced_box_keeps_its_writes() {
    let folder = Folder::new("replaced-writes");
    let store = folder.file("store");
    let fabric = fabric();
    let supervisor = start(&fabric, Some(&store));
    let edge: StackName = "edge".parse().unwrap();
    let stack = |memory: u64, text: &str| {
        let firewall = firewall(true);
        let boxes =
            vec![CreateBox { memory: api::Size(memory << 20), configuration: text.into(), ..firewall }];
        Stack { boxes, ..Stack::default() }
    };
    supervisor.apply_stack(&edge, stack(8, FIREWALL)).unwrap();
    change(&supervisor);
    let changes = supervisor.apply_stack(&edge, stack(9, FIREWALL)).unwrap();
    assert_eq!((changes.changes[0].action, changes.lost.len()), (api::ChangeAction::Replace, 0));
    assert!(is_changed(&supervisor));
    assert_eq!((texts(&supervisor), lost(&supervisor)), (CHANGED.map(String::from).to_vec(), Vec::new()));
    crash(&supervisor);
    assert!(is_changed(&supervisor));
    // A stack whose other box can't be made.
    let mut bad = stack(10, FIREWALL);
    let number = api::PortRequest { attach: "none".parse().unwrap(), ..api::PortRequest::default() };
    let other = CreateBox { ports: vec![number], ..CreateBox::new(name("other"), "Idle -> Discard;") };
    bad.boxes.push(CreateBox { sandbox: Sandbox::Process, ..other });
    assert!(supervisor.apply_stack(&edge, bad).is_err());
    assert!(is_changed(&supervisor));
    assert_eq!((texts(&supervisor), lost(&supervisor)), (CHANGED.map(String::from).to_vec(), Vec::new()));
    // Without the routing table, and with a filter of the same name.
    let text = "Idle -> f :: IPFilter(allow all) -> Discard;";
    let changes = supervisor.apply_stack(&edge, stack(11, text)).unwrap();
    let gone: Vec<String> = changes.lost[0].writes.iter().map(|write| write.path()).collect();
    assert_eq!(gone, ["r.add", "r.add"]);
    assert_eq!(read(&supervisor, "fw/f.config"), "allow udp");
    assert_eq!(texts(&supervisor), ["f.rules allow udp"]);
    until("the lost ones are reported", || lost(&supervisor).len() == 2);
    assert!(lost(&supervisor).iter().all(|message| message.contains("refused an earlier write to r.add")));
    // One that does not start has them with its first start.
    let mut stopped = stack(12, text);
    stopped.boxes[0].start = false;
    assert!(supervisor.apply_stack(&edge, stopped).unwrap().lost.is_empty());
    supervisor.end();
    drop(supervisor);
    let supervisor = start(&fabric, Some(&store));
    supervisor.start_box(&name("fw")).unwrap();
    assert_eq!(read(&supervisor, "fw/f.config"), "allow udp");
    assert_eq!(texts(&supervisor), ["f.rules allow udp"]);
}

/// A box that changes itself a moment after its start.
const SELF_CHANGING: &str = "Idle -> f :: IPFilter(allow all) -> s :: Switch(0) -> Discard; s[1] -> Discard;
                             Idle -> t :: Switch(0) -> Discard; t[1] -> Discard; Script(write t.switch 1);
                             Script(wait 1ms, write s.switch -1, write s.switch 1);";

/// Waits until a box has changed itself.
fn wait_for_own_write(supervisor: &Supervisor) -> RecordedWrite {
    let is_own = |write: &RecordedWrite| write.is_own() && write.value.text() == "1";
    until("it changes itself", || writes(supervisor).iter().any(is_own));
    writes(supervisor).into_iter().find(is_own).unwrap()
}

#[test]
fn what_a_box_writes_itself_is_drift() {
    for keep_writes in [false, true] {
        let folder = Folder::new(if keep_writes { "own-kept" } else { "own-writes" });
        let store = folder.file("store");
        let mut fabric = fabric();
        let mut supervisor = start(&fabric, Some(&store));
        let edge: StackName = "edge".parse().unwrap();
        let definition = CreateBox { configuration: SELF_CHANGING.into(), ..firewall(keep_writes) };
        let stack = Stack { boxes: vec![definition], ..Stack::default() };
        supervisor.apply_stack(&edge, stack.clone()).unwrap();
        let own = wait_for_own_write(&supervisor);
        assert_eq!((own.path(), own.times), ("s.switch".into(), Some(2)));
        assert_eq!((own.effect, own.in_config), (WriteEffect::Setting, true));
        let found = supervisor.diff_stack(&edge, &stack).unwrap();
        assert_eq!((found.changes.len(), &found.drift[0].writes), (0, &vec![own]));
        // Beside the write of a client.
        write(&supervisor, "fw/f.rules", "deny all");
        let kept: &[&str] = if keep_writes { &["f.rules deny all", "s.switch 1"] } else { &["s.switch 1"] };
        let sorted = |supervisor: &Supervisor| {
            let mut texts = texts(supervisor);
            texts.sort();
            texts
        };
        assert_eq!(sorted(&supervisor), ["f.rules deny all", "s.switch 1"]);
        let is_own_loss = |message: &String| {
            message == "box fw was started without what it had written to its own handlers: s.switch"
        };
        let own_events = |supervisor: &Supervisor| {
            let events = supervisor.event_list(&EventQuery::default()).into_iter();
            events.filter(|event| event.kind == EventKind::OwnWrites).count()
        };
        for round in 1..=3 {
            // The daemon has stored what the box wrote.
            until("each change is reported", || own_events(&supervisor) == round);
            match round {
                1 | 2 => crash(&supervisor),
                _ => {
                    supervisor.end();
                    drop(supervisor);
                    fabric = self::fabric();
                    supervisor = start(&fabric, Some(&store));
                    until("it runs", || state(&supervisor, "fw") == BoxState::Running);
                }
            }
            // Only the configuration repeats its own write, and only once.
            assert_eq!(wait_for_own_write(&supervisor).times, Some(2), "round {round}");
            assert_eq!(sorted(&supervisor), kept, "round {round}");
            until("the loss is reported", || {
                lost(&supervisor).iter().filter(|it| is_own_loss(it)).count() == round
            });
            let others = lost(&supervisor).len() - round;
            assert_eq!(others, usize::from(!keep_writes), "round {round}: {:?}", lost(&supervisor));
        }
        let kind = |event: &api::Event| event.kind == EventKind::OwnWrites;
        let events = || supervisor.event_list(&EventQuery::default()).into_iter().filter(kind);
        until("each change is reported", || events().count() == 4);
        let message = events().next().unwrap().message;
        assert_eq!(message, "box fw changed its own configuration: it wrote s.switch");
        // A new text does not have them.
        let text = SELF_CHANGING.replace("wait 1ms", "stop");
        let install = Install { configuration: text, source: None, files: Vec::new(), uploads: Vec::new() };
        supervisor.install(&name("fw"), &ConfigurationName::main(), &install).unwrap();
        until("it is gone", || !writes(&supervisor).iter().any(RecordedWrite::is_own));
        assert_eq!(sorted(&supervisor), kept[..kept.len() - 1]);
        drop(fabric);
    }
}

#[test]
fn what_a_box_wrote_itself_can_be_saved() {
    let supervisor = start(&fabric(), None);
    let (fw, main) = (name("fw"), ConfigurationName::main());
    let configuration = SELF_CHANGING.into();
    supervisor.create_box(CreateBox { configuration, ..firewall(false) }).unwrap();
    wait_for_own_write(&supervisor);
    let saved = supervisor.save(&fw, &main, &Save::default()).unwrap();
    let expected = SELF_CHANGING.replace("s :: Switch(0)", "s :: Switch(1)");
    assert_eq!(
        (saved.saved, saved.configuration, saved.stored),
        (vec!["s.switch".to_string()], expected, true)
    );
    assert_eq!(texts(&supervisor), [""; 0]);
}

#[test]
fn saved_writes_are_the_definition() {
    let folder = Folder::new("saved-writes");
    let store = folder.file("store");
    let fabric = fabric();
    let supervisor = start(&fabric, Some(&store));
    supervisor.create_box(firewall(false)).unwrap();
    let (fw, main) = (name("fw"), ConfigurationName::main());
    let text = |supervisor: &Supervisor| supervisor.show_configuration(&fw, &main).unwrap().configuration;
    // There is nothing to save yet.
    let none = supervisor.save(&fw, &main, &Save::default()).unwrap();
    assert_eq!((none.configuration.as_str(), none.stored, none.saved.len()), (FIREWALL, false, 0));
    change(&supervisor);
    write(&supervisor, "fw/s.switch", "1");
    write(&supervisor, "fw/script.run", "");
    let expected = FIREWALL.replace("allow all", "allow udp").replace("s :: Switch(0)", "s :: Switch(1)");
    let expected = expected.replace("10.0.0.0/8 0", "10.0.0.0/8 0, 11.0.0.0/8 0, 12.0.0.0/8 0");
    let preview = supervisor.save(&fw, &main, &Save { preview: true }).unwrap();
    assert_eq!((preview.configuration, preview.stored), (expected.clone(), false));
    assert_eq!((text(&supervisor).as_str(), texts(&supervisor).len()), (FIREWALL, 5));
    let saved = supervisor.save(&fw, &main, &Save::default()).unwrap();
    assert_eq!((saved.configuration.as_str(), saved.stored), (expected.as_str(), true));
    assert_eq!(saved.saved, ["r.add", "r.add", "f.rules", "s.switch"]);
    let left: Vec<_> = saved.left.iter().map(|left| (left.handler.as_str(), left.reason.as_str())).collect();
    assert_eq!(left, [("script.run", "the arguments of its element don't show it")]);
    assert_eq!(text(&supervisor), expected);
    // The box goes on undisturbed, with what could not be saved.
    assert!(is_changed(&supervisor));
    assert_eq!(texts(&supervisor), ["script.run "]);
    // A new daemon finds the box as it is stored.
    let status = supervisor.show_box(&fw).unwrap();
    supervisor.end();
    drop(supervisor);
    let supervisor = start(&fabric, Some(&store));
    assert_eq!(supervisor.show_box(&fw).unwrap().status.pid, status.status.pid);
    assert!(is_changed(&supervisor));
    crash(&supervisor);
    assert_eq!(read(&supervisor, "fw/f.config"), "allow udp");
    assert_eq!(read(&supervisor, "fw/s.switch"), "1");
    assert!(is_changed(&supervisor));
    assert_eq!(read(&supervisor, "fw/t.switch"), "0");
    until("the rest is reported", || lost(&supervisor).len() == 1);
    assert!(lost(&supervisor)[0].ends_with("without 1 earlier write to its handlers: script.run"));
}

#[test]
fn a_box_of_a_stack_is_saved_in_its_file() {
    let supervisor = start(&fabric(), None);
    let edge: StackName = "edge".parse().unwrap();
    let mut stack = Stack { boxes: vec![firewall(false)], ..Stack::default() };
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    write(&supervisor, "fw/f.rules", "deny all");
    let saved = supervisor.save(&name("fw"), &ConfigurationName::main(), &Save::default()).unwrap();
    assert_eq!((saved.stored, saved.stack.as_ref()), (false, Some(&edge)));
    assert_eq!(saved.configuration, FIREWALL.replace("allow all", "deny all"));
    assert_eq!(texts(&supervisor), ["f.rules deny all"]);
    // The changed file ends the drift.
    stack.boxes[0].configuration = saved.configuration;
    supervisor.apply_stack(&edge, stack.clone()).unwrap();
    let found = supervisor.diff_stack(&edge, &stack).unwrap();
    assert_eq!((found.changes.len(), found.drift.len()), (0, 0));
    assert_eq!(read(&supervisor, "fw/f.config"), "deny all");
}
