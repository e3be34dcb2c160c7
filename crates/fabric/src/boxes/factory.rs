//! Creates boxes: in virtual machines on shared workers, in virtual machines with a worker of their own, and in
//! processes.

use super::images::Images;
use super::instance::Instance;
use super::pools::Pools;
use super::resources::{RunResources, SharedWorker};
use super::sandbox_kind;
use super::share::Share;
use super::spares::Spares;
use crate::error::OperationError;
use crate::network::Port;
use crate::processors::{AffinityGuard, Processors, ReservedProcessor};
use boundary::Slots;
use model::{CreateBox, ImageDigest, ImageSource, Owner};
use sandbox::{
    CreateError, EventFd, Host, HostSettings, Layer, LoadedImage, PacketPool, PortSettings, Sandbox,
    SandboxKind, Settings, Snapshot, Target, Worker,
};
use std::sync::Arc;
use std::time::Duration;
use switch::driver::BoxPort;

/// MTU of a box's port: the longest packet without its Ethernet header.
const MTU: u16 = 1500;

/// Creates boxes.
#[derive(Debug)]
pub(crate) struct SandboxFactory {
    /// Declared before what runs them.
    pub(crate) spares: Spares<CreatedBox>,
    host: Host,
    workers: Vec<Arc<SharedWorker>>,
    /// The processors, and which of them are reserved.
    cores: Arc<Processors>,
    /// Keep the workers off reserved processors.
    _sharers: Vec<AffinityGuard>,
    /// Packet pools that boxes share.
    pools: Pools,
    /// Images that users gave.
    images: Images,
    /// Rung when a virtual machine ends.
    exit_event: Arc<EventFd>,
    /// Threads that switch packets: a box has a ring pair for each of them.
    switch_threads: usize,
}

/// A box that was created but not started, with its ports.
#[derive(Debug)]
pub(crate) struct CreatedBox {
    pub(crate) instance: Instance,
    pub(crate) ports: Vec<Port>,
}

impl SandboxFactory {
    /// Verifies the image and starts the workers.
    pub(crate) fn new(
        settings: &crate::Settings,
        host: HostSettings,
        cores: Arc<Processors>,
        exit_event: Arc<EventFd>,
    ) -> Result<Self, sandbox::HostError> {
        let host = Host::start(settings.image, host)?;
        let wanted = match (host.has_vms(), settings.workers) {
            (false, _) => 0,
            (true, 0) => cores.count().saturating_sub(settings.switch_threads).max(1),
            (true, workers) => workers,
        };
        let start = |_| SharedWorker::start(settings.shares_processors);
        let workers: Vec<_> = (0..wanted).map(start).collect::<Result<_, _>>()?;
        let share = |shared: &Arc<SharedWorker>| {
            let shared = shared.clone();
            cores.subscribe(move |processors| shared.worker.pin(processors))
        };
        let affinity = workers.iter().map(share).collect();
        Ok(Self {
            spares: Spares::default(),
            host,
            workers,
            cores,
            _sharers: affinity,
            pools: Pools::default(),
            images: Images::default(),
            exit_event,
            switch_threads: settings.switch_threads,
        })
    }

    /// Whether virtual machines are available.
    pub(crate) fn has_vms(&self) -> bool {
        self.host.has_vms()
    }

    /// What isolates boxes in processes. It waits until their spawner has started.
    pub(crate) fn isolation(&self) -> model::Isolation {
        let missing = |layer: Layer, reason: String| model::MissingLayer { layer: layer.to_string(), reason };
        match self.host.isolation() {
            Ok(isolation) => model::Isolation {
                layers: Layer::ALL
                    .iter()
                    .filter(|layer| isolation.holds(**layer))
                    .map(ToString::to_string)
                    .collect(),
                missing: isolation
                    .missing()
                    .iter()
                    .map(|found| missing(found.layer, found.reason()))
                    .collect(),
            },
            // No process can be created now.
            Err(error) => model::Isolation {
                layers: Vec::new(),
                missing: Layer::ALL.iter().map(|layer| missing(*layer, error.to_string())).collect(),
            },
        }
    }

