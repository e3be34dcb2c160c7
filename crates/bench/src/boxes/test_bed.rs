//! A test bed: the host, the worker and the cores for measurements of boxes.

use crate::boxes::workload::{BoxProgram, Workload};
use crate::error::MeasureError;
use boundary::{PlatformKind, Slots};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sandbox::thread::{self, Entry};
use sandbox::{EventFd, Host, PacketPool, PortSettings, Sandbox, Settings, Target, Worker};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a box's reply.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Private memory of a box, which is allocated when touched.
const MEMORY: usize = 8 << 20;

/// A host for boxes of one platform, with one core for them and another for the code that feeds them. The thread that
/// creates it is pinned to that other core until it is dropped.
#[derive(Debug)]
pub struct TestBed {
    // Virtual machines must be dropped before the worker that runs them: fields are dropped in order.
    worker: Option<Worker>,
    host: Host,
    platform: PlatformKind,
    box_program: BoxProgram,
    /// Bytes of the image that contains the program.
    image_size: usize,
    /// The function that boxes in threads run.
    entry: Option<Entry>,
    before: Option<CpuSet>,
    /// The core for boxes.
    boxes: Option<usize>,
}

impl TestBed {
    /// A test bed for boxes of a platform that run a program, which `image` contains. `entry` is the function that boxes
    /// in threads run. The caller links both.
    pub fn new(
        platform: PlatformKind,
        box_program: BoxProgram,
        image: &[u8],
        entry: Option<Entry>,
    ) -> Result<Self, MeasureError> {
        let before = sched_getaffinity(None).ok();
        let cores = before.as_ref().map(allowed).unwrap_or_default();
        // A thread stays on the core where it was created, and a process on the core of the thread that created it.
        pin(cores.last());
        let host = Host::new(image)?;
        let worker = match platform {
            PlatformKind::Vm if !host.has_vms() => return Err(MeasureError::NoKvm),
            PlatformKind::Vm => Some(Worker::start()?),
            PlatformKind::Thread if entry.is_none() || box_program != BoxProgram::Click => {
                return Err(MeasureError::NoEntry);
            }
            PlatformKind::Process | PlatformKind::Thread => None,
        };
        pin(cores.first());
        Ok(Self {
            worker,
            host,
            platform,
            box_program,
            image_size: image.len(),
            entry,
            before,
            boxes: cores.last().copied(),
        })
    }

    /// What its boxes run in.
    pub fn platform(&self) -> PlatformKind {
        self.platform
    }

    /// All cores. The first is that of this thread.
    pub(crate) fn all_cores(&self) -> Vec<usize> {
        self.before.as_ref().map(allowed).unwrap_or_default()
    }

    /// The core of this thread, and that for boxes.
    pub(crate) fn cores(&self) -> (usize, usize) {
        let cores = self.all_cores();
        (cores.first().copied().unwrap_or(0), cores.last().copied().unwrap_or(0))
    }

    /// The program that its boxes run.
    pub fn box_program(&self) -> BoxProgram {
        self.box_program
    }

    /// Bytes of the image that contains the program.
    pub(crate) fn image_size(&self) -> usize {
        self.image_size
    }

