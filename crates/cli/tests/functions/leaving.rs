//! Functions that leave in order.

use super::{Function, count, instances, port, send};
use crate::support::{Daemon, wait};
use rustix::process::{Pid, Signal, kill_process};

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
