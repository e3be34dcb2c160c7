//! The host: creates boxes from images, memory, and a virtual machine or a process.

use crate::cpu;
use crate::error::{CreateError, HostError, SetupError};
use crate::loaded_image::LoadedImage;
use crate::mailbox::Mailbox;
use crate::memory::{Arena, ArenaKind, Mapping};
use crate::process::{self, Forker, Isolation, Program};
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::shared_region::{Backing, HostPort, RegionPlan, SharedRegion};
use crate::snapshot::{SharedState, Snapshot};
use crate::vm::{Hypervisor, KvmDevice, VirtualMachine, Worker};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Reserved address space for memory that is small and touched at once: the first pieces and the shared regions of
/// virtual machines.
const DENSE_SPACE: usize = 64 << 30;

/// Reserved address space for heaps.
const SPARSE_SPACE: usize = 1 << 40;

/// What runs a box.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A virtual machine, run by this worker.
    Vm(&'a Worker),
    /// A process of its own.
    Process,
}

/// What other processes have prepared for a host.
#[derive(Debug, Default)]
pub struct HostSettings {
    /// The device for virtual machines.
    pub kvm: KvmDevice,
    /// Starts the spawner of boxes in processes. Without it, a thread of the host does.
    pub forker: Option<Forker>,
}

/// Creates boxes: of one image, and of others that it has loaded.
pub struct Host {
    hypervisor: Option<Hypervisor>,
    program: Arc<Program>,
    /// The image of boxes whose settings name none.
    image: Arc<LoadedImage>,
    dense: Arc<Arena>,
    sparse: Arc<Arena>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("machines", &self.has_vms()).finish_non_exhaustive()
    }
}

impl Host {
    /// Verifies an image and prepares it to be run many times.
    pub fn new(image: &[u8]) -> Result<Self, HostError> {
        Self::start(image, HostSettings::default())
    }

    /// As [`new`](Self::new), with what other processes have prepared.
    pub fn start(image: &[u8], settings: HostSettings) -> Result<Self, HostError> {
        if let Some(feature) = cpu::missing() {
            return Err(HostError::Processor(feature));
        }
        let hypervisor = Hypervisor::new(settings.kvm)?;
        let image = LoadedImage::new(image, hypervisor.is_some(), false)?;
        // Measured here if KVM did not report it, so that the first box does not wait for it.
        cpu::tsc_hz();
        Ok(Self {
            dense: match hypervisor.is_some() {
                true => Arena::with_hugetlb(DENSE_SPACE)?,
                false => Arena::new(DENSE_SPACE, ArenaKind::Dense)?,
            },
            hypervisor,
            program: Arc::new(Program::new(&image.file, settings.forker)?),
            image: Arc::new(image),
            sparse: Arena::new(SPARSE_SPACE, ArenaKind::Sparse)?,
        })
    }

    /// A host whose boxes in processes may make all system calls, to test what else isolates them.
    #[cfg(test)]
    pub(crate) fn without_filter(image: &[u8]) -> Result<Self, HostError> {
        let mut host = Self::new(image)?;
        host.program = Arc::new(Program::without_filter(&host.image.file)?);
        Ok(host)
    }

    /// Verifies another image and prepares it, for [`Settings::image`]. It may be anything: a box that runs it can do no
    /// more than others.
    pub fn load(&self, image: &[u8]) -> Result<Arc<LoadedImage>, HostError> {
        LoadedImage::new(image, self.has_vms(), true).map(Arc::new)
    }

    /// The image of a box.
    fn image<'a>(&'a self, settings: &'a Settings) -> &'a Arc<LoadedImage> {
        settings.image.as_ref().unwrap_or(&self.image)
    }

    /// Checks the settings of a box.
    fn check(&self, settings: &Settings) -> Result<(), CreateError> {
        settings.check()?;
        let needed = self.image(settings).parsed.least_memory();
        if needed > settings.memory as u64 { Err(CreateError::SmallMemory { needed }) } else { Ok(()) }
    }

    /// Whether virtual machines are available.
    pub fn has_vms(&self) -> bool {
        self.hypervisor.is_some()
    }

    /// What isolates boxes in processes from this host, besides their system call filter. Layers that the host does not
    /// permit are missing. It waits until the spawner has entered them.
    pub fn isolation(&self) -> Result<Isolation, SetupError> {
        self.program.spawner.isolation()
    }

