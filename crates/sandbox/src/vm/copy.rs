//! Copying a machine: into a snapshot, and out of one.

use crate::error::{CreateError, SystemError};
use crate::settings::Settings;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::vm::machine::Machine;
use boundary::{BoxState, Platform, control, indices};

const READ_MEMORY: &str = "read a box's memory";

impl Machine {
    /// Everything that is in the machine. The caller has it stand still.
    pub(crate) fn snapshot(&mut self) -> Result<Snapshot, SnapshotError> {
        let busy = |_| SnapshotError::Busy;
        let area = self.area.clone();
        let status = area.status().map_err(busy)?;
        if self.ended || status.state() != Some(BoxState::Ready) {
            return Err(SnapshotError::NotRunning);
        }
        let still = |offset, size| match area.part(offset, size).map(|ring| indices(&ring)) {
            Ok((head, tail)) if head == tail => Ok(head),
            _ => Err(SnapshotError::Busy),
        };
        let channel = |offset| still(offset, control::CHANNEL_SIZE);
        let channels = [channel(control::REQUESTS)?, channel(control::REPLIES)?, channel(control::EVENTS)?];
        let rings = area.layout.ports.iter().map(|port| {
            let size = port.slots.bytes();
            Ok([still(port.receive, size)?, still(port.transmit, size)?])
        });
        let ports = rings.collect::<Result<_, SnapshotError>>()?;
        self.complete_leave();
        let pages = |cause| SystemError { action: READ_MEMORY, cause };
        Ok(Snapshot {
            settings: self.settings.clone(),
            registers: self.processor.get_regs().map_err(SystemError::kvm("read a processor's registers"))?,
            vectors: Box::new(
                self.processor.get_xsave().map_err(SystemError::kvm("read a processor's vectors"))?,
            ),
            dense: self.private.dense.touched_pages().map_err(pages)?,
            sparse: match &self.private.sparse {
                Some(sparse) => sparse.touched_pages().map_err(pages)?,
                None => Vec::new(),
            },
            area: area.chunk().ok_or(SnapshotError::Process)?.touched_pages().map_err(pages)?,
            channels,
            ports,
            generation: status.generation(),
        })
    }

    /// Fills a new machine with what is in a snapshot.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, settings: &Settings) -> Result<(), CreateError> {
        self.private.dense.write_pages(&snapshot.dense);
        if let Some(sparse) = &self.private.sparse {
            sparse.write_pages(&snapshot.sparse);
        }
        self.area.chunk().ok_or(CreateError::NoMemory)?.write_pages(&snapshot.area);
        self.area.write_boot_info(settings, Platform::Machine, &self.private.regions)?;
        self.area.status()?.set_generation(snapshot.generation.wrapping_add(1));
        let processor = &self.processor;
        processor.set_regs(&snapshot.registers).map_err(SystemError::kvm("set a processor's registers"))?;
        // SAFETY: the state is one that this call's counterpart has read, with the features that every
        // machine has.
        unsafe { processor.set_xsave(&snapshot.vectors) }
            .map_err(SystemError::kvm("set a processor's vectors"))?;
        Ok(())
    }
}
