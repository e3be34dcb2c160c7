//! A test bed: the host, the worker and the cores that boxes are measured with.

use crate::boxes::workload::{BoxProgram, Workload};
use crate::error::MeasureError;
use boundary::Slots;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sandbox::thread::{self, Entry};
use sandbox::{EventFd, Host, PacketPool, PortSettings, Sandbox, Settings, Target, Worker};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How long a box may take to answer before it counts as broken.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Private memory of a box, of which only what it touches is taken.
const MEMORY: usize = 8 << 20;

/// The kind of sandbox that boxes run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Virtual machines.
    Vm,
    /// Sandboxed processes.
    Process,
    /// Threads of this process, without isolation.
    Thread,
}

/// A host for boxes of one backend, with a core for them and another core for the code that feeds them. The thread that
/// makes it is pinned to that other core until it is dropped.
#[derive(Debug)]
pub struct TestBed {
    // Machines go before the worker that runs them: fields are dropped in order.
    worker: Option<Worker>,
    host: Host,
    backend: Backend,
    box_program: BoxProgram,
    /// The function that boxes in threads run.
    entry: Option<Entry>,
    before: Option<CpuSet>,
    /// The core for boxes.
    boxes: Option<usize>,
}

impl TestBed {
    /// A test bed for boxes of a backend. `entry` is the function that boxes in threads run; the caller links it.
    pub fn new(
        backend: Backend,
        box_program: BoxProgram,
        entry: Option<Entry>,
    ) -> Result<Self, MeasureError> {
        let before = sched_getaffinity(None).ok();
        let cores = before.as_ref().map(allowed).unwrap_or_default();
        // Threads stay on the core on which they are made, and processes on that of the thread that makes
        // them.
        pin(cores.last());
        let host = Host::new(box_program.image())?;
        let worker = match backend {
            Backend::Vm if !host.has_vms() => return Err(MeasureError::NoKvm),
            Backend::Vm => Some(Worker::start()?),
            Backend::Thread if entry.is_none() || box_program != BoxProgram::Click => {
                return Err(MeasureError::NoEntry);
            }
            Backend::Process | Backend::Thread => None,
        };
        pin(cores.first());
        Ok(Self { worker, host, backend, box_program, entry, before, boxes: cores.last().copied() })
    }

    /// The backend of its boxes.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// What runs in its boxes.
    pub fn box_program(&self) -> BoxProgram {
        self.box_program
    }

    /// What the host is to run a box in. Thread boxes have no target: see [`create`](Self::create).
    pub(crate) fn target(&self) -> Target<'_> {
        self.worker.as_ref().map_or(Target::Process, Target::Vm)
    }

    /// Makes a box without starting it.
    pub(crate) fn create(&self, settings: &Settings) -> Result<Sandbox, MeasureError> {
        Ok(match self.entry {
            Some(entry) if self.backend == Backend::Thread => thread::create(entry, settings)?,
            _ => self.host.create(self.target(), settings)?,
        })
    }

    /// Lets a box begin, on the core for boxes.
    pub(crate) fn start(&self, sandbox: &mut Sandbox) -> Result<(), MeasureError> {
        if self.backend == Backend::Thread {
            // A thread stays on the core on which it is made.
            let here = sched_getaffinity(None).ok();
            pin(self.boxes.as_ref());
            let started = sandbox.start();
            if let Some(here) = here {
                // A thread that can't have its core back goes on with those that it has.
                let _ = sched_setaffinity(None, &here);
            }
            return Ok(started?);
        }
        Ok(sandbox.start()?)
    }

    /// Does something on all cores that this thread had before: what it starts inherits them.
    pub(crate) fn on_all_cores<T>(&self, action: impl FnOnce() -> T) -> T {
        let here = sched_getaffinity(None).ok();
        if let Some(before) = &self.before {
            // A thread that can't have its cores back goes on with those that it has.
            let _ = sched_setaffinity(None, before);
        }
        let result = action();
        if let Some(here) = here {
            let _ = sched_setaffinity(None, &here);
        }
        result
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// What a box is made of that runs a program, with so many slots to a ring.
    pub(crate) fn settings(program: Workload, slots: Slots, bell: Option<Arc<EventFd>>) -> Settings {
        let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
        let ports = vec![port; program.ports()];
        Settings { ports, quantum: slots.count(), bell, ..Settings::new(MEMORY) }
    }

    /// A box without ports, with room for large tables.
    pub(crate) fn roomy() -> Settings {
        Settings::new(4 * MEMORY)
    }

    /// A box that runs a program.
    pub(crate) fn run(
        &self,
        program: Workload,
        slots: Slots,
        bell: Option<Arc<EventFd>>,
    ) -> Result<Sandbox, MeasureError> {
        self.run_with(program, &Self::settings(program, slots, bell))
    }

    /// A packet pool for boxes of this kind to share, where they can.
    pub(crate) fn pool(&self) -> Result<Option<Arc<PacketPool>>, MeasureError> {
        Ok(match self.backend {
            Backend::Vm => Some(PacketPool::for_machines()?),
            Backend::Process => Some(PacketPool::for_processes()?),
            Backend::Thread => None,
        })
    }

    /// A box that runs a program, of these settings.
    pub(crate) fn run_with(&self, program: Workload, settings: &Settings) -> Result<Sandbox, MeasureError> {
        self.install(self.create(settings)?, program)
    }

    /// Does for boxes that have warmed up what a daemon does for busy ones.
    pub(crate) fn settle<'a>(boxes: impl IntoIterator<Item = &'a Sandbox>) {
        for sandbox in boxes {
            sandbox.control_handle().collapse_pages();
        }
    }

    /// A worker for a single machine, on the core for boxes. Nothing where boxes are no machines.
    pub(crate) fn worker_alone(&self) -> Result<Option<Worker>, MeasureError> {
        if self.backend != Backend::Vm {
            return Ok(None);
        }
        let worker = Worker::dedicated()?;
        worker.pin(self.boxes.as_slice());
        Ok(Some(worker))
    }

    /// A box that runs a program, of these settings, in the care of another worker than all others.
    pub(crate) fn run_alone(
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
            // A thread that can't have its cores back goes on with those that it has.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The cores that a thread may run on.
fn allowed(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Keeps this thread on one core. Where that is forbidden the figures are noisier, and still true.
fn pin(core: Option<&usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(*core);
        let _ = sched_setaffinity(None, &set);
    }
}
