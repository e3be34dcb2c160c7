//! What writes to handlers survive: the end of the box, of the daemon and of the fabric.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use support::Daemon;

const FIREWALL: &str = "Idle -> filter :: IPFilter(allow all) -> c :: Counter -> Discard;
Idle -> routes :: RadixIPLookup(10.0.0.0/8 0) -> Discard;
Idle -> switch :: Switch(0) -> Discard; script :: Script(TYPE PASSIVE, write switch.switch -1);\n";

/// A launcher, which outlives the daemons of the test. Its fabrics end with it.
struct Launcher(Child, PathBuf);

impl Launcher {
    fn start() -> Launcher {
        let socket = std::env::temp_dir().join(format!("clickbox-drift-launcher-{}", std::process::id()));
        let mut child = Command::new(env!("CARGO_BIN_EXE_clickbox"))
            .args(["launcher", "--stay", "--json", "--socket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a launcher");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        Launcher(child, socket)
    }

    fn daemon(&self) -> Daemon {
        let folder = std::env::temp_dir().join(format!("clickbox-daemon-drift-{}", std::process::id()));
        let (store, launcher) = (folder.join("store"), self.1.to_str().expect("a plain path"));
        let store = store.to_str().expect("a plain path");
        Daemon::start_lasting(folder.clone(), &["--store", store, "--launcher", launcher])
    }

    /// Kills a daemon, and starts another one.
    fn replace(&self, mut daemon: Daemon) -> Daemon {
        daemon.child.kill().expect("a signal");
        daemon.child.wait().expect("an end");
        // Dropping it would remove the store.
        std::mem::forget(daemon);
        self.daemon()
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if let Some(process) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process(process, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

fn kill(process: u32) {
    let process = Pid::from_raw(process as i32).expect("a process");
    kill_process(process, Signal::KILL).expect("a signal");
}

/// The process of a box.
fn box_process(daemon: &Daemon, name: &str) -> u32 {
    daemon.json(&["show", name])["pid"].as_u64().expect("a process") as u32
}

/// The fabric of a box: the last process above it before the launcher.
fn fabric_of(box_process: u32, launcher: u32) -> u32 {
    let mut process = box_process;
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
        let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        let parent: u32 = fields[1].parse().expect("a number");
        assert!(parent > 1, "box {box_process} has no fabric of launcher {launcher}");
        if parent == launcher {
            return process;
        }
        process = parent;
    }
}

#[test]
fn written_rules_survive_kills() {
    let launcher = Launcher::start();
    let mut daemon = launcher.daemon();
    let file = daemon.file("fw.click", FIREWALL);
    let create = ["create", "--sandbox", "process", "--restart", "on-failure"];
    daemon.check(&[&create[..], &["kept", &file, "--keep-writes"]].concat(), 0, &["kept runs"]);
    daemon.check(&[&create[..], &["lost", &file]].concat(), 0, &["lost runs"]);
    let write = |daemon: &Daemon, names: &[&str]| {
        for name in names {
            daemon.check(&["write", &format!("{name}/filter.rules"), "deny tcp, allow all"], 0, &[]);
            daemon.check(&["write", &format!("{name}/routes.add"), "11.0.0.0/8 0"], 0, &[]);
            daemon.check(&["write", &format!("{name}/c.reset")], 0, &[]);
        }
    };
    write(&daemon, &["kept", "lost"]);
    daemon.check(&["handlers", "kept", "filter"], 0, &["kept/filter.rules", "set"]);
    daemon.check(&["show", "kept"], 0, &["2 handler writes", "repeated after each start", "deny tcp"]);
    daemon.check(&["show", "lost"], 0, &["2 handler writes", "lost at the next start", "11.0.0.0/8 0"]);

    let is_kept = |daemon: &Daemon| {
        daemon.until(&["read", "kept/filter.rules"], "deny tcp, allow all");
        daemon.check(&["read", "kept/routes.table"], 0, &["11.0.0.0/8"]);
        let drift = daemon.json(&["show", "kept"])["writes"].as_array().map(Vec::len);
        assert_eq!(drift, Some(2));
    };
    let is_lost = |daemon: &Daemon, times: usize| {
        daemon.until(&["read", "lost/filter.rules"], "allow all");
        let (_, rules) = daemon.run(&["read", "lost/filter.rules"]);
        assert_eq!(rules.trim(), "allow all");
        daemon.check(&["show", "lost"], 0, &["running"]);
        assert!(daemon.json(&["show", "lost"])["writes"].is_null());
        let events = daemon.check(&["events"], 0, &[]);
        let lost = "box lost was started without 2 earlier writes to its handlers: filter.rules, routes.add";
        assert_eq!(events.matches(lost).count(), times, "{events}");
        assert!(!events.contains("box kept was started without"), "{events}");
    };
    // The boxes are killed.
    for name in ["kept", "lost"] {
        kill(box_process(&daemon, name));
        daemon.until(&["show", name], "; 1 restart\n");
    }
    is_kept(&daemon);
    is_lost(&daemon, 1);
    // The daemon is killed. The boxes go on.
    write(&daemon, &["lost"]);
    daemon = launcher.replace(daemon);
    is_kept(&daemon);
    daemon.check(&["read", "lost/filter.rules"], 0, &["deny tcp"]);
    daemon.check(&["show", "lost"], 0, &["2 handler writes"]);
    // The fabric is killed.
    let kill_fabric = |daemon: &Daemon| {
        let process = box_process(daemon, "kept");
        kill(fabric_of(process, launcher.0.id()));
    };
    kill_fabric(&daemon);
    daemon.until(&["events"], "the fabric was restarted");
    is_kept(&daemon);
    is_lost(&daemon, 2);
    // Both are killed.
    write(&daemon, &["lost"]);
    kill_fabric(&daemon);
    daemon = launcher.replace(daemon);
    is_kept(&daemon);
    is_lost(&daemon, 3);
    for name in ["kept", "lost"] {
        daemon.check(&["rm", "--force", name], 0, &[]);
    }
}

#[test]
fn written_rules_survive_a_replacement() {
    let daemon = Daemon::start("replaced");
    daemon.file("fw.click", FIREWALL);
    let stack = |memory: &str, keeps: bool| {
        let boxes = "[boxes.gate]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\n";
        daemon.file("edge.toml", &format!("{boxes}memory = \"{memory}\"\nkeep_writes = {keeps}\n"))
    };
    daemon.check(&["up", &stack("8M", true)], 0, &["gate"]);
    daemon.check(&["write", "gate/filter.rules", "deny tcp, allow all"], 0, &[]);
    daemon.check(&["write", "gate/routes.add", "11.0.0.0/8 0"], 0, &[]);
    let kept = daemon.check(&["up", &stack("9M", true)], 0, &["replace"]);
    assert!(!kept.contains("lost"), "{kept}");
    daemon.check(&["read", "gate/filter.rules"], 0, &["deny tcp, allow all"]);
    daemon.check(&["show", "gate"], 0, &["2 handler writes", "filter.rules"]);
    // A new definition without the routes.
    daemon.file("fw.click", FIREWALL.lines().next().expect("a line"));
    daemon.check(&["up", &stack("10M", true)], 0, &["* lost     box/gate: routes.add = 11.0.0.0/8 0"]);
    daemon.check(&["read", "gate/filter.rules"], 0, &["deny tcp, allow all"]);
    daemon.until(&["events"], "box gate refused an earlier write to routes.add, which is lost");
    // One that does not keep writes.
    daemon.check(
        &["up", &stack("11M", false)],
        0,
        &["* lost     box/gate: filter.rules = deny tcp, allow all"],
    );
    daemon.check(&["read", "gate/filter.rules"], 0, &["allow all"]);
    daemon.check(
        &["events"],
        0,
        &["box gate was replaced without 1 earlier write to its handlers: filter.rules"],
    );
}

#[test]
fn written_rules_are_saved() {
    let daemon = Daemon::start("save");
    let file = daemon.file("fw.click", FIREWALL);
    daemon.check(&["create", "fw", &file, "--sandbox", "process"], 0, &[]);
    daemon.check(&["save", "fw"], 0, &["nothing to save"]);
    daemon.check(&["write", "fw/filter.rules", "deny tcp, allow all"], 0, &[]);
    let preview =
        ["-Idle -> filter :: IPFilter(allow all)", "+Idle -> filter :: IPFilter(deny tcp, allow all)"];
    daemon.check(&["save", "fw", "--preview"], 0, &preview);
    daemon.check(&["show", "fw", "--configuration"], 0, &["IPFilter(allow all)"]);
    let copy = daemon.folder.join("copy.click");
    let copy = copy.to_str().expect("a plain path");
    daemon.check(&["save", "fw", "--to", copy], 0, &["fw is saved, with filter.rules"]);
    let expected = FIREWALL.replace("allow all", "deny tcp, allow all");
    assert_eq!(std::fs::read_to_string(copy).expect("a file"), expected);
    assert_eq!(daemon.check(&["show", "fw", "--configuration"], 0, &[]), expected);
    daemon.check(&["restart", "fw"], 0, &[]);
    daemon.check(&["read", "fw/filter.rules"], 0, &["deny tcp, allow all"]);
    daemon.check(&["write", "fw/routes.add", "11.0.0.0/8 0"], 0, &[]);
    daemon.check(&["write", "fw/routes.remove", "10.0.0.0/8"], 0, &[]);
    daemon.check(&["save", "fw"], 0, &["fw is saved, with routes.add, routes.remove"]);
    daemon.check(&["restart", "fw"], 0, &[]);
    let text = daemon.check(&["show", "fw", "--configuration"], 0, &["RadixIPLookup(11.0.0.0/8 0)"]);
    assert_eq!(text, expected.replace("10.0.0.0/8", "11.0.0.0/8"));
    daemon.check(&["read", "fw/routes.table"], 0, &["11.0.0.0/8"]);
    daemon.check(&["write", "fw/script.run"], 0, &[]);
    daemon.check(
        &["save", "fw"],
        1,
        &["script.run can't be saved: the arguments of its element don't show it"],
    );
    let inner = FIREWALL.replace(
        "filter :: IPFilter(allow all)",
        "gate :: { input -> filter :: IPFilter(allow all) -> output }",
    );
    assert_ne!(inner, FIREWALL);
    let file = daemon.file("inner.click", &inner);
    daemon.check(&["create", "inner", &file, "--sandbox", "process"], 0, &[]);
    daemon.check(&["write", "inner/gate/filter.rules", "deny tcp, allow all"], 0, &[]);
    daemon.check(&["save", "inner"], 0, &["inner is saved, with gate/filter.rules"]);
    daemon.check(&["show", "inner", "--configuration"], 0, &["IPFilter(deny tcp, allow all)"]);
    daemon.check(&["rm", "--force", "inner"], 0, &[]);
    daemon.check(&["save", "fw", "--configuration", "other"], 4, &["other"]);
    daemon.check(&["events"], 0, &["1 write to handlers became part of configuration main of box fw"]);
    daemon.check(&["stop", "fw"], 0, &[]);
    daemon.check(&["start", "fw"], 0, &[]);
    daemon.check(&["events"], 0, &["without 1 earlier write to its handlers: script.run"]);

    // The definition of a box in a stack is the file.
    let stack =
        daemon.file("edge.toml", "[boxes.gate]\nconfiguration = \"fw.click\"\nsandbox = \"process\"\n");
    daemon.check(&["up", &stack], 0, &["gate"]);
    daemon.check(&["diff", &stack], 0, &["nothing to change"]);
    daemon.check(&["write", "gate/filter.rules", "deny tcp, allow all"], 0, &[]);
    daemon.check(&["diff", &stack], 1, &["* written  box/gate: filter.rules = deny tcp, allow all"]);
    let (_, exported) = daemon.run(&["export", "edge"]);
    let notice =
        "box gate has 1 handler write that this file does not have: filter.rules; see clickbox save gate";
    assert!(exported.contains(notice) && exported.contains(&format!("# {notice}\n")), "{exported}");
    let again = exported.strip_suffix(&format!("{notice}\n")).expect("the notice is on standard error");
    let again = daemon.file("exported.toml", again);
    daemon.check(&["diff", &again], 1, &["* written"]);
    let saved = daemon.check(&["save", "gate"], 0, &["belongs to stack edge", "fw.click"]);
    assert!(saved.contains(preview[1]), "{saved}");
    daemon.file("fw.click", &expected);
    daemon.check(&["diff", &stack], 1, &["reload", "* written"]);
    daemon.check(&["up", &stack], 0, &["reload"]);
    daemon.check(&["diff", &stack], 0, &["nothing to change"]);
    daemon.check(&["read", "gate/filter.rules"], 0, &["deny tcp, allow all"]);
    for name in ["fw", "gate"] {
        daemon.check(&["rm", "--force", name], 0, &[]);
    }
}
