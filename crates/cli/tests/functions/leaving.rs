//! Functions that leave in order.

use super::{Function, SDK, built, count, instances, port, send, succeed};
use crate::support::{Daemon, wait};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;

/// A function with its own loop, which leaves in order upon SIGTERM.
const OWN_LOOP: &str = "
    #include \"clickbox.h\"
    #include <signal.h>
    static volatile sig_atomic_t told;
    static void on_signal(int number) { (void)number; told = 1; }
    int main(int count, char **words)
    {
        struct clickbox_packet packets[64];
        signal(SIGTERM, on_signal);
        struct clickbox *box = clickbox_join(count > 1 ? words[1] : NULL, NULL);
        int taken = box ? 0 : -1;
        while (taken >= 0) {
            taken = clickbox_receive(box, packets, 64, 10);
            for (int number = 0; number < taken; number++)
                clickbox_send(box, &packets[number], CLICKBOX_NEXT);
            if (told && clickbox_drain(box) < 0)
                return 1;
        }
        int failed = *clickbox_error() != 0;
        clickbox_leave(box);
        return failed;
    }\n";

/// The program of it.
pub(crate) fn own_loop(daemon: &Daemon) -> Command {
    let (source, program) = (daemon.file("own-loop.c", OWN_LOOP), daemon.folder.join("own-loop"));
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", SDK, &source, "-o"]).arg(&program);
    succeed(compile.arg(built().join("libclickbox.a")));
    Command::new(program)
}

/// Lets a function leave while packets wait for it and more are sent to its service `nf`, of which it is this instance. All of them
/// arrive.
pub(crate) fn leave(daemon: &Daemon, mut function: Function, number: usize, packets: u64) {
    let process = Pid::from_child(&function.0);
    let signal = |signal| kill_process(process, signal).expect("it runs");
    let end = count(daemon, "sink/got.count") + packets;
    signal(Signal::STOP);
    send(daemon, packets);
    wait("packets wait", || instances(daemon, "nf")[number - 1]["waiting"].as_u64() > Some(10));
    signal(Signal::TERM);
    signal(Signal::CONT);
    assert!(function.0.wait().expect("it ends").success());
    wait("all packets arrive", || count(daemon, "sink/got.count") == end);
    daemon.until(&["events"], &format!("nf-{number} left service nf: it left in order\n"));
    for name in [format!("nf-{number}.0"), format!("nf-{number}.1"), "source.0".into()] {
        assert_eq!(port(daemon, &name).2, serde_json::json!({}), "{name}");
    }
    daemon.check(&["account"], 0, &[]);
}
