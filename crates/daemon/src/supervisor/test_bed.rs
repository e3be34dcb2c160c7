//! A supervisor with a fabric in threads, for tests that look inside.

use super::state::Supervisor;
use crate::settings::Settings;
use crate::store::Store;
use crate::thread_fabric::ThreadFabric;
use api::{BoxName, CreateBox, Sandbox, Size};
use protocol::fabric::{Asked, Phase};
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Only a failure takes this long.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Waits until `done` returns true.
pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TIMEOUT, "timed out while waiting until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A box in a process, without ports.
pub(super) fn process(name: &str, configuration: &str) -> CreateBox {
    let definition = CreateBox::new(name.parse().unwrap(), configuration);
    CreateBox { sandbox: Sandbox::Process, memory: Size(8 << 20), ..definition }
}

/// A supervisor that leaves its fabric running when it ends.
fn start_daemon(fabric: &Arc<ThreadFabric>, store: Store) -> Supervisor {
    let settings = Settings::new(fabric.clone(), "clickbox");
    Supervisor::start_with_store(&settings, store, false).unwrap()
}

/// A supervisor without a store on disk, and its fabric.
pub(super) struct TestBed {
    pub(super) supervisor: Supervisor,
    pub(super) fabric: Arc<ThreadFabric>,
}

impl Deref for TestBed {
    type Target = Supervisor;

    fn deref(&self) -> &Supervisor {
        &self.supervisor
    }
}

impl TestBed {
    /// With boxes whose configurations are commands of the probe.
    pub(super) fn with_probe() -> Self {
        Self::new(image::PROBE, "probe")
    }

    /// With boxes whose configurations are those of Click.
    pub(super) fn with_click() -> Self {
        Self::new(image::CLICKBOX, "clickbox")
    }

    /// The same, whose services are looked at only when the test does so. Its fabric outlives the daemon.
    pub(super) fn unwatched_with_click() -> Self {
        let fabric = ThreadFabric::new(image::CLICKBOX, 1);
        let supervisor = start_daemon(&fabric, Store::open(None, None).unwrap());
        Self { supervisor, fabric }
    }

    /// Starts the next daemon, with the store that the one before has left.
    pub(super) fn start_next_daemon(&mut self, store: Store) {
        self.supervisor = start_daemon(&self.fabric, store);
    }

    fn new(image: &'static [u8], name: &str) -> Self {
        let fabric = ThreadFabric::new(image, 1);
        let supervisor = Supervisor::start(&Settings::new(fabric.clone(), name)).unwrap();
        Self { supervisor, fabric }
    }

    /// Makes the commits of the store fail, or succeed again.
    pub(super) fn fail_commits(&self, fail: bool) {
        self.supervisor.0.store().fail_commits(fail);
    }

    /// Ends the fabric as if it had crashed.
    pub(super) fn kill_fabric(&self) {
        self.fabric.kill(0);
    }

    /// Ends the fabric. The next one has everything when this returns.
    pub(super) fn replace_fabric(&self) {
        let before = self.supervisor.0.rebuilds.watch();
        self.kill_fabric();
        // The channels of the one that ends may still answer.
        let is_next = || self.supervisor.0.rebuilds.was_any(before) && self.has_whole_fabric();
        until("there is another fabric", is_next);
    }

    /// As [`replace_fabric`](Self::replace_fabric). A box runs when this returns.
    pub(super) fn replace_fabric_of(&self, name: &BoxName) {
        self.replace_fabric();
        until("the box runs in the next fabric", || self.phase(name) == Some(Phase::Running));
    }

    /// Whether a fabric is connected and has everything.
    pub(super) fn has_whole_fabric(&self) -> bool {
        let state = &self.supervisor.0;
        self.fabric.numbers() == [0]
            && state.fabrics.all().iter().all(|link| link.is_connected())
            && !state.rebuilds.was_any(state.rebuilds.watch())
    }

    /// The phase of a box, if the fabric has it.
    pub(super) fn phase(&self, name: &BoxName) -> Option<Phase> {
        self.supervisor.runtime(name, Asked::None).ok().map(|runtime| runtime.phase)
    }

    /// The value of a handler.
    pub(super) fn value(&self, path: &str) -> String {
        let value = self.supervisor.read(&path.parse().unwrap(), b"").unwrap().value;
        value.text().trim().to_string()
    }

    /// The writes to handlers that a box has.
    pub(super) fn written(&self, name: &BoxName) -> Vec<String> {
        let writes = self.supervisor.show_box(name).unwrap().writes;
        writes.iter().map(|write| format!("{} {}", write.handler, write.value.text())).collect()
    }
}
