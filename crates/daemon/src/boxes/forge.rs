//! Makes boxes: in machines of shared workers, in machines of their own, in processes.

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

/// Longest packet of a box's port without its Ethernet header.
const MTU: u16 = 1500;

/// Fewest packets of a turn, whatever the weight: an entry into a machine must be worth it.
const LEAST_QUANTUM: u32 = 16;

/// A worker, and how many boxes it has.
#[derive(Debug)]
pub(super) struct Shared {
    worker: Worker,
    boxes: AtomicUsize,
}

/// A box's place at a shared worker; dropped, it is free.
#[derive(Debug)]
pub(super) struct Seat(Arc<Shared>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.boxes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What makes boxes.
#[derive(Debug)]
pub(crate) struct Forge {
    host: Host,
    workers: Vec<Arc<Shared>>,
    /// Processors, and who has one for itself.
    cores: Arc<Processors>,
    /// The workers, as those who leave such processors.
    _sharers: Vec<AffinityGuard>,
    /// Packet pools that boxes share.
    pools: Pools,
    /// What the ends of machines ring.
    end_bell: Arc<EventFd>,
}

/// What a running box keeps: nothing, a place at a worker, a worker, or its part of the processors that nobody has for
/// itself.
#[derive(Debug)]
pub(super) enum Keeps {
    Nothing,
    Seat { _seat: Seat },
    Worker { _worker: Worker },
    Share(AffinityGuard),
}

/// A box that was made and not started, with its ports.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) instance: Instance,
    pub(crate) ports: Vec<Port>,
}

impl Forge {
    /// Checks the image and starts so many workers.
    pub(crate) fn new(
        settings: &crate::settings::Settings,
        cores: Arc<Processors>,
        end_bell: Arc<EventFd>,
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
        Ok(Self { host, workers, cores, _sharers: affinity, pools: Pools::default(), end_bell })
    }

    /// Whether virtual machines can be had.
    pub(crate) fn has_vms(&self) -> bool {
        self.host.has_vms()
    }

    /// Workers among which boxes are divided.
    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Processors.
    pub(crate) fn cores(&self) -> usize {
        self.cores.count()
    }

    /// What boxes can run in; the first is what they do if nothing is said.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        if self.has_vms() { vec![Kind::Vm, Kind::Process] } else { vec![Kind::Process] }
    }

    /// What a box is to run in, when it may be anything.
    pub(crate) fn resolve(&self, wanted: Kind) -> Result<Kind, OperationError> {
        match wanted {
            Kind::Auto if self.has_vms() => Ok(Kind::Vm),
            Kind::Auto | Kind::Process => Ok(Kind::Process),
            Kind::Vm if self.has_vms() => Ok(Kind::Vm),
            Kind::Vm => Err(OperationError::Create(CreateError::NoKvm)),
        }
    }

    /// Makes a box by its definition, as a copy if there is a snapshot. It rings `bell` when it has packets.
    pub(crate) fn make(
        &self,
        definition: &CreateBox,
        bell: Arc<EventFd>,
        snapshot: Option<&Snapshot>,
    ) -> Result<Made, OperationError> {
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
            bell: Some(bell),
            end_bell: Some(self.end_bell.clone()),
            ..Settings::new(usize::try_from(definition.memory.0).unwrap_or(usize::MAX))
        };
        let core = if definition.dedicated { Some(self.cores.reserve()?) } else { None };
        let (mut sandbox, keeps) = match (kind, &core) {
            (Kind::Vm, Some(core)) => {
                let worker = Worker::dedicated().map_err(|error| OperationError::Create(error.into()))?;
                worker.pin(&[core.number()]);
                let sandbox = self.begin(Target::Vm(&worker), settings, snapshot)?;
                (sandbox, Keeps::Worker { _worker: worker })
            }
            (Kind::Vm, None) => {
                let least = self.workers.iter().min_by_key(|shared| shared.boxes.load(Ordering::Relaxed));
                let shared = least.ok_or(CreateError::NoKvm)?;
                shared.boxes.fetch_add(1, Ordering::Relaxed);
                let seat = Seat(shared.clone());
                let sandbox = self.begin(Target::Vm(&shared.worker), settings, snapshot)?;
                (sandbox, Keeps::Seat { _seat: seat })
            }
            (Kind::Process | Kind::Auto, Some(_)) => {
                (self.begin(Target::Process, settings, snapshot)?, Keeps::Nothing)
            }
            (Kind::Process | Kind::Auto, None) => {
                let sandbox = self.begin(Target::Process, settings, snapshot)?;
                let remote = sandbox.control_handle();
                let affinity = self.cores.subscribe(move |processors| remote.pin(processors));
                (sandbox, Keeps::Share(affinity))
            }
        };
        let ports = take_ports(&mut sandbox, definition.ports.len());
        Ok(Made { instance: Instance::new(sandbox, keeps, core), ports })
    }

    /// Makes a box, or copies one; with buffers of its own when no more fit into the pool that it was to share.
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

    /// Makes and starts a box that is used to check a configuration, and thrown away.
    pub(crate) fn make_checker(&self, ports: usize, memory: usize) -> Result<Sandbox, OperationError> {
        let slots = Slots::new(boundary::limits::MIN_SLOTS).map_err(CreateError::Ring)?;
        let port = PortSettings { slots, mac: [2, 0, 0, 0, 0, 0], mtu: MTU };
        let settings = Settings { ports: vec![port; ports], ..Settings::new(memory) };
        let mut sandbox = self.host.create(Target::Process, &settings)?;
        sandbox.start()?;
        Ok(sandbox)
    }
}

/// A box's share beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its weight, in hundredths of the usual one.
    pub(crate) weight: u32,
    /// Packets of one turn: for a box of usual weight a ring, at a pipe what that holds. 0, without end: the box has a
    /// processor for itself, and nobody to give its turn to.
    pub(crate) quantum: u32,
    /// How nice its process is: with each step the kernel gives it a fifth less.
    pub(crate) nice: i32,
}

impl Share {
    /// The share that a definition says.
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