    /// The number of shared workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The number of processors.
    pub(crate) fn cores(&self) -> usize {
        self.cores.count()
    }

    /// The available sandboxes. The first is the default.
    pub(crate) fn kinds(&self) -> Vec<SandboxKind> {
        if self.has_vms() { vec![SandboxKind::Vm, SandboxKind::Process] } else { vec![SandboxKind::Process] }
    }

    /// Resolves `auto` to a sandbox, and checks that the sandbox is available.
    pub(crate) fn resolve(&self, wanted: model::Sandbox) -> Result<SandboxKind, CreateError> {
        sandbox_kind::resolve(wanted, self.has_vms())
    }

    /// Loads an image for boxes that name its digest.
    pub(crate) fn load_image(&self, digest: ImageDigest, file: &[u8]) -> Result<(), OperationError> {
        self.images.load(digest, || self.host.load(file))
    }

    /// Returns an error unless an image is loaded.
    pub(crate) fn check_image(&self, digest: &ImageDigest) -> Result<(), OperationError> {
        self.images.get(digest).map(drop)
    }

    /// Forgets an image. Boxes that run it go on, but can't be started again.
    pub(crate) fn forget_image(&self, digest: &ImageDigest) {
        self.images.forget(digest);
    }

    /// The digests of the images that users gave.
    pub(crate) fn images(&self) -> Vec<ImageDigest> {
        self.images.digests()
    }

    /// The image of a box; `None`: the built-in one.
    pub(crate) fn image(&self, definition: &CreateBox) -> Result<Option<Arc<LoadedImage>>, OperationError> {
        match &definition.image {
            None => Ok(None),
            Some(ImageSource::Digest(digest)) => self.images.get(digest).map(Some),
            Some(ImageSource::Upload(_)) => Err(OperationError::UnresolvedImage),
        }
    }

    /// The packet pool of an owner.
    pub(crate) fn pool(&self, owner: &Owner) -> Result<Arc<PacketPool>, CreateError> {
        self.pools.of_owner(owner)
    }

    /// Creates a box by its definition, with a sandbox for each of its cores. The ring pairs are in the order of ports, switch
    /// threads and cores. The box is a copy if there is a snapshot. It signals `wake_event` when it has packets.
    pub(crate) fn make(
        &self,
        definition: &CreateBox,
        wake_event: Arc<EventFd>,
        snapshot: Option<&Snapshot>,
    ) -> Result<CreatedBox, OperationError> {
        self.with_room(|| self.try_make(definition, wake_event.clone(), snapshot))
    }

    /// Starts a box.
    pub(crate) fn start(&self, instance: &Instance) -> Result<(), CreateError> {
        self.with_room(|| instance.start())
    }

    /// Tries something again without spares if it fails: they may have what it lacks.
    fn with_room<T, E>(&self, attempt: impl Fn() -> Result<T, E>) -> Result<T, E> {
        attempt().or_else(|error| if self.spares.give_up(Duration::ZERO) { attempt() } else { Err(error) })
    }

