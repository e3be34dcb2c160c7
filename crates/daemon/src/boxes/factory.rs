//! Creates boxes: in virtual machines on shared workers, in virtual machines with a worker of their own, and in
//! processes.

use super::instance::Instance;
use super::pools::{Pools, is_piped};
use crate::error::OperationError;
use crate::fabric::Port;
use crate::processors::{AffinityGuard, Processors};
use api::{CreateBox, MacAddr, Sandbox as Kind};
use boundary::Slots;
use sandbox::{CreateError, EventFd, Host, PortSettings, Sandbox, Settings, Snapshot, Target, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use switch::PIPE_RINGS;
use switch::driver::BoxPort;

/// MTU of a box's port: the longest packet without its Ethernet header.
const MTU: u16 = 1500;

/// Minimum packets per turn, whatever the weight: entering a virtual machine must be worth its cost.
const LEAST_QUANTUM: u32 = 16;

/// A worker and the number of its boxes.
#[derive(Debug)]
pub(super) struct Shared {
    worker: Worker,
    boxes: AtomicUsize,
}

/// A box's place on a shared worker. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct WorkerSlot(Arc<Shared>);

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.0.boxes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates boxes.
#[derive(Debug)]
pub(crate) struct SandboxFactory {
    host: Host,
    workers: Vec<Arc<Shared>>,
    /// The processors, and which of them are reserved.
    cores: Arc<Processors>,
    /// Keep the workers off reserved processors.
    _sharers: Vec<AffinityGuard>,
    /// Packet pools that boxes share.
    pools: Pools,
    /// Rung when a virtual machine ends.
    exit_event: Arc<EventFd>,
}

/// What a running box holds: nothing, a place on a shared worker, its own worker, or its affinity to the unreserved
/// processors.
#[derive(Debug)]
pub(super) enum RunResources {
    Nothing,
    WorkerSlot { _slot: WorkerSlot },
    Worker { _worker: Worker },
    Share(AffinityGuard),
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
        settings: &crate::settings::Settings,
        cores: Arc<Processors>,
        exit_event: Arc<EventFd>,
    ) -> Result<Self, sandbox::HostError> {
        let host = Host::new(settings.image)?;
        let wanted = match (host.has_vms(), settings.workers) {
            (false, _) => 0,
            (true, 0) => cores.count().saturating_sub(1).max(1),
            (true, workers) => workers,
        };
        let start = |_| Ok(Arc::new(Shared { worker: Worker::start()?, boxes: AtomicUsize::new(0) }));
        let workers: Vec<_> = (0..wanted).map(start).collect::<Result<_, sandbox::SystemError>>()?;
        let share = |shared: &Arc<Shared>| {
            let shared = shared.clone();
            cores.subscribe(move |processors| shared.worker.pin(processors))
        };
        let affinity = workers.iter().map(share).collect();
        Ok(Self { host, workers, cores, _sharers: affinity, pools: Pools::default(), exit_event })
    }

    /// Whether virtual machines are available.
    pub(crate) fn has_vms(&self) -> bool {
        self.host.has_vms()
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
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        if self.has_vms() { vec![Kind::Vm, Kind::Process] } else { vec![Kind::Process] }
    }

    /// Resolves `auto` to a sandbox, and checks that the sandbox is available.
    pub(crate) fn resolve(&self, wanted: Kind) -> Result<Kind, OperationError> {
        match wanted {
            Kind::Auto if self.has_vms() => Ok(Kind::Vm),
            Kind::Auto | Kind::Process => Ok(Kind::Process),
            Kind::Vm if self.has_vms() => Ok(Kind::Vm),
            Kind::Vm => Err(OperationError::Create(CreateError::NoKvm)),
        }
    }

    /// Creates a box by its definition, as a copy if there is a snapshot. It rings `bell` when it has packets.
    pub(crate) fn make(
        &self,
        definition: &CreateBox,
        bell: Arc<EventFd>,
        snapshot: Option<&Snapshot>,
    ) -> Result<CreatedBox, OperationError> {
        let slots = u32::from(definition.ring);
        let ring = Slots::new(slots).map_err(CreateError::Ring)?;
        let port = |port: &api::PortRequest| PortSettings {
            slots: ring,
            mac: port.mac.unwrap_or(MacAddr([0; 6])).0,
            mtu: MTU,
        };
        let kind = self.resolve(definition.sandbox)?;
        let settings = Settings {
            ports: definition.ports.iter().map(port).collect(),
            quantum: Share::of(definition).quantum,
            polls: definition.dedicated,
            pool: self.pools.of(definition, kind)?,
            wake_event: Some(bell),
            exit_event: Some(self.exit_event.clone()),
            ..Settings::new(usize::try_from(definition.memory.0).unwrap_or(usize::MAX))
        };
        let core = if definition.dedicated { Some(self.cores.reserve()?) } else { None };
        let (mut sandbox, resources) = match (kind, &core) {
            (Kind::Vm, Some(core)) => {
                let worker = Worker::dedicated().map_err(|error| OperationError::Create(error.into()))?;
                worker.pin(&[core.number()]);
                let sandbox = self.begin(Target::Vm(&worker), settings, snapshot)?;
                (sandbox, RunResources::Worker { _worker: worker })
            }
            (Kind::Vm, None) => {
                let least = self.workers.iter().min_by_key(|shared| shared.boxes.load(Ordering::Relaxed));
                let shared = least.ok_or(CreateError::NoKvm)?;
                shared.boxes.fetch_add(1, Ordering::Relaxed);
                let slot = WorkerSlot(shared.clone());
                let sandbox = self.begin(Target::Vm(&shared.worker), settings, snapshot)?;
                (sandbox, RunResources::WorkerSlot { _slot: slot })
            }
            (Kind::Process | Kind::Auto, Some(_)) => {
                (self.begin(Target::Process, settings, snapshot)?, RunResources::Nothing)
            }
            (Kind::Process | Kind::Auto, None) => {
                let sandbox = self.begin(Target::Process, settings, snapshot)?;
                let remote = sandbox.control_handle();
                let affinity = self.cores.subscribe(move |processors| remote.pin(processors));
                (sandbox, RunResources::Share(affinity))
            }
        };
        let ports = take_ports(&mut sandbox, definition.ports.len());
        Ok(CreatedBox { instance: Instance::new(sandbox, resources, core), ports })
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
    pub(crate) fn make_checker(&self, ports: usize, memory: usize) -> Result<Sandbox, OperationError> {
        let slots = Slots::new(boundary::limits::MIN_SLOTS).map_err(CreateError::Ring)?;
        let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 0], mtu: MTU };
        let settings = Settings { ports: vec![port; ports], ..Settings::new(memory) };
        let sandbox = self.host.create(Target::Process, &settings)?;
        sandbox.start()?;
        Ok(sandbox)
    }
}

