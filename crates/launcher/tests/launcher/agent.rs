//! The agents of fabrics. Here each is `sleep`.

use super::support::{TestLauncher, exists, kill, wait_for};
use protocol::launcher::{LauncherError, Refusal};
use rustix::process::Signal;
use std::fs;

/// The agents that the launcher has started.
fn agents(launcher: &TestLauncher) -> Vec<u32> {
    let parent = format!("PPid:\t{}\n", launcher.id());
    let file =
        |process: &u32, name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_agent = |process: &u32| {
        file(process, "status").contains(&parent) && file(process, "cmdline").contains("sleep\0")
    };
    processes.filter(is_agent).collect()
}

#[test]
fn an_agent_is_started_again_and_ends_with_its_fabric() {
    let launcher = TestLauncher::start();
    let mut client = launcher.connect();
    assert!(matches!(client.start_agent(0), Err(LauncherError::Refused(Refusal::NoFabric(0)))));
    client.connect_fabric(0).expect("a fabric");
    assert!(agents(&launcher).is_empty());
    client.start_agent(0).expect("an agent");
    wait_for(|| agents(&launcher).len() == 1);
    let first = agents(&launcher)[0];
    // There is one already.
    client.start_agent(0).expect("an agent");
    assert_eq!(agents(&launcher), [first]);
    kill(first, Signal::KILL);
    wait_for(|| agents(&launcher).iter().any(|agent| *agent != first));
    let second = agents(&launcher)[0];
    client.stop(0).expect("an end");
    wait_for(|| !exists(second));
    assert!(agents(&launcher).is_empty());
}