    /// Creates a box. It runs after [`Sandbox::start`].
    pub fn create(&self, target: Target, settings: &Settings) -> Result<Sandbox, CreateError> {
        self.check(settings)?;
        match target {
            Target::Vm(worker) => {
                let (machine, region) = self.make_vm(settings, false)?;
                let (mailbox, ports) = endpoints(&region)?;
                let task = worker.add(machine, &region, settings);
                Ok(Sandbox::new(Arc::new(task), region, mailbox, ports))
            }
            Target::Process => {
                let (file, region) = process_region(settings)?;
                let (mailbox, ports) = endpoints(&region)?;
                let child = process::ProcessBackend::new(
                    &self.program,
                    self.image(settings),
                    &region,
                    file,
                    settings,
                )?;
                Ok(Sandbox::new(Arc::new(child), region, mailbox, ports))
            }
        }
    }

    /// Creates a box that continues from a snapshot, with the same kind of target. Seeds, time, and port addresses are
    /// fresh or come from `settings`; the memory, the ports' slots and everything else are those of the snapshot.
    pub fn restore(
        &self,
        target: Target,
        snapshot: &Snapshot,
        settings: &Settings,
    ) -> Result<Sandbox, CreateError> {
        let settings = snapshot.merge(settings);
        match target {
            Target::Vm(worker) => {
                let (mut machine, region) = self.make_vm(&settings, true)?;
                machine.restore(snapshot, &settings)?;
                let (mailbox, ports) = endpoints_at(&region, &snapshot.shared)?;
                let task = worker.add(machine, &region, &settings);
                Ok(Sandbox::new(Arc::new(task), region, mailbox, ports))
            }
            Target::Process => {
                let (file, region) = process_region(&settings)?;
                let (mailbox, ports) = endpoints_at(&region, &snapshot.shared)?;
                let image = self.image(&settings);
                let child = process::ProcessBackend::restored(
                    &self.program,
                    image,
                    &region,
                    file,
                    &settings,
                    snapshot,
                )?;
                Ok(Sandbox::new(Arc::new(child), region, mailbox, ports))
            }
        }
    }

    /// Creates a virtual machine without a worker: the caller enters it directly.
    pub fn create_vm(
        &self,
        settings: &Settings,
    ) -> Result<(VirtualMachine, Mailbox, Vec<HostPort>), CreateError> {
        self.check(settings)?;
        let (machine, region) = self.make_vm(settings, false)?;
        let (mailbox, ports) = endpoints(&region)?;
        Ok((machine, mailbox, ports))
    }

    fn make_vm(
        &self,
        settings: &Settings,
        is_copy: bool,
    ) -> Result<(VirtualMachine, Arc<SharedRegion>), CreateError> {
        let hypervisor = self.hypervisor.as_ref().ok_or(CreateError::NoKvm)?;
        let machine = VirtualMachine::new(
            hypervisor,
            self.image(settings),
            (settings, is_copy),
            RegionPlan::new(settings, true)?,
            &self.dense,
            &self.sparse,
        )?;
        let region = machine.region.clone();
        Ok((machine, region))
    }
}

/// A shared region that can be passed to a process, and its file.
fn process_region(settings: &Settings) -> Result<(OwnedFd, Arc<SharedRegion>), CreateError> {
    let plan = RegionPlan::new(settings, true)?;
    let file = process::region_file(plan.layout.size)?;
    let mapping = Mapping::shared(&file, plan.layout.size)?;
    Ok((file, SharedRegion::new(mapping.mapped(), plan, Backing::Mapping(mapping))))
}

/// The host's ends of a shared region that continues from a snapshot.
fn endpoints_at(
    region: &Arc<SharedRegion>,
    shared: &SharedState,
) -> Result<(Mailbox, Vec<HostPort>), CreateError> {
    let ports = region.plan.layout.ports.iter().zip(&shared.ports);
    let ports = ports.map(|(port, at)| HostPort::at(&region.memory(), port, *at, region.clone()));
    Ok((Mailbox::at(region.clone(), shared.channels)?, ports.collect::<Result<_, _>>()?))
}

/// The host's ends of the mailbox and the ports of a shared region.
fn endpoints(region: &Arc<SharedRegion>) -> Result<(Mailbox, Vec<HostPort>), CreateError> {
    Ok((Mailbox::new(region.clone())?, region.ports()?))
}