    fn try_make(
        &self,
        definition: &CreateBox,
        wake_event: Arc<EventFd>,
        snapshot: Option<&Snapshot>,
    ) -> Result<CreatedBox, OperationError> {
        let slots = u32::from(definition.ring);
        let ring = Slots::new(slots).map_err(CreateError::Ring)?;
        let port = |port: &model::PortRequest| PortSettings {
            slots: ring,
            mac: port.mac.unwrap_or_default().octets(),
            mtu: MTU,
        };
        let kind = self.resolve(definition.sandbox)?;
        let settings = Settings {
            image: self.image(definition)?,
            ports: definition.ports.iter().map(port).collect(),
            pairs: self.switch_threads,
            quantum: Share::of(definition).quantum,
            polls: definition.dedicated,
            pool: self.pools.of(definition)?,
            wake_event: Some(wake_event),
            exit_event: Some(self.exit_event.clone()),
            ..Settings::new(usize::try_from(definition.memory.0).unwrap_or(usize::MAX))
        };
        let make_core = |settings| self.make_core(definition, kind, settings, snapshot);
        let count = definition.cores.number();
        let mut made = (1..count).map(|_| make_core(settings.clone())).collect::<Result<Vec<_>, _>>()?;
        made.push(make_core(settings)?);
        let mut of_cores: Vec<_> =
            made.iter_mut().map(|(sandbox, ..)| ports_of(sandbox).into_iter()).collect();
        let pairs = definition.ports.len() * self.switch_threads;
        let ports =
            (0..pairs).flat_map(|_| of_cores.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
        let ports = ports.collect();
        Ok(CreatedBox { instance: Instance::new(made), ports })
    }

    /// Creates the sandbox of a core of a box.
    fn make_core(
        &self,
        definition: &CreateBox,
        kind: SandboxKind,
        settings: Settings,
        snapshot: Option<&Snapshot>,
    ) -> Result<(Sandbox, RunResources, Option<ReservedProcessor>), OperationError> {
        let core = if definition.dedicated { Some(self.cores.reserve()?) } else { None };
        let (sandbox, resources) = match (kind, &core) {
            (SandboxKind::Vm, Some(core)) => {
                let worker = Worker::dedicated().map_err(|error| OperationError::Create(error.into()))?;
                worker.pin(&[core.number()]);
                let sandbox = self.begin(Target::Vm(&worker), settings, snapshot)?;
                (sandbox, RunResources::Worker { _worker: worker })
            }
            (SandboxKind::Vm, None) => {
                let least = self.workers.iter().min_by_key(|shared| shared.boxes());
                let shared = least.ok_or(CreateError::NoKvm)?;
                let slot = shared.take_slot();
                let sandbox = self.begin(Target::Vm(&shared.worker), settings, snapshot)?;
                (sandbox, RunResources::WorkerSlot { _slot: slot })
            }
            (SandboxKind::Process, Some(_)) => {
                (self.begin(Target::Process, settings, snapshot)?, RunResources::Nothing)
            }
            (SandboxKind::Process, None) => {
                let sandbox = self.begin(Target::Process, settings, snapshot)?;
                let remote = sandbox.control_handle();
                let affinity = self.cores.subscribe(move |processors| remote.pin(processors));
                (sandbox, RunResources::Affinity(affinity))
            }
        };
        Ok((sandbox, resources, core))
    }

    /// Creates a box or restores a snapshot. If the shared pool has no more room, the box gets buffers of its own.
    fn begin(
        &self,
        target: Target,
        settings: Settings,
        snapshot: Option<&Snapshot>,
    ) -> Result<Sandbox, CreateError> {
        if let Some(snapshot) = snapshot {
            return self.host.restore(target, snapshot, &settings);
        }
        match self.host.create(target, &settings) {
            Err(CreateError::PoolFull) => self.host.create(target, &Settings { pool: None, ..settings }),
            made => made,
        }
    }

    /// Creates and starts a box that checks one configuration and is then discarded.
    pub(crate) fn make_checker(
        &self,
        ports: usize,
        memory: usize,
        image: Option<&ImageDigest>,
    ) -> Result<Sandbox, OperationError> {
        let slots = Slots::new(boundary::limits::MIN_SLOTS).map_err(CreateError::Ring)?;
        let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 0], mtu: MTU };
        let image = image.map(|digest| self.images.get(digest)).transpose()?;
        let settings = Settings { image, ports: vec![port; ports], ..Settings::new(memory) };
        Ok(self.with_room(|| {
            let sandbox = self.host.create(Target::Process, &settings)?;
            sandbox.start().map(|()| sandbox)
        })?)
    }
}

/// The ring pairs of a sandbox, in order.
fn ports_of(sandbox: &mut Sandbox) -> Vec<Port> {
    let port = |number| {
        let doorbell = sandbox.doorbell();
        Some(BoxPort::new(sandbox.take_port(number)?, move || doorbell.ring()))
    };
    (0..).map_while(port).collect()
}
