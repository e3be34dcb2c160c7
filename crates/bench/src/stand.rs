//! Where boxes are made to be measured.

use crate::error::Error;
use crate::program::{Inside, Program};
use boundary::Slots;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sandbox::thread::Entry;
use sandbox::{Bell, Host, PacketPool, Place, PortSettings, Sandbox, Settings, Worker};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How long a box may take to answer before it counts as broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Private memory of a box, of which only what it touches is taken.
const MEMORY: usize = 8 << 20;

/// What carries the boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Virtual machines.
    Vm,
    /// Sandboxed processes.
    Process,
    /// Threads of this process: nothing confines them.
    None,
}

/// A host for boxes of one kind, with a core for them and another for what feeds them. Whoever makes it
/// stays on that other core for as long as it lives.
#[derive(Debug)]
pub struct Stand {
    // Machines go before the worker that runs them: fields are dropped in order.
    worker: Option<Worker>,
    host: Host,
    kind: Kind,
    inside: Inside,
    /// What boxes in threads run.
    entry: Option<Entry>,
    before: Option<CpuSet>,
    /// The core for boxes.
    boxes: Option<usize>,
}

impl Stand {
    /// A stand for boxes of a kind. `entry` is what boxes in threads run; it is the caller's to link.
    pub fn new(kind: Kind, inside: Inside, entry: Option<Entry>) -> Result<Self, Error> {
        let before = sched_getaffinity(None).ok();
        let cores = before.as_ref().map(allowed).unwrap_or_default();
        // Threads stay on the core on which they are made, and processes on that of the thread that makes
        // them.
        pin(cores.last());
        let host = Host::new(inside.image())?;
        let worker = match kind {
            Kind::Vm if !host.has_machines() => return Err(Error::NoKvm),
            Kind::Vm => Some(Worker::start()?),
            Kind::None if entry.is_none() || inside != Inside::Click => return Err(Error::NoEntry),
            Kind::Process | Kind::None => None,
        };
        pin(cores.first());
        Ok(Self { worker, host, kind, inside, entry, before, boxes: cores.last().copied() })
    }

    /// What carries its boxes.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What runs in its boxes.
    pub fn inside(&self) -> Inside {
        self.inside
    }

    pub(crate) fn place(&self) -> Place<'_> {
        match (&self.worker, self.entry) {
            (Some(worker), _) => Place::Machine(worker),
            (None, Some(entry)) if self.kind == Kind::None => Place::Thread(entry),
            _ => Place::Process,
        }
    }

    /// Lets a box begin, on the core for boxes.
    pub(crate) fn start(&self, sandbox: &mut Sandbox) -> Result<(), Error> {
        if self.kind == Kind::None {
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

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// What a box is made of that runs a program, with so many slots to a ring.
    pub(crate) fn settings(program: Program, slots: Slots, bell: Option<Arc<Bell>>) -> Settings {
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
        program: Program,
        slots: Slots,
        bell: Option<Arc<Bell>>,
    ) -> Result<Sandbox, Error> {
        self.run_with(program, &Self::settings(program, slots, bell))
    }

    /// A packet pool for boxes of this kind to share, where they can.
    pub(crate) fn pool(&self) -> Result<Option<Arc<PacketPool>>, Error> {
        Ok(match self.kind {
            Kind::Vm => Some(PacketPool::for_machines()?),
            Kind::Process => Some(PacketPool::for_processes()?),
            Kind::None => None,
        })
    }

    /// A box that runs a program, of these settings.
    pub(crate) fn run_with(&self, program: Program, settings: &Settings) -> Result<Sandbox, Error> {
        self.run_at(self.place(), program, settings)
    }

    /// Does for boxes that have warmed up what a daemon does for busy ones.
    pub(crate) fn settle<'a>(boxes: impl IntoIterator<Item = &'a Sandbox>) {
        for sandbox in boxes {
            sandbox.remote().gather_pages();
        }
    }

    /// A worker for a single machine, on the core for boxes. Nothing where boxes are no machines.
    pub(crate) fn worker_alone(&self) -> Result<Option<Worker>, Error> {
        if self.kind != Kind::Vm {
            return Ok(None);
        }
        let worker = Worker::alone()?;
        worker.keep(self.boxes.as_slice());
        Ok(Some(worker))
    }

    /// A box that runs a program, of these settings, in the care of another worker than all others.
    pub(crate) fn run_alone(
        &self,
        worker: Option<&Worker>,
        program: Program,
        settings: &Settings,
    ) -> Result<Sandbox, Error> {
        self.run_at(worker.map_or_else(|| self.place(), Place::Machine), program, settings)
    }

    fn run_at(&self, place: Place, program: Program, settings: &Settings) -> Result<Sandbox, Error> {
        let mut sandbox = self.host.create(place, settings)?;
        self.start(&mut sandbox)?;
        sandbox.install("", &program.configuration(self.inside), PATIENCE)?;
        Ok(sandbox)
    }
}

impl Drop for Stand {
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
