//! The area that a box and its host share, as the host holds it.

use crate::cpu;
use crate::error::{CreateError, SystemError};
use crate::memory::{self, Mapping, Part};
use crate::settings::Settings;
use crate::snapshot::{Shared, SnapshotError};
use boundary::{
    AreaLayout, BootInfo, CrashPage, Mapped, MemoryRegion, Platform, PortInfo, StatusPage, control, indices,
};
use std::sync::Arc;

/// What keeps an area's memory.
#[derive(Debug)]
pub(crate) enum Backing {
    Part(Part),
    Mapping(#[expect(dead_code, reason = "held for its end")] Mapping),
}

/// An area. Whoever uses a part of it holds the area.
#[derive(Debug)]
pub struct Area {
    memory: Mapped,
    pub(crate) layout: AreaLayout,
    backing: Backing,
}

impl Area {
    pub(crate) fn new(memory: Mapped, layout: AreaLayout, backing: Backing) -> Arc<Self> {
        Arc::new(Self { memory, layout, backing })
    }

    /// What the area holds, while its box stands still.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Busy`] while anything is under way in its rings.
    pub(crate) fn snapshot(&self) -> Result<Shared, SnapshotError> {
        let still = |offset, size| match self.part(offset, size).map(|ring| indices(&ring)) {
            Ok((head, tail)) if head == tail => Ok(head),
            _ => Err(SnapshotError::Busy),
        };
        let channel = |offset| still(offset, control::CHANNEL_SIZE);
        let channels = [channel(control::REQUESTS)?, channel(control::REPLIES)?, channel(control::EVENTS)?];
        let rings = self.layout.ports.iter().map(|port| {
            let size = port.slots.bytes();
            Ok([still(port.receive, size)?, still(port.transmit, size)?])
        });
        let ports = rings.collect::<Result<_, SnapshotError>>()?;
        let status = self.status().map_err(|_| SnapshotError::NotRunning)?;
        let area = match &self.backing {
            Backing::Part(part) => part.touched_pages(),
            Backing::Mapping(_) => Ok(memory::pages(&self.memory)),
        };
        let area = area.map_err(|cause| SystemError { action: "read a box's memory", cause })?;
        let (generation, pristine) = (status.generation(), status.is_pristine());
        Ok(Shared { area, channels, ports, generation, pristine })
    }

    /// Fills a new area with what another held.
    pub(crate) fn restore(&self, shared: &Shared) {
        memory::write_pages(&self.memory, &shared.area);
    }

    pub(crate) fn memory(&self) -> Mapped {
        self.memory
    }

    /// A part that the layout names.
    pub(crate) fn part(&self, offset: usize, size: usize) -> Result<Mapped, CreateError> {
        self.memory.part(offset, size).ok_or(CreateError::NoMemory)
    }

    pub(crate) fn status(&self) -> Result<StatusPage<Mapped>, CreateError> {
        self.part(control::STATUS, control::PAGE_SIZE).map(StatusPage)
    }

    pub(crate) fn crash(&self) -> Result<CrashPage<Mapped>, CreateError> {
        self.part(control::CRASH, control::PAGE_SIZE).map(CrashPage)
    }

    /// Writes what the box is told, and its quantum.
    pub(crate) fn write_boot_info(
        &self,
        settings: &Settings,
        platform: Platform,
        regions: &[MemoryRegion],
    ) -> Result<(), CreateError> {
        let (clock_tsc, clock_unix_ns) = cpu::clock();
        let system = |cause| SystemError { action: "read random numbers", cause };
        let port = |(layout, port): (&boundary::PortLayout, &crate::settings::PortSettings)| PortInfo {
            slots: layout.slots,
            receive: layout.receive as u32,
            transmit: layout.transmit as u32,
            buffers: layout.buffers as u32,
            buffers_size: layout.buffers_size as u32,
            mac: port.mac.iter().rev().fold(0, |mac, byte| mac << 8 | u64::from(*byte)),
            mtu: port.mtu.into(),
        };
        let info = BootInfo {
            platform,
            features: cpu::features(),
            tsc_hz: cpu::tsc_hz(),
            clock_tsc,
            clock_unix_ns,
            seeds: cpu::seeds().map_err(system)?,
            regions: regions.to_vec(),
            ports: self.layout.ports.iter().zip(&settings.ports).map(port).collect(),
        };
        info.write(&self.memory)?;
        self.status()?.set_quantum(settings.quantum);
        Ok(())
    }
}
