//! The region that a box and its host share, on the host's side.

use crate::cpu;
use crate::error::{CreateError, SystemError};
use crate::memory::{self, Mapping, Part};
use crate::pool::{Membership, POOL_SIZE};
use crate::settings::Settings;
use crate::snapshot::{SharedState, SnapshotError};
use boundary::{
    BootInfo, CrashPage, Mapped, MemoryKind, MemoryRegion, PlatformKind, PortInfo, RegionLayout, StatusPage,
    control, indices,
};
use std::sync::Arc;

/// The host's end of a box's port. It keeps the box's shared memory alive, not the box.
pub type HostPort = boundary::HostPort<Arc<SharedRegion>>;

/// The owner of a region's memory.
#[derive(Debug)]
pub(crate) enum Backing {
    Part(Part),
    Mapping(Mapping),
}

/// A shared region. Every user of a part of it holds the region.
#[derive(Debug)]
pub struct SharedRegion {
    memory: Mapped,
    pub(crate) plan: RegionPlan,
    backing: Backing,
}

/// The layout of a region, without its memory.
#[derive(Debug)]
pub(crate) struct RegionPlan {
    pub(crate) layout: RegionLayout,
    /// The membership in the shared pool that holds the buffers, if there is one.
    pub(crate) membership: Option<Membership>,
}

impl RegionPlan {
    /// The region layout for a box with these settings. The pool is ignored unless `shares`.
    pub(crate) fn new(settings: &Settings, shares: bool) -> Result<Self, CreateError> {
        let slots: Vec<_> = settings.ports.iter().map(|port| port.slots).collect();
        match &settings.pool {
            Some(pool) if shares => {
                let layout = RegionLayout::pooled(&slots, settings.pairs, POOL_SIZE)?;
                let membership = Some(pool.join(layout.buffers())?);
                Ok(Self { layout, membership })
            }
            _ => Ok(Self { layout: RegionLayout::paired(&slots, settings.pairs)?, membership: None }),
        }
    }

    /// Offset of the shared pool in the region's addresses, if there is one.
    pub(crate) fn pool_offset(&self) -> Option<usize> {
        self.membership.as_ref().map(|_| self.layout.extent - POOL_SIZE)
    }

    /// The memory regions in the box's boot info, with this region at `address`, and the pool.
    pub(crate) fn regions(&self, address: u64) -> Vec<MemoryRegion> {
        let region =
            MemoryRegion { kind: MemoryKind::SharedRegion, address, size: self.layout.extent as u64 };
        let pool = self.pool_offset().map(|offset| MemoryRegion {
            kind: MemoryKind::Pool,
            address: address + offset as u64,
            size: POOL_SIZE as u64,
        });
        [region].into_iter().chain(pool).collect()
    }
}

impl SharedRegion {
    pub(crate) fn new(memory: Mapped, plan: RegionPlan, backing: Backing) -> Arc<Self> {
        Arc::new(Self { memory, plan, backing })
    }

    /// The host's ends of the ring pairs of a new region: all of the first port, then those of the next one.
    pub(crate) fn ports(self: &Arc<Self>) -> Result<Vec<HostPort>, CreateError> {
        let port = |layout| match self.membership() {
            Some(membership) => {
                let (buffers, own) = (membership.buffers(), &membership.own);
                HostPort::pooled(&self.memory, layout, buffers, membership.member(), own, self.clone())
            }
            None => HostPort::new(&self.memory, layout, self.clone()),
        };
        Ok(self.plan.layout.ports.iter().map(port).collect::<Result<_, _>>()?)
    }

    /// The box's membership in a shared pool, if there is one.
    pub(crate) fn membership(&self) -> Option<&Membership> {
        self.plan.membership.as_ref()
    }

    /// Collapses the touched pages of the region, and of the box's buffers in a shared pool, into huge pages, unless
    /// they have huge pages from the start.
    pub(crate) fn collapse(&self) {
        if let Backing::Mapping(mapping) = &self.backing {
            mapping.collapse(0, self.plan.layout.size);
        }
        if let Some(membership) = self.membership() {
            membership.collapse();
        }
    }

