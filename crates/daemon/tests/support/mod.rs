//! Helpers shared by the daemon's tests.
#![allow(dead_code, unused_imports, reason = "each test program uses its part")]

mod daemon_process;
mod thread_fabric;

use api::{BoxName, BoxState, CreateBox, HandlerPath, Limits, PortRequest, Sandbox, SwitchName};
use daemon::{Settings, Supervisor};
pub(crate) use daemon_process::{Daemon, TOKEN, code, run_if_child, secret, spawn, with_tcp};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use test_support::{Capability, require};
pub(crate) use thread_fabric::ThreadFabric;

/// A timeout long enough for a loaded machine; only a failure takes this long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// Settings with the probe image, whose configurations are single-word commands.
pub(crate) fn settings() -> Settings {
    settings_of(image::PROBE, "probe", 2)
}

pub(crate) fn settings_of(image: &'static [u8], name: &str, workers: usize) -> Settings {
    Settings::new(ThreadFabric::new(image, workers), name)
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::start(&settings()).unwrap()
}

pub(crate) fn name(text: &str) -> BoxName {
    text.parse().unwrap()
}

pub(crate) fn switch(text: &str) -> SwitchName {
    text.parse().unwrap()
}

pub(crate) fn handler(text: &str) -> HandlerPath {
    text.parse().unwrap()
}

/// A box in a process, with ports attached as given. It may send from any address, because the probe's frames are from
/// the zero address.
pub(crate) fn process(name: &str, command: &str, ports: &[&str]) -> CreateBox {
    let limits = Limits { transparent: true, ..Limits::default() };
    let port = |attach: &&str| PortRequest {
        attach: attach.parse().unwrap(),
        limits: limits.clone(),
        ..PortRequest::default()
    };
    CreateBox {
        sandbox: Sandbox::Process,
        ports: ports.iter().map(port).collect(),
        memory: api::Size(1 << 20),
        ..CreateBox::new(name.parse().unwrap(), command)
    }
}

/// Runs `check` with boxes in processes, and in virtual machines where available.
pub(crate) fn in_each(check: impl Fn(&Supervisor, Sandbox)) {
    let supervisor = supervisor();
    check(&supervisor, Sandbox::Process);
    if require(Capability::Kvm) {
        let supervisor = self::supervisor();
        check(&supervisor, Sandbox::Vm);
    }
}

pub(crate) fn state(supervisor: &Supervisor, box_name: &str) -> BoxState {
    supervisor.show_box(&name(box_name)).unwrap().status.state
}

/// Waits until `done` returns true.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TIMEOUT, "timed out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A temporary folder of one test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clickbox-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