    /// The sandbox that the host uses. Thread boxes have none: see [`create`](Self::create).
    pub(crate) fn target(&self) -> Target<'_> {
        self.worker.as_ref().map_or(Target::Process, Target::Vm)
    }

    /// Creates a box without starting it.
    pub(crate) fn create(&self, settings: &Settings) -> Result<Sandbox, MeasureError> {
        Ok(match self.entry {
            Some(entry) if self.platform == PlatformKind::Thread => thread::create(entry, settings)?,
            _ => self.host.create(self.target(), settings)?,
        })
    }

    /// Starts a box on the core for boxes.
    pub(crate) fn start(&self, sandbox: &mut Sandbox) -> Result<(), MeasureError> {
        if self.platform == PlatformKind::Thread {
            // A thread stays on the core where it was created.
            let current = sched_getaffinity(None).ok();
            pin(self.boxes.as_ref());
            let started = sandbox.start();
            if let Some(current) = current {
                // If it fails, the thread continues on its current cores.
                let _ = sched_setaffinity(None, &current);
            }
            return Ok(started?);
        }
        Ok(sandbox.start()?)
    }

    /// Runs `action` on all cores that this thread originally had; what it starts inherits them.
    pub(crate) fn on_all_cores<T>(&self, action: impl FnOnce() -> T) -> T {
        let current = sched_getaffinity(None).ok();
        if let Some(before) = &self.before {
            // If it fails, the thread continues on its current cores.
            let _ = sched_setaffinity(None, before);
        }
        let result = action();
        if let Some(current) = current {
            let _ = sched_setaffinity(None, &current);
        }
        result
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// The settings of a box that runs a program, with the given number of slots per ring.
    pub(crate) fn settings(program: Workload, slots: Slots, wake_event: Option<Arc<EventFd>>) -> Settings {
        let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
        let ports = vec![port; program.ports()];
        Settings { ports, quantum: slots.count(), wake_event, ..Settings::new(MEMORY) }
    }

    /// The settings of a box without ports, with room for large tables.
    pub(crate) fn settings_for_large_tables() -> Settings {
        Settings::new(4 * MEMORY)
    }

    /// Creates and starts a box that runs a program.
    pub(crate) fn run(
        &self,
        program: Workload,
        slots: Slots,
        wake_event: Option<Arc<EventFd>>,
    ) -> Result<Sandbox, MeasureError> {
        self.run_with(program, &Self::settings(program, slots, wake_event))
    }

    /// A packet pool that boxes of this platform can share, if they can.
    pub(crate) fn pool(&self) -> Result<Option<Arc<PacketPool>>, MeasureError> {
        Ok(match self.platform {
            PlatformKind::Vm | PlatformKind::Process => Some(PacketPool::new()?),
            PlatformKind::Thread => None,
        })
    }

    /// Creates and starts a box that runs a program, with these settings.
    pub(crate) fn run_with(&self, program: Workload, settings: &Settings) -> Result<Sandbox, MeasureError> {
        self.install(self.create(settings)?, program)
    }

    /// Performs for warmed-up boxes what a daemon does for busy ones.
    pub(crate) fn collapse_pages<'a>(boxes: impl IntoIterator<Item = &'a Sandbox>) {
        for sandbox in boxes {
            sandbox.control_handle().collapse_pages();
        }
    }

    /// A worker for a single virtual machine, on this core or on that for boxes; `None` for other platforms.
    pub(crate) fn dedicated_worker(&self, core: Option<usize>) -> Result<Option<Worker>, MeasureError> {
        if self.platform != PlatformKind::Vm {
            return Ok(None);
        }
        let worker = Worker::dedicated()?;
        worker.pin(core.or(self.boxes).as_slice());
        Ok(Some(worker))
    }

    /// Creates and starts a box that runs a program, with these settings, on a worker of its own.
    pub(crate) fn run_on_worker(
        &self,
        worker: Option<&Worker>,
        program: Workload,
        settings: &Settings,
    ) -> Result<Sandbox, MeasureError> {
        let sandbox = match worker {
            Some(worker) => self.host.create(Target::Vm(worker), settings)?,
            None => self.create(settings)?,
        };
        self.install(sandbox, program)
    }

    /// Starts a new box and installs its program.
    fn install(&self, mut sandbox: Sandbox, program: Workload) -> Result<Sandbox, MeasureError> {
        self.start(&mut sandbox)?;
        sandbox.install("", &program.configuration(self.box_program), REPLY_TIMEOUT)?;
        Ok(sandbox)
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // If it fails, the thread continues on its current cores.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The cores that this thread may use.
pub(crate) fn allowed_cores() -> Vec<usize> {
    sched_getaffinity(None).as_ref().map(allowed).unwrap_or_default()
}

/// The cores of a set.
fn allowed(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Pins this thread to one core. If that is not permitted, the figures are noisier but still valid.
pub(crate) fn pin(core: Option<&usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(*core);
        let _ = sched_setaffinity(None, &set);
    }
}