    /// The contents of the region. The box must be suspended.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Busy`] if its rings are not empty, [`SnapshotError::Pooled`] if its packets are in a shared
    /// pool.
    pub(crate) fn snapshot(&self) -> Result<SharedState, SnapshotError> {
        if self.membership().is_some() {
            return Err(SnapshotError::Pooled);
        }
        let still = |offset, size| match self.part(offset, size).map(|ring| indices(&ring)) {
            Ok((head, tail)) if head == tail => Ok(head),
            _ => Err(SnapshotError::Busy),
        };
        let channel = |offset| still(offset, control::CHANNEL_SIZE);
        let channels = [channel(control::REQUESTS)?, channel(control::REPLIES)?, channel(control::EVENTS)?];
        let rings = self.plan.layout.ports.iter().map(|port| {
            let size = port.slots.bytes();
            Ok([still(port.receive, size)?, still(port.transmit, size)?])
        });
        let ports = rings.collect::<Result<_, SnapshotError>>()?;
        let status = self.status().map_err(|_| SnapshotError::NotRunning)?;
        let pages = match &self.backing {
            Backing::Part(part) => part.touched_pages(),
            Backing::Mapping(_) => Ok(memory::pages(&self.memory)),
        };
        let pages = pages.map_err(|cause| SystemError { action: "read a box's memory", cause })?;
        let (generation, clone_safe) = (status.generation(), status.is_clone_safe());
        Ok(SharedState { pages, channels, ports, generation, clone_safe })
    }

    /// Fills a new region with the contents of another.
    pub(crate) fn restore(&self, shared: &SharedState) {
        memory::write_pages(&self.memory, &shared.pages);
    }

    pub(crate) fn memory(&self) -> Mapped {
        self.memory
    }

    /// A part of the region, at an offset from its layout.
    pub(crate) fn part(&self, offset: usize, size: usize) -> Result<Mapped, CreateError> {
        self.memory.part(offset, size).ok_or(CreateError::NoMemory)
    }

    pub(crate) fn status(&self) -> Result<StatusPage<Mapped>, CreateError> {
        self.part(control::STATUS, control::PAGE_SIZE).map(StatusPage)
    }

    pub(crate) fn crash(&self) -> Result<CrashPage<Mapped>, CreateError> {
        self.part(control::CRASH, control::PAGE_SIZE).map(CrashPage)
    }

    /// Writes the boot info and the quantum.
    pub(crate) fn write_boot_info(
        &self,
        settings: &Settings,
        platform: PlatformKind,
        regions: &[MemoryRegion],
    ) -> Result<(), CreateError> {
        let (clock_tsc, clock_unix_ns) = cpu::clock();
        let port = |(layout, port): (&boundary::PortLayout, &crate::settings::PortSettings)| PortInfo {
            slots: layout.slots,
            receive: layout.receive as u32,
            transmit: layout.transmit as u32,
            buffers: layout.buffers as u32,
            buffers_size: layout.buffers_size as u32,
            mac: mac_word(&port.mac),
            mtu: port.mtu.into(),
        };
        let ports = settings.ports.iter().flat_map(|port| std::iter::repeat_n(port, settings.pairs));
        let info = BootInfo {
            platform,
            features: cpu::features(),
            tsc_hz: cpu::tsc_hz(),
            clock_tsc,
            clock_unix_ns,
            seeds: seeds()?,
            regions: regions.to_vec(),
            ports: self.plan.layout.ports.iter().zip(ports).map(port).collect(),
            pairs: u32::try_from(settings.pairs).unwrap_or(u32::MAX),
        };
        info.write(&self.memory)?;
        self.status()?.set_quantum(settings.quantum);
        self.status()?.set_polling(settings.polls);
        Ok(())
    }

    /// Writes the boot info of a running box again, with new seeds, the time, and these addresses of its ports. What else is
    /// in it concerns the box alone, which could write it too.
    pub(crate) fn renew(&self, addresses: &[[u8; 6]]) -> Result<(), CreateError> {
        let mut info = BootInfo::read(&self.memory)?;
        (info.clock_tsc, info.clock_unix_ns) = cpu::clock();
        info.seeds = seeds()?;
        let pairs = usize::try_from(info.pairs).unwrap_or(usize::MAX).max(1);
        for (ports, address) in info.ports.chunks_mut(pairs).zip(addresses) {
            ports.iter_mut().for_each(|port| port.mac = mac_word(address));
        }
        info.write(&self.memory)?;
        let status = self.status()?;
        status.set_generation(status.generation().wrapping_add(1));
        Ok(())
    }
}

/// Random numbers for a box.
fn seeds() -> Result<[u64; 4], SystemError> {
    cpu::seeds().map_err(|cause| SystemError { action: "read random numbers", cause })
}

/// A MAC address as a number, with the first byte in the lowest bits.
fn mac_word(address: &[u8; 6]) -> u64 {
    address.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
