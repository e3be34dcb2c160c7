//! Takes snapshots of a virtual machine, and restores them.

use crate::error::{CreateError, SystemError};
use crate::settings::Settings;
use crate::snapshot::{PrivateState, Snapshot, SnapshotError};
use crate::vm::virtual_machine::VirtualMachine;
use boundary::{BoxState, PlatformKind};

impl VirtualMachine {
    /// The complete state of the machine. The caller has suspended it.
    pub(crate) fn snapshot(&mut self) -> Result<Snapshot, SnapshotError> {
        let ready = self.region.status().is_ok_and(|status| status.state() == Some(BoxState::Ready));
        if self.ended || !ready {
            return Err(SnapshotError::NotRunning);
        }
        let shared = self.region.snapshot()?;
        self.complete_exit();
        let pages = |cause| SystemError { action: "read a box's memory", cause };
        let registers =
            self.processor.get_regs().map_err(SystemError::kvm("read a processor's registers"))?;
        let vectors = self.processor.get_xsave().map_err(SystemError::kvm("read a processor's vectors"))?;
        let private = PrivateState::Vm {
            registers: Box::new(registers),
            vectors: Box::new(vectors),
            dense: self.private.dense.touched_pages().map_err(pages)?,
            sparse: match &self.private.sparse {
                Some(sparse) => sparse.touched_pages().map_err(pages)?,
                None => Vec::new(),
            },
        };
        Ok(Snapshot { settings: self.settings.clone(), private, shared })
    }

    /// Fills a new machine from a snapshot of a machine.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, settings: &Settings) -> Result<(), CreateError> {
        let PrivateState::Vm { registers, vectors, dense, sparse } = &snapshot.private else {
            return Err(CreateError::SnapshotTarget);
        };
        self.private.dense.write_pages(dense);
        if let Some(chunk) = &self.private.sparse {
            chunk.write_pages(sparse);
        }
        self.region.restore(&snapshot.shared);
        self.region.write_boot_info(settings, PlatformKind::Vm, &self.private.regions)?;
        self.region.status()?.set_generation(snapshot.shared.generation.wrapping_add(1));
        let processor = &self.processor;
        processor.set_regs(registers).map_err(SystemError::kvm("set a processor's registers"))?;
        // SAFETY: the state was read by `snapshot`, with the features that every machine has.
        unsafe { processor.set_xsave(vectors) }.map_err(SystemError::kvm("set a processor's vectors"))?;
        Ok(())
    }
}
