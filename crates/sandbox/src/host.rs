//! What makes boxes: an image, memory, and what carries them.

use crate::area::{Area, Backing, Plan};
use crate::control::Control;
use crate::cpu;
use crate::error::{CreateError, HostError};
use crate::image::Image;
use crate::memory::{Arena, Mapping, Use};
use crate::process::{self, Program};
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::snapshot::{Shared, Snapshot};
use crate::thread::{self, Entry, Threaded};
use crate::vm::{Hypervisor, Machine, Worker};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Addresses set aside for what is small and touched at once: a box's first pieces and its area.
const DENSE_SPACE: usize = 64 << 30;

/// Addresses set aside for heaps.
const SPARSE_SPACE: usize = 1 << 40;

/// The host's end of a box's port. It keeps the box's shared memory, not the box.
pub type HostPort = boundary::HostPort<Arc<Area>>;

/// Where a box is to run.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In a virtual machine, in this worker's care.
    Machine(&'a Worker),
    /// In a process of its own.
    Process,
    /// In a thread of this process that runs this program instead of the image: for development, as nothing confines
    /// it.
    Thread(Entry),
}

/// What makes boxes of one image.
pub struct Host {
    hypervisor: Option<Arc<Hypervisor>>,
    program: Arc<Program>,
    dense: Arc<Arena>,
    sparse: Arc<Arena>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("machines", &self.has_machines()).finish_non_exhaustive()
    }
}

impl Host {
    /// Checks an image and makes it ready to be run many times.
    pub fn new(image: &[u8]) -> Result<Self, HostError> {
        if let Some(feature) = cpu::missing() {
            return Err(HostError::Processor(feature));
        }
        let image = Arc::new(Image::parse(image)?);
        // Measured here once, not when the first box is waited for.
        cpu::tsc_hz();
        let hypervisor = Hypervisor::open(&image)?.map(Arc::new);
        Ok(Self {
            dense: match hypervisor.is_some() {
                true => Arena::with_set_aside(DENSE_SPACE)?,
                false => Arena::new(DENSE_SPACE, Use::Dense)?,
            },
            hypervisor,
            program: Arc::new(Program::new(&image)?),
            sparse: Arena::new(SPARSE_SPACE, Use::Sparse)?,
        })
    }

    /// Whether virtual machines can be had here.
    pub fn has_machines(&self) -> bool {
        self.hypervisor.is_some()
    }

    /// Makes a box. It doesn't run before [`Sandbox::start`].
    pub fn create(&self, place: Place, settings: &Settings) -> Result<Sandbox, CreateError> {
        settings.check()?;
        match place {
            Place::Machine(worker) => {
                let (machine, area) = self.make_machine(settings)?;
                let (control, ports) = ends(&area)?;
                let seat = worker.seat(machine, &area, settings);
                Ok(Sandbox::new(Arc::new(seat), area, control, ports))
            }
            Place::Process => {
                let (file, area) = process_area(settings)?;
                let (control, ports) = ends(&area)?;
                let child = process::Child::new(&self.program, &area, file, settings)?;
                Ok(Sandbox::new(Arc::new(child), area, control, ports))
            }
            Place::Thread(entry) => {
                let area = thread::area(Plan::new(settings, false)?)?;
                let (control, ports) = ends(&area)?;
                let threaded = Threaded::new(entry, &area, settings)?;
                Ok(Sandbox::new(Arc::new(threaded), area, control, ports))
            }
        }
    }

    /// Makes a box that goes on where a snapshot was taken, in the same kind of place. It gets fresh
    /// seeds, the time, and the addresses of its ports from `settings`; memory, ports' slots and the rest
    /// are as in the box that the snapshot was taken of.
    pub fn restore(
        &self,
        place: Place,
        snapshot: &Snapshot,
        settings: &Settings,
    ) -> Result<Sandbox, CreateError> {
        let settings = snapshot.merge(settings);
        match place {
            Place::Machine(worker) => {
                let (mut machine, area) = self.make_machine(&settings)?;
                machine.restore(snapshot, &settings)?;
                let (control, ports) = ends_at(&area, &snapshot.shared)?;
                let seat = worker.seat(machine, &area, &settings);
                Ok(Sandbox::new(Arc::new(seat), area, control, ports))
            }
            Place::Process => {
                let (file, area) = process_area(&settings)?;
                let (control, ports) = ends_at(&area, &snapshot.shared)?;
                let child = process::Child::restored(&self.program, &area, file, &settings, snapshot)?;
                Ok(Sandbox::new(Arc::new(child), area, control, ports))
            }
            Place::Thread(_) => Err(CreateError::OtherPlace),
        }
    }

    /// Makes a machine without a worker: the caller enters it when it likes.
    pub fn create_machine(
        &self,
        settings: &Settings,
    ) -> Result<(Machine, Control, Vec<HostPort>), CreateError> {
        settings.check()?;
        let (machine, area) = self.make_machine(settings)?;
        let (control, ports) = ends(&area)?;
        Ok((machine, control, ports))
    }

    fn make_machine(&self, settings: &Settings) -> Result<(Machine, Arc<Area>), CreateError> {
        let hypervisor = self.hypervisor.as_ref().ok_or(CreateError::NoKvm)?;
        let machine =
            Machine::new(hypervisor, settings, Plan::new(settings, true)?, &self.dense, &self.sparse)?;
        let area = machine.area.clone();
        Ok((machine, area))
    }
}

/// An area that can be shared with a process, and its file.
fn process_area(settings: &Settings) -> Result<(OwnedFd, Arc<Area>), CreateError> {
    let plan = Plan::new(settings, true)?;
    if plan.membership.as_ref().is_some_and(|membership| membership.file().is_none()) {
        return Err(CreateError::PoolPlace);
    }
    let file = process::area_file(plan.layout.size)?;
    let mapping = Mapping::shared(&file, plan.layout.size)?;
    Ok((file, Area::new(mapping.mapped(), plan, Backing::Mapping(mapping))))
}

/// The host's ends of an area that goes on where another stood.
fn ends_at(area: &Arc<Area>, shared: &Shared) -> Result<(Control, Vec<HostPort>), CreateError> {
    let ports = area.plan.layout.ports.iter().zip(&shared.ports);
    let ports = ports.map(|(port, at)| HostPort::at(&area.memory(), port, *at, area.clone()));
    Ok((Control::at(area.clone(), shared.channels)?, ports.collect::<Result<_, _>>()?))
}

/// The host's ends of an area's mailbox and ports.
fn ends(area: &Arc<Area>) -> Result<(Control, Vec<HostPort>), CreateError> {
    Ok((Control::new(area.clone())?, area.ports()?))
}