/// A box's share of the processor relative to other boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its weight, in hundredths of the default weight.
    pub(crate) weight: u32,
    /// Packets per turn. At the default weight: the size of a ring, or of a pipe's rings if the box is at a pipe. 0
    /// means unlimited, for a box with a reserved processor, which shares its turn with no other box.
    pub(crate) quantum: u32,
    /// The nice value of its process. Each step changes the kernel's share by a factor of 1.25.
    pub(crate) nice: i32,
}

impl Share {
    /// The share that a definition specifies.
    pub(crate) fn of(definition: &CreateBox) -> Self {
        let weight = u32::from(definition.cpu_weight);
        let rings = if is_piped(definition) { PIPE_RINGS } else { 1 };
        let packets = u64::from(u32::from(definition.ring) * rings) * u64::from(weight) / 100;
        let packets = u32::try_from(packets).unwrap_or(u32::MAX).max(LEAST_QUANTUM);
        let steps = (f64::from(weight) / 100.0).ln() / 1.25f64.ln();
        Self {
            weight,
            quantum: if definition.dedicated { 0 } else { packets },
            nice: -(steps.round() as i32).clamp(-19, 20),
        }
    }
}

fn take_ports(sandbox: &mut Sandbox, count: usize) -> Vec<Port> {
    let port = |number| {
        let doorbell = sandbox.doorbell();
        Some(BoxPort::new(sandbox.take_port(number)?, move || doorbell.ring()))
    };
    (0..count).filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::PortRequest;

    #[test]
    fn weights_are_shares() {
        let mut definition = CreateBox::new("fw".parse().unwrap(), "");
        for (ring, weight, quantum, nice) in [
            (256, 100, 256, 0),
            (256, 200, 512, -3),
            (64, 1, 16, 19),
            (2048, 10_000, 204_800, -20),
            (64, 80, 51, 1),
        ] {
            definition.ring = ring.try_into().unwrap();
            definition.cpu_weight = weight.try_into().unwrap();
            assert_eq!(Share::of(&definition), Share { weight, quantum, nice });
        }
        let quantum = |definition: &CreateBox| Share::of(definition).quantum;
        let port = PortRequest { attach: "pipe:p".parse().unwrap(), ..PortRequest::default() };
        definition.ports = vec![port];
        assert_eq!(quantum(&definition), 102, "what the pipe holds");
        definition.dedicated = true;
        assert_eq!(quantum(&definition), 0, "nobody waits for its turn");
    }
}
