//! Fabrics that are started before they are needed.

use super::support::{TestLauncher, ask, exists, folder, kill, wait_for};
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// A program that a launcher finds without `PATH`: it can tell when the file is replaced.
const PROGRAM: &str = "/usr/bin/env";

/// The children of the launcher.
fn children(launcher: &TestLauncher) -> Vec<u32> {
    let parent = format!("PPid:\t{}\n", launcher.id());
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/status")).is_ok_and(|status| status.contains(&parent))
    };
    processes.filter(is_child).collect()
}

/// The spare that follows this fabric, when it is there.
fn spare(launcher: &TestLauncher, fabric: u32) -> u32 {
    let spares = || children(launcher).into_iter().filter(|child| *child != fabric).collect::<Vec<_>>();
    wait_for(|| spares().len() == 1);
    spares()[0]
}

#[test]
fn a_spare_follows_a_fabric_that_was_killed() {
    let launcher = TestLauncher::start_with_program(PROGRAM);
    let mut client = launcher.connect();
    let mut fabric = client.connect_fabric(0).expect("a fabric");
    for _ in 0..3 {
        let next = spare(&launcher, fabric.state.pid);
        kill(fabric.state.pid, Signal::KILL);
        wait_for(|| !exists(fabric.state.pid));
        fabric = client.connect_fabric(0).expect("the next fabric");
        assert_eq!((fabric.state.pid, fabric.is_new), (next, true));
        // It is a fabric like any other.
        assert_eq!(ask(&fabric, &[])["store"], format!("{:?}", super::support::STORE));
        for group in &fabric.state.cgroups {
            let members = fs::read_to_string(group.join("cgroup.procs")).expect("a group");
            assert_eq!(members.trim(), next.to_string());
        }
    }
}

#[test]
fn a_spare_that_is_killed_is_not_used() {
    let launcher = TestLauncher::start_with_program(PROGRAM);
    let mut client = launcher.connect();
    let fabric = client.connect_fabric(0).expect("a fabric");
    let next = spare(&launcher, fabric.state.pid);
    kill(next, Signal::KILL);
    wait_for(|| !exists(next));
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| !exists(fabric.state.pid));
    let fabric = client.connect_fabric(0).expect("the next fabric");
    assert_ne!(fabric.state.pid, next);
}

#[test]
fn a_spare_that_is_killed_is_followed_by_another_one() {
    let launcher = TestLauncher::start_with_program(PROGRAM);
    let mut client = launcher.connect();
    let fabric = client.connect_fabric(0).expect("a fabric");
    let first = spare(&launcher, fabric.state.pid);
    kill(first, Signal::KILL);
    wait_for(|| !exists(first));
    let next = spare(&launcher, fabric.state.pid);
    assert_ne!(next, first);
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| !exists(fabric.state.pid));
    assert_eq!(client.connect_fabric(0).expect("the next fabric").state.pid, next);
}

#[test]
fn a_spare_of_a_program_that_was_replaced_is_not_used() {
    let folder = folder();
    let program = folder.join("program");
    fs::copy(PROGRAM, &program).expect("a program");
    let launcher = TestLauncher::start_with_program(program.to_str().expect("a path"));
    let mut client = launcher.connect();
    let fabric = client.connect_fabric(0).expect("a fabric");
    let next = spare(&launcher, fabric.state.pid);
    // As a package manager does it.
    let other = folder.join("other");
    fs::copy(PROGRAM, &other).expect("a program");
    fs::rename(&other, &program).expect("a program");
    kill(fabric.state.pid, Signal::KILL);
    wait_for(|| !exists(fabric.state.pid));
    let fabric = client.connect_fabric(0).expect("the next fabric");
    assert_ne!(fabric.state.pid, next);
    wait_for(|| !exists(next));
    assert_eq!(ask(&fabric, &[])["store"], format!("{:?}", super::support::STORE));
    drop(launcher);
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_spare_ends_with_its_launcher() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut launcher = TestLauncher::start_with_program(PROGRAM);
        let fabric = launcher.connect().connect_fabric(0).expect("a fabric");
        let next = spare(&launcher, fabric.state.pid);
        launcher.signal(signal);
        wait_for(|| launcher.has_ended().is_some() && !exists(next));
        if signal == Signal::TERM {
            let groups = &fabric.state.cgroups;
            let of_spare = |group: &std::path::PathBuf| group.with_file_name(format!("fabric-{next}"));
            assert!(groups.iter().map(of_spare).all(|group| !Path::new(&group).exists()));
        }
    }
}
